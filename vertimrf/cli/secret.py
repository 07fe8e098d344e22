"""Everyone's keys, and the parties' secret."""

from __future__ import annotations

import click

from .common import load_own
from .group import main
from .outputs import check_new, write_json

__all__ = ["join", "offer", "seal", "secret", "server_offer"]


@main.group()
def secret() -> None:
    """The parties' keys and shared secret: offer, seal, join; anybody may relay the public files, nobody may see the others."""


def _write_pair(name: str | None, key: str, out: str) -> None:
    """A fresh key pair: the private half for its owner, the public one for the plan."""
    from ..keys import PrivateKey

    check_new(key, "what was sealed for it could not be opened without it")
    check_new(out, "the plan may have been made with it")
    private = PrivateKey.new(name)
    private.save(key)
    private.offer.save(out)
    click.echo(f"Give {out} to whoever makes the plan; keep {key} to yourself.")


@secret.command()
@click.argument("name")
@click.option("--key", required=True, help="Private key file to write; keep it.")
@click.option("--out", required=True, help="Offer file to write; public.")
def offer(name: str, key: str, out: str) -> None:
    """Every party: make a key pair, and an offer of its public half under the party's NAME in the schema."""
    _write_pair(name, key, out)


@main.command("server offer")
@click.option("--key", required=True, help="Private key file to write; keep it, and delete it when the table is made.")
@click.option("--out", required=True, help="Offer file to write; public.")
def server_offer(key: str, out: str) -> None:
    """The server: make a key pair, and an offer of its public half."""
    _write_pair(None, key, out)


@secret.command()
@click.option("--plan", "plan_file", required=True, help="The agreed plan, with everyone's keys.")
@click.option("--key", required=True, help="This party's private key file.")
@click.option("--secret", "secret_file", required=True, help="Secret file to write; keep it from the server.")
@click.option("--out", required=True, help="Envelopes to write; public.")
def seal(plan_file: str, key: str, secret_file: str, out: str) -> None:
    """One party: draw the secret and seal it for every other party of the plan."""
    from ..party.secret import Secret, seal_secret

    check_new(secret_file, "messages may have been made with it")
    check_new(out, "another party may have it")
    agreed, own = load_own(plan_file, key)
    drawn = Secret.new()
    envelopes = seal_secret(drawn, agreed.digest(), agreed.sealing_keys(), own)
    drawn.save(secret_file)
    write_json(out, envelopes)
    click.echo(f"Send {out} to the other parties; keep {secret_file} from the server. It is for the plan {agreed.fingerprint}.")


@secret.command()
@click.argument("envelopes")
@click.option("--plan", "plan_file", required=True, help="The agreed plan, with everyone's keys.")
@click.option("--key", required=True, help="This party's private key file.")
@click.option("--secret", "secret_file", required=True, help="Secret file to write; keep it from the server.")
def join(envelopes: str, plan_file: str, key: str, secret_file: str) -> None:
    """Every other party: open its envelope."""
    from ..errors import MessageError
    from ..files.atomic import MAX_KEY, read_json
    from ..party.secret import open_envelope

    check_new(secret_file, "messages may have been made with it")
    agreed, own = load_own(plan_file, key)
    content = read_json(envelopes, "file of envelopes", MessageError, MAX_KEY)
    sender, opened = open_envelope(content, agreed.digest(), agreed.sealing_keys(), own)
    opened.save(secret_file)
    click.echo(f"{sender!r} drew the secret. Keep {secret_file} from the server. It is for the plan {agreed.fingerprint}.")

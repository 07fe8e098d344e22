"""The untrusted server: messages in, a follow-up or the synthetic table out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from ..errors import PlanError
from ..progress import for_terminal
from .common import compile_kernels, load_own, print_findings
from .group import main
from .outputs import check_room, check_same, check_writable, result_bytes, write_json

__all__ = ["follow_up", "server"]


@main.command("follow-up")
@click.argument("messages", nargs=-1, required=True, metavar="MESSAGE...")
@click.option("--plan", "plan_file", required=True, help="The agreed plan, of two rounds.")
@click.option("--key", required=True, help="The server's private key file.")
@click.option("--threads", type=click.IntRange(min=1), help="Threads for the kernels.")
@click.option("--out", required=True, help="Follow-up file to write; send it to every party.")
def follow_up(messages: Sequence[str], plan_file: str, key: str, threads: int | None, out: str) -> None:
    """The server, between two rounds: where the keys of the second round are worth most."""
    from ..message import Message
    from ..options import RunOptions
    from ..server.server import Server

    check_writable(out)
    agreed, own = load_own(plan_file, key, server=True)
    if not agreed.second_keys:
        raise PlanError(f"{plan_file} has one round; plan with two for a follow-up.")
    role = Server(agreed, RunOptions(num_threads=threads, progress=for_terminal()))
    compile_kernels("server", agreed.encoder)
    asked = role.follow_up(role.read([Message.load(path, agreed, own) for path in messages]))
    check_same(out, asked.to_text().encode(), "parties may have the other one, and all must answer one")
    asked.save(out)
    click.echo(
        f"{out} written: {len(asked.schedule.pairs)} marginals under {sum(pair.keys for pair in asked.schedule.pairs):,} keys; "
        f"fingerprint {asked.fingerprint}.\n{agreed.standing}"
    )


@main.command()
@click.argument("messages", nargs=-1, required=True, metavar="MESSAGE...")
@click.option("--plan", "plan_file", required=True, help="The agreed plan.")
@click.option("--key", required=True, help="The server's private key file.")
@click.option("--follow-up", "follow_up_file", help="The follow-up, if the plan has two rounds.")
@click.option("--answer", "answers", multiple=True, help="A party's answer to the follow-up; once per party.")
@click.option("--rows", type=click.IntRange(min=1), help="Synthetic rows; default the noisy record count.")
@click.option("--seed", type=click.IntRange(min=0), help="Of the sampling of synthetic rows only.")
@click.option("--threads", type=click.IntRange(min=1), help="Threads for the kernels.")
@click.option("--out", required=True, help="Synthetic table: .csv, .csv.gz, .parquet or .arrow.")
@click.option("--overwrite", is_flag=True, help="Write over a table that is there.")
@click.option("--model", "model_file", help="Also save the fitted model, for `vertimrf sample`.")
@click.option("--json", "json_file", help="Ledger, timings and sizes; - for standard output.")
def server(
    messages: Sequence[str],
    plan_file: str,
    key: str,
    follow_up_file: str | None,
    answers: Sequence[str],
    rows: int | None,
    seed: int | None,
    threads: int | None,
    out: str,
    overwrite: bool,
    model_file: str | None,
    json_file: str | None,
) -> None:
    """The untrusted server: all parties' messages in, a synthetic table out."""
    from ..message import Answer, Message
    from ..options import RunOptions
    from ..plan.follow_up import FollowUp
    from ..server.server import Server
    from ..tables.arrow import check_output, write_table

    check_writable(out, model_file, json_file, read=(*messages, plan_file, key, follow_up_file, *answers))
    check_output(out)
    if Path(out).exists() and not overwrite:
        raise PlanError(f"{out} exists; name another file, or write over it with --overwrite.")
    agreed, own = load_own(plan_file, key, server=True)
    table_bytes, model_bytes = result_bytes(agreed, rows)
    check_room((out, table_bytes), (model_file, model_bytes))
    received = [Message.load(path, agreed, own) for path in messages]
    asked = None if follow_up_file is None else FollowUp.load(follow_up_file, agreed)
    if answers and asked is None:
        raise PlanError("Answers belong to a follow-up: give it as --follow-up.")
    replies = [] if asked is None else [Answer.load(path, asked, own) for path in answers]
    role = Server(agreed, RunOptions(rows=rows, seed=seed, num_threads=threads, progress=for_terminal()))
    compile_kernels("server", agreed.encoder)
    result = role.run(role.read(received), asked, replies)
    print_findings(result)
    standing = result.ledger.standing
    write_table(result.pieces(), out, standing)
    if model_file is not None:
        from ..named_model import Model

        Model(agreed.schema, result.model, result.ledger, result.others).save(model_file)
    write_json(json_file, result.to_json())
    if json_file != "-":
        click.echo(result.ledger.table())
        click.echo(f"{result.codes.shape[1]:,} synthetic rows written to {out}.")

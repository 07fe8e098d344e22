"""A data holder: its table checked, its ids compared, its message."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ..errors import PlanError
from ..progress import for_terminal
from .common import compile_kernels, load_own, read_records
from .group import main
from .options import reads_tables
from .outputs import check_release, check_writable, output_problem, write_json, write_release

__all__ = ["align", "check", "party"]


@main.command()
@click.argument("table")
@click.option("--plan", "plan_file", required=True, help="The agreed plan.")
@click.option("--name", "party", required=True, help="The party's name in the plan.")
@click.option("--id", "id_column", required=True, help="Record id column.")
@click.option("--out", help="The message file that is to be written.")
@reads_tables()
def check(
    read: Any,
    table: str,
    plan_file: str,
    party: str,
    id_column: str,
    out: str | None,
) -> None:
    """A data holder: find everything about a table that would stop or spoil a run, before anything is released.

    What is printed is exact, so for your own eyes.
    """
    from ..party.check import check_space, check_table
    from ..plan.forecast import forecast
    from ..plan.plan import Plan

    agreed = Plan.load(plan_file)
    found = check_table(table, id_column, agreed, party, table, read)
    problems = list(found.problems)
    index = agreed.party_names.index(party)
    needed = agreed.message_size(index)
    if out is not None:
        # If the record of it is on the same disk, there has to be room for both.
        wrong = output_problem(out) or check_space(Path(out).absolute().parent, 2 * needed)
        problems += [wrong] if wrong else []
    for fact in found.facts:
        click.echo(f"  {fact}")
    foreseen = forecast(agreed)
    if foreseen is not None:
        click.echo(f"  The message: about {needed / 1e6:.1f} MB. Making it takes {foreseen.parties[index]}.")
    for note in found.notes:
        click.echo(f"Note: {note}")
    if problems:
        for problem in problems:
            click.echo(f"Problem: {problem}", err=True)
        count = f"{len(problems)} problem{'s' * (len(problems) > 1)}"
        raise PlanError(f"{table} has {count}; nothing was released, mend and check again.")
    click.echo(f"{table} is ready for the plan {agreed.fingerprint}.")


@main.command()
@click.argument("table")
@click.option("--plan", "plan_file", required=True, help="The agreed plan.")
@click.option("--key", required=True, help="Your private key file.")
@click.option("--secret", "secret_file", required=True, help="The parties' secret.")
@click.option("--id", "id_column", required=True, help="Record id column.")
@click.option("--out", help="Id sample to write, sealed for the other parties.")
@click.option("--with", "others", multiple=True, help="Another party's id sample to compare with; as often as needed.")
@reads_tables("delimiter", "encoding")
def align(
    read: Any, table: str, plan_file: str, key: str, secret_file: str, id_column: str, out: str | None, others: Sequence[str]
) -> None:
    """Data holders among themselves: do they write the ids of the same people the same way?

    Write an id sample with --out, send it to the other parties, and compare with theirs. They learn which of their own people are
    in it, exactly, but not how many others are; the server learns nothing.
    """
    from ..errors import MessageError
    from ..files.atomic import read_json
    from ..party.alignment import best_match, open_sample, sample_ids, seal_sample
    from ..party.secret import Secret
    from ..tables.arrow import open_pieces

    if out is None and not others:
        raise PlanError("Give --out, to write an id sample, or --with and the samples of other parties.")
    check_writable(out)
    agreed, own = load_own(plan_file, key)
    pieces = open_pieces(table, read)
    if id_column not in pieces.names:
        raise PlanError(f"{table} has no id column {id_column!r}; its columns are {', '.join(pieces.names[:5])}, ...")
    ids = (piece[id_column] for piece in pieces.read([id_column]))
    mine = sample_ids(ids, Secret.load(secret_file), agreed, f"{table}, id column {id_column!r}")
    if out is not None:
        write_json(out, seal_sample(mine, agreed, own))
        click.echo(f"{out} written. It tells the other parties which of their people are among {len(mine[()]):,} of yours.")
    for path in others:
        sender, theirs = open_sample(read_json(path, "id sample", MessageError), agreed, own, path)
        match = best_match(mine, theirs)
        click.echo(f"{sender}: {match.plain:,} of your {match.mine:,} sampled ids match as they are written.")
        if match.matching > match.plain:
            here, there = (",".join(formats) or "none" for formats in (match.my_format, match.their_format))
            click.echo(f"  {match.matching:,} would with another --id-format: {here} here, {there} at {sender}.")
        if match.matching < match.mine:
            click.echo(f"  The others are of people whom {sender} does not hold, or whom its sample does not reach.")


@main.command()
@click.argument("table")
@click.option("--plan", "plan_file", required=True, help="The agreed plan.")
@click.option("--key", required=True, help="This party's private key file, by which the plan knows it.")
@click.option("--secret", "secret_file", required=True, help="The parties' shared secret.")
@click.option("--id", "id_column", required=True, help="Record id column.")
@click.option("--claim-as-published", is_flag=True, help="Needed for a plan with the published encoder.")
@click.option("--threads", type=click.IntRange(min=1), help="Threads for the kernels.")
@click.option("--out", required=True, help="Message file to write; send it to the server.")
@reads_tables()
def party(
    read: Any,
    table: str,
    plan_file: str,
    key: str,
    secret_file: str,
    id_column: str,
    claim_as_published: bool,
    threads: int | None,
    out: str,
) -> None:
    """A data holder: encode one table into the one message that leaves it, for the server's eyes."""
    from ..options import RunOptions
    from ..party.party import Party
    from ..party.releases import Releases
    from ..party.secret import Secret

    check_writable(out)
    agreed, own = load_own(plan_file, key)
    releases = Releases.of(own)
    check_release(out, releases, agreed.message_size(agreed.party_names.index(own.party)))
    if agreed.sketch is not None and agreed.sketch.claimed_share and not claim_as_published:
        raise PlanError(
            f"{plan_file} asks for the published encoder, which gives complete records away; refuse it, or reproduce the paper "
            "with --claim-as-published."
        )
    options = RunOptions(num_threads=threads, progress=for_terminal())
    who = Party(agreed, own.party, Secret.load(secret_file), options=options, key=own)
    compile_kernels("party", agreed.encoder)
    records = read_records(who, agreed, table, id_column, read)
    message = who.release(records)
    write_release(out, message)
    click.echo(
        f"{out} written, {len(message):,} bytes, for the plan {agreed.fingerprint}; on record in {releases.folder}.\n"
        f"{agreed.standing}"
    )

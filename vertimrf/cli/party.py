"""Commands of a data holder: ``check`` its table, and ``align`` its ids with other parties'."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ..errors import PlanError, RunError
from ..tables.read_options import ReadOptions
from .group import main
from .options import missing_options, reads_tables
from .outputs import check_writable, write_json

__all__ = ["align", "check"]


@main.command()
@click.argument("table", metavar="FOLDER|TABLE")
@click.option("--plan", "plan_file", help="Plan of a TABLE.")
@click.option("--name", "party", help="Name of the party of a TABLE in the plan.")
@click.option("--id", "id_column", help="Column of record ids of a TABLE.")
@reads_tables()
def check(
    read: Any, table: str, plan_file: str | None, party: str | None, id_column: str | None
) -> None:
    """Check a party's table against a plan, before anything is released.

    Name the party's run FOLDER, or a TABLE with the options. The figures printed are exact: keep
    them private.
    """
    from ..files.atomic import check_space
    from ..files.state import state_folder
    from ..party.check import check_table
    from ..plan.forecast import forecast
    from ..plan.plan import Plan
    from ..runs.folder import SETTINGS
    from ..runs.party_run import PartyRun

    given = {"--plan": plan_file, "--name": party, "--id": id_column}
    if (Path(table) / SETTINGS).is_file():
        run = PartyRun(table)
        if any(given.values()) or read != ReadOptions():
            raise PlanError(
                f"{run.folder / SETTINGS} names the table and how it is read: leave the options out."
            )
        if run.plan is None:
            raise RunError(f"No plan has come to {run.folder} yet. Check the table once it has.")
        plan, party, id_column, read, table = (
            run.plan,
            run.name,
            run.settings.id,
            run.settings,
            run.settings.table,
        )
    elif plan_file is None or party is None or id_column is None:
        raise PlanError(
            f"{table} is no run folder; to check a table, {missing_options(given)} are needed as well."
        )
    else:
        plan = Plan.load(plan_file)
    outcome = check_table(table, id_column, plan, party, table, read)
    index = plan.party_names.index(party)
    size = plan.message_size(index)
    # Releases are recorded in the state folder, which may not exist yet.
    state = state_folder()
    short = check_space(next(path for path in (state, *state.parents) if path.exists()), size)
    problems = [*outcome.problems, *([short] if short else [])]
    for fact in outcome.facts:
        click.echo(f"  {fact}")
    estimate = forecast(plan)
    if estimate is not None:
        click.echo(
            f"  The message: about {size / 1e6:.1f} MB. Making it takes {estimate.parties[index]}."
        )
    for note in outcome.notes:
        click.echo(f"Note: {note}")
    if problems:
        for problem in problems:
            click.echo(f"Problem: {problem}", err=True)
        count = f"{len(problems)} problem{'s' * (len(problems) > 1)}"
        raise PlanError(f"{table} has {count}. Nothing was released: correct it, and check again.")
    click.echo(f"{table} is ready for the plan {plan.fingerprint}.")


@main.command()
@click.argument("folder")
@click.option("--out", help="Id sample to write, sealed for the other parties.")
@click.option(
    "--with",
    "others",
    multiple=True,
    help="Id sample of another party to compare with; repeat for more.",
)
def align(folder: str, out: str | None, others: Sequence[str]) -> None:
    """Check whether the parties write the ids of the same people in the same way.

    FOLDER is a party's run folder with an accepted plan. The run advances to the parties' secret,
    and no message is made. Write an id sample with --out, send it to the other parties, and compare
    it with theirs. The other parties learn exactly which of their people are in the sample, but not
    how many other people are. The server learns nothing.
    """
    from ..errors import MessageError
    from ..files.atomic import read_json
    from ..party.alignment import best_match, open_sample, sample_ids, seal_sample
    from ..runs.exchange import Exchange, take_turn
    from ..runs.party_run import PartyRun
    from ..tables.arrow import open_pieces

    if out is None and not others:
        raise PlanError(
            "Give --out to write an id sample, or --with to compare with samples of other parties."
        )
    run = PartyRun(folder)
    table, id_column = run.settings.table, run.settings.id
    check_writable(out, read=(table, *others))
    if not run.released:
        if run.settings.exchange is None:
            run.advance({}, release=False)
        else:
            take_turn(run, Exchange(run.settings.exchange), release=False)
    plan, key, secret = run.agreed()
    pieces = open_pieces(table, run.settings)
    if id_column not in pieces.names:
        raise PlanError(
            f"{table} has no id column {id_column!r}; its columns are {', '.join(pieces.names[:5])}, ..."
        )
    ids = (piece[id_column] for piece in pieces.read([id_column]))
    mine = sample_ids(ids, secret, plan, f"{table}, id column {id_column!r}")
    if out is not None:
        write_json(out, seal_sample(mine, plan, key))
        click.echo(
            f"{out} written. It tells the other parties which of their people are among {len(mine[()]):,} of yours."
        )
    for path in others:
        sender, theirs = open_sample(read_json(path, "id sample", MessageError), plan, key, path)
        match = best_match(mine, theirs)
        click.echo(
            f"{sender}: {match.plain:,} of your {match.mine:,} sampled ids match as they are written."
        )
        if match.matching > match.plain:
            here, there = (
                ",".join(formats) or "none" for formats in (match.my_format, match.their_format)
            )
            click.echo(
                f"  {match.matching:,} would match with another id_format in run.toml: {here} here, {there} at {sender}."
            )
        if match.matching < match.mine:
            click.echo(
                f"  The others belong to people whom {sender} does not have, or who are not in its sample."
            )

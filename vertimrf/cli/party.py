"""Commands of a data holder: ``check`` its table, and ``align`` its ids with other parties'."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import click

from ..errors import PlanError
from ..files.results import STDOUT
from ..tables.read_options import ReadOptions
from .common import how_many, party_run, print_check
from .group import main
from .options import missing_options, reads_tables
from .outputs import check_writable, write_json


@main.command()
@click.argument("table", metavar="FOLDER|TABLE")
@click.option("--schema", "schema_file", help="Schema of a TABLE.")
@click.option("--plan", "plan_file", help="Plan of a TABLE, which also has the schema.")
@click.option("--name", "party", help="Party of a TABLE, if the schema has several.")
@click.option(
    "--id",
    "id_column",
    help="Column of record ids of a TABLE, if the schema has several parties; a,b for ids in two.",
)
@reads_tables()
def check(
    read: Any,
    table: str,
    schema_file: str | None,
    plan_file: str | None,
    party: Any,
    id_column: str | None,
) -> None:
    """Check a party's table against a plan or a schema, before anything is released.

    Name the party's run FOLDER, or a TABLE with the options. The figures printed are exact: keep
    them private.
    """
    from ..plan.open_schema import OpenSchema
    from ..plan.plan import Plan
    from ..tables.derived import as_stated

    run = party_run(table, schema_file, plan_file, party, id_column, read != ReadOptions())
    if run is not None:
        plan, party, id_column = run.plan, run.name, run.settings.id
        read, table = run.settings, run.settings.table
    elif (schema_file is None) == (plan_file is None):
        raise PlanError(f"{table} is no run folder; to check a table, give --schema or --plan.")
    else:
        plan = None if plan_file is None else Plan.load(plan_file)
    schema = OpenSchema.load(str(schema_file)) if plan is None else OpenSchema(plan.schema, {})
    names = schema.schema.party_names
    if len(names) == 1:
        party = party or names[0]
    elif needed := missing_options({"--name": party, "--id": id_column}):
        raise PlanError(f"The schema has several parties, so {needed} are needed as well.")
    if run is None:
        read = as_stated(read, schema.schema, party)
    problems = print_check(table, id_column, schema, party, read, plan)
    if problems:
        raise PlanError(
            f"{table} has {how_many(problems)}. Nothing was released: correct it, and check again."
        )
    click.echo(
        f"{table} is ready for {schema_file if plan is None else f'the plan {plan.fingerprint}'}."
    )


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
    from ..party.persons import check_named
    from ..runs.exchange import Exchange, take_turn
    from ..runs.party_run import PartyRun
    from ..tables.columns import without_column
    from ..tables.derived import party_table

    if out is None and not others:
        raise PlanError(
            "Give --out to write an id sample, or --with to compare with samples of other parties."
        )
    run = PartyRun(folder)
    table, columns = run.settings.table, {"id": run.settings.id}
    if run.settings.person is not None:
        columns["person"] = run.settings.person
    check_writable(out, read=(table, *others))
    if not run.released:
        if run.settings.exchange is None:
            run.advance({}, release=False)
        else:
            take_turn(run, Exchange(run.settings.exchange), release=False)
    plan, key, secret = run.agreed()
    check_named("person" in columns, plan.records_per_person)
    # Formats are tried of ids as they are written.
    read = replace(run.settings, id_format=())
    pieces = party_table(table, read, run.settings.id, ())
    for what, column in columns.items():
        if column not in pieces.names:
            raise without_column(table, what, column, pieces.names)
    wanted = [*columns.values()]
    ids = (piece.select(wanted) for piece in pieces.read([*dict.fromkeys(wanted)]))
    mine = sample_ids(
        ids, secret, plan, f"{table}, column of ids {' and '.join(map(repr, wanted))}"
    )
    if out is not None:
        write_json(out, seal_sample(mine, plan, key))
        click.echo(
            f"{out} written. It tells the other parties which of their people are among {len(mine[()]):,} of yours.",
            err=out == STDOUT,
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
                f"  {match.matching:,} match with this id_format in run.toml: {here} here, {there} at {sender}."
            )
        if match.matching < match.mine:
            click.echo(
                f"  The others belong to people whom {sender} does not have, or who are not in its sample."
            )

"""The public schema: drafted, merged, and its private domains found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from ..errors import PlanError
from ..plan.defaults import DOMAIN_DELTA
from .group import main
from .options import reads_tables
from .outputs import check_schema_file

__all__ = ["domains", "draft", "merge", "schema"]


@main.group()
def schema() -> None:
    """The public schema: a party's part drafted from its table, parts merged, and private domains found."""


@schema.command()
@click.argument("tables", nargs=-1, required=True, metavar="TABLE...")
@click.option("--id", "id_column", required=True, help="Record id column, in every table.")
@click.option(
    "--name",
    "names",
    multiple=True,
    help="The party's name; once for every table.  [default: party1, party2, ...]",
)
@click.option("--drop", multiple=True, help="A column to leave out; as often as needed.")
@click.option("--out", required=True, help="Schema file to write: .toml or .json.")
@reads_tables("delimiter", "encoding")
def draft(
    read: Any,
    tables: Sequence[str],
    id_column: str,
    names: Sequence[str],
    drop: Sequence[str],
    out: str,
) -> None:
    """Draft a schema, or one party's part of it, from data, to be edited into public knowledge: as drafted it is not private."""
    from ..tables.arrow import read_arrow
    from ..tables.infer import draft_schema

    check_schema_file(out)
    drafted = draft_schema(
        [read_arrow(table, read) for table in tables], id_column, names or None, drop
    )
    drafted.schema.save(out)
    for flag in drafted.flags:
        click.echo(f"  {flag}")
    click.echo(
        f"{out} written, {len(drafted.schema.attributes)} attributes. Its domains were read off the data, which leaks them: "
        "check every value and bound against public knowledge, then set public = true."
    )


@schema.command()
@click.argument("parts", nargs=-1, required=True, metavar="PART...")
@click.option("--out", required=True, help="Schema file to write: .toml or .json.")
def merge(parts: Sequence[str], out: str) -> None:
    """Join the parties' parts of a schema, each written by its own party, in the order given."""
    from ..plan.schema import Schema

    check_schema_file(out)
    merged = Schema.merge({path: Schema.load(path) for path in parts})
    merged.save(out)
    names = [name for name, _ in merged.parties]
    click.echo(f"{out}: {len(merged.attributes)} attributes of {', '.join(names)}.")
    for attribute in merged.shared:
        holders = " and ".join(names[party] for party in merged.holders[attribute])
        click.echo(
            f"  {merged.names[attribute]!r} is taken for one column that {holders} hold; if it is not, rename it at one."
        )
    for remark in merged.remarks():
        click.echo(f"  Note: {remark}")
    if not merged.public:
        click.echo(
            "  A part was read off data, which leaks its domains: its owners check it, and set public = true."
        )


@schema.command()
@click.argument("table")
@click.option(
    "--schema",
    "schema_file",
    required=True,
    help='The party\'s part, with bins or values = "private" somewhere.',
)
@click.option(
    "--epsilon",
    type=float,
    required=True,
    help="For all of them together; part of every plan with this schema.",
)
@click.option(
    "--delta",
    type=float,
    default=DOMAIN_DELTA,
    help="That a value is listed which one person alone has.",
)
@click.option(
    "--records-per-person",
    type=click.IntRange(min=1),
    default=1,
    help="As the plan will have it; needs --person.",
)
@click.option("--out", required=True, help="Schema part to write: .toml or .json.")
@reads_tables("person", "delimiter", "encoding")
def domains(
    read: Any,
    table: str,
    schema_file: str,
    epsilon: float,
    delta: float,
    records_per_person: int,
    out: str,
) -> None:
    """A data holder: find the domains that nobody knows beforehand, with noise, for the plan to be made with.

    A domain is found once: what was found is on record on this machine, and asked again, it is given again.
    """
    from ..party.domain_record import DomainRecord, Search, cells_digest
    from ..party.persons import sample_rows
    from ..party.private_domains import check_columns_of, close, find_domains, unfit
    from ..plan.open_schema import OpenSchema
    from ..privacy.ledger import spent_beforehand
    from ..privacy.noise import KeyedNoise
    from ..tables.arrow import open_pieces

    check_schema_file(out)
    part = OpenSchema.load(schema_file)
    if not part.wanted:
        raise PlanError(
            f'{schema_file} has no attribute with bins = "private" or values = "private"; there is nothing to find.'
        )
    if len(part.schema.parties) > 1:
        raise PlanError(
            f"{schema_file} has {len(part.schema.parties)} parties; every party finds the domains of its own part."
        )
    if records_per_person > 1 and read.person is None:
        raise PlanError(
            "--records-per-person needs --person, the column that says whose a record is."
        )
    content = open_pieces(table, read).whole()
    check_columns_of(part.wanted, content, table)
    (party, _), *_ = part.schema.parties

    def find(wanted: Sequence[Any], secret: Callable[[str], bytes]) -> Any:
        rows, purpose = content, "noise"
        if read.person is not None:
            rows = sample_rows(
                content, read.person, records_per_person, table, secret("records of a person")
            )
            purpose += " of " + " ".join(cells_digest(rows[domain.name]) for domain in wanted)
        for sentence in unfit(wanted, lambda name: rows):
            click.echo(f"{sentence} This stays here.", err=True)
        return find_domains(
            wanted,
            lambda name: rows,
            epsilon,
            delta,
            lambda name: party,
            records_per_person=records_per_person,
            noise=KeyedNoise(secret(purpose)),
        )

    record = DomainRecord()
    found, looked_for = record.once(Search(part, schema_file, table, content), find)
    closed = close(part, found)
    closed.save(out)
    for name in part.wanted:
        attribute = closed.attributes[closed.index(name)]
        if attribute.kind == "numeric":
            what = f"{attribute.edge_text(0)} to {attribute.edge_text(len(attribute.edges) - 1)}, {len(attribute.edges) - 1} bins"
        else:
            what = f"{len(attribute.values) - 1} values, {attribute.other!r} for the rest"
        click.echo(f"  {name}: {what}{' (on record)' if name in looked_for else ''}.")
    spent, exposed = spent_beforehand(closed.spent)
    click.echo(
        f"{out} written. Finding its domains has spent epsilon {spent:.4g}"
        + (f" and delta {exposed:.3g}" if exposed else "")
        + f" in all, which every plan with it counts; on record in {record.path}, to be kept."
    )

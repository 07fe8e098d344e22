"""Commands on schemas: ``draft``, ``merge``, and ``domains`` for private domains."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from ..errors import PlanError
from ..plan.defaults import DOMAIN_DELTA
from .group import main
from .options import reads_tables
from .outputs import check_schema_file


@main.group()
def schema() -> None:
    """Draft a party's part of the public schema, merge parts, and find private domains."""


@schema.command()
@click.argument("tables", nargs=-1, required=True, metavar="TABLE...")
@click.option(
    "--id",
    "id_column",
    help="Column of record ids, if parties are joined by it; a,b for ids in two.",
)
@click.option(
    "--name",
    "names",
    multiple=True,
    help="Name of the party, once for every table.  [default: party1, party2, ...]",
)
@click.option("--drop", multiple=True, help="Column to leave out; repeat for more.")
@click.option("--out", required=True, help="Schema file to write: .toml or .json.")
@click.option(
    "--dates",
    type=click.Choice(["day-first", "month-first"]),
    help="How to read ambiguous dates, such as 01/02/2019; by default such columns are left out.",
)
@click.option(
    "--rules",
    is_flag=True,
    help="Take over likely rules, without the columns that they compute. Check that each is a rule.",
)
@reads_tables(*("id_format", "delimiter", "encoding", "skip_rows", "no_header", "columns", "query"))
def draft(
    read: Any,
    tables: Sequence[str],
    id_column: str | None,
    names: Sequence[str],
    drop: Sequence[str],
    dates: Any,
    out: str,
    rules: bool,
) -> None:
    """Draft a schema, or a party's part of it, from data.

    The draft is not private: replace it by public knowledge.
    """
    from ..tables.infer import draft_schema

    check_schema_file(out)
    drafted = draft_schema(tables, id_column, names or None, drop, read, dates)
    schema = drafted.with_rules() if rules else drafted.schema
    schema.save(out, lists_apart=True)
    for flag in drafted.flags:
        click.echo(f"  {flag}")
    click.echo(
        f"{out} written, {len(schema.attributes)} attributes. Its domains come from the data, which leaks them: "
        'check every value, bound and the form of ids against public knowledge. Then name each one\'s source (source = "codebook", ids_source) '
        "and delete public = false, or set public = true."
    )
    for line in drafted.exclusions():
        click.echo(line)


@schema.command()
@click.argument("parts", nargs=-1, required=True, metavar="PART...")
@click.option(
    "--out",
    required=True,
    help="Schema file to write: .toml or .json; .sdv.json is SDV's metadata, .csvw.json CSVW-EO.",
)
def merge(parts: Sequence[str], out: str) -> None:
    """Merge the parties' parts of a schema, in the order given."""
    from ..plan.merge import merge_schemas
    from ..plan.schema import Schema

    check_schema_file(out)
    schemas = {path: Schema.load(path) for path in parts}
    merged = merge_schemas(schemas)
    merged.save(out)
    names = merged.party_names
    click.echo(f"{out}: {len(merged.attributes)} attributes of {', '.join(names)}.")
    for path, part in schemas.items():
        if len(names) > 1 and part.ids is None:
            click.echo(
                f"  {path} does not state the form of its ids; `vertimrf align` compares ids before a message is made."
            )
    for attribute in merged.shared:
        holders = " and ".join(names[party] for party in merged.holders[attribute])
        click.echo(
            f"  {merged.names[attribute]!r} counts as one column that {holders} hold. If it is not, rename it at one of them."
        )
    for remark in merged.remarks():
        click.echo(f"  Note: {remark}")
    if not merged.public:
        click.echo(
            "  A part was drafted from data, which leaks its domains: its owner must check it, and set public = true."
        )


@schema.command()
@click.argument("table")
@click.option("--id", "id_column", required=True, help="Column of record ids; a,b for ids in two.")
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
    help="Epsilon for all domains together. It counts in every plan with this schema.",
)
@click.option(
    "--delta",
    type=float,
    default=DOMAIN_DELTA,
    help="Probability that a value of only one person is listed.",
)
@click.option(
    "--records-per-person",
    type=click.IntRange(min=1),
    default=1,
    help="As in the plan; above 1 it needs --person.",
)
@click.option("--out", required=True, help="Schema part to write: .toml or .json.")
@reads_tables()
def domains(
    read: Any,
    table: str,
    id_column: str,
    schema_file: str,
    epsilon: float,
    delta: float,
    records_per_person: int,
    out: str,
) -> None:
    """Find domains of a party's columns with noise, where nobody knows them beforehand.

    A domain is found once. The result is recorded on this machine, and further calls return it.
    """
    from ..party.domain_record import DomainRecord, Searched, cells_digest
    from ..party.persons import check_named, sample_rows
    from ..party.private_domains import check_budget, close, find_domains, unfit
    from ..plan.open_schema import OpenSchema
    from ..privacy.ledger import spent_beforehand
    from ..privacy.noise import KeyedNoise
    from ..tables.columns import check_present
    from ..tables.derived import as_stated, party_table, with_derived

    check_schema_file(out)
    check_budget(epsilon, delta, records_per_person)
    part = OpenSchema.load(schema_file)
    if not part.wanted:
        raise PlanError(
            f'{schema_file} has no attribute with bins = "private" or values = "private", so there is nothing to find.'
        )
    if len(part.schema.parties) > 1:
        raise PlanError(
            f"{schema_file} has {len(part.schema.parties)} parties; each party must find the domains of its part."
        )
    check_named(read.person is not None, records_per_person)
    read = as_stated(read, part.schema, part.schema.party_names[0])
    names = part.schema.names
    (pieces,) = with_derived([party_table(table, read, id_column, names)], part.schema, names, read)
    content = pieces.whole()
    check_present(part.wanted, content.column_names, table)
    (party, _), *_ = part.schema.parties

    def find(wanted: Sequence[Any], secret: Callable[[str], bytes]) -> Any:
        key = secret("records of a person")
        rows = sample_rows(content, id_column, records_per_person, table, read, key)
        # Ids decide which rows count, and other counts have other noise.
        purpose = "noise of " + " ".join(cells_digest(rows[domain.name]) for domain in wanted)
        for sentence in unfit(wanted, lambda name: rows):
            click.echo(f"{sentence} Keep this private.", err=True)
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
    findings, recorded = record.once(Searched(part, schema_file, table, content), find)
    closed = close(part, findings)
    closed.save(out)
    for name in part.wanted:
        attribute = closed.attributes[closed.index(name)]
        click.echo(f"  {name}: {attribute.found}{' (on record)' if name in recorded else ''}.")
    spent, exposed = spent_beforehand(closed.spent)
    click.echo(
        f"{out} written. Finding its domains has spent epsilon {spent:.4g}"
        + (f" and delta {exposed:.3g}" if exposed else "")
        + f" in all, which every plan with it counts. The record is {record.path}: keep it."
    )

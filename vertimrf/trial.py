"""The whole protocol in one process, with the message files of a deployment."""

from __future__ import annotations

import logging
import math
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .arguments import TEXT, instance, maybe, takes
from .arrays import Fields, Texts
from .errors import PlanError, SchemaError, TableError
from .files.notebook import as_html
from .kernels.jit import for_each, threads
from .keys import KeyRing
from .message import Message
from .named_model import Model
from .options import RunOptions
from .party.before_plan import (
    count_noise,
    domains_noise,
    drawn_before,
    own_key,
    saying_run_spent,
    saying_spent,
)
from .party.comparison import compare_all
from .party.party import Party
from .party.persons import check_named, limited, sample_rows
from .party.private_domains import close, find_domains
from .party.secret import Secret
from .plan.defaults import UNCOUNTED_DELTA
from .plan.open_schema import OpenSchema
from .plan.options import DEFAULT as PLANNING
from .plan.options import PlanOptions
from .plan.plan import Plan
from .plan.planner import make_plan
from .plan.schema import Schema
from .plan.target import check_target, domain_budget
from .privacy.events import GeometricEvent
from .privacy.ledger import Kind, LedgerEntry
from .progress import SILENT, Clock
from .releases.release import ROWS
from .server.result import Result
from .server.server import Server
from .tables.arrow import Pieces
from .tables.columns import check_joined, check_present, encode_table
from .tables.derived import opened, party_table, with_derived
from .tables.dropped import Dropped
from .tables.ids import IdKeys, named_ids
from .tables.impossible import ruled_out
from .tables.infer import draft_schema
from .tables.read_options import DEFAULT, ReadOptions
from .tables.sources import Source, name_of, open_as_found, open_pieces, several
from .tables.table import Table, warn_of_strangers

if TYPE_CHECKING:
    import pyarrow as pa

# Scale of the noise of the count to plan with, in units of 1 / epsilon. The count takes 1/50 of the
# budget.
PLANNING_COUNT_NOISE = 50.0

# The server's timings follow from messages. A party's timings follow from its table, and stay with
# it in a deployment.
TIMED = (
    "it has exact timings of phases that read tables, which depend on the data: do not publish it"
)

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Trial:
    """A simulation of the whole protocol on one machine.

    Attributes:
        result: result of the server.
        message_bytes: size of each party's message by party name, bytes.
        seconds: wall time by phase, including parties' phases.
        dropped: records that do not fit, by party name. They are exact and not part of any report.
    """

    result: Result
    message_bytes: dict[str, int]
    seconds: dict[str, float]
    dropped: dict[str, Dropped] = field(default_factory=dict)

    @cached_property
    def table(self) -> pa.Table:
        """The synthetic rows in the schema's original values, made at the first access and kept."""
        return self.result.table

    @property
    def ledger(self) -> Any:
        """Every event and the composed (epsilon, delta)."""
        return self.result.ledger

    @cached_property
    def model(self) -> Model:
        """The released model."""
        return Model.of(self.result)

    def __repr__(self) -> str:
        return f"<Trial: {self.result.codes.shape[1]:,} rows of {self.model}>"

    def _repr_html_(self) -> str:
        return as_html(self, self.model.summary())

    def to_json(self) -> Fields:
        """The privacy spent, timings, sizes of messages and of the model, JSON-able."""
        out = self.result.to_json() | {"label": self.ledger.label.noting(TIMED).to_json()}
        out["seconds"] = {phase: round(seconds, 4) for phase, seconds in self.seconds.items()}
        out["message_bytes"] = self.message_bytes
        return out


def open_tables(
    sources: Sequence[Any],
    id: str | None,
    schema: Schema | OpenSchema | None,
    read: ReadOptions = DEFAULT,
    domains: tuple[float, float] | None = None,
    records_per_person: int = 1,
) -> tuple[Schema, list[Table]]:
    """Read the parties' tables and encode them by a schema.

    Args:
        sources: files, or objects that pyarrow can read; one per party, or a single one with the
            columns of all.
        id: the record id column. A single table needs none.
        schema: domains and parties. None infers them from the data, which is not private.
        read: how the tables are read.
        domains: epsilon and delta for finding the schema's private domains. None if it has none.
        records_per_person: largest number of records of one person. Above 1, tables name persons.

    Returns:
        The schema with its parties, and one encoded table per party. Their records may differ.

    Raises:
        TableError: a source cannot be read, or has no ids; or no record of a table fits.
        SchemaError: a table lacks a column of the schema.
    """
    if not sources:
        raise PlanError("Give at least one table.")
    check_joined(id, sources)
    alone = len(sources) == 1
    names = [
        name_of(source, "The table" if alone else f"table {i + 1}")
        for i, source in enumerate(sources)
    ]
    known = schema.schema if isinstance(schema, OpenSchema) else schema
    sources, read = opened(sources, known, read)
    # Only private domains and drafts need whole tables. Else tables are read in pieces.
    if known is None or schema is None:
        # A draft is read off the table, and is not private.
        tables = [
            named_ids(open_as_found(source, read), read, id, read.person) for source in sources
        ]
        dropped = () if read.person is None else [read.person]
        # A data frame in memory tells more of the types of its objects than its pieces.
        whole = [s if hasattr(s, "iloc") else t for s, t in zip(sources, tables, strict=True)]
        draft = draft_schema(whole, id, drop=dropped, read=read)
        schema = draft.schema
        for flag in draft.flags:
            LOG.warning("%s", flag)
        kept = {*schema.names, id, read.person}  # A flag has named each other column.
        tables = [replace(t, names=tuple(n for n in t.names if n in kept)) for t in tables]
    else:
        tables = [
            party_table(source, read, id, names)
            for source, names in zip(sources, _columns(known, len(sources)), strict=True)
        ]
        tables = with_derived(tables, known, known.names)
    spent: tuple[LedgerEntry, ...] = ()
    if isinstance(schema, OpenSchema):
        asked = {*schema.wanted, id, read.person} if schema.wanted else set()
        some = [replace(t, names=tuple(n for n in t.names if n in asked)) for t in tables]
        whole = [table.whole() for table in some] if asked else []
        before = schema.schema.spent
        schema = with_domains(schema, whole, names, domains, id, read, records_per_person)
        spent = schema.spent[len(before) :]
    with saying_spent(spent):
        return _encoded(schema, tables, names, id, read)


def _encoded(
    schema: Schema,
    tables: Sequence[Pieces],
    names: Sequence[str],
    id: str | None,
    read: ReadOptions,
) -> tuple[Schema, list[Table]]:
    """The schema with its parties, and one encoded table per party; see :func:`open_tables`."""
    keys, alone = IdKeys.drawn(), len(tables) == 1
    if alone and len(schema.parties) > 1:
        domains_of = schema.with_fine(range(len(schema.attributes)))
        every = encode_table(tables[0], id, domains_of, read, name=names[0], keys=keys)
        check_some_fit([every], names)
        return schema, _dealt(every, schema)
    if len(schema.parties) == 1 and not alone:
        schema = _deal_by_columns(schema, tables, id, read.person)
    if len(tables) != len(schema.parties):
        raise SchemaError(
            f"The schema names {len(schema.parties)} parties but there are {len(tables)} tables; give one per party."
        )
    parts = [
        encode_table(
            table,
            id,
            schema.encoding(party),
            read,
            name=name,
            keys=keys,
            impossible=ruled_out(schema, party),
        )
        for table, name, (party, _) in zip(tables, names, schema.parties, strict=True)
    ]
    check_some_fit(parts, names)
    warn_of_strangers(parts, names)
    return schema, parts


def check_some_fit(tables: Sequence[Table], names: Sequence[str]) -> None:
    """Check that not all records of a table were left out, as by a wrong delimiter.

    Only who holds the table may learn of this refusal. A party of a run is refused for no record.

    Raises:
        TableError: they were; the message has the reasons, and no value of the table.
    """
    for table, name in zip(tables, names, strict=True):
        if table.dropped.records and not table.records:
            why = ", ".join(f"{r.what} ({r.kind}, {r.count:,})" for r in table.dropped.reasons)
            raise TableError(
                f"No record of {name} fits the schema, so nothing is made of it: {why}. Correct the table or the schema; "
                "`vertimrf check` shows examples."
            )


def with_domains(
    schema: OpenSchema,
    tables: Sequence[pa.Table],
    names: Sequence[str],
    spend: tuple[float, float] | None,
    id: str | None,
    read: ReadOptions,
    records_per_person: int,
) -> Schema:
    """Find the schema's private domains, and put them into the schema.

    Args:
        schema: schema with private domains.
        tables: the parties' tables.
        names: names of the tables in errors.
        spend: epsilon and delta to spend on all domains together.
        id: column of record ids, or None.
        read: how ids are read; names the column of person ids, if there is one.
        records_per_person: largest number of records of one person.

    Returns:
        The schema with all domains. Its ``spent`` has their ledger entries.

    Raises:
        SchemaError: no table has a column.
    """
    if not schema.wanted:
        return schema.schema
    if spend is None:
        names = ", ".join(schema.wanted)
        raise SchemaError(
            f"The schema's private domains ({names}) are yet to be found: `vertimrf schema domains`."
        )
    if len(tables) == 1:
        check_present(schema.wanted, tables[0].column_names, names[0])
    key = own_key("records of a person")
    tables = [
        sample_rows(table, id, records_per_person, name, read, key)
        for table, name in zip(tables, names, strict=True)
    ]

    def column(name: str) -> pa.Table:
        return tables[first_with(name, [table.column_names for table in tables])]

    def party(name: str) -> str:
        return schema.schema.parties[schema.schema.party_of(schema.schema.index(name))][0]

    wanted = list(schema.wanted.values())
    noise = domains_noise(wanted, [column(domain.name)[domain.name] for domain in wanted])
    found = find_domains(
        wanted, column, *spend, party, records_per_person=records_per_person, noise=noise
    )
    return close(schema, found)


@takes(
    PlanError,
    id=maybe(TEXT),
    schema=maybe(instance("Schema", "OpenSchema")),
    planning=instance("PlanOptions"),
    read=instance("ReadOptions"),
    options=maybe(instance("RunOptions")),
)
def synthesize(
    tables: Source | Sequence[Source],
    id: str | None = None,
    epsilon: float = math.nan,
    *,
    schema: Schema | OpenSchema | None = None,
    planning: PlanOptions = PLANNING,
    read: ReadOptions = DEFAULT,
    options: RunOptions | None = None,
) -> Trial:
    """Synthesise a table of all parties' attributes with differential privacy, in one process.

    Args:
        tables: one per party: files (CSV, Parquet, Arrow) or data frames; or a single one.
        id: the record id column, in every table. One table needs none.
        epsilon: privacy target of the whole run, add/remove one record. It has no default.
        schema: public domains, or domains to be found with noise. None infers them from the data,
            and the run is then marked as not private.
        planning: options of the plan. Without ``expected_records`` a noisy count is used, which is
            an event of the ledger.
        read: how the tables are read.
        options: rows, seed, threads, progress and so on.

    Returns:
        The synthetic table, its model and its ledger.

    Raises:
        VertiMRFError: the input is wrong. The message says what is wrong and how to correct it.
    """
    options = options or RunOptions()
    clock = Clock()
    plan, parts = read_and_plan(
        several(tables), id, epsilon, schema, planning, read, options, clock
    )
    with saying_spent(drawn_before(plan, schema)):
        trial = run_protocol(plan, parts, options)
    return replace(trial, seconds={**clock.seconds, **trial.seconds})


def read_and_plan(
    tables: Sequence[Any],
    id: str | None,
    epsilon: float,
    schema: Schema | OpenSchema | None,
    planning: PlanOptions,
    read: ReadOptions,
    options: RunOptions,
    clock: Clock,
) -> tuple[Plan, list[Table]]:
    """Read the tables, and make a plan for them.

    Args:
        tables, id, epsilon, schema, planning, read, options: as for :func:`synthesize`.
        clock: times both phases.

    Returns:
        The plan, and an encoded table for each of its parties.

    Raises:
        VertiMRFError: the tables cannot be read, or the target cannot be met.
    """
    check_target(epsilon, planning.delta)
    several = planning.records_per_person
    options.progress.step("reading tables")
    with clock("reading"), threads(options.num_threads):
        check_named(read.person is not None, several)
        domains = domain_budget(epsilon, planning)
        given = schema.schema if isinstance(schema, OpenSchema) else schema
        before = 0 if given is None else len(given.spent)
        closed, parts = open_tables(tables, id, schema, read, domains, several)
    options.progress.step("planning")
    with clock("planning"):
        # One person changes the number of records that take part by no more than ``several``.
        # Which of a person's records these are does not matter for their number.
        counted = limited(parts[0], several, bytes(16))
        plan = plan_for(closed, counted, epsilon, planning, closed.spent[before:])
    options.planned(plan)
    return plan, parts


def plan_for(
    schema: Schema,
    table: Table,
    epsilon: float,
    planning: PlanOptions,
    spent: Sequence[LedgerEntry] = (),
) -> Plan:
    """Make a plan in a process that holds the data.

    Without a public number of records, a noisy count is used. It is the same for the same records
    and epsilon (:mod:`vertimrf.party.before_plan`), so that a plan that is refused and made again
    with other options spends nothing more.

    The count takes 1/50 of epsilon and no delta. The plan depends on its outcome, so its epsilon is
    added, not composed.

    Args:
        schema: domains and parties.
        table: the records that are counted. They are used only if ``planning.expected_records`` is
            None.
        epsilon: privacy target of the whole run.
        planning: options of the plan.
        spent: what was spent on the schema's domains just before, for errors.

    Returns:
        The plan.

    Raises:
        PlanError: the result is predicted to be useless, or an option is out of range; the error
            says what a count has spent.
        PrivacyError: the target cannot be met, or there is no room for the key of the count.
    """
    prior: tuple[LedgerEntry, ...] = ()
    person = planning.records_per_person
    if planning.expected_records is None:
        scale = max(person * PLANNING_COUNT_NOISE / epsilon, float(person))
        source = count_noise(table)
        released = int(source.geometrics(np.array([table.records]), scale)[0])
        # Plans with the same count pay for it once.
        name = source.name()
        noise = f"two-sided geometric, scale {scale:.1f}"
        event, what = GeometricEvent(scale, person), "record count, to plan with"
        kind = Kind.PLANNING_COUNT
        prior = (LedgerEntry(event, "coordinator", what, noise, name, kind=kind),)
        # A count below its noise carries no information: use the noise. The delta must not depend
        # on the count.
        delta = UNCOUNTED_DELTA if planning.delta is None else planning.delta
        planning = replace(planning, expected_records=max(released, round(scale)), delta=delta)
    with saying_spent((*spent, *prior)):
        return make_plan(schema, epsilon, planning, prior=prior)


def run_protocol(
    plan: Plan,
    tables: Sequence[Table],
    options: RunOptions | None = None,
    folder: str | Path | None = None,
    ring: KeyRing | None = None,
    secret: Secret | None = None,
) -> Trial:
    """Run every party and the server of a plan. The messages go through sealed files.

    They are those of a deployment: the same bytes, for the same keys, secret and tables.

    Args:
        plan: the agreed plan.
        tables: one encoded table per party, in plan order.
        options: rows, seed, threads, progress and so on.
        folder: folder of the message files. None: a temporary folder.
        ring: private keys to the public keys in the plan. None: fresh keys, which are put into the
            plan.
        secret: the parties' secret. None: a fresh one.

    Returns:
        The result of the server, with sizes of messages and timings.
    """
    options = options or RunOptions()
    if folder is None:
        with tempfile.TemporaryDirectory() as temporary:
            return run_protocol(plan, tables, options, temporary, ring, secret)
    if ring is None:
        ring = KeyRing.new(plan.party_names)
        plan = replace(plan, public_keys=ring.public)
    clock, paths = Clock(), [Path(folder) / f"{name}.message" for name in plan.party_names]
    _play(plan, tables, options, ring, secret or Secret.new(), paths, clock)
    server = Server(plan, options)
    with clock("receiving"), threads(options.num_threads):
        messages = for_each(len(paths), lambda i: Message.load(paths[i], plan, ring.server))
    with saying_run_spent(plan.ledger()):
        result = server.run(server.read(messages))
    dropped = {name: table.dropped for name, table in zip(plan.party_names, tables, strict=True)}
    sizes = {name: path.stat().st_size for name, path in zip(plan.party_names, paths, strict=True)}
    return Trial(result, sizes, {**clock.seconds, **result.seconds}, dropped)


def _play(
    plan: Plan,
    tables: Sequence[Table],
    options: RunOptions,
    ring: KeyRing,
    secret: Secret,
    paths: Sequence[Path],
    clock: Clock,
) -> None:
    """Run every party, up to its sealed message."""
    # Parties run at the same time. Encrypted counts take long: their parties take turns, and each
    # shows its progress.
    each = options if plan.sketch.exchanges else replace(options, progress=SILENT, num_threads=None)
    names = plan.party_names
    parties = [_party(plan, name, secret, clock, each, ring) for name in names]
    answers = _exchanged(plan, parties, tables, options)

    def play(i: int) -> None:
        message = parties[i].run(tables[i], answers.get(names[i]))
        with clock("sending"):
            message.save(paths[i], plan, ring.parties[names[i]])

    if plan.sketch.exchanges:
        for i, name in enumerate(names):
            options.progress.step(f"party {name}")
            play(i)
    else:
        options.progress.step(f"parties {', '.join(names)}")
        with threads(options.num_threads):
            for_each(len(parties), play)


def _dealt(table: Table, schema: Schema) -> list[Table]:
    """Each party's part of a table of all attributes."""
    fine = {a: len(schema.attributes) + row for row, a in enumerate(schema.fine)}
    rows_of = {
        name: [*schema.party_attributes(name), *(fine[a] for a in schema.fine_of(name))]
        for name in schema.party_names
    }
    return [
        replace(table, attributes=schema.encoding(name), codes=table.codes[rows])
        for name, rows in rows_of.items()
    ]


def _party(
    plan: Plan, name: str, secret: Secret, clock: Clock, options: RunOptions, ring: KeyRing
) -> Party:
    """A party of a trial, with its keys: its noise follows from them as in a deployment."""
    key = ring.parties[name]
    counting = plan.sketch.private_key() if plan.sketch.exchanges else None
    return Party(plan, name, secret, None, clock, options, key=key, counting_key=counting)


def _exchanged(
    plan: Plan, parties: Sequence[Party], tables: Sequence[Table], options: RunOptions
) -> dict[str, dict[str, bytes]]:
    """The steps of encrypted counts before messages: by party, the answers of later parties."""
    names = plan.party_names
    if plan.sketch.exchanges:
        options.progress.step("comparing ids")
        pairs = zip(names, parties, tables, strict=True)
        compare_all({name: party.comparison(table) for name, party, table in pairs})
    files = plan.sketch.files(plan.groups_by_party)
    answers: dict[str, dict[str, bytes]] = {name: {} for name in names}
    for first in sorted({sender for kind, sender, *_ in files if kind == ROWS}):
        options.progress.step(f"encrypted rows of {names[first]}")
        sent = [one for one in files if one[:2] == (ROWS, first)]
        pieces = sorted({piece for _, _, _, piece, _ in sent})
        rows = {names[first]: [parties[first].rows(tables[first], piece) for piece in pieces]}
        for later in sorted({receiver for _, _, receiver, *_ in sent}):
            options.progress.step(f"answers of {names[later]} to {names[first]}")
            answered = parties[later].answers(tables[later], rows)
            answers[names[first]][names[later]] = answered[names[first]]
    return answers


def first_with(name: str, columns_of: Sequence[Sequence[str]]) -> int:
    """The first table with a column for an attribute.

    Raises:
        SchemaError: there is none.
    """
    for table, columns in enumerate(columns_of):
        if name in columns:
            return table
    raise SchemaError(
        f"No table has a column for attribute {name!r} of the schema; add it or drop the attribute."
    )


def _columns(schema: Schema, tables: int) -> list[Texts]:
    """The columns that each table has, as far as the schema says."""
    if tables == len(schema.parties):
        return [columns for _, columns in schema.parties]
    return [schema.names if tables == 1 else ()] * tables


def _deal_by_columns(
    schema: Schema, tables: Sequence[Source], id: str | None, person: str | None
) -> Schema:
    """Name the parties of a schema without parties. Each has its table's columns."""
    columns_of = [
        tuple(c for c in open_pieces(table).names if c in schema.names and c not in (id, person))
        for table in tables
    ]
    by_name = dict(zip(schema.names, schema.attributes, strict=True))
    for name in schema.names:
        first_with(name, columns_of)
    dealt = Schema.of(
        {
            f"party{i + 1}": [by_name[column] for column in columns]
            for i, columns in enumerate(columns_of)
        }
    )
    return replace(schema, attributes=dealt.attributes, parties=dealt.parties)

"""Mean total variation distance of marginals of two tables (VertiMRF, section 6)."""

from __future__ import annotations

import functools
import itertools
import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from .arguments import TEXT, instance, maybe, takes
from .arrays import Codes, Fields, Flags
from .columns.calendar import to_text
from .columns.column import Attribute
from .errors import PlanError, SchemaError, TableError, some
from .kernels.jit import for_each
from .options import EvaluationOptions
from .plan.defaults import HOLDERS_COLUMN, INNER, OUTER, SCHEMA_FILE
from .plan.open_schema import OpenSchema
from .plan.schema import Schema
from .privacy.label import EXACT
from .tables.columns import check_joined, check_present, encode_table, extra_columns
from .tables.derived import breaking, numbers_of, opened, with_derived
from .tables.dropped import Tally
from .tables.ids import IdKeys
from .tables.impossible import possible
from .tables.infer import draft_schema
from .tables.read_options import DEFAULT, ReadOptions
from .tables.sources import (
    Source,
    first_file,
    name_of,
    open_as_found,
    open_pieces,
    read_arrow,
    read_label,
    several,
)
from .tables.table import encode_columns
from .utility.distances import distance, tvd, usual_ways
from .utility.figures import utility
from .utility.original_values import Book, original_values
from .utility.values import (
    MISSING,
    Column,
    Values,
    compare_numbers,
    compare_values,
    correlations_among,
    is_numbers,
)

LOG = logging.getLogger(__name__)


ALL = EvaluationOptions()


@takes(
    PlanError,
    id=maybe(TEXT),
    read=instance("ReadOptions"),
    options=instance("EvaluationOptions"),
)
def evaluate(
    real: Source | Sequence[Source],
    synthetic: Source,
    id: str | None = None,
    schema: Schema | OpenSchema | None = None,
    options: EvaluationOptions = ALL,
    read: ReadOptions = DEFAULT,
) -> Fields:
    """Compare a synthetic table with all real tables on one machine, or with one party's table.

    Args:
        real: one table with all attributes, or several tables with some attributes each, which are
            joined by id.
        synthetic: a table of all attributes. An id column in it is ignored.
        id: id column that joins several real tables.
        schema: domains of all attributes. Without it, or with private domains, they are those in
            the file that a synthesis wrote beside its table. Without such a file they are drafted
            from the synthetic table and the one real table.
        options: what is compared.
        read: how the real tables are read.

    Returns:
        By name. ``"tvd"``: ``{"3": mean, ...}``. For comparison, ``"tvd_resampled"`` is the
        distance of as many records drawn from the real ones, and ``"tvd_independent"`` that of the
        real columns, each shuffled by itself. ``"tvd_across_parties"``: over marginals that span
        two or more parties, if there is more than one. ``"columns"``, ``"pairs"``: distances of
        every attribute, and of every two, farthest first. ``"numbers"``, ``"correlations"``,
        ``"values"``: see :func:`values_compared`. ``"impossible"``, if the schema has any:
        numbers of real and synthetic records with each impossible combination. ``"utility"``, with
        a label for trees: see :func:`vertimrf.utility.figures.utility`. ``"records"``: ``{"real":
        n, "synthetic": m}``, and ``"tables"``, the records of each real table, if they differ.
        ``"marginals"`` and ``"seed"`` as given. ``"label"``: the privacy label, not private,
        because these are exact statistics of the real tables. ``"synthetic_label"``: the privacy label of the
        synthetic table. ``"kind"``: "evaluation".

    Raises:
        TableError, SchemaError: a table cannot be read or does not fit the schema.
        PlanError: a way has no marginals; or there is a label for trees, and scikit-learn is not installed.
    """
    where = name_of(synthetic, "The synthetic table")
    real, table = several(real), read_arrow(synthetic)
    schema = _domains(schema, real, synthetic, table, read)
    real, read = opened(real, schema, read, options.party)
    real = [open_as_found(each, read) if first_file(each) else each for each in real]
    if HOLDERS_COLUMN in table.column_names and HOLDERS_COLUMN not in schema.names:
        table = table.drop_columns([HOLDERS_COLUMN])
    if options.population == OUTER:
        # Values of people that a table does not have are missing.
        able = tuple(replace(attribute, missing=True) for attribute in schema.attributes)
        schema = replace(schema, attributes=able)
    check_present(schema.domains, table.column_names, where)
    for sentence in extra_columns(
        [name for name in table.column_names if name not in (*schema.domains, id)], where
    ):
        LOG.warning("%s", sentence)
    if not table.num_rows:
        raise TableError(f"{where} has no records.")
    real, schema, equations = _with_computed(schema, real, table, read)
    if options.party is not None:
        mine = schema.part(options.party)
        inside, names = schema.combinations_at(options.party), {a.name for a in mine}
        schema = Schema.of(
            {options.party: mine},
            public=schema.public,
            impossible=[stated for i, stated in enumerate(schema.impossible) if i in inside],
            rules=[rule for rule in schema.rules if rule.columns <= names],
        )
    book: Book = {}
    truth, values, counts = read_real(real, id, schema, read, options.population, book)
    # A synthetic table has numbers and dates as the real tables write them, or as they are.
    found = tuple(attribute.as_found(table[attribute.name]) for attribute in schema.attributes)
    made = encode_columns(table, found, where)
    out = _compare(truth, made, schema, options)
    if equations:
        out["impossible"] = [*out.get("impossible", ()), *equations]
    out |= values_compared(values, original_values(found, table, made, where, book), found)
    if len({*counts, truth.shape[1]}) > 1:
        out["records"]["tables"] = counts
    return out | {"synthetic_label": read_label(synthetic).to_json()}


def _domains(
    schema: Schema | OpenSchema | None,
    real: Sequence[Source],
    synthetic: Source,
    made: pa.Table,
    read: ReadOptions,
) -> Schema:
    """The schema as given. Without one, or with private domains, it is the one that the synthesis
    wrote beside its table, or a draft from the table ``made`` and the only real one.
    """
    if isinstance(schema, Schema):
        return schema
    if isinstance(schema, OpenSchema) and not schema.wanted:
        return schema.schema
    beside = Path(name_of(synthetic, "rows") + SCHEMA_FILE)
    if isinstance(synthetic, str | Path) and beside.exists():
        return Schema.load(beside)
    if schema is not None or len(real) != 1:
        raise SchemaError("To compare, name the complete schema of the synthesis.")
    pieces = open_as_found(real[0], read)
    table = read_arrow(pieces)
    columns, typed = {}, pieces.typed
    for name in set(made.column_names).intersection(table.column_names):
        both = table[name], made[name]
        if both[0].type != both[1].type:
            both = both[0].cast(pa.string()), both[1].cast(pa.string())
            typed = False
        columns[name] = pa.chunked_array([chunk for column in both for chunk in column.chunks])
    return draft_schema(replace(open_pieces(pa.table(columns)), typed=typed)).schema


def _with_computed(
    schema: Schema, real: Sequence[Source], made: pa.Table, read: ReadOptions
) -> tuple[Sequence[Source], Schema, list[Fields]]:
    """The real tables with what equations derive; the schema with the columns that they compute and
    a real table has, in bins of the synthetic numbers; and numbers of records that break equations.
    """
    if not schema.equations:
        return real, schema, []
    found = tuple(attribute.as_found(made[attribute.name]) for attribute in schema.attributes)
    as_made = replace(schema, attributes=found)
    broken = [breaking(made, as_made), *(breaking(source, schema, read) for source in real)]
    real = with_derived(real, schema, schema.domains, read)
    parties = {party: [*schema.part(party)] for party in schema.party_names}
    lines = []
    for equation in schema.equations:
        name = equation.name
        counts = [of.get(equation, Tally()).count for of in broken]
        lines.append(
            {"combination": str(equation), "real": sum(counts[1:]), "synthetic": counts[0]}
        )
        if any(name in pieces.names for pieces in real):
            numbers = numbers_of(
                made, as_made.domains[name].as_found(made[name]), "The synthetic table"
            )
            attribute = schema.domains[name].binned_as(numbers[~np.isnan(numbers)])
            party = schema.party_of(schema.index(_measured(equation.terms[0][0], schema)))
            parties[schema.party_names[party]].append(attribute)
    return real, Schema.of(parties, impossible=schema.impossible, rules=schema.orders), lines


def _measured(name: str, schema: Schema) -> str:
    """An attribute that a column is computed of; the column itself if it is one."""
    equations = {equation.name: equation for equation in schema.equations}
    while name in equations:
        name = equations[name].terms[0][0]
    return name


def _compare(truth: Codes, made: Codes, schema: Schema, options: EvaluationOptions) -> Fields:
    """Figures of :func:`evaluate` that follow from codes alone."""
    broken = [
        {
            "combination": text,
            "real": int((~possible(truth, ruled_out)).sum()),
            "synthetic": int((~possible(made, ruled_out)).sum()),
        }
        for text, numbers in schema.stated.items()
        for ruled_out in [[schema.combinations[number] for number in numbers]]
    ]
    # Attributes of one value are always right.
    varying = [i for i, size in enumerate(schema.sizes) if size > 1]
    names, sizes = [schema.names[i] for i in varying], [schema.sizes[i] for i in varying]
    owners = [schema.party_of(i) for i in varying]
    truth, made = np.ascontiguousarray(truth[varying]), np.ascontiguousarray(made[varying])
    ways = usual_ways(len(varying)) if options.ways is None else options.ways
    marginals, seed = options.marginals, options.seed
    rng = np.random.default_rng(seed)
    shuffled = np.array([rng.permutation(row) for row in truth], np.uint16).reshape(truth.shape)
    resampled = truth[:, rng.integers(truth.shape[1], size=made.shape[1])]

    def distances(
        codes: Codes, ways: Sequence[int], owners: Sequence[int] | None = None
    ) -> dict[str, float]:
        means = tvd(truth, codes, sizes, ways, marginals, seed, owners)
        return {str(way): mean for way, mean in means.items()}

    out: Fields = {
        "kind": "evaluation",
        "tvd": distances(made, ways),
        "tvd_resampled": distances(resampled, ways),
        "tvd_independent": distances(shuffled, ways),
        "columns": farthest(truth, made, sizes, names, 1),
        "pairs": farthest(truth, made, sizes, names, 2),
        "records": {"real": truth.shape[1], "synthetic": made.shape[1]},
        "marginals": marginals,
        "seed": seed,
        "label": EXACT.to_json(),
    }
    if options.label is not None:
        attributes = [schema.attributes[i] for i in varying]
        out["utility"] = utility(truth, made, attributes, options.label, seed)
    if broken:
        out["impossible"] = broken
    if len(set(owners)) > 1:
        out["tvd_across_parties"] = distances(made, [way for way in ways if way > 1], owners)
    return out


def values_compared(real: Values, synthetic: Values, attributes: Sequence[Attribute]) -> Fields:
    """Figures of original values, by :mod:`vertimrf.utility.values`.

    Args:
        real, synthetic: the columns of two tables.
        attributes: their domains.

    Returns:
        ``"numbers"``: moments and quantiles of each column of numbers; ``"correlations"`` of every
        two, those that differ most first; ``"values"``: of values of all columns, in which dates
        and times are text.
    """
    values = compare_values(real, synthetic)
    for attribute in attributes:
        if attribute.instants is not None:
            for one in values["columns"][attribute.name].get("commonest", ()):
                one["value"] = to_text(attribute.instants[0], one["value"], attribute.instants[1])
    return {
        "numbers": compare_numbers(real, synthetic),
        "correlations": correlations_among(values["pairs"]),
        "values": values,
    }


def farthest(
    real: Codes, synthetic: Codes, sizes: Sequence[int], names: Sequence[str], way: int
) -> list[Fields]:
    """The distance of every attribute or of every pair of them, largest first.

    Args:
        real, synthetic: codes of two tables [each shape=(d, records), uint16].
        sizes: number of codes of every attribute.
        names: names of the attributes.
        way: 1 for attributes, 2 for pairs.
    """
    marginals = list(itertools.combinations(range(len(sizes)), way))
    distances = for_each(
        len(marginals), lambda number: distance(real, synthetic, sizes, marginals[number])
    )
    out = [
        {"columns": [names[a] for a in marginal], "tvd": tvd}
        for marginal, tvd in zip(marginals, distances, strict=True)
    ]
    return sorted(out, key=lambda marginal: -marginal["tvd"])


def read_real(
    sources: Sequence[Any],
    id: str | None,
    schema: Schema,
    read: ReadOptions,
    population: str,
    book: Book,
) -> tuple[Codes, dict[str, Column], list[int]]:
    """Join the real tables: all attributes of the records of a population.

    In the outer population attributes may be missing: values of records that a table does not have.
    A column that several parties hold is taken from the first table that has it.

    Args:
        sources: the tables.
        id: column of record ids. One table needs none.
        schema: attributes and parties.
        read: how the tables are read.
        population: "inner" or "outer".
        book: as in :func:`~.utility.original_values.original_values`.

    Returns:
        Codes [shape=(d, n), uint16], sorted; original values by column; and the number of records
        of each table.
    """
    check_joined(id, sources)
    names, tables, keys = [], [], IdKeys.drawn()
    columns: list[str] = []
    values: list[dict[str, Column]] = []
    # Tables in the order of the schema's parties count as theirs, as in a run.
    parts = [schema.part(party) for party in schema.party_names]
    if len(parts) != len(sources) or any(
        not {a.name for a in part}.issubset(open_pieces(source, read).names)
        for part, source in zip(parts, sources, strict=True)
    ):
        parts = [schema.attributes] * len(sources)
    for i, (source, its) in enumerate(zip(sources, parts, strict=True)):
        names.append(name_of(source, f"real table {i + 1}"))
        table = read_arrow(source, read)
        known = {schema.names[a] for a in schema.shared}.intersection(columns)
        table = table.drop_columns(sorted(known.intersection(table.column_names)))
        part = tuple(a for a in its if a.name in table.column_names)
        tables.append(encode_table(table, id, part, read, name=names[-1], keys=keys))
        if not tables[-1].records + tables[-1].dropped.records:
            raise TableError(f"{names[-1]} has no records.")
        tables[-1].dropped.refuse()
        values.append(original_values(part, table, tables[-1].codes, names[-1], book))
        columns += [attribute.name for attribute in part]
    if absent := [name for name in schema.names if name not in columns]:
        raise SchemaError(
            f"No real table has the column {some(absent)} of the schema; give all parties' tables."
        )
    if len(set(columns)) < len(columns):
        twice = [name for i, name in enumerate(columns) if name in columns[:i]]
        raise SchemaError(
            f"Two real tables have the column {some(twice)}; give each attribute once, or the tables in the schema's order."
        )
    # The ids of a table are distinct. NumPy would find that out by hashing, in most of the time.
    join = (
        functools.partial(np.intersect1d, assume_unique=True) if population == INNER else np.union1d
    )
    ids = np.sort(functools.reduce(join, (table.digests for table in tables)))
    if not ids.size:
        raise TableError(
            f"{' and '.join(names)} have no id in common: there is nothing to compare with."
        )
    codes = np.empty((len(schema.attributes), len(ids)), np.uint16)
    joined: dict[str, Column] = {}
    for table, by_name in zip(tables, values, strict=True):
        order = np.argsort(table.digests)
        place = np.minimum(np.searchsorted(table.digests, ids, sorter=order), table.records - 1)
        rows = order[place]
        present = table.digests[rows] == ids
        for attribute, row in zip(table.attributes, table.codes, strict=True):
            codes[schema.index(attribute.name)] = np.where(present, row[rows], attribute.size - 1)
        joined |= {name: _where(present, column[rows]) for name, column in by_name.items()}
    # Digests have another order in every process: sort, so that a seed always draws the same records.
    order = np.lexsort([*joined.values(), *codes])
    in_order = {name: joined[name][order] for name in schema.names if name in joined}
    return np.ascontiguousarray(codes[:, order]), in_order, [table.records for table in tables]


def _where(present: Flags, column: Column) -> Column:
    """The column, with missing values where a record is not present."""
    return np.where(present, column, np.nan if is_numbers(column) else MISSING)

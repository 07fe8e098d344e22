"""How far a synthetic table is from the real one: mean total variation distance of marginals (VertiMRF, section 6)."""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from .distances import FEW_CELLS, distance, tvd, usual_ways
from .errors import PlanError, SchemaError, TableError
from .kernels.contingency import pair_tables
from .moments import compare_correlations, compare_numbers, original_numbers
from .plan.defaults import HELD_BY, INNER, OUTER, POPULATIONS
from .plan.schema import Schema
from .privacy.standing import EXACT
from .tables.arrow import read_arrow, read_standing
from .tables.ids import IdKeys
from .tables.impossible import breaking
from .tables.read_options import DEFAULT, ReadOptions
from .tables.table import check_columns, encode_columns, encode_table, some
from .utility.figures import utility

__all__ = ["EvaluationOptions", "evaluate"]

Codes = npt.NDArray[np.uint16]


@dataclass(frozen=True)
class EvaluationOptions:
    """What is compared, and how closely.

    Attributes:
        ways: attributes per marginal; default 3, 4 and 5, or as many as there are.
        marginals, seed: as in :func:`vertimrf.distances.tvd`.
        party: compare the attributes of this party alone, whose table is then the real one.
        population: of several real tables, whose records count: "inner", those that all tables have; or "outer", those that any
            has, and what another does not have of them is missing.
        label: an attribute that trees are to tell from the others, trained on synthetic records and tried on real ones.

    Raises:
        PlanError: no such population.
    """

    ways: tuple[int, ...] | None = None
    marginals: int = 300
    seed: int = 0
    party: str | None = None
    population: str = INNER
    label: str | None = None

    def __post_init__(self) -> None:
        if self.population not in POPULATIONS:
            raise PlanError(f"A population is {' or '.join(POPULATIONS)}, not {self.population!r}.")


ALL = EvaluationOptions()


def evaluate(
    real: Sequence[Any],
    synthetic: Any,
    id: str,
    schema: Schema,
    options: EvaluationOptions = ALL,
    read: ReadOptions = DEFAULT,
) -> dict[str, Any]:
    """Compare a synthetic table with the real ones, where one machine may see all of them, or with one party's.

    Args:
        real: one table that holds all attributes, or several that hold some each, joined by id.
        synthetic: a table of all attributes; an id column in it is ignored.
        id: the id column of the real tables.
        schema: domains of all attributes.
        options: what is compared.
        read: how the real tables are read.

    Returns:
        - ``"tvd"``: ``{"3": mean, ...}``; to judge it by, ``"tvd_resampled"`` is that of as many records drawn from the real
          ones, ``"tvd_independent"`` that of the real columns with all dependence shuffled away.
        - ``"tvd_across_parties"``: over marginals that span two or more parties, if there is more than one.
        - ``"columns"``, ``"pairs"``: distances of every attribute, and of every two, farthest first.
        - ``"numbers"``, ``"correlations"``: of original values, by :mod:`vertimrf.moments`.
        - ``"impossible"``, where the schema has any: how many records, real and synthetic, have each impossible combination.
        - ``"utility"``, with a label: see :func:`vertimrf.utility.figures.utility`.
        - ``"records"``: ``{"real": n, "synthetic": m}``, and where they differ ``"tables"``, of each real table.
        - ``"marginals"`` and ``"seed"`` as given.
        - ``"standing"``: these are exact statistics of the real tables: not private. ``"synthetic_standing"`` is what the
          synthetic table says of itself.

    Raises:
        TableError, SchemaError: tables that cannot be read or do not fit the schema.
        PlanError: a way for which there are no marginals; a label, and no scikit-learn.
    """
    where = name_of(synthetic, "The synthetic table")
    table = read_arrow(synthetic)
    if HELD_BY in table.column_names and HELD_BY not in schema.names:
        table = table.drop_columns([HELD_BY])
    if options.population == OUTER:
        # What a table does not have of somebody is missing.
        schema = replace(schema, attributes=tuple(replace(attribute, missing=True) for attribute in schema.attributes))
    check_columns(table.column_names, id, schema.attributes, where)
    if not table.num_rows:
        raise TableError(f"{where} has no records.")
    if options.party is not None:
        inside = [schema.impossible[number] for number in schema.combinations_at(options.party)]
        schema = Schema.of({options.party: schema.part(options.party)}, public=schema.public, impossible=inside)
    truth, numbers, held = read_real(real, id, schema, read, options.population)
    made = encode_columns(table, schema.attributes, where)
    out = _compare(truth, made, schema, options)
    made_numbers = original_numbers(schema.attributes, table, made, where)
    out["numbers"] = compare_numbers(numbers, made_numbers)
    out["correlations"] = compare_correlations(numbers, made_numbers)
    if len({*held, truth.shape[1]}) > 1:
        out["records"]["tables"] = held
    return out | {"synthetic_standing": read_standing(synthetic).to_json()}


def _compare(truth: Codes, made: Codes, schema: Schema, options: EvaluationOptions) -> dict[str, Any]:
    """What :func:`evaluate` says of codes."""
    broken = [
        {"combination": str(stated), "real": int(breaking(truth, own).sum()), "synthetic": int(breaking(made, own).sum())}
        for stated, own in zip(schema.impossible, schema.combinations, strict=True)
    ]
    # What has one value cannot be off.
    varying = [i for i, size in enumerate(schema.sizes) if size > 1]
    names, sizes = [schema.names[i] for i in varying], [schema.sizes[i] for i in varying]
    owners = [schema.party_of(i) for i in varying]
    truth, made = np.ascontiguousarray(truth[varying]), np.ascontiguousarray(made[varying])
    ways = usual_ways(len(varying)) if options.ways is None else options.ways
    marginals, seed = options.marginals, options.seed
    rng = np.random.default_rng(seed)
    shuffled = np.array([rng.permutation(row) for row in truth], np.uint16).reshape(truth.shape)
    resampled = truth[:, rng.integers(truth.shape[1], size=made.shape[1])]

    def distances(codes: Codes, ways: Sequence[int], owners: Sequence[int] | None = None) -> dict[str, float]:
        return by_way(tvd(truth, codes, sizes, ways, marginals, seed, owners))

    out: dict[str, Any] = {
        "kind": "evaluation",
        "tvd": distances(made, ways),
        "tvd_resampled": distances(resampled, ways),
        "tvd_independent": distances(shuffled, ways),
        "columns": farthest_columns(truth, made, sizes, names),
        "pairs": farthest_pairs(truth, made, sizes, names),
        "records": {"real": truth.shape[1], "synthetic": made.shape[1]},
        "marginals": marginals,
        "seed": seed,
        "standing": EXACT.to_json(),
    }
    if options.label is not None:
        attributes = [schema.attributes[i] for i in varying]
        out["utility"] = utility(truth, made, attributes, options.label, seed, marginals)
    if broken:
        out["impossible"] = broken
    if len(set(owners)) > 1:
        out["tvd_across_parties"] = distances(made, [way for way in ways if way > 1], owners)
    return out


def farthest_columns(real: Codes, synthetic: Codes, sizes: Sequence[int], names: Sequence[str]) -> list[dict[str, Any]]:
    """The distance of every attribute, farthest first."""
    found = [{"columns": [name], "tvd": distance(real, synthetic, sizes, (i,))} for i, name in enumerate(names)]
    return sorted(found, key=lambda marginal: -marginal["tvd"])


def farthest_pairs(real: Codes, synthetic: Codes, sizes: Sequence[int], names: Sequence[str]) -> list[dict[str, Any]]:
    """The distance of every two attributes, farthest first."""
    n, m = real.shape[1], synthetic.shape[1]
    pairs = list(itertools.combinations(range(len(sizes)), 2))
    few = [pair for pair in pairs if sizes[pair[0]] * sizes[pair[1]] <= max(FEW_CELLS, n + m)]
    both = zip(pair_tables(real, sizes, few), pair_tables(synthetic, sizes, few), strict=True)
    found = {pair: 0.5 * float(np.abs(p / n - q / m).sum()) for pair, (p, q) in zip(few, both, strict=True)}
    out = [
        {"columns": [names[a], names[b]], "tvd": found[a, b] if (a, b) in found else distance(real, synthetic, sizes, (a, b))}
        for a, b in pairs
    ]
    return sorted(out, key=lambda marginal: -marginal["tvd"])


def by_way(means: dict[int, float]) -> dict[str, float]:
    """Means with the text keys that JSON has."""
    return {str(way): mean for way, mean in means.items()}


def read_real(
    sources: Sequence[Any], id: str, schema: Schema, read: ReadOptions, population: str
) -> tuple[npt.NDArray[np.uint16], dict[str, npt.NDArray[np.float64]], list[int]]:
    """All attributes, whichever table holds them, of the records of a population.

    Where it is the outer one, attributes may be missing: what a table does not have of a record is. Of a column that several
    parties hold, the first table's that has it.

    Returns:
        Codes [shape=(d, n)], ordered by themselves, numbers, and how many records each table has.
    """
    names, tables, keys = [], [], IdKeys.drawn()
    found: list[str] = []
    numbers: list[dict[str, npt.NDArray[np.float64]]] = []
    for i, source in enumerate(sources):
        names.append(name_of(source, f"real table {i + 1}"))
        table = read_arrow(source, read)
        known = {schema.names[a] for a in schema.shared}.intersection(found)
        table = table.drop_columns(sorted(known.intersection(table.column_names)))
        part = tuple(attribute for attribute in schema.attributes if attribute.name in table.column_names)
        tables.append(encode_table(table, id, part, name=names[-1], keys=keys))
        if not tables[-1].records + tables[-1].dropped.records:
            raise TableError(f"{names[-1]} has no records.")
        tables[-1].dropped.refuse()
        numbers.append(original_numbers(part, table, tables[-1].codes, names[-1]))
        found += [attribute.name for attribute in part]
    if absent := [name for name in schema.names if name not in found]:
        raise SchemaError(f"No real table has the column {some(absent)} of the schema; give all parties' tables.")
    if len(set(found)) < len(found):
        twice = [name for i, name in enumerate(found) if name in found[:i]]
        raise SchemaError(f"Two real tables have the column {some(twice)}; give each attribute once.")
    join = np.intersect1d if population == INNER else np.union1d
    ids = np.sort(functools.reduce(join, (table.digests for table in tables)))
    if not ids.size:
        raise TableError(f"{' and '.join(names)} have no id in common: there is nothing to compare with.")
    codes = np.empty((len(schema.attributes), len(ids)), np.uint16)
    joined: dict[str, npt.NDArray[np.float64]] = {}
    for table, own in zip(tables, numbers, strict=True):
        order = np.argsort(table.digests)
        place = np.minimum(np.searchsorted(table.digests, ids, sorter=order), table.records - 1)
        rows = order[place]
        held = table.digests[rows] == ids
        for attribute, values in zip(table.attributes, table.codes, strict=True):
            codes[schema.index(attribute.name)] = np.where(held, values[rows], attribute.size - 1)
        joined |= {name: np.where(held, values[rows], np.nan) for name, values in own.items()}
    # Digests come in another order every time, and so would what is drawn by a seed.
    order = np.lexsort([*joined.values(), *codes])
    in_order = {name: joined[name][order] for name in schema.names if name in joined}
    return np.ascontiguousarray(codes[:, order]), in_order, [table.records for table in tables]


def name_of(source: Any, default: str) -> str:
    """What to call a source in errors."""
    return str(source) if isinstance(source, str | os.PathLike) else default

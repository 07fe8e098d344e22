"""The numbers of a report: shares of values, dependence of pairs, distances; of the model, of what was released, of the truth."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..kernels.contingency import contingency, pair_tables
from ..model.markov_random_field import MarkovRandomField
from ..model.sample import expected_marginals, sample
from ..plan.attribute import Attribute
from ..plan.schema import Schema
from ..utility.figures import utility
from .run import Pairs, Released, Run

__all__ = ["Column", "Content", "Dependence", "Series", "classes_of", "content"]

Array = npt.NDArray[np.float64]
Classes = npt.NDArray[np.int64]
Codes = npt.NDArray[np.uint16]

# Most bars of a chart, where values have an order and where they do not; and most classes of an attribute where its dependence on
# others is worked out.
MOST_BARS, MOST_LYING, MOST_CLASSES = 32, 18, 24
# Mean absolute value of Gaussian noise of standard deviation 1.
MEAN_ABSOLUTE = math.sqrt(2 / math.pi)


@dataclass(frozen=True, eq=False)
class Series:
    """A one-way marginal as a party released it, as shares of its records.

    Attributes:
        party: name.
        shares: by bar; errors: their standard errors [both shape=(bars,)].
        distance: half the sum of absolute differences between it and the model, over all values.
        noise: what noise alone makes of that.
    """

    party: str
    shares: Array
    errors: Array
    distance: float
    noise: float


@dataclass(frozen=True, eq=False)
class Column:
    """One attribute, drawn.

    Attributes:
        attribute: the domain.
        holders: names of the parties that hold it.
        labels: of the bars.
        merged: whether a bar stands for several values.
        model: shares of the records [shape=(bars,)].
        released: as parties released it.
        truth: the same shares of the real tables; None where they are not given.
        off: half the sum of absolute differences between model and truth, over all values; None without truth.
    """

    attribute: Attribute
    holders: tuple[str, ...]
    labels: tuple[str, ...]
    merged: bool
    model: Array
    released: tuple[Series, ...]
    truth: Array | None
    off: float | None


@dataclass(frozen=True, eq=False)
class Dependence:
    """How far every two attributes are from independent: the share of records that would have to change for it.

    Attributes:
        model: [shape=(d, d)], symmetric, NaN on the diagonal.
        estimate: by the messages' estimates, less what noise adds; NaN where nothing measured a pair.
        beyond: distance between estimate and model less what noise alone makes of it; NaN as in ``estimate``.
        truth: of the real tables; None where they are not given.
        off: half the sum of absolute differences between model and truth; None without.
        across: whether no party holds both attributes [shape=(d, d), bool].
        resampled: what ``off`` would be on average for as many records drawn anew from the real ones; None without truth.
    """

    model: Array
    estimate: Array
    beyond: Array
    truth: Array | None
    off: Array | None
    across: npt.NDArray[np.bool_]
    resampled: float | None


@dataclass(frozen=True, eq=False)
class Content:
    """All figures of a page.

    Attributes:
        columns: in schema order.
        dependence: of pairs.
        edges: pairs of attributes that are neighbours in the model's graph, the most dependent first.
        coarse: whether attributes of many values were merged into classes for ``dependence``.
        records: that the model stands for.
        real: records of the real tables that are compared with; None without.
        utility: what the model's rows are good for, by :func:`vertimrf.utility.figures.utility`; None if not asked for.
    """

    columns: tuple[Column, ...]
    dependence: Dependence
    edges: tuple[tuple[int, int], ...]
    coarse: bool
    records: float
    real: int | None
    utility: dict[str, Any] | None


def content(run: Run, truth: Codes | None = None, label: str | None = None) -> Content:
    """Work out all figures.

    Args:
        run: the run.
        truth: codes of the joined real tables, by the run's schema [shape=(d, n), uint16], if one may look at them.
        label: with the truth, an attribute that trees are to tell from the others, trained on the model's rows.

    Raises:
        SchemaError, TableError, PlanError: of a label, as in :func:`vertimrf.utility.figures.utility`.
    """
    schema, field = run.model.schema, run.model.field
    released = {a: [own for own in run.told.released if own.attribute == a] for a in range(len(schema.sizes))}
    one_way = [field.marginal((a,)) for a in range(len(schema.sizes))]
    columns = tuple(
        _column(schema, a, counts / field.total, released[a], None if truth is None else _shares(truth, schema.sizes, a))
        for a, counts in enumerate(one_way)
    )
    classes = [classes_of(attribute, counts) for attribute, counts in zip(schema.attributes, one_way, strict=True)]
    dependence = _dependence(schema, field, run.told.pairs, classes, truth)
    edges = {pair for clique in field.tree.cliques for pair in itertools.combinations(sorted(clique), 2)}
    ordered = sorted(edges, key=lambda pair: -np.nan_to_num(dependence.model[pair]))
    coarse = any(own is not None for own in classes)
    useful = None if truth is None or label is None else _utility(run, truth, label)
    return Content(columns, dependence, tuple(ordered), coarse, field.total, None if truth is None else truth.shape[1], useful)


def _utility(run: Run, truth: Codes, label: str) -> dict[str, Any]:
    """What as many rows of the model as it has records are good for, by attributes of more than one value."""
    field, attributes = run.model.field, run.model.schema.attributes
    rows = sample(field, max(round(field.total), 1), np.random.default_rng(0))
    varying = [i for i, attribute in enumerate(attributes) if attribute.size > 1]
    return utility(truth[varying], rows[varying], [attributes[i] for i in varying], label)


def classes_of(attribute: Attribute, counts: Array, most: int = MOST_CLASSES) -> Classes | None:
    """At most so many classes of an attribute's values: neighbours where there is an order, else the rarest together.

    Args:
        attribute: the domain.
        counts: by code, of the model: where the rare ones are.
        most: classes.

    Returns:
        The map code -> class, every class with a code; None where every code is its own.
    """
    size = attribute.size
    if size <= most:
        return None
    if not attribute.ordered:
        out = np.full(size, most - 1)
        out[np.argsort(-counts, kind="stable")[: most - 1]] = np.arange(most - 1)
        return out
    present = size - attribute.missing
    groups = most - attribute.missing
    # Missing values are no neighbours of any.
    own = np.arange(present) * groups // present
    return np.append(own, groups) if attribute.missing else own


def _bars(attribute: Attribute, counts: Array) -> tuple[Classes, tuple[str, ...]]:
    """What a chart's bars stand for: the map code -> bar, and their labels."""
    size = attribute.size
    names = [_label(attribute, code) for code in range(size)]
    classes = classes_of(attribute, counts, MOST_BARS)
    if attribute.ordered:
        if classes is None:
            return np.arange(size), tuple(names)
        firsts = np.flatnonzero(np.diff(classes, prepend=-1))
        return classes, tuple(names[first] for first in firsts)
    # The most frequent first, what is missing or merged last.
    order = np.argsort(-counts, kind="stable")
    last = size - 1 if attribute.missing else -1
    shown = [int(code) for code in order if code != last][: MOST_LYING - 2]
    if attribute.missing:
        shown.append(last)
    rest = size - len(shown)
    bars = np.full(size, len(shown))
    bars[shown] = np.arange(len(shown))
    return bars, (*(names[code] for code in shown), *([f"{rest:,} others"] if rest else []))


def _label(attribute: Attribute, code: int) -> str:
    """A value, or where a bin begins."""
    if attribute.missing and code == attribute.size - 1:
        return "missing"
    if attribute.kind == "numeric":
        return attribute.edge_text(code)
    return str(attribute.values[code] if attribute.kind == "categorical" else code)


def _column(schema: Schema, a: int, model: Array, released: Sequence[Released], truth: Array | None) -> Column:
    attribute = schema.attributes[a]
    bars, labels = _bars(attribute, model)

    def summed(values: Array) -> Array:
        return np.bincount(bars, weights=values, minlength=len(labels)).astype(np.float64)

    series = []
    for own in released:
        # Of what the party released itself: parties may hold different people.
        total = max(float(own.counts.sum()), 1.0)
        distance = 0.5 * float(np.abs(own.counts / total - model).sum())
        noise = 0.5 * MEAN_ABSOLUTE * own.error * attribute.size / total
        errors = own.error / total * np.sqrt(summed(np.ones(attribute.size)))
        series.append(Series(own.party, summed(own.counts) / total, errors, distance, noise))
    return Column(
        attribute,
        tuple(schema.parties[party][0] for party in schema.holders[a]),
        labels,
        len(labels) < attribute.size,
        summed(model),
        tuple(series),
        None if truth is None else summed(truth),
        None if truth is None else 0.5 * float(np.abs(model - truth).sum()),
    )


def _shares(codes: Codes, sizes: Sequence[int], a: int) -> Array:
    shares: Array = contingency(codes, sizes, (a,)) / max(codes.shape[1], 1)
    return shares


def _dependence(
    schema: Schema, field: MarkovRandomField, told: Pairs | None, classes: Sequence[Classes | None], truth: Codes | None
) -> Dependence:
    d = len(schema.sizes)
    model, estimate, beyond = (np.full((d, d), np.nan) for _ in range(3))
    if told is not None and len(told.places):
        _enter(model, told.places, told.model_dependence)
        _enter(estimate, told.places, told.dependence)
        _enter(beyond, told.places, told.distance - told.noise)
    every = list(itertools.combinations(range(d), 2))
    # All pairs of a wide model take seconds: those that the run's figures tell are asked for again only beside the truth.
    wanted = [pair for pair in every if truth is not None or np.isnan(model[pair])]
    sizes = [size if own is None else int(own.max()) + 1 for size, own in zip(schema.sizes, classes, strict=True)]
    true = off = None
    expected_noise = 0.0
    tables = expected_marginals(field, wanted, [(classes[a], classes[b]) for a, b in wanted])
    shares = [table / field.total for table in tables]
    _enter(model, wanted, [_from_independence(table) for table in shares])
    if truth is not None:
        true, off = np.full((d, d), np.nan), np.full((d, d), np.nan)
        merged = np.stack([row if own is None else own.astype(np.uint16)[row] for row, own in zip(truth, classes, strict=True)])
        records = max(truth.shape[1], 1)
        for pair, table, counts in zip(wanted, shares, pair_tables(merged, sizes, wanted), strict=True):
            real = counts / records
            _enter(true, [pair], [_from_independence(real)])
            _enter(off, [pair], [0.5 * float(np.abs(table - real).sum())])
            expected_noise += 0.5 * MEAN_ABSOLUTE * float(np.sqrt(real * (1 - real) / records).sum())
    held = [set(holders) for holders in schema.holders]
    across = np.array([[not (one & other) for other in held] for one in held])
    resampled = expected_noise / len(every) if truth is not None and every else None
    return Dependence(model, estimate, beyond, true, off, across, resampled)


def _enter(matrix: Array, places: Sequence[tuple[int, int]] | npt.NDArray[np.int64], figures: Sequence[float] | Array) -> None:
    for (a, b), figure in zip(places, figures, strict=True):
        matrix[a, b] = matrix[b, a] = figure


def _from_independence(shares: Array) -> float:
    """Half the sum of absolute differences between a table of shares and the product of its margins."""
    return 0.5 * float(np.abs(shares - np.outer(shares.sum(axis=1), shares.sum(axis=0))).sum())

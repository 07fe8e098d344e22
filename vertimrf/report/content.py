"""The numbers of a report.

These are shares of values, dependence of pairs, and distances between model, released counts and
truth.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..arrays import Codes, Fields, Flags, Floats, Integers, Ints, Pair, Texts
from ..columns.column import Attribute
from ..kernels.contingency import pair_tables
from ..model.measurement import binned_sizes
from ..model.sample import expected_marginals, sample
from ..model.trust import MEAN_ABSOLUTE
from ..plan.schema import Schema
from ..utility.distances import distance, random_marginals
from ..utility.figures import utility
from ..utility.values import COMMONEST, Values
from .run import Released, Run

# Codes of the real tables by attribute, or of those attributes that a party has.
Truth = Mapping[int, Codes]

# Largest number of bars of a chart, for ordered and for unordered values; and largest number of
# classes of an attribute when its dependence on others is computed.
MAX_BARS, MAX_LYING, MAX_CLASSES = 32, 18, 24
# Expected largest size of a Brownian motion on [0, 1]: noise of a cumulated marginal, in standard
# deviations of its end.
LARGEST_CUMULATED = math.sqrt(math.pi / 2)
# With more pairs, only those that were measured or are neighbours in the model's graph are compared,
# because all pairs of a wide model take minutes.
MAX_PAIRS = 10_000


@dataclass(frozen=True, eq=False)
class Series:
    """A one-way marginal as a party released it, as shares of its records.

    Attributes:
        party: name.
        shares: share of records by bar [shape=(bars,)].
        errors: standard errors of ``shares`` [shape=(bars,)].
        distance: half the sum of absolute differences between the marginal and the model, over all
            values.
        noise: expected ``distance`` from noise alone.
    """

    party: str
    shares: Floats
    errors: Floats
    distance: float
    noise: float


@dataclass(frozen=True, eq=False)
class Column:
    """Figures of one attribute.

    Attributes:
        attribute: the domain.
        holders: names of the parties that hold it.
        labels: of the bars.
        merged: whether a bar stands for several values.
        model: shares of the records [shape=(bars,)].
        released: the marginal as each party released it.
        truth: shares of the real records [shape=(bars,)]. None without real tables.
        off: half the sum of absolute differences between model and truth, over all values. None
            without real tables.
    """

    attribute: Attribute
    holders: Texts
    labels: Texts
    merged: bool
    model: Floats
    released: tuple[Series, ...]
    truth: Floats | None
    off: float | None

    @property
    def span(self) -> tuple[float, float]:
        """Smallest and largest share that a chart shows."""
        every = [self.model, *(series.shares for series in self.released)]
        every += [] if self.truth is None else [self.truth]
        return (
            min(0.0, *(float(shares.min()) for shares in every)),
            max(1e-9, *(float(shares.max()) for shares in every)),
        )


@dataclass(frozen=True, eq=False)
class Fine:
    """A column of numbers in finer cells. Shares are of the values that are present.

    Attributes:
        attribute: the domain of the cells.
        model: shares by cell [shape=(cells,)].
        released: the fine marginal as each party released it, by cell. Its distance from the model,
            and that by noise alone, are those of Kolmogorov and Smirnov.
        truth: shares of the real values [shape=(cells,)]. None without real values.
        common: the commonest cells of a single value, by the first party's release.
    """

    attribute: Attribute
    model: Floats
    released: tuple[Series, ...]
    truth: Floats | None
    common: Ints


@dataclass(frozen=True, eq=False)
class Beside:
    """Real and synthetic tables of original values, and how far their values are apart.

    Attributes:
        rows: codes of synthetic rows, by attribute of the run's schema [shape=(d, n), uint16].
        real: original values of the real table, by column.
        figures: the values of :func:`vertimrf.evaluation.values_compared`.
    """

    rows: Codes
    real: Values
    figures: Fields


@dataclass(frozen=True, eq=False)
class Dependence:
    """Dependence of every two attributes.

    It is the share of records that would have to change to make the attributes independent.

    All matrices have the shape (d, d), are symmetric, and have NaN on the diagonal.

    Attributes:
        model: dependence in the model. NaN for pairs that are left out because there are too many.
        estimate: dependence in the messages' estimates, less the expected contribution of noise.
            NaN for pairs that were not measured.
        beyond: distance between estimate and model, less the expected contribution of noise. NaN as
            in ``estimate``.
        truth: dependence in the real tables. None without real tables.
        off: half the sum of absolute differences between model and truth. None without real tables.
        across: whether no party holds both attributes [bool].
        resampled: expected mean of ``off`` for as many records drawn from the real ones. None
            without real tables.
    """

    model: Floats
    estimate: Floats
    beyond: Floats
    truth: Floats | None
    off: Floats | None
    across: Flags
    resampled: float | None


@dataclass(frozen=True, eq=False)
class Content:
    """All figures of a page.

    Attributes:
        columns: figures of the attributes, in schema order.
        fine: by position, columns of numbers in finer cells.
        apart: mean distances between truth and rows, by the names of
            :class:`~vertimrf.plan.verdict.Errors`. Empty without real tables.
        values: figures of original values. None without.
        dependence: figures of pairs.
        edges: pairs of attributes that are neighbours in the model's graph, the most dependent
            first.
        coarse: whether attributes of many values were merged into classes for ``dependence``.
        records: number of records that the model stands for.
        real: number of real records. None without real tables.
        utility: result of :func:`vertimrf.utility.figures.utility` for rows of the model. None if
            not asked for.
    """

    columns: tuple[Column, ...]
    fine: dict[int, Fine]
    apart: dict[str, float]
    values: Fields | None
    dependence: Dependence
    edges: tuple[Pair, ...]
    coarse: bool
    records: float
    real: int | None
    utility: Fields | None


def content(
    run: Run, truth: Truth | None = None, label: str | None = None, beside: Beside | None = None
) -> Content:
    """Compute all figures.

    Args:
        run: the run.
        truth: codes of the joined real tables, by attribute of the run's schema [each shape=(n,),
            uint16]. None if they must not be seen.
        label: attribute that trees trained on the model's rows predict from the others in
            ``truth``.
        beside: the values of real and synthetic tables.

    Returns:
        The figures.

    Raises:
        SchemaError, TableError, PlanError: see :func:`vertimrf.utility.figures.utility`.
    """
    schema, field = run.model.schema, run.model.field
    released = {
        name: [marginal for marginal in run.report.released if marginal.attribute == name]
        for name in schema.names
    }
    one_way = [field.marginal((a,)) for a in range(len(schema.sizes))]
    columns = tuple(
        _column(
            schema,
            a,
            counts / field.total,
            released[schema.names[a]],
            None if truth is None or a not in truth else _shares(truth[a], schema.sizes[a]),
        )
        for a, counts in enumerate(one_way)
    )
    classes = [
        classes_of(attribute, counts)
        for attribute, counts in zip(schema.attributes, one_way, strict=True)
    ]
    edges = {
        pair for clique in field.tree.cliques for pair in itertools.combinations(sorted(clique), 2)
    }
    dependence = _dependence(run, classes, truth, edges)
    ordered = sorted(edges, key=lambda pair: -np.nan_to_num(dependence.model[pair]))
    coarse = any(merged is not None for merged in classes)
    useful, apart = None, {}
    if truth is not None:
        rows = rows_of(run) if beside is None else beside.rows
        useful = None if label is None else _utility(run, truth, rows, label)
        apart = _apart(schema, truth, rows)
    if beside is not None:
        apart |= _correlations_apart(schema, beside.figures["pairs"])
    fine = {a: _fine(run, a, None if beside is None else beside.real) for a in run.model.shapes}
    return Content(
        columns,
        fine,
        apart,
        None if beside is None else beside.figures,
        dependence,
        tuple(ordered),
        coarse,
        field.total,
        None if truth is None else len(next(iter(truth.values()))),
        useful,
    )


def rows_of(run: Run) -> Codes:
    """Codes of rows drawn from a run's model, as many as it has records [shape=(d, n), uint16]."""
    field = run.model.field
    return sample(field, max(round(field.total), 1), np.random.default_rng(0))


def _apart(schema: Schema, truth: Truth, rows: Codes) -> dict[str, float]:
    """Mean total variation distances of random marginals, as ``vertimrf evaluate`` has them."""
    varying = [a for a in truth if schema.sizes[a] > 1]
    real, made = np.array([truth[a] for a in varying]), rows[varying]
    sizes = [schema.sizes[a] for a in varying]
    found: dict[str, list[float]] = {}
    for way, name in ((1, "column"), (2, ""), (3, "three")):
        for some in random_marginals(len(varying), way) if way <= len(varying) else ():
            together = schema.at_one_party([varying[i] for i in some])
            key = name or ("within" if together else "across")
            found.setdefault(key, []).append(distance(real, made, sizes, some))
    return {name: math.fsum(every) / len(every) for name, every in found.items()}


def _correlations_apart(schema: Schema, pairs: Sequence[Fields]) -> dict[str, float]:
    """Root mean square error of the correlations across parties, if there are any."""
    errors = [
        pair["synthetic"] - pair["real"]
        for pair in pairs
        if "real" in pair and not schema.at_one_party([schema.index(a) for a in pair["columns"]])
    ]
    return {"correlation": float(np.sqrt(np.square(errors).mean()))} if errors else {}


def _fine(run: Run, a: int, real: Values | None) -> Fine:
    schema = run.model.schema
    attribute, name = schema.fine[a], schema.names[a]
    size, (low, high) = attribute.present, attribute.ends()
    model = run.model.shapes[a] / max(float(run.model.shapes[a].sum()), 1e-9)
    series = []
    for marginal in run.report.fine:
        if marginal.attribute == name:
            counts = np.array(marginal.counts)[:size]
            total = max(float(counts.sum()), 1.0)
            gap = np.abs(np.cumsum(counts / total - model)).max()
            error = marginal.error / total
            noise = LARGEST_CUMULATED * error * math.sqrt(size)
            errors = np.full(size, error)
            series.append(Series(marginal.party, counts / total, errors, float(gap), noise))
    truth = None
    if real is not None and name in real:
        numbers = real[name][~np.isnan(real[name])]
        # Limits are between cells: a value may differ from its cell's by rounding.
        truth = _shares(np.searchsorted(0.5 * (high[:-1] + low[1:]), numbers, "right"), size)
    known = series[0].shares if series else model
    order = np.argsort(-np.where(low == high, known, -1.0), kind="stable")[:COMMONEST]
    common = tuple(int(cell) for cell in order if low[cell] == high[cell])
    return Fine(attribute, model, tuple(series), truth, common)


def _utility(run: Run, truth: Truth, rows: Codes, label: str) -> Fields:
    """Utility of rows of the model. Attributes of one value are left out."""
    attributes = run.model.schema.attributes
    varying = [i for i in truth if attributes[i].size > 1]
    return utility(
        np.stack([truth[i] for i in varying]),
        rows[varying],
        [attributes[i] for i in varying],
        label,
    )


def classes_of(attribute: Attribute, counts: Floats, most: int = MAX_CLASSES) -> Integers | None:
    """Merge an attribute's values into at most ``most`` classes.

    Ordered values are merged with their neighbours. Of unordered values the rarest are merged.

    Args:
        attribute: the domain.
        counts: counts of the model, by code.
        most: largest number of classes.

    Returns:
        The map code -> class, every class with a code; None if every code is a class.
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
    # Missing values have no neighbours: they are a class of their own.
    classes = np.arange(present) * groups // present
    return np.append(classes, groups) if attribute.missing else classes


def _bars(attribute: Attribute, counts: Floats) -> tuple[Integers, Texts]:
    """The map code -> bar of a chart, and the labels of the bars."""
    size = attribute.size
    names = [attribute.label(code) for code in range(size)]
    classes = classes_of(attribute, counts, MAX_BARS)
    if attribute.ordered:
        if classes is None:
            return np.arange(size), tuple(names)
        firsts = np.flatnonzero(np.diff(classes, prepend=-1))
        return classes, tuple(names[first] for first in firsts)
    # The most frequent values come first. Missing and merged values come last.
    order = np.argsort(-counts, kind="stable")
    last = size - 1 if attribute.missing else -1
    shown = [int(code) for code in order if code != last][: MAX_LYING - 2]
    if attribute.missing:
        shown.append(last)
    rest = size - len(shown)
    bars = np.full(size, len(shown))
    bars[shown] = np.arange(len(shown))
    return bars, (*(names[code] for code in shown), *([f"{rest:,} others"] if rest else []))


def _column(
    schema: Schema, a: int, model: Floats, released: Sequence[Released], truth: Floats | None
) -> Column:
    attribute = schema.attributes[a]
    bars, labels = _bars(attribute, model)

    def summed(values: Floats) -> Floats:
        return np.bincount(bars, weights=values, minlength=len(labels)).astype(np.float64)

    series = []
    for marginal in released:
        # Shares are of this party's records: parties may hold different people.
        counts = np.array(marginal.counts)
        total = max(float(counts.sum()), 1.0)
        distance = 0.5 * float(np.abs(counts / total - model).sum())
        noise = 0.5 * MEAN_ABSOLUTE * marginal.error * attribute.size / total
        errors = marginal.error / total * np.sqrt(summed(np.ones(attribute.size)))
        series.append(Series(marginal.party, summed(counts) / total, errors, distance, noise))
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


def _shares(codes: Codes | Integers, size: int) -> Floats:
    return np.bincount(codes, minlength=size) / max(len(codes), 1)


def _dependence(
    run: Run,
    classes: Sequence[Integers | None],
    truth: Truth | None,
    edges: Collection[Pair],
) -> Dependence:
    schema, field, evidence = run.model.schema, run.model.field, run.model.evidence
    d = len(schema.sizes)
    model, estimate, beyond = (np.full((d, d), np.nan) for _ in range(3))
    if evidence is not None:
        pairs = list(evidence.places)
        _enter(model, pairs, evidence.model_dependence)
        _enter(estimate, pairs, evidence.dependence)
        _enter(beyond, pairs, evidence.distance - evidence.noise)
    all_pairs = list(itertools.combinations(range(d), 2))
    if len(all_pairs) > MAX_PAIRS:
        all_pairs = [pair for pair in all_pairs if pair in edges or np.isfinite(model[pair])]
    # Pairs that the evidence has are computed again only if the truth is given.
    known = set(truth or ())
    wanted = [pair for pair in all_pairs if known.issuperset(pair) or np.isnan(model[pair])]
    sizes = binned_sizes(schema.sizes, classes)
    true = off = resampled = None
    expected_noise = 0.0
    tables = expected_marginals(field, wanted, [(classes[a], classes[b]) for a, b in wanted])
    shares = [table / field.total for table in tables]
    _enter(model, wanted, [_from_independence(table) for table in shares])
    compared = [pair for pair in wanted if known.issuperset(pair)]
    if truth is not None and compared:
        true, off = np.full((d, d), np.nan), np.full((d, d), np.nan)
        records = max(len(next(iter(truth.values()))), 1)
        merged = np.zeros((d, records), np.uint16)
        for a, row in truth.items():
            of = classes[a]
            merged[a] = row if of is None else of.astype(np.uint16)[row]
        by_pair = dict(zip(wanted, shares, strict=True))
        for pair, counts in zip(compared, pair_tables(merged, sizes, compared), strict=True):
            table = by_pair[pair]
            real = counts / records
            _enter(true, [pair], [_from_independence(real)])
            _enter(off, [pair], [0.5 * float(np.abs(table - real).sum())])
            expected_noise += (
                0.5 * MEAN_ABSOLUTE * float(np.sqrt(real * (1 - real) / records).sum())
            )
        resampled = expected_noise / len(compared)
    across = np.array(
        [[not set(one) & set(other) for other in schema.holders] for one in schema.holders]
    )
    return Dependence(model, estimate, beyond, true, off, across, resampled)


def _enter(matrix: Floats, places: Sequence[Pair], figures: Sequence[float] | Floats) -> None:
    for (a, b), figure in zip(places, figures, strict=True):
        matrix[a, b] = matrix[b, a] = figure


def _from_independence(shares: Floats) -> float:
    """Total variation distance between a table of shares and the product of its margins."""
    return 0.5 * float(np.abs(shares - np.outer(shares.sum(axis=1), shares.sum(axis=0))).sum())

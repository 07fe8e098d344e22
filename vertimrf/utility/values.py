"""How far synthetic values are from real ones, as a reader of rows sees them.

Column Shapes and Pair Trends are those of SDMetrics 0.32 (https://docs.sdv.dev/sdmetrics), of all
rows, of which its report samples 50,000 for pairs. A column is an array: numbers are float64, with
NaN where they are missing; any other value has a number of its own [int64], or MISSING.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TypeGuard

import numpy as np

from ..arrays import Fields, Floats, Integers
from .distances import FEW_CELLS

Column = Floats | Integers
Values = Mapping[str, Column]

MISSING = -1
QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
# Number of values whose shares are told.
COMMONEST = 3
# No values are off the grid of a column in which a further true row has a new value with at least
# this probability, the share of values that occur once (Good, 1953).
CONTINUUM = 0.5
# Numbers are equal if they differ by this part of them: errors of floating point.
SAME = 1e-14
# Of SDMetrics: decimals of numbers that count, bins of numbers beside texts, and the correlation
# and the association (Cramér's V) from which its report counts a pair.
DECIMALS, BINS, CORRELATED, ASSOCIATED = 14, 10, 0.5, 0.3


def compare_values(real: Values, synthetic: Values) -> Fields:
    """Compare columns and pairs of columns by their values.

    Args:
        real, synthetic: the same columns of two tables [each shape=(records,)].

    Returns:
        ``"column_shapes"`` and ``"pair_trends"``: means of the scores of columns and pairs, 0 to 1;
        ``"dependent_pair_trends"``: of the pairs that depend in the real table, which are those that
        SDMetrics' report counts. ``"columns"``: by name, see :func:`compare_column`. ``"pairs"``:
        see :func:`pair_trends`. A mean without scores is None.
    """
    columns = {name: compare_column(real[name], synthetic[name]) for name in real}
    pairs = pair_trends(real, synthetic)
    return {
        "column_shapes": _mean([column["shape"] for column in columns.values()]),
        "pair_trends": _mean([pair["score"] for pair in pairs]),
        "dependent_pair_trends": _mean([pair["score"] for pair in pairs if pair["dependent"]]),
        "columns": columns,
        "pairs": pairs,
    }


def compare_column(real: Column, synthetic: Column) -> Fields:
    """Compare one column of two tables.

    Args:
        real, synthetic: the column [each shape=(records,)].

    Returns:
        ``"missing"``: shares of records, real and synthetic. ``"shape"``: 1 less the distance of
        present values, Kolmogorov and Smirnov's for numbers (KSComplement), total variation for
        others (TVComplement); None if a table has none. Of numbers also ``"ks"``, that distance;
        ``"commonest"``: the commonest real values with their shares of the records of either table;
        and ``"off_grid"``: the share of synthetic values that no real record has, and
        ``"off_grid_by_chance"``, of a further real record. They are None for a continuum.
    """
    numbers = is_numbers(real)
    there = [~np.isnan(c) if numbers else c != MISSING for c in (real, synthetic)]
    shares = [float(1 - some.mean()) if some.size else 0.0 for some in there]
    out: Fields = {"missing": {"real": shares[0], "synthetic": shares[1]}, "shape": None}
    (true, times), (made, often) = (
        np.unique(column[some], return_counts=True)
        for column, some in zip((real, synthetic), there, strict=True)
    )
    if not (true.size and made.size):
        return out
    if not numbers:
        every = np.union1d(true, made)
        p, q = np.zeros(len(every)), np.zeros(len(every))
        p[np.searchsorted(every, true)] = times / times.sum()
        q[np.searchsorted(every, made)] = often / often.sum()
        return out | {"shape": float(1 - 0.5 * np.abs(p - q).sum())}
    apart = _kolmogorov_smirnov(true, times, made, often)
    place = _places(true, made)
    found = np.bincount(place[place >= 0], weights=often[place >= 0], minlength=len(true))
    common = np.argsort(-times, kind="stable")[:COMMONEST]
    new = float((times == 1).sum() / times.sum())
    off = None if new >= CONTINUUM else float(often[place < 0].sum() / often.sum())
    return out | {
        "shape": 1 - apart,
        "ks": apart,
        "commonest": [
            {
                "value": float(true[i]),
                "real": float(times[i] / len(real)),
                "synthetic": float(found[i] / len(synthetic)),
            }
            for i in common
        ],
        "off_grid": off,
        "off_grid_by_chance": None if off is None else new,
    }


def _kolmogorov_smirnov(true: Floats, times: Integers, made: Floats, often: Integers) -> float:
    """The largest distance of two distribution functions, of sorted values and their counts."""

    def rounded(values: Floats) -> Floats:
        with np.errstate(over="ignore", invalid="ignore"):
            out = np.round(values, DECIMALS)
        return np.where(np.isfinite(out), out, values)

    true, made = rounded(true), rounded(made)
    every = np.concatenate([true, made])
    p, q = (
        np.append(0.0, np.cumsum(counts) / counts.sum())[np.searchsorted(values, every, "right")]
        for values, counts in ((true, times), (made, often))
    )
    return float(np.abs(p - q).max())


def _places(true: Floats, made: Floats) -> Integers:
    """The place of the equal true number of each made one, -1 for none; both are sorted."""
    right = np.searchsorted(true, made)
    out = np.full(len(made), -1)
    for place in (np.minimum(right, len(true) - 1), np.maximum(right - 1, 0)):
        same = np.isclose(made, true[place], rtol=SAME, atol=0)
        out[same] = place[same]
    return out


def compare_numbers(real: Values, synthetic: Values) -> Fields:
    """Mean, standard deviation and quantiles of every column of numbers, real and synthetic.
    Columns of which a table has no number are left out.
    """
    out = {}
    both = numbers_among(real), numbers_among(synthetic)
    for name in both[0]:
        one, other = (table[name][~np.isnan(table[name])] for table in both)
        if len(one) and len(other):
            out[name] = {"real": _moments(one), "synthetic": _moments(other)}
    return out


def numbers_among(values: Values) -> dict[str, Floats]:
    """The columns of numbers."""
    return {name: column for name, column in values.items() if is_numbers(column)}


def is_numbers(column: Column) -> TypeGuard[Floats]:
    """Whether a column is one of numbers."""
    return column.dtype.kind == "f"


def _moments(values: Floats) -> Fields:
    quantiles = dict(zip(map(str, QUANTILES), np.quantile(values, QUANTILES).tolist(), strict=True))
    return {"mean": float(values.mean()), "deviation": float(values.std()), "quantiles": quantiles}


def pair_trends(real: Values, synthetic: Values) -> list[Fields]:
    """Scores of every two columns, the lowest first.

    Two columns of numbers have 1 less half the difference of Pearson's correlations over records
    that have both (CorrelationSimilarity), and these as ``"real"`` and ``"synthetic"``. Other pairs
    have 1 less the total variation distance, where missing is a value and numbers are in ten bins
    of equal width of their own table (ContingencySimilarity).

    Args:
        real, synthetic: as in :func:`compare_values`.

    Returns:
        ``"columns"``, ``"score"``, and ``"dependent"``, whether SDMetrics' report counts the pair.
        Pairs of numbers without a correlation are left out.
    """
    labels = {name: _labels(real[name], synthetic[name]) for name in real}
    numbers, out = (numbers_among(real), numbers_among(synthetic)), []
    for pair in itertools.combinations(real, 2):
        one, other = pair
        if one in numbers[0] and other in numbers[0]:
            r, s = (correlation(table[one], table[other]) for table in numbers)
            if r is None or s is None:
                continue
            figures = {"score": 1 - abs(r - s) / 2, "dependent": abs(r) > CORRELATED}
            out.append({"columns": [*pair], **figures, "real": r, "synthetic": s})
        else:
            apart, association = _contingency(labels[one], labels[other])
            figures = {"score": 1 - apart, "dependent": association > ASSOCIATED}
            out.append({"columns": [*pair], **figures})
    return sorted(out, key=lambda pair: pair["score"])


def correlations_among(pairs: Sequence[Fields]) -> list[Fields]:
    """The correlations of columns of numbers, real and synthetic, among scores of pairs."""
    return [
        {key: pair[key] for key in ("columns", "real", "synthetic")}
        for pair in pairs
        if "real" in pair
    ]


def correlation(one: Floats, other: Floats) -> float | None:
    """Pearson's correlation over records that have both numbers; None if it is undefined."""
    both = ~(np.isnan(one) | np.isnan(other))
    a, b = one[both], other[both]
    with np.errstate(over="ignore", invalid="ignore"):
        if len(a) < 2 or not (np.ptp(a) and np.ptp(b)):
            return None
        a, b = a - a.mean(), b - b.mean()
        # A third of np.corrcoef's time.
        ab, aa, bb = (np.einsum("i,i", x, y) for x, y in ((a, b), (a, a), (b, b)))
        out = float(ab / np.sqrt(aa) / np.sqrt(bb))
    return min(max(out, -1.0), 1.0) if np.isfinite(out) else None


def _labels(real: Column, synthetic: Column) -> tuple[Integers, Integers, int]:
    """A column of both tables as whole numbers from 0 on, and how many there are."""
    if is_numbers(real) and is_numbers(synthetic):
        return _binned(real), _binned(synthetic), BINS + 2
    values, labels = np.unique(np.concatenate([real, synthetic]), return_inverse=True)
    return labels[: len(real)], labels[len(real) :], len(values)


def _binned(values: Floats) -> Integers:
    """Bins of equal width; missing values are above the last, as SDMetrics has them."""
    # A power of two keeps bins as they are, and their width finite.
    values = values / 1024
    return np.digitize(values, np.histogram_bin_edges(values[~np.isnan(values)], BINS))


def _contingency(
    one: tuple[Integers, Integers, int], other: tuple[Integers, Integers, int]
) -> tuple[float, float]:
    """Total variation distance of two columns' tables, and Cramér's V in the real one, 0 if a
    column has one value.
    """
    size = other[2]
    keys = [a * size + b for a, b in zip(one[:2], other[:2], strict=True)]
    cells = np.arange(one[2] * size)
    if len(cells) > max(FEW_CELLS, *map(len, keys)):
        cells, every = np.unique(np.concatenate(keys), return_inverse=True)
        keys = [every[: len(keys[0])], every[len(keys[0]) :]]
    p, q = (np.bincount(some, minlength=len(cells)) / max(len(some), 1) for some in keys)
    rows, columns = np.bincount(cells // size, p), np.bincount(cells % size, p)
    free = min(np.count_nonzero(rows), np.count_nonzero(columns)) - 1
    full = p > 0
    square = p[full] / rows[cells[full] // size] * p[full] / columns[cells[full] % size]
    association = np.sqrt(max(square.sum() - 1, 0) / free) if free > 0 else 0.0
    return 0.5 * float(np.abs(p - q).sum()), float(association)


def _mean(scores: Sequence[float | None]) -> float | None:
    known = [score for score in scores if score is not None]
    return sum(known) / len(known) if known else None

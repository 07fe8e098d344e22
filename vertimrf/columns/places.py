"""Draw where numbers lie inside their bins, so that columns that depend on each other do so there, too.

Codes say how the bins of two columns go together. Between the medians of the bins, the median of one
column follows the other along straight lines, with the spread that codes show around them (a normal
distribution). From this first guess, raking (Deming and Stephan, 1940) makes a table of finer cells
with the counts of the codes, in which every part of a bin has the same share. So each column's numbers
keep their distribution inside bins.

Each number is drawn beside that of one other column, along a forest of the strongest rank correlations
(Prim, 1957). All of it follows from synthetic codes.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..arrays import Flags, Floats, Integers, Integral, Ints, Pair
from .column import Attribute
from .inside import Span

Rows = Integral

# Rank correlations below either are left out: WEAK, and so many standard errors of independent rows.
WEAK, ERRORS = 0.3, 5.0
# Most rows that are counted.
MOST_ROWS = 1 << 18
# Parts of a bin, of equal shares; fewer, but two, if two columns would have more than MOST_CELLS cells.
PARTS, MOST_CELLS = 16, 1 << 15
# Rounds of raking.
RAKING = 10
# Quantiles that tell the spread, in standard deviations of a normal distribution beside the median.
# Noise in cells without records moves quantiles less than means.
QUANTILES = np.array([0.16, 0.5, 0.84])
# The least part of the spread that is left inside a bin, and the least density: rows may be anywhere.
LEAST_SPREAD, LEAST_DENSITY = 0.02, 1e-6


class _Link(NamedTuple):
    """Two columns whose numbers are drawn together.

    Attributes:
        first, second: positions of the columns; the first one's places may be drawn before.
        parts: number of parts of each bin.
        alone: by codes of both, running shares of the first column's parts.
        beside: by code and part of the first column and code of the second, running shares of the
            second column's parts.
    """

    first: int
    second: int
    parts: int
    alone: Floats
    beside: Floats


@dataclass(frozen=True, eq=False)
class Places:
    """How columns of numbers depend on each other inside their bins; make it with :meth:`of`.

    Attributes:
        present: number of codes of every column, without that of missing values.
        links: the pairs of columns, in the order in which they are drawn.
    """

    present: Ints
    links: tuple[_Link, ...]

    @classmethod
    def of(
        cls,
        codes: Rows,
        attributes: Sequence[Attribute],
        spans: Sequence[Span | None],
        absent: Flags,
    ) -> Places:
        """Find the columns that depend on each other, and how.

        Args:
            codes: synthetic rows in random order [shape=(d, n), integer].
            attributes: domain of each row.
            spans: where the numbers of a column are drawn; None if a code is a value.
            absent: values that no party has [shape=(d, n), bool].
        """
        present = tuple(attribute.present for attribute in attributes)
        codes, absent = codes[:, :MOST_ROWS], absent[:, :MOST_ROWS]
        held = {a: span for a, span in enumerate(spans) if span is not None}

        @functools.cache
        def middles(a: int, parts: int) -> Floats:
            bins = present[a]
            at = np.tile((np.arange(parts) + 0.5) / parts, bins)
            numbers = attributes[a].drawn(np.repeat(np.arange(bins), parts), held[a], at)
            return numbers.reshape(bins, parts)

        links = []
        for pair in _strongest(codes, absent, present, list(held)):
            sizes = [present[a] for a in pair]
            parts = min(PARTS, max(math.isqrt(MOST_CELLS // math.prod(sizes)), 2))
            _, first, second = _known(codes, absent, present, *pair)
            counts = np.bincount(first * sizes[1] + second, minlength=math.prod(sizes))
            x, y = (middles(a, parts) for a in pair)
            table = _finer(counts.reshape(sizes).astype(float), x, y)
            alone = _running(table.sum(axis=3).transpose(0, 2, 1))
            links.append(_Link(*pair, parts, alone, _running(table)))
        return cls(present, tuple(links))

    def drawn(self, codes: Rows, absent: Flags, rng: np.random.Generator) -> list[Floats]:
        """Places inside bins, from 0 to 1 by the share of the bin's records [each shape=(n,), float64].

        Args:
            codes, absent: some rows, as for :meth:`of`.
            rng: draws the places.
        """
        places: list[Floats] = list(rng.random(codes.shape))
        done = set()
        for a, b, parts, alone, beside in self.links:
            rows, first, second = _known(codes, absent, self.present, a, b)
            if a not in done:
                here = first * self.present[b] + second
                places[a][rows] = _placed(alone, here, parts, places[a][rows])
            first = first * parts + (places[a][rows] * parts).astype(np.int64)
            here = first * self.present[b] + second
            places[b][rows] = _placed(beside, here, parts, places[b][rows])
            done |= {a, b}
        return places


def _known(codes: Rows, absent: Flags, present: Ints, *some: int) -> list[Integers]:
    """The rows in which some columns have values, and their codes there [each shape=(n,), int64]."""
    known = [(codes[a] < present[a]) & ~absent[a] for a in some]
    rows = np.flatnonzero(np.all(known, axis=0))
    return [rows, *(codes[a, rows].astype(np.int64) for a in some)]


def _strongest(codes: Rows, absent: Flags, present: Ints, some: list[int]) -> list[Pair]:
    """Pairs of columns that form a forest, each beside one before it if there is one."""
    ranks = np.zeros((len(some), codes.shape[1]), np.float32)
    for row, a in enumerate(some):
        rows, known = _known(codes, absent, present, a)
        counts = np.bincount(known, minlength=present[a])
        ranks[row, rows] = (np.cumsum(counts) - counts / 2 - len(rows) / 2)[known]
        ranks[row] /= max(np.linalg.norm(ranks[row]), 1.0)
    ties = np.abs(ranks @ ranks.T)
    least = max(WEAK, ERRORS / max(codes.shape[1], 1) ** 0.5)
    order = np.argsort(-ties, axis=None, kind="stable")
    pairs = [
        (some[i], some[j])
        for i, j in zip(*np.unravel_index(order, ties.shape), strict=True)
        if i < j and ties[i, j] >= least and present[some[i]] * present[some[j]] <= MOST_CELLS
    ]
    out: list[Pair] = []
    drawn: set[int] = set()
    while pairs:
        a, b = next((pair for pair in pairs if drawn & {*pair}), pairs[0])
        out.append((b, a) if b in drawn else (a, b))
        drawn |= {a, b}
        pairs = [pair for pair in pairs if not drawn >= {*pair}]
    return out


def _finer(counts: Floats, x: Floats, y: Floats) -> Floats:
    """A table of parts of bins with the counts of the bins [shape=(bins, parts, bins, parts)].

    Args:
        counts: rows by the codes of two columns [shape=(bins of x, bins of y), float64].
        x, y: the number in the middle of every part [shape=(bins, parts), float64].
    """
    parts, y = x.shape[1], y / (np.abs(y).max() + 1e-300)
    rows, columns = counts.sum(axis=1), counts.sum(axis=0)
    # Quantiles of y in each bin of x, and the numbers there.
    shares = np.repeat(counts / parts / np.maximum(rows, 1.0)[:, None], parts, axis=1)
    below = np.cumsum(shares, axis=1) - shares / 2
    low, middle, high = np.array([np.interp(QUANTILES, each, y.ravel()) for each in below]).T
    at, held = np.median(x, axis=1), np.flatnonzero(rows)
    line = _along(x.ravel(), at[held], middle[held]).reshape(x.shape)
    # The spread around the line, without that along it inside the bin.
    spread = high - low
    rise = np.ptp(np.quantile(line, QUANTILES[::2], axis=1), axis=0)
    spread = np.sqrt(np.maximum(spread**2 - rise**2, LEAST_SPREAD * spread**2)) / 2 + 1e-150
    away = (y - line[:, :, None, None]) / spread[:, None, None, None]
    table: Floats = np.exp(-np.square(away) / 2) + LEAST_DENSITY
    return _raked(table, rows / parts, columns / parts, counts)


def _along(at: Floats, x: Floats, y: Floats) -> Floats:
    """A line through points, with its first and last slope beyond them [shape of ``at``]."""
    if len(x) < 2:
        return np.full(len(at), y[0] if len(y) else 0.0)
    line = np.interp(at, x, y)
    for end, beside, beyond in ((0, 1, at < x[0]), (-1, -2, at > x[-1])):
        slope = (y[end] - y[beside]) / (x[end] - x[beside])
        line[beyond] = y[end] + slope * (at[beyond] - x[end])
    return line


def _raked(table: Floats, rows: Floats, columns: Floats, counts: Floats) -> Floats:
    """Scale a table of parts of bins, so that all parts of a bin have the same sum, and bins their counts.

    Args:
        table: the first guess [shape=(bins, parts, bins, parts), float64].
        rows, columns: the sum of each part of a bin of either column [shape=(bins,), float64].
        counts: the sum of the parts of two bins [shape=(bins, bins), float64].
    """
    u, p, v, q = table.shape
    by_first = table.reshape(u, p, v * q)
    by_second = np.ascontiguousarray(table.transpose(2, 0, 1, 3)).reshape(v, u * p, q)
    second, both = np.ones((v, q)), np.ones((u, v))
    # Factors change in place of the table.
    for _ in range(RAKING):
        sums = (by_second @ second[:, :, None]).reshape(v, u, p)
        first = _over(rows[:, None], np.einsum("vup,uv->up", sums, both))
        sums = (first[:, None, :] @ by_first).reshape(u, v, q)
        second = _over(columns[:, None], np.einsum("uvq,uv->vq", sums, both))
        both = _over(counts, np.einsum("uvq,vq->uv", sums, second))
    out: Floats = table * first[:, :, None, None] * second * both[:, None, :, None]
    return out


def _over(wanted: Floats, sums: Floats) -> Floats:
    return np.divide(wanted, sums, out=np.zeros_like(sums), where=sums > 0)


def _running(shares: Floats) -> Floats:
    """Running sums along the last axis, each row's from its number to the next, flat."""
    flat = shares.reshape(-1, shares.shape[-1])
    total = flat.sum(axis=1, keepdims=True)
    flat = np.divide(flat, total, out=np.full_like(flat, 1 / flat.shape[1]), where=total > 0)
    sums = np.cumsum(flat, axis=1)
    sums[:, -1] = 1.0
    running: Floats = sums + np.arange(len(flat), dtype=np.float64)[:, None]
    return running.ravel()


def _placed(running: Floats, here: Integers, parts: int, chance: Floats) -> Floats:
    """Places from 0 to 1 by the shares of one row of a table each [shape=(n,), float64].

    Args:
        running: from :func:`_running`.
        here: the row of the table [shape=(n,), int64].
        parts: its length.
        chance: even chances [shape=(n,), float64].
    """
    at = here + chance
    # By halves, in the row alone.
    chosen = here * parts
    last = chosen + parts - 1
    for step in 1 << np.arange(parts.bit_length())[::-1]:
        beyond = np.minimum(chosen + step, last)
        chosen = np.where(running[beyond - 1] <= at, beyond, chosen)
    low = np.where(chosen == here * parts, here, running[np.maximum(chosen - 1, 0)])
    width = running[chosen] - low
    inside = np.divide(at - low, width, out=np.full(len(at), 0.5), where=width > 0)
    # The last part may have less than double precision tells from 1.
    inside = np.minimum(inside, 1.0 - 1e-12)
    out: Floats = (chosen - here * parts + inside) / parts
    return out

"""Consistency enforcement (VertiMRF, section 6.2), by name: cross-party tables and local marginals brought to agree.

Two steps, on distributions. Consistency: a margin that the table and the local model both have goes to the arithmetic mean
of the two, and the difference is spread evenly over the table's cells that add up to it, which leaves every disjoint margin
as it was. Normalisation: negative cells go to 0 and the table back to a sum of 1, which may undo some of it. So both are
repeated until what is left is negligible.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from vertimrf.errors import ModelError
from vertimrf.model.measurement import Measurement

__all__ = ["enforce"]

Floats = npt.NDArray[np.float64]
Axes = tuple[int, ...]


def enforce(
    measurements: Sequence[Measurement],
    margins: Mapping[Axes, Floats],
    total: float,
    tolerance: float = 1e-6,
    sweeps: int = 1000,
) -> list[Measurement]:
    """Make many cross-party measurements agree with the local models' margins, and so with each other.

    A margin goes to the mean of the local model's and of *all* tables that contain it: for one table that is the paper's
    step, for many it does not depend on their order. Tables may be binned, each in its own way: a bin's count speaks for its
    values in the local model's proportions.

    Args:
        measurements: cross-party marginals.
        margins: per strictly increasing tuple of attributes, the local model's counts of their values, unbinned. Those
            that no measurement contains are left alone.
        total: number of records to scale the results to.
        tolerance: share of the records, summed over a margin's cells, that may be left inconsistent.
        sweeps: most repetitions of both steps over all margins.

    Returns:
        The measurements with new counts, non-negative and of sum ``total``, in the same order. Their standard errors are those
        before: what the margins lend them, and how it makes them depend on each other, is not in them.

    Raises:
        ModelError: margins that are not finite, without a count above zero, out of order, or whose size does not fit a
            measurement's; a total that is not above 0.
    """
    _check_total(total)
    local = {}
    for axes, counts in margins.items():
        if not axes or any(b <= a for a, b in itertools.pairwise(axes)):
            raise ModelError(
                f"A margin's attributes {axes} must be named in strictly increasing order."
            )
        local[axes] = _distribution(counts, f"The margin over attributes {axes}")
    tables = []
    for m in measurements:
        what = f"The measurement of attributes {m.attributes}"
        for axes, shares in local.items():
            for attribute, size in zip(axes, shares.shape, strict=True):
                if attribute in m.attributes:
                    at = m.attributes.index(attribute)
                    bins = m.bins[at]
                    expected = m.counts.shape[at] if bins is None else bins.size
                    if size != expected:
                        raise ModelError(
                            f"{what} has {expected} values of attribute {attribute}, the margin over {axes} {size}."
                        )
        tables.append(
            _Table(_distribution(m.counts, what, empty_is_even=True), m.attributes, m.bins)
        )
    _reconcile(tables, local, tolerance, sweeps)
    return [
        replace(m, counts=table.shares * total, source=f"{m.source}, consistent".lstrip(", "))
        for m, table in zip(measurements, tables, strict=True)
    ]


@dataclass(eq=False)
class _Table:
    """A distribution under way: its shares, one axis per attribute, and per attribute the map value -> bin, or None."""

    shares: Floats
    attributes: Axes
    bins: tuple[npt.NDArray[np.int64] | None, ...]

    def contains(self, axes: Axes) -> bool:
        return set(axes) <= set(self.attributes)

    def margin(self, axes: Axes) -> Floats:
        """In the table's bins."""
        out: Floats = self.shares.sum(
            axis=tuple(i for i, a in enumerate(self.attributes) if a not in axes)
        )
        return out

    def binned(self, axes: Axes, shares: Floats) -> Floats:
        """A distribution over values in the table's bins."""
        for at, axis in enumerate(axes):
            place = self.attributes.index(axis)
            bins = self.bins[place]
            if bins is not None:
                together = np.arange(self.shares.shape[place])[:, None] == bins
                shares = np.moveaxis(np.tensordot(together, shares, axes=(1, at)), 0, at)
        return shares

    def unbinned(self, axes: Axes, shares: Floats) -> Floats:
        """Of an array over the table's bins, the entry of every value."""
        for at, axis in enumerate(axes):
            bins = self.bins[self.attributes.index(axis)]
            if bins is not None:
                shares = shares.take(bins, axis=at)
        return shares

    def shift(self, axes: Axes, difference: Floats) -> None:
        """Add to a margin, evenly over the cells that add up to it."""
        along = [self.shares.shape[i] if a in axes else 1 for i, a in enumerate(self.attributes)]
        self.shares = self.shares + difference.reshape(along) * (difference.size / self.shares.size)


def _reconcile(
    tables: Sequence[_Table], local: dict[Axes, Floats], tolerance: float, sweeps: int
) -> None:
    """Both steps over all margins, until they agree; rewrites the tables' shares and the local distributions."""
    for _ in range(sweeps):
        worst = 0.0
        for axes, mine in local.items():
            concerned = [table for table in tables if table.contains(axes)]
            if not concerned:
                continue
            mean = mine.copy()
            for table in concerned:
                here, there = table.margin(axes), table.binned(axes, mine)
                worst = max(worst, float(np.abs(here - there).sum()))
                mean += _spread(table, axes, here, there, mine)
            mean /= len(concerned) + 1
            local[axes] = mean
            for table in concerned:
                table.shift(axes, table.binned(axes, mean) - table.margin(axes))
                table.shares = np.maximum(table.shares, 0.0)
                table.shares /= table.shares.sum()
        if worst <= tolerance:
            break


def _spread(table: _Table, axes: Axes, here: Floats, there: Floats, mine: Floats) -> Floats:
    """A table's margin over values: in the local proportions within a bin, evenly where the local model has nothing."""
    whole = table.unbinned(axes, there)
    even = 1 / table.unbinned(axes, table.binned(axes, np.ones_like(mine)))
    out: Floats = table.unbinned(axes, here) * np.divide(mine, whole, out=even, where=whole > 0)
    return out


def _distribution(counts: Floats, what: str, empty_is_even: bool = False) -> Floats:
    """Counts clipped at 0 and scaled to a sum of 1."""
    counts = np.asarray(counts, np.float64)
    if not np.isfinite(counts).all():
        raise ModelError(f"{what} holds a count that is not finite.")
    shares = np.maximum(counts, 0.0)
    if not shares.sum() > 0:
        if not empty_is_even:
            raise ModelError(
                f"{what} has no count above zero: there is nothing to be consistent with; leave it out."
            )
        shares = np.ones_like(shares)
    out: Floats = shares / shares.sum()
    return out


def _check_total(total: float) -> None:
    if not (math.isfinite(total) and total > 0):
        raise ModelError(f"Consistent tables need a number of records above 0, not {total}.")

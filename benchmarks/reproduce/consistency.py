"""Consistency enforcement (VertiMRF, section 6.2), by name: cross-party tables and local marginals brought to agree.

Two steps, on distributions. Consistency: a margin that the table and the local model both have goes to the arithmetic mean
of the two, and the difference is spread evenly over the table's cells that add up to it, which leaves every disjoint margin
as it was. Normalisation: negative cells go to 0 and the table back to a sum of 1, which may undo some of it. So both are
repeated until what is left is negligible.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def enforce(
    measurements,
    margins,
    total,
    tolerance=1e-6,
    sweeps=1000,
):
    """Make many cross-party measurements agree with the local models' one-way counts, and so with each other.

    A margin goes to the mean of the local model's and of *all* tables that contain it: for one table that is the paper's
    step, for many it does not depend on their order. Tables may be binned, each in its own way: a bin's count speaks for its
    values in the local model's proportions.

    Args:
        measurements: cross-party marginals.
        margins: per attribute, the local model's counts of its values, unbinned [shape=(size,)]. Those that no measurement
            contains are left alone.
        total: number of records to scale the results to.
        tolerance: share of the records, summed over a margin's cells, that may be left inconsistent.
        sweeps: most repetitions of both steps over all margins.

    Returns:
        The measurements with new counts, non-negative and of sum ``total``, in the same order. Their standard errors are those
        before: what the margins lend them, and how it makes them depend on each other, is not in them.
    """
    local = {attribute: _distribution(counts) for attribute, counts in margins.items()}
    tables = [_Table(_distribution(m.counts), m.attributes, m.bins) for m in measurements]
    _reconcile(tables, local, tolerance, sweeps)
    return [
        replace(m, counts=table.shares * total, source=f"{m.source}, consistent".lstrip(", "))
        for m, table in zip(measurements, tables, strict=True)
    ]


@dataclass(eq=False)
class _Table:
    """A distribution under way: its shares, one axis per attribute, and per attribute the map value -> bin, or None."""

    shares: Floats
    attributes: tuple[int, ...]
    bins: tuple[npt.NDArray[np.int64] | None, ...]

    def margin(self, attribute):
        """In the table's bins."""
        out = self.shares.sum(
            axis=tuple(i for i, a in enumerate(self.attributes) if a != attribute)
        )
        return out

    def bin_of(self, attribute):
        """The bin of every value."""
        place = self.attributes.index(attribute)
        bins = self.bins[place]
        return np.arange(self.shares.shape[place]) if bins is None else bins

    def binned(self, attribute, shares):
        """A distribution over values in the table's bins."""
        return np.bincount(self.bin_of(attribute), shares)

    def shift(self, attribute, difference):
        """Add to a margin, evenly over the cells that add up to it."""
        along = [-1 if a == attribute else 1 for a in self.attributes]
        self.shares = self.shares + difference.reshape(along) * (difference.size / self.shares.size)


def _reconcile(tables, local, tolerance, sweeps):
    """Both steps over all margins, until they agree; rewrites the tables' shares and the local distributions."""
    for _ in range(sweeps):
        worst = 0.0
        for attribute, mine in local.items():
            concerned = [table for table in tables if attribute in table.attributes]
            if not concerned:
                continue
            mean = mine.copy()
            for table in concerned:
                here, there = table.margin(attribute), table.binned(attribute, mine)
                worst = max(worst, float(np.abs(here - there).sum()))
                mean += _spread(table.bin_of(attribute), here, there, mine)
            mean /= len(concerned) + 1
            local[attribute] = mean
            for table in concerned:
                table.shift(attribute, table.binned(attribute, mean) - table.margin(attribute))
                table.shares = np.maximum(table.shares, 0.0)
                table.shares /= table.shares.sum()
        if worst <= tolerance:
            break


def _spread(bins, here, there, mine):
    """A table's margin over values: in the local proportions within a bin, evenly where the local model has nothing."""
    whole, even = there[bins], 1 / np.bincount(bins)[bins]
    out = here[bins] * np.divide(mine, whole, out=even, where=whole > 0)
    return out


def _distribution(counts):
    """Counts clipped at 0 and scaled to a sum of 1; even where none is above 0."""
    shares = np.maximum(counts, 0.0)
    if not shares.any():
        shares = np.ones_like(shares)
    out = shares / shares.sum()
    return out

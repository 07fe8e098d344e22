"""Synthetic rows from a Markov random field (VertiMRF, phase 6), by rounded counts instead of independent draws."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from .errors import ModelError
from .model import MarkovRandomField

__all__ = ["sample"]


def sample(model: MarkovRandomField, rows: int, rng: np.random.Generator) -> npt.NDArray[np.uint16]:
    """Draw synthetic rows whose clique marginals follow the model's with rounded counts.

    The root clique's cells get their expected counts rounded systematically; walking down the tree, the rows of every
    separator value are split over the child's new attributes in the same way.

    Args:
        model: the fitted model.
        rows: number of rows, 1 or more.
        rng: random generator; only for sampling, never for privacy noise.

    Returns:
        Codes [shape=(d, rows), uint16], rows in random order.

    Raises:
        ModelError: ``rows`` is less than 1.
    """
    if rows < 1:
        raise ModelError(f"The number of synthetic rows must be 1 or more, not {rows}.")
    sizes = model.sizes
    codes = np.zeros((len(sizes), rows), np.uint16)
    for clique, separator, belief in zip(model.tree.cliques, model.tree.separators, model.beliefs, strict=True):
        new = tuple(a for a in clique if a not in separator)
        table = belief.transpose([clique.index(a) for a in (*separator, *new)])
        table = table.reshape(math.prod(sizes[a] for a in separator), -1)
        group = np.zeros(rows, np.int64)
        for a in separator:
            group = group * sizes[a] + codes[a]
        order = rng.permutation(rows)
        order = order[np.argsort(group[order], kind="stable")]
        cell = _split(table, group[order], rng)
        for a in reversed(new):
            codes[a, order] = cell % sizes[a]
            cell //= sizes[a]
    return codes[:, rng.permutation(rows)]


def _split(table: npt.NDArray[np.float64], group: npt.NDArray[np.int64], rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """A column for every row, rows of a group spread evenly over its cumulative distribution [group: sorted]."""
    mass = table.sum(axis=1, keepdims=True)
    table = np.divide(table, mass, out=np.full(table.shape, 1.0 / table.shape[1]), where=mass > 0)
    counts = np.bincount(group, minlength=len(table))
    first = np.cumsum(counts) - counts
    out = np.empty(len(group), np.int64)
    shift = rng.random(len(table))
    position = (np.arange(len(group)) - first[group] + shift[group]) / counts[group]
    cumulative = np.cumsum(table, axis=1)
    cumulative /= cumulative[:, -1:]
    edges = (np.arange(len(table))[:, None] + cumulative).ravel()
    out = np.searchsorted(edges, group + position, side="right") - group * table.shape[1]
    return np.clip(out, 0, table.shape[1] - 1)

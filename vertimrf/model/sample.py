"""Synthetic rows from a Markov random field (VertiMRF, phase 6), by rounded counts instead of independent draws."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from ..errors import ModelError
from ..kernels import sample as draw
from .markov_random_field import MarkovRandomField
from .propagation import axis_map
from .value_classes import ValueClasses

__all__ = ["sample"]

Codes = npt.NDArray[np.uint16]


def sample(
    model: MarkovRandomField,
    rows: int,
    rng: np.random.Generator,
    given: Mapping[int, npt.ArrayLike] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Codes:
    """Draw synthetic rows whose clique marginals follow the model's with rounded counts.

    Walks the junction tree from its roots. The rows that agree on a clique's separator are shared out over its cells by
    systematic sampling: a cell expected e times among them is given floor(e) or ceil(e) times. Which row gets which cell is
    random, so that attributes are independent given the separator, as in the model.

    With dev the difference between the sample's count and ``rows`` times the model's probability, every clique cell obeys

        |dev(cell)| < 1 + p(cell | separator) * |dev(separator)|,

    dev(separator) being 0 at a root: a root clique is exact to less than one row per cell, and a separator's error is handed
    down in proportion, never amplified.

    Args:
        model: the fitted model.
        rows: number of rows, 1 or more.
        rng: random generator; only for sampling, never for privacy noise.
        given: by attribute, the codes that it may have; the rows then follow the model's exact conditional.
        progress: told how many cliques are done, and of how many.

    Returns:
        Codes [shape=(d, rows), uint16], rows in random order.

    Raises:
        ModelError: ``rows`` is less than 1 or too many for one draw, or a condition is unknown or has no mass.
    """
    if given:
        codes = sample(model.restricted(given), rows, rng)
        for attribute, own in given.items():
            codes[attribute] = np.asarray(own, np.uint16)[codes[attribute]]
        return codes
    if not 1 <= rows < 1 << 32:
        raise ModelError(f"The number of synthetic rows must be 1 .. 2^32 - 1, not {rows}; draw several times.")
    sizes = model.tree.sizes
    codes = np.zeros((len(sizes), rows), np.uint16)
    walk = zip(model.tree.cliques, model.tree.separators, model.beliefs, strict=True)
    for done, (clique, separator, belief) in enumerate(walk):
        if progress is not None:
            progress(done, len(model.tree.cliques))
        new = tuple(a for a in clique if a not in separator)
        stride = {a: math.prod(belief.shape[i + 1 :]) for i, a in enumerate(clique)}
        shape = tuple(sizes[a] for a in separator)
        weights = np.array([math.prod(shape[i + 1 :]) for i in range(len(shape))], np.int64)
        order, counts = draw.group_rows(codes, np.array(separator, np.int64), weights, math.prod(shape))
        offsets = axis_map(shape, [stride[a] for a in separator])
        columns = axis_map([sizes[a] for a in new], [stride[a] for a in new]) if separator else np.zeros(0, np.int64)
        seed = rng.integers(1 << 64, dtype=np.uint64)
        cells = draw.share_out(belief.ravel(), offsets, columns, math.prod(sizes[a] for a in new), counts, seed)
        draw.assign(codes, order, cells, np.array(new, np.int64), np.array([sizes[a] for a in new], np.int64))
    for a, classes in model.classes.items():
        codes[a] = _values(codes[a], classes, rng)
    return codes


def _values(codes: Codes, classes: ValueClasses, rng: np.random.Generator) -> Codes:
    """Values of rows whose classes are known: those of one class are shared out as the rows of a separator's cell are."""
    order = np.argsort(classes.classes, kind="stable")
    width = np.bincount(classes.classes)
    out = np.empty_like(codes)
    rows = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes, minlength=len(width)))[:-1])
    for own, values in zip(rows, np.split(order, np.cumsum(width)[:-1]), strict=True):
        ends = np.cumsum(classes.shares[values]) * len(own)
        # Systematic sampling: of a value expected e times, floor(e) or ceil(e).
        chosen = np.searchsorted(ends, np.arange(len(own)) + rng.random(), side="right")
        out[own] = values[np.minimum(rng.permutation(chosen), len(values) - 1)]
    return out

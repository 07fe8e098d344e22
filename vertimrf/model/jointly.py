"""Estimate the correlations of many columns together: each pair tells a little of all others.

Columns of a table mostly depend on each other by a few common causes, and so do their missing values: who
joined late lacks all that was asked before. Each pair is measured with noise of its own. With d columns
there are d (d - 1) / 2 of them, and a few causes have only some d numbers each.

1. Each column is a variable, and who lacks it another. The correlations of different variables are
   those of a matrix F + diagonal, where F is positive semidefinite. Its distance from what was measured, in
   standard errors, plus a multiple of its trace is least (a nuclear norm; Fazel, Hindi and Boyd, 2001).
   The multiple is the largest that noise alone reaches: the norm of a random symmetric matrix is
   twice the root of the sum of a row's variances (Füredi and Komlós, 1981). So independent columns have F = 0.
   For causes far above noise the multiple is lower, so that they are not weakened (Gavish and Donoho, 2017).
2. What was measured is shrunk towards F by the part of its distance that noise explains (James and
   Stein, 1961), as far as all pairs tell on average.
3. A pair that is farther from F than noise takes any of so many is as it was measured (Donoho and
   Johnstone, 1994): copies of a column share no cause with others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ..arrays import Floats, Integers, Ints
from .copula import Pair, Told, seen

# Least variables, of fewer a few causes say nothing.
LEAST_VARIABLES = 12
# Most causes; the trace leaves those out that noise explains.
CAUSES = 16
# Sweeps over all variables end when none moves farther than this.
SWEEPS, MOVES = 100, 1e-3
# How often causes far above noise get less weight in the trace.
ROUNDS = 2
# Most part of a variable that causes explain: a matrix of correlations has 1 on its diagonal.
MOST = 0.99
# Precision of a uniform prior between -1 and 1, which an estimate of one pair has.
PRIOR = 3.0


def together(
    attributes: Sequence[Ints], pairs: Sequence[Pair], missing: Mapping[int, float]
) -> list[Pair]:
    """Estimate the correlations of all pairs together.

    Args:
        attributes: the two attributes of each pair.
        pairs: what the cells of each tell alone.
        missing: of attributes with missing values, the share of the records that lack them.

    Returns:
        The pairs with joint estimates; as they are if there are few variables.
    """
    informed, values, ends, scales = [], [], [], []
    lean = {a: seen(share) for a, share in missing.items()}
    for (a, b), pair in zip(attributes, pairs, strict=True):
        # A column is variable 2 a, and who lacks it is variable 2 a + 1.
        for variables, told, prior, scale in (
            ((2 * a, 2 * b), pair.present, PRIOR, 1.0),
            ((2 * a + 1, 2 * b), pair.lacking[0], PRIOR, lean.get(a, 1.0)),
            ((2 * a, 2 * b + 1), pair.lacking[1], PRIOR, lean.get(b, 1.0)),
            ((2 * a + 1, 2 * b + 1), pair.both, 0.0 if all(pair.missing) else PRIOR, 1.0),
        ):
            precision = 1 / told.error**2 - prior
            values.append(scale * told.value / (told.error**2 * precision) if precision > 0 else 0)
            informed.append(max(precision, 0.0) / scale**2)
            ends.append(variables)
            scales.append(scale)
    used = np.array(informed) > 0
    names, inverse = np.unique(np.array(ends).reshape(-1, 2)[used], return_inverse=True)
    if len(names) < LEAST_VARIABLES:
        return list(pairs)
    found, errors = jointly(
        np.array(values)[used], np.array(informed)[used], inverse.reshape(-1, 2)
    )
    joint = np.tile([0.0, 1.0], (len(used), 1))
    joint[used] = np.stack([found, errors], axis=1) / np.array(scales)[used, None]
    joint[:, 0] = np.clip(joint[:, 0], -MOST, MOST)
    new = (Told(value, error, True) for value, error in joint.tolist())
    return [
        replace(pair, present=next(new), lacking=(next(new), next(new)), both=next(new))
        for pair in pairs
    ]


def jointly(values: Floats, precisions: Floats, ends: Integers) -> tuple[Floats, Floats]:
    """Estimate correlations together.

    Args:
        values: of each pair of variables, measured with unbiased noise [shape=(n,), float64].
        precisions: one over the variance of each [shape=(n,), float64].
        ends: the variables of each, 0, 1, ... [shape=(n, 2), int64]. A pair may be there more than once.

    Returns:
        Estimates and their standard errors [both shape=(n,), float64].
    """
    count = int(ends.max()) + 1
    weights, sums = np.zeros((count, count)), np.zeros((count, count))
    for i, j in (ends.T, ends.T[::-1]):
        np.add.at(weights, (i, j), precisions)
        np.add.at(sums, (i, j), precisions * values)
    penalties = 2 * np.sqrt(np.maximum(weights.sum(axis=1), np.finfo(float).tiny))
    causes, penalties = _causes(weights, sums, penalties)
    i, j = ends.T
    common = (causes[i] * causes[j]).sum(axis=1)
    # The error of a variable's part in each cause, if those of other variables were known.
    spread = np.linalg.inv(_information(weights, causes, penalties))
    variances = np.einsum("nk,nkl,nl->n", causes[j], spread[i], causes[j])
    variances += np.einsum("nk,nkl,nl->n", causes[i], spread[j], causes[i])
    apart, noise = values - common, 1 / precisions
    expected = np.maximum(1 - variances * precisions, 0.0)
    own = max(float((precisions * apart**2 - expected).sum()) / float(precisions.sum()), 0.0)
    part = own / (own + noise)
    far = np.abs(apart) > math.sqrt(2 * math.log(len(values))) * np.sqrt(noise)
    found = np.where(far, values, common + part * apart)
    errors = np.where(far, noise, (1 - part) ** 2 * variances + part * noise)
    return found, np.sqrt(errors)


def _information(weights: Floats, causes: Floats, penalties: Floats) -> Floats:
    """Of each variable, the information on its parts [shape=(variables, causes, causes), float64]."""
    out = np.einsum("ij,jk,jl->ikl", weights, causes, causes, optimize=True)
    every = range(causes.shape[1])
    out[:, every, every] += penalties
    return np.asarray(out)


def _causes(weights: Floats, sums: Floats, penalties: Floats) -> tuple[Floats, Floats]:
    """Each variable's part in each cause, of which F is the product with itself, and the weight of
    its square [both shape=(variables, causes), float64].

    Args:
        weights: precision of each two variables' correlation [shape=(variables, variables)].
        sums: the same times the correlation.
        penalties: weight of each variable in the trace [shape=(variables,)].
    """
    scale = 1 / np.sqrt(penalties)
    roots, axes = np.linalg.eigh(scale[:, None] * sums * scale)
    most = min(CAUSES, len(sums))
    causes = scale[:, None] * axes[:, -most:] * np.sqrt(np.maximum(roots[-most:], 1e-3))
    relief = np.ones(most)
    for _ in range(ROUNDS):
        _fitted(weights, sums, penalties[:, None] * relief, causes)
        # Turned to the axes of F.
        causes = causes @ np.linalg.svd(causes / scale[:, None])[2].T
        squares = np.square(causes)
        strength = (squares * (weights @ squares)).sum(axis=0)
        over = strength / np.maximum(penalties @ squares, np.finfo(float).tiny) + relief
        relief = over - np.sqrt(np.maximum(np.square(over) - 1, 0.0))
        relief = np.where(over > 1, relief, 1.0)
    _fitted(weights, sums, penalties[:, None] * relief, causes)
    return causes, penalties[:, None] * relief


def _fitted(weights: Floats, sums: Floats, penalties: Floats, causes: Floats) -> None:
    """Fit variables' parts in causes, in place, one variable after the other."""
    every = range(causes.shape[1])
    for _ in range(SWEEPS):
        moved = 0.0
        for a in range(len(causes)):
            information = (causes * weights[a][:, None]).T @ causes
            information[every, every] += penalties[a]
            new = np.linalg.solve(information, sums[a] @ causes)
            new *= min(1.0, math.sqrt(MOST) / max(float(np.linalg.norm(new)), 1e-9))
            moved = max(moved, float(np.abs(new - causes[a]).max()))
            causes[a] = new
        if moved < MOVES:
            return

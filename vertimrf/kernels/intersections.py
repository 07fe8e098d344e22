"""Cardinality estimation kernels: counts with standard errors from the sketches of a pair.

Axes: u, w = values of the left and right group; k = hash keys; l = levels above the floor (0 =
floor, last = ceiling).
"""

from __future__ import annotations

import numpy as np

from ..arrays import Bytes, Floats, Int32s
from .jit import callee, in_slices, kernel

# Within this many standard errors of the start, one scoring step gives the estimate.
NEAR = 3.0
# Fewest cells worth a thread.
SHARE = 64


def joint_histograms(left: Bytes, right: Bytes, floor: int, levels: int) -> Int32s:
    """Count the pairs of levels over the keys for every cell (value of left, value of right).

    Args:
        left: published levels, each in floor .. floor + levels - 1 [shape=(u, k), uint8].
        right: published levels under the same keys [shape=(w, k), uint8].
        floor: lowest published level.
        levels: number of distinct levels l.

    Returns:
        Histograms, each of which sums to k [shape=(u, w, l, l), int32].
    """
    rows, columns = len(left), len(right)
    out = np.empty((rows * columns, levels * levels), np.int32)
    in_slices(
        len(out), 1, lambda begin, end: _count_levels(left, right, floor, levels, begin, end, out)
    )
    return out.reshape(rows, columns, levels, levels)


@kernel
def _count_levels(left, right, floor, levels, begin, end, out):  # type: ignore[no-untyped-def]
    keys = left.shape[1]
    columns = right.shape[0]
    cells = levels * levels
    # Four interleaved histograms: equal neighbouring levels are common, and one counter would wait
    # for its own store.
    parts = np.empty((4, cells), np.int32)
    for cell in range(begin, end):
        for s in range(cells):
            for q in range(4):
                parts[q, s] = 0
        a = left[cell // columns]
        b = right[cell % columns]
        whole = keys - keys % 4
        for k in range(0, whole, 4):
            for q in range(4):
                parts[q, (np.int64(a[k + q]) - floor) * levels + np.int64(b[k + q]) - floor] += 1
        for k in range(whole, keys):
            parts[0, (np.int64(a[k]) - floor) * levels + np.int64(b[k]) - floor] += 1
        for s in range(cells):
            out[cell, s] = parts[0, s] + parts[1, s] + parts[2, s] + parts[3, s]


@callee
def _score_and_information(log_cdf, a, b, c, histogram, cdf, score, information):  # type: ignore[no-untyped-def]
    """Score of the histogram and Fisher information of one key, for set sizes a, b and intersection
    c.

    Writes ``score`` [shape=(3,)] and ``information`` [shape=(3, 3), upper triangle]. ``cdf``
    [shape=(l + 1, l + 1)] is a work array whose first row and column stay 0.
    """
    levels = log_cdf.shape[0]
    for x in range(levels):
        for y in range(levels):
            cdf[x + 1, y + 1] = np.exp(a * log_cdf[x] + b * log_cdf[y] - c * log_cdf[max(x, y)])
    for x in range(3):
        score[x] = 0.0
        for y in range(3):
            information[x, y] = 0.0
    for x in range(levels):
        log_x = log_cdf[x]
        log_x1 = log_cdf[x - 1] if x > 0 else 0.0
        for y in range(levels):
            log_y = log_cdf[y]
            log_y1 = log_cdf[y - 1] if y > 0 else 0.0
            here, left, down, corner = cdf[x + 1, y + 1], cdf[x, y + 1], cdf[x + 1, y], cdf[x, y]
            p = here - left - down + corner
            # Far tails lose all digits to cancellation and carry almost no information.
            if p > 1e-14:
                da = log_x * (here - down) - log_x1 * (left - corner)
                db = log_y * (here - left) - log_y1 * (down - corner)
                dc = -log_cdf[max(x, y)] * here
                if x > 0:
                    dc += log_cdf[max(x - 1, y)] * left
                if y > 0:
                    dc += log_cdf[max(x, y - 1)] * down
                if x > 0 and y > 0:
                    dc -= log_cdf[max(x, y) - 1] * corner
                share = histogram[x, y] / p
                score[0] += share * da
                score[1] += share * db
                score[2] += share * dc
                information[0, 0] += da * da / p
                information[0, 1] += da * db / p
                information[0, 2] += da * dc / p
                information[1, 1] += db * db / p
                information[1, 2] += db * dc / p
                information[2, 2] += dc * dc / p


def solve_intersections(
    histograms: Int32s,
    left_sizes: Floats,
    right_sizes: Floats,
    left_errors: Floats,
    right_errors: Floats,
    total: float,
    phantoms: float,
    log_cdf: Floats,
) -> tuple[Floats, Floats]:
    """Maximum-likelihood size of every cell's intersection by Fisher scoring.

    Margins are known up to Gaussian errors.

    Let F be the distribution of one hash level. For set sizes a, b, phantoms N and intersection c,
    P(W <= x, W' <= y) = F(x)^(a+N) F(y)^(b+N) F(max(x, y))^(-c). The likelihood is maximised over
    a, b and c together, with Gaussian priors on a and b around the given margins. So errors of the
    margins are neither passed on in full nor left out of the standard error. Estimates may be
    negative, so that they are unbiased at c = 0.

    Args:
        histograms: joint level counts [shape=(u, w, l, l), int32].
        left_sizes: set sizes of the left values, in records [shape=(u,), float64].
        right_sizes: set sizes of the right values, in records [shape=(w,), float64].
        left_errors: standard errors of the left set sizes, 0 if known [shape=(u,), float64].
        right_errors: standard errors of the right set sizes, 0 if known [shape=(w,), float64].
        total: number of records; the iteration starts at independence.
        phantoms: phantom records per sketch.
        log_cdf: log F at every published level, 0 at the ceiling [shape=(l,), float64].

    Returns:
        Counts, and their standard errors from the Fisher information [both shape=(u, w), float64].
    """
    counts, errors = np.empty(histograms.shape[:2]), np.empty(histograms.shape[:2])
    sides = (
        left_sizes,
        right_sizes,
        left_errors,
        right_errors,
        float(total),
        float(phantoms),
        log_cdf,
    )
    in_slices(
        counts.size,
        SHARE,
        lambda begin, end: _solve(histograms, *sides, begin, end, counts, errors),
    )
    return counts, errors


@kernel
def _solve(  # type: ignore[no-untyped-def]
    histograms,
    left_sizes,
    right_sizes,
    left_errors,
    right_errors,
    total,
    phantoms,
    log_cdf,
    begin,
    end,
    counts,
    errors,
):
    columns = right_sizes.size
    levels = log_cdf.size
    cdf = np.zeros((levels + 1, levels + 1))
    score = np.empty(3)
    fisher = np.empty((3, 3))
    for cell in range(begin, end):
        i = cell // columns
        j = cell % columns
        histogram = histograms[i, j]
        keys = 0.0
        for x in range(levels):
            for y in range(levels):
                keys += histogram[x, y]
        sa = left_errors[i]
        sb = right_errors[j]
        # Set sizes are iterated in units of their standard errors, so that known margins (error 0)
        # need no special case.
        za = 0.0
        zb = 0.0
        start = max(left_sizes[i] * right_sizes[j] / max(total, 1.0), 0.0)
        c = min(start, min(left_sizes[i], right_sizes[j]) + 0.5 * phantoms)
        step = 0.0
        information = 0.0
        for iteration in range(30):
            # Outside these bounds an exponent changes sign and the law is no distribution.
            a = max(left_sizes[i] + sa * za, 0.0) + phantoms
            b = max(right_sizes[j] + sb * zb, 0.0) + phantoms
            low = -0.5 * phantoms
            high = min(a, b) - 0.5 * phantoms
            c = min(max(c, low), high)
            step = 0.0
            _score_and_information(log_cdf, a, b, c, histogram, cdf, score, fisher)
            maa = 1.0 + sa * sa * keys * fisher[0, 0]
            mbb = 1.0 + sb * sb * keys * fisher[1, 1]
            mab = sa * sb * keys * fisher[0, 1]
            ua = sa * keys * fisher[0, 2]
            ub = sb * keys * fisher[1, 2]
            ga = sa * score[0] - za
            gb = sb * score[1] - zb
            determinant = maa * mbb - mab * mab
            ra = (mbb * ua - mab * ub) / determinant
            rb = (maa * ub - mab * ua) / determinant
            information = keys * fisher[2, 2] - ra * ua - rb * ub
            if information <= 0.0:
                break
            step = (score[2] - ra * ga - rb * gb) / information
            # Near the start, whose information does not depend on the sketches, one step is
            # efficient. More steps would add a bias of order 1 / keys and a standard error that
            # depends on the estimate.
            if iteration == 0 and abs(step) * np.sqrt(information) < NEAR:
                break
            nearer = min(max(c + step, low), high)
            moved = abs(nearer - c)
            ha = ga - ua * (nearer - c)
            hb = gb - ub * (nearer - c)
            moved_a = (mbb * ha - mab * hb) / determinant
            moved_b = (maa * hb - mab * ha) / determinant
            if moved * np.sqrt(information) < 1e-3 and abs(moved_a) + abs(moved_b) < 1e-3:
                break
            za += moved_a
            zb += moved_b
            c = nearer
            step = 0.0
        # The last step is not clamped, so that the estimate stays unbiased at the bounds.
        counts[i, j] = c + step
        errors[i, j] = 1.0 / np.sqrt(information) if information > 0.0 else np.inf

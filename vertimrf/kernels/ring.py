"""Products of polynomials modulo x^N + 1 and several primes, for encrypted counts.

The primes are below 2^31 and 1 modulo 2N, so that x^N + 1 has N roots modulo each. The
number-theoretic transform is that of Longa and Naehrig (CANS 2016), without permutations. A product
by a number w that is known beforehand takes floor(2^32 w / p) in place of a division (Shoup; in
Harvey, Journal of Symbolic Computation 60, 2014).

The stages that combine coefficients less than LANES apart work on columns of LANES coefficients, so
that all inner loops are over neighbours. Values at the roots stay in that order, and tables of
powers of a root have it too (:func:`order_of_powers`).

Axes: p = primes, N = coefficients, v = sums, c = slots, g = groups.
"""

from __future__ import annotations

import numpy as np

from ..arrays import Integers
from .jit import callee, kernel

U32, U64 = np.uint32, np.uint64
LANES = 8


def order_of_powers(size: int) -> Integers:
    """Exponents of the root in tables for :func:`add_products`, of a power of two of at least 16."""
    digits = size.bit_length() - 1
    order = np.array([int(f"{i:0{digits}b}"[::-1], 2) for i in range(size)])
    columns = size // LANES
    for stage in range(columns, size, columns):
        if stage & (stage - 1) == 0:
            order[stage : 2 * stage] = order[stage : 2 * stage].reshape(columns, -1).T.ravel()
    return order


@callee(forceinline=True)
def _times(x, w, companion, q):  # type: ignore[no-untyped-def]
    """Product x w modulo q, for x below q."""
    r = U32(U64(x) * U64(w) - ((U64(x) * U64(companion)) >> U64(32)) * U64(q))
    return min(r, U32(r - q))


@callee(forceinline=True)
def _plus(x, y, q):  # type: ignore[no-untyped-def]
    r = U32(x + y)
    return min(r, U32(r - q))


@callee(forceinline=True)
def _minus(x, y, q):  # type: ignore[no-untyped-def]
    r = U32(x - y)
    return min(r, U32(r + q))


@callee(forceinline=True)
def _residue(small, q):  # type: ignore[no-untyped-def]
    """The residue of an integer between -q and q."""
    return U32(np.int64(small) + np.int64(q) * np.int64(small < 0))


@callee
def _forward(a, roots, companions, q, out):  # type: ignore[no-untyped-def]
    """Values at the roots of a polynomial, whose coefficients are overwritten."""
    columns = a.shape[0] // LANES
    t, m = a.shape[0], 1
    while m < columns:
        t //= 2
        for i in range(m):
            w, s = roots[m + i], companions[m + i]
            low, high = a[2 * i * t : (2 * i + 1) * t], a[(2 * i + 1) * t : (2 * i + 2) * t]
            for j in range(t):
                x, y = low[j], _times(high[j], w, s, q)
                low[j], high[j] = _plus(x, y, q), _minus(x, y, q)
        m *= 2
    for i in range(columns):
        for j in range(LANES):
            out[j * columns + i] = a[LANES * i + j]
    while t > 1:
        t //= 2
        for row in range(LANES):
            if row & t:
                continue
            first = m + row // (2 * t) * columns
            w, s = roots[first : first + columns], companions[first : first + columns]
            low = out[row * columns : (row + 1) * columns]
            high = out[(row + t) * columns : (row + t + 1) * columns]
            for j in range(columns):
                x, y = low[j], _times(high[j], w[j], s[j], q)
                low[j], high[j] = _plus(x, y, q), _minus(x, y, q)
        m *= 2


@callee
def _inverse(values, roots, companions, scale, scaling, q, out):  # type: ignore[no-untyped-def]
    """Coefficients of a polynomial, whose values at the roots are overwritten."""
    columns = values.shape[0] // LANES
    t, m = 1, values.shape[0] // 2
    while t < LANES:
        for row in range(LANES):
            if row & t:
                continue
            first = m + row // (2 * t) * columns
            w, s = roots[first : first + columns], companions[first : first + columns]
            low = values[row * columns : (row + 1) * columns]
            high = values[(row + t) * columns : (row + t + 1) * columns]
            for j in range(columns):
                x, y = low[j], high[j]
                low[j], high[j] = _plus(x, y, q), _times(_minus(x, y, q), w[j], s[j], q)
        t *= 2
        m //= 2
    for i in range(columns):
        for j in range(LANES):
            out[LANES * i + j] = _times(values[j * columns + i], scale, scaling, q)
    while m >= 1:
        for i in range(m):
            w, s = roots[m + i], companions[m + i]
            low, high = out[2 * i * t : (2 * i + 1) * t], out[(2 * i + 1) * t : (2 * i + 2) * t]
            for j in range(t):
                x, y = low[j], high[j]
                low[j], high[j] = _plus(x, y, q), _times(_minus(x, y, q), w, s, q)
        t *= 2
        m //= 2


@kernel
def add_products(small, factor, multiples, roots, companions, moduli, first, last, out):  # type: ignore[no-untyped-def]
    """Add products of polynomials with small coefficients by one that is transformed.

    Args:
        small: coefficients, below the primes in absolute value [shape=(v, N), int8].
        factor: the factor's values at the roots [shape=(p, N), uint32].
        multiples: companions of the factor's values [shape=(p, N), uint32].
        roots: powers of a root of x^N + 1 [shape=(p, N), uint32].
        companions: of the roots [shape=(p, N), uint32].
        moduli: the primes [shape=(p,), uint32].
        first, last: range of polynomials times primes.
        out: sums so far, at the roots [shape=(v, p, N), uint32].
    """
    coefficients = np.empty(small.shape[1], np.uint32)
    values = np.empty(small.shape[1], np.uint32)
    for task in range(first, last):
        v, p = task // moduli.shape[0], task % moduli.shape[0]
        q, row, total, a, s = moduli[p], small[v], out[v, p], factor[p], multiples[p]
        for k in range(row.shape[0]):
            coefficients[k] = _residue(row[k], q)
        _forward(coefficients, roots[p], companions[p], q, values)
        for k in range(row.shape[0]):
            total[k] = _plus(total[k], _times(values[k], a[k], s[k], q), q)


@kernel
def constants(x, factor, multiples, errors, inverses, companions, scales, moduli, first, last, out):  # type: ignore[no-untyped-def]
    """Constant coefficients of x^k times a product, plus an error, for every k.

    The constant coefficient of x^k b is b_0 for k = 0, and -b_(N - k) for other k.

    Args:
        x: values at the roots of one factor of each product [shape=(c, p, N), uint32].
        factor: those of the other factor [shape=(p, N), uint32].
        multiples: companions of the factor's values [shape=(p, N), uint32].
        errors: below the primes in absolute value [shape=(c, N), int8].
        inverses: powers of the inverse of the root [shape=(p, N), uint32].
        companions: of the inverses [shape=(p, N), uint32].
        scales: 1 / N and its companion [shape=(p, 2), uint32].
        moduli: the primes [shape=(p,), uint32].
        first, last: range of products times primes.
        out: the coefficients by k [shape=(c, p, N), uint32].
    """
    size = out.shape[2]
    values, b = np.empty(size, np.uint32), np.empty(size, np.uint32)
    for task in range(first, last):
        c, p = task // moduli.shape[0], task % moduli.shape[0]
        q, one, a, s = moduli[p], x[c, p], factor[p], multiples[p]
        for k in range(size):
            values[k] = _times(one[k], a[k], s[k], q)
        _inverse(values, inverses[p], companions[p], scales[p, 0], scales[p, 1], q, b)
        row, error = out[c, p], errors[c]
        row[0] = _plus(b[0], _residue(error[0], q), q)
        for k in range(1, size):
            row[k] = _minus(_residue(error[k], q), b[size - k], q)


@kernel
def add_marks(places, slots, marks, moduli, out):  # type: ignore[no-untyped-def]
    """Add to the coefficients of every row what its values mark.

    Args:
        places: by group and row, a mark, or -1 for a blank [shape=(g, rows), int64].
        slots: the slot of every mark [shape=(marks,), int64].
        marks: what is added [shape=(marks, p), uint32].
        moduli: the primes [shape=(p,), uint32].
        out: coefficients; there may be more than rows [shape=(c, p, N), uint32].
    """
    for g in range(places.shape[0]):
        for k in range(places.shape[1]):
            mark = places[g, k]
            if mark >= 0:
                for p in range(moduli.shape[0]):
                    slot = slots[mark]
                    out[slot, p, k] = _plus(out[slot, p, k], marks[mark, p], moduli[p])


@kernel
def weigh(weights, rows, first, last, out):  # type: ignore[no-untyped-def]
    """Sums of coefficients with small weights.

    Args:
        weights: [shape=(v, N), int8].
        rows: coefficients below 2^31 [shape=(c, N), uint32].
        first, last: range of rows.
        out: sums, exact for N up to 2^24 [shape=(v, c), int64].
    """
    for c in range(first, last):
        row = rows[c]
        for v in range(weights.shape[0]):
            weight, total = weights[v], np.int64(0)
            for k in range(row.shape[0]):
                total += np.int64(weight[k]) * np.int64(row[k])
            out[v, c] = total


@kernel
def centred_binomial(words, out):  # type: ignore[no-untyped-def]
    """Ones among 21 bits less those among 21 others, of the low 42 bits of every word.

    Args:
        words: uniform bits [shape=(n,), uint64].
        out: draws [shape=(n,), int8].
    """
    odd, pairs, fours = (
        U64(0x5555555555555555),
        U64(0x3333333333333333),
        U64(0x0F0F0F0F0F0F0F0F),
    )
    low = U64((1 << 21) - 1)
    for i in range(words.shape[0]):
        # One count of 42 bits: ones of the second half are counted where they are missing.
        x = (words[i] & U64((1 << 42) - 1)) ^ (low << U64(21))
        x = x - ((x >> U64(1)) & odd)
        x = (x & pairs) + ((x >> U64(2)) & pairs)
        x = (x + (x >> U64(4))) & fours
        out[i] = np.int64((x * U64(0x0101010101010101)) >> U64(56)) - 21

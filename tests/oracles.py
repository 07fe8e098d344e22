"""Slow, obvious counterparts of what the kernels do, and the tests of fit that several test files share."""

import hashlib
import itertools
import math

import numpy as np
from hypothesis import strategies as st
from scipy import stats

from vertimrf.privacy import accountant

# Statistical tests reject at p < ALPHA under the exact law.
ALPHA = 1e-4


def cdf(levels, records, ceiling):
    """P(max of ``records`` levels <= l) with the ceiling."""
    return np.where(levels >= ceiling, 1.0, (1 - 2.0 ** -np.asarray(levels, float)) ** records)


def crossed(columns, sizes):
    """How many records have each combination of values [shape=sizes]."""
    cells = np.ravel_multi_index(tuple(columns), tuple(sizes))
    return np.bincount(cells, minlength=np.prod(sizes)).reshape(sizes)


def enumerated_sketches(event):
    """Laws of the sketches that a record touches under one key, without and with it, over all their levels."""
    levels = np.arange(event.floor, event.ceiling + 1)

    def clipped(cdf):
        cdf = np.append(cdf[:-1], 1.0)
        return np.diff(cdf, prepend=0.0)

    one = 1 - (1 + event.gamma) ** -levels.astype(float)
    draw, phantom = clipped(one), clipped(one**event.phantoms)
    d = event.attributes_per_key
    absent, present = np.zeros((2, *[len(levels)] * d))
    for w in itertools.product(range(len(levels)), repeat=d):
        p = math.prod(phantom[i] for i in w)
        absent[w] += p
        for h, f in enumerate(draw):
            present[tuple(max(i, h) for i in w)] += p * f
    return absent.ravel(), present.ravel()


def half_integer_gaussian(variance):
    """Noise of a counter: values and probabilities, written down as they stand."""
    reach = math.ceil(12 * math.sqrt(variance))
    values = np.arange(-reach + 0.5, reach)
    weights = np.exp(-(values**2) / (2 * variance))
    return values, weights / weights.sum()


def marginal_of(table, attributes):
    """Sums of a table over all other attributes, in the order in which these are named."""
    kept = sorted(attributes)
    sums = table.sum(axis=tuple(a for a in range(table.ndim) if a not in kept))
    return sums.transpose([kept.index(a) for a in attributes])


def joint_of(model):
    """A model's probabilities of all combinations, from its factors, those beyond its tree among them."""
    logs = np.zeros(model.sizes)
    for f in (*model.factors, *model.off_tree):
        logs = logs + f.logs.reshape(
            [size if a in f.attributes else 1 for a, size in enumerate(model.sizes)]
        )
    joint = np.exp(logs - logs.max())
    return joint / joint.sum()


def highest_levels(rng, records, keys):
    """Highest of so many geometric levels under each key, by one draw of the inverse law; 0 of none [shape=(keys,)]."""
    if records == 0:
        return np.zeros(keys, np.int64)
    return np.ceil(-np.log2(-np.expm1(np.log(rng.random(keys)) / records))).astype(np.int64)


def chi_square(counts, probabilities):
    """p-value of counts against cell probabilities, cells pooled until five are expected in each."""
    assert not counts[probabilities <= 0].any()
    counts, probabilities = counts[probabilities > 0], probabilities[probabilities > 0]
    order = np.argsort(probabilities)
    expected, seen = (probabilities * counts.sum())[order], counts[order].astype(float)
    group = np.minimum(
        np.floor(np.cumsum(expected) / 5), max(np.floor(expected.sum() / 5) - 1, 0)
    ).astype(int)
    _, group = np.unique(group, return_inverse=True)
    expected, seen = np.bincount(group, expected), np.bincount(group, seen)
    statistic = float(((seen - expected) ** 2 / expected).sum())
    return float(stats.chi2.sf(statistic, len(expected) - 1))


def by_pld(events, delta):
    """Composed epsilon after each event by loss distributions alone, where Rényi divergences might be smaller."""
    losses = accountant._losses(events, delta)
    return np.array(
        [
            max(accountant._compose(one[: n + 1], delta).epsilon(delta) for one in losses)
            for n in range(len(events))
        ]
    )


def mbi_loss(model, measurements):
    """Half of the squared residuals of mbi's measurements, in their standard errors."""
    off = (
        (m.query(model.project(m.clique)) - m.noisy_measurement) / m.stddev for m in measurements
    )
    return sum(0.5 * float(np.square(np.asarray(one)).sum()) for one in off)


MASK = 2**64 - 1


def rotl(x, k):
    return (x << k | x >> (64 - k)) & MASK


def siphash(key, message, wide=False):
    """SipHash-2-4, written from the paper; ``wide`` has 128 bits of output, as its authors' reference does."""
    k0, k1 = int.from_bytes(key[:8], "little"), int.from_bytes(key[8:], "little")
    longer = 0xEE if wide else 0
    v = [
        k0 ^ 0x736F6D6570736575,
        k1 ^ 0x646F72616E646F6D ^ longer,
        k0 ^ 0x6C7967656E657261,
        k1 ^ 0x7465646279746573,
    ]

    def rounds(count):
        for _ in range(count):
            v[0] = (v[0] + v[1]) & MASK
            v[1] = rotl(v[1], 13) ^ v[0]
            v[0] = rotl(v[0], 32)
            v[2] = (v[2] + v[3]) & MASK
            v[3] = rotl(v[3], 16) ^ v[2]
            v[0] = (v[0] + v[3]) & MASK
            v[3] = rotl(v[3], 21) ^ v[0]
            v[2] = (v[2] + v[1]) & MASK
            v[1] = rotl(v[1], 17) ^ v[2]
            v[2] = rotl(v[2], 32)

    padded = message + bytes(-(len(message) + 1) % 8) + bytes([len(message) % 256])
    for at in range(0, len(padded), 8):
        word = int.from_bytes(padded[at : at + 8], "little")
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 0xEE if wide else 0xFF
    rounds(4)
    low = v[0] ^ v[1] ^ v[2] ^ v[3]
    if not wide:
        return low
    v[1] ^= 0xDD
    rounds(4)
    return low | (v[0] ^ v[1] ^ v[2] ^ v[3]) << 64


def drawn_combinations(draw, sizes, least, most):
    """From ``least`` to ``most`` combinations of codes, each of ``least`` to three attributes."""
    places = st.sets(st.integers(0, len(sizes) - 1), min_size=least, max_size=3)
    codes = [st.sets(st.integers(0, size - 1), min_size=1) for size in sizes]
    return [
        tuple((a, tuple(sorted(draw(codes[a])))) for a in sorted(draw(places)))
        for _ in range(draw(st.integers(least, most)))
    ]


def possible(sizes, combinations):
    """Every record, and whether it is possible, by looking at each [shape=sizes]."""
    out = np.ones(sizes, bool)
    for record in itertools.product(*map(range, sizes)):
        out[record] = not any(
            all(record[a] in codes for a, codes in combination) for combination in combinations
        )
    return out


def fingerprints(tables, count, group):
    """One SHA-256 for so many of ``count`` lists of tables: shapes and numbers, in order."""
    for first in range(0, count, group):
        digest = hashlib.sha256()
        for number in range(first, first + group):
            for table in tables(number):
                digest.update(repr(table.shape).encode() + np.ascontiguousarray(table).tobytes())
        yield digest.hexdigest()

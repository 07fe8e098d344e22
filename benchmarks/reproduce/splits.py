"""Attribute splits: the paper's, even ones, and by importance and by correlation (Wu et al., VertiBench, ICLR 2024, section 4).

*Importance*: shares r ~ Dirichlet(alpha, ..., alpha); every party gets one attribute drawn at random, each other attribute goes
to party k with probability r_k. The expected sum of attribute importances, whatever they are, is then proportional to r: no
importance has to be computed. Small alpha makes unequal parties, large alpha equal ones.

*Correlation*: Pcor of a block of the Spearman correlation matrix is the standard deviation of its singular values over the
square root of how many they are; Icor is the mean over parties of Pcor with other parties less Pcor within. A split is chosen
whose Icor is (1 - beta) min + beta max. VertiBench searches by a genetic algorithm; up to LISTED splits are all listed here,
which is exact, and beyond as many are drawn.
"""

import itertools
import math

import numpy as np
from scipy import stats

LISTED = 20_000
# Splits whose Icor is this close to the target, as part of the range, count as hits; one of them is drawn.
TOLERANCE = 0.005


def even_counts(attributes, parties):
    """Attributes per party, as equal as can be, larger ones first."""
    least, more = divmod(attributes, parties)
    return (least + 1,) * more + (least,) * (parties - more)


def deal(counts):
    """Attributes of each party, dealt in order."""
    ends = np.cumsum(counts)
    return tuple(
        tuple(range(int(end) - count, int(end))) for end, count in zip(ends, counts, strict=True)
    )


def by_importance(attributes, parties, alpha, seed):
    """Attributes of each party, at least one each."""
    rng = np.random.default_rng([seed, 1])
    shares = rng.dirichlet([alpha] * parties)
    order = rng.permutation(attributes)
    columns = [[int(order[party])] for party in range(parties)]
    for attribute, party in zip(
        order[parties:], rng.choice(parties, attributes - parties, p=shares), strict=True
    ):
        columns[party].append(int(attribute))
    return tuple(tuple(sorted(party)) for party in columns)


def spearman(codes):
    """Rank correlations [shape=(d, d)]; a constant attribute has none."""
    ranks = np.stack([stats.rankdata(row) for row in codes])
    ranks -= ranks.mean(axis=1, keepdims=True)
    norms = np.sqrt((ranks**2).sum(axis=1))
    ranks /= np.where(norms > 0, norms, 1)[:, None]
    return ranks @ ranks.T


def pcor(block):
    """Spread of the singular values of a block of the correlation matrix; 0 for a single one."""
    values = np.linalg.svd(block, compute_uv=False)
    return float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else 0.0


def icor(correlations, split):
    """Correlation between parties less correlation within, mean over parties."""
    m = len(split)
    score = np.empty((m, m))
    for i, j in itertools.combinations_with_replacement(range(m), 2):
        score[i, j] = score[j, i] = pcor(correlations[np.ix_(split[i], split[j])])
    return float(
        np.mean([(score[i].sum() - score[i, i]) / (m - 1) - score[i, i] for i in range(m)])
    )


def by_correlation(codes, counts, beta, seed):
    """Attributes of each party, so many each, whose Icor lies at beta between the least and the greatest."""
    correlations = spearman(codes)
    rng = np.random.default_rng([seed, 2])
    splits = list(candidates(len(codes), counts))
    scores = np.array([icor(correlations, split) for split in splits])
    low, high = scores.min(), scores.max()
    error = np.abs(scores - ((1 - beta) * low + beta * high))
    hits = np.flatnonzero(error <= max(error.min(), TOLERANCE * (high - low)))
    return splits[int(rng.choice(hits))]


def candidates(attributes, counts):
    """All splits into two parties, or many of them, or of more parties; the same ones at every call."""
    everything = range(attributes)
    if len(counts) == 2 and math.comb(attributes, counts[0]) <= LISTED:
        return [
            (columns, tuple(i for i in everything if i not in columns))
            for columns in itertools.combinations(everything, counts[0])
            if counts[0] != counts[1] or 0 in columns  # the parties of equal halves may be swapped
        ]
    rng = np.random.default_rng(0)
    ends = np.cumsum(counts)[:-1]
    return [
        tuple(
            tuple(sorted(map(int, columns)))
            for columns in np.split(rng.permutation(attributes), ends)
        )
        for _ in range(LISTED)
    ]

"""Privacy loss from outside of scheduled pairs and encrypted counts: the likelihood ratio, against what the ledger states."""

from __future__ import annotations

import hashlib
import itertools
import math

import numpy as np

from benchmarks.attacks.audit import encrypted_counts, evidence, log_ratio
from vertimrf.privacy.events import GaussianEvent, SketchEvent
from vertimrf.privacy.noise import FixedNoise
from vertimrf.releases.scheduled_pairs.encoding import SketchEncoder
from vertimrf.releases.scheduled_pairs.parameters import ScheduledPair, ScheduledPairs

from .found import Found, mu_of

# Phantoms of a sketch, and keys of a try.
PHANTOMS, KEYS = 150, 8000
# Noise of encrypted counts in records, tables of a try, other records, and most tries at a time.
SIGMA, TABLES, OTHERS, AT_ONCE = 4.0, 36, 4, 250


def distance(log_p: np.ndarray, log_ratio: np.ndarray) -> float:
    """How far apart the log ratios of two laws are, in standard deviations.

    Args:
        log_p: log probabilities of all outcomes without a record.
        log_ratio: log of the ratio of those with it.
    """
    means, spreads = [], []
    for log_law in (log_p + log_ratio, log_p):
        law = np.exp(log_law) / np.exp(log_law).sum()
        means.append(float(law @ log_ratio))
        spreads.append(float(law @ (log_ratio - means[-1]) ** 2))
    return (means[0] - means[1]) / math.sqrt(sum(spreads) / 2)


def pair(tries: int, seed: int = 1, less: float = 1.0) -> Found:
    """Scheduled pairs of one record, against none; less noise is fewer phantoms.

    Stated is the distance of the two laws of the log ratio that the ledger composes.
    """
    levels = max(int(math.log2(PHANTOMS)) - 4, 0), round(math.log2(PHANTOMS)) + 7
    event = SketchEvent(round(PHANTOMS / less), *levels, KEYS)
    table = log_ratio(PHANTOMS, *levels, 2)
    digest, code = np.array([12345], np.uint64), np.zeros((1, 1), np.uint16)
    ratios: list[list[np.ndarray]] = [[], []]
    for number, present in itertools.product(range(-(-tries // AT_ONCE)), (True, False)):
        size = min(AT_ONCE, tries - number * AT_ONCE)
        one = ScheduledPair(0, 1, size * KEYS)
        plan = ScheduledPairs(PHANTOMS, *levels, (one,), (1, 1))
        secret = hashlib.blake2b(f"{seed} {number} {present}".encode(), digest_size=32).digest()
        touched = []
        for side in (0, 1):
            encoder = SketchEncoder(plan, [side], secret)
            if present:
                encoder.update(digest, code)
            noise = FixedNoise(((1000 * seed + number) * 2 + present) * 2 + side)
            touched.append(encoder.result(noise.stream(lambda: b""))[0][0])
        ratios[not present].append(evidence(np.array(touched), table, KEYS))
    mu = math.sqrt(KEYS) * distance(*event.atoms)
    return mu_of("scheduled pairs", mu, *map(np.concatenate, ratios))


def encrypted(tries: int, seed: int = 1, less: float = 1.0) -> Found:
    """Encrypted counts of one record, against none, to the server and one of two parties, which knows its own noise."""
    event = GaussianEvent(SIGMA / less, 1, TABLES)
    seeds = itertools.count(1_000_000 * seed)
    together = min(AT_ONCE, tries)
    _, run = encrypted_counts(0, SIGMA, TABLES, OTHERS, lambda: FixedNoise(next(seeds)), together)
    ratios = [
        np.concatenate([run(there, min(together, tries - n)) for n in range(0, tries, together)])
        for there in (True, False)
    ]
    # But for a constant factor, that is the log ratio.
    ratios = [sums - TABLES / 2 for sums in ratios]
    return mu_of("encrypted counts", math.sqrt(2 * event.rho), *ratios)

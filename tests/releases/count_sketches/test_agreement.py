"""Sketches of agreement: what they tell, and that the price of a record whose values agree covers one whose values differ."""

import os

import numpy as np
import pytest

from vertimrf.privacy.count_sketch import excess
from vertimrf.releases.count_sketches.agreement import agreeing, value_words
from vertimrf.releases.count_sketches.encoding import CountSketchEncoder
from vertimrf.releases.count_sketches.parameters import CountSketches

RECORDS, VALUES = 4000, 30


def holders_of(rates, seed):
    """Digests, and each holder's values: the first's, but for others in a part of the records."""
    rng = np.random.default_rng(seed)
    first = rng.integers(0, VALUES, RECORDS)
    codes = []
    for rate in rates:
        wrong = rng.random(RECORDS) < rate
        codes.append(
            np.where(wrong, (first + rng.integers(1, VALUES, RECORDS)) % VALUES, first).astype(
                np.uint16
            )
        )
    return rng.integers(0, 1 << 63, RECORDS).astype(np.uint64), codes


def published(
    plan,
    holder,
    secret,
    digests,
    codes,
    stated,
    entropy,
):
    """One party's sketch, of records by id and value."""
    encoder = CountSketchEncoder(plan, (holder,), secret)
    encoder.update(digests ^ value_words(secret, VALUES)[codes], np.zeros((1, RECORDS), np.uint16))
    (table,) = encoder.result([np.array([stated])], entropy)
    return table


def estimated(plan, rates, seed):
    """Per two holders, how far the estimate is off, and its standard error."""
    rng = np.random.default_rng(seed)
    digests, columns = holders_of(rates, seed)
    secret = rng.bytes(32)
    orders = [rng.permutation(RECORDS) for _ in columns]
    tables = [
        published(plan, holder, secret, digests[order], codes[order], RECORDS + 20.0, rng.bytes)
        for holder, (codes, order) in enumerate(zip(columns, orders, strict=True))
    ]
    out = agreeing(plan, tables, [RECORDS + 20.0] * len(columns), float(RECORDS))
    return [
        (records - float(np.sum(columns[i] == columns[j])), error)
        for (i, j), (records, error) in out.items()
    ]


@pytest.mark.parametrize("variance, bits", [(50.0, 4), (8.0, 4), (200.0, 2)])
@pytest.mark.parametrize("rate", [0.0, 0.05, 0.5, 1.0])
def test_records_that_agree_are_estimated_without_bias_and_with_the_error_stated(
    variance, bits, rate
):
    plan = CountSketches(repetitions=64, buckets=64, variance=variance, bits=bits, sizes=(1, 1))
    runs = 40
    off, errors = np.array([estimated(plan, [0.0, rate], seed)[0] for seed in range(runs)]).T
    z = off / errors
    # Five standard errors of the mean of so many z, and of their root mean square (which has one of 1 / sqrt(2 runs)); a
    # fifth of one for numbers that are not quite Gaussian.
    assert abs(z.mean()) < 5 / np.sqrt(runs) + 0.2
    assert abs(np.sqrt(np.mean(z**2)) - 1) < 5 / np.sqrt(2 * runs)


def test_of_three_holders_every_two_are_told():
    plan = CountSketches(repetitions=128, buckets=64, variance=60.0, bits=4, sizes=(1, 1, 1))
    results = estimated(plan, [0.0, 0.1, 0.4], 7)
    assert len(results) == 3
    assert all(abs(off) < 5 * error for off, error in results)


def test_other_secrets_agree_on_nothing():
    plan = CountSketches(repetitions=128, buckets=64, variance=60.0, bits=4, sizes=(1, 1))
    digests, (codes, _) = holders_of([0.0, 0.0], 3)
    tables = [
        published(plan, i, bytes([i]) * 32, digests, codes, RECORDS, os.urandom) for i in range(2)
    ]
    ((records, error),) = agreeing(plan, tables, [RECORDS] * 2, RECORDS).values()
    assert abs(records) < 5 * error


def test_a_record_whose_values_differ_shows_no_more_than_one_whose_values_agree():
    """Likelihood ratios of one repetition over noise alone: the record's sign in one random bucket of both tables, or a sign
    and bucket of its own in each. Every divergence of the first covers the second's; here the hockey stick, at many epsilons.
    """
    rng = np.random.default_rng(0)
    buckets, variance, draws = 4, 4.0, 400_000
    noise = rng.normal(0, np.sqrt(variance), (2, buckets, draws))
    agree = np.exp(-1 / variance) * np.cosh(noise.sum(axis=0) / variance).mean(axis=0)
    differ = np.prod(np.exp(-0.5 / variance) * np.cosh(noise / variance).mean(axis=1), axis=0)
    # The chi-square of the first is what the event states.
    assert abs(np.var(agree) - excess(2, variance) / buckets) < 5 * np.std(
        (agree - 1) ** 2
    ) / np.sqrt(draws)
    for epsilon in (0.0, 0.02, 0.05, 0.1, 0.2, 0.3):
        for direction in (1, -1):
            both = []
            for ratio in (agree, differ):
                # E_Q (L - e^eps)+ for a record added, E_Q (1 - e^eps L)+ for one removed.
                excesses = (
                    ratio - np.exp(epsilon) if direction == 1 else 1 - np.exp(epsilon) * ratio
                )
                excesses = np.maximum(excesses, 0)
                both.append((excesses.mean(), excesses.std() / np.sqrt(draws)))
            (first, its_error), (second, other_error) = both
            assert second <= first + 5 * np.hypot(its_error, other_error)

"""What the ledger takes for independent is: hashes of pairs, key blocks, plans and secrets, and every phantom.

Hashes: one record alone, phantoms at the floor, so that what is published are the record's own levels. Laid end to end, they
must be a stream of independent draws: no stretch of it repeats another one at any distance.
"""

import functools
import itertools
from dataclasses import replace

import numpy as np
import pytest
from builders import schema_of
from oracles import ALPHA, cdf, chi_square, crossed
from planning import plan_with
from scipy import fft, stats

from vertimrf import Party, Secret
from vertimrf.privacy.noise import FixedNoise
from vertimrf.releases.scheduled_pairs.encoding import SketchEncoder
from vertimrf.releases.scheduled_pairs.parameters import ScheduledPair, ScheduledPairs
from vertimrf.releases.shared_keys.encoding import SharedKeyEncoder
from vertimrf.releases.shared_keys.parameters import SharedKeys
from vertimrf.tables.table import Table

SECRET = bytes(range(32))


class NoPhantoms(FixedNoise):
    """Phantoms at the floor."""

    def stream(self, exact):
        return bytes


def chance_of_repeats(stream, cuts):
    """p-value of the largest autocorrelation of a stream of independent draws over all distances.

    The draws are cut in two above each of ``cuts``. Of N signs, a distance's sum of products has a variance of N, and is all but
    normal; with N / 2 distances, the largest is judged by Bonferroni's inequality. A stretch of K that repeats makes one sum K.
    """
    worst = 1.0
    for cut in cuts:
        sign = (stream > cut).astype(float)
        sign -= sign.mean()
        sign /= sign.std()
        size = fft.next_fast_len(2 * sign.size)
        power = np.abs(fft.rfft(sign, size)) ** 2
        together = fft.irfft(power, size)[1 : sign.size]
        # A distance L has N - L products.
        z = np.abs(together) / np.sqrt(np.arange(sign.size - 1, 0, -1))
        long = z[: max(sign.size - 500, 1)]
        worst = min(worst, 2 * float(stats.norm.sf(long.max())) * long.size * len(cuts))
    return worst


def test_the_test_finds_what_it_looks_for():
    rng = np.random.default_rng(0)
    stream = rng.geometric(0.5, 40_000)
    assert chance_of_repeats(stream, (1, 2)) > ALPHA
    stream[30_000:32_000] = stream[5_000:7_000]
    assert chance_of_repeats(stream, (1, 2)) < ALPHA


def assert_independent(one, other, ceiling):
    """Two records' or keys' levels, draw by draw: their joint law is the product of the geometric law with itself."""
    assert one.shape == other.shape
    assert not np.array_equal(one, other)
    law = np.diff(cdf(np.arange(0, ceiling + 1), 1, ceiling))
    together = crossed((one.ravel(), other.ravel()), (ceiling + 1,) * 2)
    assert chi_square(together[1:, 1:].ravel(), np.multiply.outer(law, law).ravel()) > ALPHA


CEILING = 30
PAIRS = ScheduledPairs(
    1,
    1,
    CEILING,
    (
        ScheduledPair(0, 2, 40_000),
        ScheduledPair(0, 3, 40_000),
        ScheduledPair(1, 2, 40_000),
        # Two key blocks, of as many keys as the others: blocks that share hashes then have the same levels.
        ScheduledPair(1, 3, 80_000),
        ScheduledPair(1, 4, 40_000),
    ),
    (1,) * 5,
)


def levels_of(record, groups=(0, 1), secret=SECRET):
    encoder = SketchEncoder(PAIRS, groups, secret)
    encoder.update(np.array([record], np.uint64), np.zeros((len(groups), 1), np.uint16))
    return [table[0] for table in encoder.result(bytes)]


def test_levels_of_pairs_and_of_key_blocks_are_independent():
    mine = levels_of(7)
    assert [len(levels) for levels in mine] == [pair.keys for pair in PAIRS.pairs]
    for i, one in enumerate(mine):
        for other in mine[:i]:
            assert_independent(one[:40_000], other[:40_000], CEILING)
    # And neither pairs nor blocks of one pair share a stretch of hashes anywhere.
    assert chance_of_repeats(np.concatenate(mine), (1, 2)) > ALPHA


def test_levels_of_records_and_of_secrets_are_independent():
    (mine, *_), (other, *_), (foreign, *_) = (
        levels_of(7),
        levels_of(8),
        levels_of(7, secret=bytes(32)),
    )
    assert_independent(mine, other, CEILING)
    assert_independent(mine, foreign, CEILING)
    assert chance_of_repeats(np.concatenate([mine, other, foreign]), (1, 2)) > ALPHA


def test_levels_of_shared_keys_are_independent_across_key_blocks():
    encoder = SharedKeyEncoder(SharedKeys(1, 1, CEILING, 140_000, (1,)), (0,), SECRET)
    encoder.update(np.array([7], np.uint64), np.zeros((1, 1), np.uint16))
    assert chance_of_repeats(encoder.result(bytes)[0][0], (1, 2)) > ALPHA


def test_both_sides_of_a_pair_have_the_same_levels_and_every_pair_its_own():
    """What the estimates rest on; the schedule numbers pairs alike at every party, whichever pairs it takes part in."""
    left, right, third = levels_of(7, (0, 1)), levels_of(7, (2, 3)), levels_of(7, (4,))
    for mine, theirs in zip(left, [*right, *third], strict=True):
        np.testing.assert_array_equal(mine, theirs)


# --- through a party: plans and secrets ---

SCHEMA = schema_of(one=(2, 2), two=(2, 2))


@functools.cache
def plan_of():
    # So much budget that there are hardly any phantoms, and levels start at 1.
    plan = plan_with(
        SCHEMA,
        epsilon=300.0,
        expected_records=100,
        nonce="independent",
        keys=6_000,
        encoder="scheduled-pairs",
    )
    assert plan.sketch.floor <= 1
    return plan


def one_record(party):
    part = SCHEMA.part(party)
    return Table(part, np.array([7], np.uint64), np.zeros((len(part), 1), np.uint16))


def released(plan, secret, party="one"):
    message = Party(plan, party, secret, NoPhantoms(0)).run(one_record(party))
    return np.concatenate([table[0] for table in message.sketches])


def test_levels_of_plans_and_secrets_are_independent():
    """The same pairs with the same numbers of keys, under other plans and another secret."""
    secret, plan = Secret(SECRET), plan_of()
    plans = [plan, replace(plan, nonce="another"), replace(plan, nonce="a third")]
    streams = [*(released(other, secret) for other in plans), released(plan, Secret(bytes(32)))]
    for i, one in enumerate(streams):
        assert one.size == sum(pair.keys for pair in plan.sketch.pairs) > 5_000
        for earlier in streams[:i]:
            assert_independent(one, earlier, plan.sketch.ceiling)
    assert chance_of_repeats(np.concatenate(streams), (1, 2)) > ALPHA


def test_both_parties_derive_the_same_hashes():
    plan, secret = plan_of(), Secret(SECRET)
    np.testing.assert_array_equal(released(plan, secret, "one"), released(plan, secret, "two"))


# --- phantoms ---

# More sketches than phantoms are drawn for at a time.
MANY = ScheduledPairs(3, 2, 14, (ScheduledPair(0, 1, 600_000),), (2, 2))
# First bytes of entropy: two that settle a level of MANY, at different levels, and one that leaves it open (thresholds of 3
# draws lie at 108, 171.5, 210.9 of 256, and so on up to 255.9).
LOW, HIGH, OPEN = 0x00, 0x90, 0xFF


def phantoms(entropy):
    """The published levels of an empty table."""
    return SketchEncoder(MANY, (0,), SECRET).result(entropy)[0].ravel()


def owners(low, high, width):
    """Which unit of entropy each sketch depends on, read out bit by bit: unit i is ``high`` where i has the bit, else ``low``.

    Units are the bytes that come for every sketch first, or the eight bytes each that come for those which these leave open.
    """
    bits = np.zeros(1_200_000, np.int64)
    for bit in range(bits.size.bit_length()):
        given, calls = 0, itertools.count()

        def entropy(count, bit=bit, calls=calls):
            nonlocal given
            if width == 8 and next(calls) % 2 == 0:
                return bytes([OPEN]) * count
            numbers = given + np.arange(count // width)
            given += numbers.size
            return np.repeat(
                np.where(numbers >> bit & 1, high, low).astype(np.uint8), width
            ).tobytes()

        levels = phantoms(entropy)
        assert len(np.unique(levels)) == 2
        bits |= (levels > levels.min()).astype(np.int64) << bit
    return bits


@pytest.mark.parametrize(
    "low, high, width", [(LOW, HIGH, 1), (0x00, 0xFF, 8)], ids=["first byte", "eight more"]
)
def test_every_sketch_has_entropy_of_its_own(low, high, width):
    """Also where phantoms are drawn for some sketches after the others: no two depend on one unit."""
    np.testing.assert_array_equal(np.sort(owners(low, high, width)), np.arange(1_200_000))


def test_phantoms_are_independent_across_sketches_and_drawn_from_fresh_entropy():
    rng, drawn = np.random.default_rng(5), []

    def entropy(count):
        drawn.append(count)
        return rng.bytes(count)

    levels = phantoms(entropy)
    law = np.diff(cdf(np.arange(2, 15), 3, 14), prepend=0.0)
    assert chi_square(np.bincount(levels, minlength=15)[2:], law) > ALPHA
    assert chance_of_repeats(levels, (2, 4)) > ALPHA
    # A byte for every sketch, and eight more where a threshold falls into it: eight bytes of 256 (standard error 1.6e-4).
    more = sum(drawn) - levels.size
    assert more % 8 == 0
    assert more / 8 / levels.size == pytest.approx(8 / 256, abs=6.4e-4)

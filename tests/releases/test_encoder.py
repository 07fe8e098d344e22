"""The streaming encoders: whatever the route, the same levels; whatever the input, one clear sentence."""

import functools
import itertools
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import ALPHA, cdf, chi_square, crossed

from vertimrf.errors import MessageError, PlanError, PrivacyError, TableError
from vertimrf.releases.count_sketches.encoding import CountSketchEncoder
from vertimrf.releases.count_sketches.parameters import CountSketches
from vertimrf.releases.scheduled_pairs.encoding import SketchEncoder
from vertimrf.releases.scheduled_pairs.parameters import ScheduledPair, ScheduledPairs
from vertimrf.releases.shared_keys.encoding import SharedKeyEncoder
from vertimrf.releases.shared_keys.parameters import SharedKeys
from vertimrf.tables.ids import record_digests

SECRET = bytes(range(32))
# Groups 0, 1 at one party, 2, 3 at the other; 4 at a third, which has a domain of 1.
PLAN = ScheduledPairs(
    phantoms=3,
    floor=2,
    ceiling=14,
    pairs=(
        ScheduledPair(0, 2, 300),
        ScheduledPair(0, 3, 70),
        ScheduledPair(2, 1, 1),
        ScheduledPair(1, 3, 513),
        ScheduledPair(4, 0, 40),
    ),
    sizes=(4, 2, 3, 17, 1),
)
SHARED = SharedKeys(phantoms=3, floor=2, ceiling=14, keys=500, sizes=(4, 2, 3, 17, 1))
SIZES = (4, 2, 3, 17, 1)
COUNTED = CountSketches(repetitions=7, buckets=16, variance=9.0, bits=4, sizes=SIZES)
N = 3000
DIGESTS = record_digests(bytes(16), np.arange(N))
CODES = np.stack([np.random.default_rng(j).zipf(1.5, N) % u for j, u in enumerate(SIZES)]).astype(
    np.uint16
)


def paired(attributes=(0, 1), plan=PLAN):
    return SketchEncoder(plan, attributes, SECRET)


def shared(attributes=(0, 1)):
    return SharedKeyEncoder(SHARED, attributes, SECRET)


def counting(groups=(0, 1), contrasts=()):
    return CountSketchEncoder(replace(COUNTED, contrasts=contrasts), groups, SECRET)


BOTH = pytest.mark.parametrize("make", [paired, shared])
EVERY = pytest.mark.parametrize(
    "make", [paired, shared, counting, functools.partial(counting, contrasts=(1,))]
)


def no_entropy(count):
    """Phantoms at the floor: what is left are the records' own levels."""
    return bytes(count)


def levels(encoder):
    return [table.tolist() for table in encoder.result(no_entropy)]


def fed(make, *chunks):
    encoder = make((0, 1))
    for chunk in chunks:
        encoder.update(DIGESTS[chunk], CODES[:2, chunk])
    return encoder


ALL = np.arange(N)


# --- what is published ---


def test_tables_come_in_schedule_order_with_the_plans_shapes():
    assert [t.shape for t in paired((1, 0)).result()] == [
        (4, 300),
        (4, 70),
        (2, 1),
        (2, 513),
        (4, 40),
    ]
    assert [t.shape for t in paired((3, 2)).result()] == [(3, 300), (17, 70), (3, 1), (17, 513)]
    assert [t.shape for t in paired((4,)).result()] == [(1, 40)]
    assert [t.shape for t in shared((3, 0)).result()] == [(17, 500), (4, 500)]
    for table in paired().result():
        assert table.dtype == np.uint8
        assert 2 <= table.min() <= table.max() <= 14


@BOTH
def test_levels_stay_between_floor_and_ceiling(make):
    for table in fed(make, ALL).result(lambda count: b"\xff" * count):
        assert (table == 14).all()
    for table in make((0, 1)).result(no_entropy):
        assert (table == 2).all()


def test_default_entropy_is_fresh():
    a, b = (paired().result()[0] for _ in range(2))
    assert not np.array_equal(a, b)


def test_floor_zero_and_the_narrowest_range_of_levels():
    for floor, ceiling in ((0, 1), (0, 2), (1, 2), (0, 40)):
        encoder = paired(plan=replace(PLAN, floor=floor, ceiling=ceiling))
        encoder.update(DIGESTS, CODES[:2])
        for table in encoder.result():
            assert max(floor, 1) <= table.min() <= table.max() <= ceiling
        other = SharedKeyEncoder(replace(SHARED, floor=floor, ceiling=ceiling), (0, 1), SECRET)
        other.update(DIGESTS, CODES[:2])
        assert max(t.max() for t in other.result()) <= ceiling


# --- both parties of a pair, and all attributes of a record ---


def test_two_parties_give_a_record_the_same_level():
    """One record, no other: wherever either party shows a level above the floor, the other shows the same one."""
    for record in range(5):
        one = slice(record, record + 1)
        left, right = paired((0, 1)), paired((2, 3))
        left.update(DIGESTS[one], CODES[[0, 1], one])
        right.update(DIGESTS[one], CODES[[2, 3], one])
        mine, theirs = left.result(no_entropy), right.result(no_entropy)
        for a, b, pair in ((0, 0, PLAN.pairs[0]), (1, 1, PLAN.pairs[1]), (3, 3, PLAN.pairs[3])):
            codes = CODES[pair.left, record], CODES[pair.right, record]
            assert np.array_equal(mine[a][codes[0]], theirs[b][codes[1]])
            assert (mine[a][codes[0]] > 2).sum() > 5
            assert (np.delete(mine[a], codes[0], axis=0) == 2).all()


def test_parties_with_different_cut_offs_agree_above_both():
    """A value that everybody holds stops high, a rare one low; the rare value's records must show the same levels."""
    n, rare = 20_000, 50
    digests = record_digests(bytes(16), np.arange(n))
    common, scarce = np.zeros((1, n), np.uint16), np.zeros((1, n), np.uint16)
    scarce[0, :rare] = 1
    plan = ScheduledPairs(1, 1, 30, (ScheduledPair(0, 1, 2000),), (2, 2))
    left, right = (SketchEncoder(plan, (group,), SECRET) for group in (0, 1))
    left.update(digests, common)
    right.update(digests, scarce)
    everybody = left.result(no_entropy)[0][0]
    table = right.result(no_entropy)[0]
    assert np.array_equal(everybody, table.max(axis=0))
    alone = SketchEncoder(plan, (0,), SECRET)
    alone.update(digests[:rare], common[:, :rare])
    assert np.array_equal(alone.result(no_entropy)[0][0], table[1])


def test_secret_and_encoder_kind_change_every_level():
    pairs = ScheduledPairs(1, 1, 30, (ScheduledPair(0, 1, 500),), (1, 1))
    encoders = (
        SketchEncoder(pairs, (0,), SECRET),
        SketchEncoder(pairs, (0,), SECRET[:31] + b"\x00"),
        SharedKeyEncoder(SharedKeys(1, 1, 30, 500, (1,)), (0,), SECRET),
    )
    for encoder in encoders:
        encoder.update(DIGESTS[:100], np.zeros((1, 100), np.uint16))
    rows = [encoder.result(no_entropy)[0][0] for encoder in encoders]
    for a, b in itertools.combinations(rows, 2):
        # Independent levels of 100 records agree with probability 0.23; 500 keys: standard error 0.02.
        assert (a == b).mean() < 0.35


def test_published_pair_has_the_joint_law():
    """P(W_v <= x, W_w <= y) = F(x)^(a + N) F(y)^(b + N) F(min(x, y))^c, through the encoders, phantoms included."""
    a, b, c, phantoms, ceiling, keys = 30, 10, 20, 5, 12, 100_000
    digests = record_digests(bytes(16), np.arange(a + b + c))
    plan = ScheduledPairs(phantoms, 2, ceiling, (ScheduledPair(0, 1, keys),), (2, 2))
    codes = np.zeros((2, a + b + c), np.uint16)
    codes[0, a + c :] = 1
    codes[1, :a] = 1
    rng = np.random.default_rng(31)
    rows = []
    for group in (0, 1):
        encoder = SketchEncoder(plan, (group,), SECRET)
        encoder.update(digests, codes[group : group + 1])
        rows.append(encoder.result(rng.bytes)[0][0])
    x = np.arange(2, ceiling + 1)
    joint = np.multiply.outer(cdf(x, a + phantoms, ceiling), cdf(x, b + phantoms, ceiling))
    joint *= cdf(np.minimum.outer(x, x), c, ceiling)
    law = np.diff(np.diff(joint, axis=0, prepend=0.0), axis=1, prepend=0.0)
    counts = crossed(rows, (ceiling + 1,) * 2)
    assert chi_square(counts[2:, 2:].ravel(), np.where(law > 1e-12, law, 0).ravel()) > ALPHA


# --- routes ---


@EVERY
@given(cuts=st.lists(st.integers(0, N), max_size=5), seed=st.integers(0, 99))
@settings(max_examples=10)
def test_chunks_orders_merges_and_states_change_nothing(make, cuts, seed):
    shuffled = np.random.default_rng(seed).permutation(N)
    first, *rest = chunks = np.split(shuffled, sorted(cuts))
    streamed, carried, others, merged = fed(make, *chunks), *(make((0, 1)) for _ in range(3))
    for chunk in chunks:
        carried.merge_state(fed(make, chunk).state())
    for chunk in rest:
        others.merge(fed(make, chunk))
    merged.merge(others)
    merged.update(DIGESTS[first], CODES[:2, first])
    assert streamed.state() == carried.state() == merged.state() == fed(make, ALL).state()


@BOTH
def test_repeated_records_change_nothing(make):
    assert levels(fed(make, ALL, ALL[:500])) == levels(fed(make, ALL))


def test_columns_grouped_one_at_a_time_change_nothing(monkeypatch):
    expected = fed(paired, ALL).state()
    monkeypatch.setattr("vertimrf.releases.scheduled_pairs.encoding.GROUPED_RECORDS", N)
    assert fed(paired, ALL).state() == expected


ROUTES = """
import numpy as np, hashlib, numba, sys
sys.path[:0] = {tests!r}
from test_encoder import *
from vertimrf.kernels.jit import threads
for make in (paired, shared):
    for count in (1, 2, 8):
        with threads(count):
            print(count, hashlib.sha256(fed(make, ALL).state()).hexdigest())
print(numba.config.NUMBA_NUM_THREADS)
"""


def test_eight_threads_give_the_same_levels_as_one():
    here = os.path.dirname(__file__)
    environment = {**os.environ, "NUMBA_NUM_THREADS": "8"}
    script = ROUTES.format(tests=[here, os.path.dirname(here)])
    run = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    *lines, started = run.stdout.split("\n")[:-1]
    assert started == "8"
    assert len({line.split()[1] for line in lines[:3]}) == 1
    assert len({line.split()[1] for line in lines[3:]}) == 1


def test_keys_of_every_block_have_the_law_of_levels():
    keys = 150_001
    plan = ScheduledPairs(1, 1, 20, (ScheduledPair(0, 1, keys),), (2, 2))
    for encoder in (
        SketchEncoder(plan, (0,), SECRET),
        SharedKeyEncoder(SharedKeys(1, 1, 20, keys, (2,)), (0,), SECRET),
    ):
        for chunk in (slice(0, 90), slice(90, 200)):
            encoder.update(DIGESTS[chunk], CODES[1:2, chunk])
        (table,) = encoder.result(no_entropy)
        assert table.shape == (2, keys)
        for value, levels in enumerate(table):
            law = np.diff(cdf(np.arange(0, 21), (CODES[1, :200] == value).sum(), 20))
            for third in np.array_split(levels, 3):
                assert chi_square(np.bincount(third, minlength=21)[1:], law) > ALPHA


# --- inputs ---


@BOTH
def test_other_integer_types_and_memory_layouts(make):
    expected = fed(make, ALL).state()
    frozen = CODES[:2].copy()
    frozen.flags.writeable = False
    digests = DIGESTS.copy()
    digests.flags.writeable = False
    strided = np.repeat(DIGESTS, 2)[::2]
    variants = (
        frozen,
        np.asfortranarray(CODES[:2]),
        CODES[:2].astype(np.int64),
        CODES[:2].astype(np.uint8),
        CODES[:2].T.copy().T,
    )
    for codes in variants:
        for ids in (digests, strided):
            encoder = make((0, 1))
            encoder.update(ids, codes)
            assert encoder.state() == expected


@BOTH
def test_no_rows_and_no_attributes(make):
    encoder = make((0, 1))
    encoder.update(DIGESTS[:0], CODES[:2, :0])
    assert all((np.array(table) == 2).all() for table in levels(encoder))
    nobody = make(())
    nobody.update(DIGESTS, CODES[:0])
    assert nobody.result() == ()


def test_a_domain_of_one():
    encoder = paired((4,))
    encoder.update(DIGESTS, CODES[4:5])
    assert encoder.result(no_entropy)[0].min() > 2


@BOTH
@pytest.mark.parametrize(
    "value, dtype", [(2, np.uint16), (65535, np.uint16), (-1, np.int32), (70_000, np.int64)]
)
def test_codes_outside_the_domain_are_named(make, value, dtype):
    codes = CODES[:2].astype(dtype)
    codes[1, 5] = value
    encoder = make((0, 1))
    with pytest.raises(
        TableError, match=rf"Attribute 1 holds code {value} in record 5 .* domain 0\.\.1"
    ):
        encoder.update(DIGESTS, codes)
    assert all((np.array(table) == 2).all() for table in levels(encoder))


@BOTH
@pytest.mark.parametrize(
    "digests, codes, message",
    [
        (DIGESTS[:-1], CODES[:2], "shape"),
        (DIGESTS, CODES[:1], "shape"),
        (DIGESTS, CODES[0], "two-dimensional"),
        (DIGESTS, CODES[:2].astype(float), "integer"),
        (DIGESTS, CODES[:2].astype(object), "integer"),
        (DIGESTS.astype(np.int64), CODES[:2], "record_digests"),
        (DIGESTS.astype(object), CODES[:2], "record_digests"),
        (DIGESTS[None], CODES[:2], "one row of uint64"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(make, digests, codes, message):
    with pytest.raises(TableError, match=message):
        make((0, 1)).update(digests, codes)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"phantoms": 0}, "at least 1 phantom"),
        ({"floor": 14}, "floor < ceiling"),
        ({"floor": -1}, "floor < ceiling"),
        ({"ceiling": 41}, "<= 40"),
        ({"pairs": (ScheduledPair(0, 0, 5),)}, "two different groups"),
        ({"pairs": (ScheduledPair(0, 5, 5),)}, "two of the 5 groups"),
        ({"pairs": (ScheduledPair(-1, 0, 5),)}, "two of the 5 groups"),
        ({"pairs": (ScheduledPair(0, 1, 0),)}, "0 keys"),
        ({"pairs": (ScheduledPair(0, 1, 2**31 + 1),)}, "at most 2"),
        ({"sizes": (4, 2, 3, 17, 0)}, "Group 4 has 0 values"),
        ({"sizes": (4, 2, 3, 65_537, 1)}, "65537 values"),
    ],
)
def test_plans_that_make_no_sense_are_refused(change, message):
    with pytest.raises(PlanError, match=message):
        replace(PLAN, **change)


@pytest.mark.parametrize("change", [{"phantoms": 0}, {"floor": 20}, {"keys": 0}, {"sizes": (3, 0)}])
def test_shared_plans_that_make_no_sense_are_refused(change):
    with pytest.raises(PlanError):
        replace(SHARED, **change)


def test_attributes_that_do_not_fit_the_plan_are_refused():
    with pytest.raises(PlanError, match="No scheduled pair has group 9"):
        paired((0, 9))
    with pytest.raises(PlanError, match="two groups of one party"):
        paired((0, 2))
    with pytest.raises(PlanError, match="repeat"):
        paired((0, 0))
    with pytest.raises(PlanError, match="attributes 0 to 4, not 5"):
        shared((5,))
    with pytest.raises(PrivacyError, match="32 bytes, not 5"):
        SketchEncoder(PLAN, (0,), b"short")


@EVERY
def test_a_result_is_handed_out_once(make):
    encoder, state = make((0, 1)), make((0, 1)).state()
    sizes = [] if make in (paired, shared) else [[np.ones(SIZES[group]) for group in (0, 1)]]
    encoder.result(*sizes)
    for again in (
        lambda: encoder.result(*sizes),
        encoder.state,
        lambda: encoder.merge_state(state),
        lambda: encoder.update(DIGESTS, CODES[:2]),
        lambda: make((0, 1)).merge(encoder),
    ):
        with pytest.raises(PrivacyError, match="only once"):
            again()
    kept, merged = make((0, 1)), make((0, 1))
    kept.merge(merged)
    with pytest.raises(PrivacyError, match="only once"):
        merged.result(*sizes)


def test_encoders_of_other_plans_parties_or_secrets_do_not_merge():
    encoder = paired()
    others = (
        paired((2, 3)),
        paired((1, 0)),
        shared(),
        SketchEncoder(PLAN, (0, 1), bytes(32)),
        paired(plan=replace(PLAN, phantoms=4)),
    )
    for other in others:
        with pytest.raises(PlanError, match="same plan"):
            encoder.merge(other)
        with pytest.raises(MessageError, match="same plan"):
            encoder.merge_state(other.state())
    with pytest.raises(PlanError, match="itself"):
        encoder.merge(encoder)


@BOTH
def test_damaged_states_are_refused(make):
    encoder = make((0, 1))
    state = encoder.state()
    for bad in (b"", state[:-1], state + b"\x00", b"\x00" * len(state)):
        with pytest.raises(MessageError, match="not an encoder's state"):
            encoder.merge_state(bad)
    with pytest.raises(MessageError, match="damaged"):
        encoder.merge_state(state[:-1] + b"\xff")


@pytest.mark.slow
def test_levels_are_the_same_without_vector_instructions(tmp_path):
    """Another processor, as far as one machine can tell: the golden file must hold for baseline x86-64 or Arm code too."""
    golden = Path(__file__).parent / "test_golden_encoder.py"
    environment = {
        **os.environ,
        "NUMBA_CPU_NAME": "generic",
        "NUMBA_CPU_FEATURES": "",
        "NUMBA_CACHE_DIR": str(tmp_path),
    }
    subprocess.run([sys.executable, "-m", "pytest", "-q", str(golden)], env=environment, check=True)

"""Count sketches: whatever the route, the same codes; whatever the input, one clear sentence."""

import math
from dataclasses import replace

import numpy as np
import pytest
from oracles import ALPHA
from scipy import stats

from vertimrf.errors import MessageError, PlanError, TableError
from vertimrf.releases.count_sketches import encoding as count_sketch
from vertimrf.releases.count_sketches.encoding import STEPS, CountSketchEncoder, code_steps
from vertimrf.releases.count_sketches.parameters import CountSketches
from vertimrf.releases.register import release_from_json, release_to_json
from vertimrf.tables.ids import record_digests

SECRET = bytes(range(32))
PLAN = CountSketches(repetitions=7, buckets=16, variance=9.0, bits=4, sizes=(4, 2, 3, 17))
N = 2000
DIGESTS = record_digests(bytes(16), np.arange(N))
CODES = np.stack(
    [np.random.default_rng(j).integers(0, u, N) for j, u in enumerate(PLAN.sizes)]
).astype(np.uint16)
SIZES = [np.full(u, N / u) for u in PLAN.sizes]


def encoder(groups=(0, 3), plan=PLAN, secret=SECRET):
    return CountSketchEncoder(plan, groups, secret)


def fed(rows=slice(None), groups=(0, 3), **changes):
    out = encoder(groups, **changes)
    out.update(DIGESTS[rows], CODES[list(groups)][:, rows])
    return out


def counters(one):
    """The state without its header."""
    return np.frombuffer(one.state(), "<i4", offset=24)


def fixed_entropy(seed=0):
    return np.random.default_rng(seed).bytes


def test_a_record_has_one_sign_in_one_bucket_of_each_repetition_and_the_same_in_all_groups_and_at_all_parties():
    one, other = (counters(fed(slice(5, 6), (g,))).reshape(7, PLAN.sizes[g], 16) for g in (0, 3))
    for state, group in ((one, 0), (other, 3)):
        assert (np.abs(state).sum(axis=(1, 2)) == 1).all()
        assert (
            np.abs(state).sum(axis=(0, 2)) == 7 * np.eye(PLAN.sizes[group])[CODES[group, 5]]
        ).all()
    np.testing.assert_array_equal(one.sum(axis=1), other.sum(axis=1))
    assert (counters(fed(slice(5, 6), (0,), secret=bytes(32))).reshape(one.shape) != one).any()


@pytest.mark.parametrize(
    "bits, weights",
    [(1, ()), (2, ()), (3, ()), (4, ()), (4, (5, 3)), (4, (1, 9)), (2, (7, 7)), (1, (3, 1))],
)
def test_published_codes_are_of_counters_and_noise_of_the_planned_variance(bits, weights):
    """Codes of many numbers follow the law of weight * counter + noise, exactly convolved; of one group after the other."""
    plan = CountSketches(1 << 9, 64, 15.0, bits, (2, 2), weights=weights)
    codes = np.zeros((2, 960), np.uint16)
    one = CountSketchEncoder(plan, [0, 1], SECRET)
    one.update(record_digests(bytes(16), np.arange(960)), codes)
    counters = np.frombuffer(one.state(), "<i4", offset=24).reshape(512, 2, 2, 64)
    sizes = np.array([960.0, 0.0])
    published = one.result([sizes, sizes], fixed_entropy())
    half = 1 << (bits - 1)
    noise = np.arange(-200, 200) + 0.5
    for group, table in enumerate(published):
        weight = weights[group] if weights else 1
        assert table.shape == (2, 512 * 64)
        steps = code_steps(plan, sizes, weight)
        np.testing.assert_allclose(
            steps, STEPS[bits] * np.sqrt([weight**2 * 15.0 + weight * 15.0, weight * 15.0])
        )
        law = np.exp(-(noise**2) / (30 * weight))
        law /= law.sum()
        for value in (0, 1):
            expected = np.zeros(2 * half)
            for counter, times in zip(
                *np.unique(counters[:, group, value], return_counts=True), strict=True
            ):
                code = (
                    np.clip(
                        np.floor((weight * counter + noise) / steps[value]), -half, half - 1
                    ).astype(int)
                    + half
                )
                expected += times * np.bincount(code, law, minlength=2 * half)
            assert (
                stats.chisquare(np.bincount(table[value], minlength=2 * half), expected).pvalue
                > ALPHA
            )


def test_noise_is_fresh_every_time_and_from_the_entropy_given():
    one, other = (fed().result([SIZES[0], SIZES[3]]) for _ in range(2))
    assert any((a != b).any() for a, b in zip(one, other, strict=True))
    same, too = (fed().result([SIZES[0], SIZES[3]], fixed_entropy()) for _ in range(2))
    for a, b in zip(same, too, strict=True):
        np.testing.assert_array_equal(a, b)


def test_no_records_and_no_groups():
    empty = encoder()
    empty.update(DIGESTS[:0], CODES[[0, 3]][:, :0])
    assert not counters(empty).any()
    assert [t.shape for t in empty.result([SIZES[0], SIZES[3]])] == [(4, 112), (17, 112)]
    assert encoder(()).result([]) == ()


@pytest.mark.parametrize(
    "changes, said",
    [
        ({"buckets": 12}, "power of two of buckets"),
        ({"buckets": 1}, "power of two of buckets"),
        ({"buckets": 1 << 16}, "power of two of buckets"),
        ({"repetitions": 0}, "repetitions"),
        ({"bits": 0}, "1 to 4 bits"),
        ({"bits": 5}, "1 to 4 bits"),
        ({"sizes": ()}, "at least one group"),
        ({"sizes": (4, 0)}, "Group 1 has 0 values"),
        ({"variance": 3.9}, "have no price"),
        ({"variance": 8.0, "sizes": (2,) * 9}, "the record alone would show"),
        ({"variance": math.inf}, "have no price"),
        ({"weights": (1, 3, 1)}, "3 weights of 4 groups"),
        ({"weights": (1, 3, 1, 2)}, "odd number from 1 to 99, not 2"),
        ({"weights": (1, 3, 1, 101)}, "odd number from 1 to 99, not 101"),
        ({"weights": (1, 3, 1, -1)}, "odd number from 1 to 99, not -1"),
        ({"weights": (1, 3, 1, 5)}, "the record alone would show"),
        (
            {"weights": (1, 3, 1, 5), "variance": 2.5e5},
            "Noise of variance 1,250,000 is more than can be drawn",
        ),
    ],
)
def test_parameters_that_no_sketch_can_have(changes, said):
    with pytest.raises(PlanError, match=said):
        replace(PLAN, **changes)


def test_other_plans_secrets_and_states_do_not_mix():
    for other in (
        encoder((0, 2)),
        encoder(secret=bytes(32)),
        encoder(plan=replace(PLAN, variance=10.0)),
        encoder(plan=replace(PLAN, bits=2)),
        encoder(plan=replace(PLAN, repetitions=8)),
        encoder(plan=replace(PLAN, weights=(1, 1, 3, 1))),
        encoder(plan=replace(PLAN, contrasts=(1,))),
    ):
        with pytest.raises(PlanError, match="same plan, groups and secret"):
            encoder().merge(other)
        with pytest.raises(MessageError, match="same plan, groups and secret"):
            encoder().merge_state(other.state())
    good = fed(slice(0, 5)).state()
    with pytest.raises(MessageError, match="beyond its 5 records"):
        encoder().merge_state(good[:-4] + (6).to_bytes(4, "little"))


def test_more_records_than_counters_hold_are_refused(monkeypatch):
    monkeypatch.setattr(count_sketch, "MAX_RECORDS", N + 10)
    one = fed()
    one.update(DIGESTS[:10], CODES[[0, 3]][:, :10])
    before = one.state()
    for more in (
        lambda: one.update(DIGESTS[:1], CODES[[0, 3]][:, :1]),
        lambda: one.merge(fed(slice(0, 1))),
        lambda: one.merge_state(fed(slice(0, 1)).state()),
    ):
        with pytest.raises(TableError, match="hold up to 2,010 records, not 2,011"):
            more()
    assert one.state() == before
    # As many as are allowed cannot overflow, whatever their signs and noise.
    monkeypatch.undo()
    assert 2 * (count_sketch.MAX_RECORDS + 14 * 1000) < 2**31


def test_bad_encoders():
    with pytest.raises(PlanError, match="has not all of"):
        encoder((0, 4))
    with pytest.raises(PlanError, match="size of each of its values"):
        fed().result([SIZES[0]])


def test_json_and_back():
    assert release_from_json(release_to_json(PLAN)) == PLAN
    assert release_to_json(PLAN)["encoder"] == "count-sketch"

"""Parties that hold different people: the overlap is found, and the rows are of whom the plan asks for.

Two parties hold two thirds of 24,000 people each, six tenths of whom the other holds as well, more of them the higher the first
attribute. Noise comes from the system's entropy; bounds are five standard errors, or far from what was measured, as said.
"""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from builders import dealt, records_of, schema_of
from planning import plan_with
from roles import messages_of

from vertimrf import Impossible, Message, Model, Party, RunOptions, Schema, Secret, Server
from vertimrf.errors import MessageError, NoMassError, PlanError, SchemaError
from vertimrf.kernels.contingency import contingency
from vertimrf.model.measurement import bin_table
from vertimrf.plan.summary import summary
from vertimrf.server.parts import _raking
from vertimrf.trial import run_protocol
from vertimrf.utility.distances import tvd

PEOPLE = 24_000
SCHEMA = schema_of(one=(3, 4, 2), two=(3, 4, 2))
RUNS = 8
ENCODERS = ("count-sketch", "scheduled-pairs")


def people(sizes=SCHEMA.sizes):
    """Attributes that copy a hidden type with some error."""
    rng = np.random.default_rng(3)
    hidden = rng.integers(0, 4, PEOPLE)
    rows = [
        np.where(rng.random(PEOPLE) < 0.3, rng.integers(0, size, PEOPLE), hidden % size)
        for size in sizes
    ]
    return np.array(rows, np.uint16)


@pytest.fixture(scope="module")
def world():
    """All codes, who is at the first party, who is at the second, and the tables."""
    codes = people()
    rng = np.random.default_rng(4)
    both = rng.random(PEOPLE) < np.array([0.25, 0.43, 0.6])[codes[0]]
    first = rng.random(PEOPLE) < 0.5
    at = np.array([both | first, both | ~first])
    return codes, at, dealt(SCHEMA, codes, people=at)


def plan_for(schema=SCHEMA, **changes):
    known = {
        "epsilon": 2.0,
        "expected_records": 16_000,
        "encoder": "count-sketch",
        "message_bytes": 500_000,
    }
    return plan_with(schema, **(known | changes))


@pytest.fixture(scope="module")
def inner(world):
    return run_protocol(plan_for(), world[2], RunOptions(seed=0)).result


@pytest.fixture(scope="module")
def outer(world):
    return run_protocol(plan_for(population="outer"), world[2], RunOptions(seed=0)).result


def test_rows_are_of_the_people_in_common(world, inner):
    codes, at, _ = world
    both = at.all(axis=0)
    (match,) = inner.overlap.common
    assert abs(match.records - both.sum()) < 5 * match.error
    assert match.error < 0.05 * both.sum()
    assert inner.codes.shape[1] == round(inner.overlap.inner)
    for count, known in zip(inner.overlap.party_counts, at, strict=True):
        assert abs(count.records - known.sum()) < 5 * count.error
    real = codes[:, both]
    distance = tvd(real, inner.codes, SCHEMA.sizes, (3,))[3]
    # Over ten runs 0.021 to 0.031; all people's rows are at 0.10, and independent columns farther.
    assert distance < 0.05
    assert tvd(real, codes, SCHEMA.sizes, (3,))[3] > 0.08
    assert "hold different people" in inner.warnings[0]


@pytest.mark.parametrize("encoder", ENCODERS)
def test_estimates_are_as_far_off_as_they_say(world, encoder):
    """In standard errors: over runs the mean is within 5 / sqrt(runs) of 0, the spread below 5 / sqrt(2 runs) over 1."""
    _, at, tables = world
    plan = plan_for(encoder=encoder, message_bytes=50_000)
    off = []
    for _ in range(RUNS):
        (match,) = Server(plan).read(messages_of(plan, tables)).parts.overlap.common
        off.append((match.records - at.all(axis=0).sum()) / match.error)
    assert abs(np.mean(off)) < 5 / np.sqrt(RUNS)
    assert np.std(off) < 1 + 5 / np.sqrt(2 * RUNS)


def test_scheduled_pairs(world):
    codes, at, tables = world
    result = run_protocol(plan_for(encoder="scheduled-pairs"), tables, RunOptions(seed=0)).result
    assert result.overlap is not None
    # Six runs: 0.03 to 0.05.
    assert tvd(codes[:, at.all(axis=0)], result.codes, SCHEMA.sizes, (3,))[3] < 0.075


def test_the_same_people_take_the_ordinary_way(world):
    whole = dealt(SCHEMA, world[0])
    for population in ("inner", "outer"):
        result = run_protocol(
            plan_for(population=population, expected_records=PEOPLE), whole, RunOptions(seed=0)
        ).result
        assert result.overlap is None
        assert result.warnings == ()
        assert result.holders is None
        assert result.table.column_names == list(SCHEMA.names)
        assert "overlap" not in result.to_json()


def test_everybody(world, outer):
    codes, at, _ = world
    table = outer.table
    assert abs(table.num_rows - at.any(axis=0).sum()) < 5 * outer.overlap.outer_error
    patterns = np.array(table["held_by"].to_pylist())
    assert set(patterns) == {"one", "two", "one+two"}
    for name, names in SCHEMA.parties:
        absent = np.array([name not in who.split("+") for who in patterns])
        for column in names:
            np.testing.assert_array_equal(table[column].is_null().to_numpy(), absent)
    # As one value more of every attribute: 0.02 over five runs.
    true = np.where(at[[0, 0, 0, 1, 1, 1]], codes, np.array(SCHEMA.sizes)[:, None]).astype(
        np.uint16
    )
    made = np.stack(
        [
            table[name].fill_null(size).to_numpy()
            for name, size in zip(SCHEMA.names, SCHEMA.sizes, strict=True)
        ]
    )
    assert (
        tvd(true[:, at.any(axis=0)], made.astype(np.uint16), [s + 1 for s in SCHEMA.sizes], (3,))[3]
        < 0.05
    )
    figures = outer.to_json()
    assert figures["population"] == "outer"
    assert figures["overlap"]["outer"]["error"] > 0


def test_rows_asked_for_are_shared_out(world):
    result = run_protocol(
        plan_for(population="outer"), world[2], RunOptions(seed=0, rows=1_000)
    ).result
    assert result.table.num_rows == 1_000
    share = np.bincount(result.holders, minlength=3) / 1_000
    np.testing.assert_allclose(share, result.overlap.counts / result.overlap.outer, atol=0.002)


def test_a_model_of_everybody_can_be_saved_and_asked(outer, tmp_path):
    model = Model(SCHEMA, outer.model, outer.ledger, outer.others)
    model.save(tmp_path / "a.model")
    back = Model.load(tmp_path / "a.model")
    assert "one+two" in back.summary()
    counts = outer.overlap.counts
    # Of a column, those whom its party holds; of columns of both, those in common.
    assert back.marginal("one0").sum() == pytest.approx(counts[0] + counts[2], rel=1e-6)
    assert back.marginal(["two1", "one0"]).sum() == pytest.approx(counts[2], rel=1e-6)
    assert back.sample(seed=1).num_rows == pytest.approx(counts.sum(), abs=1)
    some = back.sample(500, given={"one0": 1}, seed=1)
    assert set(some["one0"].to_pylist()) == {1}
    assert set(some["held_by"].to_pylist()) == {"one", "one+two"}
    alone = back.sample(given={"held_by": "two"}, seed=1)
    assert alone["one0"].null_count == alone.num_rows == pytest.approx(counts[1], abs=1)
    # Rows are picked for all marginals at once: up to 2.2 rows over 150 runs, above 2 in two.
    np.testing.assert_allclose(
        np.bincount(alone["two0"].to_numpy(), minlength=3),
        outer.others[1].field.marginal((3,)),
        atol=5,
    )
    with pytest.raises(SchemaError, match=r"held_by is one, two, one\+two, not 'three'"):
        back.sample(given={"held_by": "three"})
    with pytest.raises(NoMassError, match="held_by = 'two'"):
        back.sample(given={"held_by": "two", "one0": 1})


def test_three_parties():
    schema = schema_of(a=(3, 2), b=(4, 2), c=(3, 2))
    codes = people(schema.sizes)
    rng = np.random.default_rng(8)
    at = rng.random((3, PEOPLE)) < np.array([0.8, 0.7, 0.9])[:, None]
    tables = dealt(schema, codes, people=at)
    plan = plan_for(schema, population="outer", expected_records=PEOPLE)
    result = run_protocol(plan, tables, RunOptions(seed=0)).result
    both = at.all(axis=0)
    assert len(result.overlap.patterns) == 7
    # Presences at three parties have nothing to do with each other here, so that pairs tell of them.
    assert abs(result.overlap.inner - both.sum()) < 5 * result.overlap.inner_error
    rows = result.codes[:, result.holders == 6]
    # Five runs: 0.02 to 0.03.
    assert tvd(codes[:, both], rows, schema.sizes, (3,))[3] < 0.06
    assert result.codes.shape[1] == pytest.approx(at.any(axis=0).sum(), rel=0.05)


def test_impossible_combinations_stay_impossible_in_every_part(world):
    """One inside a party, one across parties, each made true in the data first."""
    codes, at, _ = world
    rules = [Impossible.of(one0=0, one1=3), Impossible.of(one0=1, two0=2)]
    schema = Schema.of(
        {name: list(SCHEMA.part(name)) for name, _ in SCHEMA.parties}, impossible=rules
    )
    codes = codes.copy()
    codes[1, (codes[0] == 0) & (codes[1] == 3)] = 2
    codes[3, (codes[0] == 1) & (codes[3] == 2)] = 1
    plan = plan_for(schema, population="outer", message_bytes=200_000)
    result = run_protocol(plan, dealt(schema, codes, people=at), RunOptions(seed=0)).result
    made = result.codes
    of_one, of_both = result.holders != 1, result.holders == 2
    assert of_both.sum() > 5_000
    assert not ((made[0] == 0) & (made[1] == 3) & of_one).any()
    assert not ((made[0] == 1) & (made[3] == 2) & of_both).any()
    assert len(result.warnings) == 1


def test_other_secrets_are_one_sentence(world):
    plan = plan_for()
    one, other = (messages_of(plan, world[2]) for _ in range(2))
    with pytest.raises(MessageError, match="different secrets"):
        Server(plan).read([one[0], other[1]])


def test_without_sketches_that_tell_other_sizes_are_one_sentence(world):
    _, _, (one, two) = world
    part = records_of(two, slice(9_000))
    plan = plan_for(shares=(0.01, 0.99, 0.0))
    with pytest.raises(
        MessageError, match=r"different numbers of records .*keep the same people at every party"
    ):
        run_protocol(plan, [one, part], RunOptions(rows=10))


def test_the_population_is_in_the_plan():
    plan = plan_for()
    assert "population" not in plan.to_json()
    wider = plan_for(population="outer")
    assert wider.to_json()["population"] == "outer"
    assert replace(plan, population="outer").digest() != plan.digest()
    # Sketches are of values, where those for the inner population are of contrasts; a record adds to as many numbers.
    assert (plan.sketch.contrasts, wider.sketch.contrasts) == ((2, 5), ())
    assert {replace(sketch, weights=()).event.groups for sketch in (wider.sketch, plan.sketch)} == {
        6
    }
    assert [entry.released for entry in wider.entries()[:-1]] == [
        entry.released for entry in plan.entries()[:-1]
    ]
    assert "everybody that any party holds" in summary(wider)
    with pytest.raises(PlanError, match="inner or outer, not 'both'"):
        plan_for(population="both")
    with pytest.raises(PlanError, match="outer population needs sketches"):
        plan_for(population="outer", encoder="grr")
    taken = schema_of(one={"held_by": 3}, two=(2,))
    with pytest.raises(PlanError, match="rename the attribute"):
        plan_with(taken, expected_records=100, population="outer")


def test_messages_tell_nothing_of_the_population_but_the_plan(world):
    """What a party sends has the same parts, whatever population the result is to be of: of contrasts, or of values."""
    _, _, (one, _) = world
    secret = Secret.new()
    shapes = []
    for population in ("inner", "outer"):
        plan = plan_for(population=population, nonce="same")
        message = Message.from_bytes(Party(plan, "one", secret).run(one).to_bytes(plan), plan)
        shapes.append(
            [m.counts.shape for m in message.marginals] + [len(s) for s in message.sketches]
        )
    assert shapes[0][:3] == shapes[1][:3]
    assert shapes[0][-3:] == [3, 4, 1]
    assert shapes[1][-3:] == [3, 4, 2]


def test_raking_meets_margins():
    rng = np.random.default_rng(0)
    table = rng.random((4, 3, 5)) * 100
    wanted = [table.sum(axis=tuple(k for k in range(3) if k != axis)) * 0.3 for axis in range(3)]
    np.testing.assert_allclose(_raking(table, wanted), 0.3)
    part = (
        table * np.array([0.1, 0.9, 0.5, 0.2])[:, None, None] * np.array([1.0, 0.4, 0.6])[:, None]
    )
    margins = [part.sum(axis=tuple(k for k in range(3) if k != axis)) for axis in range(3)]
    np.testing.assert_allclose(table * _raking(table, margins), part, rtol=1e-3)


def test_cells_across_parties_are_of_the_people_in_common(world):
    """All cells: errors of 1 standard error, to five of their own."""
    codes, at, tables = world
    plan = plan_for()
    off = []
    for _ in range(3):
        parts = Server(plan).read(messages_of(plan, tables)).parts
        for m in parts.crossing:
            parties = {SCHEMA.party_of(a) for a in m.attributes}
            there = np.ascontiguousarray(codes[:, at[sorted(parties)].all(axis=0)])
            true = contingency(there, SCHEMA.sizes, m.attributes).reshape(
                [SCHEMA.sizes[a] for a in m.attributes]
            )
            off.append(
                (
                    (m.counts - bin_table(true.astype(float), m.bins, m.counts.shape)) / m.sigma
                ).ravel()
            )
    every = np.concatenate(off)
    # Cells of a table share rows: as if there were a fourth of them.
    assert abs(np.std(every) - 1) < 5 * np.sqrt(4 / (2 * every.size))
    assert abs(np.mean(every)) < 5 * np.sqrt(4 / every.size)


def test_every_part_adds_up(world, inner):
    """One-way marginals of the parts of a party's people are those of all of them."""
    _, _, tables = world
    plan = plan_for()
    parts = Server(plan).read(messages_of(plan, tables)).parts
    for a, margins in enumerate(parts.margins):
        party = SCHEMA.party_of(a)
        sizes = (
            parts.initial.marginal((a,))
            * parts.overlap.party_counts[party].records
            / parts.initial.total
        )
        np.testing.assert_allclose(margins.sum(axis=0), sizes, rtol=1e-6)
        for pattern, margin in zip(parts.overlap.patterns, margins, strict=True):
            assert (margin > 0).any() == (party in pattern)
    assert list(itertools.chain(*parts.overlap.patterns)) == [0, 1, 0, 1]

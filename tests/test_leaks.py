"""Leak hunt: what leaves a party depends on its table only through the queries that the ledger has.

The noise is replaced by a tape. Recording, it notes every query, its exact answer, and the noisy one. Playing, it gives the
noisy answers of an earlier run whatever the table says, and phantoms that reach the ceiling everywhere: with every ledgered
answer fixed that way, two tables must yield the same message, byte for byte.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pytest

from vertimrf.message import Message
from vertimrf.options import RunOptions
from vertimrf.party import party as party_module
from vertimrf.party.party import Party
from vertimrf.party.secret import Secret
from vertimrf.plan.plan import SCORE_GRID
from vertimrf.plan.planner import make_plan
from vertimrf.plan.schema import Attribute, Schema
from vertimrf.privacy.events import GaussianEvent, SketchEvent
from vertimrf.privacy.noise import FixedNoise
from vertimrf.sketches.encoder import SketchEncoder
from vertimrf.tables.table import Table
from vertimrf.trial import synthesize

SECRET = Secret(bytes(range(32)))


@dataclass
class Tape:
    """A noise source that records queries, and plays another tape's answers when it has one."""

    played: Tape | None = None
    private: bool = True
    queries: list = field(default_factory=list)
    answers: list = field(default_factory=list)
    bytes_asked: list = field(default_factory=list)
    source: FixedNoise = field(default_factory=lambda: FixedNoise(1))

    def gaussian(self, values, sigma):
        self.queries.append((sigma, np.array(values)))
        return self._answer(lambda: self.source.gaussian(values, sigma))

    def random_bytes(self, count):
        self.bytes_asked.append(count)
        return b"\xff" * count

    def _answer(self, fresh):
        answer = fresh() if self.played is None else self.played.answers[len(self.answers)]
        self.answers.append(answer)
        return answer


def schema_of(sizes):
    attributes = tuple(Attribute(name=f"a{i}", kind="integer", codes=s) for i, s in enumerate(sizes))
    names = tuple(a.name for a in attributes)
    return Schema(attributes=attributes, parties=(("one", names[:-1]), ("two", names[-1:])))


def plan_of(one_clique):
    sizes, records = ((3, 2, 4), 5000) if one_clique else ((6, 5, 4, 7, 4), 3000)
    plan = make_plan(schema_of(sizes), epsilon=4.0, expected_records=records, nonce="leaks", keys=1 << 10, tau=3000)
    assert (plan.local[0].score_sigma == 0) == one_clique
    return plan


def units_of(plan, sigma):
    """Units of measurement that a larger marginal of this noise takes; None if it is no such noise."""
    units = (sigma / plan.local[0].unit_sigma) ** 2
    return round(units) if math.isclose(units, round(units)) and units >= 1 else None


def table_of(plan, rows, seed):
    rng = np.random.default_rng(seed)
    attributes = tuple(plan.schema.attributes[i] for i in plan.schema.party_attributes("one"))
    codes = np.array([rng.integers(0, a.size, rows) for a in attributes], np.uint16)
    return Table(attributes, rng.integers(1, 1 << 62, rows).astype(np.uint64), codes)


def without_record(table, record):
    return Table(table.attributes, np.delete(table.digests, record), np.ascontiguousarray(np.delete(table.codes, record, 1)))


def run(plan, table, tape):
    return Party(plan, "one", SECRET, tape).run(table).to_bytes(plan)


@pytest.fixture(scope="module", params=[True, False], ids=["one clique", "a graph"])
def plan(request):
    return plan_of(request.param)


@pytest.fixture(scope="module")
def recorded(plan):
    table, tape = table_of(plan, 2500, 0), Tape()
    return table, tape, run(plan, table, tape)


@pytest.mark.parametrize("other", ["one record fewer", "another table of another size", "no record at all"])
def test_with_all_ledgered_answers_fixed_the_message_is_the_same(plan, recorded, other):
    table, tape, message = recorded
    if other == "one record fewer":
        table = without_record(table, 17)
    elif other == "another table of another size":
        table = table_of(plan, 401, 5)
    else:
        table = Table(table.attributes, table.digests[:0], np.ascontiguousarray(table.codes[:, :0]))
    again = Tape(played=tape)
    assert run(plan, table, again) == message
    assert [(noise, exact.shape) for noise, exact in again.queries] == [(noise, exact.shape) for noise, exact in tape.queries]
    # Nor does the amount of entropy asked for depend on the table.
    assert again.bytes_asked == tape.bytes_asked


def test_every_query_is_in_the_ledger_and_no_more_often_than_it_says(plan, recorded):
    _, tape, _ = recorded
    allowed, sketches = Counter(), 0
    for entry in plan.entries():
        if entry.party not in ("one", "all parties"):
            continue
        match entry.event:
            case GaussianEvent(sigma=sigma, count=count):
                allowed[sigma] += count
            case SketchEvent():
                sketches += 1
    asked = Counter()
    for noise, exact in tape.queries:
        if noise in allowed and noise != plan.local[0].unit_sigma:
            # R-scores are queries of one number each; a marginal is one query however many cells it has.
            asked[noise] += exact.size if noise == plan.local[0].score_sigma else 1
        else:
            # A larger marginal of k units has k times the counts and k times the variance, as k queries would together.
            asked[plan.local[0].unit_sigma] += units_of(plan, noise)
    # Units are whole, so a few may be left over; everything else is asked exactly as ledgered.
    assert set(asked) == set(allowed)
    for noise, count in asked.items():
        if noise == plan.local[0].unit_sigma:
            assert 0.9 * allowed[noise] < count <= allowed[noise]
        else:
            assert count == allowed[noise]
    assert sketches == 1
    assert tape.bytes_asked


@pytest.mark.parametrize("record", range(6))
def test_one_record_moves_every_answer_by_no_more_than_its_sensitivity(plan, recorded, record):
    table, tape, _ = recorded
    again = Tape(played=tape)
    run(plan, without_record(table, 100 * record), again)
    by_sigma = {e.event.sigma: e.event for e in plan.entries() if isinstance(e.event, GaussianEvent) and e.party == "one"}
    for (noise, with_it), (_, without) in zip(tape.queries, again.queries, strict=True):
        moved = np.abs(with_it - without)
        if noise == plan.local[0].score_sigma:
            assert moved.max() <= by_sigma[noise].sensitivity
        elif noise in by_sigma and noise != plan.local[0].unit_sigma:
            assert moved.sum() <= by_sigma[noise].sensitivity == 1
        else:
            assert moved.sum() <= units_of(plan, noise)
            assert by_sigma[plan.local[0].unit_sigma].sensitivity == 1


def test_r_scores_move_by_less_than_two_records_on_hostile_tables():
    from vertimrf.party.local_model import _noisy_r_scores

    plan = plan_of(False)
    rng = np.random.default_rng(3)

    def score(codes):
        tape = Tape()
        _noisy_r_scores(codes, (4, 3), [(0, 1)], plan.local[0], tape)
        return tape.queries[0][1][0]

    worst = 0
    for n in (1, 2, 3, 5, 9, 40):
        for _ in range(60):
            # From independent to perfectly correlated to almost constant columns.
            a = rng.integers(0, rng.integers(1, 5), n)
            b = a % 3 if rng.random() < 0.5 else rng.integers(0, rng.integers(1, 4), n)
            codes = np.array([a, b], np.uint16)
            less = np.ascontiguousarray(np.delete(codes, rng.integers(n), axis=1))
            worst = max(worst, abs(int(score(codes)) - int(score(less))))
    assert SCORE_GRID / 4 < worst <= 2 * SCORE_GRID + 1


def test_sketches_are_published_only_after_phantoms(plan, recorded, monkeypatch):
    """The levels in the message are what ``result`` gave, and ``result`` drew a phantom for every single sketch."""
    table, _, _ = recorded
    given = []

    class Watched(SketchEncoder):
        def result(self, entropy):
            drawn = []

            def counted(count):
                drawn.append(count)
                return entropy(count)

            levels = super().result(counted)
            given.append((levels, sum(drawn)))
            return levels

    monkeypatch.setattr(party_module, "SketchEncoder", Watched)
    message = Party(plan, "one", SECRET).run(table)
    (levels, entropy), = given
    for published, encoded in zip(message.sketches, levels, strict=True):
        np.testing.assert_array_equal(published, encoded)
    assert entropy >= sum(table.size for table in levels)


def test_messages_of_like_plans_have_like_shapes(plan):
    """Fresh noise: shapes and sizes are the plan's, whoever is in the table."""
    one, two = (Party(plan, "one", Secret.new()).run(table_of(plan, rows, rows)) for rows in (10, 4000))
    assert [s.shape for s in one.sketches] == [s.shape for s in two.sketches]
    assert [m.shape for b in one.bins for m in b] == [m.shape for b in two.bins for m in b]
    first = len(plan.schema.party_attributes("one"))
    assert [m.attributes for m in one.marginals[:first]] == [m.attributes for m in two.marginals[:first]]
    if not plan.local[0].score_sigma:
        # Digits of the noisy count, which is released, and paddings are all that sizes may differ by.
        assert abs(len(one.to_bytes(plan)) - len(two.to_bytes(plan))) <= 64


def test_a_message_holds_nothing_but_its_ledgered_fields(plan, recorded):
    from vertimrf.files import container

    header, arrays = container.unpack(recorded[2], "party message", "message")
    assert set(header) <= {"plan", "party", "standing", "count", "marginals"}
    assert header["standing"]["reasons"] == []
    assert {name.rstrip("0123456789") for name in arrays} == {"marginal", "bins", "sketch"}
    assert {key for marginal in header["marginals"] for key in marginal} == {"attributes", "sigma", "units"}
    assert Message.from_bytes(recorded[2], plan).count == recorded[1].answers[0][0]


def test_a_plan_made_without_expected_records_ledgers_the_count_that_it_used():
    import pandas as pd

    rng = np.random.default_rng(0)
    rows = 500
    left = pd.DataFrame({"id": range(rows), "a0": rng.integers(0, 3, rows)})
    right = pd.DataFrame({"id": range(rows), "a1": rng.integers(0, 2, rows)})
    schema = schema_of((3, 2))
    trial = synthesize([left, right], "id", 1.0, schema=schema, options=RunOptions(seed=0))
    assert trial.ledger.entries[0].released.startswith("record count")
    assert trial.ledger.entries[0].party == "coordinator"
    assert trial.ledger.epsilon <= 1.0
    assert trial.ledger.private
    # Without a schema the domains come from the data, and the run says so.
    inferred = synthesize([left, right], "id", 1.0, options=RunOptions(seed=0))
    assert not inferred.ledger.private
    assert json.loads(json.dumps(inferred.to_json()))["private"] is False

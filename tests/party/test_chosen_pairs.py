"""Pairs that a party chooses one by one: what is chosen, its price, and what a message may hold."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from builders import schema_of
from msgspec.structs import replace as replace_in
from planning import plan_with

from vertimrf import Attribute, RunOptions, Schema
from vertimrf.errors import MessageError, PlanError
from vertimrf.message import Message
from vertimrf.model.local_marginal import LocalMarginal
from vertimrf.party.chosen_pairs import ChosenPairs
from vertimrf.party.measured import differences
from vertimrf.party.party import Party
from vertimrf.party.secret import Secret
from vertimrf.plan.local_bins import Cutting, cuttings
from vertimrf.plan.local_plan import LocalPlan, local_entries
from vertimrf.plan.shares import USUAL, Outlook, choices, choosing_is_better
from vertimrf.plan.workload import Workload
from vertimrf.privacy.choice import ChoiceEvent
from vertimrf.privacy.ledger import Kind, Ledger
from vertimrf.privacy.noise import FixedNoise
from vertimrf.server.server import Server
from vertimrf.tables.table import Table

RECORDS, COLUMNS, VALUES = 3000, 16, 20


def chain(seed=0, columns=COLUMNS, values=VALUES, records=RECORDS):
    """Columns of 20 values; the second of each two is nearly the first [shape=(16, 3000), uint16]."""
    rng = np.random.default_rng(seed)
    first = rng.integers(0, values, (columns // 2, records))
    near = np.clip(first + rng.integers(-1, 2, first.shape), 0, values - 1)
    return np.stack([first, near], axis=1).reshape(columns, records).astype(np.uint16)


@pytest.fixture(scope="module")
def small():
    """A plan whose holder chooses its pairs, and its message."""
    schema = schema_of(one=(VALUES,) * COLUMNS)
    plan = plan_with(schema, expected_records=RECORDS, nonce="chosen")
    digests = np.arange(RECORDS, dtype=np.uint64)
    table = Table(schema.part("one"), digests, np.ascontiguousarray(chain()))
    return plan, Party(plan, "one", Secret.new(), FixedNoise(1)).run(table)


def test_a_plan_of_little_data_has_choices_in_its_ledger(small):
    plan, _ = small
    local = plan.local[0]
    assert local.choices == choices(COLUMNS) == 2 * COLUMNS - 1
    assert not local.score_sigma
    (entry,) = [entry for entry in plan.entries() if entry.kind is Kind.CHOICES]
    assert entry.event == ChoiceEvent(local.choice_scale, 1, local.choices)
    assert plan.ledger().epsilon <= 1
    several = local_entries("one", COLUMNS, 0, local, 3)
    assert [e.event.sensitivity for e in several if e.kind is Kind.CHOICES] == [3]
    assert type(plan).from_json(plan.to_json()).digest() == plan.digest()
    assert not plan_with(plan.schema, expected_records=10**7).local[0].choices


def test_a_message_holds_a_tree_of_the_strongest_pairs_and_finer_tables_of_these(small):
    plan, message = small
    pairs = [m for m in message.marginals if len(m.attributes) == 2]
    coarse = [m.attributes for m in pairs if m.parts == (2, 2)]
    assert len(coarse) == len(set(coarse)) <= plan.local[0].choices
    # Each of the eight is nine standard deviations of a choice above all others.
    strong = {(a, a + 1) for a in range(0, COLUMNS, 2)}
    assert strong <= set(coarse[: COLUMNS - 1])
    joined = {0}
    for _ in range(COLUMNS):
        joined |= {a for pair in coarse[: COLUMNS - 1] if joined & {*pair} for a in pair}
    assert joined == set(range(COLUMNS))
    finer = {m.attributes for m in pairs if m.parts != (2, 2)}
    assert strong <= finer
    assert sum(m.units for m in pairs) <= plan.local[0].units


def test_the_model_has_what_was_chosen(small):
    plan, message = small
    server = Server(plan, RunOptions(rows=RECORDS, seed=1))
    rows = server.run(server.read([message])).codes
    true = np.corrcoef(chain())
    found = np.corrcoef(rows)
    for a in range(0, COLUMNS, 2):
        assert found[a, a + 1] > 0.9 * true[a, a + 1]
    # Of independent columns no pair is beyond .2: the error of a chosen one is .04.
    apart = [(a, b) for a, b in itertools.combinations(range(COLUMNS), 2) if a // 2 != b // 2]
    assert max(abs(found[pair]) for pair in apart) < 0.25


def test_what_is_released_varies_around_the_truth_as_it_states():
    """Of any marginal, in any bins."""
    codes, off = chain(3), []
    for seed in range(20):
        plan = LocalPlan(20.0, 0.0, 4096, 500.0, 10**5, False, True, 0.0, 31, 40.0)
        for m in chosen(codes, plan, seed).released:
            exact = counted(codes, [m.attributes], dict(zip(m.attributes, m.bins, strict=False)))[0]
            off.append(((m.counts / m.units - differences(exact, m.contrasts)) / m.error).ravel())
    squares = np.square(np.concatenate(off))
    # A mean of chi-squares of one degree: five standard errors.
    assert abs(squares.mean() - 1) < 5 * math.sqrt(2 / squares.size)


def counted(codes, wanted, maps):
    """Exact marginals."""
    out = []
    for attributes in wanted:
        rows = [codes[a] if maps.get(a) is None else maps[a][codes[a]] for a in attributes]
        shape = [VALUES if maps.get(a) is None else int(maps[a].max()) + 1 for a in attributes]
        table = np.zeros(shape, np.int64)
        np.add.at(table, tuple(rows), 1)
        out.append(table)
    return out


def chosen(codes, plan, seed=0, wanted=None):
    noise = FixedNoise(seed)
    one_way = [
        LocalMarginal((a,), noise.gaussian(np.bincount(row, minlength=VALUES), 20.0), 20.0)
        for a, row in enumerate(codes)
    ]
    out = ChosenPairs(
        lambda sets, maps: counted(codes, sets, maps),
        one_way,
        [Cutting(True, False, False)] * len(codes),
        plan,
        noise,
        float(codes.shape[1]),
    )
    out.measure(wanted or Workload())
    return out


def test_what_a_workload_asks_for_is_measured_once_in_the_same_bins():
    """With so much noise, in halves alone."""
    plan = LocalPlan(20.0, 0.0, 4096, 10**6, 10**5, False, True, 0.0, 31, 40.0)
    wanted = Workload((((0, 1), 1.0),))
    measured = [(m.attributes, m.parts) for m in chosen(chain(), plan, 0, wanted).released]
    assert measured[0] == ((0, 1), (2, 2))
    assert len(measured) == len(set(measured))


def test_one_record_moves_a_score_by_at_most_one():
    """By its cell alone, whatever the released figures are."""
    rng = np.random.default_rng(0)
    plan = LocalPlan(20.0, 0.0, 4096, 500.0, 10**5, False, True, 0.0, 31, 40.0)
    made = chosen(chain(), plan)
    for halves in ((True, True), (True, False), (False, False)):
        made._halved[:2] = halves
        for _ in range(50):
            shape = [2 + rng.integers(0, 2) if half else rng.integers(2, 5) for half in halves]
            expected, table = rng.integers(0, 99, shape), rng.integers(0, 99, shape)
            more = table.copy()
            more[tuple(rng.integers(0, n) for n in shape)] += 1
            scores = [np.abs(made._numbers((0, 1), t - expected)).sum() for t in (table, more)]
            assert abs(scores[1] - scores[0]) <= 1


def test_a_message_of_other_bins_than_its_plan_has_is_refused(small):
    plan, message = small

    def read(marginals):
        return Message.from_bytes(replace(message, marginals=marginals).to_bytes(plan), plan)

    *others, last = message.marginals
    back = read(message.marginals)
    for sent, came in zip(message.marginals, back.marginals, strict=True):
        assert (sent.parts, len(sent.bins)) == (came.parts, len(came.bins))
        for mine, its in zip(sent.bins, came.bins, strict=True):
            np.testing.assert_array_equal(mine, its)
    for bad, words in (
        ((*others, replace(last, parts=())), "bins that the plan does not ask for"),
        ((*others, replace(last, parts=(1, 2))), "bins that the plan does not ask for"),
        ((*others, replace(last, parts=(2, 2, 2))), "bins that the plan does not ask for"),
        ((replace(others[0], parts=(2,)), *others[1:], last), "bins that the plan does not ask"),
        ((*others, replace(last, parts=(2, 19))), "has shape"),
        ((*message.marginals, last), "repeats another"),
    ):
        with pytest.raises(MessageError, match=words):
            read(bad)


def test_a_message_of_more_pairs_than_its_ledger_has_choices_is_refused(small):
    plan, message = small
    local = plan.local[0]
    first, others = message.marginals[:COLUMNS], message.marginals[COLUMNS:]
    pair = others[-1]
    every = [*itertools.combinations(range(COLUMNS), 2)]

    def read(pairs, plan=plan):
        marginals = (
            *first,
            *(
                replace(
                    pair,
                    attributes=a,
                    parts=p,
                    counts=np.zeros([k - (k == 2) for k in p], np.int64),
                    contrasts=tuple(i for i, k in enumerate(p) if k == 2),
                    units=1,
                    sigma=local.unit_sigma,
                    bins=(),
                )
                for a, p in pairs
            ),
        )
        sent = replace(message, marginals=marginals, plan_digest=plan.digest())
        return Message.from_bytes(sent.to_bytes(plan), plan)

    allowed = [(a, (2, 2)) for a in every[: local.choices]]
    finer = [(a, (3, 3)) for a in every[: local.choices]]
    assert len(read([*allowed, *finer]).marginals) == COLUMNS + 2 * local.choices
    with pytest.raises(
        MessageError, match=f"{local.choices + 1} marginals .* {local.choices} choices"
    ):
        read([*allowed, (every[local.choices], (2, 2))])
    with pytest.raises(MessageError, match="more tables of one pair"):
        read([*allowed, *finer, (every[0], (4, 4))])
    with pytest.raises(MessageError, match="1 marginals that the plan does not ask for"):
        read([((0, 1, 2), (3, 3, 3))])
    # What the workload asks for is no choice, and may have one table more.
    asked = replace(
        plan, workload=Workload.of(plan.schema, [[plan.schema.names[a] for a in every[-1]]])
    )
    more = [*allowed, *((every[-1], parts) for parts in ((2, 2), (3, 3), (4, 4)))]
    assert len(read(more, asked).marginals) == COLUMNS + local.choices + 3


@pytest.mark.parametrize(
    "changes",
    [{"choices": 3, "choice_scale": 0.0}, {"choices": 0, "choice_scale": 3.0}, {"choices": 9}],
)
def test_choices_without_a_price_are_refused(changes):
    fields = {"choices": 3, "choice_scale": 2.0} | changes
    with pytest.raises(PlanError, match="choices with a scale"):
        LocalPlan(1.0, 0.0, 8, 9.0, 100, False, True, 0.0, **fields)


def test_missing_values_are_apart_and_columns_that_others_name_keep_their_values():
    cut = Cutting(ordered=True, missing=True, kept=False)
    counts = np.array([50, 50, 60, 60, 40])
    np.testing.assert_array_equal(cut.bins(counts, 5.0, 2), [0, 0, 1, 1, 2])
    # Fewer than noise alone may count.
    np.testing.assert_array_equal(cut.bins(counts, 20.0, 2), [0, 0, 1, 1, 1])
    assert replace(cut, kept=True).bins(counts, 5.0, 2) is None
    both = Attribute.integer("both", 9)
    schema = Schema.of({"one": [both, Attribute.integer("a", 9)], "two": [both]})
    assert [cut.kept for cut in cuttings(schema, (0, 1))] == [True, False]


def test_pairs_are_chosen_where_scores_are_blind_and_never_with_more_budget_alone():
    """And only by holders of more than their cliques hold."""
    sizes = ((20,) * 24,)

    def better(records, rho, columns=sizes, clique=10**5):
        return choosing_is_better(Outlook(columns, records, rho, clique, 0), USUAL)

    assert better(3000, 0.02)
    assert not better(10**6, 0.02)
    assert not better(3000, 50.0)
    assert not better(100, 0.001)
    # Columns are off by 0.26 and 0.30 on average by noise.
    mixed = ((2,) * 10 + (40,) * 14,)
    assert better(1600, 0.02, mixed)
    assert not better(1400, 0.02, mixed)
    assert not better(3000, 0.02, ((20, 20),))
    assert not better(3000, 0.02, clique=20**25)
    assert better(3000, 0.02, ((20,) * 12, (20,) * 12))
    # The smaller party has no pair to choose, and the larger one's scores see.
    assert not better(10**6, 0.02, ((20,) * 23, (20,)))
    assert [choices(d) for d in (1, 2, 3, 4, 24)] == [0, 0, 3, 6, 47]
    assert math.isfinite(choices(10))


def test_a_plan_of_fewer_choices_than_a_tree_needs_is_refused(small):
    """A party makes a tree of its columns, whatever the plan says; so the ledger must have its price."""
    plan, _ = small
    content = plan.to_json()
    content["local"][0]["choices"] = COLUMNS - 2
    with pytest.raises(
        PlanError, match="choices of pairs: they are for a tree of its 16 attributes"
    ):
        type(plan).from_json(content)
    content["local"][0]["choices"] = COLUMNS - 1
    assert type(plan).from_json(content).local[0].choices == COLUMNS - 1


def test_choices_leave_units_for_what_a_workload_asks_for():
    local = LocalPlan(10.0, 0.0, 4096, 100.0, 1000, False, True, 0.0, 3072, 40.0)
    assert local.choices == 3072
    with pytest.raises(PlanError, match="three quarters of 4096 units"):
        replace_in(local, choices=3073)
    outlook = Outlook(((4,) * 1600,), 10**5, 0.02, 10**5, 0)
    assert not choosing_is_better(outlook, USUAL)


def test_pairs_of_more_cells_than_a_clique_has_are_not_chosen():
    """Their message would be refused, after the budget was spent."""
    names = [f"{letter}{i}" for letter in "ab" for i in range(5)]
    columns = [Attribute.categorical(f"c{i}", names) for i in range(12)]
    schema = Schema.of({"one": columns})
    rng = np.random.default_rng(4)
    first = rng.integers(0, 10, (6, RECORDS))
    codes = np.concatenate([first, (first + rng.integers(0, 2, first.shape)) % 10])
    table = Table(schema.part("one"), np.arange(RECORDS, dtype=np.uint64), codes.astype(np.uint16))
    plan = plan_with(schema, expected_records=RECORDS, nonce="small cliques", tau=30)
    # Six groups of each column are 36 cells. Where the plan has choices, nothing can be chosen.
    local = replace_in(
        plan.local[0], choices=choices(12), choice_scale=50.0, score_sigma=0.0, contrasts=True
    )
    plan = replace(plan, local=(local,))
    message = Party(plan, "one", Secret.new(), FixedNoise(2)).run(table)
    assert all(m.counts.size <= 30 for m in message.marginals)
    assert Server(plan).read([Message.from_bytes(message.to_bytes(plan), plan)])


# Columns, values and records of each of two parties.
OF_TWO = (12, 9, 2000)


@pytest.fixture(scope="module")
def apart():
    """A plan of two parties that choose their pairs, and their messages."""
    columns, values, records = OF_TWO
    schema = schema_of(one=(values,) * columns, two=(values,) * columns)
    plan = plan_with(schema, expected_records=records, nonce="chosen apart")
    digests, secret = np.arange(records, dtype=np.uint64), Secret.new()
    messages = [
        Party(plan, name, secret, FixedNoise(number)).run(
            Table(schema.part(name), digests, np.ascontiguousarray(chain(number, *OF_TWO)))
        )
        for number, name in enumerate(("one", "two"))
    ]
    return plan, messages


def test_each_of_several_parties_chooses_and_the_ledger_has_the_choices_of_all(apart):
    plan, messages = apart
    chosen = [entry for entry in plan.entries() if entry.kind is Kind.CHOICES]
    assert [entry.party for entry in chosen] == ["one", "two"]
    assert [e.event.count for e in chosen] == [local.choices for local in plan.local]
    assert [local.choices for local in plan.local] == [choices(OF_TWO[0])] * 2
    assert plan.ledger().epsilon <= 1
    fewer = [entry for entry in plan.entries() if entry != chosen[1]]
    assert Ledger(fewer, plan.delta).epsilon < plan.ledger().epsilon
    for message in messages:
        back = Message.from_bytes(message.to_bytes(plan), plan)
        assert {m.attributes for m in back.marginals} == {m.attributes for m in message.marginals}


def test_the_rows_keep_what_each_of_two_parties_chose(apart):
    plan, messages = apart
    server = Server(plan, RunOptions(rows=OF_TWO[2], seed=1))
    found = np.corrcoef(server.run(server.read(messages)).codes)
    true = np.corrcoef(np.concatenate([chain(0, *OF_TWO), chain(1, *OF_TWO)]))
    kept = [found[a, a + 1] / true[a, a + 1] for a in range(0, len(true), 2)]
    assert np.median(kept) > 0.8


def test_two_columns_of_two_values_are_measured_twice_where_one_decides_the_other(monkeypatch):
    """A complement: halves are all its values, and a second measurement halves the error."""
    monkeypatch.setitem(globals(), "VALUES", 2)
    codes = np.random.default_rng(0).integers(0, 2, (COLUMNS, RECORDS))
    codes[1] = 1 - codes[0]
    plan = LocalPlan(20.0, 0.0, 4096, 500.0, 10**5, False, True, 0.0, 31, 40.0)
    measured = [m.parts for m in chosen(codes, plan).released if m.attributes == (0, 1)]
    assert measured == [(2, 2), (3, 3)]


def test_the_halves_of_a_column_of_rare_values_have_the_error_of_their_common_value():
    """The sum of 19 noisy counts is farther off than the count of the only other value."""
    codes = np.zeros((4, RECORDS), np.int64)
    codes[:, :60] = np.arange(60) % VALUES
    made = [
        chosen(codes, LocalPlan(20.0, 0.0, 4096, 500.0, 10**5, False, True, 0.0, 5, 40.0), seed)
        for seed in range(20)
    ]
    off = np.array([m._margins[0][0] - np.sum(codes[0] == 0) for m in made])
    # Chi-square of 20 degrees beyond 60: a chance of 7e-6. By 19 counts it would be 87 records each.
    assert (off**2).sum() < 60 * 20.0**2
    assert made[0]._errors[0] == pytest.approx(20 * math.sqrt(19 / 20))

"""Workloads: what they weigh, what they refuse, and that structure search goes by them."""

import itertools

import numpy as np
import pyarrow as pa
import pytest
from builders import dealt, schema_of
from commands import good, refused
from msgspec import structs
from planning import plan_with

from vertimrf import Attribute, Plan, PlanOptions, RunOptions, Schema, Synthesizer
from vertimrf.errors import PlanError, SchemaError
from vertimrf.model.junction_tree import junction_tree
from vertimrf.party.local_model import ASKED_SHARE, choose_marginals
from vertimrf.plan.planner import plan_local
from vertimrf.plan.summary import summary
from vertimrf.plan.workload import MAX_ANALYSES, MAX_COLUMNS, MIN_RELEVANCE, Workload
from vertimrf.releases.count_sketches.parameters import MAX_WEIGHT
from vertimrf.releases.count_sketches.planning import MIN_ASKED_BINS
from vertimrf.releases.count_sketches.weights import ASKED
from vertimrf.trial import run_protocol

SCHEMA = schema_of(one={"a": 4, "b": 3, "c": 2}, two={"x": 4, "y": 2})


def test_relevance_by_hand():
    nothing = Workload.of(SCHEMA, None)
    assert nothing == Workload()
    assert nothing.relevance((0, 1)) == 1
    wanted = Workload.of(SCHEMA, {("x", "a", "b"): 4.0, ("c", "y"): 1.0})
    assert wanted.marginals == (((0, 1, 3), 4.0), ((2, 4), 1.0))
    assert wanted.relevance((0, 1)) == wanted.relevance((0, 1, 3)) == 1
    assert wanted.relevance((0, 1, 2)) == pytest.approx(1 / 3)
    assert wanted.relevance((2, 4)) == 0.25
    assert wanted.relevance((0, 2)) == MIN_RELEVANCE
    assert Workload.of(SCHEMA, [["b", "a"], ["a", "b"]]).marginals == (((0, 1), 2.0),)
    assert wanted.part((2, 3, 4)).marginals == (((1,), 4.0), ((0, 2), 1.0))


@pytest.mark.parametrize(
    "wrong",
    [
        ["ab"],
        [[]],
        [["a", "a"]],
        {("a", "b"): 0.0},
        {("a", "b"): float("nan")},
        # Sums of such weights overflow.
        {"a ~ b": 1e308, "a vs b": 1e308},
        {("a", "b"): 1e-9},
        ["a ~ b"] * (MAX_ANALYSES + 1),
    ],
)
def test_what_is_refused(wrong):
    with pytest.raises(PlanError, match="workload"):
        plan_with(SCHEMA, expected_records=1000, keys=1 << 12, workload=wrong)
    with pytest.raises(SchemaError, match="no attribute 'z'"):
        Workload.of(SCHEMA, [["z"]])


def test_a_marginal_of_columns_without_choice_is_limited_by_their_number():
    """Its cells say nothing, and its subsets are 2 to the power of its columns."""
    columns = [f"c{i}" for i in range(MAX_COLUMNS + 1)]
    schema = schema_of(one=dict.fromkeys(columns, 1))
    data = [{"asked": ", ".join(columns), "weight": 1.0}]
    with pytest.raises(PlanError, match="leave columns out"):
        Workload.from_json(data, schema)


def test_plans_carry_it_and_those_without_are_as_before():
    plain = plan_with(SCHEMA, expected_records=1000, keys=1 << 12, nonce="n")
    assert "workload" not in plain.to_json()
    plan = plan_with(SCHEMA, expected_records=1000, keys=1 << 12, nonce="n", workload=[["x", "a"]])
    assert plan.digest() != plain.digest()
    # Sketches have other weights, and so another cost below the same target.
    assert plan.ledger().epsilon == pytest.approx(plain.ledger().epsilon, abs=1e-6)
    assert plan.ledger().epsilon <= 1
    inside = plan_with(
        SCHEMA, expected_records=1000, keys=1 << 12, nonce="n", workload=[["a", "b"]]
    )
    assert inside.ledger().epsilon == plain.ledger().epsilon
    assert "matter most: a × x (asked: x, a)." in summary(plan)


def test_a_plan_has_the_analysis_in_the_users_words():
    asked = ["a ~ b + C(x)", "mean(x) by a, b", ["c", "y"]]
    plan = plan_with(SCHEMA, expected_records=1000, keys=1 << 12, workload=asked)
    assert plan.workload.asked == (("a ~ b + C(x)", 1.0), ("mean(x) by a, b", 1.0), ("c, y", 1.0))
    assert plan.workload.marginals == (
        ((0, 1), 1.0),
        ((0, 3), 1.0),
        ((1, 3), 1.0),
        ((0, 1, 3), 1.0),
        ((2, 4), 1.0),
    )
    assert plan.workload.pairs == {(0, 1), (0, 3), (1, 3), (2, 4)}
    first, second, third = (line.strip() for line in summary(plan).splitlines()[-3:])
    assert first == "Marginals that matter most: a × b, a × x, b × x (asked: a ~ b + C(x))."
    assert second.endswith(
        "a × b × x (asked: mean(x) by a, b; across parties, three and more columns come from their pairs)."
    )
    assert third == "Marginals that matter most: c × y (asked: c, y)."
    # A file cannot show other words than its marginals follow from.
    edited = plan.to_json()
    edited["workload"][0]["asked"] = "a ~ q"
    with pytest.raises(PlanError, match="there is no column 'q'; there are a, b, c, x, y"):
        Plan.from_json(edited)


def test_columns_of_asked_pairs_across_parties_weigh_more():
    def weights(workload):
        plan = plan_with(SCHEMA, expected_records=100_000, message_bytes=10**6, workload=workload)
        of = zip(plan.groups, plan.sketch.weights, strict=True)
        return {g.attributes[0]: weight for g, weight in of if g.shows_attribute}

    plain, wanted = weights(None), weights(["a ~ b + x"])
    for attribute in range(5):
        # Weights are odd numbers; a and b are at one party, and x at the other.
        factor = ASKED if attribute in (0, 1, 3) else 1
        assert abs(wanted[attribute] - factor * plain[attribute]) <= factor
    # Pairs of one party need no sketches.
    assert weights(["a ~ b + c"]) == plain
    # A long column that is asked for, beside parties that publish presence, has the largest weight.
    long = schema_of(one={"a": 250, "b": 2}, two={"x": 2}, three={"y": 2})
    plan = plan_with(long, expected_records=10**5, keys=64, workload=["x vs a"])
    assert max(plan.sketch.weights) == MAX_WEIGHT


def test_asked_for_numbers_have_fewer_bins_across_parties():
    """A cell's error hardly depends on the records: with ten times as many there are 10^(2/5) times as many bins."""
    names = [Attribute.categorical(name, range(40)) for name in ("z", "w")]
    numbers = [Attribute.integer(name, 40) for name in ("a", "b", "x")]
    schema = Schema.of({"one": [*numbers[:2], names[0]], "two": [numbers[2], names[1]]})

    def bins(records, *workload):
        plan = plan_with(schema, expected_records=records, workload=workload)
        return {schema.names[g.attributes[0]]: g.size for g in plan.groups}

    few, many = (bins(records, "a ~ x + w") for records in (10**5, 10**6))
    for found in (few, many):
        # Nobody asks for b and z, and w has no order.
        assert found["b"] == found["z"] == found["w"] == 40
        assert found["a"] == found["x"]
    # Delta falls with the records, and bins are whole numbers of about 16.
    assert many["a"] / few["a"] == pytest.approx(10**0.4, rel=0.1)
    # Pairs of one party are counted there.
    assert bins(10**5, "a ~ b + z") == bins(10**5) == dict.fromkeys("abxzw", 40)
    small = schema_of(one={"a": 10, "b": 3}, two={"x": 2})
    plan = plan_with(small, expected_records=300, workload=["a ~ x"])
    assert [group.size for group in plan.groups] == [MIN_ASKED_BINS, 3, 2]


def test_fits_and_draws_know_the_numbers_that_are_asked_for_across_parties():
    """Of b and x, y, which has no order; nobody asks for a and x."""
    rng = np.random.default_rng(0)
    letters = [Attribute.categorical(name, list("klmn")) for name in "by"]
    numbers = [Attribute.integer(name, 4) for name in "ax"]
    schema = Schema.of({"one": [numbers[0], letters[0]], "two": [numbers[1], letters[1]]})
    tables = dealt(schema, rng.integers(0, 4, (4, 4000)))
    plan = plan_with(schema, expected_records=4000, keys=1 << 12, workload=["b vs x, y"])
    measured = run_protocol(plan, tables, RunOptions(seed=0)).result.figures.noise.measurements
    assert {m.attributes for m in measured if m.asked} == {(1, 2)}
    assert {(0, 2), (1, 3)} <= {m.attributes for m in measured}


def test_keys_of_scheduled_pairs_go_to_what_matters():
    def keys(workload):
        plan = plan_with(
            SCHEMA,
            expected_records=100_000,
            encoder="scheduled-pairs",
            keys=10**6,
            workload=workload,
        )
        pairs = plan.sketch.pairs
        places = [
            (plan.groups[p.left].attributes[0], plan.groups[p.right].attributes[0]) for p in pairs
        ]
        return dict(zip(places, (pair.keys for pair in pairs), strict=True))

    plain, wanted = keys(None), keys(["a vs x"])
    ratios = {pair: wanted[pair] / plain[pair] for pair in plain}
    others = [ratio for pair, ratio in ratios.items() if pair != (0, 3)]
    assert ratios[0, 3] == pytest.approx(max(others) / MIN_RELEVANCE, rel=0.01)
    assert max(others) == pytest.approx(min(others), rel=0.01)


def test_units_go_to_what_matters():
    sizes = (4, 4, 4, 4)
    tree = junction_tree(sizes, {(i, j) for i in range(4) for j in range(i)})
    plan = plan_local(sizes, 0.5, 100, False)
    unweighted = dict(choose_marginals(tree, 1e6, plan))
    wanted = dict(choose_marginals(tree, 1e6, plan, Workload((((0, 1), 1.0),))))
    assert wanted[0, 1] > 2 * unweighted[0, 1]
    assert wanted[2, 3] < unweighted[2, 3]
    assert sum(wanted.values()) <= plan.units


def test_what_is_asked_for_has_its_part_of_the_budget():
    """Of many attributes, two pairs that are asked for; one of them in no clique, and of noise alone."""
    d = 30
    pairs = list(itertools.combinations(range(d), 2))
    tree = junction_tree((4,) * d, set(pairs) - {(0, 1)})
    scores = dict.fromkeys(pairs, 0.0)
    plan = structs.replace(plan_local((4,) * d, 0.5, 4**20, False), score_sigma=1.0, units=1 << 20)
    wanted = Workload((((0, 1), 1.0), ((2, 3, 4), 1.0)))
    units = dict(choose_marginals(tree, 1e6, plan, wanted, scores))
    asked = [(0, 1), (2, 3, 4), (2, 3), (2, 4), (3, 4)]
    spent = sum(units[marginal] for marginal in asked) / sum(units.values())
    # Units are whole, and every one of about 4,000 marginals has at least one of the million.
    assert spent == pytest.approx(ASKED_SHARE, abs=0.01)
    assert units[2, 3, 4] > units[2, 3] > 10 * units[5, 6]
    assert (0, 1) not in dict(choose_marginals(tree, 1e6, plan, Workload(), scores))


def test_the_global_graph_spends_its_cliques_on_what_matters():
    """Four attributes that copy one hidden value; tau leaves room for few pairs, and the one that matters is among them."""
    rng = np.random.default_rng(0)
    schema = schema_of(one={"a": 6, "b": 6}, two={"x": 6, "y": 6})
    hidden = rng.integers(0, 6, 8000)
    # The pair that matters is the weakest, so that without a workload it would come last.
    copies = [
        np.where(rng.random(8000) < kept, hidden, rng.integers(0, 6, 8000))
        for kept in (0.9, 0.35, 0.9, 0.35)
    ]
    tables = dealt(schema, np.stack(copies))
    inside = {}
    for name, workload in (("alike", None), ("wanted", [["b", "y"]])):
        plan = plan_with(
            schema, epsilon=20.0, expected_records=8000, keys=1 << 14, tau=36, workload=workload
        )
        tree = run_protocol(plan, tables, RunOptions(seed=0)).result.model.tree
        inside[name] = tree.covering((1, 3)) >= 0
    assert inside == {"alike": False, "wanted": True}


def test_what_is_asked_for_is_in_the_model_also_if_it_is_noise():
    """Independent columns: no score brings a pair into a clique of 36 cells, or three columns into one of 216."""
    rng = np.random.default_rng(0)
    schema = schema_of(one={"a": 6, "b": 6}, two={"x": 6, "y": 6})
    tables = dealt(schema, rng.integers(0, 6, (4, 4000)))
    for workload, tau in ((["b vs y"], 36), (["mean(a) by b, x"], 216)):
        plan = plan_with(schema, expected_records=4000, keys=1 << 12, tau=tau, workload=workload)
        ((wanted, _),) = plan.workload.marginals
        result = run_protocol(plan, tables, RunOptions(seed=0)).result
        assert result.model.tree.covering(wanted) >= 0
        (sentence,) = result.to_json()["workload"]
        assert sentence.startswith("Marginals that matter most: ")
        assert workload[0] in sentence


def test_a_holder_of_all_columns_says_what_was_asked():
    rng = np.random.default_rng(0)
    table = {name: rng.integers(0, 3, 500) for name in "abcd"}
    schema = schema_of(all=dict.fromkeys("abcd", 3))
    planning = PlanOptions(expected_records=500, workload="a ~ b * c", even_if_useless=True)
    synthesizer = Synthesizer(schema, planning=planning).fit(pa.table(table), epsilon=1.0)
    assert synthesizer.model.field.tree.covering((0, 1, 2)) >= 0
    sentence = "Marginals that matter most: a × b × c (asked: a ~ b * c)."
    assert synthesizer.to_json()["workload"] == [sentence]


def test_the_command_refuses_and_shows(tmp_path):
    path, out = tmp_path / "schema.toml", tmp_path / "plan.json"
    path.write_text(SCHEMA.to_toml())
    words = ("plan --schema", path, "--epsilon 1 --expected-records 100000 --out", out)
    printed = refused(*words, ["--workload", "a ~ bb"])
    assert "The workload's 'a ~ bb' is not clear: there is no column 'bb'; near it: b." in printed
    assert not out.exists()
    printed = good(*words, ["--workload", "a ~ b + x", "--workload", "c,y"])
    assert "Marginals that matter most: a × b, a × x, b × x (asked: a ~ b + x)." in printed
    assert "Marginals that matter most: c × y (asked: c,y)." in printed
    assert Plan.load(out).workload.asked == (("a ~ b + x", 1.0), ("c,y", 1.0))

"""Workloads: what they weigh, what they refuse, and that structure search goes by them."""

import numpy as np
import pytest
from builders import dealt, schema_of
from planning import plan_with

from vertimrf.errors import PlanError, SchemaError
from vertimrf.model.junction_tree import junction_tree
from vertimrf.options import RunOptions
from vertimrf.party.local_model import choose_marginals
from vertimrf.plan.plan import Plan
from vertimrf.plan.planner import plan_local
from vertimrf.plan.workload import MIN_RELEVANCE, Workload
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
    "wrong", [["ab"], [[]], [["a", "a"]], {("a", "b"): 0.0}, {("a", "b"): float("nan")}]
)
def test_what_is_refused(wrong):
    with pytest.raises(PlanError, match="workload"):
        plan_with(SCHEMA, epsilon=1.0, expected_records=1000, keys=1 << 12, workload=wrong)
    with pytest.raises(SchemaError, match="no attribute 'z'"):
        Workload.of(SCHEMA, [["z"]])


def test_plans_carry_it_and_those_without_are_as_before():
    plain = plan_with(SCHEMA, epsilon=1.0, expected_records=1000, keys=1 << 12, nonce="n")
    assert "workload" not in plain.to_json()
    plan = plan_with(
        SCHEMA, epsilon=1.0, expected_records=1000, keys=1 << 12, nonce="n", workload=[["x", "a"]]
    )
    assert plan.digest() != plain.digest()
    assert plan.ledger().epsilon == plain.ledger().epsilon
    back = Plan.from_json(plan.to_json())
    assert back == plan
    assert "matter most: a × x" in plan.summary()


def test_units_go_to_what_matters():
    sizes = (4, 4, 4, 4)
    tree = junction_tree(sizes, {(i, j) for i in range(4) for j in range(i)})
    plan = plan_local(sizes, 0.5, 100, False)
    unweighted = dict(choose_marginals(tree, 1e6, plan))
    wanted = dict(choose_marginals(tree, 1e6, plan, Workload((((0, 1), 1.0),))))
    assert wanted[0, 1] > 2 * unweighted[0, 1]
    assert wanted[2, 3] < unweighted[2, 3]
    assert sum(wanted.values()) <= plan.units


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

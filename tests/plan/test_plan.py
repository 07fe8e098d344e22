"""Plans as files: read back as they were, and refused where they were edited into what no run can follow."""

import json
from functools import partial

import numpy as np
import pytest
from builders import schema_of
from msgspec.structs import replace
from planning import edited, plan_with

from vertimrf import Plan, PlanOptions, VertiMRFError
from vertimrf.errors import PlanError, PrivacyError
from vertimrf.files.convert import from_json, to_json
from vertimrf.plan.local_plan import LocalPlan
from vertimrf.plan.target import check_target
from vertimrf.privacy.accountant import epsilon
from vertimrf.privacy.events import (
    CountSketchEvent,
    GaussianEvent,
    GeometricEvent,
    GRREvent,
    SketchEvent,
    ThresholdEvent,
)
from vertimrf.privacy.ledger import LedgerEntry
from vertimrf.releases.count_sketches.parameters import CountSketches
from vertimrf.releases.randomised_responses.parameters import RandomisedResponses
from vertimrf.tables.table import Table
from vertimrf.trial import plan_for

SCHEMA = schema_of(one={"a": 4, "b": 3}, two={"x": 4, "y": 2})
small_plan = partial(plan_with, SCHEMA, expected_records=20_000, nonce="test")


@pytest.fixture(scope="module")
def content():
    return small_plan(keys=1 << 16, encoder="scheduled-pairs").to_json()


@pytest.mark.parametrize("tau, free", [(4 * 3 * 4 * 2, True), (4 * 3 * 4 * 2 - 1, False)])
def test_marginals_compete_for_cliques_unless_one_holds_the_attributes_of_all_parties(tau, free):
    assert [local.free for local in small_plan(keys=1 << 12, tau=tau).local] == [free, free]


@pytest.mark.parametrize("records, delta", [(1, 1e-6), (500, 1e-6), (40_000, 1 / 40_000**2)])
def test_the_default_delta_is_small_however_few_records_there_are(records, delta):
    schema = schema_of(one={"a": 4}, two={"x": 4})
    assert plan_with(schema, expected_records=records, nonce="test", keys=1 << 12).delta == delta


def test_a_noisy_count_to_plan_with_is_never_below_its_noise():
    schema = schema_of(one={"a": 2})
    for seed in range(5):
        codes = np.random.default_rng(seed).integers(0, 2, (1, 3)).astype(np.uint16)
        table = Table(schema.attributes, np.arange(3, dtype=np.uint64), codes)
        plan = plan_for(schema, table, 0.01, PlanOptions())
        assert plan.expected_records >= 5000
        assert [entry.released for entry in plan.prior] == ["record count, to plan with"]


@pytest.mark.parametrize(
    "epsilon, delta",
    [(1e-4, 1e-9), (1e3, 1e-9), pytest.param(1.0, 1e-300, marks=pytest.mark.slow), (1.0, None)],
)
def test_targets_up_to_the_bounds_can_be_planned_for(epsilon, delta):
    plan = plan_with(
        schema_of(one={"a": 2}, two={"b": 3}), epsilon=epsilon, delta=delta, expected_records=1000
    )
    assert 0 < plan.ledger().epsilon <= epsilon


@pytest.mark.parametrize(
    "epsilon, delta",
    [
        (0.99e-4, 1e-9),
        (1.01e3, 1e-9),
        (0.0, 1e-9),
        (-1.0, 1e-9),
        (float("nan"), 1e-9),
        (1.0, 0.0),
        (1.0, 1.0),
        (1.0, -1e-9),
        (1.0, float("nan")),
    ],
)
def test_targets_beyond_the_bounds_are_refused(epsilon, delta):
    with pytest.raises(PlanError, match=r"must (lie|be)"):
        check_target(epsilon, delta)


@pytest.mark.parametrize("field", ["one_way_sigma", "score_sigma", "unit_sigma"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -5.0])
def test_no_noise_of_a_local_model_is_negative_or_endless(field, value):
    local = LocalPlan(5.0, 5.0, 10, 5.0, 100, False)
    with pytest.raises(PlanError, match="noise"):
        replace(local, **{field: value})


@pytest.mark.parametrize(
    "options",
    [{"encoder": "grr"}, {"encoder": "published", "claim_as_published": True, "keys": 100}],
)
def test_sketches_that_do_not_fit_their_groups_are_refused(options):
    content = small_plan(**options).to_json()
    sizes = content["sketch"]["sizes"]
    for other in ([*sizes[:-1], sizes[-1] + 1], sizes[:-1], sizes[::-1]):
        with pytest.raises(PlanError, match="do not fit its groups"):
            Plan.from_json(edited(content, "sketch", "sizes", value=other))


@pytest.mark.parametrize(
    "path, value",
    [
        (("tau",), -3),
        (("expected_records",), -1),
        (("epsilon",), "x"),
        (("epsilon",), float("nan")),
        (("delta",), float("nan")),
        (("epsilon",), 0.5),
        (("count_sigma",), 0),
        (("local", 0, "largest_clique"), 0),
        (("local", 0, "units"), -1),
        (("local", 0, "units"), 1e9),
        (("local", 0, "unit_sigma"), 1.0),
        (("local", 0, "one_way_sigma"), float("nan")),
        (("local",), []),
        (("groups", 0, "attributes"), [77]),
        (("groups", 0, "attributes"), [0, 2]),
        (("groups", 0, "attributes"), []),
        (("groups", 0, "bins"), [10_000]),
        (("groups",), []),
        (("sketch", "pairs", 0, "left"), 99),
        (("sketch", "pairs", 0, "left"), -1),
        (("sketch", "pairs", 0, "left"), "zero"),
        (("sketch", "pairs", 0, "right"), 0),
        (("sketch", "pairs", 0, "keys"), -100),
        (("sketch", "pairs", 0, "keys"), 1e9),
        (("sketch", "phantoms"), 1),
        (("sketch", "sizes"), [4, 4, 2]),
        (("sketch", "sizes"), [3, 4, 2, 3]),
        (("sketch",), 7),
        (("format",), 0),
        (("nonce",), None),
    ],
)
def test_an_edited_plan_is_refused(content, path, value):
    with pytest.raises(VertiMRFError):
        Plan.from_json(edited(content, *path, value=value))


def counted_plan(released, **options):
    """A plan made from a noisy count, as a trial without expected records makes it."""
    entry = LedgerEntry(
        GeometricEvent(50.0),
        "coordinator",
        "record count, to plan with",
        "two-sided geometric, scale 50",
    )
    schema = schema_of(one={"a": 4}, two={"x": 4})
    settings = {"epsilon": 1.0, "delta": 1e-9, "keys": 1 << 12, "prior": (entry,)} | options
    return plan_with(schema, expected_records=released, **settings)


def test_a_key_serves_two_parties(content):
    """Groups 0 and 3 are at one party."""
    with pytest.raises(PlanError, match="two different parties"):
        Plan.from_json(edited(content, "sketch", "pairs", 0, "right", value=3))


@pytest.mark.parametrize("encoder", ["scheduled-pairs", "grr"])
def test_what_follows_from_a_count_spends_what_was_fixed_before_it(encoder):
    spent = 1 / 50 * (2 if encoder == "grr" else 1)
    for released in (100, 20_000, 3_000_000):
        plan = counted_plan(released, encoder=encoder)
        ledger = plan.ledger()
        assert ledger.prior == 1
        assert ledger.spent[0].epsilon == pytest.approx(spent)
        # Basic composition: the count's pure epsilon, and the others' by themselves at a delta that the count has no part in.
        rest = epsilon([entry.event for entry in ledger.entries[1:]], 1e-9).epsilon
        assert rest <= 1.0 - spent
        assert ledger.epsilon == pytest.approx(spent + rest, rel=1e-8)
        assert 0.95 < ledger.epsilon <= 1.0
        assert plan.delta == ledger.delta == 1e-9


def test_a_count_that_is_not_purely_private_cannot_be_planned_with():
    entry = LedgerEntry(
        GaussianEvent(50.0), "coordinator", "record count, to plan with", "discrete Gaussian"
    )
    with pytest.raises(PrivacyError, match="pure epsilon"):
        counted_plan(1000, prior=(entry,))


def test_a_plan_from_an_edited_count_is_refused():
    data = counted_plan(1000).to_json()
    data["prior"][0]["event"]["scale"] = 5.0
    with pytest.raises(PlanError, match="more than its target"):
        Plan.from_json(data)
    with pytest.raises(PlanError, match="more than its target"):
        Plan.from_json(counted_plan(1000).to_json() | {"epsilon": 0.9})


def test_two_plans_never_share_a_nonce_unless_asked_to():
    assert small_plan(keys=1 << 12, nonce=None).nonce != small_plan(keys=1 << 12, nonce=None).nonce


def test_a_plan_states_its_label():
    stated = "Private (add or remove one record): epsilon 1 at delta 2.5e-09, for the whole run."
    assert str(small_plan(keys=1 << 12).label) == stated
    assert small_plan(keys=1 << 12, encoder="grr").label.neighbours == "replace one record"
    assert "delta is above 1 / expected records" in str(small_plan(keys=1 << 12, delta=1e-4).label)


@pytest.mark.parametrize(
    "value",
    [
        GaussianEvent(3),
        GeometricEvent(3),
        ThresholdEvent(3, 99),
        GRREvent(1, (2, 3)),
        SketchEvent(10, 1, 9, 100, gamma=1),
        CountSketchEvent(7, 60, 1024, 200),
        CountSketchEvent(8, 60, 512, 60, 3),
        LocalPlan(5, 5, 10, 5, 100, False),
        CountSketches(10, 64, 60, 4, (2, 3)),
        RandomisedResponses(1, (2, 3)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_whole_numbers_stay_whole_in_a_file(value):
    """10 and 10.0 would give a plan one digest before it is saved and another once it is loaded."""
    text = json.dumps(to_json(value))
    back = from_json(json.loads(text), type(value), "The plan", "have it made again", PlanError)
    assert back == value
    assert json.dumps(to_json(back)) == text

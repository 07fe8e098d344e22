"""Randomised responses: the sampler against its exact law, estimates against the truth, the run end to end."""

from __future__ import annotations

import json
import math
import os
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from scipy import stats

from vertimrf.cli import main
from vertimrf.errors import MessageError, PlanError, PrivacyError
from vertimrf.message import Message
from vertimrf.party import Party
from vertimrf.plan import Plan, make_plan
from vertimrf.privacy.accountant import epsilon
from vertimrf.privacy.events import (
    GaussianEvent,
    GeometricEvent,
    SelectionEvent,
    SketchEvent,
    under_replacement,
)
from vertimrf.protocol import open_tables, run_protocol
from vertimrf.respond import ResponsePlan, count_pair, respond
from vertimrf.schema import Attribute, Schema
from vertimrf.secret import Secret
from vertimrf.server import Server

ROWS = 5000


def schema_of_two():
    attributes = tuple(Attribute(name=n, kind="integer", codes=s) for n, s in (("a", 4), ("b", 1), ("x", 4), ("y", 2)))
    return Schema(attributes=attributes, parties=(("one", ("a", "b")), ("two", ("x", "y"))))


@pytest.fixture(scope="module")
def plan():
    return make_plan(schema_of_two(), epsilon=4.0, expected_records=ROWS, nonce="test", encoder="grr")


@pytest.fixture(scope="module")
def parts():
    rng = np.random.default_rng(0)
    a = rng.integers(0, 4, ROWS)
    left = pd.DataFrame({"id": range(ROWS), "a": a, "b": 0})
    right = pd.DataFrame({"id": range(ROWS), "x": a, "y": rng.integers(0, 2, ROWS)}).sample(frac=1, random_state=0)
    return open_tables([left, right], "id", schema_of_two())[1]


@pytest.mark.parametrize(("local", "size"), [(0.1, 2), (1.0, 5), (3.0, 16), (30.0, 3)])
def test_responses_follow_their_law(local, size):
    n = 200_000
    plan = ResponsePlan(local, (size,))
    codes = np.full((1, n), size - 1, np.uint16)
    (responses,) = respond(plan, [0], np.arange(1, n + 1, dtype=np.uint64), codes, bytes(32), os.urandom)
    kept = math.exp(local) / (math.exp(local) + size - 1)
    expected = np.full(size, (1 - kept) / (size - 1))
    expected[-1] = kept
    seen = np.bincount(responses.ravel(), minlength=size)
    likely = n * expected > 8
    # Fails by chance once in a million runs.
    if likely.sum() > 1:
        share = expected[likely] / expected[likely].sum()
        assert stats.chisquare(seen[likely], seen[likely].sum() * share).pvalue > 1e-6
    assert seen[~likely].sum() < 50


def test_both_parties_send_rows_in_the_same_secret_order():
    n = 1000
    digests = np.random.default_rng(1).integers(1, 1 << 62, n).astype(np.uint64)
    sure = ResponsePlan(600.0, (16, 16))
    codes = (np.arange(n) % 16).astype(np.uint16)[None]
    back = np.arange(n)[::-1]
    key = bytes(range(32))
    (one,) = respond(sure, [0], digests, codes, key, os.urandom)
    (two,) = respond(sure, [1], digests[back], np.ascontiguousarray(codes[:, back]), key, os.urandom)
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, codes)
    (other,) = respond(sure, [0], digests, codes, bytes(32), os.urandom)
    assert not np.array_equal(one, other)


def test_counts_are_unbiased_with_the_errors_that_they_state():
    rng = np.random.default_rng(3)
    n = 40_000
    a = rng.integers(0, 4, n)
    b = np.where(rng.random(n) < 0.5, a % 3, rng.integers(0, 3, n))
    truth = np.zeros((4, 3))
    np.add.at(truth, (a, b), 1)
    plan = ResponsePlan(1.0, (4, 3))
    digests = np.arange(1, n + 1, dtype=np.uint64)
    one, two = (
        respond(plan, [i], digests, codes[None].astype(np.uint16), bytes(32), os.urandom)[0] for i, codes in enumerate((a, b))
    )
    values, errors = count_pair(plan, 0, 1, (one, two))
    assert values.sum() == pytest.approx(n)
    # Twelve cells within five standard errors, and the errors are not idle: half of them reach a tenth.
    assert (np.abs(values - truth) < 5 * errors).all()
    assert errors.max() < 0.05 * n


def test_the_ledger_is_about_replacing_a_record(plan):
    ledger = plan.ledger()
    assert ledger.neighbours == "replace one record"
    assert "replace one record" in ledger.table()
    assert ledger.to_json()["neighbours"] == "replace one record"
    assert ledger.private
    assert 0.97 * 4.0 < ledger.epsilon <= 4.0
    assert "Theorem 3 states" in ledger.entries[-1].noise
    # Every local event is priced at twice its sensitivity.
    assert ledger.entries[0].event == GaussianEvent(plan.count_sigma, 2)


def test_the_price_of_replacing():
    assert under_replacement(GaussianEvent(5.0, 3, 7)) == GaussianEvent(5.0, 6, 7)
    assert under_replacement(GeometricEvent(5.0)) == GeometricEvent(5.0, 2)
    assert under_replacement(SelectionEvent(0.1, 4)) == SelectionEvent(0.2, 4)
    with pytest.raises(PrivacyError, match="no price for replacing"):
        under_replacement(SketchEvent(10, 1, 9, 100))


def test_theorem_3_claims_half_of_what_pure_privacy_costs():
    plan = ResponsePlan(0.5, (4, 4, 4))
    assert plan.claimed_epsilon(1e-9) == pytest.approx(0.75)
    assert epsilon([plan.event], 1e-12).epsilon == pytest.approx(1.5, rel=0.02)


def test_a_run_finds_the_correlation(parts):
    plan = make_plan(schema_of_two(), epsilon=16.0, expected_records=ROWS, nonce="test", encoder="grr")
    codes = run_protocol(plan, parts, seed=1).result.codes
    # Agreement of a and x is 1 in the truth and a quarter for independent parties.
    assert np.mean(codes[0] == codes[2]) > 0.7


def test_plans_and_messages_survive_their_files_and_are_checked(plan, parts, tmp_path):
    plan.save(tmp_path / "plan.json")
    assert Plan.load(tmp_path / "plan.json") == plan
    with pytest.raises(PlanError, match="edited"):
        Plan.from_json(replace(plan, sketch=replace(plan.sketch, epsilon=plan.sketch.epsilon * 2)).to_json())
    secret = Secret.new()
    messages = [Party(plan, name, secret).run(part) for name, part in zip(plan.party_names, parts, strict=True)]
    for message in messages:
        back = Message.from_bytes(message.to_bytes(plan), plan)
        for ours, theirs in zip(back.sketches, message.sketches, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    foreign = replace(messages[0], sketches=(messages[0].sketches[0] | 8, messages[0].sketches[1]))
    with pytest.raises(MessageError, match="none of its 4 values"):
        Message.from_bytes(foreign.to_bytes(plan), plan)
    shorter = replace(messages[0], sketches=tuple(table[:, 1:] for table in messages[0].sketches))
    with pytest.raises(MessageError, match="different numbers of rows"):
        Server(plan).run([shorter, messages[1]])


def test_the_command_line(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"id": range(500), "a": rng.integers(0, 3, 500), "x": rng.integers(0, 3, 500)})
    frame.to_csv(tmp_path / "table.csv", index=False)
    arguments = [tmp_path / "table.csv", "--id", "id", "--split", "1,1", "--epsilon", 2, "--encoder", "grr"]
    outcome = CliRunner().invoke(main, ["synthesize", *map(str, arguments), "--out", str(tmp_path / "o.csv"), "--json", "-"])
    assert outcome.exit_code == 0, outcome.output
    assert json.loads(outcome.stdout)["epsilon"] <= 2


@pytest.mark.parametrize("bad", [(0.0, (2,)), (float("inf"), (2,)), (1.0, (0,)), (1.0, (17,))])
def test_bad_parameters_are_one_sentence(bad):
    with pytest.raises(PlanError) as caught:
        ResponsePlan(*bad)
    assert "\n" not in str(caught.value)


def test_nothing_to_respond_with_is_refused():
    attributes = tuple(Attribute(name=n, kind="integer", codes=1) for n in "ax")
    schema = Schema(attributes=attributes, parties=(("one", ("a",)), ("two", ("x",))))
    with pytest.raises(PlanError, match="at least 2 values"):
        make_plan(schema, epsilon=1.0, expected_records=10, nonce="test", encoder="grr")

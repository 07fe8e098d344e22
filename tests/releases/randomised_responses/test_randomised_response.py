"""Randomised responses: the sampler against its exact law, estimates against the truth, the run end to end."""

import itertools
import math
import os
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from builders import schema_of
from oracles import crossed
from planning import plan_with
from roles import messages_of, run_server
from scipy import stats

from vertimrf import Message, Party, Plan, RunOptions, Secret
from vertimrf.errors import MessageError, PlanError
from vertimrf.privacy.accountant import epsilon
from vertimrf.privacy.events import GaussianEvent
from vertimrf.progress import SILENT
from vertimrf.releases.randomised_responses.encoding import respond
from vertimrf.releases.randomised_responses.estimation import count_marginal
from vertimrf.releases.randomised_responses.parameters import RandomisedResponses
from vertimrf.server.cross_party import cross_party_marginals
from vertimrf.trial import open_tables, run_protocol

ROWS = 5000


SCHEMA = schema_of(one={"a": 4, "b": 1}, two={"x": 4, "y": 2})


@pytest.fixture(scope="module")
def plan():
    return plan_with(SCHEMA, epsilon=4.0, expected_records=ROWS, nonce="test", encoder="grr")


@pytest.fixture(scope="module")
def parts():
    rng = np.random.default_rng(0)
    a = rng.integers(0, 4, ROWS)
    left = pd.DataFrame({"id": range(ROWS), "a": a, "b": 0})
    right = pd.DataFrame({"id": range(ROWS), "x": a, "y": rng.integers(0, 2, ROWS)}).sample(
        frac=1, random_state=0
    )
    return open_tables([left, right], "id", SCHEMA)[1]


@pytest.mark.parametrize("local, size", [(0.1, 2), (1.0, 5), (3.0, 16), (30.0, 3)])
def test_responses_follow_their_law(local, size):
    n = 200_000
    plan = RandomisedResponses(local, (size,))
    codes = np.full((1, n), size - 1, np.uint16)
    (responses,) = respond(
        plan, [0], np.arange(1, n + 1, dtype=np.uint64), codes, bytes(32), os.urandom
    )
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
    sure = RandomisedResponses(600.0, (16, 16))
    codes = (np.arange(n) % 16).astype(np.uint16)[None]
    back = np.arange(n)[::-1]
    key = bytes(range(32))
    (one,) = respond(sure, [0], digests, codes, key, os.urandom)
    (two,) = respond(
        sure, [1], digests[back], np.ascontiguousarray(codes[:, back]), key, os.urandom
    )
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, codes)
    (other,) = respond(sure, [0], digests, codes, bytes(32), os.urandom)
    assert not np.array_equal(one, other)


def test_a_record_that_does_not_fit_answers_from_all_values_alike():
    n, size = 200_000, 5
    sure = RandomisedResponses(600.0, (size,))
    codes = np.full((1, n), -1, np.int32)
    codes[0, ::2] = 3
    digests = np.arange(1, n + 1, dtype=np.uint64)
    (responses,) = respond(sure, [0], digests, codes, bytes(32), os.urandom)
    seen = np.bincount(responses.ravel(), minlength=size)
    # Half say what they hold. Fails by chance once in a million runs.
    seen[3] -= n // 2
    assert seen.sum() == n // 2
    assert stats.chisquare(seen).pvalue > 1e-6


@pytest.mark.parametrize(
    "local, sizes", [(0.3, (2, 3)), (1.5, (4,)), (2.5, (2, 2, 3)), (6.0, (5, 1))]
)
def test_a_record_that_does_not_fit_costs_no_more_than_one_that_does(local, sizes):
    """By all outcomes of a row, in place of any record, and both ways: at every loss, against the event's atoms."""
    plan = RandomisedResponses(local, sizes)
    values = list(itertools.product(*map(range, sizes)))

    def chance(held, told):
        kept = [plan.unchanged(size) for size in sizes]
        return math.prod(
            1 / u if held is None else p if h == t else (1 - p) / (u - 1)
            for h, t, p, u in zip(held or told, told, kept, sizes, strict=True)
        )

    blank = np.array([chance(None, told) for told in values])
    assert blank.sum() == pytest.approx(1)
    logs, losses = plan.event.atoms
    for held in values:
        fits = np.array([chance(held, told) for told in values])
        for one, other in ((fits, blank), (blank, fits)):
            for loss in np.linspace(-0.1, len(sizes) * local + 0.1, 60):
                exact = np.maximum(one - math.exp(loss) * other, 0).sum()
                priced = (np.exp(logs) * np.maximum(1 - np.exp(loss - losses), 0)).sum()
                assert exact <= priced + 1e-12


def test_the_number_of_rows_says_nothing_of_what_records_hold(plan):
    """A party's message about files that differ by what one record holds, in every way that it may fail to fit."""
    rows = pd.DataFrame({"id": range(50), "a": "1", "b": "0"})
    shapes = set()
    for cell in ("2", "9", "", "text"):
        table = rows.copy()
        table.loc[7, "a"] = cell
        party = Party(plan, "one", Secret.new())
        message = party.run(party.encode(table, "id"))
        shapes.add(tuple(each.shape for each in message.sketches))
    assert shapes == {((1, 50),)}


def test_rows_of_records_that_do_not_fit_are_taken_off_the_counts():
    """A sixth of the records has an empty cell at both parties."""
    plan = plan_with(SCHEMA, epsilon=60.0, expected_records=ROWS, nonce="test", encoder="grr")
    rng = np.random.default_rng(3)
    a, empty = rng.integers(0, 4, ROWS), np.arange(ROWS) % 6 == 0
    shown = pd.Series(np.where(empty, "", a.astype(str)))
    tables = [
        pd.DataFrame({"id": range(ROWS), "a": shown, "b": 0}),
        pd.DataFrame({"id": range(ROWS), "x": shown, "y": 0}),
    ]
    parts = open_tables(tables, "id", SCHEMA)[1]
    assert [len(part.blanks) for part in parts] == [empty.sum()] * 2
    total = float(ROWS - empty.sum())
    found = cross_party_marginals(plan, messages_of(plan, parts), None, total, SILENT)
    (pair,) = [m for m in found.measurements if m.attributes == (0, 2)]
    truth = crossed([a[~empty], a[~empty]], [4, 4])
    # Five standard errors of a cell; the rows of blanks alone would add 52 to each.
    assert np.all(np.abs(pair.counts - truth) < 5 * np.maximum(pair.errors, 8))
    assert pair.errors.max() < 12


def respond_to(rng, plan, attribute, codes):
    """Responses as :func:`respond` makes them, faster and from a seed: of repeated runs [shape=(runs, n)]."""
    size = plan.sizes[attribute]
    stay = rng.random(codes.shape) < plan.unchanged(size)
    return np.where(
        stay, codes, (codes + rng.integers(1, max(size, 2), codes.shape)) % size
    ).astype(np.uint8)


@pytest.mark.parametrize(
    "epsilon, attributes",
    [(1.0, (0,)), (0.5, (0, 1)), (2.0, (1, 0, 2)), (2.0, (0, 1, 2, 3)), (3.0, (3,)), (6.0, (0, 3))],
)
def test_marginals_of_any_order_vary_as_the_formula_says(epsilon, attributes):
    rng = np.random.default_rng(len(attributes))
    plan = RandomisedResponses(epsilon, (3, 2, 4, 1))
    n, runs = 400, 4000
    first = np.where(rng.random(n) < 0.7, 0, rng.integers(0, 3, n))
    columns = (first, np.minimum(first, 1), rng.integers(0, 4, n), np.zeros(n, np.int64))
    truth = crossed([columns[a] for a in attributes], [plan.sizes[a] for a in attributes])
    # The exact variance by the definition: the product matrix, response by response, for the given table.
    matrix = np.ones((1, 1))
    for a in attributes:
        u, p = plan.sizes[a], plan.unchanged(plan.sizes[a])
        q = (1 - p) / max(u - 1, 1)
        matrix = np.kron(matrix, np.eye(u) * (p - q) + q if u > 1 else np.ones((1, 1)))
    inverse = np.linalg.inv(matrix)
    exact = (
        (inverse**2) @ matrix @ truth.ravel() - (inverse @ matrix) ** 2 @ truth.ravel()
    ).reshape(truth.shape)
    responses = [
        respond_to(rng, plan, a, np.broadcast_to(columns[a], (runs, n))) for a in attributes
    ]
    estimates = [count_marginal(plan, attributes, [r[i] for r in responses]) for i in range(runs)]
    values = np.array([v for v, _ in estimates])
    stated = np.mean([s**2 for _, s in estimates], axis=0)
    if np.all(exact < 1 / 12):
        np.testing.assert_array_equal(values, np.broadcast_to(truth, values.shape))
        return
    # Means within 4.5 standard errors. A variance over 4000 runs errs by 2.2 %, so that four of its errors are within 10 %;
    # the stated variance is an estimate whose mean over the runs errs far less.
    assert np.all(np.abs(values.mean(axis=0) - truth) < 4.5 * np.sqrt(exact / runs) + 1e-9)
    assert np.all(np.abs(values.var(axis=0) / exact - 1) < 0.1)
    np.testing.assert_allclose(stated, exact, rtol=0.03)
    np.testing.assert_allclose(values.sum(axis=tuple(range(1, values.ndim))), n)


def test_counts_agree_across_orders_and_special_sizes():
    rng = np.random.default_rng(11)
    plan = RandomisedResponses(1.0, (4, 1, 3))
    a, b = (rng.integers(0, u, (1, 5000)).astype(np.uint8) for u in (4, 3))
    values, sigma = count_marginal(plan, (0, 2), (a, b))
    seen = crossed((a[0], b[0]), (4, 3))
    back = [
        np.linalg.inv(np.eye(u) * (p - q) + q)
        for u in (4, 3)
        for p in [plan.unchanged(u)]
        for q in [(1 - p) / (u - 1)]
    ]
    np.testing.assert_allclose(values, back[0] @ seen @ back[1].T)
    # Multinomial covariances are not left out.
    assert np.all(sigma**2 < back[0] ** 2 @ seen @ back[1].T ** 2)
    np.testing.assert_allclose(count_marginal(plan, (2, 0), (b[0], a[0]))[0], values.T)
    np.testing.assert_allclose(count_marginal(plan, (0,), (a,))[0], values.sum(axis=1))
    alone, error = count_marginal(plan, (1,), (np.zeros((1, 5000), np.uint8),))
    assert alone.tolist() == [5000.0]
    assert error[0] == pytest.approx(math.sqrt(1 / 12))
    # No rows, and certain responses.
    nothing, error = count_marginal(plan, (0, 2), (a[:, :0], b[:, :0]))
    assert not nothing.any()
    assert error.min() > 0
    exact, error = count_marginal(RandomisedResponses(600.0, (4, 1, 3)), (0, 2), (a, b))
    np.testing.assert_array_equal(exact, seen)
    assert error.max() < 0.3


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


def test_theorem_3_claims_half_of_what_pure_privacy_costs():
    plan = RandomisedResponses(0.5, (4, 4, 4))
    assert plan.claimed_epsilon(1e-9) == pytest.approx(0.75)
    assert epsilon([plan.event], 1e-12).epsilon == pytest.approx(1.5, rel=0.02)


def test_a_run_finds_the_correlation(parts):
    plan = plan_with(SCHEMA, epsilon=16.0, expected_records=ROWS, nonce="test", encoder="grr")
    codes = run_protocol(plan, parts, RunOptions(seed=1)).result.codes
    # Agreement of a and x is 1 in the truth and a quarter for independent parties.
    assert np.mean(codes[0] == codes[2]) > 0.7


def test_plans_and_messages_are_checked(plan, parts):
    with pytest.raises(PlanError, match="edited"):
        Plan.from_json(
            replace(plan, sketch=replace(plan.sketch, epsilon=plan.sketch.epsilon * 2)).to_json()
        )
    messages = messages_of(plan, parts)
    foreign = replace(messages[0], sketches=(messages[0].sketches[0] | 8,))
    with pytest.raises(MessageError, match="above its highest level 3"):
        Message.from_bytes(foreign.to_bytes(plan), plan)
    shorter = replace(messages[0], sketches=tuple(table[:, 1:] for table in messages[0].sketches))
    with pytest.raises(MessageError, match="different numbers of rows"):
        run_server(plan, [shorter, messages[1]])


@pytest.mark.parametrize("bad", [(0.0, (2,)), (float("inf"), (2,)), (1.0, (0,)), (1.0, (17,))])
def test_bad_parameters_are_one_sentence(bad):
    with pytest.raises(PlanError):
        RandomisedResponses(*bad)

"""What messages told, for a report: figures with their errors, on average right."""

import numpy as np
import pytest
from builders import dealt, schema_of
from oracles import crossed
from planning import plan_with

from vertimrf.model.trust import size_beneath_noise
from vertimrf.options import RunOptions
from vertimrf.trial import run_protocol


def test_sizes_beneath_noise():
    rng = np.random.default_rng(3)
    draws = 400_000
    for value, sigma, least, most in (
        (0.0, 2.0, 0.0, 0.0),
        (12.0, 2.0, 0.0, 0.0),
        (2.0, 2.0, -0.5, 0.0),
        (-4.0, 2.0, -0.5, 0.0),
    ):
        sizes = size_beneath_noise(
            value + sigma * rng.standard_normal(draws), np.full(draws, sigma)
        ) - abs(value)
        # Six standard errors.
        spread = 6 * sizes.std() / draws**0.5
        assert least * sigma - spread < sizes.mean() < most * sigma + spread


@pytest.mark.parametrize("encoder", ["count-sketch", "scheduled-pairs"])
def test_figures_of_pairs_and_of_single_attributes(encoder):
    schema = schema_of(left=(3, 2), right=(4, 3))
    rng = np.random.default_rng(0)
    records = 4000
    codes = np.array([rng.integers(0, size, records) for size in schema.sizes])
    codes[2] = np.where(rng.random(records) < 0.9, codes[0], codes[2])
    plan = plan_with(
        schema, epsilon=8.0, expected_records=records, encoder=encoder, message_bytes=300_000
    )
    result = run_protocol(plan, dealt(schema, codes), RunOptions(seed=0)).result
    figures = result.to_json()["found"]
    assert figures["records"] == pytest.approx(records, rel=0.1)
    for a, one_way in enumerate(figures["one_way"]):
        assert one_way["attribute"] == schema.names[a]
        assert one_way["party"] == schema.parties[schema.party_of(a)][0]
        np.testing.assert_allclose(
            one_way["counts"],
            np.bincount(codes[a], minlength=schema.sizes[a]),
            atol=7 * one_way["error"],
        )
    pairs = figures["pairs"]
    lines = {
        (a, b): i for i, (a, b) in enumerate(zip(pairs["first"], pairs["second"], strict=True))
    }
    # Across parties every pair is measured; with count sketches, all.
    assert {(0, 2), (0, 3), (1, 2), (1, 3)} <= lines.keys()
    joint = crossed(codes[[0, 2]], (3, 4)) / records
    truth = 0.5 * np.abs(joint - np.outer(joint.sum(1), joint.sum(0))).sum()
    i = lines[0, 2]
    assert pairs["cells"][i] == 12
    assert pairs["dependence"][i] == pytest.approx(truth, abs=0.1)
    assert pairs["model_dependence"][i] == pytest.approx(truth, abs=0.1)
    for pair in ((0, 2), (0, 3), (1, 2), (1, 3)):
        assert pairs["distance"][lines[pair]] < 4 * pairs["noise"][lines[pair]] + 0.05
    assert pairs["dependence"][lines[1, 3]] < 0.1
    assert all(len(column) == len(lines) for column in pairs.values())

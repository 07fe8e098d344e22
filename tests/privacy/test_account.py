"""Prices of plans and of lone sketches, before any data is touched."""

import json

import pytest
from commands import good, refused
from planning import plan_with

from vertimrf import Attribute, Schema


def priced(*words):
    """What `plan` gives as JSON."""
    return json.loads(good("plan", *words, "--json -"))


def test_plans_over_the_same_people_add_up(tmp_path):
    schema = Schema.of({"one": [Attribute.integer("a", 4)], "two": [Attribute.integer("x", 4)]})
    small, large = tmp_path / "small", tmp_path / "large"
    for path, target in ((small, 0.3), (large, 0.7)):
        plan_with(
            schema,
            epsilon=target,
            delta=1e-5,
            expected_records=10_000,
            nonce=path.name,
            keys=1 << 12,
        ).save(path)
    both = good("plan", small, large)
    assert "2 plans over the same people" in both
    assert "delta is the sum" in both
    assert "Private (add or remove one record)" in both
    together = priced(small, large)
    assert together["delta"] == pytest.approx(2e-5)
    assert 0.7 < together["epsilon"] < 1.0
    assert len(together["entries"]) == 2 * len(priced(small)["entries"])
    # At the delta of each it costs more than at the sum.
    assert priced(small, large, "--delta 1e-5")["epsilon"] > together["epsilon"]
    assert "given twice" in refused("plan", small, small)
    person = good("plan", small, "--records-per-person 3 --json", tmp_path / "person")
    assert 0.9 < json.loads((tmp_path / "person").read_text())["epsilon"] < 2
    assert "with 3 records in every table: epsilon" in person

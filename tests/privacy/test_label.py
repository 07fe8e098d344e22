"""A release's privacy label: what it says, and that whatever does not say it in full is not private."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vertimrf.privacy.label import ADD_OR_REMOVE, EXACT, REPLACE, UNSTATED, PrivacyLabel

GOOD = PrivacyLabel(0.55, 1e-6, ADD_OR_REMOVE)


@pytest.mark.parametrize(
    "label",
    [
        GOOD,
        PrivacyLabel(2, 1e-9, REPLACE, notes=("the number of ids is published",)),
        GOOD.because("a party fixed its noise"),
        EXACT,
        UNSTATED,
        GOOD.noting("seconds follow the data"),
    ],
)
def test_it_is_read_back(label):
    assert PrivacyLabel.from_json(json.loads(json.dumps(label.to_json()))) == label


def test_it_says_what_it_is():
    assert (
        str(GOOD)
        == "Private (add or remove one record): epsilon 0.55 at delta 1e-06, for the whole run."
    )
    assert str(GOOD.because("b", "a", "b")) == "NOT PRIVATE: b; a."
    assert GOOD.because("b").because("b", "c").reasons == ("b", "c")
    assert str(EXACT) == "NOT PRIVATE: exact statistics of the real tables, do not publish."
    assert str(GOOD.noting("x")).endswith("\nNote: x.")


@pytest.mark.parametrize(
    "arguments",
    [
        (None, 1e-6, ADD_OR_REMOVE),
        (0.5, None, ADD_OR_REMOVE),
        (math.nan, 1e-6, ADD_OR_REMOVE),
        (math.inf, 1e-6, ADD_OR_REMOVE),
        (-1.0, 1e-6, ADD_OR_REMOVE),
        (0.5, -1e-9, ADD_OR_REMOVE),
        (0.5, 1.0, REPLACE),
        (0.5, 1e-6, ""),
        (True, 1e-6, REPLACE),
    ],
)
def test_without_all_three_nothing_is_private(arguments):
    assert GOOD.private
    assert not PrivacyLabel(*arguments).private
    assert "no valid privacy label" in str(PrivacyLabel(*arguments))


@pytest.mark.parametrize("field", sorted(GOOD.to_json()))
def test_a_missing_field_is_not_private(field):
    data = GOOD.to_json()
    del data[field]
    assert PrivacyLabel.from_json(data) == UNSTATED


@pytest.mark.parametrize(
    "change",
    [
        {"private": False},
        {"private": 1},
        {"private": "true"},
        {"reasons": ["fixed noise"]},
        {"reasons": "none"},
        {"reasons": None},
        {"reasons": [1]},
        {"notes": None},
        {"epsilon": "0.5"},
        {"epsilon": None},
        {"epsilon": [0.5]},
        {"delta": 2},
        {"delta": "small"},
        {"neighbours": None},
        {"neighbours": "nobody"},
        {"epsilon": float("nan")},
        {"more": 1},
    ],
)
def test_what_does_not_add_up_is_not_private(change):
    assert not PrivacyLabel.from_json(GOOD.to_json() | change).private


def test_a_claim_against_its_own_reasons_is_not_private():
    assert not PrivacyLabel.from_json(
        GOOD.because("a party fixed its noise").to_json() | {"private": True}
    ).private


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*GOOD.to_json()]), inner, max_size=6)
    ),
    max_leaves=10,
)


@given(json_values)
def test_nothing_made_up_is_private_by_accident(data):
    label = PrivacyLabel.from_json(data)
    if label.private:
        assert data["private"] is True
        assert data["reasons"] == []
        assert data["epsilon"] >= 0
        assert 0 <= data["delta"] < 1

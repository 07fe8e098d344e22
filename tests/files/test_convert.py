"""What is read from JSON has the type that it should have, or one sentence says why not."""

from __future__ import annotations

import json
from dataclasses import dataclass

import msgspec
import numpy as np
import pytest

from vertimrf.errors import PlanError, PrivacyError, RunError
from vertimrf.files.convert import from_json, to_json


@dataclass(frozen=True)
class Inner:
    """A value object with a check of its own."""

    count: int
    scale: float = 1.0

    def __post_init__(self):
        if self.count < 0:
            raise PrivacyError(f"A count of {self.count} is below 0.")
        if self.scale * self.count > 1e300:
            raise ValueError("too large")


class Strict(msgspec.Struct, forbid_unknown_fields=True):
    """A value object that knows all its fields."""

    key: bytes


@dataclass(frozen=True)
class Outer:
    """A value object of others."""

    inner: tuple[Inner, ...]
    strict: Strict | None = None


def read(data, kind=Outer, **options):
    return from_json(data, kind, "The plan", "have it made again", PlanError, **options)


def test_what_was_written_is_read_again():
    outer = Outer((Inner(3, 0.5), Inner(2)), Strict(b"key"))
    assert read(json.loads(json.dumps(to_json(outer)))) == outer
    # Parts that were read already stay as they are.
    assert read({"inner": [Inner(1), {"count": 2, "scale": 3}]}) == Outer((Inner(1), Inner(2, 3.0)))


@pytest.mark.parametrize(
    "data, said",
    [
        ([], "expected `object`, got `array`"),
        ({}, "object missing required field `inner`"),
        ({"inner": {}}, "expected `array`, got `object` at `inner`"),
        ({"inner": [{"count": True}]}, "expected `int`, got `bool` at `inner[0].count`"),
        ({"inner": [{"count": 1.0}]}, "expected `int`, got `float` at `inner[0].count`"),
        ({"inner": [{"count": "1"}]}, "expected `int`, got `str` at `inner[0].count`"),
        ({"inner": [{"count": 1, "scale": None}]}, "got `null` at `inner[0].scale`"),
        ({"inner": [{"count": 1, "scale": 10**400}]}, "number out of range at `inner[0].scale`"),
        ({"inner": [{"count": 2, "scale": 1e300}]}, "too large at `inner[0]`"),
        # Python cannot multiply these: an OverflowError in the type's own check.
        ({"inner": [{"count": 10**400}]}, "int too large to convert to float"),
        ({"inner": [], "strict": {"key": "%"}}, "invalid base64 encoded string at `strict.key`"),
        ({"inner": [], "strict": {"key": "", "more": 1}}, "unknown field `more` at `strict`"),
    ],
)
def test_what_does_not_fit_is_one_sentence(data, said):
    with pytest.raises(PlanError) as caught:
        read(data)
    assert str(caught.value).startswith("The plan is malformed (")
    assert said in str(caught.value)
    assert str(caught.value).endswith("); have it made again.")


def test_a_types_own_error_stays_as_it_is():
    with pytest.raises(PrivacyError, match=r"^A count of -1 is below 0\.$"):
        read({"inner": [{"count": -1}]})


def test_unknown_fields_of_a_dataclass_are_refused_on_request():
    data = {"count": 1, "colour": 2}
    assert read(data, Inner) == Inner(1)
    with pytest.raises(PlanError, match="unknown field `colour`; its fields are count, scale"):
        read(data, Inner, known_only=True)
    with pytest.raises(PlanError, match="expected `object`, got `array`"):
        read([1], Inner, known_only=True)
    with pytest.raises(RunError, match=r"^run\.toml is malformed"):
        from_json({}, Inner, "run.toml", "correct it", RunError, known_only=True)


def test_numbers_of_numpy_are_written_as_numbers():
    written = to_json(Outer((Inner(np.int64(3), np.float64(0.5)),)))
    assert json.dumps(written) == '{"inner": [{"count": 3, "scale": 0.5}], "strict": null}'

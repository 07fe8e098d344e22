"""The form of ids: what it tells apart, what it copies of an id, and whose ids have it."""

import uuid

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from builders import schema_of

from vertimrf.errors import SchemaError
from vertimrf.plan.id_form import check_form, form_pattern
from vertimrf.plan.schema import Schema
from vertimrf.tables.ids import as_texts, id_form, id_shapes

NUMBERS = range(1, 5000, 7)
KINDS = {
    "A000000": [f"B{i:06d}" for i in NUMBERS],
    "9.9": [f"{i}.0" for i in NUMBERS],
    "000000": [f"{i:06d}" for i in NUMBERS],
    "0": [f"0{i}" for i in NUMBERS],
    "9": [*NUMBERS],
    "9 ": [f"{i} " for i in NUMBERS],
    "A9": [f"B{i}" for i in NUMBERS],
    "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx": [
        str(uuid.uuid5(uuid.NAMESPACE_DNS, str(i))) for i in NUMBERS
    ],
    "XXXXXXXX-XXXX-XXXX-XXXX-XXXXXXXXXXXX": [
        str(uuid.uuid5(uuid.NAMESPACE_DNS, str(i))).upper() for i in NUMBERS
    ],
    "*@*": ["ann@x.org", "jo.doe@mail.co.uk", "b-c@x.org"],
    "*": ["Ann Smith", "Jo Ünal", "李"],
}


def fits(ids, form):
    texts = as_texts(pa.chunked_array([ids]), "ids")
    return pc.match_substring_regex(texts, form_pattern(form)).to_pylist()


@pytest.mark.parametrize("form", KINDS)
def test_a_form_is_drafted_and_the_ids_have_it(form):
    ids = pa.chunked_array([KINDS[form]])
    assert id_form(id_shapes(ids)) == form
    check_form(form)
    assert all(fits(KINDS[form], form))


def test_ids_of_another_kind_do_not_have_it():
    for form in KINDS:
        for other, theirs in KINDS.items():
            # Digits and anything are wider than other forms.
            if form not in ("0", "*@*", "*", other):
                assert sum(fits(theirs, form)) < len(theirs), (form, other)
    assert fits(["0", "7", "07", "7.0"], "9") == [True, True, False, False]


def test_a_few_other_ids_do_not_change_the_form_and_a_form_has_no_id():
    ids = pa.chunked_array([[*KINDS["A000000"], "b7", "(?)", None, ""]])
    assert id_form(id_shapes(ids)) == "A000000"
    assert id_form(id_shapes(pa.chunked_array([["a" * 300, "b" * 300]]))) == "a"
    assert id_form(id_shapes(pa.chunked_array([[b"\xff", None]]))) is None


@pytest.mark.parametrize("form", ["B000123", "99", "", "é", "a" * 101, 9, "a\n"])
def test_what_is_no_form_is_refused(form):
    with pytest.raises(SchemaError, match="write 9 for a number without leading zeros"):
        check_form(form)


def test_a_schema_without_a_form_is_what_it_was():
    schema = schema_of(a={"x": 2}, b={"y": 2})
    assert "ids" not in schema.to_json()
    stated = Schema.from_json(schema.to_json() | {"ids": "A9"})
    assert stated.ids == "A9"
    assert Schema.from_json(stated.to_json()) == stated
    assert stated.split([1, 1]).ids == "A9"
    assert stated.digest() != schema.digest()

"""Ids of rows that do not fit or cannot be read: their records are blank, and no row decides about another's."""

import numpy as np
import pandas as pd
import pytest
from builders import schema_of

from vertimrf.tables.columns import encode_table
from vertimrf.tables.ids import IdKeys, record_digests

KEYS = IdKeys(bytes(16), bytes(16), bytes(16))
ATTRIBUTES = schema_of(one={"a": 3, "b": 3}).attributes


def encoded(source, id="id"):
    return encode_table(source, id, ATTRIBUTES, keys=KEYS)


def digests_of(*ids):
    return set(record_digests(KEYS.records, np.array(ids, str)).tolist())


@pytest.fixture
def written(tmp_path):
    def write(*lines):
        path = tmp_path / "table.csv"
        path.write_text("\n".join(lines) + "\n")
        return path

    return write


@pytest.mark.parametrize(
    "row, id",
    [
        ("7,1,1,too many", "7"),
        ("7,too few", "7"),
        ("7", "7"),
        ("007,1,,,", "007"),
        ('"7, ""and""\n8",1,1,1', '7, "and"\n8'),
        ('7"x,1,1,1', '7"x'),
        (",1,1,1", None),
        ('"",1,1,1', None),
        ("7,9,1", "7"),
        ("7,,1", "7"),
        ("3,1,1,a row that fits has this id", None),
    ],
)
def test_a_row_that_cannot_be_read_is_a_blank_of_its_id(written, row, id):
    """Whether its cells do not fit, or nobody knows which they are."""
    good = [f"{i},{i % 3},1" for i in range(5)]
    usual, table = encoded(written("id,a,b", *good)), encoded(written("id,a,b", *good, row))
    assert set(table.blanks.tolist()) == (digests_of(id) if id else set())
    assert table.digests.tolist() == usual.digests.tolist()
    assert (table.codes == usual.codes).all()
    assert table.dropped.records == 1
    assert not usual.blanks.size


def test_many_rows_that_cannot_be_read_have_an_id_each(written):
    """In several blocks of the file, beside rows that fit."""
    cells = ("1,1,x", "9,1", "1,1")
    lines = [f"{i},{cells[i % 3]}" for i in range(60_000)]
    table = encoded(written("id,a,b", *lines))
    wrong = [str(i) for i in range(60_000) if i % 3 < 2]
    assert set(table.blanks.tolist()) == digests_of(*wrong)
    assert table.records == 20_000


def test_an_id_that_may_be_in_any_place_is_not_read(written):
    """Behind a cell that may have been cut in two."""
    for header, row in (("a,id,b", "1,7,1,1"), ("a,b,id", "1,1,1,7")):
        table = encoded(written(header, "1,1,1", row))
        assert not table.blanks.size
        assert table.dropped.records == 1


def test_rows_of_a_frame_with_an_odd_cell_have_their_id():
    frame = pd.DataFrame({"id": ["1", "2", "3"], "a": [1, [1], 1], "b": [1, 1, 1]})
    table = encoded(frame)
    assert set(table.blanks.tolist()) == digests_of("2")
    assert table.records == 2
    frame = pd.DataFrame({"id": ["1", ["2"], "3"], "a": [1, 1, 1], "b": [1, 1, 1]})
    assert not encoded(frame).blanks.size

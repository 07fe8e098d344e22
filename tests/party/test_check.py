"""What is wrong with a table's columns of ids is known before there is a plan."""

import pyarrow as pa
import pytest

from vertimrf.errors import TableError
from vertimrf.party.check import check_ids
from vertimrf.tables.read_options import ReadOptions

ROWS = 40


@pytest.mark.parametrize(
    "id, person, words",
    [
        ("key", None, "has no id column 'key'"),
        ("id", "who", "has no person column 'who'"),
    ],
)
def test_columns_of_ids_that_are_missing_are_refused_whatever_the_cells(id, person, words):
    for rows in (ROWS, 1):
        table = pa.table({"id": [*range(rows)]})
        with pytest.raises(TableError, match=words):
            check_ids(table, id, ReadOptions(person=person))


@pytest.mark.parametrize(
    "id, person, words",
    [
        ("lists", None, "id column 'lists': ids are of the type list"),
        ("id", "lists", "person column 'lists': ids are of the type list"),
    ],
)
def test_a_type_that_cannot_be_that_of_ids_is_told_of_and_refused_never(id, person, words):
    """Whatever wrote the file may have found the type in the cells."""
    table = pa.table({"id": [*range(ROWS)], "lists": [[1]] * ROWS})
    assert words in check_ids(table, id, ReadOptions(person=person))


@pytest.mark.parametrize(
    "ids, words",
    [
        ([*range(ROWS)], ""),
        ([*range(ROWS // 10)] * 10, ""),
        ([*range(ROWS // 10 - 1), *[0] * 10], ""),
        ([*range(ROWS // 10)] * 11, "44 records have only 4 ids"),
        ([None] * ROWS, "40 records have only 0 ids"),
        ([f"0{i % 2}{' ' * i}" for i in range(ROWS)], "40 records have only 2 ids"),
        ([], ""),
    ],
)
def test_a_column_of_few_ids_is_told_of_and_refused_never(ids, words):
    read = ReadOptions(id_format=["strip"])
    said = check_ids(pa.table({"id": ids, "who": ids}), "id", read)
    assert words in said
    assert bool(said) == bool(words)

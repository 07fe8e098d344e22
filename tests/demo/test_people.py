"""The tutorial's tables: they are written once, fit their schema, and never overwrite anything."""

import pyarrow.compute as pc
import pytest

from vertimrf import Schema
from vertimrf.demo.people import PEOPLE, people, write_people
from vertimrf.errors import PlanError


def test_the_tables_fit_their_schema_and_hold_the_same_people(tmp_path):
    made = people()
    ids = [table["person_id"].to_pylist() for table in made.values()]
    assert len(set(ids[0])) == PEOPLE
    assert ids[0] != ids[1]
    assert set(ids[0]) == set(ids[1])
    write_people(tmp_path / "new")
    schema = Schema.load(tmp_path / "new" / "schema.toml")
    assert dict(schema.parties) == {"hospital": ("age", "smoker"), "insurer": ("claims",)}
    assert pc.max(made["hospital"]["age"]).as_py() == 99
    assert set(made["insurer"]["claims"].to_pylist()) == set(range(5))


def test_a_file_that_is_there_is_kept(tmp_path):
    (tmp_path / "insurer.csv").write_text("mine")
    with pytest.raises(PlanError, match=r"insurer\.csv is there already"):
        write_people(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["insurer.csv"]
    assert (tmp_path / "insurer.csv").read_text() == "mine"

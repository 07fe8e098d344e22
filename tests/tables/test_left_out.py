"""What a draft leaves out stands in one table, with shapes in place of cells; ids of people with several rows are named."""

import json

import numpy as np
import pandas as pd
import pytest
from commands import good

from vertimrf import draft_schema
from vertimrf.columns.excluded import shape_of, shapes_of
from vertimrf.tables.people import names_people

N = 600
RNG = np.random.default_rng(2)
NAMES = [f"{a}{b} {c}{d}" for a in "ABCDEF" for b in "aeiou" for c in "GHKLM" for d in "aeiou"]


def table():
    """600 visits of 79 patients, with columns that have no domain."""
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "patient_id": 5000 + 3 * np.r_[np.arange(79), rng.integers(0, 79, N - 79)],
            "name": [NAMES[i] for i in rng.permutation(N)],
            "weight": [f"{w} kg" if i % 2 else str(w) for i, w in enumerate(rng.permutation(N))],
            "remark": [f"{NAMES[i]} was seen again, and went home after {i} hours" for i in range(N)],
            "phone": rng.choice(10**8, N, replace=False) + 10**9,
            "empty": "",
            "ward": rng.integers(0, 5, N),
        }
    )  # fmt: skip


def test_a_draft_says_what_it_leaves_out_and_why(tmp_path):
    table().to_csv(tmp_path / "visits.csv", index=False)
    said = good(f"schema draft {tmp_path}/visits.csv --name clinic --out {tmp_path}/s.toml")
    _, _, listed = said.partition("Left out, 6: ")
    lines = [line.split("  ") for line in listed.splitlines()[1:]]
    rows = {cells[1].strip(): [cell.strip() for cell in cells[2:] if cell] for cells in lines}
    assert rows["column"] == ["read as", "looks like", "to keep it"]
    assert rows["clinic: name"][:2] == ["names", "'Aa Aa'"]
    # The cells that are no numbers are shown, not the others.
    assert rows["clinic: weight"][1].startswith("'999 aa'")
    assert rows["clinic: remark"][:2] == ["names", "'Aa Aa aaa aaaa aaaaa, a…'"]
    assert "." not in rows["clinic: phone"][1]
    assert rows["clinic: phone"][2] == "state edges, if they are quantities"
    assert rows["clinic: empty"][:2] == ["nothing", "-"]
    assert rows["clinic: patient_id"][0] == "ids of people with several rows"
    assert "--person patient_id and --records-per-person, up to" in rows["clinic: patient_id"][-1]
    # No cell is shown, and nothing of these columns is in what is shared.
    cells = [str(cell) for name in ("name", "remark", "phone") for cell in table()[name]]
    assert not any(cell in listed for cell in cells)
    schema = (tmp_path / "s.toml").read_text()
    assert "patient" not in schema
    assert "79" not in schema
    assert str(N) not in schema
    assert "ward" in schema


def test_people_with_several_rows_are_named(tmp_path):
    frame = table()[["patient_id", "ward"]]
    most = frame["patient_id"].value_counts().max()
    found = "has 79 values in 600 records, as ids of people who have several"
    (flag,) = draft_schema(frame).flags
    assert flag.column == "patient_id"
    assert flag.problem == found
    assert f"--person patient_id and --records-per-person, up to {most}," in flag.done
    draft = draft_schema(frame, id="patient_id")
    (flag,) = draft.flags
    assert str(flag).startswith(f"party1: column 'patient_id' {found}: one row of each counts; ")
    assert "79" not in json.dumps(draft.schema.to_json())
    # A few people with two rows are people, too.
    few = pd.concat([frame.drop_duplicates("patient_id"), frame[:9]])
    assert "as ids of people who have several" in str(draft_schema(few).flags[0])
    # One row of each, and a column of another name, are nothing to say.
    assert not draft_schema(frame.drop_duplicates("patient_id"), id="patient_id").flags
    assert draft_schema(frame.rename(columns={"patient_id": "street"})).schema.names == (
        "street",
        "ward",
    )


@pytest.mark.parametrize(
    "name",
    [
        "patient_id",
        "PatientID",
        "patientid",
        "id",
        "PID",
        "subject.no",
        "customerNumber",
        "user",
        "id_person",
    ],
)
def test_names_of_people(name):
    assert names_people(name)


@pytest.mark.parametrize(
    "name",
    [
        "ward_id",
        "patients_seen",
        "user_rating",
        "idea",
        "subject_area",
        "plan",
        "number",
        "clientele",
        "tailnum",
    ],
)
def test_names_of_other_things(name):
    assert not names_people(name)


def test_shapes():
    assert shape_of("99 Ähm, 7%") == "99 Aaa, 9%"
    assert shape_of("a" * 24) == "a" * 24
    assert shape_of("a" * 25) == "a" * 23 + "…"
    assert shape_of("a\tb\x00") == "a?a?"
    assert shapes_of({"12": 9, "3 kg": 2, "4 kg": 1, "x": 1}) == ("9 aa", "a")
    assert shapes_of({12: 1}) == ("99",)

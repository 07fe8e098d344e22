"""How a table is read, as the party's part of the schema says: told once, to the draft, and known to every command after it."""

import numpy as np
import pytest
from commands import good, refused

from vertimrf.errors import SchemaError
from vertimrf.plan.schema import Schema
from vertimrf.plan.sections import Reading
from vertimrf.runs.party_run import PartyRun

TOLD = ["--id-format", "strip,unpad", "--skip-rows", "2"]
FOUND = {"id_format": ("strip", "unpad"), "delimiter": ";", "encoding": "cp1252", "skip_rows": 2}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table in cp1252 below two lines, cells separated by semicolons, and its draft."""
    folder = tmp_path_factory.mktemp("read")
    rng = np.random.default_rng(3)
    rows = [f" {i:04};{rng.choice(['für', 'wider'])};{rng.integers(3)}" for i in range(1, 401)]
    text = "\n".join(["Auszug, vom März", "Stand: heute, früh", "nr;maß;stufe", *rows, ""])
    (folder / "t.csv").write_bytes(text.encode("cp1252"))
    good(f"schema draft {folder}/t.csv --id nr --name a --out {folder}/part.toml", TOLD)
    made = f"--out {folder}/made.csv --model {folder}/made.model --json {folder}/made.json"
    known = f"--id nr --schema {folder}/part.toml --epsilon 5"
    good(f"synthesize {folder}/t.csv {known} {made}")
    return folder


def test_the_draft_states_what_it_found_and_was_told(folder):
    assert Schema.load(folder / "part.toml").reading("a") == Reading(**FOUND)
    assert "[party.read]" in (folder / "part.toml").read_text()


def test_every_command_reads_as_the_part_says(folder, tmp_path):
    table, schema = f"{folder}/t.csv", f"--schema {folder}/part.toml"
    assert "400 records" in good(f"check {table} {schema} --id nr")
    compared = f"evaluate --real {table} --synthetic {folder}/made.csv --ways 1"
    beside = good(compared)
    assert "1-way TVD" in beside
    assert beside == good(f"{compared} {schema}")
    good(f"report {folder}/made.model {folder}/made.json --real {table} --out {tmp_path}/r.html")
    party = f"run party {tmp_path}/run --name a --table {table} --id nr"
    assert "has no id column 'nr'" in refused(party)
    good(f"{party} {schema}")
    settings = PartyRun(tmp_path / "run").settings
    assert {key: getattr(settings, key) for key in FOUND} == FOUND
    assert "edit it there" in refused(f"run party {tmp_path}/run {schema}")


def test_options_win(folder):
    schema = f"--schema {folder}/part.toml --id nr"
    assert "has no id column" in refused(f"check {folder}/t.csv {schema} --skip-rows 1")
    assert "has no id column" in refused(f"check {folder}/t.csv {schema} --delimiter |")


def test_options_win_that_say_what_is_so_by_default(folder, tmp_path):
    """The part says cp1252 and two lines; the same table, for once in UTF-8, and without the lines."""
    text = (folder / "t.csv").read_bytes().decode("cp1252")
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    (tmp_path / "bare.csv").write_text(text.split("\n", 2)[2], encoding="utf-8")
    schema = f"--schema {folder}/part.toml --id nr"
    assert "lacks the column 'maß'" in refused(f"check {tmp_path}/t.csv {schema}")
    good(f"check {tmp_path}/t.csv {schema} --encoding utf-8")
    good(f"check {tmp_path}/bare.csv {schema} --encoding utf-8 --skip-rows 0")
    good(f"run party {tmp_path}/run --name a --table {tmp_path}/t.csv {schema} --encoding utf-8")
    assert PartyRun(tmp_path / "run").settings.encoding == "utf-8"
    told = f"--id nr --encoding utf-8 --skip-rows 2 --out {tmp_path}/s.toml"
    good(f"schema draft {folder}/t.csv {told}")
    assert 'encoding = "utf-8"' in (tmp_path / "s.toml").read_text()


def test_parties_keep_what_is_theirs_in_a_merged_schema(folder, tmp_path):
    rows = "\n".join(f"{i},{i % 2}" for i in range(1, 401))
    (tmp_path / "b.csv").write_text(f"{rows}\n")
    columns = "--id column1 --no-header"
    good(f"schema draft {tmp_path}/b.csv --name b {columns} --out {tmp_path}/b.toml")
    (tmp_path / "b.csv").write_text(f"nr,x\n{rows}\n")
    good(f"schema draft {tmp_path}/b.csv --name b --id nr --out {tmp_path}/c.toml")
    good(f"schema merge {folder}/part.toml {tmp_path}/c.toml --out {tmp_path}/m.toml")
    merged = Schema.load(tmp_path / "m.toml")
    assert merged.reading("a") == Reading(**FOUND)
    assert merged.reading("b") == Reading(encoding="utf-8")
    assert Schema.from_json(merged.to_json()).reads == merged.reads
    both = f"{folder}/t.csv {tmp_path}/b.csv --id nr --schema {tmp_path}/m.toml"
    good(f"synthesize {both} --epsilon 5 --even-if-useless --out {tmp_path}/made.csv")
    assert "1-way TVD" in good(
        f"evaluate --real {folder}/t.csv --real {tmp_path}/b.csv --id nr --synthetic {tmp_path}/made.csv --ways 1"
    )


def test_a_part_of_another_party_is_refused(folder, tmp_path):
    words = f"--table {folder}/t.csv --id nr --schema {folder}/part.toml"
    assert "'b'" in refused(f"run party {tmp_path}/run --name b {words}")


@pytest.mark.parametrize(
    "section", [{"query": "SELECT 1"}, {"skip_rows": -1}, {"encoding": 3}, {"no_header": "no"}]
)
def test_what_no_section_can_say_is_refused(section):
    party = {"name": "a", "read": section, "attribute": [{"name": "x", "codes": 2}]}
    with pytest.raises(SchemaError, match="read"):
        Schema.from_json({"party": [party]})


def test_a_file_that_seems_to_have_no_header_names_the_options(tmp_path):
    (tmp_path / "a.csv").write_text("# note\nid,x\n1,2\n2,3\n")
    (tmp_path / "b.csv").write_text("1,2.5\n2,3.5\n")
    for name in ("a", "b"):
        printed = refused(f"schema draft {tmp_path}/{name}.csv --id id --out {tmp_path}/s.toml")
        assert (
            "if these are no names, give skip_rows (--skip-rows) or no_header (--no-header)"
            in printed
        )

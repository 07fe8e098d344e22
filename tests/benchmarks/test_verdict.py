"""Bars: what meets them, what they print and write; and the data sets that scripts share."""

import csv
import gzip
import json
import math
import re
import shlex
import sys
import tomllib

import numpy as np
import pytest

from benchmarks import bars as runner
from benchmarks import datasets
from benchmarks.bars import judged, judged_by_script, known_misses
from benchmarks.results import ROOT
from benchmarks.verdict import (
    BARS,
    FULL,
    QUICK,
    SMOKE,
    Bar,
    Verdict,
    arguments,
    at_least,
    at_most,
    conclude,
    load_bars,
    show,
    with_bar,
)


def test_bars_are_met_at_their_edge_and_not_by_what_is_no_number():
    assert at_most("", 2, 2).holds
    assert at_least("", 2, 2).holds
    assert not at_most("", 2.1, 2).holds
    assert not at_least("", 1.9, 2).holds
    for value in (math.nan, math.inf):
        assert at_most("", value, 2).holds is False
    assert at_least("", math.nan, 2).holds is False
    assert at_most("", None, 2).holds is None


def test_what_is_printed_and_written(tmp_path, capsys):
    lines = show(
        [
            at_most("seconds", np.float64(1.25), 2),
            at_least("ratio", 1, 3),
            at_most("peer", None, 1),
            Verdict("rows", 7),
        ]
    )
    assert conclude(lines, tmp_path / "out.json") == 1
    printed = capsys.readouterr().out
    for word in ("1.25", "<= 2", "holds", "FAILS", "not measured", "1 of 2 bars hold."):
        assert word in printed
    assert json.loads((tmp_path / "out.json").read_text()) == [
        {"name": "seconds", "value": 1.25, "bar": "<= 2", "holds": True},
        {"name": "ratio", "value": 1.0, "bar": ">= 3", "holds": False},
        {"name": "peer", "value": None, "bar": "<= 1", "holds": None},
        {"name": "rows", "value": 7, "bar": "", "holds": None},
    ]
    assert conclude(lines[:1]) == 0


def test_a_bar_is_about_rows_and_has_a_width_in_quick_runs():
    bar = Bar("a.b", "ratio (*) [MB]", at_most=2.0, width=0.5)
    assert bar.about("ratio (of 7) [MB]")
    assert not bar.about("ratio (of 7) [MB], median")
    assert not bar.about("ratio (of 7) M")
    row = Verdict("ratio (of 7) [MB]", 2.4)
    assert [bar.judge(row, size).holds for size in (FULL, QUICK)] == [False, True]
    least = Bar("a.c", "x", at_least=2.0, width=0.5)
    assert [least.judge(Verdict("x", 1.6), size).holds for size in (FULL, QUICK)] == [False, True]
    for wrong in (
        {},
        {"at_most": 1.0, "at_least": 1.0},
        {"at_most": 1.0, "width": -1.0},
        {"at_most": 1.0, "kind": "other"},
    ):
        with pytest.raises(ValueError, match="either at_most or at_least"):
            Bar("a.d", "x", **wrong)


def test_scripts_hold_their_rows_to_the_list_and_nothing_at_smoke_size():
    name = "nltcs, epsilon 0.8, count sketches: 3-way TVD"
    (bar,) = [bar for bar in load_bars()["tvd"] if bar.about(name)]
    row = Verdict(name, bar.at_most + bar.width)
    assert [with_bar(row, "tvd", size).holds for size in (FULL, QUICK, SMOKE)] == [
        False,
        True,
        None,
    ]
    assert with_bar(at_most("computed", 2, 1), "tvd", SMOKE).bar == ""
    assert with_bar(at_most("computed", 2, 1), "tvd", FULL).holds is False
    slow = "fire, epsilon 0.8, count sketches: 3-way TVD"
    assert [with_bar(Verdict(slow, 9), "tvd", size).holds for size in (FULL, QUICK)] == [
        False,
        None,
    ]


def test_every_section_of_the_list_has_a_command_and_no_row_two_bars():
    for section, bars in load_bars().items():
        assert len({bar.row for bar in bars}) == len(bars)
        for bar in bars:
            assert bar.machine in ("any", "two idle cores"), section
            # Seconds on the clock are of a machine.
            timed = bar.row.endswith((", s", "seconds", "[s]", "slowest"))
            assert not timed or (bar.kind, bar.machine) == ("absolute", "two idle cores"), bar.name


@pytest.mark.parametrize(
    "command",
    [c for c in (one.get("quick", "") for one in tomllib.loads(BARS.read_text()).values()) if c],
)
def test_the_script_of_a_quick_command_has_a_quick_size(command):
    words = shlex.split(command)
    if "--quick" in words:
        script = words[1] if words[1] != "-m" else f"{words[2].replace('.', '/')}/__main__.py"
        assert re.search('quick=|"--quick"', (ROOT / script).read_text())


def test_the_runner_says_what_misses_and_whether_it_is_known(tmp_path, monkeypatch):
    bars = [
        Bar("s.a", "a*", at_most=1.0),
        Bar("s.b", "b", at_least=1.0),
        Bar("s.c", "c", at_most=1.0),
    ]
    rows = [
        Verdict("a1", 0.5),
        Verdict("a2", 2.0),
        Verdict("b", 0.5),
        at_most("own", 2, 1),
        Verdict("stated", 9.0),
    ]
    monkeypatch.setattr(datasets, "FOLDER", tmp_path)
    outcomes = list(judged(bars, rows, FULL, {"s.b": []}))
    assert [(one.name, one.holds, one.known, one.bad) for one in outcomes] == [
        ("s.a", True, False, False),
        ("s.a", False, False, True),
        ("s.b", False, True, False),
        ("s.c", False, False, True),
    ]
    # What needs the paper's data is not measured where they are not.
    monkeypatch.setattr(datasets, "FOLDER", tmp_path / "nowhere")
    assert next(one for one in judged(bars, rows, FULL, {}) if one.name == "s.c").holds is None
    (outcome,) = judged_by_script("s", rows, {"s: own"})
    assert (outcome.name, outcome.holds, outcome.bad) == ("s: own", False, False)
    assert "missed, as listed" in str(outcome)
    page = tmp_path / "page.md"
    page.write_text(
        "| `not.this` | 1 |\n## Known misses\n\n| bar | figure |\n|---|---|\n"
        "| `s.b` | 0.5 (≥ 3; 7 runs) | 9 |\n| `s.c` | 26 to 31 s |\n\n## Next\n| `nor.it` | 1 |\n"
    )
    assert known_misses(page) == {"s.b": [0.5], "s.c": [26, 31]}


@pytest.mark.parametrize(
    "fields, listed, edge",
    [
        ({"at_most": 2.0}, (), 3.0),
        ({"at_most": 2.0, "width": 2.0}, (), 6.0),
        ({"at_most": 2.0}, (4.0, 3.0), 6.0),
        ({"at_least": 3.0}, (), 2.0),
        ({"at_least": 4.0, "width": 1.0}, (), 2.0),
        ({"at_least": 9.0}, (6.0, 3.0), 2.0),
        ({"at_least": -1.5}, (), -2.0),
    ],
)
def test_a_ratio_slips_beyond_one_and_a_half_times_its_bar_and_its_listed_figures(
    fields, listed, edge
):
    worse = 0.01 if "at_most" in fields else -0.01
    rows = [Verdict("a", value) for value in (edge - worse, edge + worse, math.nan, None)]
    known = {"s.a": listed} if listed else {}

    def slips(**more):
        return [
            one.slips for one in judged([Bar("s.a", "a", **fields, **more)], rows, QUICK, known)
        ]

    assert slips() == [False, True, True, False]
    assert not any(slips(kind="absolute") + slips(machine="two idle cores"))


def test_the_runner_ends_by_the_worst_and_records_a_line_a_commit(tmp_path, monkeypatch, capsys):
    trend = tmp_path / "trend.csv"
    trend.write_text("commit,date,gone.bar,model.loss\nabc,2026-01-01,1,0.5\n")
    monkeypatch.setattr(runner, "TREND", trend)
    monkeypatch.setattr(runner, "commit", lambda: "def")
    only = "--only model.loss --only model.counting --only analyses"
    monkeypatch.setattr(sys, "argv", ["bars.py", "--quick", "--record", *only.split()])
    loss, faster = (
        "final loss, share of mbi's",
        "all two-way counts of 9 records: times faster than np.bincount",
    )
    for worst, code in {0.9: 0, 1.4: 1, None: 2, 1.6: 3}.items():
        rows = [Verdict(loss, value) for value in (0.8, worst, 0.7)]
        rows += [Verdict(faster, value) for value in (9, 8, 10)] + [at_most("x", 1, 2)]
        error = "" if worst else "It broke."
        monkeypatch.setattr(runner, "rows_of", lambda *_, out=(rows, error, 0.0): out)
        assert runner.main() == code
    assert "SLIPS" in capsys.readouterr().out
    first, second = csv.DictReader(trend.read_text().splitlines())
    empty = {"model: processor s": "", "analyses: processor s": "", "model.counting": ""}
    assert first == {
        "commit": "abc",
        "date": "2026-01-01",
        "gone.bar": "1",
        "model.loss": "0.5",
        **empty,
    }
    assert [second[name] for name in (*first, "commit")[2:]] == ["", "1.6", "0", "0", "8", "def"]
    assert "model" in (tmp_path / "trend.svg").read_text()


def test_known_misses_are_bars():
    names = {bar.name for bars in load_bars().values() for bar in bars}
    assert set(known_misses()) <= names


def test_every_script_has_the_same_options(capsys):
    options = arguments("A script.", quick="fewer").parse_args(["--smoke"])
    assert (options.size, options.json) == (SMOKE, None)
    assert arguments("A script.").parse_args([]).size == FULL
    with pytest.raises(SystemExit):
        arguments("A script.", quick="fewer").parse_args(["--smoke", "--quick"])
    assert "not allowed with" in capsys.readouterr().err
    assert BARS.name == "bars.toml"


def test_data_sets_are_read_by_the_order_of_their_domain(tmp_path):
    with gzip.open(tmp_path / "adult.csv.gz", "wt") as file:
        file.write("record_id,a,b\n9,1,0\n8,0,2\n7,1,1\n")
    (tmp_path / "adult-domain.json").write_text('{"b": 3, "a": 2}')
    table = datasets.load("adult", tmp_path)
    assert (table.names, table.sizes, table.records) == (("b", "a"), (3, 2), 3)
    np.testing.assert_array_equal(table.codes, [[0, 2, 1], [1, 0, 1]])
    np.testing.assert_array_equal(table.part(np.array([2])).codes, [[1], [1]])
    with pytest.raises(FileNotFoundError, match="no fire"):
        datasets.load("fire", tmp_path)


def test_made_up_tables_keep_to_their_domains():
    for table in (datasets.generated(500), datasets.adult_like()):
        assert table.codes.dtype == np.uint16
        assert (table.codes.max(axis=1) < table.sizes).all()


@pytest.mark.data
def test_every_data_set_loads(paper_data):
    for name in datasets.NAMES:
        table = datasets.load(name, paper_data)
        assert (table.codes.max(axis=1) < table.sizes).all()

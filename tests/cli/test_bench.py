"""The benchmark of the command line: every figure has a unit, and a machine to compare with."""

import json
import os
import re

import pytest
from commands import good, refused

from benchmarks.speed import plots
from vertimrf.cli.bench import MOST_ENCRYPTED, in_words, planned, run_bench, work_of
from vertimrf.errors import PlanError
from vertimrf.releases.register import KINDS


def test_every_encoder_has_its_figures_beside_the_machine_s():
    figures = run_bench(2000, [], [1])
    (machine,) = figures["machine"]
    assert machine["threads"] == 1
    assert min(machine["copy"], machine["additions"]) > 1e5
    encoders = {one["encoder"]: one for one in figures["encoders"]}
    assert [*encoders] == [*KINDS]
    for name, one in encoders.items():
        plan, seconds = planned(name, 2000), one["encode_seconds"]
        sent = plan.message_size(0)
        if name == "encrypted":
            files = plan.sketch.files(plan.groups_by_party)
            sent += sum(size for _, sender, *_, size in files if sender == 0)
        assert one["message_bytes"] == sent
        assert one["rows_per_second"] * seconds == pytest.approx(2000)
        assert one["efficiency"] == 1
        bound = [one[f"{what}_per_second"] for what in ("counters", "bytes")]
        if name in ("grr", "encrypted"):
            assert [*bound, one["roofline"]] == [None] * 3
            continue
        counters, touched = (figure * seconds for figure in bound)
        width = 4 if name == "count-sketch" else 1
        assert touched == pytest.approx(2000 * 16 + sent + 2 * width * counters)
        least = (2000 * 16 + sent) / machine["copy"] + counters / machine["additions"]
        assert one["roofline"] == pytest.approx(least / seconds)
    lines = "\n".join(in_words(figures)).splitlines()[3:-6]
    assert [line.split()[0] for line in lines] == ["encoder", "s", *KINDS]
    assert len({len(line) for line in lines}) == 1


def test_counters_are_those_that_must_be_touched():
    sketch = planned("count-sketch", 2000).sketch
    assert work_of("count-sketch", 2000).counters == 2000 * 4 * sketch.repetitions
    # Of geometric levels about log(keys) of the keys' records are drawn, not each record under each key.
    pairs = planned("scheduled-pairs", 10**5).sketch
    keys = sum(pair.keys for pair in pairs.pairs)
    assert 8 * keys < work_of("scheduled-pairs", 10**5).counters < 8 * keys * 40 < 10**5 * keys / 10


def test_encryption_has_few_rows():
    # Of so few rows columns are halved.
    work = work_of("encrypted", 20)
    assert (work.rows, work.counters, work.merge) == (20, 0, None)
    assert MOST_ENCRYPTED < 10**6


def test_a_plan_says_encoder_rows_and_run(tmp_path):
    plan = planned("count-sketch", 2000)
    plan.save(tmp_path / "plan.json")
    figures = tmp_path / "figures.json"
    said = good("bench", "--threads 1 --like", tmp_path / "plan.json", "--json", figures)
    plots.draw([json.loads(figures.read_text())] * 2, tmp_path / "plots.svg")
    assert f"{os.cpu_count()} cores" in (tmp_path / "plots.svg").read_text()
    assert re.search(r"\ncount-sketch +1 +2,000 ", said)
    assert "encrypted" not in said
    assert "forecast:\n  one: about" in said


@pytest.mark.parametrize(
    "words, sentence",
    [
        ("--rows 1", "1 is not in the range 2<=x"),
        ("--threads 0", "Kernels here have 1 to "),
        ("--threads 1,4096", "not 1, 4096"),
        ("--against xxhash", "datasketches"),
        ("--threads 1,x", "whole numbers separated by commas"),
        ("--encoder none", "'none' is not one of 'count-sketch'"),
        ("--like missing.json", "missing.json"),
    ],
)
def test_what_cannot_be_measured_is_said(words, sentence):
    assert sentence in refused("bench", *words.split())


def test_python_callers_hear_it_too():
    with pytest.raises(PlanError, match="not 0"):
        run_bench(several=[0])

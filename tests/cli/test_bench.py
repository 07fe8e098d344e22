"""The benchmark of the command line: every figure has a unit, and a machine to compare with."""

import numpy as np
import pytest
from commands import refused

from vertimrf.cli.bench import MOST_ENCRYPTED, Machine, in_words, planned, run_bench, work_of
from vertimrf.errors import PlanError
from vertimrf.releases.register import KINDS


def test_every_encoder_has_its_figures_beside_the_machine_s():
    figures = run_bench(2000, [], [1])
    (machine,) = figures["machine"]
    assert machine["threads"] == 1
    assert min(machine["copy"], machine["scatter"]) > 1e6
    encoders = {one["encoder"]: one for one in figures["encoders"]}
    assert [*encoders] == [*KINDS]
    plans = {name: planned(name, 2000) for name in KINDS}
    pairs, shared = (plans[name].sketch for name in ("scheduled-pairs", "published"))
    # Repetitions of 4 columns; the keys of 16 pairs, of which a column has 4; all keys of 4 columns; one response; 8 values.
    added = {
        "count-sketch": plans["count-sketch"].sketch.repetitions * 4,
        "scheduled-pairs": sum(pair.keys for pair in pairs.pairs),
        "published": shared.keys * 4,
        "grr": 4,
        "encrypted": 32,
    }
    for name, one in encoders.items():
        seconds = one["encode_seconds"]
        assert one["rows_per_second"] * seconds == pytest.approx(2000)
        assert one["counters_per_second"] * seconds == pytest.approx(2000 * added[name])
        sent = plans[name].message_size(0)
        if name == "encrypted":
            sent += sum(
                size for *_, size in plans[name].sketch.files(plans[name].groups_by_party)[:-1]
            )
        assert one["message_bytes"] == sent
        assert one["efficiency"] == 1
        moved = one["bytes_per_second"] * seconds
        adds = 8 * 2000 * added[name] * (name == "count-sketch")
        assert moved == pytest.approx(2000 * 16 + sent + adds)
        assert (one["roofline"] is None) == (name in ("grr", "encrypted"))
        if one["roofline"] is None:
            continue
        least = (moved - adds) / machine["copy"] + adds / machine["scatter"]
        assert one["roofline"] == pytest.approx(least / seconds)
    assert len(in_words(figures)) == 3 + len(KINDS)


def test_encryption_has_few_rows_and_no_roofline():
    work = work_of("encrypted", 20)
    # Of so few rows columns are halved.
    assert (work.rows, work.counters, work.merge) == (20, 20 * 4, None)
    assert np.isfinite(work.least(Machine(1, 1e9, 1e9)))
    assert MOST_ENCRYPTED < 10**6


@pytest.mark.parametrize(
    "words, sentence",
    [
        ("--rows 1", "2 to 134,217,728 rows"),
        ("--threads 0", "1 to "),
        ("--threads 1,x", "whole numbers separated by commas"),
        ("--encoder none", "No encoder 'none': choose of count-sketch"),
        ("--like missing.json", "missing.json"),
    ],
)
def test_what_cannot_be_measured_is_said(words, sentence):
    assert sentence in refused("bench", *words.split())


def test_python_callers_hear_it_too():
    with pytest.raises(PlanError, match="rows"):
        run_bench(0)

"""The benchmark of the command line: every figure has a unit, and a machine to compare with."""

import numpy as np
import pytest
from commands import refused

from vertimrf.cli.bench import ENCODERS, MOST_ENCRYPTED, Machine, in_words, run_bench
from vertimrf.errors import PlanError


def test_every_encoder_has_its_figures_beside_the_machine_s():
    figures = run_bench(2000, ["count-sketch", "scheduled-pairs", "published"], [1])
    (machine,) = figures["machine"]
    assert machine["threads"] == 1
    assert min(machine["copy"], machine["scatter"]) > 1e6
    encoders = {one["encoder"]: one for one in figures["encoders"]}
    # 64 repetitions of 4 columns; 8,192 keys of each of 16 pairs, which a column has in 4; 2,000 keys of 4 columns.
    added = {"count-sketch": 64 * 4, "scheduled-pairs": 16 * 8192, "published": 4 * 2000}
    # A code has 4 bits: 4 columns of 8 values, 131,072 counters each; 8 values of all keys of 16 pairs; of 4 columns.
    sent = {"count-sketch": 2 << 20, "scheduled-pairs": 1 << 19, "published": 32_000}
    for name, one in encoders.items():
        seconds = one["encode_seconds"]
        assert one["rows_per_second"] * seconds == pytest.approx(2000)
        assert one["counters_per_second"] * seconds == pytest.approx(2000 * added[name])
        assert one["message_bytes"] == sent[name]
        assert one["efficiency"] == 1
        moved = one["bytes_per_second"] * seconds
        adds = 8 * 2000 * added[name] * (name == "count-sketch")
        assert moved == pytest.approx(2000 * 16 + sent[name] + adds)
        least = (moved - adds) / machine["copy"] + adds / machine["scatter"]
        assert one["roofline"] == pytest.approx(least / seconds)
    assert len(in_words(figures)) == 3 + 3


def test_encryption_has_few_rows_and_no_roofline():
    work = ENCODERS["encrypted"](20)
    assert (work.rows, work.counters, work.merge) == (20, 20 * 32, None)
    assert np.isfinite(work.least(Machine(1, 1e9, 1e9)))
    assert MOST_ENCRYPTED < 10**6


@pytest.mark.parametrize(
    "words, sentence",
    [
        ("--rows 1", "2 to 134,217,728 rows"),
        ("--threads 0", "1 to "),
        ("--threads 1,x", "no list of numbers"),
        ("--encoder none", "No encoder 'none': choose of count-sketch"),
        ("--like missing.json", "missing.json"),
    ],
)
def test_what_cannot_be_measured_is_said(words, sentence):
    assert sentence in refused("bench", *words.split())


def test_python_callers_hear_it_too():
    with pytest.raises(PlanError, match="rows"):
        run_bench(0)

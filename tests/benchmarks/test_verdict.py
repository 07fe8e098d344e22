"""Bars: what meets them, what they print and write; and the data sets that scripts share."""

from __future__ import annotations

import gzip
import json
import math

import numpy as np
import pytest

from benchmarks import datasets
from benchmarks.verdict import Verdict, at_least, at_most, conclude, show


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
    lines = show([at_most("seconds", np.float64(1.25), 2), at_least("ratio", 1, 3), at_most("peer", None, 1), Verdict("rows", 7)])
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

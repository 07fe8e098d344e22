"""Progress: bars on a terminal, silence in a pipe, and figures that only grow."""

import itertools
import re

import numpy as np
import pytest
from builders import dealt, schema_of
from planning import plan_with

from vertimrf import RunOptions, progress
from vertimrf.model.fit import FitOptions, fit
from vertimrf.model.measurement import Measurement
from vertimrf.trial import run_protocol


class Remembered:
    def __init__(self):
        self.steps = []

    def step(self, name):
        self.steps.append((name, []))

    def advance(self, done, of):
        self.steps[-1][1].append((done, of))


@pytest.mark.parametrize("encoder", ["count-sketch", "scheduled-pairs"])
def test_a_run_tells_of_its_steps_and_of_how_far_they_have_come(encoder):
    rng = np.random.default_rng(0)
    schema = schema_of(a=(4, 4, 4), b=(4, 4, 4))
    tables = dealt(schema, rng.integers(0, 4, (6, 500)))
    remembered = Remembered()
    plan = plan_with(schema, expected_records=500, keys=1 << 10, delta=1e-5, encoder=encoder)
    run_protocol(plan, tables, RunOptions(rows=50, progress=remembered))
    steps = dict(remembered.steps)
    assert {"parties a, b", "initial model", "cross-party marginals"} <= set(steps)
    assert {"global graph", "global model", "sampling"} <= set(steps)
    assert steps["initial model"]
    assert steps["global model"]
    assert steps["sampling"]
    assert len(steps["cross-party marginals"]) == (
        len(plan.sketch.pairs) if encoder == "scheduled-pairs" else 1
    )
    for figures in steps.values():
        for (done, of), (later, next_of) in itertools.pairwise(figures):
            assert 0 <= done <= of
            assert later >= done or next_of != of


def test_what_may_take_longer_than_expected_slows_down_and_never_ends():
    figures = [progress.towards(done, 10.0) for done in np.arange(0, 100, 0.5)]
    assert figures[0] == (0, progress.PARTS)
    assert figures[10] == (progress.PARTS // 2, progress.PARTS)
    assert all(later[0] >= earlier[0] for earlier, later in itertools.pairwise(figures))
    assert all(done < of for done, of in figures)


def test_a_fit_tells_how_far_it_has_come_by_steps_and_gradients():
    rng = np.random.default_rng(1)
    steps = Remembered()
    steps.step("fit")
    tables = [
        rng.multinomial(10_000, rng.dirichlet(np.full(25, 0.3))).reshape(5, 5) for _ in range(4)
    ]
    pairs = [(0, 1), (1, 2), (2, 3), (0, 3)]
    measured = [
        Measurement(pair, (None, None), table + rng.normal(0, 20, (5, 5)), 20.0)
        for pair, table in zip(sorted(pairs), tables, strict=True)
    ]
    fit((5,) * 4, measured, 10_000.0, options=FitOptions(progress=progress.fitting(steps)))
    figures = steps.steps[0][1]
    assert len(figures) > 5
    assert {of for _, of in figures} == {progress.PARTS}
    assert all(later >= earlier for (earlier, _), (later, _) in itertools.pairwise(figures))
    assert figures[-1][0] > figures[0][0]


def test_a_long_step_gets_a_bar_with_what_remains(monkeypatch, capsys):
    monkeypatch.setattr(progress, "SOON", 0.0)
    monkeypatch.setattr("click._termui_impl.isatty", lambda _: True)
    shown = progress.TerminalProgress()
    shown.step("encoding")
    for done in range(0, 101, 10):
        shown.advance(done, 100)
    shown.step("sampling")
    text = capsys.readouterr().err
    assert text.startswith("  encoding …\n")
    assert "100%" in text
    assert text.endswith("  sampling …\n")


def test_units_with_a_name_are_shown_with_their_number_in_a_second(monkeypatch, capsys, caplog):
    now = iter(range(0, 1000, 10))
    monkeypatch.setattr(progress, "SOON", 0.0)
    monkeypatch.setattr("click._termui_impl.isatty", lambda _: True)
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(now))
    monkeypatch.setattr(progress, "OFTEN", 0.0)
    for shown in (progress.TerminalProgress(), progress.Logged()):
        with caplog.at_level("INFO", "vertimrf"):
            shown.step("rows for insurer")
            for done in range(0, 4001, 400):
                shown.advance(done, 4000, "rows")
            shown.step("the end")
    rates = re.findall(r"([0-9,]+) rows a second", capsys.readouterr().err)
    assert rates
    assert all(0 <= int(rate.replace(",", "")) <= 40 for rate in rates)
    assert "rows for insurer: 100 %, 110 s so far, 36 rows a second" in caplog.text


def test_a_short_step_gets_none(capsys):
    shown = progress.TerminalProgress()
    shown.step("encoding")
    shown.advance(1, 2)
    assert capsys.readouterr().err == "  encoding …\n"


@pytest.mark.parametrize(
    "terminal, kind", [(True, progress.TerminalProgress), (False, progress.Logged)]
)
def test_a_pipe_gets_the_log(monkeypatch, terminal, kind):
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)
    assert type(progress.for_terminal()) is kind


def test_the_log_has_steps_and_times_and_is_silent_unless_asked_for(monkeypatch, caplog, capsys):
    monkeypatch.setattr(progress, "OFTEN", 0.0)

    def logged():
        log = progress.Logged()
        log.step("encoding")
        log.advance(1, 4)
        log.step("sampling")

    logged()
    assert capsys.readouterr() == ("", "")
    assert not caplog.records
    with caplog.at_level("INFO", logger="vertimrf"):
        logged()
    lines = [record.getMessage() for record in caplog.records]
    assert [record.name for record in caplog.records] == ["vertimrf"] * 4
    assert lines[0] == "encoding"
    assert lines[1].startswith("encoding: 25 %, ")
    assert lines[2].startswith("encoding: took ")
    assert lines[3] == "sampling"
    assert type(RunOptions().progress) is progress.Logged

"""Peers: what runs them, judges them and writes the tables; on a made-up table, with commands that stand for packages."""

from __future__ import annotations

import gzip
import importlib
import itertools
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from benchmarks.datasets import Dataset, generated
from benchmarks.peers import __main__ as driver
from benchmarks.peers.environment import READY, Environment, why_not_installed
from benchmarks.peers.measure import DONE, FAILED, OVER, Measured, found, kept, measure, rows_file
from benchmarks.peers.peer import Peer, main, read_rows, write_rows
from benchmarks.peers.report import MARK, markdown
from benchmarks.peers.zcdp import delta_of, rho_of
from benchmarks.reproduce import quoted
from vertimrf.distances import tvd

TABLE = generated(400)


def run(folder: Path, code: str, limit: float = 60) -> Measured:
    return measure(folder, [sys.executable, "-c", code], TABLE, "fake", 0.8, 1 / 400, 0, limit)


def test_rows_come_back_as_they_were_written(tmp_path):
    write_rows(tmp_path / "rows.csv.gz", TABLE.names, TABLE.codes)
    np.testing.assert_array_equal(read_rows(tmp_path / "rows.csv.gz", TABLE.names, TABLE.sizes), TABLE.codes)
    with pytest.raises(ValueError, match="not those of the table"):
        read_rows(tmp_path / "rows.csv.gz", TABLE.names[::-1], TABLE.sizes)
    with pytest.raises(ValueError, match="column x0 has codes outside 0 to 0"):
        read_rows(tmp_path / "rows.csv.gz", TABLE.names, (1, *TABLE.sizes[1:]))


def test_a_run_is_judged_and_kept(tmp_path):
    """The true rows, written by a process of their own, are at no distance."""
    write_rows(tmp_path / "true.csv.gz", TABLE.names, TABLE.codes)
    out = rows_file(tmp_path, TABLE.name, "fake", 0.8)
    assert out.name == "generated-0.8-fake.csv.gz"
    done = run(tmp_path, f"import shutil; shutil.copy({str(tmp_path / 'true.csv.gz')!r}, {str(out)!r})")
    assert (done.outcome, done.tvd2, done.tvd3) == (DONE, 0, 0)
    assert found(tmp_path) == [done]
    assert kept(tmp_path, TABLE.name, "fake", 0.8, seed=0, limit=900) == done
    assert kept(tmp_path, TABLE.name, "fake", 0.8, seed=1, limit=900) is None
    assert kept(tmp_path, TABLE.name, "fake", 0.2, seed=0, limit=900) is None


def test_runs_that_fail_say_why(tmp_path):
    failed = run(tmp_path, "import sys; print('first', file=sys.stderr); sys.exit('no such mechanism (')")
    assert (failed.outcome, failed.message, failed.tvd3) == (FAILED, "no such mechanism (", None)
    closed = run(tmp_path, r"import sys; sys.exit('of many lines\n)')")
    assert closed.message == "of many lines"
    silent = run(tmp_path, "raise SystemExit(3)")
    assert (silent.outcome, silent.message) == (FAILED, "exit code 3")
    nothing = run(tmp_path, "pass")
    assert nothing.outcome == FAILED
    assert "fake.csv.gz" in nothing.message
    assert kept(tmp_path, TABLE.name, "fake", 0.8, 0, 60) is None


def test_what_takes_too_long_is_ended_and_done_again_only_with_more_time(tmp_path):
    over = run(tmp_path, "import time; time.sleep(600)", limit=0.5)
    assert (over.outcome, over.tvd2) == (OVER, None)
    assert kept(tmp_path, TABLE.name, "fake", 0.8, 0, 0.5) == over
    assert kept(tmp_path, TABLE.name, "fake", 0.8, 0, 5) is None


def test_rows_of_an_earlier_run_do_not_count(tmp_path):
    write_rows(rows_file(tmp_path, TABLE.name, "fake", 0.8), TABLE.names, TABLE.codes)
    assert run(tmp_path, "pass").outcome == FAILED


def test_the_driver_runs_ours_once_and_writes_the_page(tmp_path, monkeypatch, capsys):
    page = tmp_path / "page.md"
    page.write_text(f"Before\n<!-- table: {MARK} -->\nstale\n<!-- end: {MARK} -->\nAfter\n")
    monkeypatch.setattr(driver, "why_not_installed", lambda name: f"no {name}")
    words = ["generated", "--only", "centralized", "--rows", str(tmp_path / "rows"), "--page", str(page)]
    assert driver.main(words) == 0
    (run,) = found(tmp_path / "rows")
    assert (run.outcome, run.peer, run.message) == (DONE, "centralized", "")
    assert run.delta == 1 / 5000
    assert 0 < run.tvd2 < run.tvd3 < 0.2
    text = page.read_text()
    assert text.startswith("Before\n")
    assert text.endswith("After\n")
    assert "stale" not in text
    assert "| `dpsynth` | `no dpsynth` |" in text
    assert f"{run.tvd2:.4f} / {run.tvd3:.4f}" in text

    def never(*_: object) -> Measured:
        raise AssertionError("measured twice")

    monkeypatch.setattr(driver, "measure", never)
    assert driver.main(words) == 0
    assert "centralized" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nowhere"], "has no nowhere.csv.gz"),
        (["generated", "--only", "nobody"], "invalid choice"),
        (["generated", "--epsilon", "0"], "every epsilon must be a positive number"),
        (["generated", "--epsilon", "nan"], "every epsilon must be a positive number"),
        (["generated", "--page", "no-such-page.md"], "there is no page no-such-page.md"),
    ],
)
def test_the_driver_refuses_what_it_cannot_do(words, sentence, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        driver.main([*words, "--data", str(tmp_path)])
    assert ended.value.code == 2
    assert sentence in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_script_runs_its_peer_and_refuses_bad_targets(tmp_path, capsys):
    seen = []

    def shifted(table: Dataset, epsilon: float, delta: float, seed: int) -> np.ndarray:
        seen.append((epsilon, delta, seed))
        return np.roll(table.codes, 1, axis=1)

    peer = Peer("fake", "Fake", None, shifted)
    out = tmp_path / "rows.csv.gz"
    assert main(peer, ["generated", "--epsilon", "0.5", "--seed", "3", "--out", str(out)]) == 0
    assert seen == [(0.5, 1 / 5000, 3)]
    rows = read_rows(out, TABLE.names, TABLE.sizes)
    np.testing.assert_array_equal(rows, np.roll(generated().codes, 1, axis=1))
    refused = (["generated", "--epsilon", "-1"], ["nowhere", "--epsilon", "1"], ["generated", "--epsilon", "1", "--delta", "2"])
    for words in refused:
        with pytest.raises(SystemExit) as ended:
            main(peer, [*words, "--data", str(tmp_path), "--out", str(out)])
        assert ended.value.code == 2
    with pytest.raises(SystemExit):
        main(peer, ["generated", "--epsilon", "1", "--out", str(tmp_path / "absent" / "rows.csv.gz")])
    assert "there is no folder" in capsys.readouterr().err


def test_tables_tell_measured_quoted_and_missing_apart():
    def of(data: str, peer: str, outcome: str, tvd3: float | None, message: str = "") -> Measured:
        return Measured(data, peer, 0.8, 1e-5, 0, outcome, 12.4, 9.0, 900, None if tvd3 is None else tvd3 / 2, tvd3, message)

    environment = Environment("tools", ("tool==1.0", "other==2"))
    peers = [Peer(name, name.title(), environment, lambda *_: TABLE.codes) for name in ("quick", "slow", "absent")]
    runs = [
        of("other", "quick", DONE, 0.25), of("adult", "quick", DONE, 0.0421),
        of("adult", "slow", OVER, None), of("other", "slow", FAILED, None, "out of memory"),
    ]  # fmt: skip
    text = markdown(runs, peers, {"dpsynth": "No matching distribution", "there": None})
    lines = text.splitlines()
    assert "| mechanism | adult | other |" in lines
    assert "| Quick | 0.0210 / 0.0421, 12 s (9) | 0.1250 / 0.2500, 12 s (9) |" in lines
    assert "| Slow | over 900 s | failed |" in lines
    assert "- Slow on other, ε = 0.8: `out of memory`" in lines
    assert not any("Absent" in line for line in lines)
    assert f"| *quoted:* SWIFT (dpsynth) | *{quoted.SWIFT['adult', 0.8]:g}* | – |" in lines
    assert "| `tool==1.0` | runs here |" in lines
    assert "| `dpsynth` | `No matching distribution` |" in lines
    assert "| `there` | installs; no script runs it yet |" in lines


def test_an_environment_is_made_once_and_has_other_places_for_other_pins(tmp_path):
    nothing, other = Environment("empty", ()), Environment("empty", ("a==1",))
    assert nothing.path(tmp_path) != other.path(tmp_path)
    assert not nothing.active(tmp_path)
    made = nothing.path(tmp_path)
    (made / "bin").mkdir(parents=True)
    (made / READY).touch()
    assert nothing.python(tmp_path) == made / "bin" / "python"


def test_pip_says_why_a_package_is_not_installed(monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    said = why_not_installed("no-such-package-of-anybody")
    assert said is not None
    assert "no-such-package-of-anybody" in said
    assert "ERROR" not in said


@pytest.mark.parametrize("name", driver.NAMES)
def test_every_peer_is_pinned_and_can_be_called_by_its_name(name, tmp_path):
    (peer,) = driver.peers([name])
    assert peer.name == name
    assert importlib.import_module(f"benchmarks.peers.{name}").PEER is peer
    if peer.environment is not None:
        assert all("==" in pin for pin in peer.environment.requirements)


@pytest.fixture
def jax_as_it_was() -> Iterator[None]:
    """The mechanisms on mbi set JAX's options for their process."""
    jax = pytest.importorskip("jax")
    names = ("jax_enable_x64", "jax_enable_compilation_cache")
    before = {name: getattr(jax.config, name) for name in names}
    yield
    for name, value in before.items():
        jax.config.update(name, value)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.usefixtures("jax_as_it_was")
def test_annealed_aim_spends_its_budget_and_finds_what_hangs_together():
    """Selections and measurements come to rho; the noise is halved on the way; rows are far closer than columns by themselves."""
    mbi = pytest.importorskip("mbi")
    if not hasattr(mbi.estimation, "MirrorDescent"):
        pytest.skip("mbi is not version 2")
    from benchmarks import front_ends

    chosen: list[float] = []

    class Told(front_ends.AnnealedAIM):
        def choose(self, candidates, scores, epsilon, sensitivity):
            chosen.append(epsilon)
            return super().choose(candidates, scores, epsilon, sensitivity)

    table, rho = generated(), 0.05
    peer = front_ends.Mbi()
    run = Told(table, peer, peer.estimators()["ours"], None, rho).run()
    sigmas = [m.stddev for m in run.measurements]
    singles, rounds = sigmas[: len(table.names)], sigmas[len(table.names) :]
    assert sum(1 / (2 * s**2) for s in sigmas) + sum(e**2 / 8 for e in chosen) == pytest.approx(rho)
    assert len(rounds) == len(chosen) == len(run.selected)
    assert set(singles) == {rounds[0]}
    assert {round(after / before, 9) for before, after in itertools.pairwise(rounds[:-1])} == {0.5, 1.0}
    # A tenth of the budget of every round selects.
    assert [e**2 / 8 for e in chosen] == pytest.approx([1 / (2 * s**2) / 9 for s in rounds])
    apart = np.stack([np.random.default_rng(i).permutation(own) for i, own in enumerate(table.codes)])
    assert tvd(table.codes, run.codes, table.sizes, (3,))[3] < 0.25 * tvd(table.codes, apart, table.sizes, (3,))[3]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.usefixtures("jax_as_it_was")
def test_a_peer_on_mbi_gives_the_same_rows_for_the_same_seed():
    pytest.importorskip("mbi")
    (peer,) = driver.peers(["mbi_aim_ours"])
    rows = [peer.synthesize(TABLE, 5.0, 1 / 400, seed) for seed in (1, 1, 2)]
    assert rows[0].shape == TABLE.codes.shape
    np.testing.assert_array_equal(rows[0], rows[1])
    assert not np.array_equal(rows[0], rows[2])


def test_zcdp_converts_as_published():
    """The larger root of the simple bound rho + 2 sqrt(rho log(1/delta)) is never better, and what is bought is spent."""
    for epsilon, delta in ((0.2, 1e-5), (0.8, 1 / 45_222), (3.2, 1e-9)):
        rho = rho_of(epsilon, delta)
        simple = (np.sqrt(np.log(1 / delta) + epsilon) - np.sqrt(np.log(1 / delta))) ** 2
        assert simple < rho < 2 * simple
        assert delta_of(rho, epsilon) <= delta
        assert delta_of(1.001 * rho, epsilon) > delta
    # A table of the formula by adaptive search instead of a grid: 0.0244537 at epsilon 0.8, delta 1/21574.
    assert rho_of(0.8, 1 / 21_574) == pytest.approx(0.0244537, rel=1e-5)


def test_records_are_plain_json(tmp_path):
    run(tmp_path, "pass")
    (file,) = tmp_path.glob("*.json")
    assert json.loads(file.read_text())["outcome"] == FAILED
    with gzip.open(tmp_path / "x.csv.gz", "wt") as out:
        out.write("a,b\n1,2\n")
    np.testing.assert_array_equal(read_rows(tmp_path / "x.csv.gz", ["a", "b"], [2, 3]), [[1], [2]])

"""Peers: rows, environments and the program that runs one; and the mechanisms that are written out here."""

import itertools

import numpy as np
import pytest

from benchmarks.datasets import generated
from benchmarks.peers.__main__ import main
from benchmarks.peers.environment import READY, Environment, NotInstalledError
from benchmarks.peers.on_mbi import DEPENDENCIES
from benchmarks.peers.peer import PEERS, Peer, read_rows, write_rows
from benchmarks.peers.zcdp import delta_of, rho_of
from vertimrf.utility.distances import tvd

TABLE = generated(400)


def test_rows_come_back_as_they_were_written(tmp_path):
    write_rows(tmp_path / "rows.csv.gz", TABLE.names, TABLE.codes)
    np.testing.assert_array_equal(
        read_rows(tmp_path / "rows.csv.gz", TABLE.names, TABLE.sizes), TABLE.codes
    )
    with pytest.raises(ValueError, match="not those of the table"):
        read_rows(tmp_path / "rows.csv.gz", TABLE.names[::-1], TABLE.sizes)
    with pytest.raises(ValueError, match="column x0 has codes outside 0 to 0"):
        read_rows(tmp_path / "rows.csv.gz", TABLE.names, (1, *TABLE.sizes[1:]))


def test_the_program_runs_a_peer_and_refuses_bad_targets(tmp_path, monkeypatch, capsys):
    seen = []

    def shifted(table, epsilon, delta, seed):
        seen.append((epsilon, delta, seed))
        return np.roll(table.codes, 1, axis=1)

    monkeypatch.setitem(PEERS, "fake", Peer("fake", "Fake", Environment("fake", ()), shifted))
    monkeypatch.setattr(Environment, "active", lambda self, folder: True)
    out = tmp_path / "rows.csv.gz"
    assert main(["fake", "generated", "--epsilon", "0.5", "--seed", "3", "--out", str(out)]) == 0
    assert seen == [(0.5, 1 / 5000, 3)]
    rows = read_rows(out, TABLE.names, TABLE.sizes)
    np.testing.assert_array_equal(rows, np.roll(generated().codes, 1, axis=1))
    refused = (
        ["generated", "--epsilon", "-1"],
        ["nowhere", "--epsilon", "1"],
        ["generated", "--epsilon", "1", "--delta", "2"],
    )
    for words in refused:
        with pytest.raises(SystemExit) as ended:
            main(["fake", *words, "--data", str(tmp_path), "--out", str(out)])
        assert ended.value.code == 2
    with pytest.raises(SystemExit):
        main(
            [
                "fake",
                "generated",
                "--epsilon",
                "1",
                "--out",
                str(tmp_path / "absent" / "rows.csv.gz"),
            ]
        )
    assert "there is no folder" in capsys.readouterr().err


def test_an_environment_is_made_once_and_has_other_places_for_other_pins(tmp_path):
    nothing, other = Environment("empty", ()), Environment("empty", ("a==1",))
    assert nothing.path(tmp_path) != other.path(tmp_path)
    assert not nothing.active(tmp_path)
    made = nothing.path(tmp_path)
    (made / "bin").mkdir(parents=True)
    (made / READY).touch()
    assert nothing.python(tmp_path) == made / "bin" / "python"


@pytest.mark.slow
def test_pip_says_why_an_environment_is_not_made(tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    with pytest.raises(NotInstalledError, match=r"does not install: .*no-such-package-of-anybody"):
        Environment("none", ("no-such-package-of-anybody",)).python(tmp_path)


def test_every_peer_is_pinned():
    """Its package's first; mechanisms that run on this library have its dependencies as well."""
    for peer in PEERS.values():
        first, *_ = peer.environment.requirements
        unpinned = {pin for pin in peer.environment.requirements if "==" not in pin}
        assert "==" in first
        assert unpinned in (set(), set(DEPENDENCIES))


@pytest.fixture
def jax_as_it_was():
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
    from benchmarks.peers import mechanisms

    chosen = []

    class Told(mechanisms.AnnealedAIM):
        def choose(self, candidates, scores, epsilon, sensitivity):
            chosen.append(epsilon)
            return super().choose(candidates, scores, epsilon, sensitivity)

    table, rho = generated(), 0.05
    peer = mechanisms.Mbi()
    run = Told(table, peer, peer.estimators()["ours"], None, rho).run()
    sigmas = [m.stddev for m in run.measurements]
    singles, rounds = sigmas[: len(table.names)], sigmas[len(table.names) :]
    assert sum(1 / (2 * s**2) for s in sigmas) + sum(e**2 / 8 for e in chosen) == pytest.approx(rho)
    assert len(rounds) == len(chosen) == len(run.selected)
    assert set(singles) == {rounds[0]}
    assert {round(after / before, 9) for before, after in itertools.pairwise(rounds[:-1])} == {
        0.5,
        1.0,
    }
    # A tenth of the budget of every round selects.
    assert [e**2 / 8 for e in chosen] == pytest.approx([1 / (2 * s**2) / 9 for s in rounds])
    apart = np.stack(
        [np.random.default_rng(i).permutation(column) for i, column in enumerate(table.codes)]
    )
    assert (
        tvd(table.codes, run.codes, table.sizes, (3,))[3]
        < 0.25 * tvd(table.codes, apart, table.sizes, (3,))[3]
    )


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.usefixtures("jax_as_it_was")
def test_a_peer_on_mbi_gives_the_same_rows_for_the_same_seed():
    pytest.importorskip("mbi")
    peer = PEERS["mbi_aim_ours"]
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

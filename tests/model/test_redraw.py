"""Redrawn models spread as the estimate does, and intervals of their tables cover what a population has."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from builders import schema_of
from commands import good, refused
from scipy import stats

from vertimrf import combine
from vertimrf.errors import MessageError, ModelError
from vertimrf.model.fit import fit
from vertimrf.model.junction_tree import junction_tree
from vertimrf.model.measurement import Measurement
from vertimrf.model.off_tree import fit_off_tree
from vertimrf.model.redraw import Noise
from vertimrf.model.trust import ACROSS
from vertimrf.named_model import Model
from vertimrf.plan.defaults import default_delta
from vertimrf.privacy.events import GaussianEvent
from vertimrf.privacy.ledger import Ledger, LedgerEntry
from vertimrf.server.parts import PartModel
from vertimrf.tables.arrow import read_arrow

SIZES = (2, 3, 4)
PAIRS = ((0, 1), (1, 2))
RECORDS = 4000
# Standard deviations of a Gaussian that are exceeded with a chance of 1e-5, either way.
RARE = 4.42


def population():
    """A chain of three attributes [shape=SIZES]."""
    rng = np.random.default_rng(2)
    first = rng.dirichlet(np.full(3, 4.0), 2) / 2
    return first[:, :, None] * rng.dirichlet(np.full(4, 4.0), 3)


def measured(table, rng, sigma):
    """Noisy pairs of a table of counts."""
    exact = [table.sum(axis=axis) for axis in (2, 0)]
    return [
        Measurement(pair, (None, None), counts + sigma * rng.standard_normal(counts.shape), sigma)
        for pair, counts in zip(PAIRS, exact, strict=True)
    ]


def fitted(measurements):
    return fit(SIZES, measurements, RECORDS, tree=junction_tree(SIZES, PAIRS))


def released(rng, sigma):
    """A model of RECORDS people of the population."""
    measurements = measured(
        rng.multinomial(RECORDS, population().ravel()).reshape(SIZES), rng, sigma
    )
    field = fitted(measurements)
    ledger = Ledger((LedgerEntry(GaussianEvent(sigma), "one", "x", "y"),), default_delta(RECORDS))
    return Model(schema_of(one=SIZES), field, ledger, noise=Noise.of(field, measurements, ()))


# With little noise nearly all of the spread is sampling, with much nearly all is noise.
@pytest.mark.parametrize("sigma, across", [(1.0, False), (60.0, False), (60.0, True)])
def test_the_spread_is_that_of_sampling_and_of_noise_together(sigma, across):
    """The sum of the variances of a pair's cells over 400 redraws, against n p (1 - p) and the noise without its mean, which
    the record count fixes. With covariance C, 2 tr(C²) / 399 is the variance of that sum."""
    rng = np.random.default_rng(1)
    exact = RECORDS * population().sum(axis=0)
    pair = Measurement((0, 1), (None, None), exact, sigma)
    field = fit((3, 4), [pair], RECORDS, tree=junction_tree((3, 4), [(0, 1)]))
    noise = Noise.of(field, *(((), [pair]) if across else ([pair], ())))
    cells = np.array([noise.redrawn(field, (), rng).marginal((0, 1)).ravel() for _ in range(400)])
    p = exact.ravel() / RECORDS
    factor = ACROSS if across else 1.0
    stated = RECORDS * (np.diag(p) - np.outer(p, p))
    stated += (factor * sigma) ** 2 * (np.eye(12) - 1 / 12)
    error = math.sqrt(2 * np.trace(stated @ stated) / 399)
    assert abs(cells.var(axis=0, ddof=1).sum() - np.trace(stated)) < RARE * error
    # On average they are the model.
    off = np.abs(cells.mean(axis=0) - field.marginal((0, 1)).ravel())
    assert (off < (RARE + 0.5) * np.sqrt(np.diag(stated) / 400)).all()


def test_intervals_cover_a_mean_and_a_difference_of_groups():
    """40 models of other people and noise, six draws of each: fewer than 30 intervals cover with a chance of 1e-5."""
    p, levels = population(), np.arange(4)
    groups = p.sum(axis=0)
    means = (groups * levels).sum(axis=1) / groups.sum(axis=1)
    truth = np.array([(groups.sum(axis=0) * levels).sum(), means[2] - means[0]])
    least = stats.binom.ppf(1e-5, 40, 0.95)
    inside = np.zeros(2)
    rng = np.random.default_rng(4)
    for _ in range(40):
        estimates, variances = [], []
        for table in released(rng, 25.0).draws(6, seed=int(rng.integers(1 << 30))):
            y, by = (table[name].to_numpy() for name in ("one2", "one1"))
            some = [y, y[by == 2], y[by == 0]]
            whole, of, less = [(x.mean(), x.var() / len(x)) for x in some]
            estimates.append((whole[0], of[0] - less[0]))
            variances.append((whole[1], of[1] + less[1]))
        low, high = combine(estimates, variances).interval()
        inside += (low <= truth) & (truth <= high)
    assert (inside >= least).all()


def test_a_file_gives_the_draws_of_its_model(tmp_path):
    model = released(np.random.default_rng(5), 20.0)
    model.save(tmp_path / "a.model")
    back = Model.load(tmp_path / "a.model")
    one, other = (list(x.draws(2, rows=50, seed=7)) for x in (model, back))
    assert [table.num_rows for table in one] == [50, 50]
    assert one[0].equals(other[0])
    assert one[1].equals(other[1])
    assert not one[0].equals(one[1])
    assert not one[0].equals(next(model.draws(2, rows=50)))
    assert next(model.draws(2)).num_rows == RECORDS


def test_bins_contrasts_and_off_tree_factors_come_back():
    rng = np.random.default_rng(6)
    codes = rng.integers(0, 4, (3, 20_000))
    codes[2] = np.where(rng.random(20_000) < 0.6, codes[0], codes[2])
    halves = np.array([0, 0, 1, 1])
    table = np.zeros((4, 4))
    np.add.at(table, (codes[0], codes[2]), 1)
    alone = [Measurement((a,), (None,), np.bincount(codes[a]) * 1.0, 9.0) for a in range(3)]
    inside = Measurement((0, 1), (None, halves), np.full((4, 2), 2500.0), 9.0, "", (0,), True)
    outside = Measurement((0, 2), (None, None), table, np.full((4, 4), 9.0))
    field = fit((4, 4, 4), [*alone, inside], 20_000, tree=junction_tree((4, 4, 4), [(0, 1)]))
    field, _ = fit_off_tree(field, [*alone, inside, outside])
    noise = Noise.of(field, [*alone, inside], [outside])
    back = Noise.of_parts(field, noise.parts())
    for one, other in zip(noise.measurements, back.measurements, strict=True):
        for name in ("attributes", "sigma", "contrasts", "completed"):
            assert getattr(one, name) == getattr(other, name)
        assert one.counts.shape == other.counts.shape
    again = {f.attributes for f in back.redrawn(field, (), rng).off_tree}
    assert (0, 2) in again == {f.attributes for f in field.off_tree}


def test_what_gives_no_draws_says_why():
    model = released(np.random.default_rng(8), 20.0)
    for wrong in ({"m": 1}, {"m": 2.5}, {"seed": -1}):
        with pytest.raises(ModelError, match="whole number of at least"):
            model.draws(**wrong)
    with pytest.raises(ModelError, match="no noise to redraw"):
        replace(model, noise=None).draws()
    with pytest.raises(ModelError, match="different people"):
        replace(model, others=(PartModel(("one",), model.field),)).draws()


def test_a_file_whose_noise_does_not_fit_is_refused(tmp_path, monkeypatch):
    model = released(np.random.default_rng(9), 20.0)
    parts = model.noise.parts()
    wrong = [
        {"noise.axes": parts["noise.axes"] + [0, 9, 0, 0]},
        {"noise.axes": parts["noise.axes"] + [0, 0, 1, 0]},
        {"noise": -parts["noise"]},
        {"noise": parts["noise"][:1]},
        {"noise": np.repeat(parts["noise"][:, None], 2, axis=1)},
        {"noise.axes": parts["noise.axes"] - 1, "noise.bins0": np.zeros(2, np.int64)},
    ]
    for change in wrong:
        monkeypatch.setattr(Noise, "parts", lambda _, change=change: parts | change)
        model.save(tmp_path / "a.model")
        with pytest.raises(MessageError, match="malformed"):
            Model.load(tmp_path / "a.model")


def test_the_command_writes_draws_as_one_table(tmp_path):
    saved, out = tmp_path / "a.model", tmp_path / "draws.parquet"
    released(np.random.default_rng(10), 20.0).save(saved)
    good("sample", saved, "--rows 5 --draws 3 --seed 1 --out", out)
    rows = read_arrow(out)
    assert rows["draw"].to_pylist() == [1] * 5 + [2] * 5 + [3] * 5
    assert rows.column_names == ["draw", "one0", "one1", "one2"]
    assert "--where" in refused("sample", saved, "--draws 3 --where one0=1 --out", out)

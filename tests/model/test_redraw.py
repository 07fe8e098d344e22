"""Redrawn models spread as the estimate does, and intervals of their tables cover what a population has."""

import functools
from dataclasses import replace

import numpy as np
import pytest
from builders import named_model, schema_of
from commands import good, refused
from scipy import stats

from vertimrf import Model, combine
from vertimrf.errors import MessageError, ModelError
from vertimrf.model.domain_compression import compression_maps
from vertimrf.model.fit import fit
from vertimrf.model.junction_tree import junction_tree
from vertimrf.model.measurement import Measurement
from vertimrf.model.off_tree import fit_off_tree
from vertimrf.model.redraw import Noise
from vertimrf.model.trend import Cut, as_trends
from vertimrf.model.trust import ACROSS
from vertimrf.plan.binning import finer_bins
from vertimrf.plan.defaults import default_delta
from vertimrf.server.parts import PartModel
from vertimrf.tables.sources import read_arrow

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
    noise = Noise.of(field, measurements, ())
    return named_model(schema_of(one=SIZES), field, sigma, default_delta(RECORDS), noise=noise)


def redrawn_by(noise, field, rng):
    """A model of other people and noise, without combinations that cannot be."""
    return noise.redrawn(field, (), [0] * len(field.sizes), rng)


# With little noise nearly all of the spread is sampling, with much nearly all is noise.
@pytest.mark.slow
@pytest.mark.parametrize("sigma", [1.0, 60.0])
def test_the_spread_is_that_of_sampling_and_of_noise_together(sigma):
    """The sum of the variances of an independent pair's cells over 400 redraws, against n p (1 - p), the noise without its
    mean, which the record count fixes, and the variance of fits to such noise, which follow it in part. Each sum has ten
    degrees of freedom a redraw or more, or is a third of the other, and so a standard error of 2.5 % together."""
    rng, p = np.random.default_rng(1), population().sum(axis=0)
    p = np.outer(p.sum(axis=1), p.sum(axis=0))
    pair = Measurement((0, 1), (None, None), RECORDS * p, sigma)
    again = functools.partial(fit, (3, 4), total=RECORDS, tree=junction_tree((3, 4), [(0, 1)]))
    field = again([pair])
    noise = Noise.of(field, [pair], ())

    redrawn, followed = (
        np.var([made().marginal((0, 1)) for _ in range(400)], axis=0, ddof=1).sum()
        for made in (
            lambda: redrawn_by(noise, field, rng),
            lambda: again(
                [replace(pair, counts=pair.counts + sigma * rng.standard_normal((3, 4)))]
            ),
        )
    )
    stated = RECORDS * (1 - np.square(p).sum()) + 11 * sigma**2
    assert abs(redrawn / (stated + followed) - 1) < RARE * 0.025


@pytest.mark.slow
def test_estimates_across_parties_tell_nothing_of_margins():
    """Those have the noise of both fits to one-way marginals; the variance of 400 of them is off by more than a fifth with a
    chance of 1e-5. Cells have more noise than is stated."""
    exact, rng = RECORDS * population().sum(axis=0), np.random.default_rng(2)
    alone = Measurement((0,), (None,), exact.sum(axis=1), 60.0)
    pair = Measurement((0, 1), (None, None), exact, 20.0)
    field = fit((3, 4), [alone, pair], RECORDS)
    noise = Noise.of(field, [alone], [pair])
    assert noise.measurements[-1].sigma == 20 * ACROSS
    margins = [redrawn_by(noise, field, rng).marginal((0,)) for _ in range(400)]
    stated = (alone.counts * (1 - alone.counts / RECORDS)).sum() + 2 * 60**2 * 2
    assert abs(np.var(margins, axis=0).sum() / stated - 1) < 0.2


@pytest.mark.slow
def test_intervals_cover_a_mean_and_a_difference_of_groups():
    """40 models of other people and noise, six draws of each: fewer than 30 intervals cover with a chance of 1e-5."""
    p, levels = population(), np.arange(4)
    groups = p.sum(axis=0)
    means = (groups * levels).sum(axis=1) / groups.sum(axis=1)
    truth = np.array([(groups.sum(axis=0) * levels).sum(), means[2] - means[0]])
    inside = np.zeros(2)
    rng = np.random.default_rng(4)
    for _ in range(40):
        estimates = []
        for table in released(rng, 25.0).draws(6, seed=int(rng.integers(1 << 30))):
            y, by = (table[name].to_numpy() for name in ("one2", "one1"))
            estimates.append((y.mean(), y[by == 2].mean() - y[by == 0].mean()))
        low, high = combine(estimates, np.zeros((6, 2))).interval()
        inside += (low <= truth) & (truth <= high)
    assert (inside >= stats.binom.ppf(1e-5, 40, 0.95)).all()


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
    inside = Measurement((0, 1), (None, halves), np.full((4, 2), 2500.0), 9.0, "", (0,), True, True)
    outside = Measurement((0, 2), (None, None), table, np.full((4, 4), 9.0))
    field = fit((4, 4, 4), [*alone, inside], 20_000, tree=junction_tree((4, 4, 4), [(0, 1)]))
    field, _ = fit_off_tree(field, [*alone, inside, outside])
    noise = Noise.of(field, [*alone, inside], [outside])
    back = Noise.of_parts(field, noise.parts())
    for one, other in zip(noise.measurements, back.measurements, strict=True):
        for name in ("attributes", "sigma", "contrasts", "completed", "asked"):
            assert getattr(one, name) == getattr(other, name)
        assert one.counts.shape == other.counts.shape
    again = {f.attributes for f in redrawn_by(back, field, rng).off_tree}
    assert (0, 2) in again == {f.attributes for f in field.off_tree}


def test_trends_are_measured_in_halves_and_read_so_again():
    """30 redraws of a correlation of 0.65 spread by 0.042, so that their mean is off by 0.034 with a chance of 1e-5, and by as
    much as a fit that ends early is biased, 0.04. Halves alone leave 0.34."""
    half = (np.arange(16) >= 8).astype(np.int64)
    flat = np.full(16, RECORDS / 16)
    cut = Cut(flat, finer_bins(flat, half, True, False), halved=True)
    quarter = RECORDS * np.arcsin(0.7) / (2 * np.pi)
    pair = Measurement(
        (0, 1), (half, half), quarter * np.array([[1.0, -1], [-1, 1]]), 50.0, "", (0, 1)
    )
    alone = [Measurement((a,), (None,), flat, 5.0) for a in (0, 1)]
    trends = as_trends([*alone, pair], {0: cut, 1: cut}, RECORDS)
    field = fit(
        (16, 16),
        trends,
        RECORDS,
        tree=junction_tree((12, 12), [(0, 1)]),
        classes=compression_maps(trends),
    )
    noise = Noise.of(field, alone, [pair], {0: cut, 1: cut})
    assert [noise.measurements[i].attributes for i in noise.trends] == [(0, 1)]
    back = Noise.of_parts(field, noise.parts())
    assert back.trends == noise.trends
    assert "noise.trends" not in replace(noise, trends=()).parts()
    rng, codes = np.random.default_rng(3), np.arange(16) - 7.5
    found = [
        codes @ redrawn_by(back, field, rng).marginal((0, 1)) @ codes / RECORDS / np.var(codes)
        for _ in range(30)
    ]
    modelled = codes @ field.marginal((0, 1)) @ codes / RECORDS / np.var(codes)
    assert abs(np.mean(found) - modelled) < 0.08
    assert 0.6 < modelled < 0.7


def test_what_gives_no_draws_says_why():
    model = released(np.random.default_rng(8), 20.0)
    for wrong in ({"m": 1}, {"m": 2.5}, {"seed": -1}):
        with pytest.raises(ModelError, match=r"whole number (from|of at least)"):
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
        {"noise.asked": np.array([len(parts["noise"])])},
        {"noise.trends": np.array([len(parts["noise"])])},
        {"noise.trends": np.array([-1])},
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

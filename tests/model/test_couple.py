"""Columns that are missing together: rows have both or none, the counts of each column stay, and so does what goes with it."""

import numpy as np

from vertimrf.model.couple import APART, couple
from vertimrf.model.fit import fit
from vertimrf.model.junction_tree import junction_tree
from vertimrf.model.markov_random_field import Factor
from vertimrf.model.measurement import Measurement
from vertimrf.model.off_tree import fit_off_tree
from vertimrf.model.sample import propose, sample

SIZES = (6, 6, 6, 6)
CHAIN = [(0, 1), (2, 3)]
TOGETHER = Factor((1, 2), np.where((np.arange(6) == 5)[:, None] != (np.arange(6) == 5), APART, 0.0))
RECORDS = 40_000


def people():
    """Two pairs that are alike; the second and the third column are missing (5) together, where the first is 5."""
    rng = np.random.default_rng(0)
    first, last = rng.integers(0, 5, (2, RECORDS))
    away = rng.random(RECORDS) < 0.03
    second, third = (
        np.where(rng.random(RECORDS) < 0.9, x, rng.integers(0, 5, RECORDS)) for x in (first, last)
    )
    codes = np.stack([*np.where(away, 5, [first, second, third]), last])
    return codes.astype(np.uint16)


def model_of(codes):
    """Fitted to exact counts of the two pairs."""
    tables = [np.histogramdd(codes[list(p)].T, [np.arange(7)] * 2)[0] for p in CHAIN]
    measured = [Measurement(p, (None, None), t, 5.0) for p, t in zip(CHAIN, tables, strict=True)]
    return fit(SIZES, measured, float(RECORDS), tree=junction_tree(SIZES, CHAIN)), measured


def test_rows_have_both_missing_or_none_and_columns_keep_their_counts():
    model, measured = model_of(people())
    rows = 20_000
    outside = np.histogramdd(people()[[0, 2]].T, [np.arange(7)] * 2)[0]
    measured.append(Measurement((0, 2), (None, None), outside, 5.0))
    proposed = propose(model.weighed([TOGETHER]), rows, np.random.default_rng(1))
    assert ((proposed[1] == 5) != (proposed[2] == 5)).mean() < 0.001
    fitted = fit_off_tree(model.weighed([TOGETHER]), measured)[0]
    assert (0, 2) in {f.attributes for f in fitted.off_tree}
    for drawn in (model.weighed([TOGETHER]), fitted):
        codes = sample(drawn, rows, np.random.default_rng(1))
        away = codes[1:3] == 5
        assert (away[0] == away[1]).all()
        for a in range(4):
            known = model.marginal((a,)) * rows / RECORDS
            # Less than people would spread.
            assert (np.abs(np.bincount(codes[a], minlength=6) - known) < np.sqrt(known) + 1).all()
    apart = sample(model, rows, np.random.default_rng(1))[1:3] == 5
    assert (apart[0] != apart[1]).mean() > 0.05


def test_what_moves_says_little_of_when_it_is_missing_and_goes_to_similar_rows():
    model, _ = model_of(people())
    plain = propose(model, 1 << 16, np.random.default_rng(2))
    codes = plain.copy()
    couple(codes, model.tree, TOGETHER)
    for a in range(4):
        np.testing.assert_array_equal(np.bincount(codes[a]), np.bincount(plain[a]))
    # The second column is missing where the first is; the third moves.
    np.testing.assert_array_equal(codes[[0, 1, 3]], plain[[0, 1, 3]])
    moved = codes[2] != plain[2]
    given = moved & (codes[2] != 5)
    assert given.sum() > 1000
    # Nine in ten are as the last column; of rows at random, two in ten would be.
    assert (codes[2] == codes[3])[given].mean() > 0.8


def test_other_factors_move_nothing():
    model, _ = model_of(people())
    plain = propose(model, 5000, np.random.default_rng(3))
    for logs in (np.zeros((6, 6)), TOGETHER.logs[:, ::-1] * (np.arange(6) > 0), TOGETHER.logs / 2):
        codes = plain.copy()
        couple(codes, model.tree, Factor((1, 2), np.ascontiguousarray(logs)))
        np.testing.assert_array_equal(codes, plain)


def test_two_estimates_of_one_share_meet_in_the_middle():
    codes = people()
    codes[2, :400] = 5
    model, _ = model_of(codes)
    shares = [model.marginal((a,))[5] / RECORDS for a in (1, 2)]
    assert shares[1] - shares[0] > 0.008
    away = sample(model.weighed([TOGETHER]), 20_000, np.random.default_rng(1))[1] == 5
    # Rows are rounded to one in a cell, and picked.
    assert abs(away.mean() - sum(shares) / 2) < 0.001

"""A table of 81 attributes beside mbi: all 3,240 pair tables counted, all their marginals under a model, and rows of it."""

import time

import numpy as np
import pytest

from benchmarks.speed.problems import CENSUS, census_codes, census_model
from benchmarks.speed.test_models import pairs_of
from vertimrf.kernels.contingency import all_pairs
from vertimrf.model.sample import sample

PAIRS = pairs_of(CENSUS)


def some_of(pairs, count):
    """Numbers of some pairs."""
    return sorted(map(int, np.random.default_rng(2).choice(pairs, count, replace=False)))


def clock(action):
    begin = time.perf_counter()
    return action(), time.perf_counter() - begin


def hold_both(hold, name, mine, theirs):
    hold(f"{name}, s", mine)
    hold(f"{name}: times faster than mbi", theirs / mine)


@pytest.fixture(scope="module")
def model():
    return census_model(1e6)


@pytest.mark.parametrize(
    "records, some", [(100_000, 40), pytest.param(1_000_000, 324, marks=pytest.mark.slow)]
)
def test_all_pair_tables(speed, hold, peer, smoke, records, some):
    """Every pair takes mbi one histogram of all records; a part of them is asked for."""
    records, some = (10_000, 3) if smoke else (records, some)
    codes = census_codes(records)
    asked = some_of(len(PAIRS), some)
    peer.counted(codes[:, :1000], CENSUS, PAIRS[:3])
    tables, seconds = clock(lambda: peer.counted(codes, CENSUS, [PAIRS[i] for i in asked]))
    counted = all_pairs(codes, CENSUS, PAIRS)
    assert all((table == counted[i]).all() for i, table in zip(asked, tables, strict=True))
    mine, theirs = speed(
        lambda: all_pairs(codes, CENSUS, PAIRS),
        reference=seconds / some * len(PAIRS),
        rounds=1,
        rows=records,
        counters=records * len(PAIRS),
    )
    name = f"3,240 pair tables counted from {records:,} rows (mbi: from {some} of them)"
    hold_both(hold, name, mine, theirs)


@pytest.mark.slow
def test_all_pair_marginals(speed, hold, peer, model):
    """Pairs that a clique holds are few, and mbi has them ready; the others take it an elimination each, which it compiles."""
    other = peer.model(model)
    apart = [i for i, pair in enumerate(PAIRS) if model.tree.covering(pair) < 0]
    asked = some_of(apart, 10)
    tables = [peer.marginal(other, PAIRS[i]) for i in asked]
    _, seconds = clock(lambda: [peer.marginal(other, PAIRS[i]) for i in asked])
    cells = sum(CENSUS[a] * CENSUS[b] for a, b in PAIRS)
    mine, theirs = speed(
        lambda: model.marginals(PAIRS),
        reference=seconds / len(asked) * len(apart),
        rounds=1,
        cells=cells,
    )
    name = "3,240 pair marginals of a fitted model (mbi: from 10 of them, compiled before)"
    hold_both(hold, name, mine, theirs)
    marginals = model.marginals(PAIRS)
    differences = [
        float(np.abs(table - marginals[i]).max()) for i, table in zip(asked, tables, strict=True)
    ]
    hold("their largest difference from mbi's probabilities", max(differences) / model.total)


@pytest.mark.slow
def test_rows_of_a_wide_model(speed, hold, peer, smoke, model):
    count = 1000 if smoke else 1_000_000
    other = peer.model(model)
    peer.rows(other, count // 10)
    _, seconds = clock(lambda: peer.rows(other, count))
    mine, theirs = speed(
        lambda: sample(model, count, np.random.default_rng(0)),
        reference=seconds,
        rounds=1,
        rows=count,
    )
    hold_both(hold, f"{count:,} synthetic rows", mine, theirs)

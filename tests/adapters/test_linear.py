"""What the adapters of mbi share, without any peer: partial measurements and structural zeros."""

import numpy as np
import pytest

from vertimrf.adapters.linear import NotOurs, Observation, fitted
from vertimrf.model.structural_zeros import allowing

SIZES = (4, 3, 5, 2, 3)
TOTAL = 1000.0
CLIQUES = [(0, 1), (2, 1), (0, 2), (2, 3), (3, 4), (1,), (1, 0, 2)]


def observed(seed, low, high):
    """Counts that contradict each other by far more than their standard deviations, as nothing joint has these margins."""
    rng = np.random.default_rng(seed)
    out = []
    for clique in CLIQUES:
        cells = int(np.prod([SIZES[a] for a in clique]))
        sigma = 10.0 ** rng.uniform(low, high)
        values = rng.dirichlet(np.full(cells, 0.3)) * TOTAL + sigma * rng.normal(size=cells)
        out.append(Observation(clique, values, sigma, np.ones(cells)))
    return out


@pytest.mark.parametrize("seed", range(8))
def test_structural_zeros_hold_or_the_peer_is_asked(seed):
    rng = np.random.default_rng(seed)
    zeros = [allowing(c, rng.random([SIZES[a] for a in c]) < 0.6) for c in [(1, 0), (2, 3), (4,)]]
    for f in zeros:
        f.logs.flat[0] = 0.0
    satisfied = 0
    for low, high in ((0.8, 1.2), (-1.0, 1.5)):
        try:
            model = fitted(SIZES, observed(seed, low, high), TOTAL, zeros=zeros)
        except NotOurs:
            # Beyond double precision: only where standard deviations are far apart.
            assert low < 0
            continue
        satisfied += 1
        for f in zeros:
            table = model.marginal(f.attributes)
            assert np.isfinite(table).all()
            assert (table[f.logs < 0] == 0).all()
            assert table.sum() == pytest.approx(TOTAL)
    assert satisfied


def test_cells_that_are_left_out_follow_from_the_rest():
    weights = np.array([1.0, 1.0, 1.0, 0.0])
    partial = Observation((0,), np.array([300.0, 200.0, 100.0]), 5.0, weights)
    model = fitted(SIZES, [partial], TOTAL)
    # Within the pull towards the start that the last step leaves.
    assert np.allclose(model.marginal((0,)), [300, 200, 100, 400], atol=5.0)
    # They have no say in how far the fit goes, however many they are.
    many = Observation((0, 2), np.full(4, 50.0), 5.0, (np.arange(20) < 4).astype(float))
    model = fitted(SIZES, [many], TOTAL)
    assert np.allclose(model.marginal((0, 2)).ravel()[:4], 50.0, atol=5.0)
    assert model.marginal((0, 2)).sum() == pytest.approx(TOTAL)


def test_what_does_not_fit_is_said():
    with pytest.raises(NotOurs, match="3 values for 4 cells"):
        fitted(SIZES, [Observation((0,), np.zeros(3), 1.0, np.ones(4))], TOTAL)
    with pytest.raises(NotOurs, match="too far apart"):
        fitted(
            SIZES,
            [Observation((0,), np.full(4, 250.0), s, np.ones(4)) for s in (1e-9, 1.0)],
            TOTAL,
        )

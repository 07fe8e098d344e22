"""Runs whose cross-party marginals are treated as in the paper: correlations survive, and what is no table of bins stays."""

import numpy as np
import pytest

from benchmarks.reproduce.ablations import Treatment
from benchmarks.reproduce.methods import METHODS

# They play whole runs, again and again.
pytestmark = pytest.mark.slow

TREATMENTS = [{"consistency": True}, {"reduction": "hisrec"}, {"reduction": "unisam"}]


def synthesized(codes, split, **options):
    sizes = [int(column.max()) + 1 for column in codes]
    options |= {"message_bytes": 1_000_000}
    return METHODS["count-sketches"].synthesize(codes, sizes, split, 4.0, 1e-5, 0, **options).codes


@pytest.mark.parametrize("options", TREATMENTS)
def test_cross_party_correlation_survives(options):
    rng = np.random.default_rng(0)
    codes = rng.integers(4, size=(3, 8000), dtype=np.uint16)
    codes[2] = np.where(rng.random(8000) < 0.85, codes[0], codes[2])
    made = synthesized(codes, ((0, 1), (2,)), **options)
    # 0.8875 in the truth and 0.25 for independent parties.
    assert np.mean(made[0] == made[2]) > 0.8


def contrast(codes, attributes):
    """Part of records with an even number of ones, less that with an odd one."""
    return 1 - 2 * float((codes[list(attributes)].sum(axis=0) % 2).mean())


@pytest.mark.parametrize("options", TREATMENTS)
def test_parities_stay_what_they_are(options):
    rng = np.random.default_rng(1)
    codes = rng.integers(2, size=(7, 20_000), dtype=np.uint16)
    codes[4] = np.where(rng.random(20_000) < 0.8, codes[0] ^ codes[2], codes[4])
    made = synthesized(codes, ((0, 1, 2, 3), (4, 5, 6)), **options)
    assert contrast(made, (0, 2, 4)) == pytest.approx(contrast(codes, (0, 2, 4)), abs=0.03)
    assert abs(contrast(made, (0, 3, 4))) < 0.03


def test_an_unknown_reduction_is_refused():
    with pytest.raises(ValueError, match="reduction"):
        Treatment(reduction="magic")

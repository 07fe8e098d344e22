"""The central synthesizer behind SmartNoise's interface; needs the extra `smartnoise`."""

import numpy as np
import pandas as pd
import pytest

snsynth = pytest.importorskip("snsynth")

from vertimrf.adapters.smartnoise import VertiMRFSynthesizer  # noqa: E402
from vertimrf.errors import ModelError  # noqa: E402


def test_it_fits_and_samples_as_smartnoise_does():
    rng = np.random.default_rng(0)
    a = rng.integers(0, 3, 4000)
    frame = pd.DataFrame(
        {"a": np.array(["x", "y", "z"])[a], "b": (a + (rng.random(4000) < 0.2)) % 3}
    )
    made = VertiMRFSynthesizer(epsilon=3.0, expected_records=4000)
    with pytest.raises(ModelError, match="not been fitted"):
        made.sample(1)
    assert isinstance(made, snsynth.Synthesizer)
    made.fit(frame, categorical_columns=["a", "b"])
    rows = made.sample(4000)
    assert list(rows.columns) == ["a", "b"]
    real, synthetic = (pd.crosstab(t["a"], t["b"]).to_numpy() for t in (frame, rows))
    assert np.abs(real - synthetic).max() < 150
    assert made.synthesizer.ledger.epsilon <= 3.0
    assert len(made.fit_sample(frame, categorical_columns=["a", "b"])) == 4000

"""The central synthesizer behind SmartNoise's interface; needs the extra `smartnoise`."""

import numpy as np
import pandas as pd
import pytest

snsynth = pytest.importorskip("snsynth")

from snsynth.transform import (  # noqa: E402
    BinTransformer,
    ChainTransformer,
    LabelTransformer,
    TableTransformer,
)

from vertimrf.adapters.smartnoise import ListedTransformer, VertiMRFSynthesizer  # noqa: E402
from vertimrf.errors import ModelError, PlanError  # noqa: E402


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


def frame_of(rows=3000, seed=0):
    rng = np.random.default_rng(seed)
    ward = rng.integers(0, 3, rows)
    return pd.DataFrame(
        {"ward": np.array(["x", "y", "z"])[ward], "pay": 10.0 * ward + rng.normal(0, 3, rows)}
    )


def label_of(made):
    return made.synthesizer.ledger.label


WARDS = ListedTransformer(["x", "y", "z", "none has it"])
BINS = BinTransformer(bins=8, lower=-20, upper=50)


@pytest.mark.parametrize(
    "given, private",
    [
        ({"categorical_columns": ["ward"], "continuous_columns": ["pay"]}, False),
        ({"transformer": {"ward": "LabelTransformer", "pay": BINS}}, False),
        ({"transformer": {"ward": WARDS}, "continuous_columns": ["pay"]}, True),
        ({"transformer": {"ward": WARDS, "pay": BINS}}, True),
        ({"transformer": {"ward": WARDS, "pay": "drop"}}, True),
        ({"transformer": TableTransformer([WARDS, BINS])}, True),
        ({"transformer": TableTransformer([LabelTransformer(nullable=False), BINS])}, False),
        ({"transformer": TableTransformer([ChainTransformer([LabelTransformer()]), BINS])}, False),
    ],
)
def test_what_is_read_from_the_data_without_a_budget_is_not_private(given, private):
    made = VertiMRFSynthesizer(epsilon=3.0, expected_records=3000)
    made.fit(frame_of(), preprocessor_eps=0.5, **given)
    assert label_of(made).private is private
    assert made.synthesizer.model.ledger.private is private
    if not private:
        assert "the schema was inferred from the data" in str(label_of(made))
    # What the transformer spent on bounds is within epsilon, and an entry.
    spent = [e.noise for e in made.synthesizer.ledger.entries if "SmartNoise" in e.released]
    bounded = "continuous_columns" in given
    assert spent == ["SmartNoise's, epsilon 0.5"] * bounded
    assert made.synthesizer.ledger.epsilon <= 3.0
    assert made.epsilon == 3.0
    assert {*made.sample(500)["ward"]} <= {"x", "y", "z", "none has it", None}


def test_a_transformer_fitted_to_public_data_is_public():
    public = pd.DataFrame({"ward": ["x", "y", "z", "w"], "pay": [1.0, 2.0, 3.0, 4.0]})
    table = TableTransformer([LabelTransformer(nullable=False), BINS])
    table.fit(public)
    made = VertiMRFSynthesizer(epsilon=3.0, expected_records=3000)
    made.fit(frame_of(), transformer=table)
    assert label_of(made).private


def test_kinds_of_columns_that_are_inferred_are_not_private():
    made = VertiMRFSynthesizer(epsilon=3.0, expected_records=3000)
    made.fit(frame_of(), transformer={"pay": BINS})
    assert not label_of(made).private


def test_a_record_that_the_transformer_cannot_read_is_left_out_and_refuses_nothing():
    frame = frame_of()
    frame["pay"] = frame["pay"].astype(object)
    frame.loc[5, "ward"], frame.loc[7, "pay"], frame.loc[9, "pay"] = "new", None, "secret"
    made = VertiMRFSynthesizer(epsilon=3.0, expected_records=3000)
    for data in (frame, list(frame.itertuples(index=False, name=None)), frame.to_numpy()):
        names = ["ward", "pay"] if data is frame else [0, 1]
        made.fit(data, transformer=dict(zip(names, [WARDS, BINS], strict=True)))
        assert made.dropped == 3
        assert label_of(made).private


def test_refusals_name_a_python_argument_and_no_cell():
    made = VertiMRFSynthesizer(epsilon=3.0, expected_records=3000)
    with pytest.raises(PlanError, match=r"give preprocessor_eps, or give transformer=\{column"):
        made.fit(frame_of(), transformer={"ward": WARDS}, continuous_columns=["pay"])
    with pytest.raises(PlanError, match="transformer is a int"):
        made.fit(frame_of(), transformer=3)
    few = frame_of(3).astype({"pay": object})
    few.loc[1, "pay"] = "secret"
    with pytest.raises(PlanError, match="cannot be fitted") as error:
        made.fit(few, transformer={"ward": WARDS}, continuous_columns=["pay"], preprocessor_eps=0.1)
    assert "secret" not in str(error.value)
    # One cell that is no number is left out of the search too.
    frame = frame_of().astype({"pay": object})
    frame.loc[3, "pay"] = "secret"
    made.fit(frame, transformer={"ward": WARDS}, continuous_columns=["pay"], preprocessor_eps=1)
    assert made.dropped == 1
    with pytest.raises(PlanError, match="distinct values"):
        ListedTransformer(["a", "a"])
    # A refusal after bounds were paid for says so.
    wide = pd.DataFrame(np.random.default_rng(0).normal(size=(20_000, 9)), columns=[*"abcdefghi"])
    with pytest.raises(PlanError, match=r"Useless.*spent epsilon 0.05 on bounds before this"):
        VertiMRFSynthesizer(0.1, expected_records=200).fit(
            wide, continuous_columns=[*wide.columns], preprocessor_eps=0.05
        )

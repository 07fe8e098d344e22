"""The central synthesizer: what it accepts, that its rows and marginals follow the table, and that its ledger holds."""

import inspect
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from commands import good
from oracles import crossed

from vertimrf import Attribute, Model, PlanOptions, Schema, Synthesizer
from vertimrf.errors import MessageError, ModelError, NoMassError, PlanError, SchemaError
from vertimrf.files import container
from vertimrf.files.atomic import write_bytes
from vertimrf.model.junction_tree import junction_tree
from vertimrf.model.markov_random_field import Factor, MarkovRandomField
from vertimrf.privacy.accountant import epsilon as composed_epsilon
from vertimrf.privacy.events import GaussianEvent

ROWS = 8000
SCHEMA = Schema.of(
    {
        "clinic": [
            Attribute.numeric("age", range(0, 101, 20), integral=True),
            Attribute.categorical("smoker", ["no", "yes"], missing=True),
            Attribute.integer("ward", 4),
        ]
    }
)


@pytest.fixture(scope="module")
def frame():
    """Smokers are rarer with age, wards follow age, and 5 % do not say whether they smoke."""
    rng = np.random.default_rng(0)
    age = rng.integers(0, 100, ROWS)
    smoker = np.where(rng.random(ROWS) < 0.9 - 0.008 * age, "yes", "no").astype(object)
    smoker[rng.random(ROWS) < 0.05] = None
    ward = np.where(rng.random(ROWS) < 0.8, age // 25, rng.integers(0, 4, ROWS))
    return pd.DataFrame({"age": age, "smoker": smoker, "ward": ward})


@pytest.fixture(scope="module")
def fitted(frame):
    return Synthesizer(SCHEMA, planning=PlanOptions(expected_records=ROWS)).fit(frame, epsilon=2.0)


def exact(frame, *columns):
    codes = {
        "age": (frame["age"] // 20).clip(upper=4),  # the last bin holds 100
        "smoker": frame["smoker"].map({"no": 0, "yes": 1}).fillna(2).astype(int),
        "ward": frame["ward"],
    }
    sizes = {"age": 5, "smoker": 3, "ward": 4}
    return crossed([codes[c].to_numpy() for c in columns], [sizes[c] for c in columns])


def test_marginals_and_rows_follow_the_table(frame, fitted):
    # Noise of any cell is below 30 records at this epsilon; ten sigma of a sum over 20 cells.
    for columns in (["age", "smoker"], ["ward", "age"], ["age"]):
        assert np.abs(fitted.marginal(columns) - exact(frame, *columns)).max() < 100
    assert np.allclose(fitted.marginal(["ward", "age"]), fitted.marginal(["age", "ward"]).T)
    assert np.array_equal(fitted.marginal("age"), fitted.marginal(["age"]))
    table = fitted.sample(ROWS, seed=1)
    assert table.column_names == ["age", "smoker", "ward"]
    made = table.to_pandas()
    assert made["age"].between(0, 100).all()
    assert np.abs(exact(made, "age", "smoker") - exact(frame, "age", "smoker")).max() < 120
    assert fitted.sample(ROWS, seed=1).equals(table)
    assert not fitted.sample(ROWS).equals(table)
    assert abs(fitted.sample().num_rows - ROWS) < 300


def test_the_ledger_is_exact_and_meets_the_target(fitted):
    ledger = fitted.ledger
    assert ledger.private
    assert ledger.delta == 1 / ROWS**2
    assert 1.94 < ledger.epsilon <= 2.0
    assert {type(entry.event) for entry in ledger.entries} == {GaussianEvent}
    # The grids of prefixes of a composition differ a little from that of the whole.
    whole = composed_epsilon([entry.event for entry in ledger.entries], ledger.delta).epsilon
    assert ledger.epsilon == pytest.approx(whole, rel=1e-6)


def test_without_a_record_count_a_noisy_one_is_in_the_ledger(frame):
    made = Synthesizer(SCHEMA).fit(frame, epsilon=1.0)
    assert made.ledger.entries[0].released == "record count, to plan with"
    assert made.ledger.delta == 1e-10
    assert made.ledger.epsilon <= 1.0


def test_ids_are_left_out_and_each_counts_once(frame, caplog):
    with_id = frame.assign(person=np.arange(ROWS))
    made = Synthesizer(SCHEMA, id="person", planning=PlanOptions(expected_records=ROWS)).fit(
        with_id, epsilon=1.0
    )
    assert made.schema.names == ("age", "smoker", "ward")
    assert made.dropped.records == 0
    twice = with_id.assign(person=np.arange(ROWS) // 2 * 2 + (np.arange(ROWS) > 1))
    made = Synthesizer(SCHEMA, id="person", planning=PlanOptions(expected_records=ROWS)).fit(
        twice, epsilon=1.0
    )
    assert 0 < made.dropped.records == len(twice) - twice["person"].nunique()
    assert "repeat an id" in made.dropped.reasons[0].sentence
    assert "dropped" not in made.to_json()
    # Without the argument it is a column that the schema does not have.
    Synthesizer(SCHEMA).fit(with_id, epsilon=1.0)
    assert "does not have it: column 'person'" in caplog.text


def test_an_inferred_schema_is_not_private(frame):
    made = Synthesizer().fit(frame, epsilon=1.0)
    assert not made.ledger.private
    assert made.schema.names == ("age", "smoker", "ward")


def test_a_schema_of_several_parties_is_pooled(frame):
    schema = Schema.of({"a": SCHEMA.attributes[:1], "b": SCHEMA.attributes[1:]})
    made = Synthesizer(schema, planning=PlanOptions(expected_records=ROWS)).fit(frame, epsilon=1.0)
    assert {entry.party for entry in made.ledger.entries} == {"holder"}


def test_conditions_hold_and_the_rest_follows_the_conditional(frame, fitted):
    rows = 5000
    made = fitted.sample(rows, given={"smoker": "yes", "age": [10, 30]}, seed=3).to_pandas()
    assert len(made) == rows
    assert set(made["smoker"]) == {"yes"}
    assert made["age"].between(0, 39).all()
    # By the model's own conditional, rounded counts: each of 8 cells of a root clique within one row, others within a few.
    expected = fitted.marginal(["smoker", "age", "ward"])[1, :2]
    shares = exact(made, "age", "ward")[:2]
    assert np.abs(shares - rows * expected / expected.sum()).max() < 5
    probability = fitted.marginal(["smoker", "age"])[1, :2].sum()
    assert fitted.sample(given={"smoker": "yes", "age": [10, 30]}).num_rows == round(probability)


def test_conditions_that_cannot_be_met(fitted):
    with pytest.raises(SchemaError, match="pipe"):
        fitted.sample(1, given={"smoker": "pipe"})
    with pytest.raises(SchemaError, match="no attribute 'smokes'"):
        fitted.sample(1, given={"smokes": "yes"})
    with pytest.raises(SchemaError, match="no value"):
        fitted.sample(1, given={"smoker": []})
    # A model in which nobody of ward 3 smokes, as a file of one may say.
    factors = [Factor((1, 2), np.array([[0, 0, 0, 0], [0, 0, 0, -1e4], [0, 0, 0, 0]]))]
    barred = replace(
        fitted.model, field=MarkovRandomField(junction_tree(SCHEMA.sizes, {(1, 2)}), 100.0, factors)
    )
    assert len(barred.sample(10, given={"ward": 3, "smoker": "no"})) == 10
    with pytest.raises(NoMassError, match="no records with ward = 3 and smoker = 'yes'"):
        barred.sample(10, given={"ward": 3, "smoker": "yes"})
    assert fitted.sample(2, given={"smoker": None}).column("smoker").to_pylist() == [None, None]


def test_saved_and_loaded(fitted, tmp_path):
    fitted.save(tmp_path / "fit.vmrf")
    back = Synthesizer.load(tmp_path / "fit.vmrf")
    assert back.schema == fitted.schema
    assert back.ledger.to_json() == fitted.ledger.to_json()
    assert np.allclose(back.marginal(["age", "ward"]), fitted.marginal(["age", "ward"]), rtol=1e-9)
    named = Model.load(tmp_path / "fit.vmrf")
    assert named.sample(50, seed=1).equals(fitted.sample(50, seed=1))
    assert repr(named).startswith("<Model of 3 attributes, ")
    assert "age, smoker, ward" in named.summary()
    assert "Private (add or remove" in named.summary()
    data = bytearray((tmp_path / "fit.vmrf").read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "bad.vmrf").write_bytes(data)
    with pytest.raises(MessageError, match="altered"):
        Synthesizer.load(tmp_path / "bad.vmrf")
    header, arrays = container.unpack((tmp_path / "fit.vmrf").read_bytes(), "model", "")
    other = {"field": {**header["field"], "sizes": [1, 2, 3]}}
    for changed in ({"schema": {"party": []}}, {"field": {"sizes": [2]}}, other, {"ledger": 1}):
        write_bytes(tmp_path / "bad.vmrf", container.pack("model", {**header, **changed}, arrays))
        with pytest.raises(MessageError, match=r"bad\.vmrf is malformed"):
            Model.load(tmp_path / "bad.vmrf")
    write_bytes(tmp_path / "bad.vmrf", container.pack("party message", header, arrays))
    with pytest.raises(MessageError, match="is a party message, not a model"):
        Model.load(tmp_path / "bad.vmrf")
    described = good(f"inspect {tmp_path}/fit.vmrf")
    assert "A model" in described
    assert "Private (add or remove one record)" in described


def test_parameters_are_what_it_was_made_with(frame):
    made = Synthesizer(SCHEMA, id=None, planning=PlanOptions(tau=1000))
    assert set(made.get_params()) == set(inspect.signature(Synthesizer).parameters)
    # As scikit-learn clones: the parameters as they were given.
    clone = type(made)(**made.get_params(deep=False))
    assert clone.get_params() == made.get_params()
    with pytest.raises(ModelError, match="has not been fitted"):
        clone.sample(1)
    with pytest.raises(PlanError, match="epsilon"):
        made.fit(frame, epsilon=0.0)


@pytest.mark.parametrize(
    "option, value, said",
    [
        ("keys", 100, "keys has no meaning"),
        ("message_bytes", 10_000, "message_bytes (--message-mb) has no meaning"),
        ("population", "outer", "population (--population) has no meaning"),
        ("collusion_epsilon", 30.0, "collusion_epsilon (--collusion-epsilon) has no meaning"),
    ],
)
def test_options_of_several_parties_are_refused_by_the_names_that_they_have(option, value, said):
    with pytest.raises(PlanError) as error:
        Synthesizer(planning=PlanOptions(**{option: value}))
    assert said in str(error.value)

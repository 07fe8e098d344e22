"""Impossible combinations through whole runs: no synthetic row has one, whoever holds the columns; tables that do are refused."""

import re
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from builders import dealt, schema_of
from commands import good, refused
from planning import plan_with

from tests.roles import messages_of, run_server
from vertimrf import (
    Attribute,
    Impossible,
    Model,
    Party,
    PlanOptions,
    Schema,
    Secret,
    Synthesizer,
    evaluate,
)
from vertimrf.errors import ModelError, NoMassError
from vertimrf.evaluation import EvaluationOptions
from vertimrf.model.measurement import Measurement
from vertimrf.privacy.noise import FixedNoise
from vertimrf.server.cells import contradicted
from vertimrf.tables.impossible import possible
from vertimrf.trial import run_protocol

RECORDS = 3000
COMBINATIONS = (
    Impossible.of(age={"below": 15}, married=["yes", "widowed"]),
    Impossible.of(cancelled="yes", left={"missing": False}),
    Impossible.of(cancelled="no", left="missing"),
    Impossible.of(age={"below": 15}, job="none", pupil="no"),
    Impossible.of(pupil="yes", age={"from": 60}),
)


def schema(impossible=COMBINATIONS):
    return Schema.of(
        {
            "one": [
                Attribute.numeric("age", range(0, 91, 5), integral=True),
                Attribute.categorical("cancelled", ["no", "yes"]),
                Attribute.categorical("pupil", ["no", "yes"]),
            ],
            "two": [
                Attribute.categorical("married", ["no", "yes", "widowed"]),
                Attribute.numeric("left", range(0, 25, 4), integral=True, missing=True),
                Attribute.categorical("job", ["none", "a", "b"]),
            ],
        },
        impossible=impossible,
    )


# A plan of count sketches for a schema.
planned = partial(
    plan_with, expected_records=RECORDS, encoder="count-sketch", message_bytes=300_000
)


def real(seed=0, records=RECORDS):
    """Records of which none is impossible."""
    rng = np.random.default_rng(seed)
    age, cancelled = rng.integers(0, 91, records), rng.random(records) < 0.1
    pupil = (age < 15) | ((age < 25) & (rng.random(records) < 0.7))
    return pa.table(
        {
            "id": np.arange(records),
            "age": age,
            "cancelled": np.where(cancelled, "yes", "no"),
            "pupil": np.where(pupil, "yes", "no"),
            "married": np.where(age < 15, "no", rng.choice(["no", "yes", "widowed"], records)),
            "left": pa.array(rng.integers(0, 24, records), mask=cancelled),
            "job": np.where(pupil, "none", rng.choice(["none", "a", "b"], records)),
        }
    )


def encoded(table):
    from vertimrf.tables.table import encode_columns

    return encode_columns(table, schema().attributes, "test")


def broken(codes):
    return [int((~possible(codes, [combination])).sum()) for combination in schema().combinations]


def by_hand(table):
    """As :func:`broken`, from the values themselves."""
    rows = table.to_pylist()
    return [
        sum(row["age"] < 15 and row["married"] != "no" for row in rows),
        sum(row["cancelled"] == "yes" and row["left"] is not None for row in rows),
        sum(row["cancelled"] == "no" and row["left"] is None for row in rows),
        sum(row["age"] < 15 and row["job"] == "none" and row["pupil"] == "no" for row in rows),
        sum(row["pupil"] == "yes" and row["age"] >= 60 for row in rows),
    ]


@pytest.mark.parametrize(
    "encoder, options",
    [
        ("count-sketch", {}),
        ("count-sketch", {"tau": 150}),
        ("scheduled-pairs", {}),
        ("scheduled-pairs", {"tau": 150}),
        ("scheduled-pairs", {"tau": 2000}),
        ("count-sketch", {"shares": (0.05, 0.95, 0.0)}),
        ("count-sketch", {"local_models": False}),
        ("grr", {}),
        ("published", {"claim_as_published": True, "keys": 100}),
    ],
)
def test_no_row_of_a_run_is_impossible(encoder, options):
    """Little budget, so that without the schema's word rows would be: see the test below."""
    table = real()
    plan = planned(schema(), epsilon=0.3, encoder=encoder, **{"tau": 20_000, **options})
    trial = run_protocol(plan, dealt(plan.schema, encoded(table)))
    result = trial.result
    assert result.codes.shape[1] > RECORDS / 2
    assert broken(result.codes) == [0] * 5
    assert by_hand(result.table) == [0] * 5
    for combination in plan.schema.combinations:
        marginal = result.model.marginal([place for place, _ in combination])
        assert not marginal[np.ix_(*(list(codes) for _, codes in combination))].any()
    assert all(
        result.model.tree.covering([place for place, _ in ruled_out]) >= 0
        for ruled_out in plan.schema.combinations
    )


def test_without_the_schemas_word_noise_makes_impossible_rows():
    plan = planned(schema(()), epsilon=0.3, tau=20_000)
    trial = run_protocol(plan, dealt(plan.schema, encoded(real())))
    assert sum(broken(trial.result.codes)) > 0
    assert broken(trial.result.codes) == by_hand(trial.result.table)


def test_what_many_records_contradict_is_doubted():
    """Across parties nobody can check; the server's measurements can."""
    stated = replace(
        schema_of(one={"sex": 2, "a": 5}, two={"x": 2}),
        impossible=(Impossible.of(sex=0, x=0), Impossible.of(sex=0, a=[0, 1], x=1)),
    )
    rng = np.random.default_rng(0)
    sex = rng.integers(0, 2, RECORDS)
    codes = np.stack([sex, rng.integers(2, 5, RECORDS), sex])
    plan = planned(stated, epsilon=5.0)
    result = run_protocol(plan, dealt(stated, codes)).result
    assert [
        int((~possible(result.codes, [combination])).sum()) for combination in stated.combinations
    ] == [0, 0]
    # The model cannot have the dependence that the impossible combinations rule out, and says so too.
    assert all("depend on" in lost or "known relation" in lost for lost in result.warnings[1:])
    # Half of the records: 1,500 with a standard deviation of 27, and the sketches' error of that order.
    match = re.fullmatch(
        r"About ([\d,]+) records \(standard error \d+\) seem to contradict the schema's impossible combination 1 "
        r"\(sex = 0 and x = 0\)\. No synthetic row has it; check whether it is true\.",
        result.warnings[0],
    )
    assert match is not None
    assert abs(int(match[1].replace(",", "")) - 1500) < 300


def test_bins_that_lie_partly_in_a_combination_raise_no_doubt():
    stated = replace(
        schema_of(one={"a": 4}, two={"x": 2}), impossible=(Impossible.of(a=[0, 1, 2], x=0),)
    )
    counts = np.array([[400.0, 0.0], [300.0, 0.0], [0.0, 300.0]])
    whole = Measurement((0, 1), (np.array([0, 1, 1, 2]), None), counts, 1.0)
    cut = Measurement((0, 1), (np.array([0, 1, 2, 2]), None), counts, 1.0)
    assert "About 700 records (standard error 1)" in contradicted(stated, [whole], 1000.0)[0]
    assert "About 700 records (standard error 1)" in contradicted(stated, [cut], 1000.0)[0]
    crossed = Measurement(
        (0, 1), (np.array([1, 1, 0, 1]), None), np.array([[0.0, 0.0], [700.0, 300.0]]), 1.0
    )
    assert contradicted(stated, [crossed], 1000.0) == ()
    assert (
        contradicted(
            stated,
            [Measurement((0, 1), (None, None), np.array([[3.0, 0]] * 3 + [[0, 0]]), 1.0)],
            1000.0,
        )
        == ()
    )


def test_where_no_model_fits_the_doubt_is_the_error(monkeypatch):
    def beyond(*_, **__):
        raise ModelError("The model has left the range.")

    stated, true = (
        replace(schema_of(one={"sex": 2}, two={"x": 2}), impossible=(Impossible.of(sex=0, x=x),))
        for x in (0, 1)
    )
    sex = np.random.default_rng(0).integers(0, 2, RECORDS)
    plan = planned(stated, epsilon=5.0)
    monkeypatch.setattr("vertimrf.server.server.combine_graphs", beyond)
    with pytest.raises(
        ModelError,
        match=r"No model fits the messages of 'one', 'two'. They contradict the schema. About .* impossible combination 1",
    ):
        run_protocol(plan, dealt(stated, np.stack([sex, sex])))
    plan = planned(true, epsilon=5.0)
    with pytest.raises(ModelError, match="left the range"):
        run_protocol(plan, dealt(true, np.stack([sex, sex])))


def test_combinations_that_need_more_than_tau_together_have_it():
    """A ring of pairs: each fits into tau, what holds all of them does not."""
    ring = tuple(Impossible.of(**{f"a{i}": 0, f"a{(i + 1) % 4}": 0}) for i in range(4))
    linked = replace(schema_of(one={"a0": 6, "a1": 6}, two={"a2": 6, "a3": 6}), impossible=ring)
    plan = planned(linked, expected_records=500, tau=36, message_bytes=100_000)
    codes = np.random.default_rng(0).integers(1, 6, (4, 500))
    result = run_server(plan, messages_of(plan, dealt(linked, codes)))
    assert possible(result.codes, linked.combinations).all()
    assert any(
        "impossible combinations alone need cliques of 216 cells, more than tau = 36" in w
        for w in result.warnings
    )


def test_one_holder_keeps_them_too(tmp_path):
    table = real()
    made = Synthesizer(
        schema(), id="id", planning=PlanOptions(expected_records=RECORDS, tau=2000)
    ).fit(table, epsilon=0.2)
    assert by_hand(made.sample(20_000)) == [0] * 5
    assert not made.marginal(["age", "married"])[:3, 1:].any()
    assert not made.marginal(["married", "age"])[1:, :3].any()
    assert not made.marginal(["cancelled", "left", "age"])[1, :6].any()
    made.save(tmp_path / "a.model")
    model = Model.load(tmp_path / "a.model")
    assert model.schema == made.schema
    rows = model.sample(2000, given={"cancelled": "yes", "age": [3, 40]}, seed=1)
    assert by_hand(rows) == [0] * 5
    assert rows["left"].null_count == 2000
    with pytest.raises(NoMassError) as caught:
        model.sample(10, given={"age": 10, "married": "yes"})
    assert str(caught.value) == (
        "No record has age = 10 and married = 'yes': the schema rules it out by impossible combination 1 (age below 15 and "
        "married = 'yes' or 'widowed')."
    )
    # What two of them imply: whoever is under 15 without a job is a pupil.
    with pytest.raises(NoMassError, match="by impossible combination 4"):
        model.sample(10, given={"age": 3, "job": "none", "pupil": "no"})


def test_records_that_have_one_are_dropped():
    table = real().to_pandas()
    table.loc[[4, 7], "pupil"] = "yes"
    table.loc[[4, 7], "age"] = 70
    plan = planned(schema(), message_bytes=100_000)
    party = Party(plan, "one", Secret.new())
    words = "2 records (the first is row 5) have what the schema calls impossible: age from 60 and pupil = 'yes'; correct"
    read = party.encode(table[["id", "age", "cancelled", "pupil"]], "id")
    assert read.records == RECORDS - 2
    assert [reason.sentence for reason in read.dropped.reasons] == [
        f"The table: {words} the records, or leave the combination out of the schema."
    ]
    # Also where a table was encoded without the plan: what is released is that of the table without them.
    one, _ = dealt(plan.schema, encoded(pa.Table.from_pandas(table)))
    fitting = one.only(~np.isin(np.arange(RECORDS), [4, 7]))
    own = len(plan.schema.part("one"))
    assert (fitting.codes[:own] == read.codes[:own]).all()
    released = [
        Party(plan, "one", Secret(bytes(32)), FixedNoise(7)).run(frame).to_bytes(plan)
        for frame in (one, fitting)
    ]
    assert released[0] == released[1]
    made = Synthesizer(schema(), id="id", planning=PlanOptions(expected_records=RECORDS)).fit(
        table, epsilon=1.0
    )
    assert made.dropped.records == 2


def test_evaluation_counts_them():
    table = real(1, 500)
    synthetic = table.drop(["id"]).to_pandas()
    synthetic.loc[:9, "age"] = 3
    synthetic.loc[:9, "married"] = "widowed"
    synthetic.loc[:9, ["pupil", "job"]] = ["yes", "none"]
    out = evaluate([table], pa.Table.from_pandas(synthetic), "id", schema())
    assert [line["real"] for line in out["impossible"]] == [0] * 5
    assert [line["synthetic"] for line in out["impossible"]] == [10, 0, 0, 0, 0]
    assert out["impossible"][0]["combination"] == "age below 15 and married = 'yes' or 'widowed'"
    theirs = table.select(["id", "age", "cancelled", "pupil"])
    figures = evaluate(
        [theirs], pa.Table.from_pandas(synthetic), "id", schema(), EvaluationOptions(party="one")
    )
    assert [line["combination"] for line in figures["impossible"]] == [
        "age from 60 and pupil = 'yes'"
    ]
    assert "impossible" not in evaluate([table], pa.Table.from_pandas(synthetic), "id", schema(()))


@pytest.fixture
def folder(tmp_path):
    """The parties' tables, and their parts of the schema."""
    table = real().to_pandas()
    table[["id", "age", "cancelled", "pupil"]].to_csv(tmp_path / "one.csv", index=False)
    table[["id", "married", "left", "job"]].to_parquet(tmp_path / "two.parquet", index=False)
    whole = schema()
    for party, numbers in {"one": [4], "two": []}.items():
        part = Schema.of({party: whole.part(party)}, impossible=[COMBINATIONS[n] for n in numbers])
        part.save(tmp_path / f"{party}.toml")
    return tmp_path


def test_from_parts_of_a_schema_to_rows_on_a_condition(folder):
    good(f"schema merge {folder}/one.toml {folder}/two.toml --out {folder}/schema.toml")
    assert Schema.load(folder / "schema.toml").impossible == COMBINATIONS[4:]
    # What spans parties is written into the merged file.
    text = (folder / "schema.toml").read_text()
    (folder / "schema.toml").write_text(
        '[[impossible]]\nage = {below = 17}\nmarried = ["yes", "widowed"]\n\n' + text
    )
    arguments = f"--schema {folder}/schema.toml --epsilon 1 --expected-records {RECORDS} --encoder count-sketch"
    said = good(f"plan {arguments}", f"--out {folder}/plan.json")
    combination = "age below 17 and married = 'yes' or 'widowed'"
    assert f"impossible, and so in no row: {combination}; age from 60 and" in said
    assert "Note: Impossible combination 1" in said
    assert "the bin from 15 to 20 of 'age' lies only partly within it" in said
    assert "impossible: age from 60" in good(f"inspect {folder}/schema.toml")
    one, two = folder / "one.csv", folder / "two.parquet"
    files = f"--out {folder}/out.csv --model {folder}/a.model --seed 1"
    good(f"synthesize {one} {two} --id id", arguments, files)
    made = f"--synthetic {folder}/out.csv --id id --schema {folder}/schema.toml"
    compared = good(f"evaluate --real {one} --real {two}", made)
    assert f"Impossible, {combination}: 0 synthetic records, 0 real ones" in compared
    where = f"sample {folder}/a.model --rows 50 --out {folder}/some.csv"
    good(where, "--where age=12")
    assert (folder / "some.csv").read_text().count('"no"') >= 50
    none = refused(where, "--where age=12 --where married=yes")
    assert f"the schema rules it out by impossible combination 1 ({combination})." in none

"""Likely rules: each kind is found where every record keeps it, and not where one does not or chance would do."""

import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import good

from vertimrf import Attribute, Schema, Synthesizer
from vertimrf.tables.alike import Alike
from vertimrf.tables.infer import draft_schema
from vertimrf.tables.offers import taken_over

N = 3000


def drawn():
    """A table of all kinds of rules."""
    rng = np.random.default_rng(1)
    year = rng.integers(1990, 1995, N)
    pay = np.where(rng.random(N) < 0.3, 0.0, rng.lognormal(3, 1, N).round(2))
    size = rng.integers(1, 5000, N)
    group = rng.integers(0, 3, N)
    town = rng.integers(0, 12, N)
    low = rng.integers(0, 100, N)
    test = np.where(year == 1992, np.nan, rng.normal(50, 10, N).round(1))
    return {
        "year": year,
        "y93": (year == 1993).astype(int),
        "pay": pay,
        "idle": (pay == 0).astype(int),
        "busy": 1 - (pay == 0).astype(int),
        "size": size,
        "lsize": np.log(size).round(6),
        "lsizesq": np.square(np.log(size).round(6)),
        "again": size,
        "grams": size * 1000,
        "large": (size >= 4000).astype(int),
        "a": (group == 0).astype(int),
        "b": (group == 1).astype(int),
        "c": (group == 2).astype(int),
        "town": np.array([f"t{i}" for i in range(12)])[town],
        "state": np.array(["n", "e", "s", "w"])[town // 3],
        "low": low,
        "high": low + rng.integers(0, 90, N),
        "test": test,
        "retest": np.where(np.isnan(test), np.nan, rng.normal(50, 10, N).round(1)),
    }


EQUATIONS = {
    "y93 = year == 1993",
    "idle = pay == 0",
    "busy = 1 - idle",
    "again = size",
    "grams = 1000 * size",
    "large = size >= 4000",
    "lsize = log(size)",
    "lsizesq = lsize * lsize",
}


def table_of(columns):
    return pa.table({name: pa.array(v, from_pandas=True) for name, v in columns.items()})


@pytest.fixture(scope="module")
def draft():
    return draft_schema(table_of(drawn()))


def test_every_kind_of_rule_is_found(draft):
    told = {str(rule) for offer in draft.likely for rule in offer.rules}
    one_of = {text for text in told if text.count(" - ") == 2}
    assert told - one_of - {"low <= high"} == EQUATIONS
    assert "low <= high" in told
    (dummies,) = one_of
    assert set(dummies.replace("=", " ").replace("-", " ").split()) == {"a", "b", "c", "1"}
    found = {offer.column: offer.found for offer in draft.likely}
    assert found["state"] == "has one value for each value of 'town'"
    assert found["retest"] == "is missing exactly if 'year' has certain values"
    assert found["test"] == "is missing exactly if 'retest' is"


@pytest.mark.parametrize(
    "column", ["y93", "busy", "again", "grams", "large", "lsize", "state", "low"]
)
def test_one_record_that_breaks_a_rule_is_enough(draft, column):
    columns = drawn()
    # No record that is compared first.
    values, row = columns[column].copy(), N // 2 + 40
    # Another value that the column has.
    values[row] = next(value for value in np.sort(values)[::-1] if value != values[row])
    if column == "low":
        columns["high"][row] = 0
    broken = draft_schema(table_of(columns | {column: values}))
    target = "high" if column == "low" else column
    before = [o for o in draft.likely if o.column == target]
    after = [o for o in broken.likely if o.column == target]
    assert before
    assert {o.found for o in before} - {o.found for o in after}


def test_columns_that_are_independent_give_no_rules():
    rng = np.random.default_rng(2)
    columns = {f"whole{i}": rng.integers(0, 4 + i, N) for i in range(6)}
    columns |= {f"flag{i}": (rng.random(N) < 0.002 * 4**i).astype(int) for i in range(5)}
    columns |= {f"real{i}": rng.lognormal(0, 1, N).round(2 + i) for i in range(5)}
    columns |= {f"text{i}": rng.choice(["x", "y", "z"], N) for i in range(3)}
    assert draft_schema(table_of(columns)).likely == ()


def test_constants_and_infinite_numbers_follow_from_no_column():
    """Warnings would be errors: nothing is divided by a width of zero, and no infinite numbers are subtracted."""
    one = np.random.default_rng(5).normal(0, 50, 500).round(2)
    one[0] = np.inf
    numbers = {"x": one, "y": one + 3, "z": np.zeros(500), "w": np.zeros(500)}
    attributes = [Attribute.numeric(name, [-500, 0, 500]) for name in numbers]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not [*Alike.of(numbers, attributes, 500).lines()]


def test_values_that_hardly_repeat_decide_nothing():
    """Of 200 records ten have a value that another has too, and agree with it: by chance one in a thousand tables does."""
    code = np.append(np.arange(190), np.arange(10))
    flag = np.random.default_rng(3).choice(["x", "y"], 200)[code]
    columns = {"code": np.array([f"c{i}" for i in range(190)])[code], "flag": flag}
    assert draft_schema(table_of(columns)).likely == ()


def test_rules_that_are_taken_over_compute_their_columns(draft):
    schema = draft.with_rules()
    assert set(map(str, schema.rules)) >= EQUATIONS
    assert not {"y93", "busy", "lsizesq"} & set(schema.names)
    assert not schema.public
    assert Schema.from_json(schema.to_json()) == schema
    # What goes with no rule before it is left out.
    again, taken = taken_over(draft.schema, [*draft.likely, *draft.likely[::-1]])
    assert again == schema
    computed = [rule.name for rule in again.equations]
    assert len(computed) == len(set(computed))
    assert len(taken) > len(EQUATIONS)


def test_rows_keep_the_rules_that_are_taken_over(draft):
    table = table_of(drawn())
    rows = Synthesizer(draft.with_rules()).fit(table, epsilon=1.0).sample(2000, seed=0).to_pandas()
    assert (rows["y93"] == (rows["year"] == 1993)).all()
    assert (rows["busy"] == (rows["pay"] != 0)).all()
    assert rows["busy"].nunique() == 2
    np.testing.assert_allclose(rows["lsizesq"], np.log(rows["size"].astype(float)) ** 2)
    assert (rows["grams"] == 1000 * rows["again"]).all()
    assert (rows["a"] + rows["b"] + rows["c"] == 1).all()
    assert rows[["a", "b", "c"]].isin([0, 1]).all().all()
    assert (rows["low"] <= rows["high"]).all()
    assert (rows.groupby("town")["state"].nunique() == 1).all()
    assert (rows["test"].isna() == (rows["year"] == 1992)).all()
    assert (rows["test"].isna() == rows["retest"].isna()).all()


def test_the_command_writes_likely_rules_where_it_is_asked_to(tmp_path):
    pq.write_table(table_of(drawn()), tmp_path / "t.parquet")
    said = good(f"schema draft {tmp_path}/t.parquet --out {tmp_path}/plain.toml")
    assert 'write rules = ["busy = 1 - idle"]' in said
    good(f"schema draft {tmp_path}/t.parquet --rules --out {tmp_path}/ruled.toml")
    plain, ruled = (Schema.load(tmp_path / f"{name}.toml") for name in ("plain", "ruled"))
    assert not plain.rules
    assert set(map(str, ruled.rules)) > EQUATIONS
    (north,) = (one for one in ruled.impossible if one.conditions[0].values == ("n",))
    assert set(north.conditions[1].values) == {f"t{i}" for i in range(3, 12)}

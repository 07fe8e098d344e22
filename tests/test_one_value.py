"""Attributes of one value: nothing is measured, sketched or paid for them, and rows have them all the same."""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from builders import dealt, schema_of
from commands import good
from planning import plan_with

from tests import roles
from tests.roles import run_server
from vertimrf import Attribute, Message, Plan, PlanOptions, Schema, Synthesizer, evaluate
from vertimrf.errors import PlanError
from vertimrf.kernels.contingency import all_pairs, pair_tables
from vertimrf.plan.summary import summary
from vertimrf.releases.nothing import NOTHING

ENCODERS = ["scheduled-pairs", "count-sketch", "grr", "published"]


def planned(schema, encoder, epsilon=2.0):
    return plan_with(
        schema,
        epsilon=epsilon,
        expected_records=2000,
        nonce="one value",
        encoder=encoder,
        message_bytes=200_000,
        claim_as_published=encoder == "published",
    )


def messages_of(plan, codes):
    made = roles.messages_of(plan, dealt(plan.schema, codes))
    return [Message.from_bytes(message.to_bytes(plan), plan) for message in made]


@pytest.mark.parametrize("encoder", ENCODERS)
def test_a_plan_spends_nothing_on_them(encoder):
    """The plan is the one without them, up to the attributes' positions: noise, groups, keys."""
    bare = planned(schema_of(one={"a": 3, "b": 2}, two={"x": 4, "y": 2}), encoder)
    padded = planned(
        schema_of(one={"k": 1, "a": 3, "b": 2}, two={"x": 4, "l": 1, "y": 2}, three={"m": 1}),
        encoder,
    )
    assert padded.count_sigma == bare.count_sigma
    assert padded.local[:2] == bare.local
    assert [group.bins for group in padded.groups] == [group.bins for group in bare.groups]
    assert {a for group in padded.groups for a in group.attributes} == {1, 2, 3, 5}
    assert padded.sketch == bare.sketch
    assert padded.groups_of(2) == ()
    assert padded.message_size(2) == 0
    assert [entry.event for entry in padded.entries()] == [entry.event for entry in bare.entries()]
    assert "three: 1 attribute; none varies; sketches 0.0 MB" in summary(padded)


@pytest.mark.parametrize("encoder", ENCODERS)
def test_a_run_gives_them_back(encoder):
    schema = schema_of(none={"k": 1}, one={"a": 3, "l": 1}, two={"m": 1, "x": 2})
    rng = np.random.default_rng(3)
    codes = np.zeros((5, 2000), np.int64)
    codes[1] = rng.integers(0, 3, 2000)
    codes[4] = codes[1] == 2
    plan = planned(schema, encoder, epsilon=20.0)
    messages = messages_of(plan, codes)
    assert [len(message.marginals) for message in messages] == [0, 1, 1]
    assert messages[0].count is not None
    result = run_server(plan, messages, seed=1)
    assert result.codes.shape[0] == 5
    assert not result.codes[[0, 2, 3]].any()
    assert result.table.column_names == ["k", "a", "l", "m", "x"]
    both = result.model.marginal((1, 4))
    assert both.shape == (3, 2)
    # Without noise a third of the records lie in this cell, and none beside it.
    assert both[2, 1] > both[2, 0]


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("parties", [{"one": {"a": 1}, "two": {"x": 1, "y": 1}}, {"one": {"a": 1}}])
def test_where_nothing_varies_only_records_are_counted(encoder, parties):
    schema = schema_of(**parties)
    plan = planned(schema, encoder)
    assert plan.sketch == NOTHING
    assert plan.groups == ()
    assert [entry.released for entry in plan.entries()] == ["record count"]
    assert plan.ledger().epsilon == pytest.approx(2.0, rel=1e-3)
    result = run_server(plan, messages_of(plan, np.zeros((len(schema.names), 2000), np.int64)))
    assert not result.codes.any()
    # Noise of a whole budget on one count: a few records, and 2000 is off by less than ten standard deviations.
    assert abs(result.codes.shape[1] - 2000) <= 10 * plan.count_sigma + 1


def test_one_varying_party_has_the_whole_budget():
    several = planned(schema_of(one={"a": 3, "b": 4}, two={"x": 1}), "count-sketch")
    alone = planned(schema_of(one={"a": 3, "b": 4}), "count-sketch")
    assert several.sketch == NOTHING
    assert several.local[0] == alone.local[0]


@pytest.mark.parametrize("size", [1, 4])
def test_a_table_of_a_single_attribute(size):
    schema = schema_of(one={"a": size})
    table = pa.table({"a": np.arange(1000) % size})
    made = Synthesizer(schema, planning=PlanOptions(expected_records=1000)).fit(table, epsilon=5.0)
    assert made.sample(100).column_names == ["a"]
    assert made.marginal("a").shape == (size,)


def test_noise_may_not_be_left_out_of_a_plan():
    """A local model without noise is for parties of which nothing is measured, and no others."""
    plan = planned(schema_of(one={"a": 3, "b": 4}, two={"x": 2}), "count-sketch")
    edited = plan.to_json()
    edited["local"][0] |= {"one_way_sigma": 0.0, "units": 0, "score_sigma": 0.0}
    with pytest.raises(PlanError, match="gives party 'one' one-way marginals with a noise of 0"):
        Plan.from_json(edited)
    edited = plan.to_json()
    edited["local"][0] |= {"one_way_sigma": 0.0}
    with pytest.raises(PlanError, match="noise must be finite and above 0"):
        Plan.from_json(edited)


def test_evaluation_has_no_line_for_them():
    schema = Schema.of(
        {
            "one": [Attribute.categorical("k", ["only"]), Attribute.integer("a", 3)],
            "two": [Attribute.integer("x", 2), Attribute.categorical("l", ["one"])],
        }
    )
    rng = np.random.default_rng(0)
    values = {
        "k": ["only"] * 50,
        "a": rng.integers(0, 3, 50),
        "x": rng.integers(0, 2, 50),
        "l": ["one"] * 50,
    }
    real = pa.table({"id": np.arange(50), **values})
    out = evaluate([real], pa.table(values), "id", schema)
    assert [line["columns"] for line in out["columns"]] in ([["a"], ["x"]], [["x"], ["a"]])
    assert [line["columns"] for line in out["pairs"]] == [["a", "x"]]
    assert list(out["tvd"]) == ["2"]
    assert out["tvd_across_parties"] == {"2": 0.0}
    one = Schema.of({"one": [Attribute.categorical("k", ["only"])]})
    nothing = evaluate([real.select(["id", "k"])], pa.table({"k": values["k"]}), "id", one)
    assert (nothing["tvd"], nothing["columns"], nothing["pairs"]) == ({}, [], [])


def test_pair_tables_are_all_pairs(monkeypatch):
    rng = np.random.default_rng(2)
    sizes = (3, 5, 2, 7)
    codes = np.stack([rng.integers(0, size, 400) for size in sizes]).astype(np.uint16)
    pairs = [(0, 1), (2, 1), (0, 3), (3, 2), (1, 3)]
    whole = all_pairs(codes, sizes, pairs)
    monkeypatch.setattr("vertimrf.kernels.contingency.MAX_CELLS", 16)
    for table, expected in zip(pair_tables(codes, sizes, pairs), whole, strict=True):
        np.testing.assert_array_equal(table, expected)


def test_command_line_with_a_constant_column(tmp_path):
    ids, out = pa.array(range(300)), tmp_path / "o.csv"
    for name, columns in {
        "one": {"id": ids, "a": np.arange(300) % 3, "k": ["same"] * 300},
        "two": {"id": ids, "c": [7] * 300},
    }.items():
        pa.csv.write_csv(pa.table(columns), tmp_path / f"{name}.csv")
    tables = f"{tmp_path}/one.csv {tmp_path}/two.csv --id id"
    good(f"synthesize {tables} --epsilon 5 --encoder count-sketch --out {out}")
    head, *rows = out.read_text().splitlines()
    assert head == '"a","k","c"'
    assert {row.split(",", 1)[1] for row in rows} == {'"same",7'}

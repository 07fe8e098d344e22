"""Rules through whole runs: every row keeps them, whoever holds the columns, and nothing else moves."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from builders import dealt, temporal
from planning import plan_with
from scipy import stats

from vertimrf import Attribute, Model, OpenSchema, Schema, Synthesizer
from vertimrf.errors import SchemaError
from vertimrf.party.check import check_table
from vertimrf.plan.rules import Order
from vertimrf.server.rows import decode_pieces, decode_rows
from vertimrf.tables.table import encode_columns
from vertimrf.trial import run_protocol

RECORDS = 3000
DAYS = ["2024-01-01", "2024-02-01", "2024-03-01", "2024-04-01", "2024-05-01"]
RULES = (Order("booked", "arrival"), Order("arrival", "departure", strict=True), Order("a", "b"))


def schema(parties=2, rules=RULES):
    one = [
        temporal("booked", "date", DAYS),
        temporal("departure", "date", DAYS, missing=True),
        Attribute.numeric("a", [0, 1, 2.5, 4]),
    ]
    two = [
        temporal("arrival", "date", DAYS, missing=True),
        Attribute.numeric("b", range(5), resolution=0.25, missing=True),
    ]
    return Schema.of(
        {"one": one, "two": two} if parties == 2 else {"one": [*one, *two]}, rules=rules
    )


def real(seed=0):
    """Records that keep the rules."""
    rng = np.random.default_rng(seed)
    start = np.datetime64("2024-01-01")
    booked = rng.integers(0, 90, RECORDS)
    arrival = booked + rng.integers(0, 20, RECORDS)
    departure = arrival + rng.integers(1, 10, RECORDS)
    a = 4 * rng.random(RECORDS)
    return pa.table(
        {
            "id": np.arange(RECORDS),
            "booked": start + booked,
            "departure": pa.array(start + departure, mask=rng.random(RECORDS) < 0.1),
            "a": a,
            "arrival": pa.array(start + arrival, mask=rng.random(RECORDS) < 0.2),
            "b": pa.array(np.ceil((a + (4 - a) * rng.random(RECORDS)) * 4) / 4),
        }
    )


def broken(table):
    """Records that break each rule."""
    return [
        pc.sum((pc.greater_equal if rule.strict else pc.greater)(table[rule.low], table[rule.high])).as_py() or 0
        for rule in RULES
    ]  # fmt: skip


@pytest.mark.parametrize("encoder", ["count-sketch", "scheduled-pairs"])
def test_every_row_of_two_parties_and_of_their_model_keeps_the_rules(encoder, tmp_path):
    """Without rules, at this little budget, rows break each of them: 65 to 1,700 of 3,000 in eight runs.

    The logarithm of the least varies by 0.5 from run to run, so none at all is nine standard deviations off.
    """
    made = {}
    for rules in (RULES, ()):
        stated = schema(rules=rules)
        plan = plan_with(
            stated,
            epsilon=0.5,
            expected_records=RECORDS,
            encoder=encoder,
            message_bytes=300_000,
            tau=20_000,
        )
        codes = encode_columns(real(), stated.attributes, "test")
        result = run_protocol(plan, dealt(stated, codes)).result
        made[rules] = result
    assert broken(made[RULES].table) == [0, 0, 0]
    assert all(broken(made[()].table))
    assert made[RULES].table["arrival"].null_count > 0
    Model(made[RULES].plan.schema, made[RULES].model, made[RULES].ledger).save(tmp_path / "m")
    model = Model.load(tmp_path / "m")
    assert broken(model.sample(20_000, seed=1)) == [0, 0, 0]
    assert broken(model.sample(500, given={"arrival": {"from": "2024-03-01"}}, seed=1)) == [0] * 3
    with pytest.raises(SchemaError, match=r"names 'arrival', so a condition .* whole bins"):
        model.sample(10, given={"arrival": {"from": "2024-03-02"}})


def test_every_row_of_one_holder_keeps_the_rules():
    model = Synthesizer(schema(1), id="id").fit(real(), epsilon=0.5)
    assert broken(model.sample(seed=2)) == [0, 0, 0]


def test_a_record_whose_bins_break_a_rule_is_left_out_and_counted():
    stated = schema(1)
    table = real().to_pylist()
    for row in table[:7]:
        row["booked"], row["arrival"] = (
            row["booked"].replace(month=3, day=9),
            row["booked"].replace(month=1, day=9),
        )
    table = pa.Table.from_pylist(table, real().schema)
    problems = check_table(table, "id", OpenSchema(stated, {}), "one", "t").problems
    assert any("7 records" in line and "booked <= arrival" in line for line in problems), problems


def test_values_of_one_bin_have_the_distribution_that_the_rule_leaves():
    """Of two uniform values in a bin, of which the rule leaves the pairs a <= b, and of bins that no rule touches.

    Both tests of fit have a chance failure of 1e-6 under the right distribution.
    """
    rule = [Order("a", "b")]
    attributes = [
        Attribute.numeric("a", [0, 20, 40], integral=True),
        Attribute.numeric("b", [0, 20, 40], resolution=1),
    ]
    n = 40_000
    codes = np.stack([np.repeat([0, 0], n), np.repeat([0, 1], n)]).astype(np.uint16)

    def drawn(rules):
        pieces = decode_pieces(codes, attributes, np.random.default_rng(0), rules=rules)
        table = pa.concat_tables(pieces)
        return np.array([table["a"].to_numpy(), table["b"].to_numpy()])

    free, kept = drawn(()), drawn(rule)
    assert (free[:, n:] == kept[:, n:]).all()
    assert (free[0, :n] > free[1, :n]).any()
    pairs = [(a, b) for a in range(20) for b in range(20) if a <= b]
    for column in (0, 1):
        expected = np.bincount([pair[column] for pair in pairs], minlength=20) / len(pairs)
        counts = np.bincount(kept[column, :n].astype(int), minlength=20)
        assert stats.chisquare(counts, n * expected).pvalue > 1e-6


def test_values_that_no_party_of_a_row_has_move_no_others():
    """Absent values have the code 0 until they are null, which the rule would not allow."""
    a, b = (Attribute.numeric(name, [0, 10, 20, 30], integral=True) for name in "ab")
    stated = Schema.of({"one": [a], "two": [b]}, rules=[Order("a", "b")])
    codes = np.array([[2, 2, 1] * 50, [0, 2, 1] * 50], np.uint16)
    holders = np.array([0, 1, 1] * 50)
    sets = [("one",), ("one", "two")]
    table = pa.concat_tables(decode_rows(codes, stated, np.random.default_rng(0), sets, holders))
    assert (encode_columns(table, [a], "test") == codes[:1]).all()
    assert table["b"].null_count == 50
    assert True not in pc.greater(table["a"], table["b"]).to_pylist()

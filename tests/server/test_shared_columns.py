"""Columns that several parties hold: one attribute, told how far they contradict each other, and stable where they do."""

import itertools
import re

import numpy as np
import pandas as pd
import pytest
from commands import good
from planning import plan_with
from roles import messages_of

from vertimrf import Attribute, Plan, RunOptions, Schema, evaluate
from vertimrf.errors import PlanError
from vertimrf.evaluation import EvaluationOptions
from vertimrf.files.bits import packed_size
from vertimrf.plan.defaults import SHARES
from vertimrf.privacy.events import CountSketchEvent
from vertimrf.releases.count_sketches.agreement import agreeing
from vertimrf.releases.nothing import NOTHING
from vertimrf.tables.table import Table
from vertimrf.trial import run_protocol
from vertimrf.utility.distances import distance

RECORDS = 20_000
AGE, SEX = Attribute.integer("age", 6), Attribute.integer("sex", 2)
OWN = {party: [Attribute.integer(f"{party}{i}", 3) for i in range(2)] for party in "abc"}
SCHEMA = Schema.of({"a": [*OWN["a"], AGE, SEX], "b": [SEX, *OWN["b"], AGE], "c": [*OWN["c"], SEX]})


def people(seed=0):
    """Everybody's columns: all of them hang on age and sex."""
    rng = np.random.default_rng(seed)
    columns = {"age": rng.integers(0, 6, RECORDS), "sex": (rng.random(RECORDS) < 0.4).astype(int)}
    for attribute in itertools.chain(*OWN.values()):
        columns[attribute.name] = (
            columns["age"] // 2 + columns["sex"] + (rng.random(RECORDS) < 0.3)
        ) % 3
    return columns


def contradicted(codes, size, rate, rng):
    """The same values, but for another one, drawn from all others evenly, in a part of the records."""
    out = codes.copy()
    wrong = rng.random(codes.size) < rate
    out[wrong] = (codes[wrong] + rng.integers(1, size, int(wrong.sum()))) % size
    return out


def tables_of(schema, rate, seed=0):
    """The first holders' values of all attributes, and the parties' tables: b's age and sex are others in part of the records."""
    rng = np.random.default_rng(seed)
    columns = people(seed)
    at_b = columns | {a.name: contradicted(columns[a.name], a.size, rate, rng) for a in (AGE, SEX)}
    digests = rng.integers(0, 1 << 63, RECORDS).astype(np.uint64)
    tables = []
    for party, names in schema.parties:
        columns_here = at_b if party == "b" else columns
        order = rng.permutation(RECORDS)
        codes = np.array([columns_here[name] for name in names], np.uint16)[:, order]
        tables.append(Table(schema.part(party), digests[order], np.ascontiguousarray(codes)))
    return np.array([columns[name] for name in schema.names], np.uint16), tables


def plan_of(schema=SCHEMA, **changes):
    settings = {
        "epsilon": 2.0,
        "delta": 1e-6,
        "expected_records": RECORDS,
        "nonce": "test",
        "message_bytes": 2_000_000,
    } | changes
    return plan_with(schema, **settings)


def run(rate, schema=SCHEMA, **changes):
    truth, tables = tables_of(schema, rate)
    return truth, run_protocol(plan_of(schema, **changes), tables, RunOptions(seed=0)).result


def mean_distance(truth, result, way, names):
    """Mean total variation distance of marginals that have one of some attributes at least, or none."""
    schema = result.plan.schema
    subsets = itertools.combinations(range(len(schema.names)), way)
    wanted = [
        attributes
        for attributes in subsets
        if names.isdisjoint({"age", "sex"})
        != bool({"age", "sex"} & {schema.names[a] for a in attributes})
    ]
    return float(
        np.mean([distance(truth, result.codes, schema.sizes, attributes) for attributes in wanted])
    )


@pytest.mark.parametrize("encoder", ["count-sketch", "scheduled-pairs"])
def test_what_a_plan_with_shared_columns_asks(encoder):
    plan = plan_of(encoder=encoder)
    assert [sketch.sizes for sketch in plan.agreement] == [(1, 1), (1, 1, 1)]
    priced = [entry for entry in plan.entries() if "agree on" in entry.released]
    assert [(entry.party, entry.event.groups) for entry in priced] == [("a, b", 2), ("a, b, c", 3)]
    # No key serves what some party holds together; of count sketches, what all parties hold is nobody's to publish, and what two
    # of three hold the first one's.
    if encoder == "count-sketch":
        assert "sex" not in {
            plan.schema.names[a] for group in plan.groups for a in group.attributes
        }
        assert plan.group_parties[[group.attributes[0] for group in plan.groups].index(2)] == 0
    else:
        sides = [
            plan.groups[pair.left].attributes + plan.groups[pair.right].attributes
            for pair in plan.sketch.pairs
        ]
        assert not any(plan.schema.at_one_party(attributes) for attributes in sides)
    with pytest.raises(PlanError, match="do not fit the attributes that several parties hold"):
        Plan.from_json(plan.to_json() | {"agreement": plan.to_json()["agreement"][:1]})


@pytest.mark.parametrize(
    "epsilon, message_bytes", [(2.0, 2_000_000), (8.0, 30_000), (20.0, 100_000)]
)
def test_agreement_takes_its_bytes_and_its_budget_from_the_sketches(epsilon, message_bytes):
    plan = plan_of(encoder="count-sketch", epsilon=epsilon, message_bytes=message_bytes)
    for party in range(3):
        shapes = [
            (plan.sketch.bits, shape) for shape in plan.sketch.shapes(plan.groups_of(party), party)
        ]
        shapes += [
            (sketch.bits, shape)
            for sketch in plan.agreement_of(party).values()
            for shape in sketch.shapes((0,), party)
        ]
        taken = sum(packed_size(rows * counters, bits) for bits, (rows, counters) in shapes)
        assert taken <= message_bytes
        # The party with the most values takes nearly all of it.
        assert party or taken > 0.99 * message_bytes
    spent = [
        (isinstance(entry.event, CountSketchEvent), entry.event.rho) for entry in plan.entries()
    ]
    assert sum(rho for sketched, rho in spent if sketched) == pytest.approx(
        SHARES[2] * sum(rho for _, rho in spent)
    )


def test_what_all_hold_is_sketched_where_nobody_measures_pairs():
    plan = plan_of(encoder="count-sketch", local_models=False)
    assert {plan.schema.names[a] for group in plan.groups for a in group.attributes} == set(
        SCHEMA.names
    )


def test_plans_without_shared_columns_say_nothing_of_them():
    schema = Schema.of(OWN)
    assert "agreement" not in plan_of(schema).to_json()
    assert not any(
        isinstance(e.event, CountSketchEvent)
        for e in plan_of(schema, encoder="scheduled-pairs").entries()
    )


def test_where_everything_is_shared_nothing_crosses():
    schema = Schema.of({"a": [*OWN["a"], SEX], "b": [SEX]})
    truth, result = run(0.1, schema, encoder="count-sketch")
    assert result.plan.sketch == NOTHING
    assert not result.crossing
    (disagreement,) = result.disagreements
    assert abs(disagreement.share - 0.1) < 5 * disagreement.error
    assert distance(truth, result.codes, schema.sizes, (0, 1)) < 0.02


@pytest.mark.parametrize(
    "encoder", ["count-sketch", pytest.param("scheduled-pairs", marks=pytest.mark.slow)]
)
def test_contradictions_are_told_and_leave_the_others_alone(encoder):
    """At 0 and at 5 % of contradictions; the figures of one run each."""
    results = {rate: run(rate, encoder=encoder) for rate in (0.0, 0.05)}
    for rate, (_, result) in results.items():
        disagreements = {
            (result.plan.schema.names[d.attribute], d.parties): d for d in result.disagreements
        }
        assert disagreements.keys() == {
            ("age", (0, 1)),
            ("sex", (0, 1)),
            ("sex", (0, 2)),
            ("sex", (1, 2)),
        }
        for (_, parties), each in disagreements.items():
            true = rate if 1 in parties else 0.0
            # Five standard errors, of the estimate and of how many contradictions there are.
            assert abs(each.share - true) < 5 * np.hypot(each.error, np.sqrt(true / RECORDS))
            assert each.error < 0.01
        warned = [w for w in result.warnings if "contradict each other" in w]
        assert len(warned) == (3 if rate else 0)
        assert bool(rate) == any("'age'" in w and "a and b" in w for w in warned)
        assert [entry["column"] for entry in result.to_json()["shared_columns"]] == [
            "age",
            "sex",
            "sex",
            "sex",
        ]
        assert result.table.column_names == list(SCHEMA.names)
    # Marginals of two attributes that nobody shares are what they were but for noise: these come to 0.01 to 0.02 here; and
    # those with age and sex are off by what the contradictions move, between the holders.
    for names, most in (({"age", "sex"}, 0.05), (set(), 0.01)):
        apart = [mean_distance(truth, result, 2, names) for truth, result in results.values()]
        assert apart[1] < apart[0] + most


def test_shared_columns_join_what_others_hold_without_sketches():
    """Pairs of a shared column with another party's: measured there, so about as well as a party's own."""
    truth, result = run(0.0, encoder="count-sketch", epsilon=0.5)
    names = result.plan.schema.names
    pairs = {
        "own": [("a0", "age"), ("a1", "age")],
        "bridged": [("age", "b0"), ("age", "b1"), ("sex", "c0"), ("sex", "c1")],
    }
    mean = {
        kind: np.mean(
            [
                distance(
                    truth, result.codes, result.plan.schema.sizes, [names.index(n) for n in name]
                )
                for name in listed
            ]
        )
        for kind, listed in pairs.items()
    }
    assert mean["bridged"] < 2 * mean["own"] + 0.005


def test_messages_keep_what_agreement_they_hold():
    plan = plan_of(encoder="count-sketch")
    _, tables = tables_of(SCHEMA, 0.0)
    assert [len(message.agreement) for message in messages_of(plan, tables)] == [2, 2, 1]


def frames(folder):
    """Two parties' files, both with sex, and their schema, each part of which says it alike."""
    _, tables = tables_of(Schema.of({"a": [*OWN["a"], SEX], "b": [SEX, *OWN["b"]]}), 0.1)
    for table, name in zip(tables, "ab", strict=True):
        frame = pd.DataFrame(
            {a.name: row for a, row in zip(table.attributes, table.codes, strict=True)}
        )
        frame.insert(0, "id", table.digests.astype(str))
        frame.to_csv(folder / f"{name}.csv", index=False)
        Schema.of({name: table.attributes}).save(folder / f"{name}.toml")
    return folder / "a.csv", folder / "b.csv", folder / "both.toml"


def test_the_command_line_takes_shared_columns(tmp_path):
    a, b, both = frames(tmp_path)

    merged = good(f"schema merge {tmp_path}/a.toml {tmp_path}/b.toml --out {both}")
    assert "5 attributes of a, b" in merged
    assert (
        "'sex' counts as one column that a and b hold. If it is not, rename it at one of them."
        in merged
    )
    plan = good(
        f"plan --schema {both} --epsilon 2 --expected-records {RECORDS} --out {tmp_path}/plan.json",
    )
    assert "sex is one column that a and b hold" in plan
    assert re.search(r"whether they\b.*\n +agree on sex", plan), plan
    out = tmp_path / "out.csv"
    made = good(
        f"synthesize {a} {b} --id id --schema {both} --epsilon 2 --expected-records {RECORDS} --out {out}",
    )
    assert "Warning: a and b contradict each other on 'sex' for" in made
    assert pd.read_csv(out).columns.tolist() == ["a0", "a1", "sex", "b0", "b1"]
    # Evaluation takes the first party's; and one party's own.
    everything = evaluate([a, b], out, "id", Schema.load(both))
    assert {name for pair in everything["columns"] for name in pair["columns"]} == {
        "a0",
        "a1",
        "sex",
        "b0",
        "b1",
    }
    mine = evaluate([b], out, "id", Schema.load(both), EvaluationOptions(party="b"))
    assert {name for pair in mine["columns"] for name in pair["columns"]} == {"sex", "b0", "b1"}
    agreed = good(f"check {b} --plan {tmp_path}/plan.json --name b --id id")
    assert "3 attributes in the plan" in agreed


def test_the_server_learns_nothing_by_comparing_the_sketches_of_two_columns():
    """Every record has the same code in both columns. Under hashes in common, that would show like the agreement of holders."""
    pair = [Attribute.integer("left", 6), Attribute.integer("right", 6)]
    schema = Schema.of({party: [*OWN[party], *pair] for party in "ab"})
    rng = np.random.default_rng(0)
    columns = {a.name: rng.integers(0, 3, RECORDS) for a in (*OWN["a"], *OWN["b"])}
    columns |= dict.fromkeys(("left", "right"), rng.integers(0, 6, RECORDS))
    digests = rng.integers(0, 1 << 63, RECORDS).astype(np.uint64)
    tables = [
        Table(part, digests, np.array([columns[a.name] for a in part], np.uint16))
        for part in map(schema.part, "ab")
    ]
    plan = plan_of(schema)
    a, b = (message.agreement for message in messages_of(plan, tables))
    (sketch, *_) = plan.agreement_of(0).values()

    def compared(one, other):
        ((records, error),) = agreeing(sketch, [one, other], [RECORDS] * 2, RECORDS).values()
        return records / error

    assert compared(a[0], b[0]) > 20
    # One in 10^6 of as many Gaussians is beyond five standard errors.
    for crossed in ((a[0], b[1]), (a[1], b[0]), (a[0], a[1])):
        assert abs(compared(*crossed)) < 5

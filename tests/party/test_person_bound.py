"""Removing a person moves every answer of a party's records by no more than the ledger prices, whatever the tables hold.

Tables are drawn at random, with ids that collide within and across persons, cells that are missing or outside, impossible
combinations, rules, shared columns and repeated rows. Half of them have a person with a row for everybody's id and the
smallest codes.
"""

import functools
from collections import Counter

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from builders import Tape, colliding_rows, moved
from planning import plan_with

from vertimrf import Attribute, Impossible, OpenSchema, Party, ReadOptions, Schema, Secret
from vertimrf.party.persons import sample_rows
from vertimrf.party.private_domains import find_domains
from vertimrf.party.secret import id_keys
from vertimrf.privacy.events import GaussianEvent
from vertimrf.releases.count_sketches.encoding import CountSketchEncoder
from vertimrf.tables.columns import encode_table

SECRET = Secret(bytes(range(32)))
SHARED = Attribute.integer("s", 3)
PARTS = {
    "one": (Attribute.integer("a", 3), Attribute.integer("b", 2, missing=True), SHARED),
    "two": (SHARED, Attribute.integer("c", 4), Attribute.integer("d", 4)),
}
APART = {"one": (*PARTS["one"][:2], Attribute.integer("e", 3)), "two": PARTS["two"][1:]}
RULED = {"impossible": [Impossible.of(a=2, b=1)], "rules": ["c <= d"]}
# Kinds of plans: records of a person, and the schema.
KINDS = {
    "one record, shared columns": (1, Schema.of(PARTS)),
    "one record, rules": (1, Schema.of(APART, **RULED)),
    "two records": (2, Schema.of(APART)),
    "two records, rules": (2, Schema.of(APART, **RULED)),
    "five records, shared columns and rules": (5, Schema.of(PARTS, **RULED)),
}


@functools.cache
def plan_of(most, schema):
    plan = plan_with(
        schema,
        epsilon=30.0,
        tau=16,
        expected_records=800,
        encoder="count-sketch",
        message_bytes=4000,
        records_per_person=most,
        nonce="bound",
    )
    assert plan.groups
    assert all(local.units and local.score_sigma for local in plan.local)
    return plan


class Asked:
    """What a party's message asks of a table: Gaussian queries, records, and counters of sketches before noise."""

    def __init__(self, plan, name, frame, played=None):
        self.tape, self.states = Tape(played), []
        party = Party(plan, name, SECRET, self.tape)
        read = ReadOptions(person="who" if plan.records_per_person > 1 else None)
        table = party.encode(pa.Table.from_pandas(frame, preserve_index=False), "id", read)
        result = CountSketchEncoder.result

        def seen(encoder, *given):
            self.states.append(encoder._state.astype(float))
            return result(encoder, *given)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(CountSketchEncoder, "result", seen)
            party.run(table)
        records = party._checked(table).table
        self.records = {
            int(digest): tuple(codes)
            for digest, codes in zip(records.digests, records.codes.T.tolist(), strict=True)
        }
        assert len(self.records) == records.records


def ratio(plan, name, before, after):
    """The largest change in Euclidean length over the one that is priced: of each kind of query, and of sketches."""
    party, most = plan.party_names.index(name), plan.records_per_person
    unit = plan.local[party].unit_sigma
    events = {
        entry.event.sigma: entry.event
        for entry in plan.entries()
        if isinstance(entry.event, GaussianEvent) and entry.party == name
    }
    moved = dict.fromkeys(events, 0.0)
    for (sigma, exact), (_, other) in zip(before.tape.queries, after.tape.queries, strict=True):
        change = float(np.square((other - exact).astype(float)).sum())
        # A larger marginal of k units has k times the counts and the variance.
        kind = sigma if sigma in events else unit
        moved[kind] += change / (sigma / kind) ** 2
    out = [moved[s] / (e.count * e.sensitivity**2) for s, e in events.items()]
    for state, other in zip(before.states, after.states, strict=True):
        change = np.square(state - other).sum(axis=(1, 2)).max()
        # A record adds 1 or -1 to a counter of every group; a column's agreement is one group.
        groups = len(plan.groups_of(party)) if state is before.states[0] else 1
        out.append(change / (groups * most**2))
    return max(out) ** 0.5


def worst_ratio(kind, neighbours):
    """Draw tables, and remove persons from each; the largest ratio, and how many were removed."""
    most, schema = KINDS[kind]
    plan, worst, count, seed = plan_of(most, schema), 0.0, 0, 0
    while count < neighbours:
        rng, seed = np.random.default_rng(seed), seed + 1
        for name in schema.party_names:
            frame = colliding_rows(rng, [a.name for a in schema.part(name)])
            if most == 1:
                frame["who"] = frame["id"]
            before = Asked(plan, name, frame)
            for who in sorted({who for who in frame["who"].dropna() if who})[: neighbours - count]:
                after = Asked(plan, name, frame[frame["who"] != who], before.tape)
                # Nobody else's records change.
                assert after.records.items() <= before.records.items()
                assert len(before.records) - len(after.records) <= most
                worst, count = max(worst, ratio(plan, name, before, after)), count + 1
    return worst, count


@pytest.mark.parametrize("kind", KINDS)
def test_removing_a_person_moves_every_answer_by_no_more_than_is_priced(kind):
    worst, count = worst_ratio(kind, 16)
    assert count == 16
    assert 0.3 < worst <= 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_removing_any_of_2000_persons_moves_no_answer_by_more(kind):
    worst, count = worst_ratio(kind, 2000)
    assert count == 2000
    print(f"{kind}: at most {worst:.4f} of what is priced")
    assert 0.9 < worst <= 1


def test_a_person_with_rows_for_everybodys_ids_shadows_nobody():
    """40 people, and one more with their ids and smaller codes: before ids were of a person each, removing her moved 40 counts."""
    plan = plan_of(*KINDS["two records"])
    others = pd.DataFrame({"id": range(40), "who": range(40), "a": "2", "b": "1", "e": "2"})
    shadow = others.assign(who="shadow", a="0", b="0", e="0")
    frame, others = (rows.astype(str) for rows in (pd.concat([others, shadow]), others))
    before = Asked(plan, "one", frame)
    after = Asked(plan, "one", others, before.tape)
    (_, count), (_, one_way) = before.tape.queries[:2]
    (_, less), (_, its) = after.tape.queries[:2]
    assert (int(count[0]), int(less[0])) == (42, 40)
    assert np.abs(one_way - its).sum() == 2
    assert ratio(plan, "one", before, after) == pytest.approx(1)


def test_visits_that_are_numbered_within_a_person_meet_those_of_the_same_person_at_other_parties():
    plan = plan_of(*KINDS["five records, shared columns and rules"])
    visits = pd.DataFrame({"id": [1, 2, 3] * 20, "who": np.repeat(np.arange(20), 3), "s": "0"})
    one = Asked(plan, "one", visits.assign(a="0", b="0"))
    two = Asked(plan, "two", visits[visits["id"] < 3].assign(c="0", d="1").sample(frac=1))
    assert len(one.records) == 60
    assert len(two.records) == 40
    assert two.records.keys() < one.records.keys()


def test_rows_without_ids_are_chosen_of_each_person_alone():
    """One table of one holder: a record is the n-th of its person, and others' rows may stand between."""
    plan = plan_of(*KINDS["two records"])
    rng = np.random.default_rng(0)
    frame = colliding_rows(rng, "abe")
    read, party = ReadOptions(person="who"), Party(plan, "one", SECRET)

    def records(rows):
        table = party.encode(pa.Table.from_pandas(rows, preserve_index=False), None, read)
        kept = party._checked(table).table
        return set(zip(kept.digests.tolist(), map(tuple, kept.codes.T.tolist()), strict=True))

    whole = records(frame)
    for who in {who for who in frame["who"] if who}:
        rest = records(frame[frame["who"] != who])
        assert rest <= whole
        assert len(whole) - len(rest) <= 2


def test_a_person_keeps_as_many_records_as_planned_of_those_that_fit():
    """Also where who read the table did not know what is impossible, as of a table of all parties' columns."""
    most, schema = KINDS["two records, rules"]
    party = Party(plan_of(most, schema), "one", SECRET)
    # One of five records has what is impossible.
    rows = {"id": [*range(5)] * 40, "who": np.repeat(np.arange(40), 5)}
    rows |= {"a": ["2", *"0011"] * 40, "b": "1", "e": "0"}
    table = encode_table(
        pa.Table.from_pandas(pd.DataFrame(rows)),
        "id",
        schema.part("one"),
        ReadOptions(person="who"),
        keys=id_keys(SECRET, plan_of(most, schema).digest()),
    )
    assert table.records == 200
    assert party._checked(table).count == 80


@pytest.mark.parametrize("most", [1, 2, 5])
def test_removing_a_person_moves_no_search_of_a_domain_by_more_than_is_priced(most):
    part = {
        "name": "p",
        "attribute": [{"name": "x", "bins": "private"}, {"name": "y", "values": "private"}],
    }
    wanted = [*OpenSchema.from_json({"party": [part]}).wanted.values()]
    who, read = ("id", ReadOptions()) if most == 1 else ("who", ReadOptions(person="who"))
    worst = 0

    def asked(frame, played=None):
        table = pa.Table.from_pandas(frame.astype(str), preserve_index=False)
        table = table.filter(pc.field(who) != "None")
        rows, tape = sample_rows(table, "id", most, "t", read, bytes(32)), Tape(played)
        find_domains(
            wanted[:1], lambda _: rows, 5.0, 1e-6, str, records_per_person=most, noise=tape
        )
        return Counter(zip(*rows.to_pydict().values(), strict=True)), tape

    for seed in range(6):
        frame = colliding_rows(np.random.default_rng(seed), "xy")
        before, tape = asked(frame)
        for person in sorted({one for one in frame[who].dropna() if one}):
            after, other = asked(frame[frame[who] != person], tape)
            # Nobody else's rows change, so that no count of a value does either.
            assert after <= before
            assert (before - after).total() <= most
            for (_, exact), (_, its) in zip(tape.queries, other.queries, strict=True):
                worst = max(worst, moved(exact, its))
    assert worst == most

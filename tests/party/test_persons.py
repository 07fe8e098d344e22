"""Several records of one person: the bound is kept, the same records at every party, and every event is priced for them."""

import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from builders import KEYS, Tape, schema_of
from planning import plan_with

from vertimrf import (
    Attribute,
    Ledger,
    OpenSchema,
    Party,
    PlanOptions,
    ReadOptions,
    Schema,
    Secret,
    Synthesizer,
    synthesize,
)
from vertimrf.errors import PlanError, TableError
from vertimrf.keys import KeyRing
from vertimrf.party.check import check_table
from vertimrf.party.persons import beyond, kept_records, limited, sample_rows
from vertimrf.plan.summary import summary
from vertimrf.privacy.events import CountSketchEvent, GaussianEvent, GeometricEvent
from vertimrf.privacy.label import PrivacyLabel, neighbours_of
from vertimrf.privacy.noise import FixedNoise
from vertimrf.tables.columns import encode_table

KEY = bytes(range(32))


SCHEMA = schema_of(clinic={"a0": 3, "a1": 4}, insurer={"b0": 2, "b1": 5})
SETTINGS = {
    "epsilon": 2.0,
    "expected_records": 4000,
    "encoder": "count-sketch",
    "nonce": "persons",
    "message_bytes": 200_000,
}
PER_PERSON = ReadOptions(person="person")


def plan(records=3, **more):
    return plan_with(SCHEMA, records_per_person=records, **SETTINGS | more)


def visits(rows=4000):
    """A table of visits: persons have 1 to about 12."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"visit": np.arange(rows), "person": np.sort(rng.integers(0, rows // 4, rows))}
    )
    for name, size in zip(SCHEMA.names, SCHEMA.sizes, strict=True):
        frame[name] = rng.integers(0, size, rows)
    return frame


def part(frame, name):
    """What of the visits one party has."""
    return frame[["visit", "person", *dict(SCHEMA.parties)[name]]]


def encoded(party, frame):
    """A party's visits, which say whose they are."""
    return party.encode(frame, "visit", read=PER_PERSON)


@pytest.mark.parametrize("most", [1, 2, 5])
def test_at_most_so_many_records_of_a_person_are_kept_whatever_the_order(most, monkeypatch):
    rng = np.random.default_rng(0)
    records = rng.integers(0, 1 << 62, 3000).astype(np.uint64)
    persons = rng.integers(0, 1 << 64, 700, dtype=np.uint64)[rng.integers(0, 700, 3000)]
    kept = kept_records(records, persons, most, KEY)
    # Looked at in ranges of digests, as large tables are.
    monkeypatch.setattr("vertimrf.party.persons.SORTED_RECORDS", 500)
    assert (kept_records(records, persons, most, KEY) == kept).all()
    had, has = Counter(persons.tolist()), Counter(persons[kept].tolist())
    assert all(has[person] == min(count, most) for person, count in had.items())
    order = rng.permutation(3000)
    assert (kept_records(records[order], persons[order], most, KEY) == kept[order]).all()
    # What is kept of a person depends on nobody else, and on the key.
    half = persons < 1 << 63
    assert (kept_records(records[half], persons[half], most, KEY) == kept[half]).all()
    assert (kept_records(records, persons, most, KEY[::-1]) != kept).any()
    assert beyond(persons, most) == (
        (~kept).sum(),
        sum(count > most for count in had.values()),
    )


def test_each_of_a_persons_records_is_kept_as_often():
    """300 keys, a person with 6 records of which 2 are kept: each 100 times, give or take five standard deviations of 8.2."""
    records = np.arange(6, dtype=np.uint64)
    persons = np.zeros(6, np.uint64)
    rng = np.random.default_rng(0)
    often = sum(kept_records(records, persons, 2, rng.bytes(16)).astype(int) for _ in range(300))
    assert often.sum() == 600
    assert (np.abs(often - 100) < 41).all()


def test_no_records_and_a_table_without_persons():
    empty = np.zeros(0, np.uint64)
    assert kept_records(empty, empty, 2, KEY).size == 0
    table = Party(plan(1), "clinic", Secret(KEY)).encode(visits()[["visit", "a0", "a1"]], "visit")
    with pytest.raises(TableError, match=UNNAMED):
        Party(plan(), "clinic", Secret(KEY)).run(table)
    # One record per person: as ever.
    assert limited(table, 1, KEY) is table


UNNAMED = r"persons with up to 3 records, so every table must say whose.*--person"
NAMED = r"one record of a person, so a record id is a person and no table may name others.*--person"


@pytest.mark.parametrize(
    "most, read, sentence", [(3, ReadOptions(), UNNAMED), (1, PER_PERSON, NAMED)]
)
def test_tables_name_persons_where_the_plan_does_and_nowhere_else(most, read, sentence):
    """Or else parties would join records by other keys, and one id of several persons would be one record. No table is read."""
    agreed, table = plan(most), part(visits(50), "clinic")
    with pytest.raises(TableError, match=sentence):
        Party(agreed, "clinic", Secret(KEY)).encode("there is no such file", "visit", read=read)
    other = encode_table(table, "visit", agreed.schema.part("clinic"), read, keys=KEYS)
    with pytest.raises(TableError, match=sentence):
        Party(agreed, "clinic", Secret(KEY)).run(other)
    checked = check_table(table, "visit", OpenSchema(SCHEMA, {}), "clinic", "t", read, agreed)
    assert re.search(sentence, " ".join(checked.problems))
    planning = PlanOptions(records_per_person=most)
    with pytest.raises(TableError, match=sentence):
        synthesize([table], "visit", 1.0, read=read, planning=planning)
    with pytest.raises(TableError, match=sentence):
        sample_rows(pa.Table.from_pandas(table), "visit", most, "t", read)


@pytest.fixture(scope="module")
def messages():
    """Both parties' messages, noise all but nothing where it is Gaussian, from tables in different orders."""
    agreed, table = plan(), visits()

    class Faint(FixedNoise):
        def gaussian(self, values, sigma):
            return np.asarray(values, np.int64)

    out = []
    for i, name in enumerate(SCHEMA.party_names):
        shuffled = part(table.sample(frac=1, random_state=i), name)
        party = Party(agreed, name, Secret(KEY), Faint(1))
        out.append((shuffled, party.run(encoded(party, shuffled))))
    return out


def test_parties_count_at_most_so_many_records_of_a_person_and_the_same_ones(messages):
    table = visits()
    kept = int(np.minimum(table.groupby("person").size(), 3).sum())
    assert kept < 0.9 * len(table)
    (_, first), (_, second) = messages
    assert first.count == kept
    totals = {
        int(m.counts.sum()) // max(m.units, 1)
        for message in (first, second)
        for m in message.marginals
    }
    assert totals == {kept}
    # The kept visits, as both parties choose them.
    chosen = []
    for (shuffled, _), name in zip(messages, SCHEMA.party_names, strict=True):
        party = Party(plan(), name, Secret(KEY))
        chosen.append(np.sort(party._checked(encoded(party, shuffled)).table.digests))
    assert (chosen[0] == chosen[1]).all()
    assert len(chosen[0]) == kept
    other = Party(plan(), "clinic", Secret(KEY[::-1]))
    theirs = other._checked(encoded(other, messages[0][0])).table
    assert not np.array_equal(np.sort(theirs.digests), chosen[0])


def test_adding_a_person_with_many_records_moves_every_answer_by_no_more_than_is_priced():
    agreed, table = plan(nonce="moved"), visits()

    more = pd.DataFrame(
        {"visit": np.arange(10_000, 10_040), "person": 99_999, "a0": 1, "a1": 2, "b0": 0, "b1": 4}
    )
    for name in SCHEMA.party_names:
        first = Tape()
        tapes = [first, Tape(first)]
        for tape, frame in zip(tapes, (table, pd.concat([table, more])), strict=True):
            party = Party(agreed, name, Secret(KEY), tape)
            party.run(encoded(party, part(frame, name)))
        events = {
            e.event.sigma: e.event
            for e in agreed.entries()
            if isinstance(e.event, GaussianEvent) and e.party == name
        }
        seen = 0
        for (sigma, before), (_, after) in zip(tapes[0].queries, tapes[1].queries, strict=True):
            moved = np.abs(after - before).sum()
            if sigma in events and sigma != agreed.local[0].unit_sigma:
                assert moved == events[sigma].sensitivity == 3
                seen += 1
            else:
                units = round(
                    (sigma / agreed.local[agreed.party_names.index(name)].unit_sigma) ** 2
                )
                assert moved == 3 * units
        assert seen >= 2


def test_every_event_is_priced_for_all_records_of_a_person():
    one, three = plan(1), plan(3)
    assert "records_per_person" not in one.to_json()
    assert one.to_json() == plan_with(SCHEMA, **SETTINGS).to_json()
    assert three.to_json()["records_per_person"] == 3
    for entry in three.entries():
        if isinstance(entry.event, GaussianEvent):
            assert entry.event.sensitivity in (3, 33 + 2 * 32)
        else:
            assert isinstance(entry.event, CountSketchEvent)
            # Each of the two parties may have other records of a person.
            assert (entry.event.records, entry.event.parties) == (3, 2)
    for agreed in (one, three):
        assert 0.985 * 2 < agreed.ledger().epsilon <= 2.0
    # About three times the noise.
    assert three.count_sigma / one.count_sigma == pytest.approx(3, rel=0.05)
    assert three.local[1].one_way_sigma / one.local[1].one_way_sigma == pytest.approx(3, rel=0.05)
    assert "one person with up to 3 records" in str(three.label)
    assert "a person has up to 3 records" in summary(three)
    assert PrivacyLabel.from_json(three.label.to_json()) == three.label
    assert not PrivacyLabel(1.0, 1e-6, "add or remove one person with up to 0 records").private
    ledger = three.ledger()
    assert Ledger.from_json(ledger.to_json()).neighbours == ledger.neighbours == neighbours_of(3)
    with pytest.raises(Exception, match="Neighbours of these runs differ"):
        Ledger.together([ledger, one.ledger()])


@pytest.mark.parametrize(
    "more, sentence",
    [
        (
            {"encoder": "scheduled-pairs"},
            "3 records of a person there is no price for scheduled-pairs: use count sketches",
        ),
        ({"encoder": "grr"}, "no price for grr"),
        ({"encoder": "published", "claim_as_published": True}, "no price for published"),
        ({"records": 0}, "1 to 64 records"),
        ({"records": 65}, "1 to 64 records"),
    ],
)
def test_what_has_no_price_is_refused_in_a_sentence(more, sentence):
    with pytest.raises(PlanError, match=sentence):
        plan(**{"records": 3} | more)


@pytest.mark.parametrize("found, most", [(1, 3), (2, 3), (3, 1)])
def test_domains_found_for_other_persons_are_refused(found, most):
    """With one record a person is a record id, whose rows may be of many of the persons that the search knew."""
    entry = plan(1).entries()[0]
    event = GeometricEvent(40.0, found)
    domain = type(entry)(event, "clinic", "bounds and bins of 'a0'", "noise", "id")
    sentence = rf"persons with {found} records at most.*records_per_person={most} "
    with pytest.raises(PlanError, match=sentence):
        plan_with(
            OpenSchema(SCHEMA, {}).closed({}, (domain,)),
            expected_records=4000,
            records_per_person=most,
        )


def test_a_table_that_says_otherwise_whose_records_they_are_is_another_table():
    agreed, table = plan(), visits(400)
    ring = KeyRing.new(agreed.party_names)
    agreed = replace(agreed, public_keys=ring.public)
    party = Party(agreed, "clinic", Secret(KEY), key=ring.parties["clinic"])

    def release(frame):
        return party.release(encoded(party, part(frame, "clinic")))

    first = release(table)
    assert release(table.sample(frac=1, random_state=3)) == first
    with pytest.raises(Exception, match="from another table"):
        release(table.assign(person=0))


@pytest.mark.parametrize("split", [False, True])
def test_a_trial_and_the_synthesizer_keep_the_bound(split):
    table = visits()
    kept = int(np.minimum(table.groupby("person").size(), 2).sum())
    if split:
        run = synthesize(
            [part(table, name) for name in SCHEMA.party_names],
            "visit",
            50.0,
            schema=SCHEMA,
            read=PER_PERSON,
            planning=PlanOptions(
                records_per_person=2, encoder="count-sketch", message_bytes=100_000
            ),
        )
        ledger, rows = run.ledger, run.table.num_rows
        # What the plan was made from counts no more of a person either.
        assert abs(run.result.plan.expected_records - kept) < 60
    else:
        run = Synthesizer(
            SCHEMA,
            id="visit",
            read=PER_PERSON,
            planning=PlanOptions(records_per_person=2),
        ).fit(table, epsilon=50.0)
        ledger, rows = run.ledger, run.sample().num_rows
    assert ledger.neighbours == neighbours_of(2)
    assert ledger.entries[0].event.sensitivity == 2
    # Within a few of the noisy count.
    assert abs(rows - kept) < 60 < len(table) - kept


def test_persons_must_be_named_and_known():
    table, agreed = visits(200), plan()
    party = Party(agreed, "clinic", Secret(KEY))
    mine = part(table, "clinic")
    with pytest.raises(
        TableError, match="no person column 'patient'; its columns are 'visit', 'person'"
    ):
        party.encode(mine, "visit", read=ReadOptions(person="patient"))
    one = encoded(party, mine.assign(person=[None if i == 7 else str(i) for i in range(200)]))
    assert one.records == 199
    assert "person column 'person': 1 record has no id (row 8)" in one.dropped.reasons[0].sentence
    assert encoded(party, mine.assign(person=[i + 0.5 for i in range(200)])).records == 0
    mixed = mine.assign(person=[i if i % 2 else f"p{i}" for i in range(200)])
    assert len(np.unique(encoded(party, mixed).persons)) == 200
    with pytest.raises(TableError, match="every table must say whose a record is"):
        Synthesizer(SCHEMA, planning=PlanOptions(records_per_person=2)).fit(table, epsilon=1.0)
    with pytest.raises(TableError, match="as many persons"):
        type(encoded(party, mine))(
            agreed.schema.part("clinic"),
            np.zeros(2, np.uint64),
            np.zeros((2, 2), np.uint16),
            np.zeros(3, np.uint64),
        )


def test_check_says_how_many_are_left_out():
    table, agreed = pa.Table.from_pandas(part(visits(), "clinic")), plan()
    dropped = int(np.maximum(visits().groupby("person").size() - 3, 0).sum())

    def checked(table, read=PER_PERSON):
        return check_table(table, "visit", OpenSchema(SCHEMA, {}), "clinic", "t.csv", read, agreed)

    assert not checked(table).problems
    facts = checked(table).facts
    assert any(f"{dropped:,} records of" in fact and "left out" in fact for fact in facts)
    alone = table.drop_columns(["person"])
    assert any("--person" in problem for problem in checked(alone, ReadOptions()).problems)
    assert any("no person column" in problem for problem in checked(alone).problems)


def test_check_notes_bounds_that_clip_and_values_that_are_other():
    schema = Schema.of(
        {
            "a": [
                Attribute.numeric("x", [0, 5, 10], clamp=True),
                Attribute.categorical("y", ["p"], other="other"),
            ],
            "b": [Attribute.integer("z", 2)],
        }
    )
    schema = OpenSchema(replace(schema, ids="9"), {})

    def notes(x, known):
        table = pa.table({"id": range(100), "x": x, "y": ["p"] * known + ["q"] * (100 - known)})
        return " ".join(check_table(table, "id", schema, "a", "t.csv").notes)

    odd = notes(np.arange(100.0), 30)
    assert "89 % of column 'x' lie beyond the bounds 0 to 10" in odd
    assert "70 % of column 'y' count as 'other'" in odd
    assert not notes(np.arange(100) / 10, 70)


def test_rows_are_sampled_where_no_secret_is_shared_yet():
    table = pa.table({"person": ["a"] * 9 + ["b"], "x": range(10)})
    for _ in range(3):
        kept = sample_rows(table, None, 2, "t", PER_PERSON)
        assert sorted(kept["person"].to_pylist()) == ["a", "a", "b"]
    drawn = {tuple(sample_rows(table, "person", 1, "t")["x"].to_pylist()) for _ in range(60)}
    assert len(drawn) > 3
    # Without ids every row is a record.
    assert sample_rows(table, None, 1, "t") is table


def test_which_rows_are_sampled_of_a_person_depends_on_the_key_and_on_her_rows_alone():
    table = pa.table({"person": ["a", "b"] * 9 + ["c"], "x": range(19)})
    for read, most in ((PER_PERSON, 3), (ReadOptions(), 1)):

        def sampled(some, key=KEY, read=read, most=most):
            return sample_rows(some, "person", most, "t", read, key)["x"].to_pylist()

        alone = [sampled(table.filter(pc.field("person") == who)) for who in "abc"]
        assert [*map(len, alone)] == [most, most, 1]
        assert sampled(table) == sorted(x for one in alone for x in one)
        assert len({tuple(sampled(table, bytes([i]) * 32)) for i in range(9)}) > 3
    # Ids are normalised as in a run.
    table = pa.table({"id": ["1", "01", " 1"], "x": range(3)})
    assert sample_rows(table, "id", 1, "t").num_rows == 3
    assert sample_rows(table, "id", 1, "t", ReadOptions(id_format=["strip", "unpad"])).num_rows == 1

"""Keys of the digests of ids: shared where ids are to meet, and unknown to whoever chooses an id."""

import uuid

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from builders import KEYS, schema_of
from oracles import siphash
from planning import plan_with

from benchmarks.attacks.ids import VICTIM, changed_records, twin, unkeyed
from vertimrf import (
    OpenSchema,
    Party,
    ReadOptions,
    Secret,
    Synthesizer,
    draft_schema,
    evaluate,
)
from vertimrf.errors import TableError
from vertimrf.evaluation import EvaluationOptions
from vertimrf.party.check import check_table
from vertimrf.party.secret import derive, id_keys
from vertimrf.tables.columns import encode_table
from vertimrf.tables.ids import IdKeys, digested, only_in, plain_ids
from vertimrf.trial import open_tables

SECRET = Secret(bytes(range(32)))
SCHEMA = schema_of(one={"a": 2}, two={"b": 3})
OTHERS = [f"patient-{i:06d}" for i in range(500, 560)]
MOST = 2


def plan(nonce="ids", most=1):
    how = {"expected_records": 100, "encoder": "count-sketch", "message_bytes": 20_000}
    return plan_with(SCHEMA, nonce=nonce, records_per_person=most, **how)


def table_of(ids, persons=None):
    columns = {"id": ids, "a": [0] * len(ids)} | ({} if persons is None else {"who": persons})
    return pa.table(columns)


def test_a_twin_of_the_digest_that_parties_once_computed():
    """The attack does what it says, or else the tests below would prove nothing."""
    other = twin(VICTIM)
    assert other != VICTIM
    assert len(other) == 24
    assert other.isprintable()
    assert len(set(unkeyed([other, VICTIM, *OTHERS]).tolist())) == 1 + len(OTHERS)


def test_a_twin_that_is_planted_does_not_tell_whether_the_victim_is_there():
    for secret in (SECRET, Secret.new()):
        party = Party(plan(), "one", secret)
        for ids in ([*OTHERS, twin(VICTIM)], [*OTHERS, twin(VICTIM), VICTIM]):
            assert party.encode(table_of(ids), "id").records == len(ids)


@pytest.mark.parametrize("seed", range(20))
def test_a_twin_person_is_another_person(seed):
    """Removing a person with as many records as the plan allows changes those, and nobody else's."""
    persons = [VICTIM] * MOST + [twin(VICTIM)] * MOST
    visits = [f"visit-{seed}-{i}" for i in range(2 * MOST)]
    party, kept = Party(plan(most=MOST), "one", SECRET), []
    for some in (slice(None), slice(MOST, None)):
        records = party.encode(
            table_of(visits[some], persons[some]), "id", read=ReadOptions(person="who")
        )
        of_all = set(party._checked(records).table.digests.tolist())
        kept.append(np.array([digest in of_all for digest in records.digests.tolist()]))
    assert changed_records(*kept) == MOST


def test_a_twin_stops_nobody_who_works_without_a_secret(tmp_path):
    ids = [*OTHERS, twin(VICTIM), VICTIM]
    one, two = table_of(ids), pa.table({"id": ids, "b": [i % 3 for i in range(len(ids))]})
    assert not check_table(one, "id", OpenSchema(SCHEMA, {}), "one", "t").problems
    _, parts = open_tables([one, two], "id", SCHEMA)
    assert [part.records for part in parts] == [len(ids)] * 2
    both = one.append_column("b", two["b"])
    assert evaluate(
        [one, two], both.drop_columns(["id"]), "id", SCHEMA, EvaluationOptions(ways=(1,))
    )["records"]["real"] == len(ids)
    assert Synthesizer(SCHEMA, id="id").fit(both, epsilon=1.0).sample(3).num_rows == 3


def test_ids_meet_at_all_parties_of_a_plan_and_nowhere_else():
    def digests(nonce="ids", name="one", secret=SECRET, kind=int):
        table = pa.table({"id": [kind(i) for i in range(50)], "a": [0] * 50, "b": [0] * 50})
        return Party(plan(nonce), name, secret).encode(table, "id").digests

    first = digests()
    assert np.array_equal(first, digests(name="two", kind=str))
    others = [digests("another"), digests(secret=Secret(bytes(32)))]
    assert not np.isin(first, np.concatenate(others)).any()


def test_a_record_of_a_person_is_a_keyed_digest_of_both_ids():
    """By an implementation of its own: SipHash of the two digests, 8 bytes each, each under a key of its own."""
    agreed = plan(most=MOST)
    persons = OTHERS[::-1]
    records = Party(agreed, "one", SECRET).encode(
        table_of(OTHERS, persons), "id", read=ReadOptions(person="who")
    )
    assert records.persons is not None
    keys = id_keys(SECRET, agreed.digest())
    for key, purpose in (
        (keys.records, "record ids"),
        (keys.persons, "person ids"),
        (keys.pairs, "record ids of persons"),
    ):
        assert key == derive(SECRET, agreed.digest(), purpose=purpose)[:16]
    assert len({keys.records, keys.persons, keys.pairs}) == 3
    assert records.persons.tolist() == [siphash(keys.persons, who.encode()) for who in persons]
    assert records.digests.tolist() == [
        siphash(
            keys.pairs,
            siphash(keys.persons, who.encode()).to_bytes(8, "little")
            + siphash(keys.records, id.encode()).to_bytes(8, "little"),
        )
        for id, who in zip(OTHERS, persons, strict=True)
    ]
    assert not np.isin(records.digests, records.persons).any()


def test_persons_and_ids_are_other_records_wherever_one_ends():
    """Ids with which texts that are merely joined would be the same, and the same id of every person."""
    ids, persons = ["1", "12", "2", "1", "x", "x"], ["23", "3", "1", "2", "1", "2"]
    records = Party(plan(most=MOST), "one", SECRET).encode(
        table_of(ids, persons), "id", read=ReadOptions(person="who")
    )
    assert records.records == len(set(records.digests.tolist())) == len(ids)


def test_ids_of_persons_are_normalised_as_those_of_records():
    def digests(ids, persons):
        read = ReadOptions(person="who", id_format=["strip", "unpad"])
        party = Party(plan(most=MOST), "one", SECRET)
        return party.encode(table_of(ids, persons), "id", read=read).digests

    assert np.array_equal(digests(["1", "2"], ["7", "8"]), digests([" 01", "002"], ["07 ", "08"]))


def test_without_a_secret_every_call_draws_keys_for_all_its_tables():
    tables = [table_of(OTHERS), pa.table({"id": OTHERS[::-1], "b": [0] * len(OTHERS)})]
    drawn = [open_tables(tables, "id", SCHEMA)[1] for _ in range(2)]
    for one, two in drawn:
        assert np.array_equal(one.digests, two.digests[::-1])
    assert not np.isin(drawn[0][0].digests, drawn[1][0].digests).any()
    keys = [IdKeys.drawn() for _ in range(50)]
    assert len({key for one in keys for key in (one.records, one.persons, one.pairs)}) == 150


def test_figures_of_an_evaluation_do_not_depend_on_the_keys_that_it_draws():
    rng = np.random.default_rng(0)
    real = pd.DataFrame(
        {"id": range(300), "a": rng.integers(0, 2, 300), "b": rng.integers(0, 3, 300)}
    )
    synthetic = real.drop(columns="id").sample(200, random_state=1)
    once, again = (
        evaluate(
            [real[["id", "a"]], real[["id", "b"]]],
            synthetic,
            "id",
            SCHEMA,
            EvaluationOptions(seed=3),
        )
        for _ in range(2)
    )
    assert once == again


def test_keys_are_16_bytes_and_do_not_show():
    for wrong in range(3):
        keys = [bytes(15) if i == wrong else bytes(16) for i in range(3)]
        with pytest.raises(TableError, match="16 bytes"):
            IdKeys(*keys)
    assert repr(KEYS) == "IdKeys()"
    with pytest.raises(TypeError, match="keys"):
        encode_table(table_of(OTHERS), "id", SCHEMA.part("one"))


def test_an_id_of_which_a_record_is_kept_is_not_among_those_left_out():
    assert only_in(np.array([3, 1, 3]), np.array([3])).tolist() == [1]


def test_a_uuid_with_letters_is_the_id_of_its_text():
    uuids = [uuid.UUID(int=0xABCDEF << 100 | i) for i in range(40)]
    stored = pa.chunked_array([pa.array([one.bytes for one in uuids], pa.uuid()).slice(3)])
    texts = pa.chunked_array([[str(one) for one in uuids[3:]]])
    assert plain_ids(stored, "ids").equals(plain_ids(texts, "ids"))
    key = b"k" * 16
    assert (digested(key, stored, "ids")[0] == digested(key, texts, "ids")[0]).all()


@pytest.mark.parametrize("kind", ["arrow", "parquet", "objects", "pandas", "polars"])
def test_uuids_are_ids_of_a_draft(kind, tmp_path):
    uuids = [uuid.UUID(int=0xABCDEF << 100 | i) for i in range(40)]
    columns = {"id": uuids, "age": [*range(40)]}
    stored = pa.table(
        {"id": pa.array([one.bytes for one in uuids], pa.uuid()), "age": columns["age"]}
    )
    if kind == "parquet":
        pq.write_table(stored, tmp_path / "t.parquet")
    if kind == "polars":
        polars = pytest.importorskip("polars")
        frame = polars.DataFrame(
            {"id": polars.Series(uuids, dtype=polars.Object), "age": range(40)}
        )
    table = {
        "arrow": lambda: stored,
        "parquet": lambda: tmp_path / "t.parquet",
        "objects": lambda: columns,
        "pandas": lambda: pd.DataFrame(columns),
        "polars": lambda: frame,
    }[kind]()
    drafted = draft_schema(table, "id").schema
    assert drafted.names == ("age",)
    assert drafted.ids == draft_schema(columns | {"id": [*map(str, uuids)]}, "id").schema.ids

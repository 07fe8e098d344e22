"""A party on a cluster: the bytes of one machine, the same sentences about bad tables, and no key in sight."""

import os
import signal
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from builders import KEYS, colliding_rows

from vertimrf.columns.column import Attribute
from vertimrf.errors import PlanError, TableError, VertiMRFError
from vertimrf.files.state import STATE
from vertimrf.keys import KeyRing
from vertimrf.party.party import Party
from vertimrf.party.persons import beyond
from vertimrf.party.records import Composite, InMemory
from vertimrf.party.secret import Secret
from vertimrf.plan.impossible import Impossible
from vertimrf.plan.schema import Schema
from vertimrf.privacy.noise import FixedNoise
from vertimrf.releases.count_sketches.encoding import CountSketchEncoder
from vertimrf.releases.count_sketches.parameters import CountSketches
from vertimrf.tables.columns import encode_table
from vertimrf.tables.impossible import ruled_out

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
dd = pytest.importorskip("dask.dataframe")
from dask.delayed import delayed  # noqa: E402
from planning import plan_with  # noqa: E402

from vertimrf.cluster import encode_partitions  # noqa: E402
from vertimrf.cluster.records import submit  # noqa: E402
from vertimrf.cluster.work import Quiet  # noqa: E402
from vertimrf.tables.read_options import ReadOptions  # noqa: E402

ROWS, PARTS = 4000, 4
SHARED = Attribute.categorical("sex", ["f", "m"])
OWN = (
    Attribute.integer("a", 4),
    SHARED,
    Attribute.integer("long", 400),
    Attribute.integer("b", 3),
    Attribute.numeric("pay", [0, 50, 100, 400], integral=True),
)
SCHEMA = Schema.of(
    {"one": OWN, "two": (SHARED, Attribute.integer("c", 5))},
    impossible=[Impossible.of(a=3, b=2)],
    rules=["total = a + b"],
)
MINE = SCHEMA.encoding("one")
SECRET = Secret(bytes(range(32)))


def frame(rows=ROWS):
    rng = np.random.default_rng(3)
    ids = [f"P{i:05d}" for i in rng.permutation(rows)]
    a = rng.integers(0, 3, rows)
    columns = {
        "a": a,
        "sex": rng.choice(["f", "m"], rows),
        "long": rng.integers(0, 400, rows),
        "pay": rng.integers(0, 400, rows),
        "b": (a + a // 2) % 3,
    }
    return pd.DataFrame({"id": ids, **columns, "who": rng.integers(0, rows // 3, rows)})


def plan_of(**options):
    return plan_with(SCHEMA, expected_records=ROWS, message_bytes=200_000, **options)


def message(plan, records, noise=FixedNoise):
    return Party(plan, "one", SECRET, noise(7)).run(records).to_bytes(plan)


def one_machine(plan, table, **options):
    return message(plan, encode_table(table, "id", MINE, ReadOptions(**options), keys=KEYS))


def encode(client, source, schema=SCHEMA, **options):
    return encode_partitions(source, client, "id", schema, "one", ReadOptions(**options), keys=KEYS)


@pytest.fixture(scope="module")
def client():
    with (
        # A worker that starts anew on a busy machine may take longer than the 15 seconds that it would be given.
        dask.config.set({"distributed.deploy.lost-worker-timeout": "120 s"}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit="2GiB"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_the_message_is_that_of_one_machine(client, tmp_path, monkeypatch):
    """However the table is cut and given, also where an equation gives a column, whatever the encoder; and the record of a release takes one for the other."""
    monkeypatch.setattr("vertimrf.cluster.records.PASS_CELLS", 4000)
    monkeypatch.setattr("vertimrf.cluster.records.RANGE_RECORDS", 1500)
    table = frame()
    for i, part in enumerate(np.split(np.arange(ROWS), [10, 1500, 1500])):
        table.iloc[part].to_parquet(tmp_path / f"part{i}.parquet", index=False)
    without = table.assign(total=table["a"] + table["b"]).drop(columns="b")
    folder, cut = (
        encode(client, tmp_path),
        encode(client, dd.from_pandas(without, npartitions=PARTS)),
    )
    assert folder.counts == (10, 1490, 0, 2500)
    joined = encode_partitions(tmp_path, client, "id,who", SCHEMA, "one", keys=KEYS)
    same = encode_table(table, "id,who", MINE, keys=KEYS)
    assert joined.keyed_sum(bytes(32)) == InMemory(same).keyed_sum(bytes(32))
    plan = plan_of()
    assert plan.agreement_of(0)
    assert message(plan, folder) == message(plan, cut) == one_machine(plan, table)
    pairs = plan_of(encoder="scheduled-pairs")
    assert message(pairs, cut) == one_machine(pairs, table)
    ring = KeyRing.new(plan.party_names)
    plan = replace(plan, public_keys=ring.public)
    party = Party(plan, "one", SECRET, key=ring.parties["one"])
    released = party.release(folder)
    monkeypatch.setenv(STATE, str(tmp_path / "another machine"))
    assert party.release(encode_table(table, "id", MINE, keys=KEYS)) == released
    with pytest.raises(PlanError, match="one place"):
        message(plan_of(encoder="grr"), cut)


def test_records_of_persons_are_left_out_as_on_one_machine(client, monkeypatch):
    monkeypatch.setattr("vertimrf.cluster.records.RANGE_RECORDS", 1500)
    table, plan = frame(), plan_of(records_per_person=2)
    pieces = np.array_split(np.arange(ROWS), PARTS)
    records = encode(client, [delayed(table.iloc[rows]) for rows in pieces], person="who")
    limited = records.limited(2, bytes(32))
    one = encode_table(table, "id", MINE, read=ReadOptions(person="who"), keys=KEYS)
    assert records.beyond(2) == beyond(one.persons, 2)
    kept = InMemory(one).limited(2, bytes(32))
    assert limited.count == kept.count < ROWS
    assert limited.limited(2, bytes(32)) is limited
    assert message(plan, records) == one_machine(plan, table, person="who")
    with pytest.raises(TableError, match="every table must say whose"):
        message(plan, encode(client, [delayed(table)]))
    with pytest.raises(TableError, match="no table may name others"):
        message(plan_of(), records)


def test_records_that_do_not_fit_are_dropped_as_on_one_machine(client, monkeypatch):
    """The same ones, and told of in the same words; also where one id is in several partitions."""
    monkeypatch.setattr("vertimrf.cluster.records.RANGE_RECORDS", 1500)
    table, plan = frame(), plan_of(records_per_person=2)
    ruled = ruled_out(SCHEMA, "one")
    repeated, gaps, outside, impossible = (table.copy() for _ in range(4))
    names = ["id", "who"]
    repeated.loc[[1100, 2200, 3900, 3950], names] = table[names].to_numpy()[[0, 3000, 5, 1101]]
    # The same id of another person is another record.
    repeated.loc[[100, 2999], "id"] = table["id"][[3, 99]].tolist()
    gaps.loc[[1100, 2200, 3900, 3950], "id"] = None
    gaps.loc[[1, 2], "who"] = np.nan
    outside.loc[[1100, 3900], "b"] = 9
    impossible.loc[[2500, 3000], ["a", "b"]] = 3, 2
    every = pd.concat([repeated[:1500], gaps[1500:2500], outside[2500:2900], impossible[2900:]])
    for changed, words in (
        (repeated, "4 records repeat"),
        (gaps, "row 1101, 2201, 3901, ..."),
        (outside, f"id {table['id'][1100]!r}"),
        (impossible, "2 records (the first is row 2501) have what the schema calls impossible"),
        (every, "do not fit"),
    ):
        one = encode_table(
            changed, "id", MINE, read=ReadOptions(person="who"), keys=KEYS, impossible=ruled
        )
        cut = dd.from_pandas(changed, npartitions=PARTS, sort=False)
        many = encode(client, cut, person="who")
        assert words in " ".join(one.dropped.lines())
        assert sorted(many.dropped.lines()) == sorted(one.dropped.lines())
        assert many.count == one.records
        given = message(plan, many)
        assert given == message(plan, one)
    # Where nobody named what is impossible, the party itself leaves it out.
    untold = encode(client, cut, Schema.of({"one": OWN}), person="who")
    assert untold.count > many.count
    assert message(plan, untold) == given


@pytest.mark.parametrize("most", [1, 2])
def test_removing_a_person_moves_every_answer_of_a_cluster_by_no_more_than_her_records(
    client, most
):
    """One with rows for everybody's ids, in other partitions, and two more."""
    rng = np.random.default_rng(1)
    rows = colliding_rows(rng, ["a", "long", "b", "pay"]).assign(sex="f")
    shadow = rows.drop_duplicates("id").assign(who="shadow", a="0", long="0", b="0", pay="0")
    rows = pd.concat([shadow, rows])
    who = "id" if most == 1 else "who"
    mine = partial(encode, client, person=None if most == 1 else who)
    encoder = partial(CountSketchEncoder, CountSketches(9, 64, 60.0, 2, (2, 2)), (0, 1), bytes(32))
    composites = [Composite((place,), (np.arange(size) % 2,)) for place, size in ((0, 4), (3, 3))]

    def answers(frame):
        cut = np.array_split(np.arange(len(frame)), 3)
        records = mine([delayed(frame.iloc[part]) for part in cut]).limited(most, bytes(32))
        marginals = records.marginals([(0,), (3,), (0, 3), (0, 1, 3), (5,)], {})
        return records.count, [*marginals], records.encoded(encoder, composites)._state

    persons = ["shadow", "p0", "p1"] if most > 1 else ["v0", "v1", "v2"]
    count, marginals, state = answers(rows)
    moved = []
    for person in persons:
        less, its, other = answers(rows[rows[who] != person])
        moved.append(count - less)
        assert all((one >= two).all() for one, two in zip(marginals, its, strict=True))
        assert [int((one - two).sum()) for one, two in zip(marginals, its, strict=True)] == [
            moved[-1]
        ] * 5
        assert (np.abs(state - other).sum(axis=(1, 2)) <= 2 * moved[-1]).all()
    assert 0 <= min(moved) <= max(moved) == most


def test_a_table_without_records_is_released(client):
    table = frame()
    plan = plan_of()
    for empty in (table.assign(id=None), table.iloc[:0]):
        cut = encode(client, [delayed(empty), delayed(empty)])
        assert cut.count == 0
        assert message(plan, cut) == one_machine(plan, empty)


def test_refusals_are_those_of_the_whole_table(client, tmp_path):
    table = frame().drop(columns=["who", "b"])
    with pytest.raises(VertiMRFError) as one:
        encode_table(table, "id", MINE, keys=KEYS)
    with pytest.raises(VertiMRFError) as many:
        encode(client, dd.from_pandas(table, npartitions=PARTS, sort=False))
    assert "lacks the column 'b'" in str(one.value)
    assert str(many.value) == str(one.value)
    for source, sentence in (
        (tmp_path, "has no files"),
        (tmp_path / "absent", "no folder"),
        (table, "no table of partitions"),
    ):
        with pytest.raises(TableError, match=sentence):
            encode(client, source)


def failing(key, given):
    raise ValueError(f"{len(key)} bytes do not help")


def test_keys_are_not_shown_by_names_or_logs(client):
    key = b"0123456789abcdef"
    assert key.decode() not in repr(Quiet(partial(failing, key)))
    first, again = (submit(client, "sketches", partial(failing, key), 1) for _ in range(2))
    assert first.key != again.key
    with pytest.raises(ValueError, match="16 bytes do not help"):
        first.result()
    logs = str(client.get_worker_logs()) + str(client.get_scheduler_logs())
    assert first.key in logs
    assert key.decode() not in logs


def deadly():
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
def test_a_task_that_kills_workers_is_one_sentence(client):
    with pytest.raises(TableError, match=r"workers died of one task.*nothing is released"):
        encode(client, [delayed(frame()), delayed(deadly, pure=False)()])
    client.wait_for_workers(2, timeout=120)


@pytest.mark.slow
def test_a_worker_that_is_killed_changes_nothing(client):
    """Killed between two questions, so that codes and sums are lost with it; a fresh one takes its place."""
    plan, table = plan_of(), frame()
    asked = []

    class Killing(FixedNoise):
        def gaussian(self, values, sigma):
            asked.append(sigma)
            if len(asked) in (3, 9):
                victims = client.run(os.getpid)
                os.kill(sorted(victims.values())[0], signal.SIGKILL)
            return super().gaussian(values, sigma)

    records = encode(client, dd.from_pandas(table, npartitions=8))
    workers = set(client.run(os.getpid).values())
    assert message(plan, records, Killing) == one_machine(plan, table)
    assert len(asked) > 9
    client.wait_for_workers(2, timeout=120)
    assert set(client.run(os.getpid).values()) != workers

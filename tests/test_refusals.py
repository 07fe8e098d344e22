"""No release hangs on a single record: what does not fit is dropped, one by one, and told of to the party's operator alone."""

import contextlib
import encodings
import encodings.aliases
import itertools
import os
import pkgutil
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from builders import KEYS, rows_of
from click.testing import CliRunner
from commands import good, refused
from commands import run as command
from hypothesis import given, settings
from hypothesis import strategies as st
from planning import plan_with

from vertimrf import (
    Attribute,
    Impossible,
    OpenSchema,
    Party,
    PlanOptions,
    ReadOptions,
    Schema,
    Secret,
    VertiMRFError,
    synthesize,
)
from vertimrf.cli import main
from vertimrf.errors import TableError
from vertimrf.files.state import STATE
from vertimrf.keys import KeyRing
from vertimrf.party.check import check_table
from vertimrf.runs.exchange import Exchange, take_turn
from vertimrf.runs.party_run import PartyRun
from vertimrf.runs.server_run import ServerRun
from vertimrf.tables.columns import Columns, encode_table
from vertimrf.tables.impossible import ruled_out
from vertimrf.tables.sources import open_pieces

RECORDS = 300
WARD = Attribute.categorical("ward", ["a", "b", "c"], missing=True)
HOSPITAL = (Attribute.integer("smoker", 2), WARD, Attribute.integer("n", 9))
SCHEMA = Schema.of(
    {"hospital": HOSPITAL, "insurer": [Attribute.integer("tariff", 3)]},
    impossible=[Impossible.of(smoker=1, ward="c")],
)
# A row that does not fit, and what its operator is told.
MISFITS = {
    "missing": (b"900,,a,1", "'smoker' has 1 record (id '900') without a value"),
    "outside": (b"900,7,a,1", "'smoker' holds '7', outside the schema"),
    "no number": (b"900,x,a,1", "'smoker' holds 'x', outside the schema"),
    "too long a number": (b"900,1,a," + b"9" * 5000, "'n' holds '999"),
    "no category": (b"900,1,d,1", "'ward' holds 'd', outside the schema"),
    "no text": (b"900,1,\xff,1", r"'ward' holds '\\xff', outside the schema"),
    "no id": (b",1,a,1", "1 record has no id (row 301)"),
    "an id twice": (b"5,1,b,8", "1 record repeats an id that another has (such as '5')"),
    "impossible": (b"900,1,c,1", "1 record (row 301) has what the schema calls impossible"),
    "too few cells": (b"900,1", "1 row has more or fewer cells than the header ('900,1')"),
    "too many cells": (
        b"900,1,a,1,1",
        "1 row has more or fewer cells than the header ('900,1,a,1,1')",
    ),
}


def lines_of(records):
    """A header and records that fit."""
    rng = np.random.default_rng(3)
    rows = zip(
        rng.integers(0, 2, records),
        rng.integers(0, 2, records),
        rng.integers(0, 8, records),
        strict=True,
    )
    return [
        b"id,smoker,ward,n",
        *(f"{i},{s},{'ab'[w]},{n}".encode() for i, (s, w, n) in enumerate(rows)),
    ]


def write(path, lines):
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


@pytest.fixture(scope="module")
def agreed():
    ring = KeyRing.new([name for name, _ in SCHEMA.parties])
    plan = plan_with(SCHEMA, expected_records=RECORDS, message_bytes=50_000)
    return replace(plan, public_keys=ring.public), ring


def accepted(folder, lines):
    """A hospital's run as far as the accepted plan."""
    folder.mkdir()
    (folder / "exchange").mkdir()
    planning = PlanOptions(expected_records=RECORDS, message_bytes=50_000)
    server = ServerRun.create(folder / "server", schema=SCHEMA, epsilon=1.0, planning=planning)
    tables = {
        "hospital": write(folder / "hospital.csv", lines),
        "insurer": write(
            folder / "insurer.csv",
            [b"id,tariff", *(f"{i},{i % 3}".encode() for i in range(RECORDS))],
        ),
    }
    parties = {
        n: PartyRun.create(folder / f"{n}.run", name=n, table=table, id="id")
        for n, table in tables.items()
    }
    back = server.advance({name: run.advance({}) for name, run in parties.items()})
    run = parties["hospital"]
    run.advance({"plan": back["hospital"]["plan"]})
    assert server.plan is not None
    run.accept(server.plan.fingerprint)
    return run


def given_out(folder, lines):
    """What `vertimrf run party` says with an accepted plan; the folder that it has then, and the message as the server opens it."""
    run = accepted(folder, lines)
    machine = CliRunner(env={STATE: str(folder / "state")})
    result = machine.invoke(
        main, ["run", "party", str(run.folder), "--exchange", str(folder / "exchange")]
    )
    out = folder / "exchange" / "parties" / "hospital" / "message"
    return result, run, out.read_bytes()[:-32] if out.exists() else b""


@pytest.mark.parametrize("reason", MISFITS)
def test_what_is_released_is_the_table_without_them(tmp_path, agreed, reason):
    plan, _ = agreed
    party = Party(plan, "hospital", Secret(bytes(range(32))))
    kept = party.encode(write(tmp_path / "without.csv", lines_of(RECORDS)), "id")
    header, *rows = lines_of(RECORDS)
    # First, last and in the middle.
    for place in (0, 150, RECORDS):
        encoded = party.encode(
            write(
                tmp_path / "with.csv", [header, *rows[:place], MISFITS[reason][0], *rows[place:]]
            ),
            "id",
        )
        assert encoded.dropped.records == 1
        if reason == "an id twice":
            assert len(np.unique(encoded.digests)) == encoded.records == kept.records
            continue
        assert encoded.digests.tolist() == kept.digests.tolist()
        assert encoded.codes.tolist() == kept.codes.tolist()


def test_a_check_finds_the_same_before_anything_is_accepted(tmp_path, agreed):
    plan, _ = agreed
    table = write(
        tmp_path / "table.csv", [*lines_of(RECORDS), *(row for row, _ in MISFITS.values())]
    )
    party = Party(plan, "hospital", Secret(bytes(range(32))))
    schema = OpenSchema(plan.schema, {})
    checked = check_table(table, "id", schema, "hospital", "The table", plan=plan)
    read = party.encode(table, "id")
    assert list(checked.problems) == [
        reason.sentence.replace(str(table), "The table") for reason in read.dropped.reasons
    ]
    assert read.dropped.records == len(MISFITS)
    assert (
        f"{len(MISFITS)} of them do not fit, and would be left out; only this party learns that."
        in checked.facts
    )
    plan.save(tmp_path / "plan.json")
    refused(f"check {table} --plan {tmp_path}/plan.json --name hospital --id id")


@pytest.mark.parametrize(
    "rows",
    [[], [MISFITS["missing"][0]], [b"1"]],
    ids=["none", "one that does not fit", "too few cells"],
)
def test_a_table_without_a_record_that_fits_is_released(tmp_path, rows):
    result, _, message = given_out(tmp_path / "none", [*lines_of(0), *rows])
    assert result.exit_code == 0, result.output
    assert message


def test_what_follows_from_the_form_of_a_file_is_refused(tmp_path):
    """No record decides any of these."""
    for number, (lines, words) in enumerate(
        (
            ([b"who,smoker,ward,n", b"1,1,a,1"], "no id column 'id'"),
            ([b"id,id,smoker,ward,n"], "two columns 'id'"),
        )
    ):
        # Before there is a run.
        with pytest.raises(TableError, match=words):
            accepted(tmp_path / str(number), lines)
        assert not (tmp_path / str(number) / "hospital.run").exists()
    result, _, message = given_out(tmp_path / "n", [b"id,smoker,ward"])
    assert result.exit_code == 2
    assert "lacks the column 'n'" in result.output
    assert not message


def outward(folder, header, rows):
    """What others can see of a party while its operator types these commands: exit codes, and which files it gives."""
    folder.mkdir()
    stated = replace(SCHEMA, ids="9")
    planning = PlanOptions(expected_records=RECORDS, message_bytes=50_000)
    place = folder / "x"
    place.mkdir()
    server = ServerRun.create(folder / "s", schema=stated, epsilon=1.0, planning=planning)
    write(folder / "insurer.csv", [b"id,tariff", b"1,1"])
    insurer = PartyRun.create(folder / "i", name="insurer", table=folder / "insurer.csv", id="id")
    server.advance({"insurer": insurer.advance({})})
    table = write(folder / "hospital.csv", [header, *rows])
    given, text = [], []

    def type_in(*words, answer=None):
        done = command(*words, answer=answer)
        names = sorted(p.name for p in place.rglob("hospital/*") if p.parts[-3] == "parties")
        given.append((done.exit_code, names))
        text.append(done.output)

    type_in(f"run party {folder}/h --name hospital --id id --exchange {place} --table", table)
    take_turn(server, Exchange(place))
    assert server.plan is not None
    fingerprint = server.plan.fingerprint
    going_on = f"run party {folder}/h"
    type_in(going_on)
    for answer in (None, "n\n"):
        type_in(f"accept {folder}/h {fingerprint}", answer=answer)
        type_in(going_on)
    type_in(f"accept {folder}/h {fingerprint}", answer="y\n")
    os.utime(table, (1, 1))
    type_in(going_on)
    type_in(f"accept {folder}/h {fingerprint} --anyway")
    type_in(going_on)
    return given, "".join(text)


HEADER, *FITTING = lines_of(RECORDS)
PADDED = [b"0" + row for row in FITTING[1:]]
REPEATED = [b"1,1,a,1"] * RECORDS
# Tables that differ in one record, and what only a check of the second says.
EDGES = {
    "one id of another form": (FITTING, [*FITTING, b"x,1,a,1"], "1 of 301 ids do not have"),
    "no id of the form": ([*FITTING[:1], *PADDED], PADDED, "299 of 299 ids do not have"),
    "few ids": (
        [*FITTING[: RECORDS // 9], *REPEATED[RECORDS // 10 :]],
        [*FITTING[: RECORDS // 10 - 1], *REPEATED[RECORDS // 10 - 1 :]],
        "have only 29 ids",
    ),
    "no record": (FITTING[:1], [], "has no records"),
    "one that does not fit": (FITTING, [*FITTING, b"900,7,a,1"], "outside the schema"),
}


@pytest.mark.parametrize("edge", EDGES)
def test_no_record_decides_whether_a_run_waits_for_its_operator(tmp_path, monkeypatch, edge):
    """A run waits for one word about every table, and for nothing else."""
    monkeypatch.setenv(STATE, str(tmp_path / "state"))
    one, other, words = EDGES[edge]
    (given, said), (its, its_text) = (
        outward(tmp_path / name, HEADER, rows) for name, rows in (("one", one), ("other", other))
    )
    assert given == its
    assert words in its_text
    assert words not in said
    offer, everything = ["offer"], ["envelopes", "message", "offer"]
    waits, refuses = (0, offer), (2, offer)
    assert given == [
        *(waits, waits),
        # Nobody answers, and no.
        *(refuses, waits, refuses, waits),
        # Yes; but the table is written again before the message is made.
        *(waits, waits),
        *(waits, (0, everything)),
    ]


def played(folder, misfits):
    """A party's run as far as its message, and all that it put into the exchange."""
    run = accepted(folder, [*lines_of(RECORDS), *misfits])
    take_turn(run, Exchange(folder / "exchange"))
    put = {
        str(p.relative_to(folder / "exchange")): p.read_bytes()
        for p in (folder / "exchange").rglob("*")
        if p.is_file()
    }
    return run, put


def test_a_run_in_a_folder_puts_down_what_it_left_out_for_its_operator_alone(
    tmp_path,
):
    none, put = played(tmp_path / "none", [])
    some, others = played(tmp_path / "some", [row for row, _ in MISFITS.values()])
    assert (
        set(put)
        == set(others)
        == {f"parties/hospital/{name}" for name in ("offer", "envelopes", "message")}
    )
    assert {name: len(data) for name, data in put.items()} == pytest.approx(
        {name: len(data) for name, data in others.items()}, abs=64
    )
    assert not any(b"left out" in data or b"outside the schema" in data for data in others.values())
    assert [step.status for step in some.state().steps] == [
        step.status for step in none.state().steps
    ]
    assert none.state().left_out == ()
    assert none.state().stopped is some.state().stopped is None
    dropped = some.state().left_out
    assert dropped[0] == f"{len(MISFITS)} records do not fit and are left out; this stays here."
    assert "Left out: 11 records do not fit" in some.state().text()
    assert some.state().to_json()["left_out"] == dropped
    assert "1 record repeats an id that another has" in good(f"status {some.folder}")
    # A file in both folders, for its owner alone.
    for run in (none, some):
        assert (run.folder / "left-out").stat().st_mode & 0o777 == 0o600


def test_a_trial_drops_too(tmp_path):
    table = write(
        tmp_path / "hospital.csv", [*lines_of(RECORDS), *(row for row, _ in MISFITS.values())]
    )
    other = write(
        tmp_path / "insurer.csv",
        [b"id,tariff", *(f"{i},{i % 3}".encode() for i in range(RECORDS)), b"7,x"],
    )
    trial = synthesize(
        [table, other],
        "id",
        5.0,
        schema=SCHEMA,
        planning=PlanOptions(expected_records=RECORDS, message_bytes=50_000),
    )
    assert {name: left_out.records for name, left_out in trial.dropped.items()} == {
        "hospital": len(MISFITS),
        "insurer": 1,
    }
    assert not any(word in str(trial.to_json()) for word in ("dropped", "left out"))


CELLS = st.sampled_from(["0", "1", "2", "", "x", "9" * 4400, "b"])
IDS, PERSONS = st.sampled_from(["u", "v", "w", "", "7", "07"]), st.sampled_from(["p", "q", ""])
ROWS = st.lists(st.tuples(IDS, CELLS, CELLS, PERSONS), max_size=14)
DOMAIN = Schema.of(
    {"one": [Attribute.integer("x", 2, missing=True), Attribute.categorical("y", ["0", "1", "b"])]},
    impossible=[Impossible.of(x=0, y="1")],
)


def as_arrow(rows):
    columns = zip(*rows, strict=True) if rows else ((),) * 4
    return pa.table(
        {
            name: pa.array(column, pa.string())
            for name, column in zip(("id", "x", "y", "who"), columns, strict=True)
        }
    )


def kept_of(source, person=None):
    """By record, whose it is and its codes."""
    table = encode_table(
        source,
        "id",
        DOMAIN.attributes,
        read=ReadOptions(person=person, id_format=["unpad"]),
        keys=KEYS,
        impossible=ruled_out(DOMAIN, "one"),
    )
    assert len(np.unique(table.digests)) == table.records
    persons = np.zeros(table.records) if table.persons is None else table.persons
    return {
        int(d): (int(p), *c)
        for d, p, c in zip(table.digests, persons, table.codes.T.tolist(), strict=True)
    }


@settings(max_examples=60, deadline=None)
@given(
    rows=ROWS,
    more=ROWS,
    order=st.randoms(use_true_random=False),
    size=st.sampled_from([1, 3, 1000]),
)
def test_all_rows_of_one_id_change_one_record(rows, more, order, size):
    """Tables that differ in one id, whatever rows it has, give tables that differ in one record at most; in any order."""
    one = "new"
    theirs = kept_of(as_arrow(rows))
    together = [*rows, *((one, *rest) for _, *rest in more)]
    order.shuffle(together)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("vertimrf.tables.arrow.PIECE_ROWS", size)
        others, hers = without(one, kept_of(as_arrow(together)))
    assert others == theirs
    # And what there is of that one depends on its own rows alone.
    assert hers == kept_of(as_arrow([(one, *rest) for _, *rest in more]))


def without(one, kept):
    """The records of all other ids, and those of this one."""
    (digest,) = encode_table(pa.table({"id": [one]}), "id", (), keys=KEYS).digests.tolist()
    return (
        {id: record for id, record in kept.items() if id != digest},
        {id: record for id, record in kept.items() if id == digest},
    )


@settings(max_examples=60, deadline=None)
@given(rows=ROWS, more=ROWS, order=st.randoms(use_true_random=False))
def test_all_rows_of_one_person_change_her_records_alone(rows, more, order):
    """Whatever ids they have: those of other persons' rows are other records."""
    hers = [(*rest, "new") for *rest, _ in more]
    together = [*rows, *hers]
    order.shuffle(together)
    kept = kept_of(as_arrow(together), "who")
    assert kept == kept_of(as_arrow(rows), "who") | kept_of(as_arrow(hers), "who")


def test_an_id_takes_the_memory_of_one_record_of_a_piece(monkeypatch):
    """A compressed file can hold 1,000 times its size of rows that repeat one: the same is said of them all."""
    rows = [(f"r{i % 3}", str(i % 2), "0", "p") for i in range(1000)]
    columns = Columns("id", DOMAIN.attributes, "t", KEYS)
    for size, most in ((1000, 3), (100, 30), (1, 1000)):
        monkeypatch.setattr("vertimrf.tables.arrow.PIECE_ROWS", size)
        pieces = open_pieces(as_arrow(rows))
        encoded = columns.encode(pieces)
        assert len(encoded.digests) == most
        table = columns.settled(encoded, pieces)
        assert table.records == 3
        assert table.codes.tolist() == [[0] * 3, [0] * 3]
        assert table.dropped.lines() == (
            "997 records do not fit and are left out; this stays here.",
            "t, id column 'id': 1,000 records have only 3 ids, and a record needs an id of its own; name another column.",
        )


@pytest.mark.parametrize("person, left", [(None, 1), ("who", 2)])
def test_which_row_of_a_record_stays_depends_on_no_order(person, left):
    """Also where rows differ in nothing but whose they are, or one of them does not fit."""
    rows = [
        ("u", "0", "0", "q"),
        ("u", "0", "0", "p"),
        ("u", "1", "0", "p"),
        ("u", "0", "1", "p"),
        ("v", "1", "b", "p"),
    ]
    orders = itertools.permutations(rows)
    kept = [kept_of(as_arrow(list(order)), person) for order in orders]
    assert all(one == kept[0] for one in kept)
    # The smallest codes of those that fit: x = 0 and y = "1" is impossible.
    assert sorted(record[1:] for record in kept[0].values()) == [(0, 0)] * left + [(1, 2)]


BYTES = st.lists(
    st.sampled_from([b"u", b"v", b"1", b"0", b"\xff", b"\xc3", b"a b", b""]), min_size=1, max_size=5
).map(b",".join)


@settings(max_examples=100, deadline=None)
@given(
    rows=st.lists(BYTES.filter(bool), max_size=8),
    damaged=st.lists(BYTES, max_size=4),
    place=st.integers(0, 8),
)
def test_rows_of_a_file_that_are_damaged_touch_no_other(tmp_path_factory, rows, damaged, place):
    folder = tmp_path_factory.mktemp("rows")
    added = [b"new," + row for row in damaged]
    header = b"id,x,y,who"
    theirs = kept_of(write(folder / "without.csv", [header, *rows]))
    kept = kept_of(write(folder / "with.csv", [header, *rows[:place], *added, *rows[place:]]))
    assert without("new", kept)[0] == theirs


def every_encoding():
    aliases = encodings.aliases.aliases
    return sorted(
        {
            *(module.name for module in pkgutil.iter_modules(encodings.__path__)),
            *aliases,
            *aliases.values(),
        }
    )


NO_TEXT = (
    "base64_codec",
    "bz2_codec",
    "hex_codec",
    "quopri_codec",
    "rot_13",
    "rot13",
    "uu_codec",
    "zlib_codec",
    "zip",
    "hex",
    "idna",
    "punycode",
    "undefined",
    "unicode_escape",
    "raw_unicode_escape",
    "klingon",
    "utf\0",
)


@pytest.mark.parametrize("name", NO_TEXT)
def test_what_no_text_file_is_written_in_is_refused(name):
    with pytest.raises(
        TableError, match=r"There is no text encoding .*; give a name such as utf-8"
    ):
        ReadOptions(encoding=name)


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
def test_every_other_encoding_of_pythons_is_read(tmp_path):
    """Also files that are in another one: a sentence, or rows that nobody knows, and never an error of Arrow's or of a codec."""
    wanted = [{"id": "1", "x": "a"}, {"id": "2", "x": "b"}]
    text, read = "id,x\n1,a\n2,b\n", 0
    for name in every_encoding():
        try:
            csv = ReadOptions(encoding=name)
        except TableError:
            continue
        path, read = tmp_path / "table.csv", read + 1
        path.write_bytes(text.encode(name))
        assert rows_of(path, csv)[0] == wanted, name
        others = (text.encode(), text.encode("utf-16"), text.encode(name) + b"\x81\x1b$\\x\\")
        for data in (*others, bytes(range(256)) * 3, b"\xff\xfe\x00"):
            path.write_bytes(data)
            with contextlib.suppress(VertiMRFError):
                rows_of(path, csv)
    # Fewer would say that names were refused which are fine.
    assert read > 350


def test_bytes_that_are_no_text_stay_in_their_cell(tmp_path):
    path = tmp_path / "table.csv"
    for name, broken, seen in (
        ("utf-8", b"\xe9t\xe9", "\\xe9t\\xe9"),
        ("cp1252", b"\x81", "\\x81"),
        ("ascii", b"\xff", "\\xff"),
    ):
        path.write_bytes(b"id,x\n1,a\n2," + broken + b"\n3,c\n")
        rows, _ = rows_of(path, ReadOptions(encoding=name))
        assert [row["x"] for row in rows] == ["a", seen, "c"]

"""The party's side of a run over Flower: what it takes, what it gives, and what it keeps to itself."""

import os
import threading

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("flwr")

from flwr.app import ConfigRecord, Context, Message, RecordDict

from vertimrf.errors import TableError
from vertimrf.flower import client_app
from vertimrf.flower.client_app import app, carried
from vertimrf.flower.parcel import Parcel
from vertimrf.runs.exchange import Exchange
from vertimrf.runs.party_run import PartyRun
from vertimrf.runs.server_run import ServerRun

pytestmark = pytest.mark.usefixtures("within_a_run")

ALL = {"offer": 1 << 20, "envelopes": 1 << 20, "message": 1 << 24}


def ask(parcel, settings, **run):
    """What the app answers at a node of these settings."""
    content = parcel if isinstance(parcel, RecordDict) else parcel.to_records()
    context = Context(1, 7, settings, RecordDict(), run)
    reply = app(Message(content, 7, "query.exchange"), context)
    assert not reply.has_error()
    return Parcel.from_records(reply.content)


def planned(folders):
    """What the hospital answers to the plan that the server made of all offers."""
    server = ServerRun(folders.server)
    offers = {n: ask(Parcel(n, wants=ALL), folders.node(n)) for n in server.parties}
    for name, offer in offers.items():
        assert (offer.party, offer.word, set(offer.files)) == (name, "plan", {"offer"})
    out = server.advance({name: offer.files for name, offer in offers.items()})
    asked = Parcel("hospital", wants=ALL, files=out["hospital"])
    return ask(asked, folders.node("hospital"))


def test_it_takes_the_plan_and_releases_nothing_before_that_is_accepted(folders):
    answer = planned(folders)
    assert (answer.word, set(answer.files)) == ("acceptance", {"offer"})
    assert folders.party("hospital").plan is not None
    # What the server has it does not get again.
    assert not ask(Parcel("hospital"), folders.node("hospital")).files


def test_files_for_another_party_are_left_alone(folders):
    for party in ("", "insurer"):
        ask(Parcel(party, files={"plan": b"nonsense"}), folders.node("hospital"))
    assert not folders.party("hospital").state().refused


def test_a_node_that_is_set_up_for_another_party_gives_nothing(folders):
    node = folders.node("hospital") | {"party": "insurer"}
    assert ask(Parcel("", wants=ALL), node) == Parcel("insurer", "failed")


@pytest.mark.parametrize(
    "error",
    [TableError("Column 'diagnosis' has the value 'HIV'."), KeyError("HIV"), MemoryError("HIV")],
)
def test_no_word_of_an_error_leaves_the_machine(folders, monkeypatch, error):
    def fails(self, received):
        raise error

    monkeypatch.setattr(PartyRun, "advance", fails)
    reply = app(
        Message(Parcel("hospital", wants=ALL).to_records(), 7, "query.exchange"),
        Context(1, 7, folders.node("hospital"), RecordDict(), {}),
    )
    assert Parcel.from_records(reply.content).word == "failed"
    assert b"HIV" not in b"".join(record.deflate() for record in reply.content.values())


def add_row(path, cells):
    """Write a table anew, with a row more that has these cells, if there are any."""
    whole = pq.read_table(path)
    row = pa.table({"id": [5000], "a": [1], "total": [2]} | cells, whole.schema)
    pq.write_table(pa.concat_tables([whole, row] if cells else [whole]), path)


@pytest.mark.parametrize(
    "added", [{}, {"a": [99], "total": [100]}, {"total": [None]}, {"id": [None]}, {"id": [7]}]
)
def test_a_record_that_does_not_fit_changes_no_answer(folders, added):
    """One word and the same files, whatever a record holds: whoever wrote the schema could have asked for just that."""
    run = folders.party("hospital")
    add_row(run.settings.table, added)
    planned(folders)
    folders.accept("hospital")
    answer = ask(Parcel("hospital", wants=ALL), folders.node("hospital"))
    assert (answer.party, answer.word, set(answer.files)) == (
        "hospital",
        "match",
        {"offer", "envelopes", "message"},
    )
    # The operator's own `status` says so.
    assert len(run.state().left_out) == (2 if added else 0)


@pytest.mark.parametrize("added", [{}, {"id": [None]}])
def test_a_table_written_since_its_operator_looked_waits_by_the_same_word(folders, added):
    planned(folders)
    folders.accept("hospital")
    path = folders.party("hospital").settings.table
    add_row(path, added)
    os.utime(path, (1, 1))
    for word, files in (("acceptance", {"offer"}), ("match", {"offer", "envelopes", "message"})):
        answer = ask(Parcel("hospital", wants=ALL), folders.node("hospital"))
        assert (answer.word, set(answer.files)) == (word, files)
        folders.accept("hospital")


@pytest.mark.parametrize("name", ["../key", "/etc/passwd", "a" * 99, ""])
def test_names_that_lead_elsewhere_are_refused(folders, tmp_path, name):
    asked = Parcel("hospital").to_records()
    asked["vertimrf"]["wants"], asked["vertimrf"]["most"] = [name], [1000]
    for node in (folders.node("hospital"), {"party": "hospital", "exchange": str(tmp_path)}):
        assert ask(asked, node) == Parcel("hospital", "failed")


def test_what_is_no_parcel_is_answered_with_one_word(folders):
    asked = RecordDict({"vertimrf": ConfigRecord({"party": "hospital"})})
    assert ask(asked, folders.node("hospital")) == Parcel("hospital", "failed")


def test_a_node_without_settings_takes_no_folder_from_the_network(folders):
    asked, parties = Parcel("hospital", wants=ALL), {"simulated-parties": str(folders.parties)}
    assert ask(asked, {}, **parties) == Parcel("", "failed")
    assert ask(asked, {"partition-id": 1, "num-partitions": 3}, **parties).party == "insurer"


def test_files_are_carried_to_and_from_the_party_own_process(folders, tmp_path):
    place = tmp_path / "place"
    place.mkdir()
    node = {"party": "hospital", "exchange": str(place)}
    exchange = Exchange(place)
    turn = threading.Timer(0.5, lambda: exchange.put("hospital", "hospital", "offer", b"an offer"))
    turn.start()
    answer = ask(Parcel("hospital", wants=ALL, files={"plan": b"the plan"}), node)
    turn.join()
    assert answer == Parcel("hospital", "carried", files={"offer": b"an offer"})
    assert exchange.get(None, "hospital", "plan", 100) == b"the plan"
    # Nothing larger than the server can take, and nothing for another party.
    assert carried(Parcel("hospital", wants={"offer": 3}), "hospital", exchange, 0) == Parcel(
        "hospital", "carried"
    )
    carried(Parcel("insurer", files={"plan": b"theirs"}), "hospital", exchange, 0)
    assert exchange.get(None, "insurer", "plan", 100) is None


def test_another_plan_in_the_exchange_is_replaced_and_named_on_this_machine(tmp_path, caplog):
    exchange = Exchange(tmp_path)
    for plan in (b"forged", b"the plan"):
        carried(Parcel("hospital", files={"plan": plan}), "hospital", exchange, 0)
    assert exchange.get(None, "hospital", "plan", 100) == b"the plan"
    assert "had something else at server/hospital/plan" in caplog.text


def test_what_is_in_the_way_of_one_file_holds_up_no_other(tmp_path, caplog):
    exchange = Exchange(tmp_path)
    (tmp_path / "server" / "hospital" / "plan").mkdir(parents=True)
    (tmp_path / "parties" / "hospital").mkdir(parents=True)
    (tmp_path / "parties" / "hospital" / "offer").symlink_to(tmp_path / "server")
    exchange.put("hospital", "hospital", "message", b"a message")
    asked = Parcel("hospital", wants=ALL, files={"plan": b"the plan", "envelopes": b"sealed"})
    # The server learns that it should ask again, and nothing more.
    assert carried(asked, "hospital", exchange, 0) == Parcel(
        "hospital", "failed", files={"message": b"a message"}
    )
    assert exchange.get(None, "hospital", "envelopes", 100) == b"sealed"
    assert "plan is a folder, not a file" in caplog.text
    assert "offer is a link, not a file" in caplog.text


def test_a_file_that_is_cut_is_named_once_a_question_and_holds_up_no_other(
    tmp_path, caplog, monkeypatch
):
    monkeypatch.setattr(client_app, "LOOK", 0.01)
    exchange = Exchange(tmp_path)
    exchange.put("hospital", "hospital", "message", b"a message")
    (tmp_path / "parties" / "hospital" / "offer").write_bytes(b"half")
    asked = Parcel("hospital", wants={"offer": 100})
    assert not carried(asked, "hospital", exchange, 0.1).files
    assert caplog.text.count("the offer of 'hospital', is not whole") == 1
    assert set(carried(Parcel("hospital", wants=ALL), "hospital", exchange, 0).files) == {"message"}

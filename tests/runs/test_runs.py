"""A run in folders: what it takes and gives, in what order, and what it refuses."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from dataclasses import replace
from types import SimpleNamespace as Namespace

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest
from builders import schema_of
from planning import plan_with
from runs.conversation import RECORDS, SCHEMA, Conversation, files_of, said, serve

from vertimrf import Message, PrivateKey, Secret
from vertimrf.errors import MessageError, PlanError, PrivacyError, RunError, SchemaError, TableError
from vertimrf.files.atomic import DRAFT
from vertimrf.files.state import STATE
from vertimrf.keys import KeyRing
from vertimrf.options import RunOptions
from vertimrf.party.party import Party
from vertimrf.party.releases import Releases, record_name
from vertimrf.party.secret import seal_secret
from vertimrf.releases.received import CommonRecords, RecordCount
from vertimrf.runs.files import match_of, read_match
from vertimrf.runs.folder import locked
from vertimrf.runs.party_run import SECRET, PartyRun
from vertimrf.runs.server_run import ServerRun
from vertimrf.server.population import few_in_common
from vertimrf.trial import run_protocol

NO_FINGERPRINT = "7QK2-M0XR-7QK2-M0XR-7QK2-M0XR-7QK2"


@pytest.fixture(scope="module")
def over(tmp_path_factory):
    """A run that is over."""
    return Conversation.make(tmp_path_factory.mktemp("over") / "run").play()


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    """Another run of the same people, parties and schema that is over."""
    return Conversation.make(tmp_path_factory.mktemp("other") / "run").play()


@pytest.fixture
def planned(tmp_path):
    """Everybody has the plan, and nobody has accepted it."""
    run = Conversation.make(tmp_path / "run")
    run.round(accepting=False)
    return run


def steps(run):
    return {step.name: step.status for step in run.state().steps}


def test_a_run_ends_with_table_model_and_report(over):
    result = over.server.result
    assert sorted(os.listdir(result)) == ["model", "report.json", "synthetic.parquet"]
    assert set(pyarrow.parquet.read_table(result / "synthetic.parquet").column_names) == set(
        SCHEMA.names
    )
    report = json.loads((result / "report.json").read_text())
    assert report["private"]
    assert report["epsilon"] <= 1.0
    sent = over.parties["hospital"].outgoing()
    assert sorted(sent) == ["envelopes", "message", "offer"]
    assert "envelopes" not in over.parties["insurer"].outgoing()


def test_a_trial_has_the_messages_of_a_run(over, tmp_path):
    """With the keys, the secret and the tables of a run, byte for byte."""
    plan, server = over.server.plan, over.server.folder
    keys = {name: PrivateKey.load(run.folder / "key") for name, run in over.parties.items()}
    secret = Secret.load(over.parties[plan.party_names[0]].folder / SECRET)
    tables = [
        Party(plan, name, secret).encode(run.settings.table, "id")
        for name, run in over.parties.items()
    ]
    ring = KeyRing(keys, PrivateKey.load(server / "key"))
    run_protocol(plan, tables, RunOptions(rows=10), tmp_path, ring, secret)
    for name, run in over.parties.items():
        assert (tmp_path / f"{name}.message").read_bytes() == run.outgoing()["message"]


def test_again_and_again_everybody_gives_the_same_bytes_and_writes_nothing(over):
    before = files_of(over.folder)
    first = over.round()
    later = over.again()
    assert later.round() == first
    assert later.server.outgoing() == over.server.outgoing()
    assert files_of(over.folder) == before


def test_the_message_given_is_the_one_on_record_even_when_the_table_is_gone(
    over, tmp_path, state, monkeypatch
):
    shutil.copytree(state, tmp_path / "state")
    monkeypatch.setenv(STATE, str(tmp_path / "state"))
    folder = tmp_path / "insurer"
    shutil.copytree(over.parties["insurer"].folder, folder)
    settings = (folder / "run.toml").read_text()
    (folder / "run.toml").write_text(
        settings.replace(over.parties["insurer"].settings.table, str(tmp_path / "gone.csv"))
    )
    run = PartyRun(folder)
    assert run.advance({})["message"] == over.parties["insurer"].outgoing()["message"]
    record = Releases.of(PrivateKey.load(folder / "key")).folder / record_name(run.plan.digest(), 1)
    data = bytearray(record.read_bytes())
    data[len(data) // 2] ^= 1
    record.write_bytes(data)
    with pytest.raises(PrivacyError, match="damaged"):
        run.advance({})


def test_nothing_but_the_offer_leaves_before_the_plan_is_accepted(planned):
    party = planned.parties["hospital"]
    back = planned.server.outgoing()["hospital"]
    assert list(party.advance(back)) == ["offer"]
    assert not Releases.of(PrivateKey.load(party.folder / "key")).folder.exists()
    assert steps(party)["acceptance"] == "waits"
    with pytest.raises(MessageError, match="not a whole fingerprint"):
        party.accept(planned.server.plan.fingerprint[:9])
    with pytest.raises(
        MessageError, match=r"no plan with this fingerprint.*type it once more\. If .*received/plan"
    ):
        party.accept(NO_FINGERPRINT)
    assert list(party.advance(back)) == ["offer"]
    answer = party.accept(planned.server.plan.fingerprint.lower().replace("-", " "))
    assert "Accepted" in answer
    assert "epsilon 1" in answer
    assert sorted(party.advance(back)) == ["envelopes", "message", "offer"]


def test_of_two_plans_one_is_accepted(planned, other):
    party = planned.parties["hospital"]
    party.advance(planned.server.outgoing()["hospital"])
    party.accept(planned.server.plan.fingerprint)
    (party.folder / "accepted" / "plan").write_text("00" * 32)
    with pytest.raises(RunError, match="Another plan was accepted"):
        party.accept(planned.server.plan.fingerprint)
    # Its table was looked at, and yet nothing of it is released.
    assert list(party.advance({})) == ["offer"]


def test_what_comes_twice_is_ignored_and_what_is_different_refused(over, other):
    parties, server = over.parties, over.server
    before = {name: files_of(server.folder / "received" / name) for name in parties}
    for name in ("offer", "message", "envelopes"):
        server.advance({"hospital": {name: other.parties["hospital"].outgoing()[name]}})
        assert f"The {name} of 'hospital' came again and is another one" in said(server)
    parties["insurer"].advance(other.server.outgoing()["insurer"])
    assert said(parties["insurer"]).count("came again") == 3
    assert {name: files_of(server.folder / "received" / name) for name in parties} == before
    assert over.done


def test_files_of_another_run_are_refused_and_do_not_stop_the_rest(planned, other):
    server = planned.server
    planned.accept()
    foreign = other.parties["hospital"].outgoing()
    files = planned.parties["hospital"].advance({})
    server.advance({"hospital": files | {"message": foreign["message"]}})
    assert "made for another plan" in said(server)
    assert steps(server)["envelopes"] == "done"
    server.advance(
        {"insurer": {"message": files["message"], "wish": b"y"}, "stranger": {"offer": b"z"}}
    )
    for sentence in (
        "is that of 'hospital'",
        "'wish' came, and in this run",
        "'stranger' is no party of this run",
    ):
        assert sentence in said(server)
    party = planned.parties["insurer"]
    party.advance({"envelopes": foreign["envelopes"], "wish": b"{}"})
    assert "another plan" in said(party)
    assert "'wish' came, and in this run the server sends only plan, envelopes" in said(party)
    planned.play()
    # The right one came: nothing is said of the wrong one any more.
    assert "made for another plan" not in said(server)


def test_a_plan_without_this_partys_key_or_name_is_refused_and_the_right_one_taken(tmp_path, other):
    run = Conversation.make(tmp_path / "run")
    party = run.parties["hospital"]
    foreign = other.server.outgoing()["hospital"]["plan"]
    unnamed = foreign.replace(b'"hospital"', b'"hospitals"')
    for plan, sentence in (
        (foreign, "another key"),
        (unnamed, "which the plan does not have"),
        (b"", "not valid JSON"),
        (b"{}", "no plan: its kind is None"),
        (b"[" * 100_000, "not valid JSON"),
    ):
        party.advance({"plan": plan})
        assert party.plan is None
        assert sentence in said(party)
    run.play()


def sealed_by(plan, key):
    """Envelopes with a secret that this key's owner drew."""
    return json.dumps(seal_secret(Secret.new(), plan.digest(), plan.sealing_keys(), key)).encode()


def test_only_the_first_party_of_the_plan_draws_the_secret(planned):
    """Whoever else sealed one would have parties with two secrets, and hashes that nobody else has."""
    planned.accept()
    plan, key = planned.server.plan, planned.parties["insurer"]._folder.key
    envelopes = sealed_by(plan, key)
    planned.server.advance({"insurer": {"envelopes": envelopes}})
    assert "'envelopes' came, and in this run 'insurer' sends only offer, message" in said(
        planned.server
    )
    hospital = planned.parties["hospital"]
    hospital.advance({"envelopes": envelopes})
    assert "'envelopes' came, and in this run the server sends only plan" in said(hospital)
    planned.play()


def test_an_envelope_of_any_other_party_is_refused(tmp_path):
    """Of three parties the last gets one of the second, who stands in the plan and could have sealed it."""
    schema = schema_of(one={"a": 2}, two={"b": 2}, three={"c": 2})
    (tmp_path / "t.csv").write_text("id,a,b,c\n1,0,0,0\n")
    server = serve(tmp_path / "server", schema)
    runs = {
        name: PartyRun.create(tmp_path / name, name=name, table=tmp_path / "t.csv", id="id")
        for name in server.parties
    }
    back = server.advance({name: party.advance({}) for name, party in runs.items()})
    runs["three"].advance(back["three"])
    runs["three"].accept(server.plan.fingerprint)
    runs["three"].advance({"envelopes": sealed_by(server.plan, runs["two"]._folder.key)})
    assert "'one' draws the secret" in said(runs["three"])
    assert list(runs["three"].outgoing()) == ["offer"]


@pytest.mark.parametrize("rest", ["offer", "envelopes", "message"])
def test_no_file_is_looked_at_that_is_too_large(planned, rest, monkeypatch):
    planned.accept()
    server = planned.server
    if rest == "offer":
        (server.folder / "received" / "hospital" / "offer").unlink()
    most = server.wants()["hospital"].get(rest, 1 << 20)
    monkeypatch.setattr(
        "vertimrf.runs.server_run.Message.unseal", lambda *_: pytest.fail("looked at")
    )
    server.advance({"hospital": {rest: bytes(most + 1)}})
    assert "bytes; at most" in said(server)


def test_offers_are_taken_from_their_owners_alone(tmp_path):
    run = Conversation.make(tmp_path / "run")
    offer = run.parties["hospital"].advance({})["offer"]
    renamed = offer.replace(b"hospital", b"insurer")
    key = run.server.folder / "key"
    run.server.advance({"insurer": {"offer": offer}})
    assert "is that of 'hospital'" in said(run.server)
    run.server.advance({"hospital": {"offer": offer}})
    run.server.advance({"insurer": {"offer": renamed}})
    assert "holds the key of 'hospital'" in said(run.server)
    assert "hospital" not in key.read_text()
    run.play()


def test_a_party_missing_is_named(planned):
    planned.accept("hospital")
    planned.server.advance({"hospital": planned.parties["hospital"].advance({})})
    waits = [step for step in planned.server.state().steps if step.status == "waits"]
    assert [(step.name, step.on) for step in waits] == [("message", "'insurer'")]
    assert not planned.server.state().done
    other = planned.parties["insurer"].state()
    assert [step.on for step in other.waits_for] == ["you"]


def test_work_that_fails_is_said_until_it_does_not_and_others_go_on(planned):
    party = planned.parties["hospital"]
    table = planned.folder / "hospital.csv"
    good = table.read_text()
    table.write_text(good.replace("ward", "room", 1))
    planned.accept("hospital")
    with pytest.raises(SchemaError, match=r"hospital\.csv lacks the column 'ward'"):
        party.advance({})
    assert party.state().stopped
    assert "Stopped" in party.state().text()
    assert sorted(party.outgoing()) == ["envelopes", "offer"]
    table.write_text(good)
    planned.accept("hospital")
    assert "message" in party.advance({})
    assert party.state().stopped is None


def test_one_process_at_a_time_and_the_state_at_any(planned):
    party = planned.parties["hospital"]
    code = "import sys, time; from pathlib import Path; from vertimrf.runs.folder import locked\n"
    code += "with locked(Path(sys.argv[1])): print('held', flush=True); time.sleep(60)"
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(party.folder)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(RunError, match=r"Another process is at work.*vertimrf status"):
            PartyRun(party.folder).advance({})
        assert PartyRun(party.folder).state().plan
        assert "Accepted" in PartyRun(party.folder).accept(planned.server.plan.fingerprint)
    finally:
        holder.kill()
        holder.wait()
    assert "message" in party.advance({})


def test_a_refusal_that_another_process_removes_meanwhile_is_none(planned, monkeypatch):
    party = planned.parties["hospital"]
    party.advance({"plan": b"another"})
    (said_before,) = party.state().refused
    (refusal,) = [path for path in (party.folder / "refused").rglob("*") if path.is_file()]
    draft = Namespace(fullmatch=lambda name: refusal.unlink(missing_ok=True))
    monkeypatch.setattr("vertimrf.runs.folder.DRAFT", draft)
    assert "came again" in said_before
    assert party.state().refused == ()


def test_the_lock_is_held_through_turns_and_let_go(planned):
    party = planned.parties["hospital"]
    with party.hold():
        party.advance({})
        with pytest.raises(RunError, match="at work"), locked(party.folder):
            pass
    with locked(party.folder):
        pass


def test_what_a_killed_process_left_is_gone_with_the_next_turn(planned):
    party = planned.parties["hospital"]
    left = [party.folder / ".0123abcd.envelopes", party.folder / "received" / ".0123abcd.plan"]
    for path in left:
        path.write_text("half")
    result = planned.server.folder / ".0123abcd.result"
    result.mkdir()
    (result / "synthetic.parquet").write_text("half")
    planned.round(accepting=False)
    assert not any(path.exists() for path in (*left, result))


def test_a_folder_is_made_once_and_goes_on_with_the_same_settings(tmp_path, planned):
    party = planned.parties["hospital"]
    table = planned.folder / "hospital.csv"
    key = (party.folder / "key").read_bytes()
    PartyRun.create(party.folder, name="hospital", table=table, id="id")
    assert (party.folder / "key").read_bytes() == key
    with pytest.raises(RunError, match="a run with another id, table"):
        PartyRun.create(
            party.folder, name="hospital", table=planned.folder / "insurer.csv", id="tariff"
        )
    with pytest.raises(RunError, match="another epsilon"):
        serve(planned.server.folder, epsilon=2.0)
    with pytest.raises(RunError, match="not of a server"):
        ServerRun(party.folder)
    with pytest.raises(RunError, match="no run folder"):
        PartyRun(tmp_path / "nowhere")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("important")
    with pytest.raises(RunError, match="has other files"):
        PartyRun.create(tmp_path / "full", name="hospital", table=table, id="id")
    with pytest.raises(TableError, match="no table"):
        PartyRun.create(tmp_path / "new", name="hospital", table=tmp_path / "none.csv", id="id")
    with pytest.raises(PlanError, match="into the run's folder"):
        serve(tmp_path / "s", out="../up.csv")
    with pytest.raises(PlanError):
        serve(tmp_path / "s", epsilon=-1.0)
    assert not (tmp_path / "new").exists()
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize(
    "line", ["id = 3", "exchanges = 'x'", "id_format = 'strip'", "delimiter = 1", "nonsense"]
)
def test_settings_that_cannot_be_are_refused(planned, line):
    path = planned.parties["hospital"].folder / "run.toml"
    lines = [
        kept
        for kept in path.read_text().splitlines()
        if kept.split(" = ")[0] != line.split(" = ")[0]
    ]
    path.write_text("\n".join([line, *lines]))
    with pytest.raises(RunError, match=r"run\.toml"):
        PartyRun(path.parent)


def test_settings_and_the_key_are_read_anew_where_their_files_changed_alone(planned, monkeypatch):
    """Each step of a run asks for them."""
    party, parsed, loads = planned.parties["hospital"], [], tomllib.loads
    monkeypatch.setattr(tomllib, "loads", lambda text: parsed.append(text) or loads(text))
    place = party.folder / "run.toml"
    for encoding in ("latin-1", "cp1252"):
        text = "".join(x for x in place.read_text().splitlines(True) if "encoding" not in x)
        place.write_text(f'{text}encoding = "{encoding}"\n')
        assert [party.settings.encoding for _ in range(3)] == [encoding] * 3
    assert len(parsed) == 2
    key = party._folder.key
    assert party._folder.key is key
    (party.folder / "key").unlink()
    PrivateKey.new("hospital").save(party.folder / "key")
    assert party._folder.key != key


def test_keys_and_secrets_are_the_owners_alone(over):
    for run in (over.server, *over.parties.values()):
        assert run.folder.stat().st_mode & 0o077 == 0
    hospital = over.parties["hospital"].folder
    assert all((hospital / name).stat().st_mode & 0o077 == 0 for name in ("key", "secret"))


def test_no_secret_and_no_key_is_among_what_is_given(over):
    secret = json.loads((over.parties["hospital"].folder / "secret").read_text())["value"].encode()
    keys = [
        json.loads((run.folder / "key").read_text())["value"].encode()
        for run in (over.server, *over.parties.values())
    ]
    given = [data for run in over.parties.values() for data in run.outgoing().values()]
    given += [data for files in over.server.outgoing().values() for data in files.values()]
    assert not any(hidden in data for hidden in (secret, *keys) for data in given)


def test_once_the_table_is_there_the_servers_key_can_go(over, tmp_path):
    shutil.copytree(over.server.folder, tmp_path / "server")
    (tmp_path / "server" / "key").unlink()
    run = ServerRun(tmp_path / "server")
    assert run.state().done
    assert run.wants() == {"hospital": {}, "insurer": {}}
    run.advance({})


def test_a_plan_with_the_published_encoder_is_refused(planned):
    """It names this party with its key, and is a plan in every other way."""
    keys = planned.server.plan.public_keys
    plan = plan_with(
        SCHEMA,
        expected_records=RECORDS,
        keys=64,
        encoder="published",
        claim_as_published=True,
        public_keys=keys,
    )
    party = planned.parties["hospital"]
    (party.folder / "received" / "plan").unlink()
    party.advance({"plan": json.dumps(plan.to_json()).encode()})
    assert party.plan is None
    assert "published encoder, which gives complete records away" in said(party)
    planned.play()


@pytest.mark.parametrize("names", [[], ["hospital"], ["insurer", "stranger"]])
def test_envelopes_for_others_than_the_plans_other_parties_are_refused(planned, names):
    planned.accept()
    good = json.loads(planned.parties["hospital"].advance({})["envelopes"])
    (envelope,) = good["envelopes"].values()
    wrong = json.dumps(good | {"envelopes": dict.fromkeys(names, envelope)}).encode()
    planned.server.advance({"hospital": {"envelopes": wrong}})
    assert "The envelopes are not for insurer" in said(planned.server)
    assert steps(planned.server)["envelopes"] == "waits"
    planned.play()


def test_the_result_is_on_the_disk_before_it_has_its_name(planned, monkeypatch):
    """A power cut leaves a whole result or none: files and their names are synced, then it is renamed, then that is synced."""
    done = []
    sync, rename = os.fsync, os.rename

    def named(handle):
        return os.path.relpath(os.readlink(f"/proc/self/fd/{handle}"), planned.server.folder)

    def synced(handle):
        done.append(named(handle))
        sync(handle)

    def renamed(old, new, **more):
        done.append(f"to {os.path.relpath(new, planned.server.folder)}")
        rename(old, new, **more)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "rename", renamed)
    planned.play()
    at = done.index("to result")
    draft = done[at - 1]
    assert DRAFT.fullmatch(draft)
    assert {f"{draft}/{name}" for name in ("model", "report.json", "synthetic.parquet")} | {
        draft
    } <= set(done[:at])
    assert done[at + 1] == "."


def test_parties_called_as_the_run_calls_its_own_files_are_parties(tmp_path):
    """Refusals of a party's files, and those that are of no party."""
    schema = schema_of(others={"a": 2}, exchange={"b": 2}, other={"c": 2})
    server = serve(tmp_path / "server", schema)
    server.advance(
        {
            "stranger": {"offer": b"x"},
            **{name: {"offer": b"x", "wish": b"y"} for name in server.parties},
        }
    )
    server.note({"x": "Something is in the way."})
    assert len(server.state().refused) == 1 + 2 * len(server.parties)
    assert [trouble.what for trouble in server.state().troubles] == ["Something is in the way."]
    server.note({})
    assert not server.state().troubles


def test_whether_ids_match_is_believed_of_this_plan_alone(over, other):
    plan = over.server.plan
    assert not read_match(plan, over.server.outgoing()["hospital"]["match"])
    assert read_match(plan, match_of(plan, few=True))
    for data in (other.server.outgoing()["hospital"]["match"], b"{}", b"[]", b'{"few": 1}'):
        with pytest.raises(MessageError, match="is of another run"):
            read_match(plan, data)
    with pytest.raises(MessageError):
        read_match(plan, b"{")


def test_few_people_in_common_are_told_from_figures_and_their_noise(over):
    plan = over.server.plan
    counts = (RecordCount(RECORDS, 1.0), RecordCount(RECORDS, 1.0))
    for common, error, few in (
        (RECORDS, 1.0, False),
        (0.45 * RECORDS, 10.0, True),
        (0.55 * RECORDS, 10.0, False),
        # Noise may explain it.
        (0.0, RECORDS / 3, False),
        (-RECORDS / 10, RECORDS / 5, True),
    ):
        sentences = few_in_common(plan, counts, [CommonRecords((0, 1), common, error)])
        assert bool(sentences) == few
        assert all("vertimrf align" in one and "hospital and insurer" in one for one in sentences)
    # Parties with half as many people as planned have no more in common.
    half = (RecordCount(RECORDS / 2, 1.0),) * 2
    assert not few_in_common(plan, half, [CommonRecords((0, 1), 0.45 * RECORDS, 1.0)])


def forged(run, party, change):
    """Before any message has come: this party's, changed and sealed by itself, and those of all parties."""
    run.accept()
    envelopes = {"envelopes": run.parties["hospital"].advance({})["envelopes"]}
    for name, files in run.server.advance({"hospital": envelopes}).items():
        run.parties[name].advance(files)
    sent = {name: {"message": each.advance({})["message"]} for name, each in run.parties.items()}
    plan, key = run.server.plan, PrivateKey.load(run.parties[party].folder / "key")
    opened = Message.unseal(
        sent[party]["message"], plan, PrivateKey.load(run.server.folder / "key")
    )
    return change(opened).seal(plan, key), sent


def test_bins_that_do_not_follow_from_the_marginals_are_refused_by_name(planned):
    """A contrast of one bin has no dimensions, by which the server divided, and again each time it went on."""

    def constant(message):
        return replace(message, bins=tuple((np.zeros_like(a), *b) for a, *b in message.bins))

    wrong, sent = forged(planned, "hospital", constant)
    planned.server.advance(sent | {"hospital": {"message": wrong}})
    assert (
        "The message of 'hospital': its bins of 'smoker' are not those that follow from its one-way marginal: have it made again."
        in said(planned.server)
    )
    planned.server.advance(sent)
    assert planned.server.result


def test_a_party_cannot_stop_the_server_for_good(planned):
    """Its message is well-formed and matches nobody: its signs are all turned round."""

    def turned(message):
        most = (1 << planned.server.plan.sketch.bits) - 1
        return replace(message, sketches=tuple(most - codes for codes in message.sketches))

    wrong, sent = forged(planned, "insurer", turned)
    server, first = planned.server, planned.server.folder / "received/insurer/message"
    for received in (sent | {"insurer": {"message": wrong}}, {}):
        with pytest.raises(
            MessageError, match=r"insurer \(\d+ records\).* delete its first one, .*received/PARTY"
        ):
            server.advance(received)
        assert "delete its first one" in server.state().text()
    # A right one does not replace it by itself.
    with pytest.raises(MessageError, match="delete its first one"):
        server.advance(sent)
    assert f"delete {first}" in said(server)
    first.unlink()
    assert any(step.on == "'insurer'" for step in server.state().steps)
    server.advance(sent)
    assert server.result
    assert server.state().stopped is None

"""`vertimrf run`, `accept` and `status`, as operators type them."""

from __future__ import annotations

import json
import os
import shutil

import pytest
from click.testing import CliRunner
from runs.conversation import RECORDS, SCHEMA, write_tables

from vertimrf.cli import main


def run(*arguments):
    return CliRunner().invoke(main, [str(a) for a in arguments])


def good(*arguments):
    done = run(*arguments)
    assert done.exit_code == 0, done.output
    return done.output


def refused(*arguments):
    done = run(*arguments)
    assert done.exit_code == 2, done.output
    assert done.output.count("\n") == 1
    return done.output


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Tables, a schema and a place between roles."""
    monkeypatch.chdir(tmp_path)
    write_tables(tmp_path)
    SCHEMA.save("schema.toml")
    os.mkdir("x")
    return tmp_path


def start(rounds=1):
    server = ("--schema", "schema.toml", "--epsilon", 1, "--expected-records", RECORDS, "--message-mb", 0.05, "--rounds", rounds)
    good("run", "server", "server", *server, "--exchange", "x")
    for name in ("hospital", "insurer"):
        good("run", "party", name, "--name", name, "--table", f"{name}.csv", "--id", "id", "--exchange", "x")
    good("run", "server", "server")


def status(folder):
    return json.loads(good("status", folder, "--json", "-"))


def test_two_rounds_by_one_command_a_role_and_two_acceptances(place, monkeypatch):
    start(rounds=2)
    for name in ("hospital", "insurer"):
        told = good("run", "party", name)
        assert "waits for you" in told
        assert f"vertimrf accept {place / name} FINGERPRINT" in told
        assert "Accepted: the plan" in good("accept", name, *status("server")["plan"].split("-"))
        good("run", "party", name)
    # The server passes the envelope of the first party on.
    assert "waits for the envelope of 'hospital'" in good("status", "insurer")
    good("run", "server", "server")
    good("run", "party", "insurer")
    assert "waits  answer" in good("run", "server", "server")
    # From anywhere, by the folder alone.
    os.mkdir("elsewhere")
    monkeypatch.chdir("elsewhere")
    for name in ("../hospital", "../insurer"):
        assert "waits for you" in good("run", "party", name)
        assert "Accepted: the follow-up" in good("accept", name, status("../server")["follow_up"])
        assert status(name)["steps"][-1]["status"] == "ready"
        good("run", "party", name, "--wait")
        assert status(name)["done"]
    assert "done   result" in good("run", "server", "../server", "--wait")
    assert (place / "server" / "result" / "synthetic.parquet").exists()
    assert good("status", "../server") == good("run", "server", "../server")


def test_the_sentence_says_what_is_wrong(place):
    start()
    assert "needs --name, --id" in refused("run", "party", "new", "--table", "hospital.csv")
    assert "needs --epsilon" in refused("run", "server", "new", "--schema", "schema.toml", "--expected-records", RECORDS)
    assert "no run folder" in refused("run", "party", "new")
    assert "no run folder" in refused("status", "x")
    assert "not of a party" in refused("run", "party", "server")
    assert "not of a party" in refused("accept", "server", "1234")
    assert "no whole fingerprint" in (good("run", "party", "hospital") and refused("accept", "hospital", "1234"))
    assert "No plan has come" in refused("accept", "insurer", "1234")
    shutil.rmtree("x")
    assert "no folder" in refused("run", "party", "hospital")
    assert "there is no table" in refused("run", "party", "n", "--name", "n", "--table", "n.csv", "--id", "id").lower()


def test_without_an_exchange_it_says_so_and_works_on(place):
    told = good("run", "party", "hospital", "--name", "hospital", "--table", "hospital.csv", "--id", "id")
    assert "something else has to carry" in told
    assert "waits  plan" in told


def test_a_bad_table_stops_with_a_sentence_and_status_has_it(place):
    start()
    good("run", "party", "hospital")
    good("accept", "hospital", status("server")["plan"])
    (place / "hospital.csv").write_text("id,smoker,room\n1,0,2\n")
    told = refused("run", "party", "hospital", "--wait")
    assert "hospital.csv" in told
    assert status("hospital")["stopped"] in told
    # What was made before is out all the same.
    assert (place / "x" / "parties" / "hospital" / "envelopes").exists()


def test_a_follow_up_made_again_is_the_same_and_never_written_over_another(place):
    """The single command, on what a run has received: parties must not be given two."""
    start(rounds=2)
    for name in ("hospital", "insurer"):
        good("run", "party", name)
        good("accept", name, status("server")["plan"])
        good("run", "party", name)
        good("run", "server", "server")
    good("run", "party", "insurer")
    good("run", "server", "server")
    messages = [f"server/received/{name}/message" for name in ("hospital", "insurer")]
    command = ("follow-up", *messages, "--plan", "server/plan", "--key", "server/key", "--out")
    good(*command, "follow-up.json")
    good(*command, "follow-up.json")
    assert (place / "follow-up.json").read_bytes() == (place / "server" / "follow-up").read_bytes()
    (place / "follow-up.json").write_text("{}")
    assert "all must answer one" in refused(*command, "follow-up.json")
    assert (place / "follow-up.json").read_text() == "{}"

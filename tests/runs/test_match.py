"""What the server says of the ids, the last file of a run: it comes to every party, whatever carries it, and is waited for."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from runs.conversation import Conversation, said

from vertimrf.files.atomic import MAX_KEY
from vertimrf.runs.exchange import Exchange, take_turn
from vertimrf.runs.files import MATCH, match_of
from vertimrf.runs.state import DONE, WAITS

# Seconds that another process has for its next step. A busy machine takes a while to start one.
LONG = 120.0


@pytest.fixture(scope="module")
def endpoint():
    """Where a machine of its own would answer as S3 does."""
    server = pytest.importorskip("moto.server")
    threaded = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    threaded.start()
    yield "{}:{}".format(*threaded.get_host_and_port())
    threaded.stop()


@pytest.fixture(params=["folder", "s3"])
def place(request, tmp_path, monkeypatch):
    """A folder or a bucket, for one run."""
    if request.param == "folder":
        (tmp_path / "x").mkdir()
        return str(tmp_path / "x")
    from pyarrow import fs

    address = request.getfixturevalue("endpoint")
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "DEFAULT_REGION"):
        monkeypatch.setenv(f"AWS_{name}", "us-east-1")
    options = f"endpoint_override={address}&scheme=http"
    system, _ = fs.FileSystem.from_uri(f"s3://bucket?{options}&allow_bucket_creation=true")
    system.create_dir("bucket")
    return f"s3://bucket/run?{options}"


@pytest.fixture
def begun(tmp_path):
    """A run whose plan everybody has accepted, and whose secret everybody has."""
    return Conversation.begun(tmp_path / "run", None)


def match_at(run):
    """By party, how far its step for the ids is, and what that says."""
    steps = {name: party.state().steps[-1] for name, party in run.parties.items()}
    assert {step.name for step in steps.values()} == {MATCH}
    return {name: (step.status, step.what) for name, step in steps.items()}


def waiting(party, place):
    """``run party --wait``, as a process of its own."""
    words = ["run", "party", str(party.folder), "--exchange", place, "--wait"]
    return subprocess.Popen(
        [sys.executable, "-m", "vertimrf", *words],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )


def until_it_waits(process):
    """Read what it prints up to where it has nothing left but to wait for the match."""
    while f"waits  {MATCH}: waits for the server" not in (line := process.stdout.readline()):
        assert line, "it ended"


def until(there):
    end = time.monotonic() + LONG
    while not there():
        assert time.monotonic() < end
        time.sleep(0.05)


def remove(place, name):
    """Remove an object, as somebody who tidies up."""
    if "://" not in place:
        (Path(place) / name).unlink()
        return
    there = Exchange(place)
    there.reach()
    store = there._store
    store._fs.delete_file(f"{store._root}/{name}")


def test_a_command_that_waits_gives_lost_files_again_and_ends_with_the_match(begun, place):
    """It is killed between message and match, and goes on."""
    hospital, insurer = begun.parties.values()
    process = waiting(hospital, place)
    try:
        until_it_waits(process)
        there = Exchange(place)
        message = there.get("hospital", "hospital", "message", 1 << 24)
        remove(place, "parties/hospital/message")
        until(lambda: there.get("hospital", "hospital", "message", 1 << 24) == message)
        process.kill()
        process.wait()
        process = waiting(hospital, place)
        until_it_waits(process)
        assert [step.on for step in hospital.state().waits_for] == ["the server"]
        # The last party to send its message waits like the first.
        take_turn(insurer, there)
        assert match_at(begun)["insurer"][0] == WAITS
        take_turn(begun.server, there)
        printed, _ = process.communicate(timeout=LONG)
        assert process.returncode == 0
    finally:
        process.kill()
        process.wait()
    words = "by the messages, the ids of the parties match"
    assert printed.splitlines()[-1].strip() == f"done   {MATCH}: {words}"
    take_turn(insurer, there)
    assert match_at(begun) == dict.fromkeys(begun.parties, (DONE, words))
    assert begun.done


def test_a_match_that_comes_before_its_time_or_of_another_run_is_not_taken(begun):
    hospital = begun.parties["hospital"]
    early = match_of(begun.server.plan, few=False)
    hospital.advance({MATCH: early}, release=False)
    assert not hospital._has("hospital", MATCH)
    hospital.advance({})
    assert hospital.wants() == {"hospital": {MATCH: MAX_KEY}}
    hospital.advance({MATCH: b"{}"})
    assert "is of another run" in said(hospital)
    assert [(step.name, step.on) for step in hospital.state().waits_for] == [(MATCH, "the server")]
    # Nothing is left that needs compiled kernels.
    assert hospital.encoder is None
    begun.play()
    assert match_at(begun)["hospital"][0] == DONE

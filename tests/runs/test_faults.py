"""What happens to real machines: disks fill up, caches are read-only, processes end in the middle of a wait."""

import os
import resource
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest
from click.testing import CliRunner
from runs.conversation import Conversation, files_of

from vertimrf.cli import main
from vertimrf.keys import PrivateKey
from vertimrf.party.releases import Releases
from vertimrf.runs.party_run import PartyRun


@contextmanager
def file_limit(size):
    """No file may grow beyond so many bytes: what a full disk does to a write in the middle of it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def drafts(folder):
    return [name for name in files_of(folder) if "/." in f"/{name}"]


@pytest.fixture
def accepted(tmp_path):
    """Parties that have accepted the plan and not made their messages."""
    run = Conversation.make(tmp_path / "run")
    run.round(accepting=False)
    for name in run.parties:
        run.accept(name)
    return run


@pytest.mark.parametrize("size", [0, 50, 1000, 20_000])
def test_a_disk_that_fills_up_in_the_middle_of_a_file_costs_nothing(accepted, size):
    party = accepted.parties["hospital"]
    before = files_of(party.folder)
    with file_limit(size):
        done = CliRunner().invoke(main, ["run", "party", str(party.folder)])
    assert done.exit_code == 2, done.output
    assert "nothing is released" in done.output or "Cannot write" in done.output
    assert not drafts(party.folder)
    releases = Releases.of(PrivateKey.load(party.folder / "key")).folder
    assert not releases.exists() or not os.listdir(releases)
    assert before.items() <= files_of(party.folder).items()
    sent = party.advance({})
    assert PartyRun(party.folder).advance({}) == sent
    accepted.play()


def test_a_server_whose_disk_is_full_takes_what_comes_later(accepted):
    sent = {name: party.advance({}) for name, party in accepted.parties.items()}
    sent = {
        name: party.advance(accepted.server.advance(sent)[name])
        for name, party in accepted.parties.items()
    }
    before = files_of(accepted.server.folder)
    with file_limit(1000), pytest.raises(OSError, match="too large"):
        accepted.server.advance(sent)
    assert not drafts(accepted.server.folder)
    assert files_of(accepted.server.folder).items() >= before.items()
    accepted.server.advance(sent)
    assert accepted.server.state().done


def test_a_command_that_waits_ends_at_once_and_lets_its_folder_go(accepted):
    """As an operator stops it; and then the next one is not kept out."""
    place = accepted.folder / "x"
    place.mkdir()
    party = accepted.parties["insurer"].folder
    command = [
        sys.executable,
        "-m",
        "vertimrf",
        "run",
        "party",
        str(party),
        "--exchange",
        str(place),
        "--wait",
    ]
    for end in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        # Whoever started these tests may ignore SIGINT, and a child would inherit that; a shell's foreground job does not.
        waiting = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        assert waiting.stdout.readline().startswith("insurer, in")
        time.sleep(0.1)
        waiting.send_signal(end)
        waiting.wait(30)
    assert sorted(accepted.parties["insurer"].advance({})) == ["offer"]


@pytest.mark.slow
def test_where_nothing_can_be_cached_a_party_compiles_and_goes_on(accepted):
    party = accepted.parties["hospital"].folder
    done = subprocess.run(
        [sys.executable, "-m", "vertimrf", "run", "party", str(party)],
        env=os.environ | {"NUMBA_CACHE_DIR": "/dev/null/cache"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert "done   message" in done.stdout

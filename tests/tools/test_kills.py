"""Roles of a run are killed, and their disks full, at any step: nothing is doubled, lost or half-written, and the run ends.

`tests/tools/kills.py` plays; here it is also held that it would notice.
"""

import json
import os
import subprocess
import sys

import pytest

from tools import kills as program
from tools.kills import FORKING, FULL, KILL, VICTIMS

# Noise that is drawn anew every time.
FRESH = """
import vertimrf.party.party
from vertimrf.privacy.noise import SystemNoise

vertimrf.party.party.KeyedNoise = lambda key: SystemNoise()
"""
# A record that is written only when the message is out.
LATE = """
held = {}
once, made, given = Releases.once, Releases.made, Releases.given

def late(self, release, make):
    if made(self, release.plan, release.party, release.file):
        return once(self, release, make)
    self.prepare()
    held[self.folder / release.name] = self, release, make()
    return held[self.folder / release.name][2]

def known(self, plan, party, file="message"):
    return held.get(self.folder / record_name(plan, party, file))

def taken(self, plan, party, file="message"):
    late = known(self, plan, party, file)
    return late[2] if late else given(self, plan, party, file)

Releases.once = late
Releases.made = lambda self, *what: known(self, *what) is not None or made(self, *what)
Releases.given = taken
turn = kills.take_turn

def take_turn(run, place):
    turn(run, place)
    for releases, release, data in list(held.values()):
        once(releases, release, lambda: data)
    held.clear()

kills.take_turn = take_turn
"""
PLAY = """
import os, sys, tempfile
from pathlib import Path
from tools import kills
from vertimrf.party.releases import Releases, record_name

def survived(folder, mistake):
    child = os.fork()
    if not child:
        exec(mistake, globals())
        play = kills.Play(folder, "count-sketch", "first party", "kill")
        steps = play.steps()
        point = next(i for i, step in enumerate(steps) if step.startswith("os.link state/hospital/") and "/message-" in step)
        os._exit(kills.Play(folder, "count-sketch", "first party", "kill", point).play().survived)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

with tempfile.TemporaryDirectory() as name:
    kills.price_once()
    kills.tables(Path(name))
    kills.rehearsal(Path(name), "count-sketch")
    print(*(survived(Path(name), mistake) for mistake in sys.argv[1:]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("encoder, kills, full", [("count-sketch", 40, 20), ("encrypted", 24, 12)])
def test_kills_at_some_points_of_every_role_and_the_transport(encoder, kills, full, tmp_path):
    """Hundreds are for `python tests/tools/kills.py`."""
    words = ["--kills", kills, "--full", full, "--encoder", encoder, "--json", tmp_path / "rows"]
    done = subprocess.run(
        [sys.executable, program.__file__, *map(str, words)],
        capture_output=True,
        text=True,
        timeout=1800,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads((tmp_path / "rows").read_text())
    counted = {row["name"].partition(":")[0] for row in rows}
    assert counted == {f"{KILL}, {kills} times", f"{FULL}, {full} times"}
    assert all(row["holds"] for row in rows)
    assert all(f"{KILL}, {encoder}, {victim}: " in done.stdout for victim in VICTIMS)


@pytest.mark.slow
def test_the_kills_would_notice_fresh_noise_with_a_record_that_is_written_after_sending():
    """Killed right before the record. Either defence is enough by itself: records in time, or noise that is always the same."""
    done = subprocess.run(
        [sys.executable, "-c", PLAY, "", LATE, FRESH, FRESH + LATE],
        env=os.environ | FORKING | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    # 1 is for a run that went well.
    assert done.stdout.split() == ["1", "1", "1", "0"]

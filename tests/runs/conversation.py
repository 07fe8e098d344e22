"""A small run between two parties and a server, in folders, for several test files."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
from builders import schema_of

from vertimrf.plan.options import PlanOptions
from vertimrf.runs.folder import SETTINGS
from vertimrf.runs.party_run import PartyRun
from vertimrf.runs.server_run import ServerRun

SCHEMA = schema_of(hospital={"smoker": 2, "ward": 3}, insurer={"tariff": 3})
RECORDS = 300


def write_tables(folder, seed=0, schema=SCHEMA):
    """Every party's table as CSV, by name."""
    rng = np.random.default_rng(seed)
    out = {}
    for name, columns in schema.parties:
        values = {c: rng.integers(0, schema.sizes[schema.index(c)], RECORDS) for c in columns}
        out[name] = folder / f"{name}.csv"
        pa.csv.write_csv(pa.table({"id": np.arange(RECORDS), **values}), out[name])
    return out


def serve(folder, schema=SCHEMA, epsilon=1.0, planning=None, **more):
    """A server's run, by default of a small message."""
    planning = planning or PlanOptions(expected_records=RECORDS, message_bytes=50_000)
    return ServerRun.create(folder, schema=schema, epsilon=epsilon, planning=planning, **more)


def said(run):
    """All that a role refused, and all that is in its way, in one text."""
    state = run.state()
    return "\n".join([*state.refused, *(trouble.what for trouble in state.troubles)])


def process(program, run, kill):
    """What a program prints that plays a role, and that SIGKILL ends before this step; at 0, never."""
    words = [sys.executable, "-c", program, str(run.folder), str(kill)]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == (-9 if kill else 0), done.stderr
    return done.stdout + done.stderr


@dataclass
class Conversation:
    """The roles of one run, which this carries files between."""

    folder: Path
    server: ServerRun
    parties: dict[str, PartyRun]

    @classmethod
    def make(cls, folder, seed=0, planning=None, schema=SCHEMA):
        folder.mkdir(exist_ok=True)
        tables = write_tables(folder, seed, schema)
        server = serve(folder / "server", schema, planning=planning)
        parties = {
            name: PartyRun.create(folder / f"{name}.run", name=name, table=tables[name], id="id")
            for name in server.parties
        }
        return cls(folder, server, parties)

    @classmethod
    def begun(cls, folder, planning, schema=SCHEMA):
        """A run whose secret has come to everybody. Nothing was released."""
        run = cls.make(folder, planning=planning, schema=schema)
        for _ in range(4):
            sent = {name: party.advance({}, release=False) for name, party in run.parties.items()}
            back = run.server.advance(sent)
            for name, party in run.parties.items():
                party.advance(back[name], release=False)
            run.accept()
        return run

    @classmethod
    def copied(cls, start, folder):
        """A copy of a run; the parties' tables stay where they were."""
        shutil.copytree(start, folder)
        server = ServerRun(folder / "server")
        return cls(
            folder, server, {name: PartyRun(folder / f"{name}.run") for name in server.parties}
        )

    def accepted(self, name, *lines):
        """A party's run that reads its table as these lines of its settings say, accepted."""
        settings = self.parties[name].folder / SETTINGS
        kept = [x for x in settings.read_text().splitlines() if not x.startswith("table ")]
        settings.write_text("\n".join([*kept, *lines, ""]))
        run = self.parties[name] = PartyRun(settings.parent)
        run.accept(run.plan.fingerprint)
        return run

    def again(self):
        """The same folders, as new processes find them."""
        parties = {name: PartyRun(run.folder) for name, run in self.parties.items()}
        return Conversation(self.folder, ServerRun(self.server.folder), parties)

    def round(self, accepting=True):
        """Everybody's files to the server and back; gives what parties sent."""
        sent = {name: run.advance({}) for name, run in self.parties.items()}
        back = self.server.advance(sent)
        for name, run in self.parties.items():
            run.advance(back[name])
            if accepting:
                self.accept(name)
        return sent

    def accept(self, *names):
        """What operators do after having compared what is there: those of these parties, by default of all."""
        for name in names or self.parties:
            if any(step.on == "you" for step in self.parties[name].state().steps):
                assert self.server.plan is not None
                self.parties[name].accept(self.server.plan.fingerprint)

    def play(self, rounds=8):
        """To the end."""
        for _ in range(rounds):
            self.round()
            if self.done:
                return self
        raise AssertionError(self.server.state().text())

    @property
    def done(self):
        """Whether everybody has nothing left to do."""
        return self.server.state().done and all(run.state().done for run in self.parties.values())


def files_of(folder):
    """Everything in a folder, but the lock."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }

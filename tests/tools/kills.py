"""SIGKILL, and a full disk, at points spread over the whole life of every role of a run in folders, and of what carries files.

    python tests/tools/kills.py [--kills N] [--full N] [--encoder NAME] [--smoke] [--json FILE]

Every turn of a role is a process of its own, forked from this one, which has no threads. A role's life is counted in steps on
disk: every file opened to be written, renamed, linked, removed or synced, every folder made or removed, every lock taken, over
all its turns; what only reads leaves nothing behind. The role is killed before step k, for half of the k with what it was about
to rename cut in the middle; then all go on until the run is over. Whatever was ever visible to others, by name and digest, is
put down outside of the run. A kill is survived if the run ends, no name ever had two contents, each message that was out is the
one on record, and no draft is left.
"""

from __future__ import annotations

import errno
import hashlib
import itertools
import mmap
import os
import random
import re
import shutil
import signal
import struct
import sys
import tempfile
import traceback
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
import pyarrow as pa
import pyarrow.csv

from benchmarks.verdict import SMOKE, Verdict, arguments, at_least, finish
from vertimrf import Attribute, PlanOptions, PrivateKey, RunOptions, Schema, VertiMRFError
from vertimrf.files.state import STATE
from vertimrf.party.party import Party  # noqa: F401  (loaded before the fork: it takes a second)
from vertimrf.party.releases import Releases
from vertimrf.plan import plan as plans
from vertimrf.privacy import accountant
from vertimrf.runs.exchange import DIGEST, Exchange, take_turn
from vertimrf.runs.files import between
from vertimrf.runs.party_run import PartyRun
from vertimrf.runs.server_run import ServerRun
from vertimrf.server.server import Server  # noqa: F401

NAMES = ("hospital", "insurer")
SERVER = "server"
# Whose steps are counted. The first party also draws the secret; the transport is whoever uses the place between roles.
VICTIMS = ("first party", "other party", "server", "transport")
KILL, FULL = "kill", "full disk"
# One message of every party; and rows and answers between parties, with randomness of their own, before it.
ENCODERS = {
    "count-sketch": {"message_bytes": 20_000},
    "encrypted": {"encoder": "encrypted"},
}
RECORDS = 40
MAX_TURNS = 14
STEPS = {
    "open",
    "os.rename",
    "os.link",
    "os.remove",
    "os.mkdir",
    "os.rmdir",
    "fcntl.flock",
    "fsync",
}
DRAFT = re.compile(r"\.[0-9a-f]{8}\..+")
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
DONE, GOES_ON, SAID = 10, 0, 2
# OpenMP ends a forked child that runs a compiled kernel.
FORKING = {"NUMBA_THREADING_LAYER": "workqueue"}


@dataclass(frozen=True)
class Outcome:
    """What became of a run with one fault.

    Attributes:
        encoder: one of :data:`ENCODERS`.
        victim: whose steps were counted, one of :data:`VICTIMS`.
        fault: "kill" or "full disk".
        point: before which step the fault came.
        step: what that step was.
        struck: whether the fault came: the last steps of a life may not be reached again.
        ended: whether the run came to its end.
        twice: names that ever had two contents.
        half: what was left half-written.
        unlike: messages that were out and are not those on record.
        untyped: ends of processes by anything but a typed error or what a disk says.
    """

    encoder: str
    victim: str
    fault: str
    point: int
    step: str = ""
    struck: bool = False
    ended: bool = False
    twice: tuple[str, ...] = ()
    half: tuple[str, ...] = ()
    unlike: tuple[str, ...] = ()
    untyped: tuple[str, ...] = ()

    @property
    def survived(self):
        """Whether nothing was lost, doubled or left half-written, and the run ended."""
        return self.ended and not (self.twice or self.half or self.unlike or self.untyped)


def play_all(kills, full, seed, encoders):
    """Runs with a fault each, so many of either, shared out evenly among victims, at random points of each; prints a line a kind."""
    rng = random.Random(seed)
    out = []
    price_once()
    with tempfile.TemporaryDirectory(prefix="vertimrf-kills-") as name:
        folder = Path(name)
        tables(folder)
        # Kernels are loaded once, before the forks.
        for encoder in encoders:
            rehearsal(folder, encoder)
        cases = [*itertools.product(encoders, VICTIMS)]
        for fault, wanted in ((KILL, kills), (FULL, full)):
            for i, case in enumerate(cases):
                share = wanted // len(cases) + (i < wanted % len(cases))
                if not share:
                    continue
                steps = len(Play(folder, *case, fault).steps())
                # At random within as many parts of the life as there are faults.
                points = [int((k + rng.random()) * steps / share) for k in range(share)]
                played = [Play(folder, *case, fault, point).play() for point in points]
                well = sum(outcome.survived for outcome in played)
                print(
                    f"{fault}, {', '.join(case)}: {well} of {share} survived, over {steps} steps",
                    flush=True,
                )
                out += played
    return out


def verdicts(outcomes):
    """The bars."""
    for fault in (KILL, FULL):
        those = [outcome for outcome in outcomes if outcome.fault == fault]
        if not those:
            continue
        count = len(those)
        for name, bad in (
            (
                "second releases, or second contents of anything sent",
                sum(bool(o.twice or o.unlike) for o in those),
            ),
            ("files or folders left half-written", sum(bool(o.half) for o in those)),
            ("runs that did not end", sum(not o.ended for o in those)),
            ("ends without a typed error", sum(bool(o.untyped) for o in those)),
        ):
            yield Verdict(f"{fault}, {count} times: {name}", bad, "0", bad == 0)
        # The life of a role is hardly ever shorter than it was.
        struck = sum(o.struck for o in those)
        yield at_least(f"{fault}, {count} times: faults that came", struck, 0.9 * count)


def tables(folder):
    """The parties' tables."""
    rng = np.random.default_rng(0)
    for name, columns in SCHEMA.parties:
        values = {column: rng.integers(0, 2, RECORDS) for column in columns}
        pa.csv.write_csv(pa.table({"id": np.arange(RECORDS), **values}), folder / f"{name}.csv")


SCHEMA = Schema.of(
    {
        "hospital": [Attribute.integer("smoker", 2), Attribute.integer("ward", 3)],
        "insurer": [Attribute.integer("tariff", 3)],
    }
)


def looked_up(compute):
    """The accountant's function, computed once for the same events."""
    known = {}

    def look_up(events, *more):
        asked = tuple(events), more
        if asked not in known:
            known[asked] = compute(events, *more)
        return known[asked]

    return look_up


def price_once():
    """All runs of a kind have the same events: their price is computed once, before the forks, and not in every process."""
    accountant.epsilon = plans.composed_epsilon = looked_up(accountant.epsilon)


def rehearsal(folder, encoder):
    """A whole run in this process."""
    run = folder / "rehearsal"
    run.mkdir()
    (run / "x").mkdir()
    for _ in range(MAX_TURNS):
        if [turn(folder, run, role, encoder) for role in (*NAMES, SERVER)] == [True] * 3:
            break
    shutil.rmtree(run)


def turn(tables, run, role, encoder):
    """What an operator's command does, and then the operator; tells whether nothing is left to do."""
    place = Exchange(run / "x")
    # Every role has a machine of its own.
    os.environ[STATE] = str(run / "state" / role)
    if role == SERVER:
        planning = PlanOptions(expected_records=RECORDS, **ENCODERS[encoder])
        plan = {
            "schema": SCHEMA,
            "epsilon": 4.0,
            "planning": planning,
            "options": RunOptions(seed=0),
        }
        there = (run / role / "run.toml").exists()
        server = ServerRun(run / role) if there else ServerRun.create(run / role, **plan)
        with server.hold():
            take_turn(server, place)
        return server.state().done
    there = (run / role / "run.toml").exists()
    party = (
        PartyRun(run / role)
        if there
        else PartyRun.create(run / role, name=role, table=tables / f"{role}.csv", id="id")
    )
    with party.hold():
        take_turn(party, place)
    state = party.state()
    for step in state.waits_for:
        if step.on == "you":
            party.accept(str(state.plan))
    return state.done


@dataclass
class Play:
    """One run with one fault."""

    tables: Path
    encoder: str
    victim: str
    fault: str
    point: int = -1
    count: mmap.mmap = field(default_factory=lambda: mmap.mmap(-1, 16))

    def steps(self):
        """The steps of a life without a fault."""
        run = self.folder()
        self.play(run=run, keep=True)
        steps = (run / "steps").read_text().splitlines()
        shutil.rmtree(run)
        return steps

    def folder(self):
        """For one run."""
        run = Path(tempfile.mkdtemp(dir=self.tables))
        (run / "x").mkdir()
        return run

    def play(self, run=None, keep=False):
        """From the first turn to the last.

        Args:
            run: the run's folder; default a new one.
            keep: whether the folder stays.
        """
        run = self.folder() if run is None else run
        untyped = []
        ended = False
        for _ in range(MAX_TURNS):
            ends = [self.process(run, role) for role in (*NAMES, SERVER)]
            if 1 in ends:
                untyped.append((run / "crash").read_text())
                break
            ended = ends == [DONE] * 3
            if ended:
                break
        struck = struct.unpack("qq", self.count[:16])[1]
        outcome = Outcome(
            self.encoder,
            self.victim,
            self.fault,
            self.point,
            step=(run / "struck").read_text() if (run / "struck").exists() else "",
            struck=bool(struck),
            ended=ended,
            twice=tuple(twice(run)),
            half=tuple(half_written(run)),
            unlike=tuple(unlike_record(run)) if ended else (),
            untyped=tuple(untyped),
        )
        if not keep:
            shutil.rmtree(run)
        return outcome

    def process(self, run, role):
        """A turn as a process; its exit code, or the negative signal that ended it."""
        child = os.fork()
        if child:
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        code = 1
        try:
            self.watch(run, role)
            code = DONE if turn(self.tables, run, role, self.encoder) else GOES_ON
        except VertiMRFError:
            code = SAID
        except OSError as error:
            code = SAID if error.errno == errno.ENOSPC else 1
        except BaseException as error:
            (run / "crash").write_text("".join(traceback.format_exception(error)[-3:]))
        os._exit(code)

    def watch(self, run, role):
        """Count this process's steps, strike at the one that is due, and put down what others can see from now on."""
        place = f"{run}/x/"
        counted = (
            (place,) if self.victim == "transport" else (f"{run}/{role}/", f"{run}/state/{role}")
        )
        whose = {
            "first party": NAMES[0],
            "other party": NAMES[1],
            "server": SERVER,
            "transport": role,
        }[self.victim]
        seen, life = (
            os.open(run / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            for name in ("seen", "steps")
        )
        inside = struck = False

        def step(event, paths, fills):
            nonlocal inside, struck
            if inside:
                return
            inside = True
            try:
                mine = whose == role and any(path.startswith(counted) for path in paths)
                if mine and (self.fault == KILL or fills):
                    steps, before = struct.unpack("qq", self.count[:16])
                    # A disk that is full stays so until the turn ends.
                    if struck or (steps == self.point and not before):
                        self.count[8:16] = struct.pack("q", 1)
                        struck = True
                        self.strike(run, event, paths, steps)
                    os.write(life, f"{event} {paths[-1][len(str(run)) + 1 :]}\n".encode())
                    self.count[:8] = struct.pack("q", steps + 1)
                if (
                    event == "os.rename"
                    and paths[-1].startswith(place)
                    and not DRAFT.fullmatch(Path(paths[-1]).name)
                ):
                    digest = hashlib.sha256(Path(paths[0]).read_bytes()).hexdigest()
                    os.write(seen, f"{digest} {paths[-1][len(place) :]}\n".encode())
            finally:
                inside = False

        def hook(event, arguments):
            if event not in STEPS:
                return
            # What takes no room works on a full disk too.
            fills = event in ("os.rename", "os.link", "os.mkdir")
            if event == "open":
                path, mode, flags = arguments
                if not ((flags or 0) & WRITING or any(letter in (mode or "") for letter in "wax+")):
                    return
                fills = not os.path.exists(named(path))
            count = 2 if event in ("os.rename", "os.link") else 1
            folders = (
                arguments[count + (event == "os.mkdir") :][:count]
                if event.startswith("os.")
                else ()
            )
            step(
                event,
                [named(*given) for given in zip_longest(arguments[:count], folders, fillvalue=-1)],
                fills,
            )

        sync, opens = os.fsync, os.open

        def fsync(handle):
            step("fsync", [named(handle)], True)
            sync(handle)

        def opened(path, flags, mode=0o777, *, dir_fd=None):
            # Of a file in an open folder the hook is not told which folder that is.
            if dir_fd is not None and flags & WRITING:
                step("open", [named(path, dir_fd)], not os.path.exists(named(path, dir_fd)))
            return opens(path, flags, mode, dir_fd=dir_fd)

        os.fsync, os.open = fsync, opened
        sys.addaudithook(hook)

    def strike(self, run, event, paths, steps):
        """The fault."""
        (run / "struck").write_text(f"{event} {paths[-1][len(str(run)) + 1 :]}")
        if self.fault == FULL:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), paths[-1])
        if event == "os.rename" and steps % 2 and os.path.isfile(paths[0]):
            os.truncate(paths[0], os.path.getsize(paths[0]) // 2)
        os.kill(os.getpid(), signal.SIGKILL)


def named(path, folder=-1):
    """A file's name, whether it is given as one, as one in an open folder, or as a number."""
    if folder >= 0:
        return f"{named(folder)}/{os.fsdecode(path)}"
    if isinstance(path, int):
        try:
            return os.readlink(f"/proc/self/fd/{path}")
        except OSError:
            return ""
    return os.fsdecode(path)


def twice(run):
    """Names in the place between roles that ever had two contents."""
    contents = {}
    for line in (run / "seen").read_text().splitlines():
        digest, name = line.split(" ", 1)
        contents.setdefault(name, set()).add(digest)
    for path in (run / "x").rglob("*"):
        if path.is_file() and not DRAFT.fullmatch(path.name):
            name = str(path.relative_to(run / "x"))
            contents.setdefault(name, set()).add(hashlib.sha256(path.read_bytes()).hexdigest())
    yield from sorted(name for name, digests in contents.items() if len(digests) > 1)


def half_written(run):
    """Drafts that are left when all is over, and files that are not whole."""
    for path in sorted(run.rglob("*")):
        if DRAFT.fullmatch(path.name):
            yield str(path.relative_to(run))
    for path in (run / "x").rglob("*"):
        if (
            path.is_file()
            and hashlib.sha256(path.read_bytes()[:-DIGEST]).digest() != path.read_bytes()[-DIGEST:]
        ):
            yield str(path.relative_to(run))
    result = run / SERVER / "result"
    if result.exists() and len(list(result.iterdir())) != 3:
        yield str(result.relative_to(run))


def unlike_record(run):
    """Messages, rows and answers in the place between roles that are not the ones on record."""
    for index, name in enumerate(NAMES):
        party = PartyRun(run / name)
        assert party.plan is not None
        os.environ[STATE] = str(run / "state" / name)
        releases = Releases.of(PrivateKey.load(run / name / "key"))
        digest = party.plan.digest()
        sent = [file.name for file in between(party.plan) if file.sender == name]
        for file in ("message", *sent):
            out = run / "x" / "parties" / name / file
            if out.exists() != releases.made(digest, index, file):
                yield f"{name}/{file}"
            elif out.exists():
                given = releases.given(digest, index, file)
                if out.read_bytes()[:-DIGEST] != given:
                    yield f"{name}/{file}"


def main():
    parser = arguments(__doc__)
    parser.add_argument("--kills", type=int, help="how many; default 200")
    parser.add_argument("--full", type=int, help="how many full disks; default 80")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--encoder", choices=ENCODERS, help="default all")
    options = parser.parse_args()
    if any(os.environ.get(name) != value for name, value in FORKING.items()):
        # Numba reads it when it is loaded.
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | FORKING)
    kills, full = (8, 8) if options.size == SMOKE else (200, 80)
    encoders = [options.encoder] if options.encoder else [*ENCODERS]
    outcomes = play_all(options.kills or kills, options.full or full, options.seed, encoders)
    for outcome in outcomes:
        if not outcome.survived:
            print(outcome)
    finish(verdicts(outcomes), "", options)


if __name__ == "__main__":
    main()

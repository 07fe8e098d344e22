"""The double release: whoever gets two messages for one plan, with the same hashes and fresh phantoms, peels the phantoms off.

Nobody has to be malicious: a command is run again because its output was lost, its machine went down, or the ids were mended.
Here it is run again in each of these ways, every run a process of its own; what counts is how many different releases get out.
"""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from msgspec import structs

from vertimrf.errors import PrivacyError
from vertimrf.keys import KeyRing
from vertimrf.party.party import Party
from vertimrf.party.releases import Release, Releases
from vertimrf.party.secret import Secret
from vertimrf.privacy.accountant import epsilon as composed
from vertimrf.privacy.events import CountSketchEvent, GaussianEvent, SketchEvent

from ..verdict import Verdict
from .deployment import NAMES, plan_for, tables_for
from .many_places import machine

RELEASE = Release(plan=b"p" * 32, party=1, table=b"t" * 32)
ROWS, KEYS = 2000, 1 << 14
AT_ONCE = 6

# Makes fresh bytes, puts them on record, then writes them out, as `vertimrf run party` does; killed before its n-th step on disk.
# Each run is a fork of its own. Prints the exit codes, and how many steps the last run took.
CHILD = """
import os, signal, sys, time
from pathlib import Path
from vertimrf.files import atomic
from vertimrf.party.releases import Release, Releases
from vertimrf.plan.options import PlanOptions

pause, runs, codes = float(sys.argv[1]), sys.argv[2:], []
steps = 0

def step(real):
    def counted(*arguments, **options):
        global steps
        if steps == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        steps += 1
        return real(*arguments, **options)
    return counted

def fresh():
    time.sleep(pause)
    return os.urandom(1000)

def run(folder, out):
    for name in ("open", "link", "fsync", "mkdir", "unlink", "replace", "close"):
        setattr(os, name, step(getattr(os, name)))
    release = Release(plan=b"p" * 32, party=1, table=b"t" * 32)
    atomic.write_bytes(out, Releases(folder).once(release, step(fresh)))

for folder, out, kill_at in zip(map(Path, runs[::3]), map(Path, runs[1::3]), map(int, runs[2::3])):
    read, write = os.pipe()
    child = os.fork()
    if not child:
        real = os.write
        run(folder, out)
        real(write, str(steps).encode())
        os._exit(0)
    os.close(write)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    took = os.read(read, 9).decode()
print(*codes, took)
sys.exit(any(codes))
"""


def child(folder, out, pause=0.0):
    """A process that releases to ``out``, with its records in ``folder``, after a pause."""
    return _start(pause, folder, out, -1)


def _start(pause, *runs):
    words = [sys.executable, "-c", CHILD, *map(str, (pause, *runs))]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def steps(folder):
    """How many steps on disk a whole release takes."""
    run = child(folder / "releases", folder / "message")
    return int(run.communicate()[0].split()[1])


def killed_at(folder, count):
    """Releases that are killed before each of so many steps: folder of records, output, exit code."""
    places = [(folder / f"{k}.releases", folder / f"{k}.message") for k in range(count)]
    runs = [word for k, place in enumerate(places) for word in (*place, k)]
    codes = _start(0.0, *runs).communicate()[0].split()
    return [(*place, int(code)) for place, code in zip(places, codes, strict=True)]


def _released(event, times):
    """The event of so many releases by all parties under one plan's hashes."""
    match event:
        case GaussianEvent():
            return structs.replace(event, count=times * event.count)
        case SketchEvent():
            return structs.replace(event, attributes_per_key=times * event.attributes_per_key)
        case CountSketchEvent():
            return structs.replace(event, groups=times * event.groups)
    return event


def rows():
    """What gets out with and without records, and what it would cost."""
    ring = KeyRing.new(NAMES)
    plan = plan_for(ring, ROWS, KEYS, nonce="double release")
    table, other = (tables_for(plan, ROWS, seed)[0] for seed in (0, 1))
    secret = Secret.new()
    key = ring.parties[NAMES[0]]

    def party():
        return Party(plan, NAMES[0], secret, key=key)

    fresh = len({Party(plan, NAMES[0], secret).run(table).to_bytes(plan) for _ in range(3)})
    yield Verdict(
        "double release: different contents of 3 runs without a key or record",
        fresh,
        "3: it matters",
        fresh == 3,
    )
    for encoder in ("scheduled-pairs", "count-sketch"):
        priced_plan = plan_for(ring, ROWS, KEYS, nonce="double release", encoder=encoder)
        for times, who in (
            ((2, 2, 2), "all of three parties twice"),
            ((3, 3, 3), "all three times"),
        ):
            name = f"double release, {encoder}: epsilon of a plan of {priced_plan.ledger().epsilon:.2f} released by {who}"
            # So many plans over the same people, each with hashes of its own.
            apart = composed(
                [entry.event for entry in priced_plan.entries()] * max(times), priced_plan.delta
            ).epsilon
            try:
                events = [_released(entry.event, max(times)) for entry in priced_plan.entries()]
                dear = composed(events, priced_plan.delta).epsilon
            except PrivacyError as error:
                yield Verdict(f"{name}: {error}", None, "is priced", False)
                continue
            yield Verdict(name, dear, f"above {max(times)} plans' {apart:.2f}", dear > apart)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with machine(folder / "state"):
            given = {party().release(table) for _ in range(3)}
            yield Verdict(
                "double release: different messages of 3 runs on record",
                len(given),
                "1",
                len(given) == 1,
            )
            try:
                party().release(other)
                said = ""
            except PrivacyError as error:
                said = str(error)
        priced = "from another table" in said and "epsilon" in said
        yield Verdict(
            "double release: another table gets a message",
            int(not said),
            "0, and the reason is said",
            priced,
        )
        yield from killed(folder)
        outs = [folder / f"{i}.message" for i in range(AT_ONCE)]
        runs = [child(folder / "at once", out, pause=0.3) for out in outs]
        ended = [run.wait() for run in runs]
        different = len({out.read_bytes() for out in outs if out.exists()})
        done = different == 1 and not any(ended)
        yield Verdict(
            f"double release: different messages of {AT_ONCE} processes at once",
            different,
            "1",
            done,
        )


def killed(folder):
    """Killed at every step on disk, and run again."""
    count = steps(folder)
    second, died = 0, 0
    for records, out, code in killed_at(folder, count):
        died += code == -signal.SIGKILL
        later = Releases(records).once(RELEASE, lambda: os.urandom(1000))
        second += out.exists() and out.read_bytes() != later
    name = f"double release: second messages after SIGKILL at each of {count} steps"
    yield Verdict(name, second, "0", second == 0 and died == count)

"""The double release: whoever gets two messages for one plan, with the same hashes and fresh phantoms, peels the phantoms off.

Nobody has to be malicious: a command is run again because its output was lost, its machine went down, or the ids were mended.
Here it is killed and run again, and run several times at once, every run a process of its own; what counts is how many different
releases get out. Beside it stands what the ledger would say of several releases under one plan's hashes. Second releases from
other places, and of other tables, are :mod:`.many_places`.
"""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from msgspec import structs

from vertimrf.errors import PrivacyError
from vertimrf.party.releases import Release, Releases
from vertimrf.privacy.accountant import epsilon as composed
from vertimrf.privacy.events import CountSketchEvent, GaussianEvent, SketchEvent

from ..verdict import Verdict
from .deployment import plan_for

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
    """What gets out, and what it would cost."""
    for encoder in ("scheduled-pairs", "count-sketch"):
        plan = plan_for(None, ROWS, KEYS, nonce="double release", encoder=encoder)
        head = f"double release, {encoder}: epsilon of a plan of {plan.ledger().epsilon:.2f}"
        events = [entry.event for entry in plan.entries()]
        for times in (2, 3):
            name = f"{head} released by all three parties {times} times"
            # So many plans over the same people, each with hashes of its own.
            apart = composed(events * times, plan.delta).epsilon
            try:
                dear = composed([_released(event, times) for event in events], plan.delta).epsilon
            except PrivacyError as error:
                yield Verdict(f"{name}: {error}", None, "is priced", False)
                continue
            yield Verdict(name, dear, f"above {times} plans' {apart:.2f}", dear > apart)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
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

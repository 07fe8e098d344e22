"""Measurements in processes of their own: of a command, and of rows with a time limit, whose verdicts come as JSON, a line each."""

from __future__ import annotations

import json
import os
import queue
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from .verdict import Verdict

__all__ = ["Figures", "end_cleanly", "limited", "measured", "processor_seconds", "tell"]

ROOT = Path(__file__).resolve().parents[1]
# Runs a command and prints its seconds, its peak memory in MiB, and the seconds its threads worked.
MEASURED = """
import resource, subprocess, sys, time
start = time.perf_counter()
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
seconds = time.perf_counter() - start
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(seconds, used.ru_maxrss / 2**10, used.ru_utime + used.ru_stime)
"""
# Seconds that a process has to end its own processes and remove its files when its time is up.
GRACE = 10.0


@dataclass(frozen=True)
class Figures:
    """What a command took: seconds, peak memory, and the seconds that its threads worked, which a busy machine changes less."""

    seconds: float
    gib: float
    worked: float


def measured(*words, **environment):
    """Run a `vertimrf` command, start-up included.

    It is started by a small process: a child's peak memory would be that of this one if this one is larger.

    Raises:
        RuntimeError: it failed.
    """
    command = [sys.executable, "-m", "vertimrf", *map(str, words)]
    run = subprocess.run(
        [sys.executable, "-c", MEASURED, *command],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )
    if run.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{run.stdout}{run.stderr}")
    seconds, mib, worked = map(float, run.stdout.split()[-3:])
    return Figures(seconds, mib / 2**10, worked)


def processor_seconds():
    """Of all commands that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def end_cleanly():
    """Whoever is ended ends the processes that it started, and removes its files."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))


def tell(verdicts):
    """In such a process: print each as it comes."""
    for verdict in verdicts:
        print(json.dumps(asdict(verdict)), flush=True)


def limited(name, words, limit):
    """Verdicts as they come from a process that is ended, with all that it started, at its limit.

    Args:
        name: of what it measures, for what is not done.
        words: the command, which tells its verdicts by :func:`tell`.
        limit: seconds after which it is ended.
    """
    lines = queue.Queue()
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True
        )

        def read(stream=process.stdout):
            for line in stream:
                lines.put(line)
            lines.put(None)

        threading.Thread(target=read, daemon=True).start()
        end = time.monotonic() + limit
        try:
            while (line := lines.get(timeout=max(end - time.monotonic(), 0))) is not None:
                yield Verdict(**json.loads(line))
            if process.wait():
                errors.seek(0)
                why = (errors.read().strip().splitlines() or ["no message"])[-1]
                yield Verdict(f"{name}: the rest, which failed: {why}", None, "", False)
        except queue.Empty:
            yield Verdict(f"{name}: the rest, not done in time, s", limit, f"< {limit:g}", False)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
                try:
                    process.wait(GRACE)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()

"""What commands take, each in a process of its own."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Runs a command and prints its seconds, its peak memory in MiB, and the seconds its threads worked.
MEASURED = """
import resource, subprocess, sys, time
start = time.perf_counter()
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
seconds = time.perf_counter() - start
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(seconds, used.ru_maxrss / 2**10, used.ru_utime + used.ru_stime)
"""
# With the bytecode of modules kept, as an installation has it; without, a start takes 1.1 s longer.
KEPT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
KEPT.setdefault("PYTHONPYCACHEPREFIX", str(Path(tempfile.gettempdir()) / "vertimrf-bytecode"))


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
        env={**KEPT, "PYTHONPATH": str(ROOT), **environment},
    )
    if run.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{run.stdout}{run.stderr}")
    seconds, mib, worked = map(float, run.stdout.split()[-3:])
    return Figures(seconds, mib / 2**10, worked)


def processor_seconds():
    """Of all commands that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime

"""One peer on one table: run within a time limit, judged, and kept."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from vertimrf.distances import tvd

from ..datasets import Dataset
from .peer import read_rows, surroundings

__all__ = ["DONE", "FAILED", "OVER", "Measured", "found", "kept", "measure"]

DONE, OVER, FAILED = "done", "over the limit", "failed"
WAYS = (2, 3)


@dataclass(frozen=True)
class Measured:
    """What came of a run.

    Attributes:
        data: name of the table.
        peer: name of the peer.
        epsilon, delta: target.
        seed: as the peer was told.
        outcome: DONE, OVER or FAILED.
        seconds: wall time of the whole process, start-up and files included.
        processor: seconds of all its threads.
        limit: seconds that it was given.
        tvd2, tvd3: mean distance of 300 random marginals; None unless DONE.
        message: last line with words of what a run that failed said.
    """

    data: str
    peer: str
    epsilon: float
    delta: float
    seed: int
    outcome: str
    seconds: float
    processor: float
    limit: float
    tvd2: float | None = None
    tvd3: float | None = None
    message: str = ""


def rows_file(folder: Path, data: str, peer: str, epsilon: float) -> Path:
    """Where a run's synthetic rows lie; what was measured lies beside them, as JSON."""
    return folder / f"{data}-{epsilon:g}-{peer}.csv.gz"


def record_file(rows: Path) -> Path:
    return rows.with_name(rows.name.removesuffix(".csv.gz") + ".json")


def kept(folder: Path, data: str, peer: str, epsilon: float, seed: int, limit: float) -> Measured | None:
    """A run that need not be made again: one that ended, or that had no less time."""
    file = record_file(rows_file(folder, data, peer, epsilon))
    if not file.is_file():
        return None
    run = Measured(**json.loads(file.read_text()))
    same = run.seed == seed and (run.outcome == DONE or (run.outcome == OVER and run.limit >= limit))
    return run if same else None


def found(folder: Path) -> list[Measured]:
    """All runs of a folder."""
    return [Measured(**json.loads(file.read_text())) for file in sorted(folder.glob("*.json"))]


def measure(
    folder: Path, command: Sequence[str], table: Dataset, peer: str, epsilon: float, delta: float, seed: int, limit: float
) -> Measured:
    """Run a command that writes rows to ``rows_file``, and judge them by 2- and 3-way TVD."""
    rows = rows_file(folder, table.name, peer, epsilon)
    rows.unlink(missing_ok=True)
    before = processor_seconds()
    start = time.perf_counter()
    outcome, message = run_within(command, limit)
    seconds, processor = time.perf_counter() - start, processor_seconds() - before
    distances: dict[int, float] = {}
    if outcome == DONE:
        try:
            distances = tvd(table.codes, read_rows(rows, table.names, table.sizes), table.sizes, WAYS)
        except (OSError, ValueError) as error:
            outcome, message = FAILED, str(error)
    run = Measured(
        table.name, peer, epsilon, delta, seed, outcome, seconds, processor, limit, distances.get(2), distances.get(3), message
    )
    record_file(rows).write_text(json.dumps(asdict(run), indent=1) + "\n")
    return run


def run_within(command: Sequence[str], limit: float) -> tuple[str, str]:
    """How a command ended, and the last line of what it said if it failed. What it started ends with it."""
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=errors, env=surroundings(), start_new_session=True
        )
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            return OVER, ""
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        errors.seek(0)
        said = [line for line in errors.read().splitlines() if any(map(str.isalnum, line))]
    return (FAILED, said[-1].strip() if said else f"exit code {code}") if code else (DONE, "")


def processor_seconds() -> float:
    """Of all processes that have been started and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime

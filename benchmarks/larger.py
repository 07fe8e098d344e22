"""Tables larger than memory: what a party's process takes for one that is read in pieces, and for one on a cluster.

    python benchmarks/larger.py [--quick] [--only ROW]... [--rows N] [--json FILE]

Tables are made up on the fly, in pieces. Times of `vertimrf party` are those of the command with its start-up, its kernels
compiled before; memory is the peak resident set of its process. --quick ends within two minutes: a tenth of the records.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.verdict import Verdict, at_most, conclude, show
from vertimrf.keys import KeyRing
from vertimrf.party.secret import Secret
from vertimrf.plan.attribute import Attribute
from vertimrf.plan.plan import Plan
from vertimrf.plan.planner import make_plan
from vertimrf.plan.schema import Schema

ROOT = Path(__file__).resolve().parents[1]
PIECE = 1 << 18
GIB = 1 << 30
MOST_MEMORY = 2.0

# 24 columns as registries have them: codes written as text, names of places, numbers with gaps, dates.
TEXTS = {f"text{i}": size for i, size in enumerate((2, 2, 3, 4, 5, 6, 8, 12, 20, 50, 200))}
CODES = {f"code{i}": size for i, size in enumerate((2, 4, 7, 16))}
NUMBERS = tuple(f"number{i}" for i in range(7))
DATES = ("born", "seen")
OTHERS = {"u": 4, "v": 8, "w": 3}


def attributes() -> list[Attribute]:
    """The 24 columns' public domains."""
    return [
        *(Attribute.categorical(name, [f"{name} value {i}" for i in range(size)]) for name, size in TEXTS.items()),
        *(Attribute.integer(name, size) for name, size in CODES.items()),
        *(Attribute.numeric(name, [0, 1, 2, 4, 8, 16, 32, 64, 1000], missing=True) for name in NUMBERS),
        *(Attribute.temporal(name, "date", [f"{year}-01-01" for year in range(1940, 2025, 12)]) for name in DATES),
    ]


def piece(first: int, rows: int) -> pa.Table:
    """Rows of the wide table, the same however it is cut into pieces of PIECE."""
    rng = np.random.default_rng(first)
    mood = rng.random(rows)
    columns: dict[str, pa.Array] = {"person": pa.array([f"P{i:010d}" for i in range(first, first + rows)])}

    def drawn(size: int) -> np.ndarray:
        return np.minimum((size * (0.5 * mood + 0.5 * rng.random(rows))).astype(np.int64), size - 1)

    for name, size in TEXTS.items():
        columns[name] = pa.array([f"{name} value {i}" for i in range(size)]).take(pa.array(drawn(size)))
    for name, size in CODES.items():
        columns[name] = pa.array(drawn(size))
    for name in NUMBERS:
        columns[name] = pa.array(np.round(999 * mood * rng.random(rows), 2), mask=rng.random(rows) < 0.05)
    for name in DATES:
        columns[name] = pa.array((drawn(30_000) - 10_950).astype(np.int32)).cast(pa.date32())
    return pa.table(columns)


def write(path: Path, rows: int) -> None:
    """The wide table as a file, a piece at a time."""
    schema = piece(0, 1).schema
    if path.suffix == ".parquet":
        with pa.parquet.ParquetWriter(path, schema) as parquet:
            for first in range(0, rows, PIECE):
                parquet.write_table(piece(first, min(PIECE, rows - first)))
    else:
        with pa.csv.CSVWriter(path, schema) as csv:
            for first in range(0, rows, PIECE):
                csv.write_table(piece(first, min(PIECE, rows - first)))


def agree(folder: Path, schema: Schema, rows: int) -> Plan:
    """A plan, and the first party's key and secret, in a folder."""
    ring = KeyRing.new([name for name, _ in schema.parties])
    plan = make_plan(schema, epsilon=1.0, expected_records=rows, public_keys=ring.public)
    plan.save(folder / "plan.json")
    next(iter(ring.parties.values())).save(folder / "own.key")
    Secret.new().save(folder / "own.secret")
    return plan


def measured(command: list[str]) -> tuple[float, float, float]:
    """Wall seconds, those of the processor, and peak resident GiB of a process of its own."""
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command)} failed.")
    return time.perf_counter() - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / (1 << 20)


def party(folder: Path, table: Path) -> tuple[float, float, float]:
    """`vertimrf party` of a table, anew."""
    for left in (folder / "own.secret.releases").glob("*"):
        left.unlink()
    (folder / "message").unlink(missing_ok=True)
    return measured(
        [sys.executable, "-m", "vertimrf", "party", str(table), "--plan", str(folder / "plan.json"),
         "--key", str(folder / "own.key"), "--secret", str(folder / "own.secret"), "--id", "person",
         "--out", str(folder / "message")]
    )  # fmt: skip


def rows_streamed(rows: int) -> Iterator[Verdict]:
    """`vertimrf party` of 24 attributes, of either kind of file."""
    schema = Schema.of({"registry": attributes(), "other": [Attribute.integer(name, size) for name, size in OTHERS.items()]})
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        agree(folder, schema, rows)
        write(folder / "small.parquet", 1000)
        party(folder, folder / "small.parquet")
        for suffix in ("parquet", "csv"):
            table = folder / f"table.{suffix}"
            write(table, rows)
            seconds, worked, memory = party(folder, table)
            size = table.stat().st_size / 1e6
            table.unlink()
            name = f"vertimrf party, {rows:,} x 24, {suffix} of {size:,.0f} MB"
            yield Verdict(f"{name}, s", seconds)
            yield Verdict(f"{name}, s of all cores", worked)
            yield at_most(f"{name}, peak memory, GiB", memory, MOST_MEMORY)


ROWS: dict[str, Callable[[int], Iterator[Verdict]]] = {"streamed": rows_streamed}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", action="append", choices=list(ROWS))
    parser.add_argument("--rows", type=int, help="of the streamed table; default 10^7")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = options.rows or (1_000_000 if options.quick else 10_000_000)
    return conclude([v for name in options.only or ROWS for v in show(ROWS[name](rows))], options.json)


if __name__ == "__main__":
    sys.exit(main())

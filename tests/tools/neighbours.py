"""Neighbours at the level of files: no record decides how another is read, or whether a table is.

    python tests/tools/neighbours.py [--count N] [--smoke] [--seed S] [--only FORMAT ...] [--case N] [--json FILE]

Tables with odd cells are drawn (``neighbouring.py``), each with and without a record at a drawn place, and put into every format
that is read. Of the two, every other record must have the same codes, and both must be read or both refused. PostgreSQL takes part
where its server is installed.

A pair follows from seed, format and number. Left out is what the pages leave out: a quote of a CSV file that nothing closes, bytes of
UTF-16 that are no text, and what a query's own words decide.
"""

from __future__ import annotations

import contextlib
import glob
import logging
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import pyarrow as pa

from benchmarks.verdict import FULL, arguments, at_most, finish
from tools.neighbouring import FORMATS, NAMES, SCHEMA, Pair, installed
from vertimrf.errors import VertiMRFError
from vertimrf.tables.columns import encode_table
from vertimrf.tables.ids import IdKeys, digested

KEYS = IdKeys(*(bytes([i]) * 16 for i in range(3)))
# The longest row of a text in tables that are drawn, and the blocks that they are read in.
LONGEST, BLOCK = 2000, 700


@dataclass
class Counts:
    """Outcomes of a run.

    Attributes:
        pairs: how many, by format and whether they are read.
        wrong: by format, number of the pair and what differs.
        records: how many records of a format had codes.
    """

    pairs: Counter = field(default_factory=Counter)
    wrong: list = field(default_factory=list)
    records: Counter = field(default_factory=Counter)

    @property
    def count(self):
        """Pairs."""
        return self.pairs.total()


def outcome(source, read):
    """Codes by digest, and the digests of blank records; or the kind of refusal."""
    try:
        table = encode_table(source, NAMES[0], SCHEMA.attributes, read, keys=KEYS)
    except VertiMRFError as error:
        return f"{type(error).__name__}: {error}"
    codes = dict(zip(table.digests.tolist(), map(tuple, table.codes.T.tolist()), strict=True))
    return codes | dict.fromkeys(set(table.blanks.tolist()).difference(codes), "blank")


def difference(pair, with_it, without):
    """What differs between two tables and must not; empty if nothing does."""
    refused = [isinstance(each, str) for each in (with_it, without)]
    if any(refused):
        return "" if all(refused) else f"one is refused: {[with_it, without][refused.index(True)]}"
    differ = [d for d in with_it.keys() | without.keys() if with_it.get(d) != without.get(d)]
    if len(differ) > 1:
        return f"{len(differ)} records differ"
    id = pair.rows[pair.place][0]
    if differ and isinstance(id, str) and id.startswith("p"):
        own, _ = digested(KEYS.records, pa.chunked_array([[id]]), "ids")
        if differ[0] != own[0]:
            return "another record differs"
    return ""


def drawn(name, case, seed):
    """A pair of a format."""
    rng = random.Random(f"{seed} {name} {case}")
    public = rng.randrange(2**32)
    rows = FORMATS[name][0](rng, random.Random(public))
    return Pair(public, rows, rng.choice([0, 0, rng.randrange(len(rows)), len(rows) - 1]))


def tried(counts, name, case, seed, folder, make):
    """Draw a pair, make both tables, and compare what is read of them."""
    pair = drawn(name, case, seed)
    found = []
    for rows in pair.tables():
        source, read = make(folder, rows, pair)
        try:
            found.append(outcome(source, read))
        except Exception as error:
            counts.wrong.append((name, case, f"untyped {type(error).__name__}: {error}"[:300]))
            found.append("untyped")
    counts.pairs[name, "refused" if isinstance(found[0], str) else "read"] += 1
    for codes in found:
        if not isinstance(codes, str):
            counts.records[name] += sum(each != "blank" for each in codes.values())
    if why := difference(pair, *found):
        counts.wrong.append((name, case, why))


def neighbours(count, seed=0, only=None, case=None, address=None):
    """Compare pairs of tables of every format.

    Args:
        count: how many, shared out to the formats.
        seed: of what is drawn.
        only: formats; default all.
        case: this pair of each format alone.
        address: of a PostgreSQL server; without it this format is left out, as are those whose packages are not installed.
    """
    counts = Counts()
    able = installed() if address else installed() - {"PostgreSQL"}
    names = [n for n in FORMATS if (only is None or n in only) and n in able]
    shares = [count // len(names) + (i < count % len(names)) for i in range(len(names))]
    with short_rows(), tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, share in zip(names, shares, strict=True):
            make = FORMATS[name][1]
            make = partial(make, address=address) if name == "PostgreSQL" else make
            for number in range(share) if case is None else [case]:
                tried(counts, name, number, seed, Path(folder), make)
    return counts


@contextlib.contextmanager
def short_rows():
    """Rows of texts are too long at a few thousand bytes, and read in blocks of fewer."""
    from vertimrf.tables import csv_file, values

    kept = [
        (module, name, getattr(module, name))
        for module in (csv_file, values)
        for name in ("LONGEST_ROW", "BLOCK")
    ]
    level = logging.getLogger("vertimrf").level
    logging.getLogger("vertimrf").setLevel(logging.ERROR)
    try:
        for module, name, _ in kept:
            setattr(module, name, {"LONGEST_ROW": LONGEST, "BLOCK": BLOCK}[name])
        yield
    finally:
        for module, name, value in kept:
            setattr(module, name, value)
        logging.getLogger("vertimrf").setLevel(level)


@contextlib.contextmanager
def postgresql():
    """The address of a PostgreSQL server that this starts; None where it is not installed."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin")) or [
        Path(path).parent for path in [shutil.which("initdb")] if path
    ]
    try:
        import adbc_driver_postgresql  # noqa: F401
    except ImportError:
        found = []
    if not found:
        yield None
        return
    # A socket's path has about a hundred characters at most, and root may start no server.
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    who = {"user": "postgres"} if os.getuid() == 0 else {}
    if who:
        shutil.chown(folder, "postgres")

    def called(program, *words):
        words = [f"{found[-1]}/{program}", "-D", f"{folder}/data", *words]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run(words, check=True, cwd="/", **quiet, **who)

    called("initdb", "-U", "holder", "-A", "trust")
    options = f"-k {folder} -c listen_addresses='' -c fsync=off"
    called("pg_ctl", "-w", "-o", options, "-l", f"{folder}/log", "start")
    try:
        yield f"postgresql://holder@/postgres?host={folder}"
    finally:
        called("pg_ctl", "-m", "immediate", "stop")
        shutil.rmtree(folder)


def verdicts(counts):
    """The figures that are held to bars."""
    return [
        at_most(
            f"pairs of neighbours of which another record, or a refusal, differs, in {counts.count:,}",
            len({wrong[:2] for wrong in counts.wrong}),
            0,
        )
    ]


def main():
    """Compare pairs, and say what differs."""
    parser = arguments(__doc__)
    parser.add_argument("--count", type=int, help="pairs; default 10,000, or 100 at smoke size")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--only", action="append", choices=[*FORMATS], help="this format; may be repeated"
    )
    parser.add_argument("--case", type=int, help="this pair of each format alone")
    options = parser.parse_args()
    count = options.count or (10_000 if options.size == FULL else 100)
    begun = time.monotonic()
    with postgresql() as address:
        counts = neighbours(count, options.seed, options.only, options.case, address)
    for name in FORMATS:
        read, refused = counts.pairs[name, "read"], counts.pairs[name, "refused"]
        own = Counter(wrong for kind, _, wrong in counts.wrong if kind == name)
        print(
            f"{name:<22}{read:>6,} pairs read, {refused:>5,} refused, {counts.records[name]:>7,} records, "
            f"{len({case for kind, case, _ in counts.wrong if kind == name}):>5,} differ"
        )
        for why, times in own.most_common(5):
            first = next(case for kind, case, wrong in counts.wrong if (kind, wrong) == (name, why))
            print(f"    {times} × {why} (first: --only {name!r} --case {first})")
    print(f"{counts.count:,} pairs in {time.monotonic() - begun:.0f} s.")
    finish(verdicts(counts), "", options)


if __name__ == "__main__":
    main()

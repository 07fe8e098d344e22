"""Private domains looked for again: twice at once, and from copies of the schema part or of the table.

Every search spends epsilon. What counts is how many different edges get out for one table, and in how many searches.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

from vertimrf.plan.schema import Schema

from ..verdict import Verdict

ROWS, AT_ONCE = 4000, 4
PART = '[[party]]\nname = "firm"\n[[party.attribute]]\nname = "pay"\nbins = "private"\n'


def prepare(folder):
    """A table and a schema part, whose bins are to be found."""
    pay = np.exp(np.random.default_rng(0).normal(10, 0.5, ROWS))
    pa.csv.write_csv(pa.table({"id": np.arange(ROWS), "pay": pay}), folder / "firm.csv")
    (folder / "firm.toml").write_text(PART)


def search(folder, out, state, part="firm.toml", table="firm.csv"):
    """`vertimrf schema domains` in a process of its own."""
    words = f"schema domains {table} --id id --schema {part} --epsilon 0.5 --out {out}".split()
    environment = os.environ | {
        "VERTIMRF_STATE": str(state),
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    return subprocess.Popen(
        [sys.executable, "-m", "vertimrf", *words],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def loaded(folder, outs):
    return [Schema.load(folder / out) for out in outs]


def ended(runs):
    for run in runs:
        _, said = run.communicate()
        assert run.returncode == 0, said.decode()


def searches(schemas):
    """How many different edges there are, and how many searches the ledgers name."""
    edges = {schema.attributes[0].edges for schema in schemas}
    return len(edges), len(
        {
            entry.release
            for schema in schemas
            for entry in schema.spent
            if str(entry.release).endswith("-0")
        }
    )


def at_once(folder, machines=1):
    """Several searches at about the same time, for copies of one part."""
    prepare(folder)
    outs = [f"found{i}.toml" for i in range(AT_ONCE)]
    for i in range(AT_ONCE):
        shutil.copy(folder / "firm.toml", folder / f"copy{i}.toml")
    ended(
        [
            search(folder, out, folder / f"state{i % machines}", f"copy{i}.toml")
            for i, out in enumerate(outs)
        ]
    )
    return loaded(folder, outs)


def from_copies(folder):
    """One search after the other, for copied parts and tables."""
    prepare(folder)
    for name in ("firm.toml", "firm.csv"):
        (folder / "copies").mkdir(exist_ok=True)
        shutil.copy(folder / name, folder / "copies" / name)
    given = [
        ("firm.toml", "firm.csv"),
        ("copies/firm.toml", "firm.csv"),
        ("firm.toml", "copies/firm.csv"),
        ("copies/firm.toml", "copies/firm.csv"),
    ]
    outs = [f"found{i}.toml" for i in range(len(given))]
    for out, (part, table) in zip(outs, given, strict=True):
        ended([search(folder, out, folder / "state", part, table)])
    return loaded(folder, outs)


def rows():
    """What gets out with and without a common record."""
    plays = {
        f"{AT_ONCE} at once, without a common record": (
            lambda folder: at_once(folder, AT_ONCE),
            AT_ONCE,
        ),
        f"{AT_ONCE} at once": (at_once, 1),
        "from copies of part and table": (from_copies, 1),
    }
    for title, (play, wanted) in plays.items():
        with tempfile.TemporaryDirectory() as name:
            edges, spent = searches(play(Path(name)))
        bar = "1" if wanted == 1 else f"{wanted}: it matters"
        title = f"domains again: searches that spend, {title} (with {edges} different edges)"
        yield Verdict(title, spent, bar, spent == wanted and (edges == 1 or wanted > 1))

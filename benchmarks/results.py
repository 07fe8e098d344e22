"""Tables of README and benchmarks/results that programs write, and what they were measured with: commit, date, machine.

    python benchmarks/results.py [--check]

A table stands between `<!-- table: NAME -->` and `<!-- end: NAME -->`. Its birth is the line right below the first of them:
`Measured at COMMIT, DATE, MACHINE. <!-- depends on PATH PATH -->`. :func:`put_between` writes both. This program lists all
tables; with --check, those older than the code that they measure: a commit after the birth's has changed one of the paths.
"""

from __future__ import annotations

import argparse
import datetime
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BEGIN = re.compile(r"<!-- table: (.+?) -->\n")
BIRTH = re.compile(r"Measured at (\S+), (\d{4}-\d\d-\d\d), (.+?)\. <!-- depends on (.+?) -->\n")
# What every accuracy figure depends on.
ACCURACY = "vertimrf/kernels vertimrf/model vertimrf/party vertimrf/plan vertimrf/privacy vertimrf/server vertimrf/releases"
DEPENDS = {
    "accuracy": ACCURACY,
    "accuracy in short": ACCURACY,
    "bars": ACCURACY,
    "message size": ACCURACY,
    "peers": "vertimrf/kernels vertimrf/model vertimrf/party vertimrf/plan vertimrf/server",
    "sets": "vertimrf/kernels vertimrf/party/alignment.py vertimrf/sketch.py",
    "utility": f"{ACCURACY} vertimrf/utility",
}


def git(*words):
    return subprocess.run(
        ["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=True
    ).stdout.strip()


def commit():
    """The checkout that a result is measured with; "unknown" outside of one."""
    try:
        return git("describe", "--always", "--dirty")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


@dataclass(frozen=True)
class Table:
    """A table of a page, and its birth.

    Attributes:
        page: relative to the checkout.
        name: of its markers.
        commit, date, machine: that it was measured with; None where it has no birth.
        depends: paths whose changes make it old.
    """

    page: str
    name: str
    commit: str | None = None
    date: str | None = None
    machine: str | None = None
    depends: tuple[str, ...] = ()

    def changes(self):
        """Commits after the birth's that changed a path, the newest first.

        Raises:
            subprocess.CalledProcessError: there is no such commit here.
        """
        return git("log", "--oneline", f"{self.commit}..HEAD", "--", *self.depends).splitlines()


def tables(root=ROOT):
    """All tables between markers, of README and benchmarks/results."""
    for page in (root / "README.md", *sorted((root / "benchmarks" / "results").glob("*.md"))):
        text = page.read_text()
        for begin in BEGIN.finditer(text):
            birth = BIRTH.match(text, begin.end())
            name = str(page.relative_to(root))
            if birth is None:
                yield Table(name, begin[1])
            else:
                yield Table(name, begin[1], birth[1], birth[2], birth[3], tuple(birth[4].split()))


def put_between(path, mark, text, revision):
    """Replace what stands between a file's markers, and write its birth: a commit, today and this machine.

    Raises:
        ValueError: the file lacks the markers.
    """
    content = path.read_text()
    begin, end = f"<!-- table: {mark} -->", f"<!-- end: {mark} -->"
    if content.count(begin) != 1 or content.count(end) != 1:
        raise ValueError(f"{path} needs the markers {begin} and {end}, once each.")
    head, rest = content.split(begin)
    depends = next(
        (paths for name, paths in DEPENDS.items() if mark == name),
        DEPENDS.get(mark.split()[0], "vertimrf"),
    )
    today = datetime.date.today().isoformat()
    birth = (
        f"Measured at {revision}, {today}, {os.cpu_count()} cores. <!-- depends on {depends} -->"
    )
    path.write_text(f"{head}{begin}\n{birth}\n\n{text}\n{end}{rest.split(end)[1]}")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="list only tables that are older than the code; exit code 1 for any",
    )
    options = parser.parse_args()
    old = 0
    for table in tables():
        where = f"{table.page}, {table.name}: "
        if table.commit is None:
            print(f"{where}no birth")
            old += 1
            continue
        try:
            changes = table.changes()
        except subprocess.CalledProcessError:
            print(f"{where}commit {table.commit} is not here")
            old += 1
            continue
        old += bool(changes)
        if changes or not options.check:
            since = f"{len(changes)} commits since have changed its code"
            print(f"{where}measured at {table.commit}, {table.date}, {table.machine}; {since}")
    return 1 if old and options.check else 0


if __name__ == "__main__":
    sys.exit(main())

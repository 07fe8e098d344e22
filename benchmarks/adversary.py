"""Attackers against the real thing: what they come to, and what each figure is held to.

    python benchmarks/adversary.py [--only NAME] [--json FILE]

To add an attack: a module in `benchmarks/attacks/` with a function that yields `Row`s, and its name in ATTACKS. Each attack
also shows that it works where its target is undefended; a row that would hold against a broken attacker is worth nothing.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from benchmarks.attacks import bucket, double_release, fingerprints, relay  # noqa: E402
from benchmarks.attacks.row import Row  # noqa: E402

ATTACKS: dict[str, Callable[[], Iterable[Row]]] = {
    "relay": relay.rows,
    "bucket": bucket.rows,
    "fingerprints": fingerprints.rows,
    "double release": double_release.rows,
}


def play(names: Iterable[str]) -> Iterator[Row]:
    """The rows of these attacks, one after another."""
    for name in names:
        yield from ATTACKS[name]()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=list(ATTACKS), help="play this attack; may be repeated")
    parser.add_argument("--json", dest="json_file", help="write the rows as JSON; - for standard output")
    options = parser.parse_args()
    rows = []
    for row in play(options.only or ATTACKS):
        rows.append(row)
        if options.json_file != "-":
            print(f"{'holds' if row.holds else 'FAILS'}  {row.name}: {row.value:,.6g} ({row.bar})", flush=True)
    text = json.dumps([asdict(row) for row in rows], indent=1)
    if options.json_file == "-":
        print(text)
    elif options.json_file is not None:
        Path(options.json_file).write_text(text + "\n")
    sys.exit(0 if all(row.holds for row in rows) else 1)


if __name__ == "__main__":
    main()

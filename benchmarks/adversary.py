"""Attackers against the real thing: what they come to, and what each figure is held to.

    python benchmarks/adversary.py [--only NAME] [--json FILE]

To add an attack: a module in `benchmarks/attacks/` with a function that yields `Verdict`s, and its name in ATTACKS. Each attack
also shows that it works where its target is undefended; a row that would hold against a broken attacker is worth nothing.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.attacks import (
    bucket,
    collusion,
    domains_again,
    double_release,
    exchange,
    fingerprints,
    ids,
    many_places,
    mutations,
    refusals,
    relay,
)
from benchmarks.verdict import Verdict, conclude, show

ATTACKS: dict[str, Callable[[], Iterable[Verdict]]] = {
    "relay": relay.rows,
    "bucket": bucket.rows,
    "exchange": exchange.rows,
    "collusion": collusion.rows,
    "fingerprints": fingerprints.rows,
    "double release": double_release.rows,
    "refusals": refusals.rows,
    "chosen ids": ids.rows,
    "many places": many_places.rows,
    "domains again": domains_again.rows,
    "mutants": mutations.rows,
}


def play(names: Iterable[str]) -> Iterator[Verdict]:
    """The rows of these attacks, one after another."""
    for name in names:
        yield from ATTACKS[name]()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=list(ATTACKS), help="play this attack; may be repeated")
    parser.add_argument("--json", type=Path, help="write the rows as JSON")
    options = parser.parse_args()
    sys.exit(conclude(show(play(options.only or ATTACKS)), options.json))


if __name__ == "__main__":
    main()

"""Attackers against the real thing: what they come to, and what each figure is held to.

    python -m benchmarks.attacks [--only NAME] [--smoke] [--json FILE]

To add an attack: a module in `benchmarks/attacks/` with a function that yields `Verdict`s, and its name in ATTACKS. Each attack
also shows that it works where its target is undefended; a row that would hold against a broken attacker is worth nothing.
--smoke plays those of seconds; tests/benchmarks/test_adversary.py has the others.
"""

from benchmarks.attacks import (
    bucket,
    collusion,
    deviation,
    domains_again,
    double_release,
    encrypted_collusion,
    exchange,
    fingerprints,
    forgotten,
    ids,
    many_places,
    refusals,
    relay,
)
from benchmarks.verdict import SMOKE, arguments, finish

ATTACKS = {
    "relay": relay.rows,
    "bucket": bucket.rows,
    "exchange": exchange.rows,
    "collusion": collusion.rows,
    "encrypted collusion": encrypted_collusion.rows,
    "deviation": deviation.rows,
    "forgotten noises": forgotten.rows,
    "fingerprints": fingerprints.rows,
    "double release": double_release.rows,
    "refusals": refusals.rows,
    "chosen ids": ids.rows,
    "many places": many_places.rows,
    "domains again": domains_again.rows,
}
SECONDS = ("fingerprints", "double release", "deviation", "forgotten noises")


def play(names):
    """The rows of these attacks, one after another."""
    for name in names:
        yield from ATTACKS[name]()


def main():
    parser = arguments(__doc__)
    parser.add_argument(
        "--only", action="append", choices=list(ATTACKS), help="play this attack; may be repeated"
    )
    options = parser.parse_args()
    names = options.only or (SECONDS if options.size == SMOKE else ATTACKS)
    finish(play(names), "adversary", options)


if __name__ == "__main__":
    main()

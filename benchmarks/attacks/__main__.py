"""Attackers against the real thing: what they come to, and what each figure is held to.

    python -m benchmarks.attacks [--only NAME] [--smoke] [--json FILE]

To add an attack: a module in `benchmarks/attacks/` with a function `rows` that yields `Verdict`s, and its name in PLAYED. Each attack
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
    id_sets,
    ids,
    many_places,
    refusals,
    relay,
)
from benchmarks.verdict import SMOKE, arguments, finish

# In the order of play; each is called as its module.
PLAYED = (
    relay,
    bucket,
    exchange,
    collusion,
    encrypted_collusion,
    deviation,
    forgotten,
    fingerprints,
    double_release,
    refusals,
    ids,
    id_sets,
    many_places,
    domains_again,
)
ATTACKS = {module.__name__.split(".")[-1]: module.rows for module in PLAYED}
SECONDS = ("fingerprints", "double_release", "deviation", "forgotten", "id_sets")


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

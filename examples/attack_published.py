"""Reconstruct complete rows from the sketches that the VertiMRF paper publishes; and fail to, from scheduled pairs.

The paper encodes all attributes under every hash key, and a record has one level under a key in all of them, while phantoms
are drawn for each sketch by itself. So one high level that appears in exactly one value of every attribute is almost surely
one record seen d times, and the values that show it are its row. This program encodes a table the way the paper does (its
Algorithms 1 and 3, with Lemma 1's number of phantoms), plays a server that knows nothing else, and counts how many of the
rows it writes down exist. Then it plays the same server against scheduled pairs of the same exact epsilon.

    python examples/attack_published.py [TABLE.csv[.gz]] [--id COLUMN] [--epsilon 0.32 --epsilon 0.16] [--json FILE]

Without a TABLE it generates one. EPSILON is what the paper's Theorem 4 claims for the sketches at delta = 1 / records.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from vertimrf.privacy.accountant import calibrate, epsilon
from vertimrf.privacy.events import SketchEvent
from vertimrf.releases.scheduled_pairs.encoding import SketchEncoder
from vertimrf.releases.scheduled_pairs.parameters import ScheduledPair, ScheduledPairs
from vertimrf.releases.shared_keys.encoding import SharedKeyEncoder
from vertimrf.releases.shared_keys.parameters import SharedKeys
from vertimrf.tables.ids import record_digests

CEILING = 40


def claimed_phantoms(claim: float, delta: float, keys: int, attributes: int) -> int:
    """Phantoms per sketch for which the paper claims (claim, delta) (VertiMRF, Theorem 4 and Lemma 1)."""
    each = claim / (4 * math.sqrt(keys * attributes * math.log(1 / delta)))
    return math.ceil(1 / math.expm1(each))


def published_sketches(
    digests: npt.NDArray[np.uint64],
    codes: npt.NDArray[np.uint16],
    sizes: Sequence[int],
    plan: SharedKeys,
) -> list[npt.NDArray[np.uint8]]:
    """What two parties, each with half of the attributes, publish under shared keys [per attribute, shape=(values, keys)]."""
    secret = secrets.token_bytes(32)
    half = len(sizes) // 2
    tables: list[npt.NDArray[np.uint8]] = []
    for held in (range(half), range(half, len(sizes))):
        encoder = SharedKeyEncoder(plan, list(held), secret)
        encoder.update(digests, np.ascontiguousarray(codes[held.start : held.stop]))
        tables.extend(encoder.result())
    return tables


def scheduled_sketches(
    digests: npt.NDArray[np.uint64],
    codes: npt.NDArray[np.uint16],
    sizes: Sequence[int],
    plan: ScheduledPairs,
) -> list[npt.NDArray[np.uint8]]:
    """The same table under scheduled pairs: a key's column is filled for its two attributes only, the rest is below the floor."""
    secret = secrets.token_bytes(32)
    half = len(sizes) // 2
    keys = sum(pair.keys for pair in plan.pairs)
    first = np.cumsum([0, *(pair.keys for pair in plan.pairs)])
    tables = [np.zeros((size, keys), np.uint8) for size in sizes]
    for held in (range(half), range(half, len(sizes))):
        encoder = SketchEncoder(plan, list(held), secret)
        encoder.update(digests, np.ascontiguousarray(codes[held.start : held.stop]))
        mine = iter(encoder.result())
        for number, pair in enumerate(plan.pairs):
            for attribute in (pair.left, pair.right):
                if attribute in held:
                    tables[attribute][:, first[number] : first[number + 1]] = next(mine)
    return tables


def schedule(event: SketchEvent, sizes: Sequence[int]) -> ScheduledPairs:
    """The event's keys dealt evenly to all pairs of an attribute of the first half and one of the second."""
    half = len(sizes) // 2
    crossing = list(itertools.product(range(half), range(half, len(sizes))))
    edges = [event.keys * i // len(crossing) for i in range(len(crossing) + 1)]
    pairs = tuple(ScheduledPair(a, b, edges[i + 1] - edges[i]) for i, (a, b) in enumerate(crossing))
    return ScheduledPairs(event.phantoms, event.floor, event.ceiling, pairs, tuple(sizes))


def reconstruct(tables: Sequence[npt.NDArray[np.uint8]], floor: int) -> npt.NDArray[np.uint16]:
    """Write down rows: under each key, the highest level that exactly one value of *every* attribute shows.

    Args:
        tables: published levels per attribute [shape=(values, keys)]; 0 where nothing is published.
        floor: the plan's; a level there says nothing.

    Returns:
        One guessed row for each key that gave one [shape=(guesses, attributes)].
    """
    keys = tables[0].shape[1]
    found = np.zeros(keys, bool)
    rows = np.zeros((keys, len(tables)), np.uint16)
    for level in range(CEILING, floor, -1):
        shown = [table == level for table in tables]
        hit = ~found & np.all([one.sum(axis=0) == 1 for one in shown], axis=0)
        for attribute, one in enumerate(shown):
            rows[hit, attribute] = one[:, hit].argmax(axis=0)
        found |= hit
    return rows[found]


def count_true(guesses: npt.NDArray[np.uint16], codes: npt.NDArray[np.uint16]) -> int:
    """How many guessed rows are, in all attributes, rows of the table."""
    real = {row.tobytes() for row in np.ascontiguousarray(codes.T.astype(np.uint16))}
    return sum(row.tobytes() in real for row in np.ascontiguousarray(guesses))


def strongest_evidence(event: SketchEvent) -> float:
    """Largest log likelihood ratio that one record's presence can show under one key."""
    return float(event.atoms[1].max())


def attack(
    codes: npt.NDArray[np.uint16], sizes: Sequence[int], claim: float, keys: int
) -> dict[str, Any]:
    """Encode both ways at the same claimed epsilon, attack both."""
    d, n = codes.shape
    delta = 1 / n
    digests = record_digests(bytes(16), np.arange(n))
    phantoms = claimed_phantoms(claim, delta, keys, d)
    floor = math.ceil(math.log2(phantoms))
    event = SketchEvent(phantoms, floor, CEILING, keys, attributes_per_key=d)
    tables = published_sketches(
        digests, codes, sizes, SharedKeys(phantoms, floor, CEILING, keys, tuple(sizes))
    )
    guesses = reconstruct(tables, floor)

    def scheduled(rho: float) -> list[SketchEvent]:
        many = max(math.ceil(math.sqrt(keys * 7 / (2 * rho))), 2)
        return [
            SketchEvent(many, max(int(math.log2(many)) - 4, 0), round(math.log2(many)) + 7, keys)
        ]

    paired = scheduled(calibrate(scheduled, claim, delta))[0]
    fenced = reconstruct(
        scheduled_sketches(digests, codes, sizes, schedule(paired, sizes)), paired.floor
    )
    return {
        "claimed_epsilon": claim,
        "delta": delta,
        "keys": keys,
        "published": {
            "phantoms": phantoms,
            "exact_epsilon": epsilon([event], delta).epsilon,
            "strongest_evidence": strongest_evidence(event),
            "guesses": len(guesses),
            "true_rows": count_true(guesses, codes),
        },
        "scheduled_pairs": {
            "phantoms": paired.phantoms,
            "exact_epsilon": epsilon([paired], delta).epsilon,
            "strongest_evidence": strongest_evidence(paired),
            "guesses": len(fenced),
            "true_rows": count_true(fenced, codes),
        },
    }


def read_codes(path: Path, id_column: str | None) -> tuple[npt.NDArray[np.uint16], list[int]]:
    """A table's columns as codes [shape=(attributes, rows)], and the number of values of each."""
    frame = pd.read_csv(path)
    frame = frame.drop(columns=frame.columns[0] if id_column is None else id_column)
    columns = [pd.factorize(frame[name])[0] for name in frame]
    return np.array(columns, np.uint16), [int(column.max()) + 1 for column in columns]


def generated(
    rows: int = 20_000, attributes: int = 15, seed: int = 0
) -> tuple[npt.NDArray[np.uint16], list[int]]:
    """A table of skewed, correlated attributes."""
    rng = np.random.default_rng(seed)
    sizes = [int(size) for size in rng.integers(2, 20, attributes)]
    hidden = rng.normal(size=rows)
    scores = 0.6 * hidden + 0.8 * rng.normal(size=(attributes, rows))
    ranks = scores.argsort(axis=1).argsort(axis=1) / rows
    return np.array([(rank**1.5 * size) for rank, size in zip(ranks, sizes, strict=True)]).astype(
        np.uint16
    ), sizes


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("table", nargs="?", type=Path, metavar="TABLE")
    parser.add_argument("--id", dest="id_column", help="record id column; default the first")
    parser.add_argument(
        "--epsilon", type=float, action="append", help="claimed by Theorem 4; default 0.32 and 0.16"
    )
    parser.add_argument("--keys", type=int, default=2000)
    parser.add_argument(
        "--json", dest="json_file", help="write the figures as JSON; - for standard output"
    )
    options = parser.parse_args()
    codes, sizes = (
        generated() if options.table is None else read_codes(options.table, options.id_column)
    )
    outcomes = [
        attack(codes, sizes, claim, options.keys) for claim in options.epsilon or [0.32, 0.16]
    ]
    if options.json_file == "-":
        print(json.dumps(outcomes, indent=1))
        return
    if options.json_file is not None:
        Path(options.json_file).write_text(json.dumps(outcomes, indent=1) + "\n")
    print(
        f"{codes.shape[1]:,} rows, {codes.shape[0]} attributes, {options.keys:,} keys, delta {1 / codes.shape[1]:.3g}"
    )
    print("encoder          claimed  exact epsilon  phantoms  rows written down  of them true")
    for outcome in outcomes:
        for name in ("published", "scheduled_pairs"):
            one = outcome[name]
            claim = outcome["claimed_epsilon"]
            print(
                f"{name.replace('_', ' '):<15}  {claim:>7.2f}  {one['exact_epsilon']:>13.3f}  {one['phantoms']:>8,}  "
                f"{one['guesses']:>17}  {one['true_rows']:>12}"
            )


if __name__ == "__main__":
    main()

"""Parties whose people only partly overlap: what the overlap is estimated to be, and how good the rows are.

A table's attributes are dealt to two parties. Each holds the people in common and half of the others, who are drawn at random, or
depend on an attribute: people with a high value are far more often in common. What the protocol makes of it, for the people in
common (inner) and for all of them (outer), is held against the true joins. Beside the inner one stands what the protocol makes of
tables with these people alone.

    python benchmarks/accuracy/overlap.py [--data FOLDER] [--quick | --smoke] [--json FILE]

With the paper's Adult table where FOLDER has it; else, and with --quick, with a generated one.
"""

import itertools
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks import datasets
from benchmarks.attacks.deployment import dealt
from benchmarks.verdict import FULL, SMOKE, Verdict, arguments, at_most, finish
from vertimrf import PlanOptions, RunOptions, make_plan
from vertimrf.trial import run_protocol
from vertimrf.utility.distances import tvd

OVERLAPS = (1.0, 0.9, 0.6, 0.3)
# How much likelier those with the highest value of the first attribute are to be in common than those with the lowest.
LOG_ODDS = 3.0
EPSILON = 0.8
MESSAGE_BYTES = 16_000_000
QUICK_RECORDS, QUICK_BYTES = 40_000, 1_000_000
SMOKE_RECORDS, SMOKE_BYTES = 5000, 100_000


def split_people(data, overlap, dependent, rng):
    """Records in common, and all records of either party, of whose own ``overlap`` is the part that is in common."""
    records = data.records
    level = data.codes[0] / data.sizes[0]
    # The greatest of these keys are a weighted sample without replacement (Efraimidis and Spirakis, 2006).
    keys = rng.random(records) ** np.exp(-LOG_ODDS * level * dependent)
    order = np.argsort(-keys)
    both, others = np.split(order, [round(records * overlap / (2 - overlap))])
    first = rng.random(others.size) < 0.5
    return both, np.concatenate([both, others[first]]), np.concatenate([both, others[~first]])


def run(plan, tables):
    """What the protocol makes."""
    return run_protocol(plan, tables, RunOptions(seed=0)).result


def outer_codes(codes, sizes, present, owners):
    """Codes in which what a person's parties do not hold is one value more.

    Args:
        codes: [shape=(d, n)].
        sizes: of attributes.
        held: whether a party holds somebody [shape=(parties, n)].
        owners: party of each attribute.
    """
    there = present[list(owners)]
    return np.where(there, codes, np.array(sizes)[:, None]).astype(np.uint16)


def one_case(data, overlap, dependent, message_bytes, rng):
    """All figures of one split."""
    cut = (len(data.sizes) + 1) // 2
    both, one, two = split_people(data, overlap, dependent, rng)
    schema, tables = dealt(data, cut, (one, two))
    owners = [schema.party_of(a) for a in range(len(data.sizes))]
    real = data.codes[:, both]

    def plan_for(records, population="inner"):
        return make_plan(
            schema,
            epsilon=EPSILON,
            planning=PlanOptions(
                delta=1 / data.records,
                expected_records=records,
                encoder="count-sketch",
                message_bytes=message_bytes,
                population=population,
            ),
        )

    def distance(real, codes, sizes=data.sizes):
        return tvd(real, codes, sizes, (3,))[3]

    name = f"{overlap:.0%} in common, {'by an attribute' if dependent else 'at random'}"
    result = run(plan_for(len(one)), tables)
    if result.overlap is not None:
        (match,) = result.overlap.common
        yield Verdict(f"{name}: people in common", len(both))
        yield Verdict(f"{name}: estimated", match.records)
        yield Verdict(f"{name}: its standard error", match.error)
        yield at_most(
            f"{name}: standard errors that it is off",
            abs(match.records - len(both)) / match.error,
            5.0,
        )
    yield Verdict(f"{name}: found to hold the same people (1: yes)", float(result.overlap is None))
    inner = distance(real, result.codes)
    if overlap == 1:
        yield Verdict(f"{name}: inner 3-way TVD", inner)
        return
    alone = dealt(data, cut, (both, both))[1]
    reference = distance(real, run(plan_for(len(both)), alone).codes)
    yield Verdict(f"{name}: inner 3-way TVD", inner)
    yield Verdict(f"{name}: inner 3-way TVD, of tables with the people in common alone", reference)
    yield Verdict(
        f"{name}: inner 3-way TVD, over that of the people in common alone", inner / reference
    )
    plan = plan_for(len(one), "outer")
    result = run(plan, tables)
    if result.holders is None:
        return
    everybody = np.unique(np.concatenate([one, two]))
    present = np.array([np.isin(everybody, members) for members in (one, two)])
    holders = [*(part.parties for part in result.others), plan.party_names]
    known = np.array([[party in members for members in holders] for party in plan.party_names])[
        :, result.holders
    ]
    wider = [size + 1 for size in data.sizes]
    truth = outer_codes(data.codes[:, everybody], data.sizes, present, owners)
    yield Verdict(
        f"{name}: outer 3-way TVD",
        distance(truth, outer_codes(result.codes, data.sizes, known, owners), wider),
    )


def main():
    options = arguments(__doc__, quick="a generated table", data="adult").parse_args()
    smoke = options.size == SMOKE
    real = options.size == FULL and datasets.present("adult", options.data)
    data = (
        datasets.load("adult", options.data)
        if real
        else datasets.generated(SMOKE_RECORDS if smoke else QUICK_RECORDS)
    )
    message_bytes = MESSAGE_BYTES if real else SMOKE_BYTES if smoke else QUICK_BYTES
    print(
        f"{data.name}, {data.records:,} records, epsilon {EPSILON}, count sketches of at most {message_bytes / 1e6:g} MB"
    )
    cases = [(0.6, True)] if smoke else itertools.product(OVERLAPS, (False, True))
    rows = (
        row
        for overlap, dependent in cases
        if overlap < 1 or not dependent
        for row in one_case(data, overlap, dependent, message_bytes, np.random.default_rng(1))
    )
    finish(rows, "overlap", options)


if __name__ == "__main__":
    main()

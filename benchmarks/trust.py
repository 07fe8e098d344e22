"""How far a result can be trusted: never worse than independent columns, and more is never worse.

    python benchmarks/trust.py [--quick | --smoke] [--json FILE]

Each table is generated: columns of 2 to 16 values that are independent, or follow one hidden number weakly or strongly. The peer
is noisy one-way marginals with all of the budget at the same delta, projected to the simplex, columns independent; both give as
many rows as the table has. Distances are means over 3-way marginals.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.datasets import Codes, Dataset
from benchmarks.verdict import FULL, QUICK, SMOKE, Verdict, arguments, conclude, show
from vertimrf.distances import tvd
from vertimrf.options import RunOptions
from vertimrf.plan.attribute import Attribute
from vertimrf.plan.defaults import default_delta
from vertimrf.plan.options import PlanOptions
from vertimrf.plan.planner import make_plan
from vertimrf.plan.schema import Schema
from vertimrf.privacy.accountant import calibrate
from vertimrf.privacy.events import GaussianEvent
from vertimrf.tables.table import Table
from vertimrf.trial import run_protocol

# How much of each column follows the hidden number.
KINDS = {"independent": 0.0, "weak": 0.4, "strong": 0.8}
# Records, columns, epsilons, and runs of each.
GRIDS = {
    FULL: ((200, 500, 2000, 10_000, 100_000), (5, 50, 250), (0.1, 1.0, 10.0), 5),
    QUICK: ((200, 2000), (5, 20), (1.0,), 3),
    SMOKE: ((200,), (5,), (1.0,), 1),
}
RISING = (0.2, 0.8, 3.2)


def generated(records: int, columns: int, follows: float) -> Dataset:
    """Columns with skewed values, a part of whose records follow one hidden number."""
    rng = np.random.default_rng(1)
    sizes = tuple(
        int(size) for size in np.round(np.exp(rng.uniform(np.log(2), np.log(16), columns)))
    )
    shares = [np.cumsum(rng.dirichlet(np.ones(size))) for size in sizes]
    hidden = rng.random(records)
    codes = [
        np.searchsorted(
            share[:-1], np.where(rng.random(records) < follows, hidden, rng.random(records))
        )
        for share in shares
    ]
    names = tuple(f"a{i}" for i in range(columns))
    return Dataset("generated", names, sizes, np.array(codes, np.uint16))


def schema_of(data: Dataset, holders: int) -> Schema:
    """The table's columns, dealt to one holder or two parties."""
    pairs = zip(data.names, data.sizes, strict=True)
    schema = Schema.of({"all": [Attribute.integer(name, size) for name, size in pairs]})
    d = len(data.sizes)
    return schema if holders == 1 else schema.split((d - d // 2, d // 2))


def distance(data: Dataset, rows: Codes) -> float:
    """Mean 3-way distance of rows from the table."""
    return tvd(data.codes, rows, data.sizes, [3])[3]


def ours(data: Dataset, holders: int, epsilon: float) -> float:
    """Distance of one run."""
    schema = schema_of(data, holders)
    planning = PlanOptions(expected_records=data.records, even_if_useless=True)
    plan = make_plan(schema, epsilon, planning)
    ids = np.arange(data.records, dtype=np.uint64)
    tables = [
        Table(schema.part(name), ids, data.codes[list(schema.party_attributes(name))].copy())
        for name in schema.party_names
    ]
    options = replace(RunOptions(), rows=data.records)
    return distance(data, run_protocol(plan, tables, options).result.codes)


def on_simplex(counts: np.ndarray) -> np.ndarray:
    """The nearest probabilities (Held, Wolfe and Crowder, 1974)."""
    down = np.sort(counts)[::-1]
    above = (np.cumsum(down) - 1) / np.arange(1, len(down) + 1)
    out: np.ndarray = np.maximum(counts - above[np.flatnonzero(down > above)[-1]], 0)
    return out


def alone(data: Dataset, epsilon: float, rng: np.random.Generator) -> float:
    """Distance of noisy one-way marginals."""
    delta = default_delta(data.records)
    rho = calibrate(lambda rho: [GaussianEvent(math.sqrt(0.5 / rho))], epsilon, delta)
    sigma = math.sqrt(len(data.sizes) / (2 * rho))
    noisy = [
        np.bincount(codes, minlength=size) + sigma * rng.normal(size=size)
        for codes, size in zip(data.codes, data.sizes, strict=True)
    ]
    total = max(float(np.mean([counts.sum() for counts in noisy])), 1.0)
    rows = []
    for counts in noisy:
        share = on_simplex(counts / total)
        rows.append(rng.choice(len(share), data.records, p=share / share.sum()))
    return distance(data, np.array(rows, np.uint16))


def never_worse(size: str) -> Iterator[Verdict]:
    """Distances over those of the peer."""
    records, columns, epsilons, runs = GRIDS[size]
    for d, n, (kind, follows) in itertools.product(columns, records, KINDS.items()):
        data = generated(n, d, follows)
        for epsilon in epsilons:
            rng = np.random.default_rng(2)
            peer = np.mean([alone(data, epsilon, rng) for _ in range(runs)])
            for holders in (1, 2):
                mean = np.mean([ours(data, holders, epsilon) for _ in range(runs)])
                name = f"{kind}, {n:,} x {d}, epsilon {epsilon:g}, holders {holders}"
                yield Verdict(f"distance over noisy one-way marginals': {name}", mean / peer)


def more_is_better(size: str) -> Iterator[Verdict]:
    """Distances over those at the next smaller epsilon, and at a quarter of the records."""
    n, runs = {FULL: 10_000, QUICK: 2000, SMOKE: 200}[size], GRIDS[size][-1]
    for kind, follows in KINDS.items():
        data, quarter = (generated(records, 10, follows) for records in (n, n // 4))
        before = np.mean([ours(quarter, 2, RISING[0]) for _ in range(runs)])
        for less, epsilon in itertools.pairwise((None, *RISING)):
            mean = np.mean([ours(data, 2, epsilon) for _ in range(runs)])
            smaller = f"{n // 4:,} records" if less is None else f"epsilon {less}"
            name = f"{kind}, {n:,} x 10, epsilon {epsilon}, over that with {smaller}"
            yield Verdict(f"distance when there is more: {name}", mean / before)
            before = mean


def main() -> None:
    options = arguments(__doc__, quick="small tables, three runs of each").parse_args()
    rows = itertools.chain(never_worse(options.size), more_is_better(options.size))
    sys.exit(conclude(show(rows, "trust", options.size), options.json, options.size))


if __name__ == "__main__":
    main()

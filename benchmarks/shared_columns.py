"""Columns that two parties hold: what sharing them is worth, what contradictions do, and whether they are told.

Adult in two halves. Apart, age and sex are the first party's; shared, the second party has them too, in some of its records with
another value, drawn from all others alike. Total variation distance to the first party's table: of three-way marginals of all
attributes, and of those that nobody shares, and of pairs of a shared attribute and one that only the second party has. And the
disagreement that the server reports, beside the true one.

    python -m benchmarks.shared_columns --json shared_columns.json
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from vertimrf.distances import distance, tvd
from vertimrf.options import RunOptions
from vertimrf.plan.attribute import Attribute
from vertimrf.plan.planner import make_plan
from vertimrf.plan.schema import Schema
from vertimrf.server.server import Result
from vertimrf.tables.table import Table
from vertimrf.trial import run_protocol

from .datasets import FOLDER, Dataset, load

SHARED = ("age", "sex")
RATES = (None, 0.0, 0.03, 0.1)


def contradicted(codes: np.ndarray, size: int, rate: float, rng: np.random.Generator) -> np.ndarray:
    """The same values, but for another one, drawn from all others alike, in a part of the records."""
    out = codes.copy()
    wrong = rng.random(codes.size) < rate
    out[wrong] = (codes[wrong] + rng.integers(1, size, int(wrong.sum()))) % size
    return out


def parties_of(data: Dataset, rate: float | None, rng: np.random.Generator) -> tuple[Schema, list[Table]]:
    """Two parties' parts of a table; ``rate`` of contradictions in what both hold, None where they share nothing."""
    attributes = [Attribute.integer(name, size) for name, size in zip(data.names, data.sizes, strict=True)]
    own = [a for a in attributes if a.name not in SHARED]
    both = [a for a in attributes if a.name in SHARED]
    half = len(attributes) // 2
    first, second = [*both, *own[: half - len(both)]], own[half - len(both) :]
    schema = Schema.of({"one": first, "two": second if rate is None else [*both, *second]})
    codes = {a.name: row for a, row in zip(attributes, data.codes, strict=True)}
    other = codes | {a.name: contradicted(codes[a.name], a.size, rate or 0.0, rng) for a in both}
    digests = rng.integers(0, 1 << 63, data.records).astype(np.uint64)
    tables = [
        Table(schema.part(name), digests, np.stack([held[a.name] for a in schema.part(name)]))
        for name, held in (("one", codes), ("two", other))
    ]
    return schema, tables


def run(data: Dataset, rate: float | None, epsilon: float, encoder: str, seed: int, megabytes: float) -> dict[str, Any]:
    """One run's figures."""
    schema, tables = parties_of(data, rate, np.random.default_rng(seed))
    plan = make_plan(
        schema, epsilon=epsilon, expected_records=data.records, encoder=encoder, message_bytes=round(megabytes * 1e6)
    )
    result: Result = run_protocol(plan, tables, RunOptions(seed=seed)).result
    place = [data.names.index(name) for name in schema.names]
    real = np.ascontiguousarray(data.codes[place])
    own = [i for i, name in enumerate(schema.names) if name not in SHARED]
    apart = [np.ascontiguousarray(codes[own]) for codes in (real, result.codes)]
    second = [i for i in schema.party_attributes("two") if i in own]
    bridged = [distance(real, result.codes, schema.sizes, (schema.index(name), i)) for name in SHARED for i in second]
    found = {
        "rate": rate,
        "seed": seed,
        "tvd": tvd(real, result.codes, schema.sizes, (3,))[3],
        "tvd_of_others": tvd(*apart, [schema.sizes[i] for i in own], (3,))[3],
        "tvd_of_bridged_pairs": float(np.mean(bridged)),
        "warnings": list(result.warnings),
    }
    for each in result.disagreements:
        name = schema.names[each.attribute]
        held = [table.codes[[a.name for a in table.attributes].index(name)] for table in tables]
        found[name] = {"true": float(np.mean(held[0] != held[1])), "reported": each.share, "error": each.error}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=FOLDER)
    parser.add_argument("--epsilon", type=float, default=0.8)
    parser.add_argument("--encoder", default="count-sketch")
    parser.add_argument("--message-mb", type=float, default=16.0)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    data = load("adult", options.data)
    everything = []
    for rate in RATES:
        runs = [run(data, rate, options.epsilon, options.encoder, s, options.message_mb) for s in range(options.runs)]
        everything += runs
        line = "apart" if rate is None else f"shared, {rate:.0%} contradicted"
        for what in ("tvd", "tvd_of_others", "tvd_of_bridged_pairs"):
            each = [one[what] for one in runs]
            line += f"; {what} {np.mean(each):.4f} +- {np.std(each, ddof=1) / math.sqrt(len(each)) if len(each) > 1 else 0:.4f}"
        for name in SHARED if rate is not None else ():
            line += f"; {name} " + ", ".join(
                f"{one[name]['reported']:.2%} +- {one[name]['error']:.2%} (true {one[name]['true']:.2%})" for one in runs
            )
        print(line, flush=True)
    if options.json:
        options.json.write_text(json.dumps(everything, indent=1) + "\n")


if __name__ == "__main__":
    main()

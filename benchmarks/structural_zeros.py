"""What the schema's impossible combinations do for accuracy: the same runs with and without them, and the rows that break them.

    python -m benchmarks.structural_zeros [--data FOLDER] [--seeds 5] [--encoder count-sketch] [--json FILE]

Two tables at two parties each: one made up, whose combinations span them, and Adult, where FOLDER (benchmarks/datasets.py) has
it. Adult's combinations are public knowledge of the census: years of schooling follow from the degree (one party has both),
husbands are male and wives female (across parties; one record each contradicts), and both are married (one party). Distances are
mean TVD, over 300 random marginals of three attributes, and over the combinations' own marginals; each run has its own noise.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vertimrf.distances import distance, tvd
from vertimrf.plan.attribute import Attribute
from vertimrf.plan.impossible import Impossible
from vertimrf.plan.planner import make_plan
from vertimrf.plan.schema import Schema
from vertimrf.tables.impossible import breaking
from vertimrf.tables.table import Table
from vertimrf.trial import run_protocol

from . import datasets
from .verdict import Verdict, at_most, conclude, show

# Codes of Adult.
HUSBAND, WIFE, FEMALE, MALE, MARRIED = 0, 5, 0, 1, (1, 2)
# Standard errors that a mean difference of paired runs may be above zero before it counts as harm.
ERRORS = 2.0


@dataclass(frozen=True, eq=False)
class Case:
    """A table, and what cannot be in it."""

    name: str
    schema: Schema
    codes: datasets.Codes
    epsilon: float


def generated(records: int = 20_000) -> Case:
    """People at one party, what they do at another: nobody under 15 is married, earns or drives, and pupils earn nothing."""
    rng = np.random.default_rng(0)
    age, region, sex = rng.integers(0, 90, records), rng.integers(0, 9, records), rng.integers(0, 2, records)
    child = age < 15
    pupil = child | ((age < 20) & (rng.random(records) < 0.8))
    married = np.where(child, 0, rng.binomial(2, 1 / (1 + np.exp((35 - age) / 9))))
    income = np.where(pupil, 0, 1 + rng.binomial(8, np.clip((age - 10) / 90 + 0.1 * sex, 0, 1)))
    car = np.where(child, 0, rng.binomial(2, np.clip(0.2 + income / 14, 0, 1)))
    parties = {
        "registry": [
            Attribute.numeric("age", range(0, 91, 5), integral=True),
            Attribute.integer("region", 9),
            Attribute.categorical("sex", ["F", "M"]),
            Attribute.categorical("married", ["no", "was", "yes"]),
        ],
        "agency": [
            Attribute.integer("income", 10),
            Attribute.integer("cars", 3),
            Attribute.categorical("pupil", ["no", "yes"]),
        ],
    }
    impossible = (
        Impossible.of(age={"below": 15}, married=["was", "yes"]),
        Impossible.of(age={"below": 15}, income={"above": 0}),
        Impossible.of(age={"below": 15}, cars={"above": 0}),
        Impossible.of(age={"below": 15}, pupil="no"),
        Impossible.of(age={"from": 20}, pupil="yes"),
        Impossible.of(pupil="yes", income={"above": 0}),
        Impossible.of(pupil="no", income=0),
    )
    codes = np.stack([age // 5, region, sex, married, income, car, pupil]).astype(np.uint16)
    return Case("generated", Schema.of(parties, impossible=impossible), codes, 0.5)


def adult(folder: Path) -> Case:
    """Adult, split as in the paper."""
    data = datasets.load("adult", folder)
    attributes = [Attribute.integer(name, size) for name, size in zip(data.names, data.sizes, strict=True)]
    # One degree, one number of years: the file says which, and so does the census's documentation.
    degree, years = data.codes[data.names.index("education")], data.codes[data.names.index("education_num")]
    follows = {int(d): int(y) for d, y in zip(degree, years, strict=True)}
    schooling = [Impossible.of(education=d, education_num=[o for o in range(16) if o != y]) for d, y in sorted(follows.items())]
    apart = [Impossible.of(relationship=[HUSBAND, WIFE], marital_status=[s for s in range(7) if s not in MARRIED])]
    spouses = [Impossible.of(relationship=HUSBAND, sex=FEMALE), Impossible.of(relationship=WIFE, sex=MALE)]
    schema = Schema.of({"one": attributes[:8], "two": attributes[8:]}, impossible=[*schooling, *apart, *spouses])
    return Case("adult", schema, data.codes, 0.8)


def runs(case: Case, seeds: int, encoder: str) -> Iterator[Verdict]:
    """Distances and broken rows with and without, and by how much the first is the better."""
    blind = Schema.of({name: case.schema.part(name) for name, _ in case.schema.parties})
    own = sorted({tuple(place for place, _ in combination) for combination in case.schema.combinations})
    found: dict[bool, list[tuple[float, float, int]]] = {True: [], False: []}
    for seed in range(seeds):
        for stated in (True, False):
            schema = case.schema if stated else blind
            plan = make_plan(schema, epsilon=case.epsilon, expected_records=case.codes.shape[1], encoder=encoder)
            digests = np.arange(case.codes.shape[1], dtype=np.uint64)
            tables = [
                Table(schema.part(name), digests, np.ascontiguousarray(case.codes[list(schema.party_attributes(name))]))
                for name, _ in schema.parties
            ]
            with tempfile.TemporaryDirectory() as folder:
                made = run_protocol(plan, tables, folder=folder).result.codes
            broken = np.any([breaking(made, combination) for combination in case.schema.combinations], axis=0)
            far = [distance(case.codes, made, schema.sizes, marginal) for marginal in own]
            whole = tvd(case.codes, made, schema.sizes, (3,), seed=seed)[3]
            found[stated].append((whole, float(np.mean(far)), int(broken.sum())))
    known, unknown = np.array(found[True]), np.array(found[False])
    records = case.codes.shape[1]
    for column, what in enumerate(("3-way TVD", "TVD of the combinations' own marginals")):
        difference = known[:, column] - unknown[:, column]
        error = difference.std(ddof=1) / np.sqrt(seeds)
        yield Verdict(f"{case.name}, {encoder}: {what} without", unknown[:, column].mean())
        yield Verdict(f"{case.name}, {encoder}: {what} with", known[:, column].mean())
        yield at_most(f"{case.name}, {encoder}: {what}, with less without (mean of pairs)", difference.mean(), ERRORS * error)
    yield Verdict(f"{case.name}, {encoder}: rows broken without, per {records:,}", unknown[:, 2].mean())
    yield at_most(f"{case.name}, {encoder}: rows broken with, at most", known[:, 2].max(), 0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and print; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=datasets.FOLDER)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--encoder", default="count-sketch")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    cases = [generated()]
    if datasets.present("adult", options.data):
        cases.append(adult(options.data))
    return conclude(show(v for case in cases for v in runs(case, options.seeds, options.encoder)), options.json)


if __name__ == "__main__":
    sys.exit(main())

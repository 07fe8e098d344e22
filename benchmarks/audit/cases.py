"""Plans and neighbouring files that the audit runs, one for each kind of release."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

import numpy as np

from vertimrf import Attribute, Party, PlanOptions, Schema, Secret, VertiMRFError, make_plan
from vertimrf.privacy.events import GaussianEvent
from vertimrf.releases.count_sketches import encoding
from vertimrf.tables.read_options import ReadOptions

from .replay import Recorder, compared, entries_of, same_message, spent

RECORDS = 400
SECRET = Secret(bytes(range(32)))
# Records that one party's file has and the neighbour's lacks: usual ones, and ones that a careless
# reader or encoder would stumble over.
VICTIMS = {
    "a usual record": ("p0", "40", "yes", "3", "a"),
    "a rare value": ("victim", "99", "yes", "7", "zz"),
    "an age out of bounds": ("victim", "1000", "no", "1", "a"),
    "no age": ("victim", "", "no", "1", "a"),
    "a text for an age": ("victim", "forty", "no", "1", "a"),
    "no value at all": ("victim", "", "", "", ""),
    "a second row of the same id": ("p7", "12", "no", "2", "b"),
    "no id": ("", "12", "no", "2", "b"),
    "too many cells": ("victim", "12", "no", "2", "b", "more"),
    "too few cells": ("victim", "12"),
    "a value as long as a page": ("victim", "12", "no", "2", "x" * 5000),
}


@dataclass(frozen=True)
class Case:
    """A kind of release.

    Attributes:
        name: what is released.
        options: of the plan.
        wide: number of further columns of the party, whose pairs need a choice.
        shared: whether both parties hold a column.
        alone: whether there is no other party.
        bins: of the age.
        person: records of a person.
    """

    name: str
    options: dict = field(default_factory=dict)
    wide: int = 0
    shared: bool = False
    alone: bool = False
    bins: int = 5
    person: int = 1


CASES = (
    Case("record count, one-way and larger marginals, count sketches"),
    Case("R-scores and a limited graph", {"tau": 40, "epsilon": 8.0}, wide=6),
    Case("pairs chosen one by one", {"tau": 2000}, wide=6, alone=True),
    Case(
        "pairs chosen beside analyses",
        {"tau": 5000, "workload": ["age ~ ward"]},
        wide=24,
        alone=True,
    ),
    Case("pairs chosen beside count sketches", {"tau": 400}, wide=16),
    Case("many columns, each too long for pairs", wide=24, bins=25),
    Case("agreement on a shared column", shared=True),
    Case("several records of a person", {"records_per_person": 2}, person=2),
    Case("analyses asked for", {"workload": ["age ~ smoker + ward"]}, wide=3),
    Case("independent columns", {"local_models": False}),
    Case("more budget", {"epsilon": 20.0}),
)


def schema_of(case: Case) -> Schema:
    """The public domains of both parties."""
    smoker = Attribute.categorical("smoker", ["no", "yes"])
    hospital = [
        Attribute.numeric("age", np.linspace(0, 100, case.bins + 1), missing=True),
        smoker,
        Attribute.integer("ward", 8),
        Attribute.categorical("code", ["a", "b", "c"]),
        *(Attribute.integer(f"w{i}", 2 + i % 5) for i in range(case.wide)),
    ]
    if case.alone:
        return Schema.of({"hospital": hospital})
    return Schema.of(
        {
            "hospital": hospital,
            "insurer": [*([smoker] if case.shared else []), Attribute.integer("claims", 4)],
        }
    )


def rows_of(case: Case, seed: int) -> list[tuple[str, ...]]:
    """The records that both files have."""
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 100, RECORDS)
    return [
        (
            f"p{i}",
            str(age[i]),
            "yes" if rng.random() < age[i] / 120 else "no",
            str(age[i] // 13),
            "abc"[age[i] % 3],
            *(str((age[i] + j) % (2 + j % 5)) for j in range(case.wide)),
        )
        for i in range(RECORDS)
    ]


def neighbours(case: Case, folder: Path) -> Iterator[tuple[str, Path, Path]]:
    """The name of a record, a file with it and one without it.

    With several records of a person, the files differ by as many records, those of the person "v".
    """
    header = ("id", "age", "smoker", "ward", "code", *(f"w{i}" for i in range(case.wide)))
    rows = rows_of(case, 0)
    for number, (what, record) in enumerate(VICTIMS.items()):
        own = [row for row in rows if row[0] != record[0] or record[0] == "p7"]
        if len(record) == 5:
            record = (*record, *("1",) * case.wide)
        place = (0, len(own) // 2, len(own))[number % 3]
        more = [record]
        if case.person > 1:
            own = [(f"q{i // case.person}", *row) for i, row in enumerate(own)]
            more = [("v", f"{record[0]}{i}", *record[1:]) for i in range(case.person)]
        paths = folder / f"{number}with.csv", folder / f"{number}without.csv"
        for path, some in zip(paths, ([*own[:place], *more, *own[place:]], own), strict=True):
            with path.open("w", newline="") as file:
                csv.writer(file).writerows([("pid",) * (case.person > 1) + header, *some])
        yield what, *paths


@dataclass(frozen=True)
class Audited:
    """What a case came to.

    Attributes:
        draws: draws of noise that were compared, over all pairs of files.
        faults: a sentence for every one.
        part: largest part of the ledger's cost (zCDP) of this party's Gaussian noise that a pair of
            files used.
    """

    draws: int
    faults: tuple[str, ...]
    part: float


def audited(case: Case, folder: Path, seed: int = 1) -> Audited:
    """Run a case on all its neighbours.

    Args:
        case: the kind of release.
        folder: for files.
        seed: of the noise.
    """
    options = dict(case.options)
    epsilon = options.pop("epsilon", 1.0)
    size = 20_000 if case.person == 1 else 100_000
    planning = PlanOptions(
        expected_records=RECORDS, message_bytes=size, even_if_useless=True, **options
    )
    plan = make_plan(schema_of(case), epsilon, planning, nonce="audit")
    entries = entries_of(plan.ledger(), "hospital")
    allowed = sum(e.event.rho for e in entries if isinstance(e.event, GaussianEvent))
    draws, faults, part = 0, [], 0.0
    for what, *paths in neighbours(case, folder):
        first = Recorder(seed=seed)
        one = message_of(plan, paths[0], first, case)
        second = Recorder(first.draws, seed)
        other = message_of(plan, paths[1], second, case)
        found = [*compared(first, second, entries, case.person)]
        if (one is None) != (other is None):
            found = ["one of the two files is refused"]
        elif one is not None:
            found += same_message(one, other, first.draws, case.person)
        faults += [f"{case.name}, {what}: {fault}" for fault in found]
        draws += len(first.draws)
        part = max(part, spent(first.draws, second.draws) / allowed)
    return Audited(draws, tuple(faults), part)


def message_of(plan, path: Path, noise: Recorder, case: Case):
    """The hospital's message about a file; None if it is refused."""
    party = Party(plan, "hospital", SECRET, noise)
    read = ReadOptions(person="pid") if case.person > 1 else ReadOptions()
    steps = encoding.code_steps

    def kept(*given):
        noise.steps.append(steps(*given))
        return noise.steps[-1]

    try:
        with mock.patch.object(encoding, "code_steps", kept):
            return party.run(party.encode(path, "id", read))
    except VertiMRFError:
        return None

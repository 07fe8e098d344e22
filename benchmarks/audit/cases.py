"""Plans and neighbouring files that the audit runs, one for each kind of release."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from unittest import mock

import numpy as np

from vertimrf import Attribute, Party, PlanOptions, Schema, Secret, VertiMRFError, make_plan
from vertimrf.plan.plan import Plan
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


# Said where nothing was compared.
NOTHING = "every file is refused, so nothing was compared"
# Those that cannot stand in place of another record, because they have no id of their own.
NOT_REPLACING = ("a second row of the same id", "no id")


@dataclass(frozen=True)
class Audited:
    """What a case came to.

    Attributes:
        draws: draws of noise that were compared, over all pairs of files.
        faults: a sentence for every one.
        part: largest part of the ledger's cost (zCDP) of this party's Gaussian noise that a pair of
            files used; None where no such noise is drawn.
        kinds: kinds of the ledger's entries that the case is about.
    """

    draws: int
    faults: tuple[str, ...]
    part: float | None
    kinds: frozenset[str]


class Audit(Protocol):
    """A kind of release in the register (:mod:`.register`).

    Attributes:
        name: what is released.
    """

    name: str

    def audit(self, folder: Path, seed: int = 1) -> Audited:
        """Run it on pairs of neighbouring files.

        Args:
            folder: for files.
            seed: of the noise.
        """


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
        replaced: whether neighbours differ by what one record holds, and not by a record.
        alike: whether all records but the one that files differ by hold the same.
    """

    name: str
    options: dict = field(default_factory=dict)
    wide: int = 0
    shared: bool = False
    alone: bool = False
    bins: int = 5
    person: int = 1
    replaced: bool = False
    alike: bool = False

    def audit(self, folder: Path, seed: int = 1) -> Audited:
        """Run the case on all its neighbours (:func:`audited`)."""
        return audited(self, folder, seed)


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
    if case.alike:
        return [(f"p{i}", "90", "no", "0", "b", *("0",) * case.wide) for i in range(RECORDS)]
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
        if case.replaced and what in NOT_REPLACING:
            continue
        own = [row for row in rows if row[0] != record[0] or record[0] == "p7"]
        if len(record) == 5:
            record = (*record, *("1",) * case.wide)
        place = (0, len(own) // 2, len(own))[number % 3]
        more = [record]
        if case.person > 1:
            own = [(f"q{i // case.person}", *row) for i, row in enumerate(own)]
            more = [("v", f"{record[0]}{i}", *record[1:]) for i in range(case.person)]
        if case.replaced:
            # The same id with other values.
            own[place:place] = [(record[0], "30", "no", "2", "b", *("0",) * case.wide)]
            rest = [*own[:place], *own[place + 1 :]]
            pair = [*rest[:place], *more, *rest[place:]], own
        else:
            pair = [*own[:place], *more, *own[place:]], own
        paths = folder / f"{number}with.csv", folder / f"{number}without.csv"
        for path, some in zip(paths, pair, strict=True):
            with path.open("w", newline="") as file:
                csv.writer(file).writerows([("pid",) * (case.person > 1) + header, *some])
        yield what, *paths


def audited(case: Case, folder: Path, seed: int = 1) -> Audited:
    """Run a case on all its neighbours.

    Args:
        case: the kind of release.
        folder: for files.
        seed: of the noise.
    """
    plan = plan_of(case)
    entries = entries_of(plan.ledger(), "hospital")
    allowed = sum(e.event.rho for e in entries if isinstance(e.event, GaussianEvent))
    draws, faults, part, made = 0, [], 0.0, 0
    for what, *paths in neighbours(case, folder):
        first = Recorder(seed=seed)
        one = message_of(plan, paths[0], first, case)
        second = Recorder(first.draws, seed)
        other = message_of(plan, paths[1], second, case)
        found = [*compared(first, second, entries, case.person)]
        if (one is None) != (other is None):
            found = ["one of the two files is refused"]
        elif one is not None:
            made += 1
            found += same_message(one, other, first.draws, case.person)
        faults += [f"{case.name}, {what}: {fault}" for fault in found]
        draws += len(first.draws)
        part = max(part, spent(first.draws, second.draws) / allowed)
    if not made:
        faults.append(f"{case.name}: {NOTHING}")
    kinds = frozenset(str(entry.kind) for entry in plan.ledger().entries)
    return Audited(draws, tuple(faults), part, kinds)


def plan_of(case: Case) -> Plan:
    """The plan of a case."""
    options = dict(case.options)
    epsilon = options.pop("epsilon", 1.0)
    if "keys" not in options:
        options["message_bytes"] = 20_000 if case.person == 1 else 100_000
    planning = PlanOptions(expected_records=RECORDS, even_if_useless=True, **options)
    return make_plan(schema_of(case), epsilon, planning, nonce="audit")


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

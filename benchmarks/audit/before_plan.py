"""What one machine reads of a table before there is a plan: private domains, with their points, and a count."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from vertimrf import PlanOptions, VertiMRFError, trial
from vertimrf.options import RunOptions
from vertimrf.plan.open_schema import OpenSchema
from vertimrf.progress import Clock
from vertimrf.tables.read_options import DEFAULT

from .cases import NOTHING, RECORDS, Audited, Case, neighbours
from .replay import Recorder, compared

SMOKER = {"name": "smoker", "values": ["no", "yes"]}
PUBLIC = (
    {"name": "age", "edges": [0, 20, 40, 60, 80, 100], "missing": True},
    SMOKER,
    {"name": "code", "values": ["a", "b", "c"]},
)
PRIVATE = (
    {"name": "age", "bins": "private", "missing": True},
    SMOKER,
    {"name": "ward", "bins": "private", "bounds": [0, 20], "integral": True},
    {"name": "code", "values": "private"},
)


# The machine's key that chooses among the rows of one id. With this one the row that is in both files is kept, so
# that they differ in a row that is left out. With others it is replaced, which is no neighbour: two changes by one.
MACHINE = bytes([2]) * 32


@dataclass(frozen=True)
class BeforePlan:
    """Private domains, or the number of records to plan with.

    Attributes:
        name: what is released.
        attributes: sections of the schema of the one table.
        counted: whether the number of records is not public.
    """

    name: str
    attributes: tuple[Mapping, ...]
    counted: bool = False

    def audit(self, folder: Path, seed: int = 1) -> Audited:
        """Read and plan, on neighbouring files (:class:`.cases.Audit`)."""
        draws, faults, kinds = 0, [], set()
        for what, *paths in neighbours(Case(self.name), folder):
            first = Recorder(seed=seed)
            one = self.planned(paths[0], first)
            second = Recorder(first.draws, seed)
            other = self.planned(paths[1], second)
            found = []
            if (one is None) != (other is None):
                found = ["one of the two files is refused"]
            elif one is not None:
                entries = prior_entries(one)
                found = [*compared(first, second, entries)]
                if without_nonce(one) != without_nonce(other):
                    found.append("the plans differ although noisy figures do not")
                if [e.event for e in entries] != [e.event for e in prior_entries(other)]:
                    found.append("the ledgers differ although noisy figures do not")
                kinds.update(str(entry.kind) for entry in entries)
            faults += [f"{self.name}, {what}: {fault}" for fault in found]
            draws += len(first.draws)
        if not kinds:
            faults.append(f"{self.name}: {NOTHING}")
        return Audited(draws, tuple(faults), None, frozenset(kinds))

    def planned(self, path: Path, noise: Recorder):
        """The plan for a file; None if it is refused."""
        schema = OpenSchema.from_json({"party": [{"name": "all", "attribute": [*self.attributes]}]})
        planning = PlanOptions(
            expected_records=None if self.counted else RECORDS, even_if_useless=True
        )
        try:
            with (
                mock.patch.object(trial, "count_noise", return_value=noise),
                mock.patch.object(trial, "domains_noise", return_value=noise),
                mock.patch.object(trial, "own_key", return_value=MACHINE),
            ):
                plan, _ = trial.read_and_plan(
                    [path], "id", 20.0, schema, planning, DEFAULT, RunOptions(), Clock()
                )
        except VertiMRFError:
            return None
        return plan


def without_nonce(plan) -> dict:
    """What a plan says, without its random text."""
    return plan.to_json() | {"nonce": ""}


def prior_entries(plan) -> list:
    """The ledger's entries of what was read before the plan."""
    before = "edges", "values", "planning count"
    return [entry for entry in plan.ledger().entries if entry.kind in before]


DOMAINS = BeforePlan("private domains: points, bounds, bins and values", PRIVATE)
PLANNING_COUNT = BeforePlan("the number of records to plan with", PUBLIC, counted=True)

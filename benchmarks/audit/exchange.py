"""Encrypted counts: everything that two parties send while they count their common records.

Both parties hold the same ids, so that neighbouring files lack the same person at both. Ciphertexts
differ in every run, whatever the files hold: what they hide rests on the encryption, and their length
is compared here.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import numpy as np

from vertimrf import Party, PlanOptions, VertiMRFError, make_plan
from vertimrf.party.comparison import compare_all
from vertimrf.plan.plan import Plan
from vertimrf.privacy.events import GaussianEvent
from vertimrf.privacy.ledger import Kind
from vertimrf.releases.encrypted_counts import encoding
from vertimrf.releases.release import ROWS

from . import cases
from .cases import NOTHING, RECORDS, SECRET, VICTIMS, Audited, Case, neighbours, schema_of
from .replay import Recorder, compared, same_message, spent

NAMES = ("hospital", "insurer")
# Both parties know the record count, and its noise is drawn from their secret.
TOGETHER = "both"


@dataclass(frozen=True)
class Exchange:
    """Encrypted counts of two parties.

    Attributes:
        name: what is released.
    """

    name: str

    def audit(self, folder: Path, seed: int = 1) -> Audited:
        """Run all steps at both parties on neighbouring files (:class:`.Audit`)."""
        case = Case(self.name)
        planning = PlanOptions(expected_records=RECORDS, even_if_useless=True, encoder="encrypted")
        plan = make_plan(schema_of(case), 1.0, planning, nonce="audit")
        entries = {name: entries_at(plan, name) for name in (*NAMES, TOGETHER)}
        own = [e.event.rho for e in entries["hospital"] if isinstance(e.event, GaussianEvent)]
        draws, faults, part, made = 0, [], 0.0, 0
        for what, *paths in files(case, folder):
            first = {name: Recorder(seed=seed + i) for i, name in enumerate(entries)}
            one = exchanged(plan, paths[0], first)
            second = {name: Recorder(first[name].draws, seed + i) for i, name in enumerate(entries)}
            other = exchanged(plan, paths[1], second)
            found = [
                f"at {name}, {fault}"
                for name in entries
                for fault in compared(first[name], second[name], entries[name])
            ]
            if (one is None) != (other is None):
                found = ["one of the two pairs of files is refused"]
            elif one is not None:
                made += 1
                if one.lengths != other.lengths:
                    found.append("files between the parties have other lengths")
                for a, b in zip(one.messages, other.messages, strict=True):
                    found += same_message(a, b, [])
            faults += [f"{self.name}, {what}: {fault}" for fault in found]
            draws += sum(len(recorder.draws) for recorder in first.values())
            used = spent(first["hospital"].draws, second["hospital"].draws)
            part = max(part, used / sum(own))
        if not made:
            faults.append(f"{self.name}: {NOTHING}")
        kinds = frozenset(str(entry.kind) for entry in plan.ledger().entries)
        return Audited(draws, tuple(faults), part, kinds)


@dataclass(frozen=True)
class Sent:
    """What left the parties.

    Attributes:
        messages: to the server.
        lengths: of the files between the parties, bytes.
    """

    messages: tuple
    lengths: tuple[int, ...]


class CountNoise:
    """Noise of the record count: the same key and count give the same noise, so it is drawn once.

    Args:
        recorder: the recorder of draws.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._known: dict[tuple, np.ndarray] = {}

    def gaussian(self, values, sigma):
        asked = values.tobytes(), sigma
        if asked not in self._known:
            self._known[asked] = self._recorder.gaussian(values, sigma)
        return self._known[asked]


def entries_at(plan: Plan, name: str) -> list:
    """The ledger's entries of a party; the record count is that of both."""
    counted = [
        e for e in cases.entries_of(plan.ledger(), "hospital") if e.kind == Kind.RECORD_COUNT
    ]
    if name == TOGETHER:
        return counted
    return [e for e in cases.entries_of(plan.ledger(), name) if e not in counted]


def files(case: Case, folder: Path) -> Iterator[tuple]:
    """The name of a record, and files of both parties with it and without it."""
    for what, *paths in neighbours(case, folder):
        pairs = []
        for path in paths:
            with path.open(newline="") as file:
                ids = [row[0] for row in csv.reader(file)][1:]
            beside = path.with_name(f"insurer-{path.name}")
            with beside.open("w", newline="") as file:
                csv.writer(file).writerows([("id", "claims"), *((id, len(id) % 4) for id in ids)])
            pairs.append((path, beside))
        assert what in VICTIMS
        yield what, *pairs


def exchanged(plan: Plan, paths: tuple[Path, Path], noise: dict[str, Recorder]) -> Sent | None:
    """All steps of both parties; None if a file is refused."""
    parties = {
        name: Party(plan, name, SECRET, noise[name], counting_key=plan.sketch.private_key())
        for name in NAMES
    }
    count = CountNoise(noise[TOGETHER])
    try:
        with mock.patch.object(encoding, "KeyedNoise", return_value=count):
            tables = {
                name: party.encode(path, "id")
                for (name, party), path in zip(parties.items(), paths, strict=True)
            }
            compare_all({name: party.comparison(tables[name]) for name, party in parties.items()})
            hospital, insurer = parties.values()
            pieces = {
                piece
                for kind, _, _, piece, _ in plan.sketch.files(plan.groups_by_party)
                if kind == ROWS
            }
            rows = [hospital.rows(tables["hospital"], piece) for piece in sorted(pieces)]
            answers = insurer.answers(tables["insurer"], {"hospital": rows})
            messages = (
                hospital.run(tables["hospital"], {"insurer": answers["hospital"]}),
                insurer.run(tables["insurer"]),
            )
    except VertiMRFError:
        return None
    return Sent(messages, (*map(len, rows), len(answers["hospital"])))

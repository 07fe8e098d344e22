"""The ledger: every event of a run, what it costs, and the total; for people and as JSON that notices edits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from typing import Any

from ..errors import PrivacyError
from ..files.canonical import json_digest
from .accountant import Spent, cumulative, group_epsilon
from .events import Event, GeometricEvent, GRREvent, ThresholdEvent, event_from_json, event_to_json
from .standing import REPLACE, Standing, neighbours_of

__all__ = ["Ledger", "LedgerEntry", "distinct_releases", "spent_beforehand"]


@dataclass(frozen=True)
class LedgerEntry:
    """One line of the ledger.

    Attributes:
        event: the mechanism.
        party: who releases.
        released: what, in words.
        noise: how it is protected, in words.
        release: random text by which an entry is known in the ledgers of several plans: one release, paid for once. Empty where
            every run makes its own.
    """

    event: Event
    party: str
    released: str
    noise: str
    release: str = ""

    def to_json(self) -> dict[str, Any]:
        """JSON-able form."""
        return {
            "party": self.party,
            "released": self.released,
            "noise": self.noise,
            "event": event_to_json(self.event),
            **({"release": self.release} if self.release else {}),
        }

    @classmethod
    def from_json(cls, data: Any) -> LedgerEntry:
        """Read an entry back.

        Raises:
            PrivacyError: not a ledger entry.
        """
        try:
            words = (str(data["party"]), str(data["released"]), str(data["noise"]), str(data.get("release", "")))
            return cls(event_from_json(data["event"]), *words)
        except (KeyError, TypeError, AttributeError) as error:
            raise PrivacyError(f"This is no ledger entry ({error}).") from None


@dataclass(frozen=True)
class Ledger:
    """All events of a run, composed.

    Attributes:
        entries: in order.
        delta: the delta at which epsilon is stated, for the whole run.
        reasons: why the total is no guarantee; empty when it is one.
        notes: what a reader should know besides.
        prior: how many of the first entries were released before the others' noise was chosen, which may follow their outcomes.
            Distributions of losses do not compose then; the epsilons and deltas of these add to whatever the others spend, as
            long as *that* was fixed beforehand (basic composition).
        records_per_person: how many records a person has at most; the events are priced for all of them.

    Raises:
        PrivacyError: a prior entry without an epsilon of its own, or prior entries that have spent all of delta.
    """

    entries: tuple[LedgerEntry, ...]
    delta: float
    reasons: tuple[str, ...] = field(default=())
    notes: tuple[str, ...] = field(default=())
    prior: int = 0
    records_per_person: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.prior <= len(self.entries):
            raise PrivacyError(f"A ledger of {len(self.entries)} entries cannot have {self.prior} of them spent beforehand.")
        if not self._rest > 0:
            raise PrivacyError(
                f"What was released beforehand has spent a delta of {self.delta - self._rest:.3g}, all of {self.delta:.3g}: "
                "state a larger one."
            )

    @classmethod
    def together(cls, ledgers: Sequence[Ledger], delta: float | None = None) -> Ledger:
        """What several runs over the same people spend together, each planned without knowing the others' outcomes.

        Args:
            ledgers: one per run.
            delta: at which epsilon is stated; default the sum of theirs.

        Raises:
            PrivacyError: none, or runs whose neighbours differ.
        """
        if not ledgers:
            raise PrivacyError("There are no ledgers to add up.")
        if len({ledger.neighbours for ledger in ledgers}) > 1:
            raise PrivacyError(
                f"Neighbours of these runs differ ({'; '.join(sorted({ledger.neighbours for ledger in ledgers}))}): there is no "
                "total; price each kind by itself."
            )
        before = distinct_releases([entry for ledger in ledgers for entry in ledger.entries[: ledger.prior]])
        entries = [*before, *(entry for ledger in ledgers for entry in ledger.entries[ledger.prior :])]
        return cls(
            tuple(entries),
            sum(ledger.delta for ledger in ledgers) if delta is None else delta,
            tuple(dict.fromkeys(reason for ledger in ledgers for reason in ledger.reasons)),
            tuple(dict.fromkeys(note for ledger in ledgers for note in ledger.notes)),
            len(before),
            ledgers[0].records_per_person,
        )

    @property
    def private(self) -> bool:
        """Whether the total is a guarantee."""
        return not self.reasons

    @property
    def standing(self) -> Standing:
        """What the run's releases may claim."""
        return Standing(self.epsilon, self.delta, self.neighbours, self.reasons, self.notes)

    def not_private(self, reason: str) -> Ledger:
        """The same ledger, marked: its total is no guarantee, and why."""
        return replace(self, reasons=(*self.reasons, reason))

    @property
    def _rest(self) -> float:
        """The delta that is left to what was not released beforehand."""
        return self.delta - spent_beforehand(self.entries[: self.prior])[1]

    @property
    def spent(self) -> tuple[Spent, ...]:
        """Composed epsilon after each entry, at the ledger's delta; what was spent beforehand is added."""
        return self._spent_after(len(self.entries))

    @cached_property
    def _total(self) -> Spent:
        return self._spent_after(1)[-1]

    def _spent_after(self, last: int) -> tuple[Spent, ...]:
        """Composed epsilon after each of the last so many entries, at least."""
        before = list(accumulate(spent_beforehand([entry])[0] for entry in self.entries[: self.prior]))
        out = [Spent(epsilon, "added") for epsilon in before]
        if events := [entry.event for entry in self.entries[self.prior :]]:
            added = before[-1] if before else 0.0
            composed = cumulative(events, self._rest, min(last, len(events)))
            out += [Spent(spent.epsilon + added, spent.method) for spent in composed]
        return tuple(out)

    def group_epsilon(self, records: int) -> float:
        """Epsilon at this ledger's delta for a person with so many records, all of them added or removed; infinite where group
        privacy gives no bound.

        Raises:
            PrivacyError: fewer than 1 record.
        """
        before, exposed = spent_beforehand(self.entries[: self.prior])
        events = [entry.event for entry in self.entries[self.prior :]]
        # What is (e, d)-private for one record is (k e, d k exp((k - 1) e))-private for k.
        left = self.delta - exposed * records * math.exp((records - 1) * before)
        return records * before + (group_epsilon(events, left, records) if left > 0 else math.inf)

    @property
    def epsilon(self) -> float:
        """Composed epsilon of the whole run."""
        return self._total.epsilon

    @property
    def neighbours(self) -> str:
        """What the guarantee is about; randomised responses show how many records there are, so they can only be replaced."""
        replaced = any(isinstance(entry.event, GRREvent) for entry in self.entries)
        return REPLACE if replaced else neighbours_of(self.records_per_person)

    @property
    def method(self) -> str:
        """How the total was composed: "pld", or "renyi" where that is smaller."""
        return self._total.method

    @property
    def shares(self) -> tuple[float, ...]:
        """Each entry's part of the run's zCDP-equivalent cost; they sum to 1."""
        costs = [entry.event.rho for entry in self.entries]
        return tuple(cost / sum(costs) for cost in costs)

    def to_json(self) -> dict[str, Any]:
        """JSON-able form with a digest over everything that counts."""
        entries = [
            entry.to_json() | {"share": share, "cumulative_epsilon": spent.epsilon}
            for entry, share, spent in zip(self.entries, self.shares, self.spent, strict=True)
        ]
        body = {
            "entries": entries,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "method": self.method,
            "neighbours": self.neighbours,
            "private": self.private,
            "reasons": list(self.reasons),
            "notes": list(self.notes),
            "prior": self.prior,
            **({"records_per_person": self.records_per_person} if self.records_per_person > 1 else {}),
        }
        return body | {"digest": json_digest(body).hex()}

    @classmethod
    def from_json(cls, data: Any) -> Ledger:
        """Read a ledger back; its total is composed again.

        Raises:
            PrivacyError: not a ledger, or one that was edited.
        """
        if not isinstance(data, dict) or not isinstance(data.get("entries"), list) or not data["entries"]:
            raise PrivacyError("This is no ledger: it has no entries.")
        body = {key: value for key, value in data.items() if key != "digest"}
        if data.get("digest") != json_digest(body).hex():
            raise PrivacyError("The ledger was edited (its digest does not match); use the file that the run wrote.")
        entries = tuple(LedgerEntry.from_json(entry) for entry in data["entries"])
        try:
            reasons, notes = (tuple(map(str, data[key])) for key in ("reasons", "notes"))
            person = int(data.get("records_per_person", 1))
            return cls(entries, float(data["delta"]), reasons, notes, int(data["prior"]), person)
        except (KeyError, TypeError, ValueError) as error:
            raise PrivacyError(f"The ledger is incomplete or malformed ({error}); use the file that the run wrote.") from None

    def table(self) -> str:
        """The ledger as text for a terminal."""
        rows = [
            [entry.party, entry.released, entry.noise, f"{share:.1%}", f"{spent.epsilon:.4f}"]
            for entry, share, spent in zip(self.entries, self.shares, self.spent, strict=True)
        ]
        how = self.method + (f", added to the first {self.prior}" if self.prior else "")
        total = f"Total: epsilon {self.epsilon:.4f} at delta {self.delta:.4g} ({self.neighbours}; {how})."
        lines = [*_aligned(["party", "released", "protected by", "share", "epsilon so far"], rows), total, str(self.standing)]
        return "\n".join(lines)


def spent_beforehand(entries: Sequence[LedgerEntry]) -> tuple[float, float]:
    """Epsilon and delta that entries spend by basic composition.

    Raises:
        PrivacyError: one that has none, or none that is accounted for.
    """
    epsilon = exposed = 0.0
    for entry in entries:
        if not isinstance(entry.event, GeometricEvent | ThresholdEvent):
            raise PrivacyError(
                f"What was spent beforehand ({entry.released}) must have two-sided geometric noise: only a pure epsilon adds to "
                "what follows from its outcome."
            )
        epsilon += entry.event.pure_epsilon
        exposed += entry.event.exposed if isinstance(entry.event, ThresholdEvent) else 0.0
    return epsilon, exposed


def distinct_releases(entries: Sequence[LedgerEntry]) -> tuple[LedgerEntry, ...]:
    """Entries without those that are a release named before."""
    named = {entry: None for entry in entries if entry.release}
    return tuple(entry for i, entry in enumerate(entries) if entry not in named or entry not in entries[:i])


def _aligned(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns as wide as their widest cell; numbers, the last two, to the right."""
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    text = len(head) - 2

    def line(row: Sequence[str]) -> str:
        cells = [cell.ljust(w) if i < text else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))]
        return "  ".join(cells).rstrip()

    return [line(head), line(["-" * w for w in widths]), *(line(row) for row in rows)]


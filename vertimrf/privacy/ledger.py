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
from .accountant import epsilon as composed_epsilon
from .events import (
    CountSketchEvent,
    Event,
    GeometricEvent,
    GRREvent,
    SketchEvent,
    ThresholdEvent,
    event_from_json,
    event_to_json,
)
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
        parts: of an entry of several parties, what each of them releases, priced against somebody who knows the parties' secret:
            (party, event), independent of each other given that secret. Empty where there is no such price, or the entry is one
            party's.
    """

    event: Event
    party: str
    released: str
    noise: str
    release: str = ""
    parts: tuple[tuple[str, Event], ...] = ()

    @property
    def rests_on_secret(self) -> bool:
        """Whether nothing is known of what it costs against somebody who knows the parties' secret."""
        return isinstance(self.event, SketchEvent | CountSketchEvent) and not self.parts

    def against(self, colluder: str) -> tuple[LedgerEntry, ...]:
        """What of it tells a party, which has its own table and the secret, something of records at the others."""
        if self.parts:
            return tuple(replace(self, event=event, party=party, parts=()) for party, event in self.parts if party != colluder)
        return () if self.party == colluder else (self,)

    def to_json(self) -> dict[str, Any]:
        """JSON-able form."""
        return {
            "party": self.party,
            "released": self.released,
            "noise": self.noise,
            "event": event_to_json(self.event),
            **({"release": self.release} if self.release else {}),
            **({"parts": [{"party": name, "event": event_to_json(event)} for name, event in self.parts]} if self.parts else {}),
        }

    @classmethod
    def from_json(cls, data: Any) -> LedgerEntry:
        """Read an entry back.

        Raises:
            PrivacyError: not a ledger entry.
        """
        try:
            words = (str(data["party"]), str(data["released"]), str(data["noise"]), str(data.get("release", "")))
            parts = tuple((str(part["party"]), event_from_json(part["event"])) for part in data.get("parts", ()))
            return cls(event_from_json(data["event"]), *words, parts)
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
        parties: who takes part and knows the secret, each of which might collude with the server.

    Raises:
        PrivacyError: a prior entry without an epsilon of its own, or prior entries that have spent all of delta.
    """

    entries: tuple[LedgerEntry, ...]
    delta: float
    reasons: tuple[str, ...] = field(default=())
    notes: tuple[str, ...] = field(default=())
    prior: int = 0
    records_per_person: int = 1
    parties: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.prior <= len(self.entries):
            raise PrivacyError(f"A ledger of {len(self.entries)} entries cannot have {self.prior} of them spent beforehand.")
        if not self._remaining_delta > 0:
            raise PrivacyError(
                f"What was released beforehand has spent a delta of {self.delta - self._remaining_delta:.3g}, all of {self.delta:.3g}: "
                "state a larger one."
            )

    @classmethod
    def together(cls, ledgers: Sequence[Ledger], delta: float | None = None) -> Ledger:
        """What several runs over the same people spend together, each planned without knowing the others' outcomes.

        Parties of one name are one party; one that colludes is taken to know the secrets of all runs.

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
            tuple(dict.fromkeys(party for ledger in ledgers for party in ledger.parties)),
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
    def _remaining_delta(self) -> float:
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
            composed = cumulative(events, self._remaining_delta, min(last, len(events)))
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
        remaining = self.delta - exposed * records * math.exp((records - 1) * before)
        return records * before + (group_epsilon(events, remaining, records) if remaining > 0 else math.inf)

    @property
    def epsilon(self) -> float:
        """Composed epsilon of the whole run."""
        return self._total.epsilon

    @cached_property
    def colluding_epsilon(self) -> float | None:
        """Epsilon at the same delta if one of the parties colludes with the server, whichever party makes it largest.

        The two know all messages, the party's table and the parties' secret. Given these, the other parties' releases are
        independent mechanisms on their own tables: their own entries as they stand, and their parts of the sketches at known
        hashes. The total is about one record, or one person, added or removed at all *other* parties; what the colluding party
        holds of a person it knows anyway. It is a bound for several that collude as well: then fewer parties' releases are at
        stake. The synthetic table follows from the messages, so this also bounds what a party learns from it.

        Infinite where sketches rest on the secret alone: a geometric sketch with the record never shows a level below the
        record's known one, which it may show without. None with fewer than two parties.
        """
        if len(self.parties) < 2:
            return None
        if any(entry.rests_on_secret for entry in self.entries):
            return math.inf
        before, after = self.entries[: self.prior], self.entries[self.prior :]
        worst, seen = 0.0, set()
        for colluder in self.parties:
            prior, exposed = spent_beforehand([kept for entry in before for kept in entry.against(colluder)])
            events = tuple(kept.event for entry in after for kept in entry.against(colluder))
            if (prior, exposed, events) in seen:
                continue
            seen.add((prior, exposed, events))
            later = composed_epsilon(events, self.delta - exposed).epsilon if events else 0.0
            worst = max(worst, prior + later)
        return worst

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
            **({"parties": list(self.parties)} if self.parties else {}),
            **self.colluding_json(),
        }
        return body | {"digest": json_digest(body).hex()}

    def colluding_json(self) -> dict[str, float | None]:
        """The total if a party colludes, as a JSON field: null where no epsilon bounds it; no field where nobody can collude."""
        spent = self.colluding_epsilon
        return {} if spent is None else {"colluding_epsilon": spent if math.isfinite(spent) else None}

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
            person, parties = int(data.get("records_per_person", 1)), tuple(map(str, data.get("parties", ())))
            return cls(entries, float(data["delta"]), reasons, notes, int(data["prior"]), person, parties)
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
        lines = [*_aligned(["party", "released", "protected by", "share", "epsilon so far"], rows), total]
        if self.colluding_epsilon is not None:
            lines.append(colluding_in_words(self.colluding_epsilon))
        return "\n".join([*lines, str(self.standing)])


def colluding_in_words(epsilon: float) -> str:
    """The total if a party colludes, as a sentence for a terminal."""
    if math.isinf(epsilon):
        return "If a party colludes with the server: no epsilon; these sketches rest on the parties' secret alone."
    return f"If a party colludes with the server: epsilon {epsilon:.4g} at the same delta, for what the other parties hold."


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


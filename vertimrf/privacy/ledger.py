"""The ledger: every event of a run, its cost, and the total, as text and as JSON with a digest."""

from __future__ import annotations

import itertools
import math
import textwrap
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from itertools import accumulate
from typing import Any, TypeVar

import msgspec
from msgspec import structs

from ..arguments import NUMBER, TEXT, WHOLE, check, each, instance, takes
from ..arrays import Fields, Pair, Texts
from ..errors import PrivacyError
from ..files.canonical import json_digest
from ..files.convert import from_json, to_json
from ..files.notebook import as_html
from .accountant import Spent, check_delta, check_group, cumulative, group_epsilon
from .accountant import epsilon as composed_epsilon
from .events import (
    CountSketchEvent,
    Event,
    GaussianEvent,
    GeometricEvent,
    GRREvent,
    SketchEvent,
    ThresholdEvent,
)
from .label import REPLACE, PrivacyLabel, neighbours_of

P = TypeVar("P")
REMEDY = "use the file that the run wrote"
# Discrete Gaussian events of nearly the same weight may differ in the order of their epsilons.
NEAR_WORST = 0.99
# Longest line of a table in a terminal, characters.
MAX_LINE = 100


class Kind(StrEnum):
    """What an entry of the ledger released, other than across parties.

    A release across parties has a kind of its own (:class:`vertimrf.releases.release.CrossPartyRelease`).
    """

    RECORD_COUNT = "record count"
    PLANNING_COUNT = "planning count"
    EDGES = "edges"
    VALUES = "values"
    ONE_WAY_MARGINALS = "one-way marginals"
    R_SCORES = "R-scores"
    CHOICES = "choices"
    LARGER_MARGINALS = "larger marginals"
    FINE_MARGINALS = "fine marginals"
    AGREEMENT = "agreement"
    OTHER = "other"


class Part(msgspec.Struct, frozen=True):
    """The event of one party in an entry of several.

    Attributes:
        party: name.
        event: the mechanism.
    """

    party: str
    event: Event


class LedgerEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of the ledger.

    Attributes:
        event: the mechanism.
        party: who releases.
        released: description of what is released.
        noise: description of the protection.
        release: random text that identifies a release in the ledgers of several plans, so that it
            is paid for once. Empty if every run makes its own release.
        parts: for an entry of several parties, the event of each, priced against an adversary who
            knows the parties' secret. Given the secret, they are independent. Parts of a Gaussian
            event (:attr:`masked`) are each priced against the others. Empty if there is no such
            price, or if the entry belongs to one party.
        kind: what was released. ``released`` says the same in words.
        column: name of the column that an entry of the kind ``AGREEMENT`` is about. Empty for other
            kinds.
        weights: smallest and largest step by which one record moves a counter of weighted count
            sketches. None where there are no weights.
    """

    event: Event
    party: str
    released: str
    noise: str
    release: str = ""
    parts: tuple[Part, ...] = ()
    kind: str = Kind.OTHER
    column: str = ""
    weights: Pair | None = None

    @property
    def rests_on_secret(self) -> bool:
        """Whether the cost against an adversary who knows the parties' secret is unbounded."""
        return isinstance(self.event, SketchEvent | CountSketchEvent) and not self.parts

    @property
    def masked(self) -> bool:
        """Whether each part's party adds a noise of its own, so that the event holds against
        whoever knows none of these, and the parts against each other.
        """
        return isinstance(self.event, GaussianEvent) and bool(self.parts)

    def against(self, coalition: Collection[str]) -> tuple[LedgerEntry, ...]:
        """Entries that reveal something about other parties' records to parties with the secret.

        Args:
            coalition: names of the parties that collude with the server.
        """
        if self.masked and not any(part.party in coalition for part in self.parts):
            return (self,)
        if self.parts:
            return tuple(
                structs.replace(self, event=part.event, party=part.party, parts=())
                for part in self.parts
                if part.party not in coalition
            )
        return () if self.party in coalition else (self,)

    def to_json(self) -> Fields:
        """The entry as JSON fields."""
        return dict.fromkeys(("party", "released", "noise")) | to_json(self)

    @classmethod
    def from_json(cls, data: Any) -> LedgerEntry:
        """Read an entry from JSON.

        Raises:
            PrivacyError: the data is not a ledger entry.
        """
        return from_json(data, cls, "The ledger entry", REMEDY, PrivacyError)


@dataclass(frozen=True)
class Ledger:
    """All events of a run and their composition.

    Attributes:
        entries: the entries, in order.
        delta: the delta at which epsilon is stated, for the whole run.
        reasons: why the total is no guarantee; empty if it is one.
        notes: further remarks for readers.
        prior: number of leading entries that were released before the noise of the others was
            chosen. That choice may depend on their outcomes, so their loss distributions do not
            compose with the others. Instead, their epsilons and deltas add to the total of the
            others (basic composition), provided that *that* total was fixed beforehand.
        records_per_person: largest number of records per person; the events are priced for all of
            them.
        parties: the parties that take part and know the secret. Each of them might collude with the
            server.

    Raises:
        PrivacyError: a prior entry has no epsilon of its own, or the prior entries spend all of
            delta.
    """

    entries: tuple[LedgerEntry, ...]
    delta: float
    reasons: Texts = field(default=())
    notes: Texts = field(default=())
    prior: int = 0
    records_per_person: int = 1
    parties: Texts = ()

    def __post_init__(self) -> None:
        check(
            PrivacyError,
            vars(self),
            entries=each(instance("LedgerEntry")),
            delta=NUMBER,
            reasons=each(TEXT),
            notes=each(TEXT),
            prior=WHOLE,
            records_per_person=WHOLE,
            parties=each(TEXT),
        )
        if not 0 <= self.prior <= len(self.entries):
            raise PrivacyError(
                f"A ledger of {len(self.entries)} entries cannot have {self.prior} of them spent beforehand."
            )
        if not self._remaining_delta > 0:
            raise PrivacyError(
                f"Earlier releases spent a delta of {self.delta - self._remaining_delta:.3g}, all of {self.delta:.3g}: "
                "state a larger one."
            )

    def __repr__(self) -> str:
        return f"<Ledger of {len(self.entries)} events; {self.label}>"

    def _repr_html_(self) -> str:
        return as_html(self, self.table())

    @classmethod
    @takes(PrivacyError, ledgers=each(instance("Ledger")))
    def together(cls, ledgers: Sequence[Ledger], delta: float | None = None) -> Ledger:
        """Total of several runs over the same people, each planned without the others' results.

        Parties with the same name are one party. A party that colludes is assumed to know the
        secrets of all runs.

        Args:
            ledgers: one ledger per run.
            delta: the delta at which epsilon is stated; default the sum of the ledgers' deltas.

        Raises:
            PrivacyError: there are no ledgers, or their neighbours differ, or delta is out of
                range.
        """
        if not ledgers:
            raise PrivacyError("There are no ledgers to add up.")
        if delta is not None:
            check_delta(delta)
        if len({ledger.neighbours for ledger in ledgers}) > 1:
            raise PrivacyError(
                f"Neighbours of these runs differ ({'; '.join(sorted({ledger.neighbours for ledger in ledgers}))}): there is no "
                "total; add up each kind separately."
            )
        before = distinct_releases(
            [entry for ledger in ledgers for entry in ledger.entries[: ledger.prior]]
        )
        entries = [
            *before,
            *(entry for ledger in ledgers for entry in ledger.entries[ledger.prior :]),
        ]
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
    def label(self) -> PrivacyLabel:
        """Privacy label of the run's releases."""
        return PrivacyLabel(self.epsilon, self.delta, self.neighbours, self.reasons, self.notes)

    @takes(PrivacyError, reason=TEXT)
    def not_private(self, reason: str) -> Ledger:
        """The same ledger with a further reason why its total is no guarantee."""
        return replace(self, reasons=(*self.reasons, reason))

    @property
    def _remaining_delta(self) -> float:
        """Delta that the prior entries leave to the others."""
        return self.delta - spent_beforehand(self.entries[: self.prior])[1]

    @cached_property
    def spent(self) -> tuple[Spent, ...]:
        """Composed epsilon after each entry at the ledger's delta, plus that of prior entries."""
        return self._spent_after(len(self.entries))

    @cached_property
    def _total(self) -> Spent:
        return (self.spent if "spent" in vars(self) else self._spent_after(1))[-1]

    def _spent_after(self, last: int) -> tuple[Spent, ...]:
        """Composed epsilon after each entry, for at least the ``last`` final entries."""
        before = list(
            accumulate(spent_beforehand([entry])[0] for entry in self.entries[: self.prior])
        )
        out = [Spent(epsilon, "added") for epsilon in before]
        if events := [entry.event for entry in self.entries[self.prior :]]:
            added = before[-1] if before else 0.0
            composed = cumulative(events, self._remaining_delta, min(last, len(events)))
            out += [Spent(spent.epsilon + added, spent.method) for spent in composed]
        return tuple(out)

    def group_epsilon(self, records: int) -> float:
        """Epsilon at this ledger's delta for a person whose records are all added or removed.

        Args:
            records: number of records of the person.

        Returns:
            Epsilon; infinite if group privacy gives no bound.

        Raises:
            PrivacyError: fewer than 1 record.
        """
        check_group(records)
        before, exposed = spent_beforehand(self.entries[: self.prior])
        events = [entry.event for entry in self.entries[self.prior :]]
        # An (e, d)-private mechanism is (k e, d k exp((k - 1) e))-private for k records.
        # Beyond e^700 nothing remains, and beyond e^709 there is no number.
        grown = math.exp(min((records - 1) * before, 700.0))
        remaining = self.delta - exposed * records * grown
        return records * before + (
            group_epsilon(events, remaining, records) if remaining > 0 else math.inf
        )

    @property
    def epsilon(self) -> float:
        """Composed epsilon of the whole run."""
        return self._total.epsilon

    @cached_property
    def colluding_epsilon(self) -> float | None:
        """Largest epsilon at the same delta if parties collude with the server.

        They know all messages, their tables and the parties' secret. Given these, the releases of
        the other parties are independent mechanisms on their own tables: their own entries as they
        are, and their parts of the sketches at known hashes. The total is about one record, or one
        person, added or removed at all *other* parties. Colluding parties know their own data about
        a person anyway. It also bounds what a party learns from the synthetic table, which is
        computed from the messages.

        The total is infinite if sketches depend on the secret alone. A geometric sketch with the
        record never shows a level below the record's known level; without the record it may. The
        total is None with fewer than two parties.
        """
        if len(self.parties) < 2:
            return None
        if any(entry.rests_on_secret for entry in self.entries):
            return math.inf
        before, after = self.entries[: self.prior], self.entries[self.prior :]
        worst, seen = 0.0, set()
        for coalition in worst_coalitions(self.entries, self.parties):
            prior, exposed = spent_beforehand(
                [kept for entry in before for kept in entry.against(coalition)]
            )
            events = tuple(kept.event for entry in after for kept in entry.against(coalition))
            if (prior, exposed, events) in seen:
                continue
            seen.add((prior, exposed, events))
            later = composed_epsilon(events, self.delta - exposed).epsilon if events else 0.0
            worst = max(worst, prior + later)
        return worst

    @property
    def neighbours(self) -> str:
        """The change of the tables that the guarantee is about.

        Randomised responses reveal the number of records, so with them neighbours differ by
        replacing a record.
        """
        replaced = any(isinstance(entry.event, GRREvent) for entry in self.entries)
        return REPLACE if replaced else neighbours_of(self.records_per_person)

    @property
    def method(self) -> str:
        """Method of composition with the smaller epsilon: "pld" or "renyi"."""
        return self._total.method

    @property
    def shares(self) -> tuple[float, ...]:
        """Part of each entry in the zCDP cost of the run; the parts sum to 1."""
        costs = [entry.event.rho for entry in self.entries]
        return tuple(cost / sum(costs) for cost in costs)

    def to_json(self) -> Fields:
        """The ledger as JSON fields, with a digest of all of them."""
        entries = [
            entry.to_json() | {"share": share, "cumulative_epsilon": spent.epsilon}
            for entry, share, spent in zip(self.entries, self.shares, self.spent, strict=True)
        ]
        body = {
            "kind": "ledger",
            "entries": entries,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "method": self.method,
            "neighbours": self.neighbours,
            "private": self.private,
            "reasons": list(self.reasons),
            "notes": list(self.notes),
            "prior": self.prior,
            **(
                {"records_per_person": self.records_per_person}
                if self.records_per_person > 1
                else {}
            ),
            **({"parties": list(self.parties)} if self.parties else {}),
            **self.colluding_json(),
        }
        return body | {"digest": json_digest(body).hex()}

    def report_json(self) -> Fields:
        """The privacy spent, as the JSON fields of a report."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            **self.colluding_json(),
            "private": self.private,
            "label": self.label.to_json(),
            "ledger": self.to_json()["entries"],
        }

    def colluding_json(self) -> dict[str, float | None]:
        """JSON field of the total under collusion: null if infinite, left out if nobody can."""
        spent = self.colluding_epsilon
        return (
            {} if spent is None else {"colluding_epsilon": spent if math.isfinite(spent) else None}
        )

    @classmethod
    def from_json(cls, data: Any) -> Ledger:
        """Read a ledger from JSON and compose its total again.

        Raises:
            PrivacyError: the data is not a ledger, or was edited.
        """
        if (
            not isinstance(data, dict)
            or not isinstance(data.get("entries"), list)
            or not data["entries"]
        ):
            raise PrivacyError(
                "This is not a ledger: it has no entries; use the file that the run wrote."
            )
        body = {key: value for key, value in data.items() if key != "digest"}
        if data.get("digest") != json_digest(body).hex():
            raise PrivacyError(
                "The ledger was edited (its digest does not match); use the file that the run wrote."
            )
        # Fields that every ledger states, although they have defaults here.
        stated = dict.fromkeys(("reasons", "notes", "prior")) | data
        return from_json(stated, cls, "The ledger", REMEDY, PrivacyError)

    def table(self) -> str:
        """The ledger as text for a terminal."""
        rows = [
            [entry.party, entry.released, entry.noise, f"{share:.1%}", f"{spent.epsilon:.4f}"]
            for entry, share, spent in zip(self.entries, self.shares, self.spent, strict=True)
        ]
        how = self.method + (f", added to the first {self.prior}" if self.prior else "")
        total = f"Total: epsilon {self.epsilon:.4f} at delta {self.delta:.4g} ({self.neighbours}; {how})."
        lines = [
            *_aligned(["party", "released", "protected by", "share", "epsilon so far"], rows),
            total,
        ]
        if self.colluding_epsilon is not None:
            lines.append(colluding_in_words(self.colluding_epsilon))
        return "\n".join([*lines, str(self.label)])


def colluding_in_words(epsilon: float) -> str:
    """The total under collusion as a sentence."""
    if math.isinf(epsilon):
        return "If a party colludes with the server: no epsilon; these sketches rest on the parties' secret alone."
    return f"If a party colludes with the server: epsilon {epsilon:.4g} at the same delta, for what the other parties hold."


def worst_coalitions(entries: Sequence[LedgerEntry], parties: Sequence[str]) -> list[Texts]:
    """Sets of parties, one of which costs most if it colludes with the server.

    A larger set sees fewer releases of others, so that one party is the worst case. Masked entries
    are the exception: of two parties that do not collude, nobody knows either noise, and each of a
    set of parties adds tables of which it knows one. So every set is tried. Kept are those whose
    Gaussian events cost nearly as much as those of any set with the same other events.

    Args:
        entries: entries of the ledger.
        parties: the parties that take part.
    """
    if not any(entry.masked for entry in entries):
        return [(party,) for party in parties]
    costs: dict[tuple[tuple[Event, ...], float], Texts] = {}
    most: dict[tuple[Event, ...], float] = {}
    for coalition in coalitions(parties):
        events = [kept.event for entry in entries for kept in entry.against(coalition)]
        others = tuple(event for event in events if not isinstance(event, GaussianEvent))
        rho = sum(event.rho for event in events if isinstance(event, GaussianEvent))
        # Sets of equal cost, up to rounding, need one representative.
        costs.setdefault((others, float(f"{rho:.12g}")), coalition)
        most[others] = max(rho, most.get(others, 0.0))
    return [
        coalition for (others, rho), coalition in costs.items() if rho >= NEAR_WORST * most[others]
    ]


def coalitions(parties: Sequence[P]) -> Iterator[tuple[P, ...]]:
    """All sets of some parties, but not of all."""
    return itertools.chain.from_iterable(
        itertools.combinations(parties, size) for size in range(1, len(parties))
    )


def spent_beforehand(entries: Sequence[LedgerEntry]) -> tuple[float, float]:
    """Epsilon and delta of prior entries by basic composition.

    Raises:
        PrivacyError: an entry has no epsilon of its own.
    """
    epsilon = exposed = 0.0
    for entry in entries:
        if not isinstance(entry.event, GeometricEvent | ThresholdEvent):
            raise PrivacyError(
                f"The earlier release ({entry.released}) must use two-sided geometric noise, because only a pure epsilon adds "
                "to releases that depend on it."
            )
        epsilon += entry.event.pure_epsilon
        exposed += entry.event.exposed if isinstance(entry.event, ThresholdEvent) else 0.0
    return epsilon, exposed


def distinct_releases(entries: Sequence[LedgerEntry]) -> tuple[LedgerEntry, ...]:
    """The entries without repetitions of a named release."""
    named = {entry: None for entry in entries if entry.release}
    return tuple(
        entry for i, entry in enumerate(entries) if entry not in named or entry not in entries[:i]
    )


def _aligned(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns as wide as their widest cell, or narrower and with cells of several lines, so that no line
    is longer than :data:`MAX_LINE`. The last two are aligned to the right.
    """
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    text = len(head) - 2
    while sum(widths) + 2 * (len(head) - 1) > MAX_LINE:
        widths[widths.index(max(widths[:text]))] -= 1

    def lines(row: Sequence[str]) -> list[str]:
        cells = [textwrap.wrap(cell, w) or [""] for cell, w in zip(row, widths, strict=True)]
        return [
            "  ".join(
                cell.ljust(w) if i < text else cell.rjust(w)
                for i, (cell, w) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in itertools.zip_longest(*cells, fillvalue="")
        ]

    rules = ["-" * w for w in widths]
    return [line for row in (head, rules, *rows) for line in lines(row)]

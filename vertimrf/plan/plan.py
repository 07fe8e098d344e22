"""The plan: everything public that parties and server agree on before any data is touched.

Nothing in a plan is computed from data. Its size is set by ``expected_records``, a public figure or
the result of a noisy count that the ledger contains (:mod:`vertimrf.trial`). One calibration
against the target (epsilon, delta) sets every noise scale.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ..arguments import NUMBER, TEXT, WHOLE, check, each, instance, maybe, takes
from ..arrays import Fields, Ints, Pair, Texts
from ..errors import PlanError
from ..files.atomic import read_json
from ..files.canonical import fingerprint, json_digest
from ..files.convert import from_json
from ..files.notebook import as_html
from ..files.results import save
from ..keys import PublicKeys
from ..privacy.accountant import epsilon as composed_epsilon
from ..privacy.events import (
    Event,
    GaussianEvent,
    GeometricEvent,
    ThresholdEvent,
    under_replacement,
)
from ..privacy.label import REPLACE, PrivacyLabel, neighbours_of
from ..privacy.ledger import (
    Kind,
    Ledger,
    LedgerEntry,
    Part,
    spent_beforehand,
    worst_coalitions,
)
from ..releases.auto import ENCODERS
from ..releases.count_sketches.parameters import CountSketches
from ..releases.register import release_from_json, release_to_json
from ..releases.release import CrossPartyRelease, packed_bytes
from .defaults import (
    HOLDERS_COLUMN,
    INNER,
    MAX_MESSAGE,
    MAX_RECORDS,
    MAX_TAU,
    MESSAGE_BYTES,
    OUTER,
)
from .groups import Group
from .local_plan import MAX_SIGMA, LocalPlan, local_entries
from .merging import mergeable
from .options import check_persons, check_population
from .schema import Schema
from .target import check_target
from .workload import Workload

KIND, FORMAT = "plan", 7
REMEDY = "have it made again"
# Fields that a plan file leaves out if they have these values.
OPTIONAL = {
    "workload": [],
    "agreement": [],
    "records_per_person": 1,
    "population": INNER,
    "halved": [],
    "because": "",
}


@dataclass(frozen=True)
class Plan:
    """Everything public in a run. Make a plan with :func:`make_plan`, or :meth:`load` it.

    Attributes:
        schema: attributes, domains, and the parties that hold them.
        epsilon, delta: the target of the whole run, for adding or removing one record.
        expected_records: public order of magnitude of the table.
        tau: largest clique of the global model, in cells.
        count_sigma: noise of the record count that the first party releases.
        local: one LocalPlan per party.
        groups: what parties publish about values across parties.
        sketch: the encoder's parameters. The target covers scheduled pairs and count sketches.
            Shared keys are for reproduction: the paper claims half of (epsilon, delta) for them,
            and the ledger has their real cost. For randomised responses the target is about
            replacing one record. :class:`.Nothing` without a share for sketches, or with one party.
        nonce: random public text, so that two runs over the same table never share hashes.
        message_bytes: budget for the sketches in any party's message.
        prior: ledger entries spent to make this plan, after those of the schema, each with an
            epsilon of its own (see :class:`~vertimrf.privacy.ledger.Ledger`).
        public_keys: public keys of everyone, with which messages are sealed. A plan without them
            can be priced, and run in one process, but no message file can be written or read.
        workload: the analyses that the result is for.
        agreement: per attribute that several parties hold, the sketches that estimate the number of
            records on whose value two of them agree (:mod:`vertimrf.releases.count_sketches.agreement`). Each
            holder has one group of a single value. Empty without such attributes or without
            sketches.
        records_per_person: largest number of records of one person. Every party enforces it.
            Neighbours differ by all records of a person.
        population: the people of the result, if parties hold different people: "inner", those that
            all parties hold, or "outer", those that any party holds.
        halved: positions of attributes of which pairs across parties, or all pairs of a single
            party, are measured in two halves, because pairs of values would be noise alone. The
            server reads them as trends (:mod:`vertimrf.model.trend`).
        because: why the planner chose the encoder (:mod:`vertimrf.releases.auto`); empty if it was
            asked for.
    """

    schema: Schema
    epsilon: float
    delta: float
    expected_records: int
    tau: int
    count_sigma: float
    local: tuple[LocalPlan, ...]
    groups: tuple[Group, ...]
    sketch: CrossPartyRelease
    nonce: str
    message_bytes: int = MESSAGE_BYTES
    prior: tuple[LedgerEntry, ...] = field(default=())
    public_keys: PublicKeys | None = None
    workload: Workload = field(default_factory=Workload)
    agreement: tuple[CountSketches, ...] = ()
    records_per_person: int = 1
    population: str = INNER
    halved: Ints = ()
    because: str = ""

    def _check_kinds(self) -> None:
        whole = dict.fromkeys(
            ("expected_records", "tau", "message_bytes", "records_per_person"), WHOLE
        )
        check(
            PlanError,
            vars(self),
            schema=instance("Schema"),
            count_sigma=NUMBER,
            local=each(instance("LocalPlan")),
            groups=each(instance("Group")),
            sketch=instance("CrossPartyRelease"),
            nonce=TEXT,
            prior=each(instance("LedgerEntry")),
            public_keys=maybe(instance("PublicKeys")),
            workload=instance("Workload"),
            agreement=each(instance("CountSketches")),
            population=TEXT,
            halved=each(WHOLE),
            because=TEXT,
            **whole,
        )

    def __repr__(self) -> str:
        return f"<Plan {self.fingerprint[:9]}: epsilon {self.epsilon:g}, {self.schema}>"

    def _repr_html_(self) -> str:
        return as_html(self, self.ledger().table())

    def __post_init__(self) -> None:
        self._check_kinds()
        check_target(self.epsilon, self.delta)
        self._check_population()
        if not 2 <= self.tau <= MAX_TAU or not 1 <= self.expected_records <= MAX_RECORDS:
            raise PlanError(
                f"A plan needs tau of 2 to {MAX_TAU:,} and 1 to {MAX_RECORDS:,} expected records, not {self.tau} and "
                f"{self.expected_records}."
            )
        if not 0 < self.count_sigma <= MAX_SIGMA:
            raise PlanError(
                f"A plan's record count needs noise above 0 and up to {MAX_SIGMA:g}, not {self.count_sigma}."
            )
        if not 1 <= self.message_bytes <= MAX_MESSAGE:
            raise PlanError(
                f"A plan's budget for messages is 1 to {MAX_MESSAGE:,} bytes, not {self.message_bytes}."
            )
        self._check_persons()
        if len(self.local) != len(self.schema.parties):
            raise PlanError(
                f"The plan has {len(self.local)} local models for {len(self.schema.parties)} parties."
            )
        self._check_local()
        for number, combination in enumerate(self.schema.combinations):
            cells = math.prod(self.schema.sizes[place] for place, _ in combination)
            if cells > self.tau:
                raise PlanError(
                    f"{self.schema.named([number])} needs a clique of {cells:,} cells, more than tau = {self.tau:,}; raise tau, "
                    "use wider bins, or state it of fewer attributes."
                )
        parties = self.group_parties
        self._check_halved()
        self.sketch.check([group.size for group in self.groups], parties)
        if self.because and not (self.groups and ENCODERS.get(self.because) == self.encoder):
            raise PlanError(f"{self.because!r} is no reason for {self.encoder}: {REMEDY}.")
        contrasted = self.sketch.contrasts
        if any(
            group.parity and number not in contrasted for number, group in enumerate(self.groups)
        ):
            raise PlanError(
                "Parities are published as contrasts, by count sketches or encrypted counts."
            )
        if self.agreement:
            if self.records_per_person > 1:
                raise PlanError(
                    "Sketches of agreement have no price for persons with several records."
                )
            holders = [len(self.schema.holders[attribute]) for attribute in self.schema.shared]
            if [sketch.sizes for sketch in self.agreement] != [(1,) * count for count in holders]:
                raise PlanError(
                    "The plan's sketches of agreement do not fit the attributes that several parties hold."
                )
        for party, name in enumerate(self.party_names):
            if (asked := self.message_size(party)) > MAX_MESSAGE:
                raise PlanError(
                    f"The plan asks party {name!r} for {asked:,} bytes of sketches, more than any message has "
                    f"({MAX_MESSAGE:,}); plan with fewer keys, wider bins or a smaller message."
                )
        if (
            self.public_keys is not None
            and (named := tuple(o.party for o in self.public_keys.parties)) != self.party_names
        ):
            raise PlanError(
                f"The plan has keys for {', '.join(map(str, named))}; its parties are {', '.join(self.party_names)}."
            )

    def _check_local(self) -> None:
        """Refuse local models that do not fit their parties' attributes."""
        for name, local in zip(self.party_names, self.local, strict=True):
            if (local.one_way_sigma == 0) != (not self.schema.varying(name)):
                raise PlanError(
                    f"The plan gives party {name!r} one-way marginals with a noise of {local.one_way_sigma}; they have noise, "
                    "unless none of its attributes varies."
                )
            if local.choices and local.choices < len(self.schema.varying(name)) - 1:
                raise PlanError(
                    f"The plan gives party {name!r} {local.choices} choices of pairs: they are for a tree of its "
                    f"{len(self.schema.varying(name))} attributes, and no fewer than it needs."
                )
            if local.fine_sigma and not self.schema.fine_of(name):
                raise PlanError(
                    f"The plan gives party {name!r} fine marginals with a noise of {local.fine_sigma}, and none of its attributes "
                    "has finer cells."
                )
            if local.largest_clique > self.tau:
                raise PlanError(
                    f"The plan gives party {name!r} cliques of {local.largest_clique:,} cells, more than tau = {self.tau:,}."
                )

    def _check_halved(self) -> None:
        """Refuse halves of attributes that cannot have any, or that groups do not have."""
        able = {a for a in mergeable(self.schema) if self.schema.sizes[a] > 2}
        if list(self.halved) != sorted(set(self.halved) & able):
            raise PlanError(
                f"The plan halves the attributes {list(self.halved)}: these must be of one party, of three values or more, "
                "without structural zeros, and in order."
            )
        for number, group in enumerate(self.groups):
            first = group.attributes[0]
            halved = first in self.halved and group.shows_attribute
            # Two halves and the missing value may be all there is.
            three = halved and group.size == 3 and self.schema.attributes[first].missing
            if halved and not three and group.size == self.schema.sizes[first]:
                raise PlanError("A group of a halved attribute has fewer bins than values.")
            if number in self.sketch.contrasts and group.size > 2 and not three:
                raise PlanError(
                    "A contrast of three values is of the halves of an attribute with missing values."
                )

    def _check_persons(self) -> None:
        """Refuse releases that have no price for a person with several records."""
        records = self.records_per_person
        check_persons(records)
        if records > 1 and not self.sketch.prices_persons:
            raise PlanError(
                f"With {records} records of a person there is no price for {self.sketch.encoder}: use count sketches, or one "
                "record per person."
            )
        for entry in self._before:
            if not isinstance(entry.event, GeometricEvent | ThresholdEvent):
                continue
            # With one record a person is a record id, of which other persons may have rows as well.
            most = entry.event.sensitivity
            if most < records or most > records == 1:
                raise PlanError(
                    f"The {entry.released} were released for persons with {most} records at most, and the "
                    f"plan is for {records}: find them with records_per_person={records} (--records-per-person)."
                )

    def _check_population(self) -> None:
        check_population(self.population)
        if self.population == OUTER and not self.sketch.tells_matches:
            raise PlanError(
                "The outer population needs sketches that tell how many people parties have in common: several parties, and "
                "scheduled pairs or count sketches; or leave the population at inner."
            )
        if self.population == OUTER and HOLDERS_COLUMN in self.schema.domains:
            raise PlanError(
                f"Of the outer population a column {HOLDERS_COLUMN!r} says who holds somebody: rename the attribute."
            )

    def fine_of(self, party: int) -> Ints:
        """The attributes of which a party releases a fine marginal, in the order of its message."""
        return self.schema.fine_of(self.party_names[party]) if self.local[party].fine_sigma else ()

    @cached_property
    def group_parties(self) -> Ints:
        """Per group, the position of the party that publishes it."""
        return tuple(group.party(self.schema) for group in self.groups)

    def groups_of(self, party: int) -> Ints:
        """Indices of the groups that a party publishes, in order."""
        return tuple(g for g, publisher in enumerate(self.group_parties) if publisher == party)

    @cached_property
    def coarse(self) -> frozenset[int]:
        """Attributes whose values pairs merge: the halved ones, and those of parties that choose pairs."""
        parties = zip(self.party_names, self.local, strict=True)
        own = [self.schema.varying(name) for name, local in parties if local.choices]
        return frozenset(self.halved) | mergeable(self.schema).intersection(itertools.chain(*own))

    def chooses(self, attributes: Sequence[int]) -> bool:
        """Whether the party that holds some attributes together chooses its pairs one by one."""
        holder = self.schema.holder(attributes)
        return holder is not None and self.local[holder].choices > 0

    def counted_pairs(self, party: int) -> list[Pair]:
        """Pairs of groups whose encrypted counts a party publishes: a later party's, and its own.

        They are in publishing order; empty for other encoders.
        """
        return self.sketch.counted_pairs(self.groups_by_party, party)

    @property
    def groups_by_party(self) -> list[Ints]:
        """Of each party, the groups that it publishes (:meth:`groups_of`)."""
        return [self.groups_of(party) for party in range(len(self.party_names))]

    @property
    def encoder(self) -> str:
        """The kind of ``sketch``, as users ask for it."""
        return self.sketch.encoder

    @property
    def party_names(self) -> Texts:
        """The parties in schema order."""
        return self.schema.party_names

    def entries(self) -> tuple[LedgerEntry, ...]:
        """Every event of the run, in order. All are fixed before any data is touched."""
        parties = {name: self.groups_of(i) for i, name in enumerate(self.party_names)}
        sketches = self.sketch.entries(parties, self.epsilon, self.delta, self.records_per_person)
        return (*self._other_entries(), *sketches)

    @property
    def _before(self) -> tuple[LedgerEntry, ...]:
        """Entries spent before the plan was made: on its domains, then on its size."""
        return (*self.schema.spent, *self.prior)

    def _other_entries(self) -> list[LedgerEntry]:
        """All entries except those of the sketches."""
        out = list(self._before)
        noise = f"discrete Gaussian, sigma {self.count_sigma:.1f}"
        person = self.records_per_person
        counted = GaussianEvent(self.count_sigma, person)
        out.append(
            LedgerEntry(counted, self.party_names[0], "record count", noise, kind=Kind.RECORD_COUNT)
        )
        for name, local in zip(self.party_names, self.local, strict=True):
            measured = len(self.schema.varying(name)), len(self.schema.fine_of(name))
            out.extend(local_entries(name, *measured, local, person))
        for attribute, sketch in zip(self.schema.shared, self.agreement, strict=False):
            names = [self.party_names[party] for party in self.schema.holders[attribute]]
            # The table of each holder has one group.
            parts = tuple(
                Part(name, replace(sketch.event, groups=1).known_hashes) for name in names
            )
            noise = f"discrete Gaussian of variance {sketch.variance:.2f} in each, {sketch.bits} bits published"
            column = self.schema.names[attribute]
            released = f"count sketches of whether they agree on {column}"
            said = (", ".join(names), released, noise)
            out.append(
                LedgerEntry(sketch.event, *said, parts=parts, kind=Kind.AGREEMENT, column=column)
            )
        if self.sketch.publishes_rows:
            out = [replace(entry, event=under_replacement(entry.event)) for entry in out]
        return out

    @property
    def reasons(self) -> Texts:
        """Reasons why the results of this plan are not private; empty if they are."""
        inferred = () if self.schema.public else ("the schema was inferred from the data",)
        return inferred + self.sketch.reasons

    @property
    def notes(self) -> Texts:
        """What readers of any result of this plan should know besides its epsilon and delta."""
        out = []
        if self.sketch.publishes_rows:
            out.append("the exact number of ids is published")
        if self.delta > 1 / self.expected_records:
            out.append(
                "delta is above 1 / expected records: publishing one record outright would meet it"
            )
        return tuple(out)

    @property
    def label(self) -> PrivacyLabel:
        """The privacy label of everything made by this plan."""
        neighbours = (
            REPLACE if self.sketch.publishes_rows else neighbours_of(self.records_per_person)
        )
        return PrivacyLabel(self.epsilon, self.delta, neighbours, self.reasons, self.notes)

    def ledger(self) -> Ledger:
        """The run's ledger: every event and the composed epsilon at this plan's delta."""
        parties = self.party_names if len(self.party_names) > 1 else ()
        return Ledger(
            self.entries(),
            self.delta,
            self.reasons,
            self.notes,
            len(self._before),
            self.records_per_person,
            parties,
        )

    def accounted(self) -> tuple[list[Event], float, float]:
        """The events that the accountant checks, and the epsilon and delta that they may spend.

        These are all events and the whole target. If the sketches' part is only a claim, as for the
        published encoder, these are the other events and the rest of the target. The cost of making
        the plan is taken off the target first. With encrypted counts, the target holds against the
        server and against any parties that collude with it; these are the events that such a view
        costs most by.
        """
        share = self.sketch.claimed_share
        entries = self._other_entries() if share else self.entries()
        before, rest = entries[: len(self._before)], entries[len(self._before) :]
        epsilon, exposed = spent_beforehand(before)
        left, delta = (1 - share) * self.epsilon - epsilon, (1 - share) * self.delta - exposed
        if not (left > 0 and delta > 0):
            raise PlanError(
                f"What was released beforehand has spent epsilon {epsilon:.3g} and delta {exposed:.3g}, and nothing is left of "
                f"the target, epsilon {self.epsilon:g} and delta {self.delta:.3g}: raise it."
            )
        views = [tuple(rest)]
        if self.sketch.exchanges:
            views += [
                tuple(kept for entry in rest for kept in entry.against(coalition))
                for coalition in worst_coalitions(rest, self.party_names)
            ]
        events = [[entry.event for entry in view] for view in views]
        if len(events) == 1:
            return events[0], left, delta
        return max(events, key=lambda each: composed_epsilon(each, delta).epsilon), left, delta

    def _check_target(self) -> None:
        """Refuse a plan whose events cost more than its target."""
        kept = self.sketch.keeps_claim(self.epsilon, self.delta)
        events, target, delta = self.accounted()
        most = target * (1 + 1e-6)
        spent = composed_epsilon(events, delta).epsilon
        if not kept or not spent <= most:
            raise PlanError(
                f"The plan's events spend epsilon {spent:.4f}, more than its target {target}"
                + ("" if kept else ", or has fewer phantoms than it claims")
                + ": it was edited; have it made again."
            )

    def to_json(self) -> Fields:
        """A JSON-able form that :meth:`from_json` reads back."""
        content = {field.name: getattr(self, field.name) for field in fields(self)} | {
            "schema": self.schema.to_json(),
            "local": [local.to_json() for local in self.local],
            "groups": [group.to_json() for group in self.groups],
            "sketch": release_to_json(self.sketch),
            "prior": [entry.to_json() for entry in self.prior],
            "public_keys": None if self.public_keys is None else self.public_keys.to_json(),
            "workload": self.workload.to_json(),
            "agreement": [release_to_json(sketch) for sketch in self.agreement],
            "halved": list(self.halved),
        }
        for name, default in OPTIONAL.items():
            if content[name] == default:
                del content[name]
        return {"kind": KIND, "format": FORMAT, **content}

    @classmethod
    def from_json(cls, data: Any) -> Plan:
        """Read a plan back.

        Raises:
            PlanError: it is no plan of this format, or its events do not meet its own target.
        """
        content = from_json(data, Fields, "The plan", REMEDY, PlanError)
        if content.get("kind") != KIND:
            raise PlanError(f"This is no plan: its kind is {content.get('kind')!r}.")
        if content.get("format") != FORMAT:
            raise PlanError(
                f"The plan has format {content.get('format')!r}; this version reads format {FORMAT}."
            )
        # Every plan file has these fields, although the class has defaults for them.
        content = dict.fromkeys(("message_bytes", "prior")) | OPTIONAL | content
        schema = Schema.from_json(content.get("schema"))
        keys = content.get("public_keys")
        agreement = from_json(content["agreement"], list[Any], "The plan", REMEDY, PlanError)
        groups = from_json(content.get("groups"), list[Fields], "The plan", REMEDY, PlanError)
        parts = {
            "schema": schema,
            "groups": [Group.from_json(group) for group in groups],
            "sketch": release_from_json(content.get("sketch")),
            "public_keys": None if keys is None else PublicKeys.from_json(keys),
            "workload": Workload.from_json(content["workload"], schema),
            "agreement": [release_from_json(sketch) for sketch in agreement],
        }
        plan = from_json(content | parts, cls, "The plan", REMEDY, PlanError)
        plan._check_target()
        return plan

    @property
    def fingerprint(self) -> str:
        """The text that parties and server compare to confirm one plan with the same keys."""
        return fingerprint(self.digest())

    def sealing_keys(self) -> PublicKeys:
        """Everyone's public keys.

        Raises:
            PlanError: the plan has none.
        """
        if self.public_keys is None:
            raise PlanError(
                "The plan has no public keys: it can be priced, but nothing can be sealed under it; `vertimrf run server` "
                "makes one with every party's offer and the server's."
            )
        return self.public_keys

    def digest(self) -> bytes:
        """SHA-256 of the canonical JSON [32 bytes].

        Every message contains it, and hash keys are derived from it.
        """
        return self._digest

    @cached_property
    def _digest(self) -> bytes:
        return json_digest(self.to_json())

    def save(self, path: str | Path) -> None:
        """Write the plan as readable JSON."""
        save(
            path,
            json.dumps(self.to_json() | {"label": self.label.to_json()}, indent=1) + "\n",
            synced=True,
        )

    @classmethod
    def load(cls, path: str | Path) -> Plan:
        """Read a plan file.

        Raises:
            PlanError: the file is missing or holds no plan.
        """
        return cls.from_json(read_json(path, "plan", PlanError))

    def agreement_of(self, party: int) -> dict[int, CountSketches]:
        """The sketches of agreement that a party publishes a table of, by attribute."""
        asked = zip(self.schema.shared, self.agreement, strict=False)
        return {
            attribute: sketch
            for attribute, sketch in asked
            if party in self.schema.holders[attribute]
        }

    @takes(PlanError, party=WHOLE, records=maybe(WHOLE))
    def message_size(self, party: int, records: int | None = None) -> int:
        """Bytes of the sketches or counts in a party's message, or approximately of its responses.

        Args:
            party: position of the party.
            records: number of its records, of which responses are made; default the expected number.
        """
        agreement = sum(
            packed_bytes(sketch.shapes((0,)), sketch.bits)
            for sketch in self.agreement_of(party).values()
        )
        if not 0 <= party < len(self.local):
            raise PlanError(f"The plan has parties 0 to {len(self.local) - 1}, and no {party}.")
        rows = self.expected_records if records is None else records
        return agreement + self.sketch.packed_size(self.groups_by_party, party, rows)

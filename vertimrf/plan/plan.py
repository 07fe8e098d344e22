"""The plan: everything public that parties and server agree on before any data is touched.

Nothing in a plan is computed from data. Its size is set by ``expected_records``, a public figure (or one that a ledgered
noisy count released, see ``vertimrf.trial``), and every noise scale by one calibration against the target (epsilon, delta).
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ..errors import PlanError, VertiMRFError
from ..files.atomic import read_json, write_text
from ..files.canonical import fingerprint, json_digest
from ..keys import PublicKeys
from ..privacy.accountant import epsilon as composed_epsilon
from ..privacy.events import Event, GaussianEvent, under_replacement
from ..privacy.ledger import Ledger, LedgerEntry, pure_epsilon
from ..privacy.standing import ADD_OR_REMOVE, REPLACE, Standing
from ..sketches.parameters import CountSketchPlan, CrossPartyRelease, SketchPlan, packed_bytes, release_from_json, release_to_json
from .defaults import HELD_BY, INNER, MESSAGE_BYTES, MOST_DELTA, OUTER, POPULATIONS
from .schedule import Group, Schedule
from .schema import MOST_NAMED, Schema
from .workload import Workload

__all__ = ["LocalPlan", "Plan", "Shares", "check_target"]

FORMAT = 5
# R-scores are released on a grid of 1/16 record; one record moves an R-score by at most 2, and rounding by one grid step more.
# (R = 1/2 |T - T_A T_B / n|_1: a record moves T by 1 and the product, (n P_A + e_a)(n P_B + e_b) / (n + 1) - n P_A P_B, by at
# most (n + n + n + 1) / (n + 1) < 3, both in L1.)
SCORE_GRID = 16
SCORE_SENSITIVITY = 2 * SCORE_GRID + 1
# Below this noise a unit's would no longer add up as a Gaussian's does (see LocalPlan).
LEAST_UNIT_SIGMA = 4.0
# Targets that can be planned for.
LEAST_EPSILON, MOST_EPSILON = 1e-4, 1e3


@dataclass(frozen=True)
class Shares:
    """How the budget is divided, in zCDP-like units; the four parts sum to 1.

    Attributes:
        count: the noisy record count.
        local: all parties' local models together, divided by their numbers of attributes.
        sketches: the cross-party sketches; 0 leaves them out, and the parties are then synthesised as independent.
    """

    count: float = 0.01
    local: float = 0.49
    sketches: float = 0.50

    def __post_init__(self) -> None:
        parts = (self.count, self.local, self.sketches)
        if min(parts) < 0 or not math.isclose(sum(parts), 1.0, abs_tol=1e-9) or self.count <= 0 or self.local <= 0:
            raise PlanError(f"Budget shares {parts} must be non-negative and sum to 1, with count and local above zero.")


@dataclass(frozen=True)
class LocalPlan:
    """LocMRF parameters of one party (VertiMRF, phase 1).

    A marginal measured with k units is released as k * count + noise of k units' variance in every cell, which costs what k
    releases of it under one unit's noise do: their sum has that law but for a factor of exp(10 k exp(-pi^2 sigma^2)), less than
    exp(1e-60) (Kairouz, Liu and Steinke, 2021, on sums of discrete Gaussians). So the ledger has ``units`` queries of
    sensitivity 1, whichever marginals they go to.

    Attributes:
        one_way_sigma: noise of each one-way marginal, records; 0 where the party has no attribute that varies, and no other.
        score_sigma: noise of each R-score, in grid steps of 1/16 record; 0 where all attributes fit into one clique.
        units: units of measurement for larger marginals; 0 leaves them out.
        unit_sigma: noise of a unit.
        largest_clique: limit on the cells of a clique of the local attribute graph (tau').
        free: whether one clique of the global model holds the attributes of all parties: no marginal keeps another out then.
    """

    one_way_sigma: float
    score_sigma: float
    units: int
    unit_sigma: float
    largest_clique: int
    free: bool

    def __post_init__(self) -> None:
        scales = (self.one_way_sigma, self.score_sigma, self.unit_sigma)
        whole = (self.units, self.largest_clique)
        if not all(math.isfinite(scale) and scale >= 0 for scale in scales) or (
            self.one_way_sigma == 0 and (self.units or self.score_sigma)
        ):
            raise PlanError(f"A local model's noise must be finite and above 0, not {scales}.")
        if not all(isinstance(number, int) for number in whole) or self.units < 0 or self.largest_clique < 1:
            raise PlanError(f"A local model cannot have {self.units} units of measurement and cliques of {self.largest_clique}.")
        if self.units and self.unit_sigma < LEAST_UNIT_SIGMA:
            raise PlanError(f"A unit of measurement needs noise of at least {LEAST_UNIT_SIGMA}, not {self.unit_sigma}.")


@dataclass(frozen=True)
class Plan:
    """Everything public: see the module's docstring. Make one with :func:`make_plan`, or :meth:`load` it.

    Attributes:
        schema: attributes, domains, and which party holds what.
        epsilon, delta: the target of the whole run, add/remove one record.
        expected_records: public order of magnitude of the table.
        tau: limit on the cells of a clique of the global model.
        count_sigma: noise of the record count that the first party releases.
        local: one LocalPlan per party.
        groups: what parties publish about values across parties.
        sketch: how: scheduled pairs or count sketches, the kinds that the target covers; shared keys, for reproduction: half of
            (epsilon, delta) is what the paper claims for them, and the ledger says what they really cost; or randomised
            responses, under which the target is about replacing one record. None without a sketch share, or with one party.
        nonce: random public text: two runs over the same table never share hashes.
        message_bytes: budget for the sketches in any party's messages.
        prior: ledger entries spent to make this plan, purely private (see :class:`~vertimrf.privacy.ledger.Ledger`).
        public_keys: everyone's, for which and with which messages are sealed. Without them a plan can be priced, and run in
            one process; no message file can be written or read.
        workload: marginals that somebody cares about, which structure search goes by.
        population: whom the result is of, where parties hold different people: "inner", those that all parties hold; or "outer",
            everybody that any party holds.
    """

    schema: Schema
    epsilon: float
    delta: float
    expected_records: int
    tau: int
    count_sigma: float
    local: tuple[LocalPlan, ...]
    groups: tuple[Group, ...]
    sketch: CrossPartyRelease | None
    nonce: str
    message_bytes: int = MESSAGE_BYTES
    prior: tuple[LedgerEntry, ...] = field(default=())
    public_keys: PublicKeys | None = None
    workload: Workload = field(default_factory=Workload)
    population: str = INNER

    def __post_init__(self) -> None:
        check_target(self.epsilon, self.delta)
        self._check_population()
        if self.tau < 2 or self.expected_records < 1:
            raise PlanError(
                f"A plan needs tau of at least 2 and at least 1 expected record, not {self.tau} and {self.expected_records}."
            )
        if len(self.local) != len(self.schema.parties):
            raise PlanError(f"The plan has {len(self.local)} local models for {len(self.schema.parties)} parties.")
        for name, local in zip(self.party_names, self.local, strict=True):
            if (local.one_way_sigma == 0) != (not self.schema.varying(name)):
                raise PlanError(
                    f"The plan gives party {name!r} one-way marginals with a noise of {local.one_way_sigma}; they have noise, "
                    "unless none of its attributes varies."
                )
        for number, combination in enumerate(self.schema.combinations):
            cells = math.prod(self.schema.sizes[place] for place, _ in combination)
            if cells > self.tau:
                raise PlanError(
                    f"{self.schema.named([number])} needs a clique of {cells:,} cells, more than tau = {self.tau:,}; raise tau, "
                    "use wider bins, or state it of fewer attributes."
                )
        sizes = [group.size for group in self.schedule.groups]
        if self.sketch is not None:
            self.sketch.check(sizes)
        if self.public_keys is not None and (named := tuple(o.party for o in self.public_keys.parties)) != self.party_names:
            raise PlanError(f"The plan has keys for {', '.join(map(str, named))}; its parties are {', '.join(self.party_names)}.")

    def _check_population(self) -> None:
        if self.population not in POPULATIONS:
            raise PlanError(f"A plan's population is {' or '.join(POPULATIONS)}, not {self.population!r}.")
        if self.population == OUTER and (self.sketch is None or not self.sketch.tells_matches):
            raise PlanError(
                "The outer population needs sketches that tell how many people parties have in common: several parties, and "
                "scheduled pairs or count sketches; or leave the population at inner."
            )
        if self.population == OUTER and HELD_BY in self.schema.names:
            raise PlanError(f"Of the outer population a column {HELD_BY!r} says who holds somebody: rename the attribute.")

    @cached_property
    def schedule(self) -> Schedule:
        """What is published about values across parties, by which party, under which keys."""
        return Schedule.of(self.schema, self.groups, self.sketch.pairs if isinstance(self.sketch, SketchPlan) else ())

    @property
    def encoder(self) -> str:
        """The kind of ``sketch``, as users ask for it."""
        return CountSketchPlan.encoder if self.sketch is None else self.sketch.encoder

    @property
    def second_keys(self) -> int:
        """Keys of the second round, whose schedule the server makes from the first round's messages. 0 = one round."""
        return 0 if self.sketch is None else self.sketch.second_keys

    @cached_property
    def party_names(self) -> tuple[str, ...]:
        """The parties in schema order."""
        return tuple(name for name, _ in self.schema.parties)

    def entries(self) -> tuple[LedgerEntry, ...]:
        """Every event of the run, in order; all of them are fixed before any data is touched."""
        sketches = [] if self.sketch is None else self.sketch.entries(self.epsilon, self.delta)
        return (*self._other_entries(), *sketches)

    def _other_entries(self) -> list[LedgerEntry]:
        """All entries but the sketches'."""
        out = list(self.prior)
        noise = f"discrete Gaussian, sigma {self.count_sigma:.1f}"
        out.append(LedgerEntry(GaussianEvent(self.count_sigma), self.party_names[0], "record count", noise))
        for name, local in zip(self.party_names, self.local, strict=True):
            out.extend(local_entries(name, len(self.schema.varying(name)), local))
        if self.sketch is not None and self.sketch.publishes_rows:
            out = [replace(entry, event=under_replacement(entry.event)) for entry in out]
        return out

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why what this plan yields is not private, whatever its target says; empty when it is."""
        inferred = () if self.schema.public else ("the schema was inferred from the data",)
        return inferred + (() if self.sketch is None else self.sketch.reasons)

    @property
    def notes(self) -> tuple[str, ...]:
        """What readers of anything made by this plan should know besides its epsilon and delta."""
        out = []
        if self.sketch is not None and self.sketch.publishes_rows:
            out.append("the exact number of records is published")
        if self.delta > 1 / self.expected_records:
            out.append("delta is above 1 / expected records: publishing one record outright would meet it")
        return tuple(out)

    @property
    def standing(self) -> Standing:
        """What anything made by this plan may claim: the target, which its events are held to."""
        replaced = self.sketch is not None and self.sketch.publishes_rows
        return Standing(self.epsilon, self.delta, REPLACE if replaced else ADD_OR_REMOVE, self.reasons, self.notes)

    def ledger(self) -> Ledger:
        """The run's ledger: every event and the composed epsilon at this plan's delta."""
        return Ledger(self.entries(), self.delta, self.reasons, self.notes, len(self.prior))

    def accounted(self) -> tuple[list[Event], float, float]:
        """What the accountant answers for: the events, and the epsilon and delta that they may spend together.

        All of them, and the whole target; where the sketches' part of it is a mere claim, the others and the rest. What was
        spent to make the plan is taken off the target beforehand.
        """
        share = 0.0 if self.sketch is None else self.sketch.claimed_share
        entries = self._other_entries() if share else self.entries()
        before, rest = entries[: len(self.prior)], entries[len(self.prior) :]
        left = (1 - share) * self.epsilon - sum(map(pure_epsilon, before))
        return [entry.event for entry in rest], left, (1 - share) * self.delta

    def _check_target(self) -> None:
        """Refuse a plan whose events cost more than it says."""
        kept = self.sketch is None or self.sketch.keeps_claim(self.epsilon, self.delta)
        events, target, delta = self.accounted()
        spent = composed_epsilon(events, delta).epsilon
        if not kept or not spent <= target * (1 + 1e-6):
            raise PlanError(
                f"The plan's events spend epsilon {spent:.4f}, more than its target {target}"
                + ("" if kept else ", or has fewer phantoms than it claims")
                + ": it was edited; make it again with `vertimrf plan`."
            )

    def to_json(self) -> dict[str, Any]:
        """A JSON-able form that :meth:`from_json` reads back."""
        return {
            "format": FORMAT,
            "schema": self.schema.to_json(),
            "epsilon": self.epsilon,
            "delta": self.delta,
            "expected_records": self.expected_records,
            "tau": self.tau,
            "count_sigma": self.count_sigma,
            "local": [asdict(local) for local in self.local],
            "groups": [{"attributes": group.attributes, "bins": group.bins} for group in self.groups],
            "sketch": release_to_json(self.sketch),
            "nonce": self.nonce,
            "message_bytes": self.message_bytes,
            "prior": [entry.to_json() for entry in self.prior],
            "public_keys": None if self.public_keys is None else self.public_keys.to_json(),
            **({"workload": self.workload.to_json(self.schema)} if self.workload.marginals else {}),
            **({"population": self.population} if self.population != INNER else {}),
        }

    @classmethod
    def from_json(cls, data: Any) -> Plan:
        """Read a plan back.

        Raises:
            PlanError: not a plan of this format, or one whose events do not meet its own target.
        """
        try:
            if data["format"] != FORMAT:
                raise PlanError(f"The plan has format {data['format']!r}; this version reads format {FORMAT}.")
            schema = Schema.from_json(data["schema"])
            plan = cls(
                schema=schema,
                epsilon=float(data["epsilon"]),
                delta=float(data["delta"]),
                expected_records=int(data["expected_records"]),
                tau=int(data["tau"]),
                count_sigma=float(data["count_sigma"]),
                local=tuple(LocalPlan(**local) for local in data["local"]),
                groups=tuple(Group(tuple(group["attributes"]), tuple(group["bins"])) for group in data["groups"]),
                sketch=release_from_json(data["sketch"]),
                nonce=str(data["nonce"]),
                message_bytes=int(data["message_bytes"]),
                prior=tuple(LedgerEntry.from_json(entry) for entry in data["prior"]),
                public_keys=None if data["public_keys"] is None else PublicKeys.from_json(data["public_keys"]),
                workload=Workload.from_json(data.get("workload", []), schema),
                population=str(data.get("population", INNER)),
            )
        except VertiMRFError:
            raise
        except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
            raise PlanError(f"The plan is incomplete or malformed ({error}); make it again with `vertimrf plan`.") from None
        plan._check_target()
        return plan

    @property
    def fingerprint(self) -> str:
        """What parties and server compare to be sure that they follow one plan, with the right keys of everyone in it."""
        return fingerprint(self.digest())

    def sealing_keys(self) -> PublicKeys:
        """Everyone's public keys.

        Raises:
            PlanError: the plan has none.
        """
        if self.public_keys is None:
            raise PlanError(
                "The plan has no public keys: it can be priced, but nothing can be sealed under it; make it again with every "
                "party's offer and the server's (`vertimrf plan OFFER... --schema ...`)."
            )
        return self.public_keys

    def digest(self) -> bytes:
        """SHA-256 of the canonical JSON [32 bytes]; every message carries it, and hash keys are derived from it."""
        return self._digest

    @cached_property
    def _digest(self) -> bytes:
        return json_digest(self.to_json())

    def save(self, path: str | Path) -> None:
        """Write the plan as readable JSON."""
        write_text(path, json.dumps(self.to_json() | {"standing": self.standing.to_json()}, indent=1) + "\n")

    @classmethod
    def load(cls, path: str | Path) -> Plan:
        """Read a plan file.

        Raises:
            PlanError: the file is missing or holds no plan.
        """
        return cls.from_json(read_json(path, "plan", PlanError))

    def summary(self) -> str:
        """What will happen, for people: budget, keys, message sizes."""
        lines = [
            f"{len(self.schema.attributes)} attributes at {len(self.local)} parties, about {self.expected_records:,} records; "
            f"target epsilon {self.epsilon:g}, delta {self.delta:.3g}."
        ]
        for i, (name, local) in enumerate(zip(self.party_names, self.local, strict=True)):
            attributes, varying = len(self.schema.party_attributes(name)), len(self.schema.varying(name))
            how = f"{varying} one-way marginals, sigma {local.one_way_sigma:.1f}" if varying else "none varies"
            if local.units:
                how += f", and larger ones, {local.units:,} units of sigma {local.unit_sigma:.1f}"
            lines.append(f"  {name}: {attributes} attributes; {how}; sketches {self.message_size(i) / 1e6:.1f} MB.")
        if self.sketch is not None:
            lines.append(f"  {self.sketch.summary()}")
        lines.append(f"  global model: cliques up to {self.tau:,} cells.")
        if self.schema.impossible:
            stated = [str(combination) for combination in self.schema.impossible]
            more = [f"and {len(stated) - MOST_NAMED:,} more"] * (len(stated) > MOST_NAMED)
            lines.append(f"  impossible, and so in no row: {'; '.join([*stated[:MOST_NAMED], *more])}.")
        if self.workload.marginals:
            named = [" × ".join(self.schema.names[a] for a in own) for own, _ in self.workload.marginals]
            lines.append(f"  marginals that matter most: {', '.join(named)}.")
        if self.population == OUTER:
            lines.append("  population: everybody that any party holds; what nobody holds of a person is null.")
        return "\n".join(lines)

    def message_size(self, party: int) -> int:
        """Bytes of the sketches, or about as many of the responses, in a party's message."""
        if self.sketch is None:
            return 0
        return packed_bytes(self.sketch.shapes(self.schedule.of_party(party), self.expected_records), self.sketch.bits)


def local_entries(name: str, attributes: int, local: LocalPlan) -> list[LedgerEntry]:
    """The events of one party's local model, of so many attributes that vary."""
    if not attributes:
        return []
    gaussian = "discrete Gaussian, sigma {:.1f}"
    entries = [
        LedgerEntry(
            GaussianEvent(local.one_way_sigma, count=attributes),
            name,
            f"{attributes} one-way marginals",
            gaussian.format(local.one_way_sigma),
        )
    ]
    pairs = attributes * (attributes - 1) // 2
    if local.score_sigma:
        entries.append(
            LedgerEntry(
                GaussianEvent(local.score_sigma, SCORE_SENSITIVITY, pairs),
                name,
                f"{pairs} R-scores",
                gaussian.format(local.score_sigma / SCORE_GRID),
            )
        )
    if local.units:
        entries.append(
            LedgerEntry(
                GaussianEvent(local.unit_sigma, count=local.units),
                name,
                f"larger marginals, {local.units:,} units of measurement",
                gaussian.format(local.unit_sigma) + " a unit",
            )
        )
    return entries


def check_target(epsilon: float, delta: float | None) -> None:
    """Refuse a privacy target that no run can be planned for.

    Raises:
        PlanError: epsilon or delta out of range.
    """
    if not epsilon > 0:
        raise PlanError(f"epsilon must be a number above 0, not {epsilon}.")
    if not LEAST_EPSILON <= epsilon <= MOST_EPSILON:
        raise PlanError(
            f"epsilon must lie between {LEAST_EPSILON:g} and {MOST_EPSILON:g}, not {epsilon:g}: less leaves nothing but noise, "
            "and more protects nobody."
        )
    if delta is not None and not 0 < delta < 1:
        raise PlanError(f"delta must lie strictly between 0 and 1, not {delta}.")
    if delta is not None and delta > MOST_DELTA:
        raise PlanError(
            f"delta must be at most {MOST_DELTA:g}, not {delta:g}: to publish that part of all records outright would meet it; "
            "take one far below 1 / records."
        )

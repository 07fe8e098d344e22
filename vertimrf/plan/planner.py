"""The planner: from public figures and a target to a plan whose events together meet it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..errors import PlanError
from ..privacy.accountant import calibrate
from ..privacy.events import Event, GaussianEvent
from ..privacy.ledger import LedgerEntry
from ..sketches.claims import claimed_floor, claimed_phantoms
from ..sketches.parameters import HIGHEST_CEILING, ResponsePlan, SharedKeyPlan, SketchPlan
from .plan import LEAST_UNIT_SIGMA, SCORE_SENSITIVITY, LocalPlan, Plan, Shares, check_target
from .schedule import (
    KEY_COST,
    MESSAGE_BYTES,
    RIVAL_TRIPLE,
    Group,
    Schedule,
    choose_keys,
    crossing,
    make_schedule,
    triple_rule,
)
from .schema import Schema

__all__ = ["make_plan", "split_parties"]

# Levels published per sketch: below the floor phantoms hide everything, above the ceiling a level would single out one record.
FLOOR_BELOW_PHANTOMS = 4
CEILING_ABOVE_PHANTOMS = 7
# A party's larger marginals share so many units of measurement, each a count with the same noise: fine enough to weight a few
# hundred marginals.
UNITS = 4096
# Parts of a party's budget for one-way marginals and, where it has to choose its graph, for R-scores.
ONE_WAY_SHARE = 0.08
SCORE_SHARE = 0.08
# A larger delta has to be asked for: with so few records the reciprocal of their number protects nobody.
MOST_DEFAULT_DELTA = 1e-3
# Part of the keys that the first of two rounds takes, to find out where the second round's are worth most.
FIRST_ROUND = 0.15
# Bytes of a key in the second round, as a multiple of what they would be over all pairs.
CONCENTRATION = 1.25
# The published encoder: keys, bins of an attribute, and how far above its floor a level is cut: a sketch in 30,000 is.
PUBLISHED_KEYS = 2000
PUBLISHED_BINS = 8
PUBLISHED_LEVELS = 15


def plan_local(sizes: Sequence[int], rho: float, largest_clique: int, free: bool, larger: bool = True) -> LocalPlan:
    """LocMRF parameters that spend ``rho`` (zCDP) at one party, from public figures only.

    Without ``larger``, one-way marginals are all it measures.
    """
    d = len(sizes)
    if d == 1 or not larger:
        return LocalPlan(math.sqrt(0.5 * d / rho), 0.0, 0, 0.0, largest_clique, free)
    pairs = d * (d - 1) // 2
    scores = SCORE_SHARE if math.prod(sizes) > largest_clique else 0.0
    measure = 1 - ONE_WAY_SHARE - scores
    return LocalPlan(
        one_way_sigma=math.sqrt(d / (2 * ONE_WAY_SHARE * rho)),
        score_sigma=SCORE_SENSITIVITY * math.sqrt(pairs / (2 * scores * rho)) if scores else 0.0,
        units=UNITS,
        unit_sigma=max(math.sqrt(UNITS / (2 * measure * rho)), LEAST_UNIT_SIGMA),
        largest_clique=largest_clique,
        free=free,
    )


def plan_sketch(schedule: Schedule, rho: float, keys: int, second_keys: int) -> SketchPlan:
    """Phantoms, floor and ceiling of sketches that spend about ``rho`` in all rounds; the first round's schedule."""
    phantoms = max(math.ceil(math.sqrt((keys + second_keys) * KEY_COST / (2 * rho))), 2)
    # So many phantoms that the levels end below them leave nothing to see, which is as it should be.
    level = min(math.log2(phantoms), HIGHEST_CEILING - CEILING_ABOVE_PHANTOMS)
    return SketchPlan(
        phantoms=phantoms,
        floor=max(int(level) - FLOOR_BELOW_PHANTOMS, 0),
        ceiling=round(level) + CEILING_ABOVE_PHANTOMS,
        pairs=schedule.with_keys(keys),
    )


def plan_published(schema: Schema, epsilon: float, delta: float, keys: int) -> tuple[tuple[Group, ...], SharedKeyPlan]:
    """Bins and shared-key sketches for which the paper claims (epsilon, delta) (VertiMRF, Algorithms 1 and 3)."""
    groups = tuple(Group((attribute,), (min(size, PUBLISHED_BINS),)) for attribute, size in enumerate(schema.sizes))
    floor = claimed_floor(epsilon, delta, keys, len(groups))
    return groups, SharedKeyPlan(
        phantoms=claimed_phantoms(epsilon, delta, keys, len(groups)),
        floor=floor,
        ceiling=floor + PUBLISHED_LEVELS,
        keys=keys,
        sizes=tuple(group.size for group in groups),
    )


def plan_responses(schema: Schema, rho: float) -> tuple[tuple[Group, ...], ResponsePlan]:
    """Bins and randomised responses that spend about ``rho`` (VertiMRF, section 4.2)."""
    groups = tuple(Group((attribute,), (min(size, PUBLISHED_BINS),)) for attribute, size in enumerate(schema.sizes))
    sizes = tuple(group.size for group in groups)
    # The loss of one attribute is +-epsilon, each with probability about 1 / size.
    return groups, ResponsePlan(math.sqrt(rho / sum(1 / max(size, 2) for size in sizes)), sizes)


def split_parties(schema: Schema, counts: Sequence[int]) -> Schema:
    """Deal the attributes of a schema that names no parties.

    Raises:
        PlanError: it names some.
        SchemaError: see :meth:`Schema.split`.
    """
    if len(schema.parties) > 1:
        raise PlanError(f"The schema names its parties ({', '.join(name for name, _ in schema.parties)}); leave --split out.")
    return schema.split(counts)


def make_plan(
    schema: Schema,
    *,
    epsilon: float,
    expected_records: int,
    nonce: str,
    delta: float | None = None,
    tau: int = 500_000,
    encoder: str = "paired",
    claim_as_published: bool = False,
    keys: int | None = None,
    message_bytes: int = MESSAGE_BYTES,
    rounds: int = 1,
    shares: Shares | None = None,
    local_models: bool = True,
    prior: Sequence[LedgerEntry] = (),
) -> Plan:
    """Plan a run from public information, calibrated so that all events together meet (epsilon, delta).

    Args:
        schema: attributes and parties.
        epsilon: target, add/remove one record.
        expected_records: public order of magnitude of the number of records.
        nonce: public text, fresh for every run.
        delta: target; default 1 / expected_records, at most 0.001.
        tau: limit on the cells of a clique of the global model (VertiMRF, phase 3: 10^5 to 5*10^6).
        encoder: "paired"; "grr", the paper's baseline of randomised responses, whose target is about replacing one record; or
            "published" to reproduce the paper's, whose claim of privacy does not hold.
        claim_as_published: says that you know; without it the published encoder is refused.
        keys: hash keys t, over all scheduled marginals; default: :func:`choose_keys`, or 2000 shared ones.
        message_bytes: budget for the sketches in any party's messages, which bounds the default of ``keys``.
        rounds: 1; or 2: a small part of the keys first, over all pairs, and the rest where the server finds them worth most.
        shares: budget division; default :class:`Shares`.
        local_models: False leaves each party's one-way marginals as its whole local model, for comparison.
        prior: ledger entries already spent to make the plan.

    Raises:
        PlanError: parameters out of range.
        PrivacyError: no noise meets the target.
    """
    check_target(epsilon, delta)
    if expected_records < 1:
        raise PlanError(f"expected_records must be at least 1, not {expected_records}.")
    if delta is None:
        delta = min(1.0 / expected_records, MOST_DEFAULT_DELTA)
    if rounds not in (1, 2) or (rounds == 2 and encoder != "paired"):
        raise PlanError(f"There are one or two rounds, not {rounds}, and two only with the paired encoder.")
    if message_bytes < 1000:
        raise PlanError(f"message_bytes must be at least 1,000, not {message_bytes}.")
    if keys is not None and keys < 1:
        raise PlanError(f"keys must be at least 1, not {keys}.")
    if tau < 2:
        raise PlanError(f"tau must be at least 2 cells, not {tau}.")
    if encoder not in ("paired", "grr", "published"):
        raise PlanError(f"Unknown encoder {encoder!r}; use 'paired', or 'grr' or 'published' to compare.")
    if encoder == "published" and not claim_as_published:
        raise PlanError(
            "The published encoder does not keep the epsilon that it claims and gives complete records away; "
            "use 'paired', or reproduce the paper with --claim-as-published."
        )
    if not schema.attributes:
        raise PlanError("The schema has no attributes: name at least one column besides the id.")
    parties = [schema.party_attributes(name) for name, _ in schema.parties]
    sizes = schema.sizes
    several = len(parties) > 1
    if shares is None:
        shares = Shares() if several else Shares(count=0.02, local=0.98, sketches=0.0)
    # The paper leaves room for cross-party attributes in local cliques (tau / (m u^2)). Here the server weighs local edges
    # against cross-party ones and drops what does not fit, so that local graphs need to leave little.
    largest_clique = max(tau // (2 * len(parties)), 2) if several else tau

    published = encoder == "published" and several and shares.sketches > 0
    paired = encoder == "paired" and several and shares.sketches > 0
    if paired:
        # What a lone Gaussian mechanism would have; the sketches get their share of about that.
        rho = shares.sketches * calibrate(lambda rho: [GaussianEvent(math.sqrt(0.5 / rho))], epsilon, delta)
        pairs = crossing(schema, 2)
        if rounds == 2:
            schedule = make_schedule(schema, FIRST_ROUND * rho, expected_records, pairs, (), RIVAL_TRIPLE)
            # The second round's schedule is not known yet: finer bins, and the busiest party may hold most of the wide ones.
            later = make_schedule(schema, (1 - FIRST_ROUND) * rho, expected_records, pairs, (), RIVAL_TRIPLE)
            bytes_per_key = FIRST_ROUND * schedule.bytes_per_key(schema)
            bytes_per_key += (1 - FIRST_ROUND) * CONCENTRATION * later.bytes_per_key(schema)
        else:
            rule = triple_rule(schema, tau, RIVAL_TRIPLE)
            schedule = make_schedule(schema, rho, expected_records, pairs, crossing(schema, 3), rule)
            bytes_per_key = schedule.bytes_per_key(schema)
        keys = keys or choose_keys(bytes_per_key, rho, expected_records, message_bytes)
    keys = keys or PUBLISHED_KEYS
    second_keys = round(keys * (1 - FIRST_ROUND)) if paired and rounds == 2 else 0
    if second_keys and keys - second_keys < len(pairs):
        raise PlanError(
            f"{keys:,} keys in two rounds leave some of {len(pairs):,} pairs without any; allow larger messages, or one round."
        )
    if published:
        # As the paper divides it: half of (epsilon, delta) is claimed for the sketches, the other half is spent exactly.
        rest = 1 - shares.sketches
        shares = Shares(shares.count / rest, shares.local / rest, 0.0)
        shared = plan_published(schema, epsilon / 2, delta / 2, keys)

    responses = encoder == "grr" and several and shares.sketches > 0
    if responses and all(size == 1 for size in sizes):
        raise PlanError("Randomised responses need an attribute of at least 2 values; use the paired encoder.")

    def plan_at(rho: float) -> Plan:
        # Replacing a record counts twice in every sensitivity, four times in the cost.
        own = rho / 4 if responses else rho
        local = tuple(
            plan_local(
                [sizes[i] for i in held],
                own * shares.local * len(held) / len(sizes),
                largest_clique,
                math.prod(sizes) <= tau,
                local_models,
            )
            for held in parties
        )
        groups: tuple[Group, ...] = ()
        sketch: SketchPlan | SharedKeyPlan | ResponsePlan | None = None
        if published:
            groups, sketch = shared
        elif responses:
            groups, sketch = plan_responses(schema, rho * shares.sketches)
        elif paired:
            groups, sketch = schedule.groups, plan_sketch(schedule, rho * shares.sketches, keys - second_keys, second_keys)
        return Plan(
            schema=schema,
            epsilon=epsilon,
            delta=delta,
            expected_records=expected_records,
            tau=tau,
            encoder=encoder,
            count_sigma=math.sqrt(0.5 / (own * shares.count)),
            local=local,
            groups=groups,
            sketch=sketch,
            nonce=nonce,
            message_bytes=message_bytes,
            second_keys=second_keys,
            prior=tuple(prior),
        )

    def events_at(rho: float) -> list[Event]:
        return [entry.event for entry in plan_at(rho).entries()]

    if published:
        return plan_at(calibrate(lambda rho: plan_at(rho)._local_events(), epsilon / 2, delta / 2))
    return plan_at(calibrate(events_at, epsilon, delta))

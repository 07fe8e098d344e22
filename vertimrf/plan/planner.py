"""The planner: make a plan from public figures whose events together meet (epsilon, delta).

1. Choose what the parties release across parties (``SketchChoice``), and the shares of the budget
   for the record count, the local models and the sketches.
2. For any zCDP budget rho, compute all parameters of the plan from rho and the shares.
3. Find the largest rho at which the accountant says that the plan meets (epsilon, delta).
"""

from __future__ import annotations

import itertools
import math
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..arguments import TEXT, each, instance, maybe, takes
from ..arrays import Fields, Pair
from ..errors import PlanError
from ..keys import PublicKeys
from ..privacy.accountant import calibrate
from ..privacy.ledger import LedgerEntry
from ..releases.auto import STATED, USELESS, chosen
from ..releases.count_sketches.parameters import CountSketches
from ..releases.count_sketches.planning import AGREEMENT_BITS, AGREEMENT_SHARE, count_sketches_of
from ..releases.register import kind_of
from .choice import Choice, Target, no_sketches, outlook_of, shares_of
from .collusion import within_cap
from .defaults import ENCODER, OUTER, default_delta
from .local_plan import MIN_UNIT_SIGMA, SCORE_SENSITIVITY, UNITS, LocalPlan
from .merging import mergeable
from .options import DEFAULT, MIN_MESSAGE_BYTES, PlanOptions
from .plan import Plan
from .schema import Schema
from .shares import (
    FINE_SHARE,
    ONE_WAY_OF_CONTRASTS,
    ONE_WAY_SHARE,
    SCORE_SHARE,
    USUAL,
    Shares,
    choices,
    choosing_is_better,
    in_halves,
    of_chosen,
)
from .target import check_target
from .verdict import useful, verdict
from .workload import Workload


def plan_local(
    sizes: Sequence[int],
    rho: float,
    largest_clique: int,
    free: bool,
    one_way: float | None = None,
    alone: bool = False,
    chosen: bool = False,
    fine: int = 0,
) -> LocalPlan:
    """LocMRF parameters that spend ``rho`` (zCDP) at one party, from public figures only.

    Args:
        sizes: domain sizes of the party's attributes with several values.
        rho: the party's budget.
        largest_clique: most cells of a local clique.
        free: whether one clique of the global model contains all attributes.
        one_way: share of one-way marginals; None is the usual one. At 1 no other marginals are
            measured.
        alone: whether no other party has attributes. Then contrasts are measured if all attributes
            have two values.
        chosen: whether pairs are chosen one by one.
        fine: number of attributes that have finer cells.

    Returns:
        Noise scales and measurement weights.
    """
    d = len(sizes)
    if d == 0:
        return LocalPlan(0.0, 0.0, 0, 0.0, largest_clique, free)
    fine_sigma = math.sqrt(fine / (2 * FINE_SHARE * rho))
    rho *= 1 - FINE_SHARE * bool(fine)
    if d == 1 or one_way == 1:
        sigma = math.sqrt(0.5 * d / rho)
        return LocalPlan(sigma, 0.0, 0, 0.0, largest_clique, free, fine_sigma=fine_sigma)
    pairs, picks = d * (d - 1) // 2, choices(d) if chosen else 0
    contrasts = bool(picks) or (alone and max(sizes) == 2)
    scores = choice = 0.0
    if picks:
        one_way, choice, measure = of_chosen(one_way)
    else:
        scores = SCORE_SHARE if math.prod(sizes) > largest_clique else 0.0
        if one_way is None:
            one_way = ONE_WAY_OF_CONTRASTS if contrasts else ONE_WAY_SHARE
        measure = 1 - one_way - scores
    return LocalPlan(
        one_way_sigma=math.sqrt(d / (2 * one_way * rho)),
        score_sigma=SCORE_SENSITIVITY * math.sqrt(pairs / (2 * scores * rho)) if scores else 0.0,
        units=UNITS,
        unit_sigma=max(math.sqrt(UNITS / (2 * measure * rho)), MIN_UNIT_SIGMA),
        largest_clique=largest_clique,
        free=free,
        contrasts=contrasts,
        fine_sigma=fine_sigma,
        choices=picks,
        choice_scale=math.sqrt(picks / (2 * choice * rho)) if picks else 0.0,
    )


@takes(
    PlanError,
    schema=instance("Schema"),
    planning=instance("PlanOptions"),
    nonce=maybe(TEXT),
    prior=each(instance("LedgerEntry")),
    public_keys=maybe(instance("PublicKeys")),
)
def make_plan(
    schema: Schema,
    epsilon: float,
    planning: PlanOptions = DEFAULT,
    *,
    nonce: str | None = None,
    prior: Sequence[LedgerEntry] = (),
    public_keys: PublicKeys | None = None,
) -> Plan:
    """Plan a run from public information, so that all events together meet (epsilon, delta).

    Args:
        schema: attributes and parties.
        epsilon: target, for adding or removing one record.
        planning: all other options; ``expected_records`` is required.
        nonce: public text, fresh for every run; default random.
        prior: ledger entries that were spent to make the plan, with pure epsilon; they are part of
            the target. If one of them gave ``expected_records``, give delta explicitly, because the
            default follows from it.
        public_keys: public keys of the parties and the server; required if messages are files.

    Returns:
        The plan.

    Raises:
        PlanError: parameters out of range, or the result is predicted to be useless.
        PrivacyError: no noise meets the target.
    """
    check_target(epsilon, planning.delta)
    epsilon = float(epsilon)
    records = planning.expected_records
    if records is None:
        raise PlanError(
            "A plan needs expected_records, a public order of magnitude of the number of records."
        )
    nonce = secrets.token_hex(16) if nonce is None else nonce
    origin: Fields = {"nonce": nonce, "prior": tuple(prior), "public_keys": public_keys}
    planning, because = chosen(schema, planning)
    if because:
        return _because(schema, epsilon, planning, because, origin)
    kind = kind_of(planning.encoder)
    largest = kind.usual_bytes
    cap = planning.collusion_epsilon
    if cap is not None:
        if len(schema.parties) < 2:
            raise PlanError(
                "No party can collude where one holds everything: leave the cap on epsilon if a party colludes out."
            )
        uncapped = replace(planning, collusion_epsilon=None, even_if_useless=True)
        capped = within_cap(
            lambda size: make_plan(
                schema, epsilon, replace(uncapped, message_bytes=size), **origin
            ),
            cap,
            MIN_MESSAGE_BYTES,
            largest,
        )
        return capped if planning.even_if_useless else useful(capped)
    delta = default_delta(records) if planning.delta is None else planning.delta
    # Parties without an attribute of several values get no budget.
    parties = sum(bool(schema.varying(name)) for name in schema.party_names)
    target = Target(
        epsilon,
        delta,
        records,
        largest if planning.message_bytes is None else planning.message_bytes,
        Workload.of(schema, planning.workload, planning.tau),
        # Above the paper's tau / (m u^2): the server chooses among local and cross-party edges.
        planning.tau if parties < 2 else max(planning.tau // (2 * parties), 2),
        parties > 1,
    )
    target = _halved(schema, planning, target)
    if target.several:
        choice = kind.planned(schema, planning, target)
    else:
        choice = Choice(no_sketches, (), shares_of(schema, planning, target).without_sketches())
    at = _plans(schema, planning, target, choice, origin)
    _, most, guess = at(1.0).accounted()
    made = at(calibrate(lambda rho: at(rho).accounted()[0], most, guess))
    return made if planning.even_if_useless else useful(made)


def _because(
    schema: Schema,
    epsilon: float,
    planning: PlanOptions,
    because: str,
    origin: Fields,
) -> Plan:
    """The plan of a chosen encoder, with the reason; of count sketches if it were useless."""
    made = make_plan(schema, epsilon, replace(planning, even_if_useless=True), **origin)
    judged = verdict(made) if because == STATED else None
    if judged is not None and judged.word == "useless":
        return _because(schema, epsilon, replace(planning, encoder=ENCODER), USELESS, origin)
    if made.groups:
        made = replace(made, because=because)
    return made if planning.even_if_useless else useful(made)


def _halved(schema: Schema, planning: PlanOptions, target: Target) -> Target:
    """The target with the attributes that are in two halves across parties, and with the choice of
    pairs one by one if its forecast of the error is lower.

    Halved are the attributes of so many values that a pair of two such would be noise alone at the
    usual shares (:func:`.shares.in_halves`). What a workload names keeps its values. There are more
    bins than two where noise leaves enough.
    """
    if (
        not kind_of(planning.encoder).forecast
        or not planning.local_models
        or planning.population == OUTER
    ):
        return target
    columns = [schema.varying(name) for name in schema.party_names]
    if len(set().union(*columns)) < 2:
        return target
    usual = USUAL if planning.shares is None else Shares(*planning.shares)
    able = mergeable(schema) - target.workload.attributes
    outlook = in_halves(
        outlook_of(schema, planning, target), usual, [[a in able for a in some] for some in columns]
    )
    flags = itertools.chain(*outlook.halved)
    halved = frozenset(itertools.compress(itertools.chain(*columns), flags))
    chosen = choosing_is_better(outlook, usual, fixed=planning.shares is not None)
    return replace(target, halved=halved, bins=outlook.bins, chosen=chosen)


def _plans(
    schema: Schema,
    planning: PlanOptions,
    target: Target,
    choice: Choice,
    origin: Mapping[str, Any],
) -> Callable[[float], Plan]:
    """The plan as a function of the approximate zCDP budget; ``origin`` has further parts of it."""
    columns = [schema.varying(name) for name in schema.party_names]
    shares, limit = choice.shares, target.largest_clique
    free = math.prod(schema.sizes) <= planning.tau

    def local_plan(attributes: Sequence[int], rho: float) -> LocalPlan:
        budget = rho * shares.local * len(attributes) / max(sum(map(len, columns)), 1)
        alone = not target.several
        sizes = [schema.sizes[i] for i in attributes]
        fine = len(schema.fine.keys() & set(attributes))
        return plan_local(sizes, budget, limit, free, shares.one_way, alone, target.chosen, fine)

    def agreement(attribute: int, shape: Pair, rho: float) -> CountSketches:
        budget = rho * shares.sketches * AGREEMENT_SHARE / len(choice.agreement)
        return count_sketches_of(
            (1,) * len(schema.holders[attribute]), *shape, AGREEMENT_BITS, budget
        )

    def at(rho: float) -> Plan:
        groups, sketch = choice.sketches(
            rho * shares.sketches * (1 - AGREEMENT_SHARE if choice.agreement else 1)
        )
        # Replacing a record doubles every sensitivity, and a person's multiplies with their
        # records; the cost has their squares.
        others = (0.25 if sketch.publishes_rows else 1.0 / planning.records_per_person**2) * rho
        shared = zip(schema.shared, choice.agreement, strict=False)
        return Plan(
            schema=schema,
            epsilon=target.epsilon,
            delta=target.delta,
            expected_records=target.records,
            tau=planning.tau,
            count_sigma=math.sqrt(0.5 / (others * shares.count)),
            local=tuple(local_plan(attributes, others) for attributes in columns),
            groups=groups,
            sketch=sketch,
            message_bytes=target.message_bytes,
            workload=target.workload,
            agreement=tuple(agreement(attribute, shape, rho) for attribute, shape in shared),
            records_per_person=planning.records_per_person,
            population=planning.population,
            halved=tuple(sorted(target.halved)),
            **origin,
        )

    return at

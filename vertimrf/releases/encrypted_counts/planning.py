"""Planning of encrypted counts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from ...arrays import Ints, Pair
from ...errors import PlanError
from ...plan.choice import Choice, Released, Target, groups_of, no_sketches, shares_of
from ...plan.defaults import SHARES
from ...plan.groups import Group
from ...plan.options import PlanOptions
from ...plan.schema import Schema
from ...plan.shares import Shares
from ...privacy.ledger import coalitions
from .packing import counters_of
from .parameters import (
    COUNT_REACH,
    MAX_CAPACITY,
    MAX_ENCRYPTED_SIGMA,
    SAMPLE_REACH,
    EncryptedCounts,
    least_noise,
    table_weights,
)

# As of count sketches, but these contrasts have less noise. A table of counts costs the same
# whatever its size, and two parties have a table for every two groups, so that fewer are worth it.
ENCRYPTED_CONTRAST_NOISE = 0.01
ENCRYPTED_PARITY_RINGS = 1


def planned(schema: Schema, planning: PlanOptions, target: Target) -> Choice:
    """Choose groups and budget shares of encrypted counts.

    Every attribute is a group, and one of two values is a contrast. If one clique contains all
    attributes, and noise is small compared to the records, parities are added, as for count
    sketches.
    """
    if schema.shared:
        names = ", ".join(schema.names[a] for a in schema.shared)
        raise PlanError(
            f"Encrypted counts are for columns that one party holds, and several hold {names}: use count sketches, or drop "
            "the column at all parties but one."
        )
    columns = [schema.varying(name) for name in schema.party_names]

    def chosen(parities: int) -> tuple[Choice, float]:
        groups, contrasts = groups_of(schema, columns, target, parities=parities, values=False)
        counters = np.array(counters_of([group.size for group in groups], contrasts))
        holders = np.array([group.party(schema) for group in groups])
        by_party = [counters[holders == party] for party in range(len(columns))]
        weights = {two: float(w.sum()) for two, w in table_weights(by_party).items()}
        usual = _encrypted_shares([len(some) for some in columns], weights)
        shares = shares_of(schema, planning, target, usual)
        if not shares.sketches:
            return Choice(no_sketches, (), shares.without_sketches()), math.inf
        ratio = shares.count / shares.sketches
        total = sum(weights.values())
        release = partial(_encrypted_plan, groups, contrasts, total, target.records, ratio)
        # Noise of both parties in a contrast, at the rho that one Gaussian mechanism would have.
        rho = shares.sketches * target.rho
        return Choice(release, (), shares), math.sqrt(total / (2 * rho))

    if math.prod(schema.sizes) <= planning.tau:
        with_parities, noise = chosen(ENCRYPTED_PARITY_RINGS)
        if noise <= ENCRYPTED_CONTRAST_NOISE * target.records:
            return with_parities
    return chosen(0)[0]


def _encrypted_shares(attributes: Sequence[int], weights: Mapping[Pair, float]) -> Shares:
    """Shares of the budget at which the server's view costs as much as that of the worst coalition.

    The server alone sees everything with the noise of two parties. A coalition sees what is the
    others', and knows one of the two noises of their tables with its parties. A smaller share of
    the tables would leave their noise larger than the coalitions need it. A larger one would leave
    part of the budget against the server unused.

    Args:
        attributes: number of attributes of each party that vary; local models are paid by it.
        weights: weight of all tables of every two parties together.
    """
    count = SHARES[0]
    crossing, total = 1 - count, sum(weights.values())
    for others in coalitions(range(len(attributes))):
        # Tables of the others and the coalition have one noise, which costs twice as much.
        known = {0: 0, 1: 2, 2: 1}
        cost = sum(w * known[len({*two} & {*others})] for two, w in weights.items()) / total
        local = sum(attributes[i] for i in others) / sum(attributes)
        if cost > local:
            left = 1 - count * (0 in others) - (1 - count) * local
            crossing = min(crossing, left / (cost - local))
    return Shares(count, 1 - count - crossing, crossing)


def _encrypted_plan(
    groups: tuple[Group, ...],
    contrasts: Ints,
    weight: float,
    records: int,
    count_share: float,
    rho: float,
) -> Released:
    """Encrypted counts: a table of every two groups of different parties.

    Args:
        groups: the counted groups.
        contrasts: indices of groups that are counted as contrasts.
        weight: that of all tables together.
        records: expected number of records.
        count_share: budget of the record count, as a multiple of that of the counts.
        rho: what the server's view costs (zCDP).
    """
    # The server sees the noise of two parties.
    sigma = math.sqrt(weight / (4 * rho))
    sizes = tuple(group.size for group in groups)
    filled = records + COUNT_REACH * math.sqrt(0.5 / (count_share * rho))
    capacity = (SAMPLE_REACH + math.sqrt(SAMPLE_REACH**2 + 4 * filled)) ** 2 / 4
    return groups, EncryptedCounts(
        sigma=min(max(sigma, least_noise(sizes)), MAX_ENCRYPTED_SIGMA),
        capacity=min(math.ceil(capacity), MAX_CAPACITY),
        sizes=sizes,
        contrasts=contrasts,
    )

"""The key schedule: which cross-party marginals sketches estimate, in how many bins and with how many keys.

Everything here follows from public figures, or from what parties have already released.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import PlanError
from ..sketches.parameters import ScheduledPair
from .binning import choose_bins
from .schema import Schema

__all__ = [
    "Group",
    "Schedule",
    "ScheduleDraft",
    "choose_keys",
    "crossing_pairs",
    "cut_groups",
    "draft_schedule",
    "released_sizes",
    "smallest_triples",
    "triple_rule",
]

# N^2 chi^2(Q || P) of one key at the planner's ceiling, for the first guess of N; the accountant, not this figure, has the
# last word.
KEY_COST = 7.0
# Privacy cost of a key over what it tells of an intersection (C / I) at the planner's ceiling: what a cell's variance is worse
# by than a trusted curator's.
COST_OF_INFORMATION = 1.4
# Phantoms beyond so many times the records add nothing: the sets no longer show in the variance.
PHANTOMS_OVER_RECORDS = 8
# Bounds on the number of keys: fewer save nothing, more cost encoding time.
MIN_KEYS = 1 << 20
MAX_KEYS = 1 << 25
# A pair is cut into so many bins that an average cell is this many standard errors.
CELL_ERRORS = 6.0
# Three-way marginals: how many standard errors an average cell must have, and the weight of their keys beside the pairs',
# where one clique holds all attributes; and where cliques are scarce.
FREE_TRIPLE = (4.0, 1.0)
RIVAL_TRIPLE = (20.0, 0.25)
MAX_TRIPLES = 1000


@dataclass(frozen=True)
class Group:
    """A unit that sketches publish: attributes of one party, each cut to a number of bins, taken as one attribute.

    A value of the group is a tuple of bins, numbered in row-major order; a pair of groups is a marginal of all their attributes.
    Or it is the parity of some attributes of two bins each: 0 where an even number of them are in the second, otherwise 1.
    A group of one value says who is at the party, and no more: presence.

    Attributes:
        attributes: strictly increasing indices into the schema.
        bins: number of bins of each attribute; the party picks the edges from its own released one-way marginals.
        parity: whether values are parities, of two attributes or more.
    """

    attributes: tuple[int, ...]
    bins: tuple[int, ...]
    parity: bool = False

    @property
    def size(self) -> int:
        """Number of values."""
        return 2 if self.parity else math.prod(self.bins)

    @property
    def tells_values(self) -> bool:
        """Whether it says what values its attributes have: neither a parity, whose marginals come with theirs, nor presence."""
        return not self.parity and self.size > 1

    def add_up(self, tuples: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """What each value has of tuples of bins [shape=(values,)], from what these have, in row-major order, or by their axes."""
        if not self.parity:
            return tuples.ravel()
        odd = np.indices(self.bins).sum(axis=0).ravel() % 2 == 1
        return np.array([tuples.ravel()[~odd].sum(), tuples.ravel()[odd].sum()])

    def to_json(self) -> dict[str, Any]:
        """The group as JSON fields."""
        return {
            "attributes": self.attributes,
            "bins": self.bins,
            **({"parity": True} if self.parity else {}),
        }


@dataclass(frozen=True)
class Schedule:
    """What parties publish about values across parties, and which keys serve which two groups. Make one with :meth:`of`.

    Attributes:
        groups: what is published.
        pairs: the key schedule over the groups, in publishing order; empty where keys are not scheduled.
        parties: per group, the position of the party that publishes it.
    """

    groups: tuple[Group, ...]
    pairs: tuple[ScheduledPair, ...]
    parties: tuple[int, ...]

    @classmethod
    def of(
        cls, schema: Schema, groups: Sequence[Group], pairs: Sequence[ScheduledPair] = ()
    ) -> Schedule:
        """A schedule, checked against the schema; it may come from outside.

        Raises:
            PlanError: a group that is not one party's, or a pair that does not fit its groups or serves one party twice.
        """
        parties = tuple(_party_of(schema, group) for group in groups)

        sizes = [group.size for group in groups]
        for pair in pairs:
            left, right = pair.left, pair.right
            if not (
                isinstance(left, int)
                and isinstance(right, int)
                and 0 <= left < len(groups)
                and 0 <= right < len(groups)
            ):
                raise PlanError(
                    f"A key serves the groups {left} and {right}, of which there are {len(groups)}."
                )
            whole = isinstance(pair.left_bins, int) and isinstance(pair.right_bins, int)
            keyed = isinstance(pair.keys, int) and pair.keys >= 1
            fits = sizes[left] == pair.left_bins and sizes[right] == pair.right_bins
            if whole and keyed and fits and parties[left] != parties[right]:
                continue
            where = "the groups of " + " and ".join(
                _names(schema, groups[i].attributes) for i in (left, right)
            )
            if not whole:
                raise PlanError(f"The bins given to {where} are no whole numbers.")
            if not keyed:
                raise PlanError(
                    f"{pair.keys} keys are given to {where}; a pair takes a whole number of at least 1."
                )
            if parties[left] == parties[right]:
                raise PlanError(
                    f"A key serves {where}, which one party holds; it must serve two parties."
                )
            raise PlanError(f"The keys of {where} do not fit their values.")
        return cls(tuple(groups), tuple(pairs), parties)

    def of_party(self, party: int) -> tuple[int, ...]:
        """Indices of the groups that a party publishes, in order."""
        return tuple(group for group, owner in enumerate(self.parties) if owner == party)


def _names(schema: Schema, attributes: Sequence[int]) -> str:
    """Attributes by name, whatever stands there."""
    known = [
        schema.names[a] if isinstance(a, int) and 0 <= a < len(schema.names) else f"no. {a}"
        for a in attributes
    ]
    return " × ".join(known) if known else "nothing"


def _party_of(schema: Schema, group: Group) -> int:
    """The party that holds all attributes of a group, whose bins must fit their domains."""
    attributes = group.attributes
    held = {
        schema.party_of(a) if isinstance(a, int) and 0 <= a < len(schema.sizes) else -1
        for a in attributes
    }
    if len(held) != 1 or -1 in held or list(attributes) != sorted(set(attributes)):
        raise PlanError(
            f"The group of {_names(schema, attributes)} is not one party's attributes in order."
        )
    if len(group.bins) != len(attributes) or not all(
        isinstance(bins, int) and 1 <= bins <= schema.sizes[a]
        for bins, a in zip(group.bins, attributes, strict=False)
    ):
        raise PlanError(
            f"The bins {group.bins} of the group of {_names(schema, attributes)} do not fit its domains."
        )
    if group.parity is not False and (
        group.parity is not True or len(attributes) < 2 or set(group.bins) != {2}
    ):
        raise PlanError(
            f"The group of {_names(schema, attributes)} is no parity: it takes two or more, of two bins each."
        )
    return held.pop()


@dataclass(frozen=True, eq=False)
class ScheduleDraft:
    """Which marginals sketches are to estimate, before keys are counted out.

    Attributes:
        groups: what is published.
        pairs: per marginal, the groups on its two sides.
        shares: per marginal, its part of all keys [shape=(pairs,), sums to 1].
    """

    groups: tuple[Group, ...]
    pairs: tuple[tuple[int, int], ...]
    shares: npt.NDArray[np.float64]

    def with_keys(self, keys: int) -> tuple[ScheduledPair, ...]:
        """The schedule of about so many keys, never more unless there are fewer keys than marginals."""
        share = np.maximum((keys * self.shares).astype(int), 1)
        # The keys that the smallest marginals were given beyond their shares come from the largest.
        over = int(share.sum()) - keys
        for i in np.argsort(-share, kind="stable"):
            if over <= 0:
                break
            taken = min(over, int(share[i]) - 1)
            share[i] -= taken
            over -= taken
        sizes = [group.size for group in self.groups]
        return tuple(
            ScheduledPair(left=i, right=j, keys=k, left_bins=sizes[i], right_bins=sizes[j])
            for (i, j), k in zip(self.pairs, share.tolist(), strict=True)
        )

    def bytes_per_key(self, schema: Schema) -> float:
        """Message bytes that a key costs the busiest party, on average (two levels to a byte)."""
        cost = [0.0] * len(schema.parties)
        owners = [schema.party_of(group.attributes[0]) for group in self.groups]
        sizes = [group.size for group in self.groups]
        for pair, share in zip(self.pairs, self.shares.tolist(), strict=True):
            for group in pair:
                cost[owners[group]] += share * sizes[group] / 2
        return max(cost)


def draft_schedule(
    schema: Schema,
    rho: float,
    records: int,
    pairs: Sequence[tuple[int, ...]],
    triples: Sequence[tuple[int, ...]],
    rule: tuple[float, float],
) -> ScheduleDraft:
    """Bins and keys for some pairs, and for those of some three-way marginals that ``rho`` can measure well.

    A third attribute of few values costs a pair little: it takes part in many three-way marginals, and they add up to it.

    Args:
        schema: attributes and parties.
        rho: what the sketches may spend (zCDP).
        records: about how many there are.
        pairs: cross-party pairs, one or more.
        triples: three-way marginals of two parties' attributes.
        rule: how many standard errors an average cell of a three-way marginal must have, and the weight of its keys.
    """
    sizes = schema.sizes
    # Standard error of a cell of a marginal that gets all keys, when phantoms outnumber the sets.
    alone = math.sqrt(COST_OF_INFORMATION / (2 * rho))

    values = np.array(sizes)[np.array(pairs)]

    def cut(share: float) -> npt.NDArray[np.int64]:
        """Bins of all pairs, so that an average cell is a few standard errors."""
        return _cut_pairs(
            values, max(math.sqrt(share / len(pairs)) * records / (CELL_ERRORS * alone), 4.0)
        )

    # The sum of the marginals' L1 errors is least with keys in proportion to cells^(2/3).
    needed = float(np.sum(np.prod(cut(1.0), axis=1) ** (2 / 3)))
    least, weight = rule
    cells = np.array([math.prod(sizes[i] for i in own) for own in triples], np.float64)
    order = np.argsort(cells, kind="stable")[:MAX_TRIPLES]
    weights = weight * cells[order] ** (2 / 3)
    errors = alone / np.sqrt(weights / (np.cumsum(weights) + needed))
    useful = np.flatnonzero(records / cells[order] >= least * errors)
    order = order[: useful[-1] + 1] if useful.size else order[:0]
    taken = float(weights[: order.size].sum())

    wanted = [
        (own, tuple(bins), 1.0)
        for own, bins in zip(pairs, cut(needed / (needed + taken)).tolist(), strict=True)
    ]
    wanted += [(triples[i], tuple(sizes[a] for a in triples[i]), weight) for i in order]
    groups: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
    both: list[tuple[int, int]] = []
    shares: list[float] = []
    for own, bins, importance in wanted:
        owner = [schema.party_of(i) for i in own]
        sides = []
        for party in dict.fromkeys(owner):
            held = [k for k in range(len(own)) if owner[k] == party]
            group = tuple(own[k] for k in held), tuple(bins[k] for k in held)
            sides.append(groups.setdefault(group, len(groups)))
        both.append((sides[0], sides[1]))
        shares.append(importance * math.prod(bins) ** (2 / 3))
    return ScheduleDraft(
        tuple(Group(*group) for group in groups), tuple(both), np.array(shares) / sum(shares)
    )


def crossing_pairs(schema: Schema) -> list[tuple[int, ...]]:
    """All pairs of attributes that no party holds both of; those of one value have nothing in common with any other."""
    varying = [a for a, size in enumerate(schema.sizes) if size > 1]
    parties = [set(holders) for holders in schema.holders]
    return [
        (a, b) for a, b in itertools.combinations(varying, 2) if parties[a].isdisjoint(parties[b])
    ]


def smallest_triples(schema: Schema, most: int = MAX_TRIPLES) -> list[tuple[int, ...]]:
    """Those three-way marginals of two parties' attributes that have the fewest cells, smallest first; the first ones of equals.
    A shared attribute counts as its first holder's, and what one party holds does not count.

    A hundred attributes have 160,000 triples, five hundred 20 million: they are looked through in rows, and few are kept.
    """
    varying = [a for a, size in enumerate(schema.sizes) if size > 1]
    owner = np.array([schema.party_of(a) for a in varying])
    held = np.array(
        [[party in schema.holders[a] for party in range(len(schema.parties))] for a in varying]
    )
    sizes = np.array([schema.sizes[a] for a in varying], np.float64)
    kept = np.empty((0, 3), np.int64)
    cells = np.empty(0)
    for first in range(len(sizes) - 2):
        second, third = (
            np.asarray(index) + first + 1 for index in np.triu_indices(len(sizes) - first - 1, 1)
        )
        own = sizes[first] * sizes[second] * sizes[third]
        # Three attributes of two parties: some two are together, and not all three.
        together = owner[second] == owner[third]
        crosses = together != ((owner[second] == owner[first]) | (owner[third] == owner[first]))
        if len(cells) == most:
            crosses &= own < cells[-1]
        found = np.flatnonzero(crosses)
        if schema.shared:
            found = found[~(held[first] & held[second[found]] & held[third[found]]).any(axis=1)]
        if found.size:
            kept = np.concatenate(
                [kept, np.column_stack([np.full(found.size, first), second[found], third[found]])]
            )
            cells = np.concatenate([cells, own[found]])
            order = np.argsort(cells, kind="stable")[:most]
            kept, cells = kept[order], cells[order]
    return [(varying[a], varying[b], varying[c]) for a, b, c in kept.tolist()]


def triple_rule(schema: Schema, tau: int) -> tuple[float, float]:
    """Where one clique holds every attribute, nothing that is measured keeps anything else out of the model."""
    return FREE_TRIPLE if math.prod(schema.sizes) <= tau else RIVAL_TRIPLE


def _cut_pairs(values: npt.NDArray[np.int64], most: float) -> npt.NDArray[np.int64]:
    """Bins of pairs of attributes [shape=(pairs, 2), as their values] whose table has about ``most`` cells, or all of their
    values if that is fewer.
    """
    bins = np.minimum(values, np.maximum(math.sqrt(most), most / values[:, ::-1]))
    return np.maximum(bins.astype(np.int64), np.minimum(values, 2))


def cut_groups(
    schema: Schema,
    groups: Sequence[Group],
    one_way: Mapping[int, npt.NDArray[np.float64]],
    merged: Mapping[int, npt.NDArray[np.int64]],
) -> tuple[tuple[npt.NDArray[np.int64], ...], ...]:
    """Bins of groups from released one-way counts: per group and attribute, the map code -> bin [shape=(size,), int64].

    Where values are merged already, bins are made of merged values, so that these are all that the model has to tell apart. There
    may then be fewer bins than the group has room for.

    Args:
        schema: the attributes.
        groups: what is published.
        one_way: released counts by attribute.
        merged: by attribute, the map code -> merged value (:mod:`vertimrf.plan.merging`).
    """

    def cut(attribute: int, count: int) -> npt.NDArray[np.int64]:
        ordered = schema.attributes[attribute].ordered
        if attribute not in merged:
            return choose_bins(one_way[attribute], count, ordered)
        values = merged[attribute]
        counts = np.bincount(values, weights=np.maximum(one_way[attribute], 0.0)).astype(np.float64)
        return choose_bins(counts, count, ordered)[values]

    return tuple(
        tuple(
            cut(attribute, count)
            for attribute, count in zip(group.attributes, group.bins, strict=True)
        )
        for group in groups
    )


def released_sizes(
    groups: Sequence[Group],
    bins: Sequence[Sequence[npt.NDArray[np.int64]]],
    one_way: Mapping[int, npt.NDArray[np.float64]],
) -> list[npt.NDArray[np.float64]]:
    """Records of each value of groups as released one-way counts tell, attributes taken as independent [each shape=(values,)].

    Party and server come to the same figures, to the last bit but one.
    """
    out = []
    for group, maps in zip(groups, bins, strict=True):
        sizes = np.ones(1)
        for attribute, count, mapping in zip(group.attributes, group.bins, maps, strict=True):
            held = np.bincount(
                mapping, weights=np.maximum(one_way[attribute], 0.0), minlength=count
            )
            scale = 1.0 if attribute == group.attributes[0] else max(float(held.sum()), 1.0)
            sizes = np.multiply.outer(sizes, held / scale).ravel()
        out.append(group.add_up(sizes))
    return out


def choose_keys(bytes_per_key: float, rho: float, records: int, message_bytes: int) -> int:
    """As many keys as make phantoms eight times the records, where more stop helping, if the messages stay within bounds.

    The variance of a cell is about (set + N)(set' + N) / (keys * information), and N grows with the root of the keys; the
    information grows too while a cell is no small part of N.
    """
    wanted = 2 * rho * (PHANTOMS_OVER_RECORDS * records) ** 2 / KEY_COST
    affordable = message_bytes / bytes_per_key
    return int(min(max(wanted, MIN_KEYS), affordable, MAX_KEYS))

"""Who is at which party: how many people parties hold, and have in common, as released figures tell.

Parties mostly hold the same people, and nothing here is used. Where they do not, their marginals speak of different people, and a
cross-party cell of those that both hold. Sketches tell how many those are: their cells add up to them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import MessageError
from ..message import Message
from ..plan.plan import Plan
from .cross_party import Holding, Match

__all__ = [
    "Overlap",
    "estimate_total",
    "find_overlap",
    "holdings",
    "proportional",
    "same_people",
    "same_sizes",
]

Floats = npt.NDArray[np.float64]

# Differences within so many standard errors are none: parties with the same people are taken for others once in a million runs.
ERRORS = 5.0
# Nor are those of a smaller part of the records, which noise hides in all that is made of them.
NEGLIGIBLE = 0.01
# Most ways in which a person can be held: of everybody, each has a model of its own.
MAX_PATTERNS = 255
# Rounds of proportional fitting, and the change of a count, in records, at which they end.
ROUNDS, SETTLED = 1000, 1e-6


@dataclass(frozen=True, eq=False)
class Overlap:
    """Parties that hold different people.

    Attributes:
        names: of the parties.
        held: how many people each party holds.
        common: how many every two parties have in common.
        patterns: the sets of parties that somebody is held by, everybody's last; of sets that differ by nobody the larger.
        counts: how many people each set holds, and no other party [shape=(patterns,), float64].
        errors: their standard errors. With three parties and more, counts follow from those of two only where nobody's presence
            at one party depends on that at two others together; that they may is in no error.
        outer_error: standard error of the number of all people.
    """

    names: tuple[str, ...]
    held: tuple[Holding, ...]
    common: tuple[Match, ...]
    patterns: tuple[tuple[int, ...], ...]
    counts: Floats
    errors: Floats
    outer_error: float

    @property
    def inner(self) -> float:
        """People that all parties hold."""
        return float(self.counts[-1])

    @property
    def inner_error(self) -> float:
        """Its standard error."""
        return float(self.errors[-1])

    @property
    def outer(self) -> float:
        """People that any party holds."""
        return float(self.counts.sum())

    @property
    def between(self) -> tuple[float, float]:
        """Least and most people that all parties can hold, whatever presences depend on, given what every two have in common."""
        pairs = [match.records for match in self.common]
        rest = len(self.names) - 2
        least = max(
            sum(match.records for match in self.common if party in match.parties)
            - rest * own.records
            for party, own in enumerate(self.held)
        )
        return max(min(least, min(pairs)), 0.0), max(min(pairs), 0.0)

    def share(self, party: int, other: int) -> float:
        """The part of a party's people that another holds as well."""
        return float(
            self.counts[self.holding((party, other))].sum()
            / max(self.counts[self.holding((party,))].sum(), 1.0)
        )

    def holding(self, parties: Sequence[int]) -> list[int]:
        """The patterns that some parties are in, by number."""
        return [i for i, pattern in enumerate(self.patterns) if set(parties) <= set(pattern)]

    def sentence(self, population: str) -> str:
        """What people should know."""
        own = ", ".join(
            f"{name} {h.records:,.0f}" for name, h in zip(self.names, self.held, strict=True)
        )
        shared = "; ".join(
            f"{m.records:,.0f} ± {m.error:,.0f} are at {' and '.join(self.names[p] for p in m.parties)}"
            for m in self.common
        )
        rows = {
            "inner": f"the {self.inner:,.0f} that all parties hold",
            "outer": f"all {self.outer:,.0f}, null where no party holds a value",
        }[population]
        return (
            f"The parties hold different people ({own}): sketches tell that {shared}. The rows are of {rows}. If they should be "
            "the same people, compare how ids are written (`vertimrf align`)."
        )

    def to_json(self) -> dict[str, Any]:
        """JSON-able."""
        named = [[self.names[p] for p in pattern] for pattern in self.patterns]
        out: dict[str, Any] = {
            "parties": {
                n: _figure(h.records, h.error) for n, h in zip(self.names, self.held, strict=True)
            },
            "in_common": [
                {"parties": [self.names[p] for p in m.parties], **_figure(m.records, m.error)}
                for m in self.common
            ],
            "held_by": [
                {"parties": own, **_figure(count, error)}
                for own, count, error in zip(named, self.counts, self.errors, strict=True)
            ],
            "inner": _figure(self.inner, self.inner_error),
            "outer": _figure(self.outer, self.outer_error),
        }
        if len(self.names) > 2:
            out["inner"]["between"] = [round(bound, 1) for bound in self.between]
        return out


def _figure(records: float, error: float) -> dict[str, float]:
    return {"records": round(float(records), 1), "error": round(float(error), 1)}


def holdings(plan: Plan, messages: Sequence[Message]) -> tuple[Holding, ...]:
    """How many records each party has, from the sums of its marginals, weighted by their variances, and the noisy count.

    A party that released neither, whose attributes have one value each, is taken to have as many as the others.

    Args:
        plan: the agreed plan.
        messages: one per party, in plan order.
    """
    return tuple(
        _holding(plan, [message] if message.marginals or message.count is not None else messages)
        for message in messages
    )


def estimate_total(plan: Plan, messages: Sequence[Message]) -> float:
    """The record count where all parties hold the same people, from all that they released; at least 1."""
    return _holding(plan, messages).records


def _holding(plan: Plan, messages: Sequence[Message]) -> Holding:
    weights = []
    values = []
    for message in messages:
        if message.count is not None:
            weights.append(plan.count_sigma**-2)
            values.append(float(message.count))
        for marginal in message.marginals:
            if marginal.contrasts:
                continue
            weights.append(1.0 / (marginal.error**2 * marginal.counts.size))
            values.append(float(marginal.counts.sum(dtype=np.float64)) / marginal.units)
    return Holding(max(float(np.average(values, weights=weights)), 1.0), sum(weights) ** -0.5)


def same_sizes(held: Sequence[Holding]) -> bool:
    """Whether all parties may have the same number of records."""
    return all(
        _none(
            abs(one.records - other.records),
            math.hypot(one.error, other.error),
            max(one.records, other.records),
        )
        for one, other in itertools.combinations(held, 2)
    )


def same_people(held: Sequence[Holding], matches: Sequence[Match]) -> bool:
    """Whether all parties may hold the same people, by what every two have in common."""
    return all(_lacks_none(held[party], match) for match in matches for party in match.parties)


def _lacks_none(own: Holding, match: Match) -> bool:
    """Whether the other party of a match may have all records that this one has."""
    return _none(own.records - match.records, math.hypot(own.error, match.error), own.records)


def _none(missing: float, error: float, records: float) -> bool:
    return missing <= max(ERRORS * error, NEGLIGIBLE * records)


def find_overlap(
    names: Sequence[str], held: Sequence[Holding], matches: Sequence[Match]
) -> Overlap:
    """How parties' people overlap.

    Args:
        names: of the parties.
        held: records of each.
        matches: what every two have in common; pairs that are not there, of a party that tells nothing, are taken for nested.

    Raises:
        MessageError: parties have nobody in common, as far as can be told; or there are too many parties.
    """
    for match in matches:
        if match.records <= ERRORS * match.error:
            between = " and ".join(
                f"{names[p]} ({held[p].records:,.0f} records)" for p in match.parties
            )
            raise MessageError(
                f"Sketches match {match.records:,.0f} ± {match.error:,.0f} records between {between}, which cannot be told "
                "from none: they used different secrets (compare what `vertimrf inspect` says of the secret files), or their "
                "record ids are written differently (`vertimrf align`) or are of other people, or too few are in common for the "
                "plan's noise."
            )
    records = np.array([own.records for own in held])
    common = np.minimum.outer(records, records)
    errors = np.diag([own.error for own in held])
    # Whom a party would have alone, where that is nobody within the noise.
    lacking = np.zeros(common.shape, bool)
    for match in matches:
        one, other = match.parties
        common[one, other] = common[other, one] = min(match.records, common[one, other])
        errors[one, other] = match.error
        lacking[one, other], lacking[other, one] = (
            not _lacks_none(held[party], match) for party in match.parties
        )
    patterns = tuple(
        own
        for size in range(1, len(held) + 1)
        for own in itertools.combinations(range(len(held)), size)
        if all(lacking[p, q] for p in own for q in range(len(held)) if q not in own)
    )
    if len(patterns) > MAX_PATTERNS:
        raise MessageError(
            f"{len(held)} parties overlap in {len(patterns)} ways, and this version can model {MAX_PATTERNS}: keep the common "
            "people at some of them."
        )
    counts = pattern_counts(patterns, records, common)
    # Errors are handed on one figure at a time.
    moves = []
    for i, j in zip(*np.nonzero(errors), strict=True):
        less_records, less_common = records.copy(), common.copy()
        less_common[i, j] = less_common[j, i] = common[i, j] - errors[i, j]
        less_records[i] -= errors[i, j] * (i == j)
        moves.append(counts - pattern_counts(patterns, less_records, less_common))
    moved = np.array(moves)
    return Overlap(
        tuple(names),
        tuple(held),
        tuple(matches),
        patterns,
        counts,
        np.sqrt(np.square(moved).sum(axis=0)),
        float(np.sqrt(np.square(moved.sum(axis=1)).sum())),
    )


def pattern_counts(patterns: Sequence[Sequence[int]], records: Floats, common: Floats) -> Floats:
    """How many people are at each set of parties, from how many are at one and at two [shape=(patterns,), float64].

    Of two parties it is known; of more, what presences at three have to do with each other is left as if each party held a random
    part of some larger population, and proportional fitting then keeps the counts of two (Deming and Stephan, 1940).

    Args:
        patterns: sets of parties that can be.
        records: of each party [shape=(parties,)].
        common: of every two [shape=(parties, parties)]; its diagonal is not looked at.
    """
    parties = len(records)
    at = np.array([[party in own for party in range(parties)] for own in patterns])
    off = ~np.eye(parties, dtype=bool)
    # A party's share is what it holds of the others' records.
    share = np.clip(
        (common * off).sum(axis=1) / np.maximum(records.sum() - records, 1), 1e-3, 1 - 1e-3
    )
    population = float((common * off).sum() / (np.outer(share, share) * off).sum())
    counts = population * np.where(at, share, 1 - share).prod(axis=1)
    kept = []
    for p, q in itertools.combinations(range(parties), 2):
        kept += [
            (at[:, p] & at[:, q], common[p, q]),
            (at[:, p] & ~at[:, q], max(records[p] - common[p, q], 0.0)),
            (~at[:, p] & at[:, q], max(records[q] - common[p, q], 0.0)),
        ]
    return proportional(counts, kept)


def proportional(
    counts: Floats, kept: Sequence[tuple[npt.NDArray[np.bool_], npt.ArrayLike]]
) -> Floats:
    """Proportional fitting (Deming and Stephan, 1940): counts in proportion to some that have certain sums.

    Args:
        counts: where to start [shape=(n, ...), float64].
        kept: which of the n are summed [shape=(n,)], and what to [shape=(...,)].
    """
    counts = counts.copy()
    for _ in range(ROUNDS):
        before = counts.copy()
        for chosen, wanted in kept:
            now = counts[chosen].sum(axis=0)
            counts[chosen] *= np.divide(wanted, now, out=np.zeros_like(now), where=now > 0)
        if np.abs(counts - before).max(initial=0.0) < SETTLED:
            break
    return counts

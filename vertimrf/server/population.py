"""Estimate how many records parties have, and how many they have in common, from released figures.

1. Each party's record count follows from the sums of its marginals and its noisy count.
2. The common records of two parties are the sum of their sketched cells.
3. The records of every set of parties follow from these two by proportional fitting.

If the parties have the same people, as most do, only step 1 is used.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..arrays import Fields, Flags, Floats, Ints, Texts
from ..errors import MessageError, UnmatchedError
from ..message import Message
from ..model.local_marginal import average, record_figures
from ..plan.defaults import INNER
from ..plan.plan import Plan
from ..releases.received import CommonRecords, RecordCount

# Differences within this many standard errors count as none; a false difference then occurs once in
# a million runs.
ERRORS = 5.0
# More common records than there are, by so many standard errors, are no estimate of tables.
TOO_MANY_ERRORS = 10.0
# Differences of a smaller share of the records count as none.
NEGLIGIBLE = 0.01
# Fewer common records than this part of those expected, by so many standard errors, are few; a false
# warning then occurs once in 30,000 runs.
FEW, FEW_ERRORS = 0.5, 4.0
# Most sets of parties. Each has a model if the rows are of all people.
MAX_PATTERNS = 255
# Rounds of proportional fitting, and the change of a count, in records, at which they end.
ROUNDS, SETTLED = 1000, 1e-6


@dataclass(frozen=True, eq=False)
class Overlap:
    """How the people of the parties overlap.

    Attributes:
        names: names of the parties.
        party_counts: number of people at each party.
        common: number of people that every two parties have in common.
        patterns: the sets of parties that somebody is at; the set of all parties is the last. Among
            sets whose people do not differ it has the larger.
        counts: number of people at all parties of a set and at no other [shape=(patterns,),
            float64].
        errors: their standard errors. With three or more parties, they do not include the error of
            the assumption in :func:`pattern_counts`.
        outer_error: standard error of the number of all people.
    """

    names: Texts
    party_counts: tuple[RecordCount, ...]
    common: tuple[CommonRecords, ...]
    patterns: tuple[Ints, ...]
    counts: Floats
    errors: Floats
    outer_error: float

    @property
    def inner(self) -> float:
        """Number of people at all parties."""
        return float(self.counts[-1])

    @property
    def inner_error(self) -> float:
        """Standard error of :attr:`inner`."""
        return float(self.errors[-1])

    @property
    def outer(self) -> float:
        """Number of people at any party."""
        return float(self.counts.sum())

    @property
    def between(self) -> tuple[float, float]:
        """Least and most people at all parties that the common people of every two allow."""
        pairs = [match.records for match in self.common]
        rest = len(self.names) - 2
        least = max(
            sum(match.records for match in self.common if party in match.parties)
            - rest * count.records
            for party, count in enumerate(self.party_counts)
        )
        return max(min(least, min(pairs)), 0.0), max(min(pairs), 0.0)

    def share(self, party: int, other: int) -> float:
        """Share of a party's people who are also at another."""
        return float(
            self.counts[self.holding((party, other))].sum()
            / max(self.counts[self.holding((party,))].sum(), 1.0)
        )

    def holding(self, parties: Sequence[int]) -> list[int]:
        """Indices of the patterns that contain some parties."""
        return [i for i, pattern in enumerate(self.patterns) if set(parties) <= set(pattern)]

    def sentence(self, population: str) -> str:
        """A message that describes the overlap."""
        sizes = ", ".join(
            f"{name} {h.records:,.0f}"
            for name, h in zip(self.names, self.party_counts, strict=True)
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
            f"The parties hold different people ({sizes}): by the sketches, {shared}. The rows are of {rows}. If they should be "
            "the same people, compare how ids are written (`vertimrf align`)."
        )

    def to_json(self) -> Fields:
        """The overlap in values that JSON can represent."""
        named = [[self.names[p] for p in pattern] for pattern in self.patterns]
        out: Fields = {
            "parties": {
                n: _figure(h.records, h.error)
                for n, h in zip(self.names, self.party_counts, strict=True)
            },
            "in_common": [
                {"parties": [self.names[p] for p in m.parties], **_figure(m.records, m.error)}
                for m in self.common
            ],
            "held_by": [
                {"parties": parties, **_figure(count, error)}
                for parties, count, error in zip(named, self.counts, self.errors, strict=True)
            ],
            "inner": _figure(self.inner, self.inner_error),
            "outer": _figure(self.outer, self.outer_error),
        }
        if len(self.names) > 2:
            out["inner"]["between"] = [round(bound, 1) for bound in self.between]
        return out


def _figure(records: float, error: float) -> dict[str, float]:
    return {"records": round(float(records), 1), "error": round(float(error), 1)}


def record_counts(plan: Plan, messages: Sequence[Message]) -> tuple[RecordCount, ...]:
    """Estimate each party's records from the sums of its marginals and its noisy count, by
    inverse-variance weights.

    A party without either, whose attributes have one value each, gets the estimate of all parties.

    Args:
        plan: the agreed plan.
        messages: one per party, in plan order.

    Returns:
        One count per party.
    """
    return tuple(
        _holding(plan, [message] if message.marginals or message.count is not None else messages)
        for message in messages
    )


def estimate_total(plan: Plan, messages: Sequence[Message]) -> float:
    """Estimate the record count, at least 1, if all parties have the same people."""
    return _holding(plan, messages).records


def _holding(plan: Plan, messages: Sequence[Message]) -> RecordCount:
    figures = [
        figure
        for message in messages
        for figure in record_figures(plan.count_sigma, message.marginals, message.count)
    ]
    records, error = average(figures)
    return RecordCount(max(records, 1.0), error)


def same_sizes(party_counts: Sequence[RecordCount]) -> bool:
    """Whether all parties may have the same number of records."""
    return all(
        _none(
            abs(one.records - other.records),
            math.hypot(one.error, other.error),
            max(one.records, other.records),
        )
        for one, other in itertools.combinations(party_counts, 2)
    )


def same_people(party_counts: Sequence[RecordCount], matches: Sequence[CommonRecords]) -> bool:
    """Whether all parties may have the same people, by the common records of every two."""
    return all(
        _lacks_none(party_counts[party], match) for match in matches for party in match.parties
    )


def _lacks_none(count: RecordCount, match: CommonRecords) -> bool:
    """Whether the other party of a match may have all of this one's records."""
    return _none(count.records - match.records, math.hypot(count.error, match.error), count.records)


def _none(missing: float, error: float, records: float) -> bool:
    return missing <= max(ERRORS * error, NEGLIGIBLE * records)


def few_in_common(
    plan: Plan, party_counts: Sequence[RecordCount], matches: Sequence[CommonRecords]
) -> Texts:
    """Sentences about parties that have far fewer records in common than the plan expects.

    Args:
        plan: the agreed plan.
        party_counts: records of each party.
        matches: common records of pairs of parties.

    Returns:
        The sentences. None if the rows are of all people, who need not be the same.
    """
    out = []
    for match in matches if plan.population == INNER else ():
        expected = min(plan.expected_records, *(party_counts[p].records for p in match.parties))
        lacking = expected - match.records
        if lacking > max((1 - FEW) * expected, FEW_ERRORS * match.error):
            between = " and ".join(plan.party_names[p] for p in match.parties)
            out.append(
                f"{between} have {match.records:,.0f} ± {match.error:,.0f} records in common, far fewer than the {expected:,.0f} "
                "that the plan and their tables let expect. If they should be the same people, compare how ids are written "
                "(`vertimrf align`), and run a new plan."
            )
    return tuple(out)


def check_matches(
    names: Sequence[str],
    party_counts: Sequence[RecordCount],
    matches: Sequence[CommonRecords],
    errors: float,
) -> None:
    """Refuse messages of which sketches match more records than a party has.

    Args:
        names: names of the parties.
        party_counts: records of each.
        matches: common records of pairs of parties.
        errors: by how many standard errors.

    Raises:
        MessageError: two parties have more common records than one of them has records.
    """
    for match in matches:
        fewest = min((party_counts[p] for p in match.parties), key=lambda count: count.records)
        beyond = match.records - fewest.records
        error = math.hypot(match.error, fewest.error)
        if beyond > max(errors * error, NEGLIGIBLE * fewest.records):
            raise MessageError(
                f"Sketches match {match.records:,.0f} ± {match.error:,.0f} records between {_parties(names, party_counts, match)}, "
                "more than there are: a message of the two was not made of a table."
            )


def _parties(
    names: Sequence[str], party_counts: Sequence[RecordCount], match: CommonRecords
) -> str:
    """The parties of a match, with their numbers of records."""
    return " and ".join(
        f"{names[p]} ({party_counts[p].records:,.0f} records)" for p in match.parties
    )


def find_overlap(
    names: Sequence[str], party_counts: Sequence[RecordCount], matches: Sequence[CommonRecords]
) -> Overlap:
    """Estimate how the parties' people overlap.

    Args:
        names: names of the parties.
        party_counts: records of each.
        matches: common records of pairs of parties. The smaller party of a missing pair is assumed
            to be contained in the larger.

    Returns:
        The overlap.

    Raises:
        UnmatchedError: two parties have no significant number of common records.
        MessageError: there are too many sets of parties, or more common records than a party has.
    """
    check_matches(names, party_counts, matches, ERRORS)
    for match in matches:
        if match.records <= ERRORS * match.error:
            between = _parties(names, party_counts, match)
            raise UnmatchedError(
                f"Sketches match {match.records:,.0f} ± {match.error:,.0f} records between {between}, which may be "
                "none: they used different secrets (compare what `vertimrf inspect` says of the secret files), or their "
                "record ids are written differently (`vertimrf align`) or are of other people, or they share too few for the "
                "plan's noise."
            )
    records = np.array([count.records for count in party_counts])
    common = np.minimum.outer(records, records)
    errors = np.diag([count.error for count in party_counts])
    # Whether a party has a significant number of records that another lacks.
    lacking = np.zeros(common.shape, bool)
    for match in matches:
        one, other = match.parties
        common[one, other] = common[other, one] = min(match.records, common[one, other])
        errors[one, other] = match.error
        lacking[one, other], lacking[other, one] = (
            not _lacks_none(party_counts[party], match) for party in match.parties
        )
    patterns = tuple(
        pattern
        for size in range(1, len(party_counts) + 1)
        for pattern in itertools.combinations(range(len(party_counts)), size)
        if all(lacking[p, q] for p in pattern for q in range(len(party_counts)) if q not in pattern)
    )
    if len(patterns) > MAX_PATTERNS:
        raise MessageError(
            f"{len(party_counts)} parties overlap in {len(patterns)} ways, and this version can model {MAX_PATTERNS}: keep the common "
            "people at some of them."
        )
    counts = pattern_counts(patterns, records, common)
    # Errors are propagated by moving one figure at a time by its error.
    moves = []
    for i, j in zip(*np.nonzero(errors), strict=True):
        less_records, less_common = records.copy(), common.copy()
        less_common[i, j] = less_common[j, i] = common[i, j] - errors[i, j]
        less_records[i] -= errors[i, j] * (i == j)
        moves.append(counts - pattern_counts(patterns, less_records, less_common))
    moved = np.array(moves)
    return Overlap(
        tuple(names),
        tuple(party_counts),
        tuple(matches),
        patterns,
        counts,
        np.sqrt(np.square(moved).sum(axis=0)),
        float(np.sqrt(np.square(moved.sum(axis=1)).sum())),
    )


def pattern_counts(patterns: Sequence[Sequence[int]], records: Floats, common: Floats) -> Floats:
    """Number of people at each set of parties, from the counts of one and of two parties.

    Proportional fitting (Deming and Stephan, 1940) meets the counts of two parties. It starts where
    each party has a random part of a larger population, which is the assumption about three or more
    parties.

    Args:
        patterns: possible sets of parties.
        records: records of each party [shape=(parties,), float64].
        common: common records of every two [shape=(parties, parties), float64]; its diagonal is
            ignored.

    Returns:
        Number of people [shape=(patterns,), float64].
    """
    parties = len(records)
    at = np.array([[party in pattern for party in range(parties)] for pattern in patterns])
    off = ~np.eye(parties, dtype=bool)
    # A party's share is that of the others' records that it has.
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


def proportional(counts: Floats, kept: Sequence[tuple[Flags, npt.ArrayLike]]) -> Floats:
    """Proportional fitting (Deming and Stephan, 1940): scale counts until some of their sums are as
    given.

    Args:
        counts: the start [shape=(n, ...), float64].
        kept: per sum, which of the n it includes [shape=(n,), bool] and its value [shape=(...,),
            float64].

    Returns:
        The scaled counts [shape=(n, ...), float64].
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

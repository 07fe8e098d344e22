"""Figures of a report: released one-way marginals, and errors and distances of measured pairs.

All figures follow from the messages. A pair has single figures and no table: a party knows the
hashes, so tables of sketched counts would reveal more to it than the fitted model does. Only the
ledger's epsilon of a colluding party covers that (docs/threat-model.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..arrays import Fields, Pair, Texts
from ..errors import first
from ..message import Message
from ..model.local_marginal import LocalMarginal, first_one_way
from ..model.redraw import Noise
from ..model.trust import Evidence
from ..plan.plan import Plan
from ..plan.schema import Schema
from ..plan.verdict import percent

# Pairs with a dropped dependence, and known ones, that are named.
MAX_NAMED = 5
# A result with fewer columns than this part in known pairs is warned of.
LINKED = 0.5
# Further pairs with a dropped dependence that are named in one sentence.
MAX_MORE = 20
# Marginals, each with the number of its party.
PartyMarginals = tuple[tuple[int, LocalMarginal], ...]


@dataclass(frozen=True, eq=False)
class ReleasedFigures:
    """One-way marginals of a run, and what was measured of pairs.

    Attributes:
        released: every released one-way marginal, with its party's position.
        fine: every fine marginal, with its party's position.
        evidence: all measurements, compared with the model.
        noise: their noise, to redraw the model.
    """

    released: PartyMarginals
    fine: PartyMarginals
    evidence: Evidence
    noise: Noise

    def to_json(self, plan: Plan, records: float) -> Fields:
        """The figures, in values that JSON can represent.

        Args:
            plan: the plan of the run.
            records: the model's number of records.

        Returns:
            - ``"records"``: the model's number of records.
            - ``"one_way"``: per first one-way marginal its ``"attribute"``, its ``"party"``, the
              standard deviation ``"error"`` of a count, and the noisy ``"counts"`` by code.
            - ``"fine"``: the same of fine marginals, by finer cell.
            - ``"pairs"``: columns of :class:`~vertimrf.model.trust.Evidence`, with an entry for
              every measured pair that is not noise alone.
        """
        names = plan.schema.names
        one_way, fine = (
            [
                {
                    "attribute": names[m.attributes[0]],
                    "party": plan.party_names[party],
                    "error": _short(m.error),
                    "counts": m.counts.tolist()
                    if m.units == 1
                    else [_short(x) for x in m.counts / m.units],
                }
                for party, m in marginals
            ]
            for marginals in (self.released, self.fine)
        )
        pairs = self.evidence.to_columns()
        del pairs["one_way"], pairs["spread"]
        return {"records": round(records, 1), "one_way": one_way, "fine": fine, "pairs": pairs}


def of_links(schema: Schema, evidence: Evidence) -> Texts:
    """Warnings of relations between columns that the result does not show: most, or measured ones."""
    return (*few_known(schema, evidence), *dropped_pairs(schema, evidence))


def known_pairs(schema: Schema, evidence: Evidence) -> str:
    """A sentence on the pairs of columns that are known, with the strongest; empty without pairs."""
    every, known = math.comb(evidence.columns, 2), evidence.known
    if not every:
        return ""
    if not known:
        return f"Of {every:,} pairs of columns, none is known to depend on each other."
    strongest = ", ".join(named(schema, evidence, pair) for pair in known[:MAX_NAMED])
    return (
        f"Of {every:,} pairs of columns, {len(known):,} are known to depend on each other, and do so in the result. The strongest, "
        f"in parts of the records by which they differ from independent ones: {strongest}."
    )


def named(schema: Schema, evidence: Evidence, pair: Pair) -> str:
    """A measured pair, its dependence, and the standard error of that."""
    i = evidence.places[pair]
    names = " × ".join(schema.names[a] for a in pair)
    size, error = evidence.dependence[i], evidence.dependence_error[i]
    return f"{names} {percent(float(size))} ± {percent(float(error))}"


def few_known(schema: Schema, evidence: Evidence) -> Texts:
    """A warning if most columns are in no pair that is known."""
    linked = len({a for pair in evidence.known for a in pair})
    if evidence.columns < 2 or linked >= LINKED * evidence.columns:
        return ()
    return (
        f"Only {linked} of {evidence.columns} columns have a known relation to another column: do not read relations between "
        "the others from the result. Fewer columns or values, more records, a larger epsilon or a --workload help.",
    )


def dropped_pairs(schema: Schema, evidence: Evidence) -> Texts:
    """Warnings of measured dependences that the model does not keep, strongest first."""
    lost = evidence.dropped
    out = []
    for pair in lost[:MAX_NAMED]:
        i = evidence.places[pair]
        names = [schema.names[a] for a in pair]
        out.append(
            f"{names[0]} and {names[1]} depend on each other for {evidence.dependence[i]:.0%} of the records, as measured, and "
            f"for {evidence.model_dependence[i]:.0%} in the model: do not read their relation from the result. "
            f"workload='{','.join(names)}' (--workload) gives it precedence."
        )
    if more := [" × ".join(schema.names[a] for a in pair) for pair in lost[MAX_NAMED:]]:
        out.append(
            f"The model drops more than a fifth of the dependence of {len(more)} more pairs: {', '.join(first(more, MAX_MORE))}."
        )
    return tuple(out)


def released_by(messages: Sequence[Message]) -> PartyMarginals:
    """The first one-way marginals of some messages, each with its party's position."""
    return tuple(
        (message.party, m)
        for message in messages
        for m in first_one_way(message.marginals).values()
    )


def fine_of(plan: Plan, messages: Sequence[Message]) -> PartyMarginals:
    """The fine marginals of some messages, each with its party's position."""
    return tuple(
        (message.party, LocalMarginal((a,), counts, plan.local[message.party].fine_sigma))
        for message in messages
        for a, counts in zip(plan.fine_of(message.party), message.fine, strict=True)
    )


def _short(figure: float) -> float:
    return float(f"{figure:.4g}")

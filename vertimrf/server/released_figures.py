"""Figures of a report: released one-way marginals, and errors and distances of measured pairs.

All figures follow from the messages. A pair has single figures and no table: a party knows the
hashes, so tables of sketched counts would reveal more to it than the fitted model does. Only the
ledger's epsilon of a colluding party covers that (docs/threat-model.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..arrays import Fields, Texts
from ..message import Message
from ..model.local_marginal import LocalMarginal, first_one_way
from ..model.redraw import Noise
from ..model.trust import Evidence
from ..plan.plan import Plan
from ..plan.schema import Schema

# Pairs with a dropped dependence that are named.
MAX_NAMED = 5
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


def dropped_pairs(schema: Schema, evidence: Evidence) -> Texts:
    """Warnings of measured dependences that the model has little of, strongest first."""
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
    if len(lost) > MAX_NAMED:
        out.append(f"The model drops the dependence of {len(lost) - MAX_NAMED} more pairs.")
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

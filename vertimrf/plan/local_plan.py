"""What a party measures of its own columns, and its entries in the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from ..arrays import Fields, Ints
from ..errors import PlanError
from ..files.convert import Number, to_json
from ..privacy.choice import ChoiceEvent
from ..privacy.events import GaussianEvent
from ..privacy.ledger import (
    Kind,
    LedgerEntry,
)

if TYPE_CHECKING:
    pass


# R-scores are released on a grid of 1/16 record. One record moves an R-score by at most 2, and
# rounding by one more grid step. (R = 1/2 |T - T_A T_B / n|_1. A record moves T by 1 and the
# product, (n P_A + e_a)(n P_B + e_b) / (n + 1) - n P_A P_B, by at most (n + n + n + 1) / (n + 1) <
# 3, both in L1.)
SCORE_GRID = 16
SCORE_SENSITIVITY = 2 * SCORE_GRID + 1
# Smallest noise of a unit. Below it, sums of discrete Gaussians differ from a Gaussian (see
# LocalPlan).
MIN_UNIT_SIGMA = 4.0
# Sum of the measurement weights of a party's larger marginals: enough for a few hundred marginals.
UNITS = 4096
# Most choices of pairs, in shares of the units: a quarter of these may be for what a workload asks for
# (``ASKED`` of vertimrf.party.chosen_pairs), and each pair has one or more.
MOST_CHOICES = 0.75
# Largest noise. The noise of many such units would not fit into 64 bits.
MAX_SIGMA = 1e13


class LocalPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """LocMRF parameters of one party (VertiMRF, phase 1).

    A marginal that is measured with k units is released as k * count + noise of k times the
    variance of a unit's noise in every cell. This costs the same as k releases with the noise of
    one unit, because their sum has the same law up to a factor of exp(10 k exp(-pi^2 sigma^2)),
    which is less than exp(1e-60) (Kairouz, Liu and Steinke, 2021, on sums of discrete Gaussians).
    So the ledger has ``units`` queries of sensitivity 1, whichever marginals they are spent on.

    Attributes:
        one_way_sigma: noise of each one-way marginal, in records; 0 if the party has no attribute
            that varies, and only then.
        score_sigma: noise of each R-score, in grid steps of 1/16 record; 0 if all attributes fit
            into one clique.
        units: number of units for larger marginals; 0 leaves these out.
        unit_sigma: noise of a unit.
        largest_clique: largest clique of the local attribute graph, in cells (tau').
        free: True if one clique of the global model holds the attributes of all parties.
        contrasts: whether larger marginals are released as contrasts along attributes of two
            values: records with one value minus records with the other. A record still moves one
            number by 1, and what smaller marginals contain is not measured again.
        fine_sigma: noise of each fine marginal (:attr:`.Attribute.fine`), in records; 0 if there are
            none.
        choices: number of pairs that are chosen one by one (:mod:`vertimrf.party.chosen_pairs`); 0 if
            larger marginals follow from R-scores, or all are measured.
        choice_scale: scale of a choice's scores, in records.
    """

    one_way_sigma: Number
    score_sigma: Number
    units: int
    unit_sigma: Number
    largest_clique: int
    free: bool
    contrasts: bool = False
    fine_sigma: Number = 0.0
    choices: int = 0
    choice_scale: Number = 0.0

    def __post_init__(self) -> None:
        scales = (self.one_way_sigma, self.score_sigma, self.unit_sigma, self.fine_sigma)
        if not all(0 <= scale <= MAX_SIGMA for scale in scales) or (
            self.one_way_sigma == 0 and (self.units or self.score_sigma)
        ):
            raise PlanError(
                f"A local model's noise must be finite and above 0, and at most {MAX_SIGMA:g}, not {scales}."
            )
        if self.units < 0 or self.largest_clique < 1:
            raise PlanError(
                f"A local model cannot have {self.units} units of measurement and cliques of {self.largest_clique}."
            )
        if self.unit_sigma**2 * self.units > MAX_SIGMA**2:
            raise PlanError(
                f"A local model's noise is at most {MAX_SIGMA:g} for all {self.units} units together."
            )
        if (
            self.choices < 0
            or bool(self.choices) != (self.choice_scale > 0)
            or self.choice_scale > MAX_SIGMA
            or self.choices > MOST_CHOICES * self.units
        ):
            raise PlanError(
                f"A local model makes {self.choices} choices with a scale of {self.choice_scale:g}, which must both be above 0 "
                f"or both 0, and measures what it chooses in three quarters of {self.units} units, one or more each."
            )
        if self.units and self.unit_sigma < MIN_UNIT_SIGMA:
            raise PlanError(
                f"A unit of measurement needs noise of at least {MIN_UNIT_SIGMA}, not {self.unit_sigma}."
            )

    def to_json(self) -> Fields:
        """The fields; without fine marginals or choices, as if there were no noise of these."""
        content: Fields = to_json(self)
        absent = {"fine_sigma"} if not self.fine_sigma else set[str]()
        absent |= {"choices", "choice_scale"} if not self.choices else set()
        return {name: value for name, value in content.items() if name not in absent}

    def contrasted(self, shape: Sequence[int]) -> Ints:
        """Axes along which a marginal is released as contrasts.

        Args:
            shape: number of measured values of each attribute.
        """
        return tuple(
            axis
            for axis, count in enumerate(shape)
            if count == 2 and self.contrasts and len(shape) > 1
        )


def score_sensitivity(person: int) -> int:
    """Largest change of an R-score by a person with so many records, in steps of its grid."""
    return SCORE_SENSITIVITY + 2 * SCORE_GRID * (person - 1)


def local_entries(
    name: str, attributes: int, fine: int, local: LocalPlan, person: int = 1
) -> list[LedgerEntry]:
    """The events of one party's local model.

    A person moves a marginal by at most its number of records in Euclidean length, if all of them
    are in one cell. It moves an R-score by at most that many times as much as one record does, and
    the score is rounded once. It moves the score of a choice by at most its number of records.

    Args:
        name: the party's name.
        attributes: number of its attributes that vary.
        fine: number of these that have finer cells.
        local: its parameters.
        person: largest number of records of a person.
    """
    if not attributes:
        return []
    # What is not measured has no noise, and larger marginals no units.
    pairs = attributes * (attributes - 1) // 2 * bool(local.score_sigma)
    fine *= bool(local.fine_sigma)
    # By kind: how many values are measured, in words, their noise, and how far a person moves them.
    measured = (
        (Kind.ONE_WAY_MARGINALS, attributes, "{} one-way marginal", local.one_way_sigma, person),
        (Kind.R_SCORES, pairs, "{} R-score", local.score_sigma, score_sensitivity(person)),
        (
            Kind.LARGER_MARGINALS,
            local.units,
            "larger marginals, measured in {:,} unit",
            local.unit_sigma,
            person,
        ),
        (Kind.FINE_MARGINALS, fine, "{} fine marginal", local.fine_sigma, person),
    )
    out = [
        LedgerEntry(
            GaussianEvent(sigma, moved, count),
            name,
            what.format(count) + "s" * (count != 1),
            f"discrete Gaussian, sigma {sigma / (SCORE_GRID if kind is Kind.R_SCORES else 1):.1f}"
            + " a unit" * (kind is Kind.LARGER_MARGINALS),
            kind=kind,
        )
        for kind, count, what, sigma, moved in measured
        if count
    ]
    if local.choices:
        chosen = LedgerEntry(
            ChoiceEvent(local.choice_scale, person, local.choices),
            name,
            f"{local.choices} choice{'s' * (local.choices != 1)} of a pair of attributes",
            f"exponential mechanism, scale {local.choice_scale:.1f}",
            kind=Kind.CHOICES,
        )
        out.insert(1, chosen)
    return out

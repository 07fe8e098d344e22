"""What the domains say about cells of marginals: which are apart, and which contradict them."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..arrays import Texts
from ..message import Message
from ..model.local_marginal import LocalMarginal
from ..model.markov_random_field import MarkovRandomField
from ..model.measurement import Measurement, bin_of_value, bin_table, contrasted
from ..model.trend import BEYOND, Cut, number_of_bins
from ..plan.binning import finer_bins, halves, missing_alone
from ..plan.impossible import Combination
from ..plan.plan import Plan
from ..plan.schema import Schema

# A structural zero is reported as contradicted if more than this share of the records has it, by so
# many standard errors.
DOUBTFUL = 0.01


def cuts(
    plan: Plan, field: MarkovRandomField, measurements: Sequence[Measurement]
) -> dict[int, Cut]:
    """How attributes are cut where pairs are read as trends; empty if the plan halves none.

    Args:
        plan: the plan.
        field: a model of the one-way marginals.
        measurements: of halved attributes, in the parties' halves.
    """
    out: dict[int, Cut] = {}
    if not plan.halved:
        return out
    in_halves = {
        a: bins
        for m in measurements
        if len(m.attributes) > 1
        for a, bins in zip(m.attributes, m.bins, strict=True)
        if a in plan.halved and bins is not None
    }
    for a, attribute in enumerate(plan.schema.attributes):
        counts, bins = field.marginal((a,)), np.arange(plan.schema.sizes[a])
        if a in in_halves:
            bins = finer_bins(counts, in_halves[a], attribute.ordered, attribute.missing)
            # More bins than two have no trend without an order.
            alone = missing_alone(bins, attribute.missing)
            if not attribute.ordered and number_of_bins(bins) > 2 + alone:
                continue
        elif not (attribute.ordered or len(bins) == 2):
            continue
        out[a] = Cut(counts, bins, a in in_halves, missing_alone(bins, attribute.missing))
    return out


def of_halves(
    schema: Schema, field: MarkovRandomField, crossing: Sequence[Measurement]
) -> list[Measurement]:
    """The contrasts of halves of measured pairs, where they are beyond noise.

    A fit ends before it follows the noise of many cells, and loses what they tell together. It follows
    the one number that halves tell closely.

    Args:
        schema: whose ordered attributes, and those of two values, have halves.
        field: a model of the one-way marginals.
        crossing: measurements across parties.
    """
    out, marginal = [], functools.cache(lambda a: field.marginal((a,)))
    for m in crossing:
        mine = [schema.attributes[a] for a in m.attributes]
        known = len(mine) == 2 and m.counts.size > 4 and not (m.trend or m.unknown)
        if not (known and all(one.ordered or one.size == 2 for one in mine)):
            continue
        cut, margins = [], []
        for a, bins, count in zip(m.attributes, m.bins, m.counts.shape, strict=True):
            of_bins = bin_table(marginal(a), (bins,), (count,))
            cut.append(halves(of_bins, True, schema.attributes[a].missing))
            margins.append(bin_table(of_bins, cut[-1:], (2,)))
        counts = bin_table(m.counts, cut, (2, 2))
        error = math.sqrt(float(np.square(m.errors).sum())) / 4
        alone = np.outer(*margins) / field.total
        if abs(contrasted(counts - alone, (0, 1))[0, 0]) > BEYOND * error:
            of_values = tuple(c if b is None else c[b] for c, b in zip(cut, m.bins, strict=True))
            # Four cells are one number, whose error is half of each cell's.
            halved = replace(m, bins=of_values, counts=contrasted(counts, (0, 1)), sigma=2 * error)
            out.append(replace(halved, contrasts=(0, 1), completed=False, asked=True))
    return out


def apart(schema: Schema) -> tuple[list[Combination], list[Combination]]:
    """Split the structural zeros in those of one party's attributes and those across parties."""
    inside: list[Combination] = []
    across: list[Combination] = []
    for combination in schema.combinations:
        (inside if schema.at_one_party(place for place, _ in combination) else across).append(
            combination
        )
    return inside, across


def measurement(plan: Plan, message: Message, marginal: LocalMarginal) -> Measurement:
    """The measurement of a party's local marginal."""
    names = " × ".join(plan.schema.names[a] for a in marginal.attributes)
    return marginal.measurement(f"{names}, by party {plan.party_names[message.party]}")


def contradicted(schema: Schema, crossing: Sequence[Measurement], total: float) -> Texts:
    """Warn of structural zeros across parties, which no party can check, if many records seem to
    contradict them.

    Args:
        schema: the schema with its structural zeros.
        crossing: measurements that span parties. Only bins that lie wholly in a structural zero
            count.
        total: record count.

    Returns:
        One warning per contradicted structural zero.
    """
    worst: dict[int, tuple[float, float]] = {}
    for number, *more in schema.stated.values():
        combinations = [dict(schema.combinations[i]) for i in (number, *more)]
        for m in crossing:
            if m.unknown or not combinations[0].keys() <= set(m.attributes):
                continue
            marked = np.zeros(m.counts.shape, bool)
            for ruled_out in combinations:
                marked[_cells(schema, m, ruled_out)] = True
            records = float(m.counts[marked].sum())
            error = float(np.sqrt(np.square(m.errors[marked]).sum()))
            if (
                records > max(DOUBT_ERRORS * error, DOUBTFUL * total)
                and records > worst.get(number, (0.0, 0.0))[0]
            ):
                worst[number] = records, error
    return tuple(
        f"About {records:,.0f} records (standard error {error:,.0f}) seem to contradict the schema's "
        f"{schema.named([number], start=False)}. No synthetic row has it; check whether it is true."
        for number, (records, error) in worst.items()
    )


def _cells(schema: Schema, m: Measurement, ruled_out: Mapping[int, Sequence[int]]) -> Any:
    """The cells of a measurement that lie wholly in a structural zero, as an index."""
    cells = []
    for attribute, bins, count in zip(m.attributes, m.bins, m.counts.shape, strict=True):
        size = schema.sizes[attribute]
        others = np.setdiff1d(np.arange(size), ruled_out.get(attribute, range(size)))
        bin_of_code = bin_of_value(bins, size)
        cells.append(
            np.setdiff1d(np.unique(bin_of_code), bin_of_code[others])
            if attribute in ruled_out
            else np.arange(count)
        )
    return np.ix_(*cells)


DOUBT_ERRORS = 6.0

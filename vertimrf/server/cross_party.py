"""Cross-party marginals from the parties' messages, whatever they were encoded with (VertiMRF, CarEst)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..errors import MessageError, PlanError
from ..message import Message
from ..model.markov_random_field import MarkovRandomField
from ..model.measurement import Measurement
from ..plan.plan import Plan
from ..plan.schedule import Group, crossing
from ..plan.schema import Schema
from ..published.randomised_response import count_marginal
from ..published.shared_keys_estimate import published_estimates
from ..sketches.intersections import Side, estimate_pair, predicted_errors
from ..sketches.parameters import ResponsePlan, SharedKeyPlan, SketchPlan

__all__ = [
    "Prediction",
    "bin_table",
    "cell_variance",
    "cross_party_marginals",
    "predicted_marginals",
    "scheduled_marginals",
]

Floats = npt.NDArray[np.float64]
BinMaps = tuple[npt.NDArray[np.int64], ...]


def cross_party_marginals(
    plan: Plan,
    messages: Sequence[Message],
    initial: MarkovRandomField,
    total: float,
    wanted: Sequence[tuple[int, ...]] | None = None,
    num_threads: int | None = None,
) -> list[Measurement]:
    """Measurements of marginals that span parties.

    Args:
        plan: the agreed plan.
        messages: one per party, in plan order.
        initial: a model of the parties' own marginals, for the sizes of the sketched sets.
        total: estimated number of records.
        wanted: attributes of each marginal, strictly increasing. Default: all that the plan schedules; without a schedule
            (shared keys, randomised responses) all cross-party pairs, and the parties' own where they publish no local model.
        num_threads: threads for the kernels; None leaves the setting as it is.

    Raises:
        PlanError: a marginal of one party's attributes, or one that the plan does not schedule.
        MessageError: messages that do not fit together.
    """
    for attributes in wanted or ():
        _check_wanted(plan, attributes)
    if plan.sketch is None:
        return []
    order = [group for party in range(len(messages)) for group in plan.party_groups(party)]
    bins = dict(zip(order, [maps for message in messages for maps in message.bins], strict=True))
    if isinstance(plan.sketch, SketchPlan):
        cuts = [bins[g] for g in range(len(plan.groups))]
        sketches = [message.sketches for message in messages]
        pairs = None if wanted is None else [_scheduled(plan, attributes) for attributes in wanted]
        return scheduled_marginals(
            plan.schema, plan.groups, cuts, plan.sketch, sketches, messages, initial, total, pairs, num_threads
        )
    # Here every attribute is a group of its own, in schema order within each party.
    tables = dict(zip(order, [table for message in messages for table in message.sketches], strict=True))
    bins_of = {group: maps[0] for group, maps in bins.items()}
    if wanted is None:
        wanted = crossing(plan.schema, 2)
        if all(local.units == 0 for local in plan.local):
            wanted = [(a, b) for a in range(len(order)) for b in range(a + 1, len(order))]
    if isinstance(plan.sketch, SharedKeyPlan):
        held = sorted(order)
        maps, levels = [bins_of[a] for a in held], [tables[a] for a in held]
        return published_estimates(plan.sketch, held, maps, levels, wanted, total, num_threads=num_threads)
    return _responses(plan.sketch, tables, bins_of, wanted)


def scheduled_marginals(
    schema: Schema,
    groups: Sequence[Group],
    bins: Sequence[BinMaps],
    sketch: SketchPlan,
    sketches: Sequence[Sequence[npt.NDArray[np.uint8]]],
    messages: Sequence[Message],
    initial: MarkovRandomField,
    total: float,
    pairs: Sequence[int] | None = None,
    num_threads: int | None = None,
) -> list[Measurement]:
    """Likelihood CarEst of scheduled pairs of groups.

    Args:
        schema: attributes and parties.
        groups: what was published; ``bins``: per group and attribute, the map code -> bin.
        sketch: the key schedule over the groups.
        sketches: per party, its tables in schedule order [each shape=(values, keys), uint8].
        messages: the parties' local marginals, for the standard errors of set sizes.
        initial, total, num_threads: as in :func:`cross_party_marginals`.
        pairs: which of the schedule's pairs, by index; default all.
    """
    owner = [schema.party_of(group.attributes[0]) for group in groups]
    sizes = [bin_table(initial.marginal(g.attributes), maps, g.bins).ravel() for g, maps in zip(groups, bins, strict=True)]
    errors = [np.minimum(_set_errors(schema, messages, g, maps), total) for g, maps in zip(groups, bins, strict=True)]
    waiting = [iter(tables) for tables in sketches]
    out = []
    chosen = set(range(len(sketch.pairs)) if pairs is None else pairs)
    for number, pair in enumerate(sketch.pairs):
        left, right = (
            Side(groups[g].attributes, bins[g], groups[g].bins, sizes[g], next(waiting[owner[g]]), errors[g])
            for g in (pair.left, pair.right)
        )
        if number in chosen:
            out.append(estimate_pair(sketch, left, right, total, num_threads))
    return out


@dataclass(frozen=True)
class Prediction:
    """What a scheduled marginal will be worth.

    Attributes:
        attributes: as scheduled, left side and right side.
        cells: number of cells.
        average: average count of a cell, records.
        error: predicted root mean square error of a cell, records.
    """

    attributes: tuple[tuple[int, ...], tuple[int, ...]]
    cells: int
    average: float
    error: float


def predicted_marginals(plan: Plan) -> list[Prediction]:
    """Predicted errors of a plan's scheduled marginals, from public figures alone: bins equally full, parties independent.

    Args:
        plan: a plan with the paired encoder; empty for others.
    """
    if not isinstance(plan.sketch, SketchPlan):
        return []
    out = []
    n = float(plan.expected_records)
    for pair in plan.sketch.pairs:
        left, right = plan.groups[pair.left], plan.groups[pair.right]
        error = predicted_errors(plan.sketch, pair.keys, np.array([n / left.size]), np.array([n / right.size]), n)
        cells = left.size * right.size
        out.append(Prediction((left.attributes, right.attributes), cells, n / cells, float(error[0, 0])))
    return out


def bin_table(table: Floats, maps: Sequence[npt.NDArray[np.int64]], shape: Sequence[int]) -> Floats:
    """Counts of bins from those of values: sums over the values of each bin, axis by axis [shape=shape]."""
    out = np.zeros(tuple(shape))
    np.add.at(out, np.ix_(*maps), table)
    return out


def cell_variance(sizes: Sequence[int], messages: Sequence[Message], attributes: Sequence[int]) -> float:
    """Variance of one cell's count in a party's marginal, from all released marginals that contain its attributes.

    Marginals add up by their inverse variances; a fitted model is at least about as precise as that. Infinite where no
    marginal contains them: the model then extrapolates, with an error that nobody knows.
    """
    cells = math.prod(sizes[a] for a in attributes)
    precision = 0.0
    for message in messages:
        for marginal in message.marginals:
            if set(attributes) <= set(marginal.attributes):
                precision += cells / (marginal.error**2 * marginal.counts.size)
    return 1.0 / precision if precision else math.inf


def _responses(
    sketch: ResponsePlan,
    tables: dict[int, npt.NDArray[np.uint8]],
    bins: dict[int, npt.NDArray[np.int64]],
    wanted: Sequence[tuple[int, ...]],
) -> list[Measurement]:
    if len({table.size for table in tables.values()}) > 1:
        raise MessageError("The parties sent different numbers of rows; they must encode the same records.")
    out = []
    for attributes in wanted:
        values, errors = count_marginal(sketch, attributes, [tables[a] for a in attributes])
        maps = tuple(bins[a] for a in attributes)
        out.append(Measurement(tuple(attributes), maps, values, errors, "randomised responses"))
    return out


def _set_errors(schema: Schema, messages: Sequence[Message], group: Group, maps: BinMaps) -> Floats:
    """Standard errors of the sizes of a group's sets [shape=(values,)]."""
    variance = cell_variance(schema.sizes, messages, group.attributes)
    merged = bin_table(np.ones([len(mapping) for mapping in maps]), maps, group.bins)
    out: Floats = np.sqrt(variance * merged).ravel()
    return out


def _check_wanted(plan: Plan, attributes: Sequence[int]) -> None:
    names = ", ".join(plan.schema.names[a] for a in attributes)
    if len({plan.schema.party_of(a) for a in attributes}) < 2:
        raise PlanError(
            f"The marginal of {names} lies at one party: its local model answers it, not sketches; ask the initial model."
        )


def _scheduled(plan: Plan, attributes: Sequence[int]) -> int:
    """Which scheduled pair measures a marginal."""
    assert isinstance(plan.sketch, SketchPlan)
    for number, pair in enumerate(plan.sketch.pairs):
        if sorted(plan.groups[pair.left].attributes + plan.groups[pair.right].attributes) == sorted(attributes):
            return number
    names = ", ".join(plan.schema.names[a] for a in attributes)
    raise PlanError(
        f"No keys are scheduled for the marginal of {names}: take it from the fitted model, or plan with this marginal in mind."
    )

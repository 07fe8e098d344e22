"""The server: messages in, a model of all attributes and synthetic rows out (VertiMRF, phases 3 to 6). It never sees a table."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import graph, model
from .encode import SharedKeyPlan
from .errors import MessageError
from .estimate import Side, estimate_pair, published_estimate, r_score
from .measurement import Measurement
from .message import Message
from .plan import Plan
from .privacy.ledger import Ledger
from .respond import ResponsePlan, count_pair
from .sample import sample
from .schema import Schema

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Result", "Server"]

Progress = Callable[[str], None]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Result:
    """What a run yields.

    Attributes:
        plan: the plan it followed.
        codes: synthetic rows [shape=(attributes, rows), uint16].
        model: the global Markov random field.
        ledger: every event and the composed (epsilon, delta).
        crossing: attributes of the cross-party marginals that the model was fitted to, strongest first.
        seconds: wall time per phase.
        warnings: sentences about what the run could not do.
        seed: of the sampling; None means fresh entropy.
    """

    plan: Plan
    codes: npt.NDArray[np.uint16]
    model: model.MarkovRandomField
    ledger: Ledger
    crossing: tuple[tuple[int, ...], ...]
    seconds: dict[str, float]
    warnings: tuple[str, ...]
    seed: int | None

    @property
    def table(self) -> pa.Table:
        """The synthetic rows in the schema's original values."""
        from .table import decode

        return decode(self.codes, self.plan.schema.attributes, np.random.default_rng(self.seed))

    def to_json(self) -> dict[str, Any]:
        """Privacy spent, timings and model size, JSON-able."""
        names = self.plan.schema.names
        ledger = self.ledger.to_json()
        return {
            "epsilon": self.ledger.epsilon,
            "delta": self.ledger.delta,
            "private": self.ledger.private,
            "reasons": list(self.ledger.reasons),
            "ledger": ledger["entries"] if isinstance(ledger, dict) and "entries" in ledger else ledger,
            "seconds": {phase: round(seconds, 4) for phase, seconds in self.seconds.items()},
            "rows": int(self.codes.shape[1]),
            "cliques": [[names[i] for i in clique] for clique in self.model.tree.cliques],
            "junction_tree_cells": int(self.model.tree.cells),
            "cross_party_marginals": [[names[a] for a in attributes] for attributes in self.crossing],
            "warnings": list(self.warnings),
        }


class Server:
    """Assembles a synthetic table from the parties' messages.

    Args:
        plan: the agreed plan.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def run(
        self,
        messages: Sequence[Message],
        *,
        rows: int | None = None,
        seed: int | None = None,
        progress: Progress | None = None,
        num_threads: int | None = None,
    ) -> Result:
        """GraphCom, InitMRF, OptMRF and sampling.

        Args:
            messages: one per party, in any order, validated on loading.
            rows: synthetic rows; default the noisy record count.
            seed: of the sampling of synthetic rows.
            progress: told the name of each phase as it starts.
            num_threads: threads for the kernels; None leaves the setting as it is.

        Raises:
            MessageError: a party's message is missing, doubled, or of another plan.
        """
        plan = self._plan
        say = progress or (lambda _: None)
        seconds: dict[str, float] = {}
        ordered = self._in_order(messages)
        sizes = plan.schema.sizes

        say("initial model")
        start = time.perf_counter()
        local = [_as_measurement(m, plan.party_names[msg.party]) for msg in ordered for m in msg.marginals]
        total = estimate_total(plan, ordered)
        initial = model.fit(sizes, local, total, num_threads=num_threads)
        seconds["InitMRF"] = time.perf_counter() - start

        say("cross-party marginals")
        start = time.perf_counter()
        crossing = self._estimate(ordered, initial, total, num_threads)
        seconds["CarEst"] = time.perf_counter() - start

        say("global graph")
        start = time.perf_counter()
        kept, tree, warnings = combine_graphs(plan, local, crossing, initial, total)
        seconds["GraphCom"] = time.perf_counter() - start

        say("global model")
        start = time.perf_counter()
        # A tau below the local clique limit may leave a local marginal without a clique.
        used = [m for m in (*local, *kept) if tree.covering(m.attributes) >= 0]
        fitted = model.fit(sizes, used, total, tree=tree, num_threads=num_threads) if kept else initial
        seconds["OptMRF"] = time.perf_counter() - start

        say("sampling")
        start = time.perf_counter()
        wanted = max(round(total), 1) if rows is None else rows
        codes = sample(fitted, wanted, np.random.default_rng(seed))
        seconds["sampling"] = time.perf_counter() - start

        ledger = plan.ledger()
        if not all(message.private for message in ordered):
            ledger = ledger.not_private("a party fixed its noise")
        return Result(plan, codes, fitted, ledger, tuple(m.attributes for m in kept), seconds, warnings, seed)

    def _in_order(self, messages: Sequence[Message]) -> list[Message]:
        names = self._plan.party_names
        by_party: dict[int, Message] = {}
        for message in messages:
            if message.plan_digest != self._plan.digest():
                raise MessageError(f"The message of party {message.party} was made for another plan.")
            if message.party in by_party:
                raise MessageError(f"There are two messages of party {names[message.party]!r}; give one per party.")
            by_party[message.party] = message
        missing = [name for i, name in enumerate(names) if i not in by_party]
        if missing:
            raise MessageError(f"The message of party {', '.join(missing)} is missing; the plan needs one per party.")
        return [by_party[i] for i in range(len(names))]

    def _estimate(
        self, messages: list[Message], initial: model.MarkovRandomField, total: float, num_threads: int | None
    ) -> list[Measurement]:
        plan = self._plan
        if plan.sketch is None:
            return []
        groups = [plan.party_groups(i) for i in range(len(messages))]
        owner = {group: i for i, mine in enumerate(groups) for group in mine}
        bins = {g: m for mine, message in zip(groups, messages, strict=True) for g, m in zip(mine, message.bins, strict=True)}
        out: list[Measurement] = []
        if isinstance(plan.sketch, SharedKeyPlan | ResponsePlan):
            tables = [table for message in messages for table in message.sketches]
            if isinstance(plan.sketch, ResponsePlan) and len({table.size for table in tables}) > 1:
                raise MessageError("The parties sent different numbers of rows; they must encode the same records.")
            order = [group for mine in groups for group in mine]
            # These groups are the attributes themselves.
            by_attribute = {
                g: Side((g,), bins[g], plan.groups[g].bins, np.empty(0), table) for g, table in zip(order, tables, strict=True)
            }
            for a, b in itertools.combinations(range(len(plan.groups)), 2):
                left, right = by_attribute[a], by_attribute[b]
                if owner[a] == owner[b]:
                    continue
                if isinstance(plan.sketch, SharedKeyPlan):
                    out.append(published_estimate(plan.sketch, left, right, total))
                else:
                    values, spread = count_pair(plan.sketch, a, b, (left.levels, right.levels))
                    out.append(Measurement((a, b), left.bins + right.bins, values, spread, "randomised responses"))
            return out
        waiting = [iter(message.sketches) for message in messages]
        sizes = {
            g: bin_table(initial.marginal(group.attributes), bins[g], group.bins).ravel() for g, group in enumerate(plan.groups)
        }
        errors = {g: np.minimum(self._set_errors(messages, g, bins[g]), total) for g in sizes}
        for pair in plan.sketch.pairs:
            sides = [
                Side(plan.groups[g].attributes, bins[g], plan.groups[g].bins, sizes[g], next(waiting[owner[g]]), errors[g])
                for g in (pair.left, pair.right)
            ]
            out.append(estimate_pair(plan.sketch, sides[0], sides[1], total, num_threads))
        return out

    def _set_errors(self, messages: Sequence[Message], group: int, maps: tuple[npt.NDArray[np.int64], ...]) -> Floats:
        """Standard errors of the sizes of a group's sets [shape=(values,)]."""
        attributes, bins = self._plan.groups[group].attributes, self._plan.groups[group].bins
        variance = cell_variance(self._plan.schema.sizes, messages, attributes)
        merged = bin_table(np.ones([len(mapping) for mapping in maps]), maps, bins)
        out: Floats = np.sqrt(variance * merged).ravel()
        return out


def bin_table(table: Floats, maps: Sequence[npt.NDArray[np.int64]], shape: Sequence[int]) -> Floats:
    """Counts of bins from those of values: sums over the values of each bin, axis by axis [shape=shape]."""
    out = np.zeros(tuple(shape))
    np.add.at(out, np.ix_(*maps), table)
    return out


def _as_measurement(marginal: Any, party: str) -> Measurement:
    nothing = (None,) * len(marginal.attributes)
    return Measurement(marginal.attributes, nothing, marginal.counts.astype(np.float64), marginal.sigma, f"party {party}")


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
                precision += cells / (marginal.sigma**2 * marginal.counts.size)
    return 1.0 / precision if precision else math.inf


def estimate_total(plan: Plan, messages: Sequence[Message]) -> float:
    """The record count, from the noisy count and the sums of all local marginals, weighted by their variances; at least 1."""
    weights = []
    values = []
    for message in messages:
        if message.count is not None:
            weights.append(plan.count_sigma**-2)
            values.append(float(message.count))
        for marginal in message.marginals:
            weights.append(1.0 / (marginal.sigma**2 * marginal.counts.size))
            values.append(float(marginal.counts.sum()))
    return max(float(np.average(values, weights=weights)), 1.0)


def combine_graphs(
    plan: Plan,
    local: Sequence[Measurement],
    crossing: Sequence[Measurement],
    initial: model.MarkovRandomField,
    total: float,
) -> tuple[tuple[Measurement, ...], graph.JunctionTree, tuple[str, ...]]:
    """GraphCom: join the local graphs by the strongest cross-party marginals while the largest clique stays within tau.

    Returns:
        The cross-party measurements that found room, strongest first; the junction tree; warnings.
    """
    budget = graph.CliqueBudget(plan.schema.sizes, plan.tau)
    for measurement in local:
        budget.try_clique(measurement.attributes)
    scores = [r_score(m, _independent(plan.schema, m, initial, total)) for m in crossing]
    kept = []
    for i in sorted(range(len(crossing)), key=lambda i: -scores[i]):
        if scores[i] > 0 and budget.try_clique(crossing[i].attributes):
            kept.append(crossing[i])
    warnings = []
    if crossing and not kept:
        warnings.append(
            f"No cross-party edge fits tau = {plan.tau} cells or stands above the noise: the parties' attributes are "
            "synthesised as independent; raise tau or epsilon."
        )
    return tuple(kept), budget.tree(), tuple(warnings)


def _independent(schema: Schema, measurement: Measurement, initial: model.MarkovRandomField, total: float) -> Floats:
    """What a cross-party marginal would count if the parties' attributes were independent, in its bins."""
    out = np.array(max(total, 1.0))
    names: tuple[int, ...] = ()
    axes = dict(zip(measurement.attributes, zip(measurement.bins, measurement.values.shape, strict=True), strict=True))
    for party in dict.fromkeys(schema.party_of(a) for a in measurement.attributes):
        own = tuple(a for a in measurement.attributes if schema.party_of(a) == party)
        maps = [_or_identity(axes[a][0], schema.sizes[a]) for a in own]
        out = np.multiply.outer(out, bin_table(initial.marginal(own), maps, [axes[a][1] for a in own]) / max(total, 1.0))
        names = names + own
    return out.transpose([names.index(a) for a in measurement.attributes])


def _or_identity(bins: npt.NDArray[np.int64] | None, size: int) -> npt.NDArray[np.int64]:
    return np.arange(size) if bins is None else bins

"""The server: messages in, a model of all attributes and synthetic rows out (VertiMRF, phases 3 to 6). It never sees a table."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .. import __version__
from ..clock import Clock
from ..errors import MessageError, ModelError
from ..kernels.jit import threads
from ..message import RECORDS_OVER_EXPECTED, LocalMarginal, Message
from ..model.beyond import fit_beyond
from ..model.fit import FitOptions, fit
from ..model.markov_random_field import MarkovRandomField
from ..model.measurement import Measurement
from ..model.sample import sample
from ..model.structural_zeros import ruling_out
from ..model.value_classes import told_apart
from ..options import RunOptions
from ..plan.defaults import OUTER
from ..plan.impossible import Combination
from ..plan.merging import kept_apart
from ..plan.plan import Plan
from ..plan.schema import Schema
from ..privacy.ledger import Ledger
from ..progress import fitting
from ..sketches.parameters import CountSketchPlan, SketchPlan
from .cross_party import Holding, cross_party_marginals
from .found import Found, released_by
from .global_graph import combine_graphs
from .parts import PartModel, Parts, of_common_people, sample_parts
from .population import Overlap, estimate_total, find_overlap, holdings, same_people, same_sizes
from .shared_columns import Disagreement, disagreements, local_tree

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Estimates", "Result", "Server"]

# An impossible combination that so many of the records seem to have, and by so many standard errors, is told.
DOUBTFUL = 0.01
DOUBT_ERRORS = 6.0
# How far above what is expected at most a party's records must lie to be none, in standard errors.
HOLDING_ERRORS = 10.0


@dataclass(frozen=True, eq=False)
class Result:
    """What a run yields.

    Attributes:
        plan: the plan it followed.
        codes: synthetic rows [shape=(attributes, rows), uint16].
        model: the global Markov random field; of the people that all parties hold.
        initial: what the parties' own marginals tell without any sketches, as :class:`Estimates` has it.
        ledger: every event and the composed (epsilon, delta).
        crossing: attributes of the cross-party marginals that the model was fitted to, within its cliques or beyond them.
        found: what the messages told, for a report.
        disagreements: how far parties contradict each other on the columns that several hold.
        seconds: wall time per phase.
        warnings: sentences about what the run could not do.
        seed: of the sampling; None means fresh entropy.
        overlap: how the parties' people overlap; None where all hold the same.
        others: in a result of everybody that any party holds, models of those that not all hold; else none.
        held: then by whom each row is held: the number of one of ``others``, or as many as they are for all parties
            [shape=(rows,), uint16]; else None.
    """

    plan: Plan
    codes: npt.NDArray[np.uint16]
    model: MarkovRandomField
    initial: MarkovRandomField
    ledger: Ledger
    crossing: tuple[tuple[int, ...], ...]
    found: Found
    disagreements: tuple[Disagreement, ...]
    seconds: dict[str, float]
    warnings: tuple[str, ...]
    seed: int | None
    overlap: Overlap | None = None
    others: tuple[PartModel, ...] = ()
    held: npt.NDArray[np.uint16] | None = None

    @property
    def table(self) -> pa.Table:
        """The synthetic rows in the schema's original values; null where no party holds one, and then with who does."""
        import pyarrow as pa

        return pa.concat_tables(self.pieces())

    def pieces(self) -> Iterator[pa.Table]:
        """The rows of :attr:`table`, piece by piece: values take several times the memory of codes."""
        from .rows import decode_pieces, with_holders

        schema, held, rng = self.plan.schema, self.held, np.random.default_rng(self.seed)
        if held is None:
            return decode_pieces(self.codes, schema.attributes, rng)
        holders = [*(part.parties for part in self.others), self.plan.party_names]
        return decode_pieces(
            self.codes,
            schema.attributes,
            rng,
            lambda piece, rows: with_holders(piece, schema, holders, held[rows]),
        )

    def to_json(self) -> dict[str, Any]:
        """What was run, privacy spent, timings, model size, and what the messages told, JSON-able."""
        names = self.plan.schema.names
        return {
            "kind": "report",
            "version": __version__,
            "plan": self.plan.fingerprint,
            "encoder": self.plan.encoder,
            "expected_records": self.plan.expected_records,
            "parties": {party: list(held) for party, held in self.plan.schema.parties},
            "epsilon": self.ledger.epsilon,
            "delta": self.ledger.delta,
            **self.ledger.colluding_json(),
            "private": self.ledger.private,
            "standing": self.ledger.standing.to_json(),
            "ledger": self.ledger.to_json()["entries"],
            "seconds": {phase: round(seconds, 4) for phase, seconds in self.seconds.items()},
            "rows": int(self.codes.shape[1]),
            "cliques": [[names[i] for i in clique] for clique in self.model.tree.cliques],
            "junction_tree_cells": int(self.model.tree.cells),
            "cross_party_marginals": [
                [names[a] for a in attributes] for attributes in self.crossing
            ],
            "shared_columns": [found.to_json(self.plan) for found in self.disagreements],
            "warnings": list(self.warnings),
            **(
                {}
                if self.overlap is None
                else {"population": self.plan.population, "overlap": self.overlap.to_json()}
            ),
            "found": self.found.to_json(self.plan, self.model),
        }


@dataclass(frozen=True, eq=False)
class Estimates:
    """What the parties' messages tell the server; made by :meth:`Server.read`.

    Attributes:
        plan_digest: the plan that the messages follow [32 bytes].
        messages: one per party, in plan order.
        local: the parties' own marginals.
        crossing: measurements that span parties.
        initial: the model of the local marginals alone.
        total: estimated record count.
        disagreements: how far parties contradict each other on the columns that several hold.
        warnings: sentences about parties whose records do not match.
        seconds: wall time per phase.
        parts: what is known of people that parties hold or lack, where they hold different ones; None where they do not. All else
            here is then of those that all parties hold.
    """

    plan_digest: bytes
    messages: tuple[Message, ...]
    local: tuple[Measurement, ...]
    crossing: tuple[Measurement, ...]
    initial: MarkovRandomField
    total: float
    disagreements: tuple[Disagreement, ...]
    warnings: tuple[str, ...]
    seconds: dict[str, float]
    parts: Parts | None = None


class Server:
    """Assembles a synthetic table from the parties' messages.

    Args:
        plan: the agreed plan.
        options: rows, seed, threads and so on.
    """

    def __init__(self, plan: Plan, options: RunOptions | None = None) -> None:
        self._plan = plan
        self._options = options if options is not None else RunOptions()

    def read(self, messages: Sequence[Message]) -> Estimates:
        """InitMRF and CarEst: what the messages tell.

        Args:
            messages: one per party, in any order, validated on loading.

        Raises:
            MessageError: a party's message is missing, doubled, or of another plan; or two parties have nobody in common, as far
                as can be told; or they hold different people, and nothing tells how many they have in common.
        """
        plan = self._plan
        ordered = self._in_order(messages)
        clock = Clock()
        with threads(self._options.num_threads):
            with clock("InitMRF"):
                local = tuple(
                    measurement(plan, message, m) for message in ordered for m in message.marginals
                )
                held = holdings(plan, ordered)
                total = estimate_total(plan, ordered)
                _check_holdings(plan, held)
            if same_sizes(held):
                initial = self._initial(local, total, clock)
                self._options.progress.step("cross-party marginals")
                with clock("CarEst"):
                    crossing = cross_party_marginals(plan, ordered, initial, total, self._options)
                if same_people(held, crossing.matches):
                    found = disagreements(plan, ordered, total)
                    warnings = tuple(each.sentence(plan) for each in found if each.significant)
                    return Estimates(
                        plan.digest(),
                        tuple(ordered),
                        local,
                        crossing.measurements,
                        initial,
                        total,
                        found,
                        warnings,
                        clock.seconds,
                    )
            return self._of_different_people(ordered, local, held, clock)

    def _initial(
        self, local: Sequence[Measurement], total: float, clock: Clock
    ) -> MarkovRandomField:
        self._options.progress.step("initial model")
        schema = self._plan.schema
        with clock("InitMRF"):
            zeros = ruling_out(schema.sizes, apart(schema)[0])
            classes = told_apart(local, kept_apart(schema))
            tree = local_tree(self._plan, local, zeros, classes)
            known = [m for m in local if tree.covering(m.attributes) >= 0]
            told = fitting(self._options.progress)
            return fit(
                schema.sizes,
                known,
                total,
                tree=tree,
                zeros=zeros,
                classes=classes,
                options=FitOptions(progress=told),
            )

    def _of_different_people(
        self,
        messages: Sequence[Message],
        local: tuple[Measurement, ...],
        held: tuple[Holding, ...],
        clock: Clock,
    ) -> Estimates:
        """What messages tell of parties that hold different people."""
        plan, options = self._plan, self._options
        if plan.sketch is None or not plan.sketch.tells_matches:
            counts = ", ".join(
                f"{n} {h.records:,.0f}" for n, h in zip(plan.party_names, held, strict=True)
            )
            raise MessageError(
                f"The parties hold different numbers of records ({counts}), and this plan has nothing that tells how many they "
                "have in common: keep the same people at every party, or plan with scheduled pairs or count sketches."
            )
        # Every party's marginals as if it had as many people as all have on average: what it says of a part of them stays.
        total = float(np.mean([own.records for own in held]))
        # What several parties hold counts as the first one's, of whose people its marginals speak.
        by = [message.party for message in messages for _ in message.marginals]
        first = [
            plan.schema.holder(m.attributes) == party for m, party in zip(local, by, strict=True)
        ]
        local = tuple(itertools.compress(local, first))
        owners = itertools.compress(by, first)
        scales = [total / held[party].records for party in owners]
        alike = [
            replace(m, counts=m.counts * s, sigma=m.sigma * s)
            for m, s in zip(local, scales, strict=True)
        ]
        initial = self._initial(alike, total, clock)
        options.progress.step("cross-party marginals")
        with clock("CarEst"):
            crossing = cross_party_marginals(plan, messages, initial, total, options, held)
            overlap = find_overlap(plan.party_names, held, crossing.matches)
            spanning = of_common_people(plan.schema, crossing.measurements)
            parts = Parts.of(plan.schema, overlap, initial, local, spanning, crossing.shared)
            common, across = (
                tuple(parts.measurements(own, parts.all)) for own in (local, spanning)
            )
        initial = self._initial(common, overlap.inner, clock)
        warnings = (overlap.sentence(plan.population),)
        return Estimates(
            plan.digest(),
            tuple(messages),
            common,
            across,
            initial,
            overlap.inner,
            (),
            warnings,
            clock.seconds,
            parts,
        )

    def run(self, estimates: Estimates) -> Result:
        """GraphCom, OptMRF and sampling.

        Args:
            estimates: what :meth:`read` made of the messages.

        Raises:
            MessageError: the messages follow another plan.
            ModelError: many records have what the schema calls impossible, so that no model fits both.
        """
        if estimates.plan_digest != self._plan.digest():
            raise MessageError("The messages were made for another plan.")
        with threads(self._options.num_threads):
            return self._run(estimates)

    def _run(self, estimates: Estimates) -> Result:
        plan, options, parts = self._plan, self._options, estimates.parts
        clock = Clock(estimates.seconds)
        doubts = contradicted(plan.schema, estimates.crossing, estimates.total)
        others: tuple[PartModel, ...] = ()
        try:
            fitted, spanning, unheld = self._fitted(
                estimates.local, estimates.crossing, estimates.initial, estimates.total, clock
            )
            if parts is not None and plan.population == OUTER:
                others = tuple(self._other_part(parts, part, clock) for part in range(parts.all))
        except ModelError as error:
            if not doubts:
                raise
            raise ModelError(
                f"No model fits both the messages and the schema. {' '.join(doubts)}"
            ) from error

        options.progress.step("sampling")
        held_by = None
        with clock("sampling"):
            rng = np.random.default_rng(options.seed)
            if others:
                every = [*others, PartModel(plan.party_names, fitted)]
                codes, held_by = sample_parts(
                    plan.schema, every, options.rows, rng, progress=options.progress.advance
                )
            else:
                rows = max(round(estimates.total), 1) if options.rows is None else options.rows
                codes = sample(fitted, rows, rng, progress=options.progress.advance)

        ledger = plan.ledger()
        if not all(message.private for message in estimates.messages):
            ledger = ledger.not_private(
                "a party fixed its noise, or does not claim what the plan does"
            )
        warnings = (*estimates.warnings, *unheld, *doubts)
        told = Found(released_by(estimates.messages), (*estimates.local, *estimates.crossing))
        return Result(
            plan,
            codes,
            fitted,
            estimates.initial,
            ledger,
            spanning,
            told,
            estimates.disagreements,
            clock.seconds,
            warnings,
            options.seed,
            None if parts is None else parts.overlap,
            others,
            held_by,
        )

    def _fitted(
        self,
        local: Sequence[Measurement],
        crossing: Sequence[Measurement],
        initial: MarkovRandomField,
        total: float,
        clock: Clock,
    ) -> tuple[MarkovRandomField, tuple[tuple[int, ...], ...], tuple[str, ...]]:
        """GraphCom and OptMRF: the model, the cross-party marginals that it was fitted to, and warnings."""
        plan, options = self._plan, self._options
        options.progress.step("global graph")
        with clock("GraphCom"):
            graph = combine_graphs(plan, local, crossing, total, options.progress)

        options.progress.step("global model")
        with clock("OptMRF"):
            used = [m for m in (*local, *graph.kept) if graph.tree.covering(m.attributes) >= 0]
            fitted, beyond = initial, frozenset[tuple[int, ...]]()
            if graph.kept or apart(plan.schema)[1]:
                told = fitting(options.progress)
                zeros = ruling_out(plan.schema.sizes, plan.schema.combinations)
                fitted = fit(
                    plan.schema.sizes,
                    used,
                    total,
                    tree=graph.tree,
                    warm=graph.start,
                    zeros=zeros,
                    classes=graph.classes,
                    options=FitOptions(progress=told),
                )
            # The paper's own encoders are compared as they are.
            if isinstance(plan.sketch, SketchPlan | CountSketchPlan | None):
                fitted, beyond = fit_beyond(
                    fitted, [*local, *crossing], progress=fitting(options.progress)
                )
        held = beyond.union(m.attributes for m in graph.kept)
        across = tuple(
            m.attributes
            for m in crossing
            if m.attributes in held and not plan.schema.held_together(m.attributes)
        )
        warnings = graph.warnings
        if crossing and not across:
            warnings += (
                f"No cross-party edge fits tau = {plan.tau} cells or stands above the noise: the parties' attributes are "
                "synthesised as independent; raise tau or epsilon.",
            )
        return fitted, across, warnings

    def _other_part(self, parts: Parts, part: int, clock: Clock) -> PartModel:
        """A model of people that not all parties hold."""
        total = max(float(parts.overlap.counts[part]), 1.0)
        local, crossing = (parts.measurements(own, part) for own in (parts.local, parts.crossing))
        initial = self._initial(local, total, clock)
        fitted, _, _ = self._fitted(local, crossing, initial, total, clock)
        return PartModel(
            tuple(self._plan.party_names[p] for p in parts.overlap.patterns[part]), fitted
        )

    def _in_order(self, messages: Sequence[Message]) -> list[Message]:
        names = self._plan.party_names
        by_party: dict[int, Message] = {}
        for message in messages:
            if message.plan_digest != self._plan.digest():
                raise MessageError(
                    f"The message of party {message.party} was made for another plan."
                )
            if message.party in by_party:
                raise MessageError(
                    f"There are two messages of party {names[message.party]!r}; give one per party."
                )
            by_party[message.party] = message
        missing = [name for i, name in enumerate(names) if i not in by_party]
        if missing:
            raise MessageError(
                f"The message of party {', '.join(missing)} is missing; the plan needs one per party."
            )
        return [by_party[i] for i in range(len(names))]


def _check_holdings(plan: Plan, held: Sequence[Holding]) -> None:
    """A party with far more records than anybody expects would have rows drawn for all of them.

    Raises:
        MessageError: a party has, whatever its noise.
    """
    most = RECORDS_OVER_EXPECTED * plan.expected_records
    for name, own in zip(plan.party_names, held, strict=True):
        if not own.records - HOLDING_ERRORS * own.error <= most:
            raise MessageError(
                f"The message of party {name!r} tells of about {own.records:,.0f} records, where the plan expects "
                f"{plan.expected_records:,}: its figures are wrong, or the plan's are; make one of them again."
            )


def apart(schema: Schema) -> tuple[list[Combination], list[Combination]]:
    """Impossible combinations of one party's attributes, which the model of the parties' own marginals keeps, and the others."""
    inside: list[Combination] = []
    across: list[Combination] = []
    for combination in schema.combinations:
        (inside if schema.held_together(place for place, _ in combination) else across).append(
            combination
        )
    return inside, across


def measurement(plan: Plan, message: Message, marginal: LocalMarginal) -> Measurement:
    """A party's own marginal as the model is fitted to it."""
    names = " × ".join(plan.schema.names[a] for a in marginal.attributes)
    return marginal.measurement(f"{names}, by party {plan.party_names[message.party]}")


def contradicted(schema: Schema, crossing: Sequence[Measurement], total: float) -> tuple[str, ...]:
    """Warn of impossible combinations across parties, which no party can check, that many records seem to have.

    Args:
        schema: with its impossible combinations.
        crossing: measurements that span parties; where they are binned, bins count that lie wholly in a combination.
        total: record count.
    """
    worst: dict[int, tuple[float, float]] = {}
    for number, combination in enumerate(schema.combinations):
        ruled_out = dict(combination)
        for m in crossing:
            if not ruled_out.keys() <= set(m.attributes):
                continue
            cells = []
            for attribute, bins, count in zip(m.attributes, m.bins, m.counts.shape, strict=True):
                size = schema.sizes[attribute]
                others = [
                    code
                    for code in range(size)
                    if code not in ruled_out.get(attribute, range(size))
                ]
                held = np.arange(size) if bins is None else bins
                cells.append(
                    np.setdiff1d(np.unique(held), held[others])
                    if attribute in ruled_out
                    else np.arange(count)
                )
            block = np.ix_(*cells)
            records = float(m.counts[block].sum())
            error = float(np.sqrt(np.square(m.errors[block]).sum()))
            if (
                records > max(DOUBT_ERRORS * error, DOUBTFUL * total)
                and records > worst.get(number, (0.0, 0.0))[0]
            ):
                worst[number] = records, error
    return tuple(
        f"About {records:,.0f} records (standard error {error:,.0f}) seem to have what the schema says cannot be: "
        f"{schema.named([number], start=False)}. No synthetic row has it; is it true?"
        for number, (records, error) in worst.items()
    )

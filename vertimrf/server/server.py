"""The server: a model and synthetic rows from the parties' messages (VertiMRF, phases 3 to 6).

1. InitMRF fits a model to the parties' local marginals.
2. CarEst estimates cross-party marginals from the sketches.
3. GraphCom chooses the cliques of the global model, and OptMRF fits it.
4. Sampling draws the rows.

If parties have different people, the measurements are first converted to the people that all of
them have (:mod:`.parts`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..arguments import check, each, instance, maybe, takes
from ..arrays import Codes, Ints, Texts
from ..errors import MessageError, ModelError, PlanError
from ..kernels.jit import for_each, threads
from ..message import Message
from ..model.domain_compression import compression_maps
from ..model.empty_cells import noise_alone
from ..model.fit import FitOptions, fit
from ..model.markov_random_field import MarkovRandomField
from ..model.measurement import Measurement
from ..model.off_tree import fit_off_tree
from ..model.redraw import Noise
from ..model.sample import sample
from ..model.structural_zeros import ruling_out
from ..model.tails import declining_tails
from ..model.trend import as_trends, without_noise
from ..model.trust import Evidence
from ..options import RunOptions
from ..plan.defaults import OUTER
from ..plan.merging import in_order, kept_apart
from ..plan.plan import Plan
from ..privacy.ledger import Ledger
from ..progress import Clock, fitting
from ..releases.received import CrossParty, RecordCount
from .cells import apart, contradicted, cuts, measurement, of_halves
from .column_counts import counted_together
from .cross_party import cross_party_marginals
from .fine import shapes_inside
from .global_graph import combine_graphs, used_in
from .local_pairs import read_pairs
from .missing import missing_together
from .parts import PartModel, Parts, of_common_people, sample_parts
from .population import (
    TOO_MANY_ERRORS,
    check_matches,
    estimate_total,
    few_in_common,
    find_overlap,
    record_counts,
    same_people,
    same_sizes,
)
from .released_figures import ReleasedFigures, fine_of, of_links, released_by
from .result import Result
from .shared_columns import Disagreement, disagreements, local_tree

# Without pairs the fit goes all the way to least squares: values that noise alone shows get no mass.
ALL_THE_WAY = FitOptions(proximal_weight=1.0, min_improvement=0.0)
# Least distance of a chosen pair from independence that a fit follows, in standard errors.
CHOSEN_SHOWN = 3.0
UNLINKED = (
    "No cross-party edge fits tau = {} cells or exceeds the noise: the parties' attributes are "
    "synthesised as independent; raise tau or epsilon."
)


@dataclass(frozen=True, eq=False)
class Estimates:
    """Measurements from the parties' messages; made by :meth:`Server.read`.

    Attributes:
        messages: one per party, in plan order.
        local: the parties' local marginals.
        crossing: measurements that span parties.
        initial: the model of the local marginals alone.
        total: estimated record count.
        disagreements: how far parties contradict each other on shared columns.
        warnings: sentences about parties whose records do not match.
        seconds: wall time per phase.
        parts: measurements of all people, if parties have different ones; otherwise None. With
            ``parts``, the other attributes are of the people at all parties.
        few_in_common: whether parties have far fewer people in common than the plan expects.
    """

    messages: tuple[Message, ...]
    local: tuple[Measurement, ...]
    crossing: tuple[Measurement, ...]
    initial: MarkovRandomField
    total: float
    disagreements: tuple[Disagreement, ...]
    warnings: Texts
    seconds: dict[str, float]
    parts: Parts | None = None
    few_in_common: bool = False


class Server:
    """Makes a model and synthetic rows from the parties' messages.

    Args:
        plan: the agreed plan.
        options: number of rows, seed, threads and progress.
    """

    @takes(PlanError, plan=instance("Plan"), options=maybe(instance("RunOptions")))
    def __init__(self, plan: Plan, options: RunOptions | None = None) -> None:
        self._plan = plan
        self._options = options or RunOptions()

    def __repr__(self) -> str:
        return f"<Server of {self._plan}>"

    @takes(MessageError, messages=each(instance("Message")))
    def read(self, messages: Sequence[Message]) -> Estimates:
        """Estimate local and cross-party marginals (InitMRF and CarEst).

        Args:
            messages: one per party, in any order, validated on loading.

        Returns:
            The measurements and the model of the local marginals.

        Raises:
            UnmatchedError: two parties have no significant number of common records.
            MessageError: a party's message is missing, repeated or of another plan; or two parties
                have different people, and the plan has no sketches that estimate the overlap; or
                two messages contradict each other.
            ModelError: no model fits the messages.
        """
        plan, clock = self._plan, Clock()
        ordered = self._in_order(messages)
        with threads(self._options.num_threads), _naming(plan):
            with clock("InitMRF"):
                party_counts = record_counts(plan, ordered)
                local = tuple(
                    itertools.chain.from_iterable(map(self._local, ordered, party_counts))
                )
            if same_sizes(party_counts):
                same = self._of_same_people(ordered, local, party_counts, clock)
                if same is not None:
                    return same
            return self._of_different_people(ordered, local, party_counts, clock)

    def _local(self, message: Message, records: RecordCount) -> list[Measurement]:
        """The measurements of a party's local marginals."""
        plan = self._plan
        out = [measurement(plan, message, m) for m in message.marginals]
        if plan.local[message.party].choices:
            out = counted_together(out, records)
        return [_settled(plan, m) for m in out]

    def _of_same_people(
        self,
        messages: Sequence[Message],
        local: tuple[Measurement, ...],
        party_counts: tuple[RecordCount, ...],
        clock: Clock,
    ) -> Estimates | None:
        """The measurements if parties have the same people; None if the sketches show otherwise."""
        plan, total = self._plan, estimate_total(self._plan, messages)
        initial = self._initial(local, total, clock)
        crossing = self._crossing(messages, initial, total, clock)
        check_matches(plan.party_names, party_counts, crossing.matches, TOO_MANY_ERRORS)
        if not same_people(party_counts, crossing.matches):
            return None
        contradictions = disagreements(plan, messages, total)
        few = few_in_common(plan, party_counts, crossing.matches)
        warnings = few + tuple(c.sentence(plan) for c in contradictions if c.significant)
        return Estimates(
            tuple(messages),
            local,
            crossing.measurements,
            initial,
            total,
            contradictions,
            warnings,
            clock.seconds,
            few_in_common=bool(few),
        )

    def _crossing(
        self,
        messages: Sequence[Message],
        initial: MarkovRandomField,
        total: float,
        clock: Clock,
        counts: tuple[RecordCount, ...] | None = None,
    ) -> CrossParty:
        """CarEst: the cross-party marginals."""
        progress = self._options.progress
        progress.step("cross-party marginals")
        with clock("CarEst"):
            return cross_party_marginals(self._plan, messages, initial, total, progress, counts)

    def _initial(
        self, local: Sequence[Measurement], total: float, clock: Clock
    ) -> MarkovRandomField:
        self._options.progress.step("initial model")
        schema = self._plan.schema
        # Chosen pairs are read with the counts of this model.
        chooses = self._plan.chooses
        local = [m for m in local if len(m.attributes) == 1 or not chooses(m.attributes)]
        with clock("InitMRF"):
            zeros = ruling_out(schema.sizes, apart(schema)[0])
            classes = compression_maps(
                local, kept_apart(schema, self._plan.coarse), in_order(schema)
            )
            tree = local_tree(self._plan, local, zeros, classes)
            numbers = [attribute.in_order for attribute in schema.attributes]
            report = fitting(self._options.progress)
            alone = not self._plan.groups and all(len(m.attributes) == 1 for m in local)
            return fit(
                schema.sizes,
                used_in(tree, local, local),
                total,
                tree=tree,
                zeros=(*zeros, *noise_alone(local, numbers, tree, classes)),
                classes=classes,
                options=replace(ALL_THE_WAY if alone else FitOptions(), progress=report),
            )

    def _of_different_people(
        self,
        messages: Sequence[Message],
        local: tuple[Measurement, ...],
        party_counts: tuple[RecordCount, ...],
        clock: Clock,
    ) -> Estimates:
        """The measurements if parties have different people."""
        plan = self._plan
        if not plan.sketch.tells_matches:
            counts = ", ".join(
                f"{n} {h.records:,.0f}" for n, h in zip(plan.party_names, party_counts, strict=True)
            )
            raise MessageError(
                f"The parties have different numbers of records ({counts}), and this plan's sketches do not estimate how "
                "many they have in common: keep the same people at every party, or plan with scheduled pairs or count sketches."
            )
        # The initial model has each party's marginals scaled to the average number of people.
        total = float(np.mean([count.records for count in party_counts]))
        # A shared column counts as the first party's. Only that party's marginals of it are used.
        by = [message.party for message in messages for _ in message.marginals]
        first = [
            plan.schema.holder(m.attributes) == party for m, party in zip(local, by, strict=True)
        ]
        local = tuple(itertools.compress(local, first))
        owners = itertools.compress(by, first)
        scales = [total / party_counts[party].records for party in owners]
        scaled = [
            replace(m, counts=m.counts * s, sigma=m.sigma * s)
            for m, s in zip(local, scales, strict=True)
        ]
        initial = self._initial(scaled, total, clock)
        crossing = self._crossing(messages, initial, total, clock, party_counts)
        with clock("CarEst"):
            overlap = find_overlap(plan.party_names, party_counts, crossing.matches)
            spanning = of_common_people(plan.schema, crossing.measurements)
            parts = Parts.of(plan.schema, overlap, initial, local, spanning, crossing.shared)
            common, across = (
                tuple(parts.measurements(measurements, parts.all))
                for measurements in (local, spanning)
            )
        initial = self._initial(common, overlap.inner, clock)
        few = few_in_common(plan, party_counts, crossing.matches)
        warnings = (overlap.sentence(plan.population),)
        return Estimates(
            tuple(messages),
            common,
            across,
            initial,
            overlap.inner,
            (),
            warnings,
            clock.seconds,
            parts,
            bool(few),
        )

    def run(self, estimates: Estimates) -> Result:
        """Fit the global model and draw rows (GraphCom, OptMRF and sampling).

        Args:
            estimates: the result of :meth:`read`.

        Returns:
            The model, the rows and the figures of the run.

        Raises:
            MessageError: the messages follow another plan.
            ModelError: many records contradict the schema's structural zeros, so that no model fits
                both.
        """
        check(MessageError, {"estimates": estimates}, estimates=instance("Estimates"))
        if estimates.messages[0].plan_digest != self._plan.digest():
            raise MessageError("The messages were made for another plan.")
        with threads(self._options.num_threads), _naming(self._plan):
            return self._run(estimates)

    def fit(self, estimates: Estimates, clock: Clock) -> tuple[MarkovRandomField, ReleasedFigures]:
        """Fit the global model and draw no rows, for people who all parties hold.

        Args:
            estimates: the result of :meth:`read`.
            clock: for the time of each phase.

        Returns:
            The model, and the figures of the run.
        """
        local, crossing, total = estimates.local, estimates.crossing, estimates.total
        with threads(self._options.num_threads):
            fitted, spanning, _ = self._fitted(local, crossing, estimates.initial, total, clock)
            return fitted, self._figures(estimates, fitted, bool(spanning))

    def _run(self, estimates: Estimates) -> Result:
        """The phases at the server: GraphCom and OptMRF, sampling, and what a result says of both."""
        plan, clock = self._plan, Clock(estimates.seconds)
        doubts = contradicted(plan.schema, estimates.crossing, estimates.total)
        with _doubted(doubts):
            fitted, spanning, unheld = self._fitted(
                estimates.local, estimates.crossing, estimates.initial, estimates.total, clock
            )
            others = self._others(estimates.parts, clock)
        ledger = self._ledger(estimates)
        (codes, holders), figures = self._sampled(
            estimates, fitted, others, bool(spanning), ledger, clock
        )
        lost = of_links(plan.schema, figures.evidence)
        return Result(
            plan,
            codes,
            fitted,
            estimates.initial,
            ledger,
            spanning,
            figures,
            estimates.disagreements,
            clock.seconds,
            (*estimates.warnings, *unheld, *doubts, *lost),
            self._options.seed,
            None if estimates.parts is None else estimates.parts.overlap,
            others,
            holders,
            shapes_inside(plan, estimates.messages, [*others, PartModel(plan.party_names, fitted)]),
            self._options.plain,
        )

    def _others(self, parts: Parts | None, clock: Clock) -> tuple[PartModel, ...]:
        """With an outer population, models of the people that not all parties have."""
        if parts is None or self._plan.population != OUTER:
            return ()
        return tuple(self._other_part(parts, part, clock) for part in range(parts.all))

    def _sampled(
        self,
        estimates: Estimates,
        fitted: MarkovRandomField,
        others: tuple[PartModel, ...],
        spanning: bool,
        ledger: Ledger,
        clock: Clock,
    ) -> tuple[tuple[Codes, Codes | None], ReleasedFigures]:
        """The rows, and what was released beside the model. The ledger then knows its epsilons."""
        self._options.progress.step("sampling")
        with clock("sampling"):
            _ = fitted.beliefs  # Cached before threads use it.
            # Drawing, the comparison with what was measured and the prices of the ledger do not wait
            # for each other.
            tasks: tuple[Callable[[], Any], ...] = (
                lambda: self._drawn(estimates, fitted, others),
                lambda: self._figures(estimates, fitted, spanning),
                ledger.table,
            )
            drawn, figures, _ = for_each(3, lambda i: tasks[i]())
            return drawn, figures

    def _ledger(self, estimates: Estimates) -> Ledger:
        """The plan's ledger, and whether all messages kept to it."""
        ledger = self._plan.ledger()
        if all(message.private for message in estimates.messages):
            return ledger
        return ledger.not_private("a party fixed its noise, or does not claim what the plan does")

    def _drawn(
        self, estimates: Estimates, fitted: MarkovRandomField, others: tuple[PartModel, ...]
    ) -> tuple[Codes, Codes | None]:
        """The synthetic rows and, with an outer population, their part by who holds them."""
        plan, options = self._plan, self._options
        rng = np.random.default_rng(options.seed)
        progress = options.progress.advance
        if others:
            every = [*others, PartModel(plan.party_names, fitted)]
            return sample_parts(plan.schema, every, options.rows, rng, progress=progress)
        rows = max(round(estimates.total), 1) if options.rows is None else options.rows
        return sample(fitted, rows, rng, progress=progress), None

    def _figures(
        self, estimates: Estimates, fitted: MarkovRandomField, spanning: bool
    ) -> ReleasedFigures:
        """What was released beside the model, and how far the model is from it."""
        local, crossing = estimates.local, estimates.crossing
        return ReleasedFigures(
            released_by(estimates.messages),
            fine_of(self._plan, estimates.messages),
            Evidence.of(fitted, local, crossing),
            Noise.of(
                fitted,
                local,
                crossing if spanning else (),
                cuts(self._plan, estimates.initial, (*local, *crossing)),
            ),
        )

    def _fitted(
        self,
        local: Sequence[Measurement],
        crossing: Sequence[Measurement],
        initial: MarkovRandomField,
        total: float,
        clock: Clock,
    ) -> tuple[MarkovRandomField, tuple[Ints, ...], Texts]:
        """GraphCom and OptMRF.

        Returns:
            The model, attributes of the cross-party marginals that it was fitted to, and warnings.
        """
        plan, options = self._plan, self._options
        cut = cuts(plan, initial, crossing)
        raw = [m for m in local if plan.chooses(m.attributes)]
        others = [m for m in local if not plan.chooses(m.attributes)]
        measured = [*others, *raw]
        read = read_pairs(plan.schema, initial, raw, total)
        # A party's own tables tell its chosen pairs better than sketches do.
        own = {m.attributes for m in read if len(m.attributes) > 1}
        crossing = [m for m in crossing if m.attributes not in own]
        trends = as_trends([*others, *crossing], cut, total)
        known = [trends[: len(others)], read, trends[len(others) :]]
        local = [*without_noise(known[0]), *without_noise(read, CHOSEN_SHOWN)]
        crossing = without_noise(known[2])
        options.progress.step("global graph")
        with clock("GraphCom"):
            graph = combine_graphs(plan, local, crossing, total, options.progress, raw)

        options.progress.step("global model")
        with clock("OptMRF"):
            # The paper's fits have what was measured alone.
            halved = () if plan.sketch.compared else of_halves(plan.schema, initial, graph.kept)
            used = used_in(graph.tree, local, (*local, *graph.kept, *halved))
            fitted, off_tree = initial, frozenset[Ints]()
            if graph.kept or plan.coarse or apart(plan.schema)[1]:
                report = fitting(options.progress)
                zeros = ruling_out(plan.schema.sizes, plan.schema.combinations)
                numbers = [attribute.in_order for attribute in plan.schema.attributes]
                empty = noise_alone(measured, numbers, graph.tree, graph.classes)
                fitted = fit(
                    plan.schema.sizes,
                    used,
                    total,
                    tree=graph.tree,
                    warm=graph.start,
                    zeros=(*zeros, *empty),
                    classes=graph.classes,
                    options=FitOptions(progress=report),
                )
            # The paper's encoders have no off-tree factors.
            if not plan.sketch.compared:
                # A trend near 0 is evidence against a dependence that the tree implies.
                fitted, off_tree = self._off_tree(
                    fitted, [*itertools.chain(*known)], [*measured, *crossing]
                )
        fitted_to = off_tree.union(m.attributes for m in graph.kept)
        across = tuple(
            m.attributes
            for m in crossing
            if m.attributes in fitted_to and not plan.schema.at_one_party(m.attributes)
        )
        lost = (UNLINKED.format(plan.tau),) if crossing and not across else ()
        return fitted, across, (*graph.warnings, *lost)

    def _off_tree(
        self,
        fitted: MarkovRandomField,
        measurements: list[Measurement],
        measured: list[Measurement],
    ) -> tuple[MarkovRandomField, frozenset[Ints]]:
        """OptMRF beyond the tree: the model with off-tree factors, and their attributes."""
        together = missing_together(self._plan.schema, measured)
        report = fitting(self._options.progress)
        return fit_off_tree(fitted.weighed(together), measurements, progress=report)

    def _other_part(self, parts: Parts, part: int, clock: Clock) -> PartModel:
        """A model of the people of one pattern."""
        total = max(float(parts.overlap.counts[part]), 1.0)
        local, crossing = (
            parts.measurements(measurements, part) for measurements in (parts.local, parts.crossing)
        )
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


def _settled(plan: Plan, m: Measurement) -> Measurement:
    """A measurement, that of a column of numbers with declining tails."""
    if len(m.attributes) > 1 or m.bins[0] is not None:
        return m
    places = plan.schema.attributes[m.attributes[0]].in_tails
    counts = declining_tails(m.counts, m.errors, places)
    return m if counts is m.counts else replace(m, counts=counts, settled=True)


@contextmanager
def _doubted(doubts: Sequence[str]) -> Iterator[None]:
    """Say what contradicts the schema, where no model fits."""
    try:
        yield
    except ModelError as error:
        if not doubts:
            raise
        raise ModelError(f"They contradict the schema. {' '.join(doubts)}") from error


@contextmanager
def _naming(plan: Plan) -> Iterator[None]:
    """Say whose messages no model fits."""
    try:
        yield
    except ModelError as error:
        names = ", ".join(map(repr, plan.party_names))
        raise ModelError(f"No model fits the messages of {names}. {error}") from error

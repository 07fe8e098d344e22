"""The server: messages in, a model of all attributes and synthetic rows out (VertiMRF, phases 3 to 6). It never sees a table."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..clock import Clock
from ..errors import MessageError, PlanError
from ..message import Answer, Message
from ..model.fit import fit
from ..model.markov_random_field import MarkovRandomField
from ..model.measurement import Measurement
from ..model.sample import sample
from ..plan.follow_up import FollowUp
from ..plan.plan import Plan
from ..plan.schedule import CHOSEN_TRIPLE, KEY_COST, cut_groups, make_schedule, triple_rule
from ..plan.schedule import crossing as crossing_marginals
from ..privacy.ledger import Ledger
from ..published.consistency import enforce_all
from ..published.reduction import hisrec, unisam
from ..sketches.parameters import SketchPlan
from .cross_party import cross_party_marginals, scheduled_marginals
from .global_graph import combine_graphs

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Result", "Server"]

Progress = Callable[[str], None]
# Standard errors of an average cell in the second round, and the multiples of it (and of those that a three-way marginal
# needs) that are tried in turn.
SECOND_CELL_ERRORS = 5.0
COARSER = (1.0, 1.5, 2.0, 4.0, 8.0)
# Parties whose records match to less than this part, by so many standard errors, are told.
MOSTLY = 0.95
MISMATCH_ERRORS = 6.0
REDUCTIONS = ("fit", "hisrec", "unisam")
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Result:
    """What a run yields.

    Attributes:
        plan: the plan it followed.
        codes: synthetic rows [shape=(attributes, rows), uint16].
        model: the global Markov random field.
        ledger: every event and the composed (epsilon, delta).
        crossing: attributes of the cross-party marginals that the model was fitted to.
        seconds: wall time per phase.
        warnings: sentences about what the run could not do.
        seed: of the sampling; None means fresh entropy.
    """

    plan: Plan
    codes: npt.NDArray[np.uint16]
    model: MarkovRandomField
    ledger: Ledger
    crossing: tuple[tuple[int, ...], ...]
    seconds: dict[str, float]
    warnings: tuple[str, ...]
    seed: int | None

    @property
    def table(self) -> pa.Table:
        """The synthetic rows in the schema's original values."""
        from .rows import decode

        return decode(self.codes, self.plan.schema.attributes, np.random.default_rng(self.seed))

    def to_json(self) -> dict[str, Any]:
        """Privacy spent, timings and model size, JSON-able."""
        names = self.plan.schema.names
        return {
            "epsilon": self.ledger.epsilon,
            "delta": self.ledger.delta,
            "private": self.ledger.private,
            "reasons": list(self.ledger.reasons),
            "ledger": self.ledger.to_json()["entries"],
            "seconds": {phase: round(seconds, 4) for phase, seconds in self.seconds.items()},
            "rows": int(self.codes.shape[1]),
            "cliques": [[names[i] for i in clique] for clique in self.model.tree.cliques],
            "junction_tree_cells": int(self.model.tree.cells),
            "cross_party_marginals": [[names[a] for a in attributes] for attributes in self.crossing],
            "warnings": list(self.warnings),
        }


@dataclass(frozen=True, eq=False)
class FirstRound:
    """What one round of messages tells the server.

    Attributes:
        local: the parties' own marginals.
        crossing: measurements that span parties.
        initial: the model of the local marginals alone.
        total: estimated record count.
        warnings: sentences about parties whose records do not match.
    """

    local: list[Measurement]
    crossing: list[Measurement]
    initial: MarkovRandomField
    total: float
    warnings: tuple[str, ...]


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
        follow_up: FollowUp | None = None,
        answers: Sequence[Answer] = (),
        *,
        rows: int | None = None,
        seed: int | None = None,
        reduction: str = "fit",
        consistency: bool = False,
        progress: Progress | None = None,
        num_threads: int | None = None,
    ) -> Result:
        """GraphCom, InitMRF, OptMRF and sampling.

        Args:
            messages: one per party, in any order, validated on loading.
            follow_up: the second round's schedule, and ``answers`` to it, one per party; if the plan has two rounds.
            rows: synthetic rows; default the noisy record count.
            seed: of the sampling of synthetic rows.
            reduction: what becomes of binned cross-party marginals. "fit": the model is fitted to the bins, and the values
                within follow from one-way marginals by maximum entropy; for comparison, the paper's "hisrec" (the same
                proportions, written out before the fit) and "unisam" (equal proportions).
            consistency: whether the paper's consistency enforcement is run on cross-party marginals before the fit, which
                reconciles by precision what it is given.
            progress: told the name of each phase as it starts.
            num_threads: threads for the kernels; None leaves the setting as it is.

        Raises:
            MessageError: a party's message is missing, doubled, or of another plan; or most of two parties' records do not
                match.
            PlanError: an unknown reduction.
        """
        plan = self._plan
        if reduction not in REDUCTIONS:
            raise PlanError(f"Unknown reduction {reduction!r}; use one of {', '.join(REDUCTIONS)}.")
        say = progress or (lambda _: None)
        clock = Clock()
        sizes = plan.schema.sizes
        ordered = self._in_order(messages)
        if bool(plan.second_keys) != (follow_up is not None):
            raise MessageError(
                "The plan has two rounds: give the follow-up and the parties' answers to it."
                if plan.second_keys
                else "The plan has one round: it takes no follow-up."
            )
        replies = [] if follow_up is None else self._answers_in_order(follow_up, answers)
        first = self._first_round(ordered, say, clock, num_threads)

        crossing = first.crossing
        if follow_up is not None:
            say("second round")
            with clock("CarEst"):
                tables = [reply.sketches for reply in replies]
                crossing = crossing + scheduled_marginals(
                    plan.schema, follow_up.groups, follow_up.bins, follow_up.sketch, tables, ordered, first.initial, first.total,
                    num_threads=num_threads,
                )  # fmt: skip
        say("global graph")
        with clock("GraphCom"):
            kept, tree, warnings = combine_graphs(plan, first.local, crossing, first.total, num_threads)

        say("global model")
        with clock("OptMRF"):
            reduced = _reduced(kept, first, reduction, consistency)
            used = [m for m in (*first.local, *reduced) if tree.covering(m.attributes) >= 0]
            fitted = fit(sizes, used, first.total, tree=tree, num_threads=num_threads) if kept else first.initial

        say("sampling")
        with clock("sampling"):
            wanted = max(round(first.total), 1) if rows is None else rows
            codes = sample(fitted, wanted, np.random.default_rng(seed))

        ledger = plan.ledger()
        if not (all(message.private for message in ordered) and all(reply.private for reply in replies)):
            ledger = ledger.not_private("a party fixed its noise")
        attributes = tuple(m.attributes for m in kept)
        return Result(plan, codes, fitted, ledger, attributes, clock.seconds, (*first.warnings, *warnings), seed)

    def follow_up(
        self, messages: Sequence[Message], *, progress: Progress | None = None, num_threads: int | None = None
    ) -> FollowUp:
        """The second round's schedule: keys go to the pairs that the first round finds dependent and the graph has room for,
        in finer bins, and to three-way marginals within the graph's cliques.

        Args:
            messages: one per party, in any order, validated on loading.
            progress, num_threads: as in :meth:`run`.

        Raises:
            MessageError: a party's message is missing, doubled, or of another plan.
            PlanError: the plan has one round.
        """
        plan = self._plan
        if not (plan.second_keys and isinstance(plan.sketch, SketchPlan)):
            raise PlanError("The plan has one round; plan with two for a follow-up.")
        ordered = self._in_order(messages)
        first = self._first_round(ordered, progress or (lambda _: None), Clock(), num_threads)
        kept, tree, _ = combine_graphs(plan, first.local, first.crossing, first.total, num_threads)
        pairs, triples = crossing_marginals(plan.schema, 2), crossing_marginals(plan.schema, 3)
        if math.prod(plan.schema.sizes) > plan.tau:
            # Cliques are scarce: what has no place in the graph needs no keys.
            pairs = sorted(m.attributes for m in kept) or pairs
            inside = {own for clique in tree.cliques for own in itertools.combinations(clique, 3)}
            triples = [own for own in triples if own in inside]
        # What the remaining keys may spend, by the plan's own arithmetic.
        rho = plan.second_keys * KEY_COST / (2 * plan.sketch.phantoms**2)
        records = max(round(first.total), 1)
        least, weight = triple_rule(plan.schema, plan.tau, CHOSEN_TRIPLE)
        left = plan.message_bytes - max(plan.message_size(party) for party in range(len(ordered)))
        # Where all keys would not fit into the messages, coarser bins and fewer triples cost less than keys left unused.
        for coarser in COARSER:
            rule = (coarser * least, weight)
            schedule = make_schedule(plan.schema, rho, records, pairs, triples, rule, coarser * SECOND_CELL_ERRORS)
            fitting = schedule.within(plan.schema, plan.second_keys, left)
            if fitting is not None:
                schedule = fitting
                break
        margins = {a: first.initial.marginal((a,)) for group in schedule.groups for a in group.attributes}
        bins = cut_groups(plan.schema, schedule.groups, margins)
        affordable = int(left / schedule.bytes_per_key(plan.schema))
        keys = min(plan.second_keys, max(affordable, len(schedule.pairs)))
        return FollowUp(plan, schedule.groups, bins, schedule.with_keys(keys))

    def _first_round(self, ordered: list[Message], say: Progress, clock: Clock, num_threads: int | None) -> FirstRound:
        """What the first round tells."""
        plan = self._plan
        say("initial model")
        with clock("InitMRF"):
            local = [m.measurement(f"party {plan.party_names[msg.party]}") for msg in ordered for m in msg.marginals]
            total = estimate_total(plan, ordered)
            initial = fit(plan.schema.sizes, local, total, num_threads=num_threads)
        say("cross-party marginals")
        with clock("CarEst"):
            crossing = cross_party_marginals(plan, ordered, initial, total, num_threads=num_threads)
            warnings = check_matches(plan, crossing, total) if isinstance(plan.sketch, SketchPlan) else ()
        return FirstRound(local, crossing, initial, total, warnings)

    def _answers_in_order(self, follow_up: FollowUp, answers: Sequence[Answer]) -> list[Answer]:
        names = self._plan.party_names
        if follow_up.plan.digest() != self._plan.digest():
            raise MessageError("The follow-up was made for another plan.")
        by_party = {answer.party: answer for answer in answers}
        if len(by_party) < len(answers):
            raise MessageError("There are two answers of one party; give one per party.")
        for answer in answers:
            if answer.follow_up_digest != follow_up.digest():
                raise MessageError(f"The answer of party {names[answer.party]!r} is to another follow-up.")
        missing = [name for i, name in enumerate(names) if i not in by_party]
        if missing:
            raise MessageError(f"The answer of party {', '.join(missing)} is missing; the follow-up needs one per party.")
        return [by_party[i] for i in range(len(names))]

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


def _reduced(kept: Sequence[Measurement], first: FirstRound, reduction: str, consistency: bool) -> list[Measurement]:
    """Cross-party measurements as the fit is to see them."""
    out = list(kept)
    if not out:
        return out
    margins = {a: first.initial.marginal((a,)) for m in out for a in m.attributes}
    if consistency:
        out = enforce_all(out, {(a,): counts for a, counts in margins.items()}, first.total)
    if reduction == "hisrec":
        out = [hisrec(m, margins) for m in out]
    elif reduction == "unisam":
        out = [unisam(m) for m in out]
    return out


def check_matches(plan: Plan, crossing: Sequence[Measurement], total: float) -> tuple[str, ...]:
    """Warn of parties whose records match only in part: the cells of what sketches estimate sum to the records that two
    parties have in common.

    Args:
        plan: the agreed plan.
        crossing: unbiased estimates of scheduled pairs, each under keys of its own.
        total: record count.

    Raises:
        MessageError: fewer than half match.
    """
    warnings = []
    by_parties: dict[tuple[int, ...], list[Measurement]] = {}
    for m in crossing:
        by_parties.setdefault(tuple(sorted({plan.schema.party_of(a) for a in m.attributes})), []).append(m)
    for parties, measured in by_parties.items():
        precision = [1 / np.square(np.broadcast_to(m.sigma, m.counts.shape)).sum() for m in measured]
        matched = float(np.average([m.counts.sum() for m in measured], weights=precision))
        if matched + MISMATCH_ERRORS / math.sqrt(sum(precision)) > MOSTLY * total:
            continue
        names = " and ".join(plan.party_names[p] for p in parties)
        found = f"Sketches match {max(matched, 0):,.0f} of {total:,.0f} records between {names}"
        if matched < 0.5 * total:
            raise MessageError(
                f"{found}: they used different secrets (compare what `vertimrf inspect` says of the secret files), or their "
                "record ids are written differently or are of other people."
            )
        warnings.append(f"{found}: the rest have no counterpart; all parties should hold the same ids, written the same way.")
    return tuple(warnings)


def estimate_total(plan: Plan, messages: Sequence[Message]) -> float:
    """The record count, from the noisy count and the sums of all local marginals, weighted by their variances; at least 1."""
    weights = []
    values = []
    for message in messages:
        if message.count is not None:
            weights.append(plan.count_sigma**-2)
            values.append(float(message.count))
        for marginal in message.marginals:
            weights.append(1.0 / (marginal.error**2 * marginal.counts.size))
            values.append(float(marginal.counts.sum()) / marginal.units)
    return max(float(np.average(values, weights=weights)), 1.0)

"""What a plan decides before its noise: targets, the release across parties, shares of the budget."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from ..arrays import Ints, Pair
from ..privacy.accountant import calibrate
from ..privacy.events import GaussianEvent
from ..releases.nothing import NOTHING
from ..releases.register import kind_of
from ..releases.release import CrossPartyRelease
from .groups import Group, crossing_pairs
from .options import PlanOptions
from .schema import Schema
from .shares import USUAL, Outlook, Shares
from .workload import Workload

# Most bins of an attribute with the paper's encoders.
PUBLISHED_BINS = 8
# Most bins of an attribute.
COUNT_BINS = 256
# What is published across parties: groups, and the parameters of the release; and that as a function
# of the budget (zCDP), of which it spends about so much.
Released = tuple[tuple[Group, ...], CrossPartyRelease]
SketchChoice = Callable[[float], Released]


@dataclass(frozen=True)
class Target:
    """The targets of a plan.

    Attributes:
        epsilon, delta: the privacy target.
        records: expected number of records.
        message_bytes: budget for the sketches in a party's message.
        workload: what the result is for.
        largest_clique: most cells of a local clique.
        several: whether several parties have attributes of several values.
        halved: positions of the halved attributes (:func:`.planner.make_plan`).
        bins: number of bins that these have across parties: two halves, or more.
        chosen: whether parties choose their pairs one by one.
    """

    epsilon: float
    delta: float
    records: int
    message_bytes: int
    workload: Workload
    largest_clique: int
    several: bool
    halved: frozenset[int] = frozenset()
    bins: int = 2
    chosen: bool = False

    @property
    def rho(self) -> float:
        """The budget (zCDP) that one Gaussian mechanism would have."""
        return _of_one_mechanism(self.epsilon, self.delta)


@lru_cache(maxsize=4)
def _of_one_mechanism(epsilon: float, delta: float) -> float:
    return calibrate(lambda rho: [GaussianEvent(math.sqrt(0.5 / rho))], epsilon, delta)


@dataclass(frozen=True)
class Choice:
    """The cross-party releases of a plan, and the shares of the budget.

    Attributes:
        sketches: the cross-party release, at any budget.
        agreement: repetitions and buckets of the agreement sketches, per shared attribute.
        shares: shares of the budget.
    """

    sketches: SketchChoice
    agreement: tuple[Pair, ...]
    shares: Shares


def no_sketches(rho: float) -> Released:
    """No release: the parties' columns are independent, or there is only one party."""
    return (), NOTHING


def shares_of(
    schema: Schema, planning: PlanOptions, target: Target, usual: Shares = USUAL
) -> Shares:
    """The given shares of the budget; otherwise, those of the least forecast of the error."""
    given = usual if planning.shares is None else Shares(*planning.shares)
    if not planning.local_models:
        return replace(given, one_way=1.0)
    if given is not usual or not kind_of(planning.encoder).forecast:
        return given
    return outlook_of(schema, planning, target).best(usual)


def outlook_of(schema: Schema, planning: PlanOptions, target: Target) -> Outlook:
    """What is known of the run before its plan."""
    columns = [schema.varying(name) for name in schema.party_names]
    across = target.several and (schema.shared or crossing_pairs(schema))
    return Outlook(
        tuple(tuple(schema.sizes[a] for a in some) for some in columns),
        target.records,
        target.rho / planning.records_per_person**2,
        target.largest_clique,
        target.message_bytes if across else 0,
        kind_of(planning.encoder),
        tuple(tuple(a in target.halved for a in some) for some in columns),
        target.bins,
        target.chosen,
    )


def coarse_groups(schema: Schema) -> tuple[Group, ...]:
    """A group for each attribute that varies, as the paper's encoders have them."""
    varying = sorted(set(itertools.chain(*(schema.varying(name) for name in schema.party_names))))
    return tuple(Group((a,), (min(schema.sizes[a], PUBLISHED_BINS),)) for a in varying)


def groups_of(
    schema: Schema,
    columns: Sequence[Sequence[int]],
    target: Target,
    *,
    presence: bool = False,
    parities: int = 0,
    values: bool = True,
    alternating: bool = False,
) -> tuple[tuple[Group, ...], Ints]:
    """One group for each attribute that parties sketch, and the indices of contrasts.

    ``parities`` adds groups of two attributes of two values, those of so many rings; ``presence``
    adds groups of one value for parties with one contrast alone, if there are several; ``values``
    keeps one group of every party as values; ``alternating`` says whether the missing value of an
    attribute that is cut in halves is a third value, of which contrasts keep account.
    """
    most = dict.fromkeys(target.halved, target.bins)
    size = [min(u, most.get(a, COUNT_BINS)) for a, u in enumerate(schema.sizes)]
    three = {
        a
        for a in target.halved
        if alternating and target.bins == 2 and schema.attributes[a].missing
    }
    lone = [len(attributes) == 1 and size[attributes[0]] == 2 for attributes in columns]
    groups: list[Group] = []
    contrasts: list[int] = []
    for attributes, alone in zip(columns, lone, strict=True):
        first = len(groups)
        groups += [Group((a,), (size[a] + (a in three),)) for a in attributes]
        of_three = [g for g in range(first, len(groups)) if groups[g].attributes[0] in three]
        two = [g for g in range(first, len(groups)) if groups[g].size == 2]
        present = presence and alone and sum(lone) > 1
        all_told = len(two) + len(of_three) == len(groups) - first
        # Two rows of values rather than three.
        kept = (two or of_three)[: values and all_told and not present]
        contrasts += sorted({*two, *of_three} - {*kept})
        if present:
            groups.append(Group((attributes[0],), (1,)))
        if parities:
            crossed = _far_apart([groups[g].attributes[0] for g in two], parities)
            contrasts += range(len(groups), len(groups) + len(crossed))
            groups += [Group(pair, (2, 2)) for pair in crossed]
    return tuple(groups), tuple(contrasts)


def _far_apart(attributes: Sequence[int], rings: int) -> list[Pair]:
    """Pairs of attributes whose parities are released: those that are farthest apart on a ring.

    Adjacent attributes tend to be correlated, and their parity then has little information.
    """
    n = len(attributes)
    farthest = n // 2
    places = [
        sorted((i, (i + apart) % n))
        for apart in range(farthest, max(farthest - rings, 0), -1)
        for i in range(n)
    ]
    return list(dict.fromkeys((attributes[i], attributes[j]) for i, j in places))

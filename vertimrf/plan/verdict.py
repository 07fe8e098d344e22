"""Forecast how far the result of a plan can be trusted, from the plan alone.

The distances by noise (:mod:`.shares`) are those of uniform tables. Real tables have empty cells,
which a fit keeps near zero, so that less of the noise is left. The constants are fitted to runs of
nltcs, Adult, br2000, hotel bookings and generated tables at three epsilons, with one holder and
two parties.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import cached_property

import numpy as np

from ..arrays import Fields, Flags, Floats
from ..errors import PlanError, first
from ..files.notebook import as_html
from ..privacy.accountant import gaussian_rho
from ..releases.register import kind_of
from .defaults import MESSAGE_BYTES
from .local_plan import SCORE_SENSITIVITY
from .plan import Plan
from .shares import Outlook, Shares, cell_error, distances, in_halves, left

# The verdict is by the distance of three columns together, the part of the records that would have
# to change: good up to GOOD, rough up to ROUGH. Above that it is useless, and also if it is not
# below that of noisy independent columns by WORTH_IT.
GOOD, ROUGH, WORTH_IT = 0.05, 0.25, 0.02
# What a fit leaves of the noise of a column and of pairs within and across parties: noise * factor
# / (1 + damping * noise).
COLUMN_DAMPING, PAIR_DAMPING = 3.5, 5.5
WITHIN, ACROSS = 0.54, 0.46
# Distance of a usual pair from independence; and what structure and rounding add to pairs and to
# three columns, in units of the root of cells / records.
DEPENDENCE = 0.11
PAIR_ROUNDING, THREE_ROUNDING = 0.04, 0.14
# Counts of a table scatter around any model by their roots: of c equally frequent cells that is a
# distance of sqrt(2 / pi) / 2 = 0.4 times the root of c / records. Pairs, whose cells are not equally
# frequent, have 3/4 of it.
PAIR_SCATTER = 0.3
# What is left of the dependence of a pair of which only a trend is known, as a distance; and what
# trends and tables of bins add to the error of a correlation, whose usual value is CORRELATION.
TREND_LEFT = 0.06
TREND_FORM, BINS_FORM, CORRELATION = 0.05, 0.02, 0.15
# Pairs that are named of each kind: known, by a trend alone, and not.
MAX_PAIRS = 5
LINKS = (
    "are predicted to be known in their values",
    "are predicted to be known by a trend alone",
    "have too much noise for the dependence of usual pairs, and may not be known",
)
KNOWN = "are predicted to be known, if columns depend on each other as they do in other tables"
NO_LINKS = "No pair of columns is predicted to be known: the result tells of single columns."
# A dependence is known beyond so many standard deviations of noise: about a hundred pairs at a
# false-discovery rate of 5 %.
BEYOND_NOISE = 3.3
# Errors of means, and of differences of a mean between two groups, per distance and root of values.
MEAN, COMPARISON = 2.7, 4.5
# A remedy multiplies epsilon or the records by this number.
MORE = 4
ALONE = Shares(0.01, 0.99, 0.0, 1.0)


@dataclass(frozen=True)
class Errors:
    """Predicted mean errors; NaN where a plan has no such figure.

    Attributes:
        column, within, across, three: total variation distances of one column, of pairs at one
            party and of different parties, and of three columns (or all, if they are fewer).
        mean: error of a column's mean, in its standard deviations.
        comparison_within, comparison_across: error of the difference of a mean between two groups,
            in standard deviations; the group is a column of the same or of another party.
        ways: the number of columns of ``three``.
        correlation: error of the correlation of columns of two parties.
    """

    column: float
    within: float
    across: float
    three: float
    mean: float
    comparison_within: float
    comparison_across: float
    ways: int = 3
    correlation: float = math.nan

    def lines(self) -> list[str]:
        """The figures as a table for people."""
        rows = {
            "one column": (self.column, self.mean, "a mean"),
            "two columns of a party": (self.within, self.comparison_within, "groups compared"),
            "of two parties": (self.across, self.comparison_across, "groups compared"),
            "three columns": (self.three if self.ways == 3 else math.nan, math.nan, ""),
        }
        return ["Predicted error:         of the records   in standard deviations"] + [
            f"  {name:22s} {percent(distance):>14s}"
            + ("" if math.isnan(spread) else f"   {spread:.2g} ({what})")
            for name, (distance, spread, what) in rows.items()
            if not math.isnan(distance)
        ]


@dataclass(frozen=True, repr=False)
class Verdict:
    """How far the result of a plan can be trusted.

    Attributes:
        word: "good", "rough" or "useless".
        errors: of the plan.
        independent: distance of three columns if all are independent, with noisy one-way marginals
            at the whole budget.
        plan: the plan.
        outlook: what was known before it.
    """

    word: str
    errors: Errors
    independent: float
    plan: Plan
    outlook: Outlook

    @cached_property
    def remedies(self) -> tuple[tuple[str, float], ...]:
        """What to change, and the distance of three columns that it would give."""
        return () if self.word == "good" else tuple(_remedies(self.plan, self.outlook))

    def __repr__(self) -> str:
        return f"<Verdict: {self.word}>"

    def _repr_html_(self) -> str:
        return as_html(self, "\n".join([str(self), *self.errors.lines()]))

    def __str__(self) -> str:
        columns = ("a column is", "two columns together are", "three columns together are")
        out = (
            f"{self.word.capitalize()}: {columns[self.errors.ways - 1]} predicted to be wrong for "
            f"{percent(self.errors.three)} of the records, counted in bins"
        )
        if self.word == "useless":
            out += f"; noisy independent columns for {percent(self.independent)}"
        if not math.isnan(self.errors.correlation):
            out += f"; correlations across parties ± {self.errors.correlation:.2g}"
        given = ", ".join(f"{change} {percent(error)}" for change, error in self.remedies)
        return out + (f"; {given}." if given else ".")


def verdict(plan: Plan) -> Verdict | None:
    """Forecast the errors of a plan's result, and judge them.

    Args:
        plan: the plan.

    Returns:
        The verdict. None for encoders that are only for comparison, and if no attribute varies.
    """
    outlook = _outlook(plan)
    if outlook is None or not any(outlook.columns):
        return None
    errors = _errors(outlook, _shares(plan, outlook))
    alone = _errors(replace(outlook, message_bytes=0), ALONE).three
    several = sum(map(len, outlook.columns)) > 1
    hopeless = several and errors.three > (1 - WORTH_IT) * alone
    word = "good" if errors.three <= GOOD else "rough"
    if errors.three > ROUGH or (hopeless and word != "good"):
        word = "useless"
    return Verdict(word, errors, alone, plan, outlook)


def stated(plan: Plan) -> Fields:
    """A plan's verdict, as reports have it: the sentence as ``"verdict"`` and, as ``"predicted"``,
    the figures of :class:`Errors` that it has, of three columns only if there are so many.
    """
    judged = verdict(plan)
    if judged is None:
        return {"verdict": "", "predicted": {}}
    figures = asdict(judged.errors)
    if figures.pop("ways") < 3:
        del figures["three"]
    known = {name: value for name, value in figures.items() if math.isfinite(value)}
    return {"verdict": str(judged), "predicted": known}


def links(plan: Plan) -> list[str]:
    """Sentences on how many pairs of columns are predicted to be known, and that name some: those of
    which a usual dependence stands out from the noise, in values or by a trend, and others.
    """
    outlook = _outlook(plan)
    held = [plan.schema.varying(name) for name in plan.party_names]
    if outlook is None or sum(map(len, held)) < 2:
        return []
    noise = distances(outlook, _shares(plan, outlook))
    inside = [pair for columns in held for pair in itertools.combinations(columns, 2)]
    across = [pair for two in itertools.combinations(held, 2) for pair in itertools.product(*two)]
    pairs, known = [*inside, *across], 0.0
    kinds: tuple[list[str], ...] = ([], [], [])
    for pair, size in zip(pairs, [*noise.within, *noise.across], strict=True):
        halved = [a in plan.halved for a in pair]
        trend = outlook.bins == 2 and any(halved)
        counts = [
            outlook.bins if half else plan.schema.sizes[a]
            for a, half in zip(pair, halved, strict=True)
        ]
        directions = 1 if trend else math.prod(count - 1 for count in counts)
        least = least_known(float(size), directions)
        known += math.exp(-least / DEPENDENCE)
        kind = 2 if least > DEPENDENCE else 1 if trend else 0
        kinds[kind].append(" × ".join(plan.schema.names[a] for a in pair))
    if known < 1:
        return [NO_LINKS]
    return [f"About {known:,.0f} of {len(pairs):,} pairs of columns {KNOWN}."] + [
        f"{len(some):,} of {len(pairs):,} pairs of columns {what}: {', '.join(first(some, MAX_PAIRS))}."
        for some, what in zip(kinds, LINKS, strict=True)
        if some
    ]


def least_known(noise: float, directions: int) -> float:
    """The least dependence of a pair that is known in its noise, as a distance.

    Squares of noise have the mean k and the variance 2 k in k directions; those of a dependence d with
    a distance n of noise are k (0.8 d / n)² more, since a mean absolute value is 0.8 standard deviations.

    Args:
        noise: the expected distance of noise.
        directions: dimensions of the dependence.
    """
    more = BEYOND_NOISE**2 + BEYOND_NOISE * math.sqrt(2 * directions)
    return noise * math.sqrt(math.pi / 2 * more / directions)


def useful(plan: Plan) -> Plan:
    """The plan, unless its result is predicted to be useless.

    Raises:
        PlanError: it is.
    """
    judged = verdict(plan)
    if judged is not None and judged.word == "useless":
        raise PlanError(
            f"{str(judged)[:-1]}. To take it all the same: even_if_useless=True (--even-if-useless)."
        )
    return plan


def percent(share: float | None) -> str:
    """A share of records with a sensible number of digits. A dash for None and NaN."""
    if share is None or math.isnan(share):
        return "–"
    digits = 0 if abs(share) >= 0.9995 else 1 if abs(share) >= 0.00995 else 2
    return f"{100 * share:.{digits}f} %".replace("-", "−")


def _outlook(plan: Plan) -> Outlook | None:
    """What was known before the plan; None for encoders for comparison."""
    if plan.sketch.compared:
        return None
    # Encoders are about equally accurate at their usual sizes.
    sketched = plan.message_bytes * MESSAGE_BYTES // plan.sketch.usual_bytes if plan.groups else 0
    return Outlook(
        tuple(
            tuple(plan.schema.sizes[a] for a in plan.schema.varying(name))
            for name in plan.party_names
        ),
        plan.expected_records,
        gaussian_rho(plan.epsilon, plan.delta) / plan.records_per_person**2,
        max(local.largest_clique for local in plan.local),
        sketched,
        kind_of(plan.encoder),
        tuple(
            tuple(a in plan.halved for a in plan.schema.varying(name)) for name in plan.party_names
        )
        if plan.halved
        else (),
        max([2, *(g.size for g in plan.groups if g.attributes[0] in plan.halved)]),
        any(local.choices for local in plan.local),
    )


def _shares(plan: Plan, outlook: Outlook) -> Shares:
    """The shares of the budget that a plan's noise follows from."""
    spent = alone = several = fine = 0.0
    for party, (sizes, local) in enumerate(zip(outlook.columns, plan.local, strict=True)):
        if local.fine_sigma:
            # Spent on values inside bins, of which these errors say nothing.
            fine += len(plan.fine_of(party)) / (2 * local.fine_sigma**2)
        one_way = larger = 0.0
        if sizes:
            one_way = len(sizes) / (2 * local.one_way_sigma**2)
        if local.units:
            larger += local.units / (2 * local.unit_sigma**2)
        if local.score_sigma and len(sizes) > 1:
            noise = local.score_sigma / SCORE_SENSITIVITY
            larger += math.comb(len(sizes), 2) / (2 * noise**2)
        if local.choices:
            larger += local.choices / (2 * local.choice_scale**2)
        spent += one_way + larger
        if len(sizes) > 1:
            # A party's only column has all of its budget, whatever the others' shares.
            alone, several = alone + one_way, several + one_way + larger
    count = 1 / (2 * plan.count_sigma**2)
    stated = plan.sketch.spent(outlook)
    across = max(outlook.rho - count - spent - fine, count) if stated is None else stated
    rho = outlook.rho
    return Shares(count / rho, spent / rho, across / rho, alone / several if several else 1.0)


def _errors(outlook: Outlook, shares: Shares) -> Errors:
    """Errors at a division of the budget."""
    noise = distances(outlook, shares)
    sizes = np.array(list(itertools.chain(*outlook.columns)), np.float64)

    def fitted(values: Floats, factor: float) -> Floats:
        # Without a measurement, noise is infinite and the dependence is lost.
        with np.errstate(divide="ignore"):
            noise = factor / (1 / values + PAIR_DAMPING * np.isfinite(values))
        return left(noise, DEPENDENCE)

    def rounding(columns: int) -> float:
        return math.sqrt(min(sizes.mean() ** columns / outlook.records, 1.0))

    def pair(lost: Floats) -> float:
        if not lost.size:
            return math.nan
        return math.hypot(column, math.sqrt(np.square(lost).mean()), PAIR_ROUNDING * rounding(2))

    scatter = PAIR_SCATTER * min(
        float(np.sqrt(sizes).mean()) ** 2 / math.sqrt(outlook.records), 1.0
    )
    trends = [flags & (outlook.bins == 2) for _, flags in outlook.by_party]
    halved_within = np.concatenate([_either(f, f)[np.triu_indices(len(f), 1)] for f in trends])
    halved_across = np.concatenate(
        [np.empty(0), *(_either(*two).ravel() for two in itertools.combinations(trends, 2))]
    )
    columns = noise.one_way / (1 + COLUMN_DAMPING * noise.one_way)
    column = float(columns.mean())
    within = np.hypot(fitted(noise.within, WITHIN), TREND_LEFT * halved_within)
    across = np.hypot(fitted(noise.across, ACROSS), TREND_LEFT * halved_across)
    k, pairs = min(len(sizes), 3), np.concatenate([within, across])
    squares = k * float(np.square(columns).mean())
    if k > 1:
        squares += math.comb(k, 2) * float(np.square(pairs).mean())
    three = math.hypot(math.sqrt(squares), THREE_ROUNDING * rounding(k))
    root = float((1 / np.sqrt(sizes)).mean())
    inside, between = pair(within), pair(across)
    comparisons = (COMPARISON * root * inside, COMPARISON * root * between)
    inside, between = (math.hypot(lost, scatter) for lost in (inside, between))
    correlation = correlation_error(outlook, shares)
    return Errors(
        column, inside, between, three, MEAN * root * column, *comparisons, k, correlation
    )


def _either(one: Flags, other: Flags) -> Flags:
    """Whether the first or the second column of each pair is halved."""
    return np.logical_or.outer(one, other)


def correlation_error(outlook: Outlook, shares: Shares) -> float:
    """Forecast of the error of the correlation of columns of two parties.

    With scores of mean 0 and variance 1, the noise of a sum over cells is that of a cell, times the
    root of the columns' numbers of values if these are equally frequent. A contrast has one number;
    what the halves of two Gaussian variables tell of their correlation has pi / 2 times its noise.
    Estimates that noise hides are drawn towards 0.

    Args:
        outlook: what is known of the run.
        shares: the division of the budget.

    Returns:
        The error, root mean square over pairs; NaN if nothing is measured across parties.
    """
    if not (shares.sketches and outlook.message_bytes and outlook.pairs_across):
        return math.nan
    squares = [
        np.where(
            halved,
            outlook.bins if outlook.bins > 2 else math.pi / 2,
            np.where(sizes == 2, 1.0, sizes),
        )
        for sizes, halved in outlook.by_party
    ]
    noise, form = [], []
    for one, other in itertools.combinations(range(len(squares)), 2):
        noise.append(np.outer(squares[one], squares[other]).ravel())
        halved = _either(outlook.by_party[one][1], outlook.by_party[other][1]).ravel()
        form.append(np.where(halved, TREND_FORM, BINS_FORM))
    error = cell_error(outlook, shares) / outlook.records
    of_pairs = np.hypot(error * np.sqrt(np.concatenate(noise)), np.concatenate(form))
    return float(np.sqrt(np.square(left(of_pairs, CORRELATION)).mean()))


def _remedies(plan: Plan, outlook: Outlook) -> Iterator[tuple[str, float]]:
    """Changes of a plan, each with the distance of three columns that it would give."""
    columns, epsilon = outlook.columns, MORE * plan.epsilon
    rho = gaussian_rho(epsilon, plan.delta) / plan.records_per_person**2
    changes = {
        "half the bins": tuple(tuple(max((u + 1) // 2, 2) for u in some) for some in columns),
        "half the columns": tuple(tuple(sorted(some)[: (len(some) + 1) // 2]) for some in columns),
    }
    changed = {
        name: replace(outlook, columns=some) for name, some in changes.items() if some != columns
    }
    changed[f"epsilon {epsilon:g}"] = replace(outlook, rho=rho)
    records = MORE * outlook.records
    changed[f"{records:,} records"] = replace(outlook, records=records)
    for name, other in changed.items():
        other = in_halves(other) if plan.halved else other
        shares = _shares(plan, outlook) if plan.sketch.exchanges else other.best()
        yield name, _errors(other, shares).three

"""Composition: the (epsilon, delta) of a list of events, and the scale of noise that meets a target."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import fft, optimize, signal, stats

from ..errors import PrivacyError
from .events import Event, LossGrid

__all__ = ["Spent", "by_pld", "by_renyi", "calibrate", "cumulative", "delta", "epsilon", "group_epsilon"]

Floats = npt.NDArray[np.float64]

# Rényi orders: dense where accounting of this kind has its optimum, wide enough for tiny and for huge budgets.
ORDERS = np.concatenate([1 + np.geomspace(1e-3, 1, 40), np.geomspace(2.05, 2000, 120)])
# Mass of the composed loss that the grid may leave out; it counts as an infinite loss.
TAIL = 1e-13
# Steps per standard deviation of the narrowest loss: composition then overstates epsilon by less than one part in a thousand.
STEPS_PER_SPREAD = 13.0
# Steps per standard deviation of the composed loss, which matters when there are few events.
STEPS_PER_TOTAL = 300.0
LARGEST_GRID = 1 << 22
# Points that the bounds on the composed loss are computed from.
BOUND_POINTS = 2000
# Relative error of a double-precision sum or transform, per repetition.
ROUNDING = 2.5e-16


@dataclass(frozen=True)
class Spent:
    """What a list of events spends.

    Attributes:
        epsilon: at the delta asked for; infinite when no epsilon meets it.
        method: "pld" (privacy-loss distributions) or "renyi", whichever is smaller.
    """

    epsilon: float
    method: str


def epsilon(events: Sequence[Event], delta: float) -> Spent:
    """Composed epsilon at ``delta``, adaptive composition included.

    Raises:
        PrivacyError: delta outside (0, 1), or no events.
    """
    _check(events, delta)
    if _resolution(events)[-1] >= delta:
        return Spent(float(by_renyi(events, delta)[-1]), "renyi")
    return cumulative(events, delta)[-1]


def cumulative(events: Sequence[Event], delta: float) -> list[Spent]:
    """Composed epsilon after each event, in order.

    Raises:
        PrivacyError: delta outside (0, 1), or no events.
    """
    pairs = zip(by_pld(events, delta), by_renyi(events, delta), strict=True)
    return [Spent(float(pld), "pld") if pld <= renyi else Spent(float(renyi), "renyi") for pld, renyi in pairs]


def by_pld(events: Sequence[Event], delta: float) -> Floats:
    """Composed epsilon after each event, by privacy-loss distributions; infinite where delta is below their resolution.

    Raises:
        PrivacyError: delta outside (0, 1), or no events.
    """
    _check(events, delta)
    resolved = int((_resolution(events) < delta).sum())
    worse = np.full(len(events), math.inf)
    if resolved:
        added, removed = (np.array(_epsilons(direction, delta)) for direction in _composed(events[:resolved]))
        worse[:resolved] = np.maximum(added, removed)
    return worse


def by_renyi(events: Sequence[Event], delta: float) -> Floats:
    """Composed epsilon after each event, by Rényi divergences (Canonne, Kamath and Steinke, 2020, proposition 12).

    Raises:
        PrivacyError: delta outside (0, 1), or no events.
    """
    _check(events, delta)
    renyi = np.cumsum([event.renyi(ORDERS) for event in events], axis=0)
    slack = np.log1p(-1 / ORDERS) - (math.log(delta) + np.log(ORDERS)) / (ORDERS - 1)
    least: Floats = np.maximum((renyi + slack).min(axis=1), 0.0)
    return least


def group_epsilon(events: Sequence[Event], delta: float, records: int) -> float:
    """Epsilon at ``delta`` for neighbours that differ in several records at once; infinite where no bound is found.

    What is (e, d)-private for one record is (k e, d (exp(k e) - 1) / (exp(e) - 1))-private for k (Vadhan, 2017, lemma 2.2). Every
    d that the events' Rényi divergences have an e for is tried, and the least k e that meets ``delta`` taken.

    Raises:
        PrivacyError: fewer than 1 record, delta outside (0, 1), or no events.
    """
    _check(events, delta)
    if records < 1:
        raise PrivacyError(f"A person has at least 1 record, not {records}.")
    renyi = np.sum([event.renyi(ORDERS) for event in events], axis=0)
    log_deltas = math.log(delta) - np.linspace(0, 3000, 6001)[:, None]
    slack = np.log1p(-1 / ORDERS) - (log_deltas + np.log(ORDERS)) / (ORDERS - 1)
    single = np.maximum((renyi + slack).min(axis=1), 1e-300)
    growth = (records - 1) * single + np.log(-np.expm1(-records * single)) - np.log(-np.expm1(-single))
    enough = single[log_deltas[:, 0] + growth <= math.log(delta) + 1e-12]
    return float(records * enough.min()) if enough.size else math.inf


def delta(events: Sequence[Event], epsilon: float) -> float:
    """Composed delta at ``epsilon``, by privacy-loss distributions.

    Raises:
        PrivacyError: epsilon negative or not finite, or no events.
    """
    if not (math.isfinite(epsilon) and epsilon >= 0):
        raise PrivacyError(f"epsilon must be a finite number of at least 0, not {epsilon}.")
    _check(events, 0.5)
    worst = 0.0
    for step, lowest, masses, infinite in _composed(events):
        losses = (np.arange(len(masses[-1])) + lowest) * step
        above = losses > epsilon
        worst = max(worst, float((masses[-1][above] * -np.expm1(epsilon - losses[above])).sum()) + infinite[-1])
    return min(worst, 1.0)


def calibrate(events_at: Callable[[float], Sequence[Event]], target: float, delta: float) -> float:
    """The largest scale whose events spend at most ``target`` at ``delta``.

    Args:
        events_at: events at a scale in zCDP units: twice the scale, about twice the ``rho`` of every event.
        target: epsilon to meet.
        delta: delta to meet it at.

    Returns:
        A scale whose epsilon lies within one part in a thousand below the target, or as near as whole numbers of phantoms allow.

    Raises:
        PrivacyError: target not above 0, delta outside (0, 1), or no noise that meets them.
    """
    if not (math.isfinite(target) and target > 0):
        raise PrivacyError(f"The target epsilon must be a number above 0, not {target}.")
    if not 0 < delta < 1:
        raise PrivacyError(f"delta must lie strictly between 0 and 1, not {delta}.")
    guess = math.log(gaussian_rho(target, delta))
    low, high = -math.inf, math.inf
    low_spent = high_spent = 0.0
    hopeless = PrivacyError(
        f"No noise meets epsilon {target} at delta {delta}; what is already spent exceeds it: raise the target."
    )
    for attempt in range(40):
        # What does not scale decides in the end, and a millionth of the first guess leaves little else.
        if (
            attempt == 3
            and not math.isfinite(low)
            and epsilon(events_at(gaussian_rho(target, delta) * 1e-6), delta).epsilon > target
        ):
            raise hopeless
        spent = epsilon(events_at(math.exp(guess)), delta).epsilon
        if spent <= target:
            low, low_spent = guess, spent
            if spent >= target * (1 - 1e-3):
                return math.exp(low)
        else:
            high, high_spent = guess, spent
        if high - low < 1e-6:
            break
        # epsilon grows about as the root of the scale; aim a little below the target, and bisect once both sides are known
        # and the aim leaves the bracket.
        aim = guess + 2 * math.log(target * (1 - 4e-4) / spent) if math.isfinite(spent) and spent > 0 else guess - 2
        if math.isfinite(low) and math.isfinite(high):
            if math.isfinite(high_spent):
                along = (target * (1 - 4e-4) - low_spent) / (high_spent - low_spent)
                aim = low + (high - low) * min(max(along, 0.05), 0.95)
            else:
                aim = 0.5 * (low + high)
        guess = aim
        if guess < -80:
            break
    if math.isfinite(low):
        return math.exp(low)
    raise hopeless


def gaussian_rho(epsilon: float, delta: float) -> float:
    """zCDP of the Gaussian mechanism that spends exactly (epsilon, delta) (Balle and Wang, 2018)."""

    def excess(log_mu: float) -> float:
        mu = math.exp(log_mu)
        first = stats.norm.logcdf(-epsilon / mu + mu / 2)
        second = epsilon + stats.norm.logcdf(-epsilon / mu - mu / 2)
        return float(np.exp(first) - np.exp(second) - delta)

    return 0.5 * math.exp(2 * optimize.brentq(excess, math.log(1e-60), math.log(1e4)))


def _check(events: Sequence[Event], delta: float) -> None:
    if not events:
        raise PrivacyError("There are no events to account for.")
    if not 0 < delta < 1:
        raise PrivacyError(f"delta must lie strictly between 0 and 1, not {delta}.")


def _resolution(events: Sequence[Event]) -> Floats:
    """Mass that rounding and cut tails alone count as infinite losses after each event; no smaller delta has an epsilon then."""
    return np.cumsum([TAIL + event.count * ROUNDING for event in events]) + TAIL


Composed = tuple[float, int, list[Floats], list[float]]


def _composed(events: Sequence[Event]) -> list[Composed]:
    """Composed loss distributions of every prefix of the events, a record added and a record removed.

    dp-accounting composes the same distributions pair by pair. One Fourier transform per event gives the whole ledger, prefix by
    prefix, in a third of the time (``benchmarks/bench_accountant.py``), which a calibration asks for a dozen times; a test holds
    both together.

    Returns:
        Per direction: grid step, index of the lowest loss, masses after each event, infinite-loss mass after each event.
    """
    total = math.sqrt(sum(event.count * event.spread**2 for event in events))
    step = min(min(event.spread for event in events) / STEPS_PER_SPREAD, total / STEPS_PER_TOTAL)
    step = max(step, (total * 14 + total**2 * 2) / LARGEST_GRID)
    counts = [event.count for event in events]
    while True:
        directions = [
            [_without_rare(grid, count) for grid, count in zip(grids, counts, strict=True)]
            for grids in zip(*(event.losses(step) for event in events), strict=True)
        ]
        supports = [_support(grids, counts, step) for grids in directions]
        size = max(size for _, size in supports)
        if size <= LARGEST_GRID:
            return [_compose(grids, counts, step, *at) for grids, at in zip(directions, supports, strict=True)]
        step *= 1.1 * size / LARGEST_GRID


def _without_rare(grid: LossGrid, count: int) -> LossGrid:
    """The grid without its largest losses, as many as together have less than TAIL in all repetitions: they count as infinite."""
    above = np.cumsum(grid.mass[::-1])[::-1]
    kept = np.nonzero(above * count >= TAIL)[0]
    return LossGrid(grid.lowest, grid.mass[: kept[-1] + 1])


def _compose(grids: list[LossGrid], counts: list[int], step: float, lowest: int, size: int) -> Composed:
    length = fft.next_fast_len(size, real=True)
    spectrum = np.ones(length // 2 + 1, np.complex128)
    finite = lost = 0.0
    masses, infinite = [], []
    for grid, count in zip(grids, counts, strict=True):
        wrapped = np.zeros(length)
        occupied = np.nonzero(grid.mass)[0]
        np.add.at(wrapped, (occupied + grid.lowest) % length, grid.mass[occupied])
        spectrum *= fft.rfft(wrapped, workers=-1) ** count
        finite += count * math.log(min(float(grid.mass.sum()), 1.0))
        # What was cut off, and what rounding may do to the spectrum and to its power.
        lost += TAIL + count * ROUNDING
        mass = np.roll(fft.irfft(spectrum, length, workers=-1), -lowest)[:size]
        masses.append(np.maximum(mass, 0.0))
        infinite.append(-math.expm1(finite) + TAIL + lost + 1e-17 * length)
    return step, lowest, masses, infinite


def _support(grids: list[LossGrid], counts: list[int], step: float) -> tuple[int, int]:
    """Chernoff bounds that all but TAIL of every prefix's loss lies within: index of the lowest loss, number of points."""
    orders = np.geomspace(1e-3, 3000, 80)
    orders = np.concatenate([-orders, orders])
    lowest, highest = 0, 0
    least = most = 0
    exponent = np.zeros(len(orders))
    for grid, count in zip(grids, counts, strict=True):
        # Runs of points count as their outer end, so that a long grid takes no longer than a short one.
        run = -(-len(grid.mass) // BOUND_POINTS)
        mass = np.append(grid.mass, np.zeros(-len(grid.mass) % run)).reshape(-1, run).sum(axis=1)
        occupied = np.nonzero(mass)[0]
        first = grid.lowest + run * occupied
        ends = np.where(orders[:, None] > 0, first + run - 1, first)
        tilted = orders[:, None] * ends * step
        top = tilted.max(axis=1, keepdims=True)
        exponent += count * (top[:, 0] + np.log((np.exp(tilted - top) * mass[occupied]).sum(axis=1)))
        bounds = (exponent + math.log(2 * len(grids) / TAIL)) / orders
        least += count * int(first[0])
        most += count * int(first[-1] + run - 1)
        highest = max(highest, min(math.ceil(bounds[orders > 0].min() / step), most))
        lowest = min(lowest, max(math.floor(bounds[orders < 0].max() / step), least))
    return lowest, highest - lowest + 1


def _epsilons(composed: Composed, delta: float) -> list[float]:
    """Smallest epsilon at ``delta`` after each event."""
    step, lowest, masses, infinite = composed
    losses = (np.arange(len(masses[0])) + lowest) * step
    zero = max(-lowest, 0)
    out = []
    for mass, beyond in zip(masses, infinite, strict=True):
        # delta(e) = sum over losses l >= e of mass(l) (1 - exp(e - l)); the second part is a recursion from the largest loss
        # down, which neither overflows nor cancels.
        tail = mass[zero:][::-1]
        above = (np.cumsum(tail) + beyond)[::-1]
        weighed = signal.lfilter([1.0], [1.0, -math.exp(-step)], tail)[::-1]
        within = np.nonzero(above - weighed <= delta)[0]
        if not len(within):
            out.append(math.inf)
            continue
        first = int(within[0])
        # Between grid points delta(e) = above - exp(e - l) weighed, with l the upper one: solve for e.
        upper = float(losses[zero + first])
        short = float(above[first]) - delta
        between = math.log(short / float(weighed[first])) if short > 0 and weighed[first] > 0 else -math.inf
        out.append(max(upper + max(between, -step), 0.0))
    return out

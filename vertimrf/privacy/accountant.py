"""Composition: the (epsilon, delta) of a list of events, and the scale of noise that meets a target."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import fft, special

from ..errors import PrivacyError
from .events import Event, LossGrid

__all__ = ["Spent", "by_pld", "by_renyi", "calibrate", "cumulative", "delta", "epsilon", "group_epsilon"]

Floats = npt.NDArray[np.float64]
Complex = npt.NDArray[np.complex128]

# Rényi orders: dense where accounting of this kind has its optimum, wide enough for tiny and for huge budgets.
ORDERS = np.concatenate([1 + np.geomspace(1e-3, 1, 40), np.geomspace(2.05, 2000, 120)])
# Mass of the composed loss that the grid may leave out; it counts as an infinite loss.
TAIL = 1e-13
# Steps per standard deviation of the narrowest loss: composition then overstates epsilon by less than one part in a thousand.
STEPS_PER_SPREAD = 13.0
# Steps per standard deviation of the composed loss, which matters when there are few events.
STEPS_PER_TOTAL = 300.0
LARGEST_GRID = 1 << 22
# Part of the composed loss's variance that rounding may add at least, however narrow some of the losses (see _step).
SLACK = 3e-5
# From this weight on (zCDP units), far beyond any protection, epsilon is told by Rényi divergences alone.
MOST_RHO = 1e6
# Points that the bounds on the composed loss are computed from.
BOUND_POINTS = 2000
# Relative error of a double-precision sum or transform, per repetition.
ROUNDING = 2.5e-16
# A spectrum below this is as good as zero: summed over the longest grid it stays below what is added for rounding.
NEGLIGIBLE = 1e-25
# A transform is summed term by term where that takes fewer terms than so many times its length.
FEW_TERMS = 10
# A spectrum that has more than one in so many of its frequencies is transformed back rather than summed.
MANY_BINS = 64
# Powers of e that one block of a recursion reaches over.
SPAN = 100.0


@dataclass(frozen=True)
class Spent:
    """What a list of events spends.

    Attributes:
        epsilon: at the delta asked for; infinite when no epsilon meets it.
        method: "pld" (privacy-loss distributions) or "renyi", whichever is smaller.
    """

    epsilon: float
    method: str


def epsilon(events: Sequence[Event], delta: float, enough: float = 0.0) -> Spent:
    """Composed epsilon at ``delta``, adaptive composition included.

    Args:
        events: what is composed.
        delta: to tell epsilon at.
        enough: where privacy-loss distributions tell so little or less, Rényi divergences, which for some events take ten times
            as long, are not asked.

    Raises:
        PrivacyError: delta outside (0, 1), or no events.
    """
    _check(events, delta)
    if _resolution(events)[-1] >= delta or not sum(event.rho for event in events) <= MOST_RHO:
        return Spent(float(by_renyi(events, delta)[-1]), "renyi")
    # What narrows the composed loss's spectrum most comes first: there is less left to compute for the others.
    ordered = sorted(events, key=lambda event: -event.count * event.spread**2)
    pld = max(_epsilon(direction[-1], delta) for direction in _composed(ordered))
    if pld <= enough:
        return Spent(pld, "pld")
    return _smaller(pld, float(by_renyi(events, delta)[-1]))


def cumulative(events: Sequence[Event], delta: float) -> list[Spent]:
    """Composed epsilon after each event, in order.

    Raises:
        PrivacyError: delta outside (0, 1), or no events.
    """
    pairs = zip(by_pld(events, delta), by_renyi(events, delta), strict=True)
    return [_smaller(float(pld), float(renyi)) for pld, renyi in pairs]


def _smaller(pld: float, renyi: float) -> Spent:
    return Spent(pld, "pld") if pld <= renyi else Spent(renyi, "renyi")


def by_pld(events: Sequence[Event], delta: float) -> Floats:
    """Composed epsilon after each event, by privacy-loss distributions; infinite where delta is below their resolution.

    Raises:
        PrivacyError: delta outside (0, 1), or no events.
    """
    _check(events, delta)
    light = np.cumsum([event.rho for event in events]) <= MOST_RHO
    resolved = int(((_resolution(events) < delta) & light).sum())
    worse = np.full(len(events), math.inf)
    if resolved:
        directions = _composed(events[:resolved])
        worse[:resolved] = np.max([[_epsilon(prefix, delta) for prefix in direction] for direction in directions], axis=0)
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
    for direction in _composed(events):
        loss = direction[-1]
        # Past the highest loss there is nothing left but what counts as infinite.
        first = min(max(math.floor(epsilon / loss.step) + 1, loss.lowest), loss.end)
        above, weighed = loss.tail(first)
        finite = above - math.exp(min(epsilon - first * loss.step, 0.0)) * weighed
        worst = max(worst, max(finite, 0.0) + loss.infinite)
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
    """zCDP of the Gaussian mechanism that spends (epsilon, delta), to a part in 10^9 (Balle and Wang, 2018)."""

    def excess(log_mu: float) -> float:
        mu = math.exp(log_mu)
        first = special.log_ndtr(-epsilon / mu + mu / 2)
        second = epsilon + special.log_ndtr(-epsilon / mu - mu / 2)
        return float(np.exp(first) - np.exp(second) - delta)

    low, high = math.log(1e-60), math.log(1e4)
    while high - low > 1e-9:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if excess(middle) > 0 else (middle, high)
    return 0.5 * math.exp(low + high)


def _fading_sums(values: Floats, step: float) -> Floats:
    """Sums over j <= i of values[j] exp((j - i) step), for every i; no value is negative.

    Block by block, so that no power leaves the range of a double (SciPy's ``lfilter`` takes a second to import).
    """
    block = max(min(int(SPAN / step), values.size), 1)
    rows = np.append(values, np.zeros(-values.size % block)).reshape(-1, block)
    rising = np.exp(step * np.arange(block))
    out = np.cumsum(rows * rising, axis=1) / rising
    held = 0.0
    for row in out:
        row += held * math.exp(-step) / rising
        held = float(row[-1])
    flat: Floats = out.ravel()[: values.size]
    return flat


def _check(events: Sequence[Event], delta: float) -> None:
    if not events:
        raise PrivacyError("There are no events to account for.")
    if not 0 < delta < 1:
        raise PrivacyError(f"delta must lie strictly between 0 and 1, not {delta}.")


def _resolution(events: Sequence[Event]) -> Floats:
    """Mass that rounding and cut tails alone count as infinite losses after each event; no smaller delta has an epsilon then."""
    return np.cumsum([TAIL + event.count * ROUNDING for event in events]) + TAIL


@dataclass(frozen=True, eq=False)
class Composed:
    """A composed privacy loss on a grid, by its spectrum.

    The spectrum of a sum of many losses is all but zero beyond its lowest frequencies, a handful out of millions; what hangs on
    it is summed over those alone, in closed form.

    Attributes:
        step: grid step.
        lowest: index of the lowest loss; all but TAIL of the finite losses lie within ``size`` points from there.
        length: points of the transform, ``size`` or more.
        bins: frequencies at which the spectrum is not negligible, increasing, in turns per ``length`` [shape=(k,), int64].
        spectrum: the transform of the masses there [shape=(k,), complex128].
        infinite: mass of an infinite loss, with all that was cut off or may be lost to rounding.
    """

    step: float
    lowest: int
    size: int
    length: int
    bins: npt.NDArray[np.int64]
    spectrum: Complex
    infinite: float

    @property
    def end(self) -> int:
        """Index past the highest loss."""
        return self.lowest + self.size

    @cached_property
    def _waves(self) -> tuple[npt.NDArray[np.int64], Complex, Complex]:
        """Frequencies above 0, and the coefficients of :meth:`tail`'s two sums there."""
        positive = self.bins > 0
        bins = self.bins[positive]
        # A real transform has each of them twice, but for the highest of an even length.
        twice = self.spectrum[positive] * np.where(2 * bins == self.length, 1.0, 2.0)
        turned = -_turns_less_1(bins, self.length)
        return bins, twice / turned, twice / (math.exp(-self.step) * turned - math.expm1(-self.step))

    @cached_property
    def _beyond(self) -> tuple[float, float]:
        """What :meth:`tail`'s two geometric sums would add from past the highest loss on."""
        bins, plain, fading = self._waves
        turn = self._turn(bins, self.end)
        return float((plain * turn).sum().real), float((fading * turn).sum().real)

    @cached_property
    def _mean(self) -> float:
        return float(self.spectrum[0].real) if self.bins.size and self.bins[0] == 0 else 0.0

    def _turn(self, bins: npt.NDArray[np.int64], index: int) -> Complex:
        return 1 + _turns_less_1(bins * index, self.length)

    @cached_property
    def _tails(self) -> tuple[Floats, Floats]:
        """Both of :meth:`tail`'s sums from every loss on."""
        full = np.zeros(self.length // 2 + 1, np.complex128)
        full[self.bins] = self.spectrum
        mass = np.roll(fft.irfft(full, self.length, workers=-1), -self.lowest)[: self.size]
        falling = np.append(0.0, np.maximum(mass, 0.0)[::-1])
        # A recursion from the largest loss down neither overflows nor cancels.
        faded = _fading_sums(falling, self.step)
        return np.cumsum(falling)[::-1], faded[::-1]

    def tail(self, first: int) -> tuple[float, float]:
        """Two sums over the losses from index ``first`` on: of the masses, and of mass * exp((first - index) * step)."""
        if self.bins.size * MANY_BINS > self.length:
            above, weighed = (float(sums[min(first - self.lowest, self.size)]) for sums in self._tails)
            return above, weighed
        bins, plain, fading = self._waves
        count = max(self.end - first, 0)
        faded = -math.expm1(-self.step * count)
        turn = self._turn(bins, first)
        beyond_plain, beyond_fading = self._beyond
        above = self._mean * count + float((plain * turn).sum().real) - beyond_plain
        weighed = self._mean * faded / -math.expm1(-self.step)
        weighed += float((fading * turn).sum().real) - (1 - faded) * beyond_fading
        return above / self.length, weighed / self.length


def _composed(events: Sequence[Event]) -> list[list[Composed]]:
    """Composed loss distributions of every prefix of the events, a record added and a record removed.

    dp-accounting composes the same distributions pair by pair. Transforms of the first one or two events tell which frequencies
    are left at all, and the others' are summed at those: about a tenth of the time (``benchmarks/accountant.py``), which a
    calibration asks for a dozen times; a test holds both together.
    """
    step = _step(events)
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


def _step(events: Sequence[Event]) -> float:
    """Step of the grid that events are composed on.

    Whatever the step, each event's grid dominates it (:func:`~vertimrf.privacy.events.connect_the_dots`), so the composed epsilon
    is an upper bound; the step only decides how far above. A loss l between multiples a and b = a + h becomes one of them, which
    adds (l - a) (b - l) <= h min(|l|, h / 4) to the variance, but for a factor of 1 + h / 2, and half of that to the mean. So
    events with a spread s, the root of the mean of l^2, add at most the sum of count h min(s, h / 4). Where that is SLACK of the
    composed variance, epsilon rises by about half of SLACK, and no finer step is worth its time: an event of next to no loss
    would ask for the finest grid there is. What such events cost by themselves, as the first of a list, is rounded up by more, to
    about h.
    """
    counts = np.array([event.count for event in events], np.float64)
    spreads = np.array([event.spread for event in events])
    total = math.sqrt(float((counts * spreads**2).sum()))
    if total == 0:
        # Nothing is revealed at all.
        return 1.0
    coarsest = total / STEPS_PER_TOTAL
    tried = coarsest * np.geomspace(1e-9, 1, 2000)
    gained = (counts * tried[:, None] * np.minimum(spreads, tried[:, None] / 4)).sum(axis=1)
    enough = float(tried[max(int(np.searchsorted(gained, SLACK * total**2)) - 1, 0)])
    step = max(min(float(spreads.min()) / STEPS_PER_SPREAD, coarsest), enough)
    return max(step, (total * 14 + total**2 * 2) / LARGEST_GRID)


def _without_rare(grid: LossGrid, count: int) -> LossGrid:
    """The grid without its largest losses, as many as together have less than TAIL in all repetitions: they count as infinite."""
    above = np.cumsum(grid.mass[::-1])[::-1]
    kept = np.nonzero(above * count >= TAIL)[0]
    return LossGrid(grid.lowest, grid.mass[: kept[-1] + 1])


def _compose(grids: list[LossGrid], counts: list[int], step: float, lowest: int, size: int) -> list[Composed]:
    length = fft.next_fast_len(size, real=True)
    bins = np.arange(length // 2 + 1)
    spectrum = np.ones(length // 2 + 1, np.complex128)
    finite = lost = 0.0
    out = []
    for grid, count in zip(grids, counts, strict=True):
        few = FEW_TERMS * length // len(grid.mass)
        if len(bins) > few:
            transform = _transform(grid, length)[bins]
            kept = np.abs(transform) > NEGLIGIBLE ** (1 / count)
            bins, spectrum, transform = bins[kept], spectrum[kept], transform[kept]
        spectrum = spectrum * (transform**count if len(bins) > few else _power_at(grid, count, bins, length))
        kept = np.abs(spectrum) > NEGLIGIBLE
        bins, spectrum = bins[kept], spectrum[kept]
        finite += count * math.log(min(float(grid.mass.sum()), 1.0))
        # What was cut off, and what rounding may do to the spectrum and to its power.
        lost += TAIL + count * ROUNDING
        infinite = -math.expm1(finite) + TAIL + lost + 1e-17 * length
        out.append(Composed(step, lowest, size, length, bins, spectrum, infinite))
    return out


def _transform(grid: LossGrid, length: int) -> Complex:
    """The discrete Fourier transform of a grid's masses [shape=(length // 2 + 1,)]."""
    wrapped = np.zeros(length)
    occupied = np.nonzero(grid.mass)[0]
    np.add.at(wrapped, (occupied + grid.lowest) % length, grid.mass[occupied])
    out: Complex = fft.rfft(wrapped, workers=-1)
    return out


def _power_at(grid: LossGrid, count: int, bins: npt.NDArray[np.int64], length: int) -> Complex:
    """A power of the transform at some frequencies [shape of bins].

    Written as 1 + what it differs by from 1, which is small and keeps its digits, as millions of repetitions ask for.
    """
    # Points in rows of about as many: only turns within a row, w, and from row to row, s, are needed, less 1 each, and
    # (1 + s) (1 + w) - 1 = (1 + s) w + s.
    width = math.isqrt(len(grid.mass)) + 1
    rows = np.append(grid.mass, np.zeros(-len(grid.mass) % width)).reshape(-1, width)
    within = np.einsum("rw,wk->rk", rows, _turns_less_1(-np.arange(width)[:, None] * bins, length))
    starts = _turns_less_1(-(grid.lowest + width * np.arange(len(rows)))[:, None] * bins, length)
    away = (within * (1 + starts) + starts * rows.sum(axis=1)[:, None]).sum(axis=0) + (float(grid.mass.sum()) - 1)
    squared = np.maximum(2 * away.real + away.real**2 + away.imag**2, -1.0)
    with np.errstate(divide="ignore"):  # a frequency that the masses cancel at
        size = np.exp(0.5 * count * np.log1p(squared))
    angle = count * np.arctan2(away.imag, 1 + away.real)
    out: Complex = size * np.cos(angle) + 1j * (size * np.sin(angle))
    return out


def _turns_less_1(times: npt.NDArray[np.int64], length: int) -> Complex:
    """exp(2 pi i times / length) - 1; whole turns are taken out first, exactly."""
    half = (math.pi / length) * ((times + length // 2) % length - length // 2)
    sine = np.sin(half)
    out: Complex = 2j * sine * np.cos(half) - 2 * sine**2
    return out


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


def _epsilon(loss: Composed, delta: float) -> float:
    """Smallest epsilon at ``delta``."""
    # delta(e) = sum over losses l >= e of mass(l) (1 - exp(e - l)), which falls as e grows.
    first, last = max(loss.lowest, 0), loss.end - 1

    def excess(index: int) -> float:
        above, weighed = loss.tail(index)
        return above + loss.infinite - weighed - delta

    if excess(last) > 0:
        return math.inf
    below = first - 1
    while last - below > 1:
        middle = (below + last) // 2
        if excess(middle) <= 0:
            last = middle
        else:
            below = middle
    # Between grid points delta(e) = above - exp(e - l) weighed, with l the upper one: solve for e.
    above, weighed = loss.tail(last)
    short = above + loss.infinite - delta
    between = math.log(short / weighed) if short > 0 and weighed > 0 else -math.inf
    return max(last * loss.step + max(between, -loss.step), 0.0)

"""Composition: the (epsilon, delta) of a list of events, and the noise scale that meets a target.

The privacy loss X of a run is a sum of independent losses, so its moments E exp(z X) are products.
The delta at epsilon is E max(1 - exp(epsilon - X), 0). It is an integral of the moments along a
line z = tilt + i w, for any tilt > 0 (an inverse Laplace transform):

    delta(epsilon) = 1 / (2 pi) int E exp(z (X - epsilon)) / (z (z + 1)) dw.

The tilt is chosen where the Chernoff bound E exp(tilt (X - epsilon)) is smallest. There no term is
much larger than delta itself, so rounding errors stay small relative to delta, however small delta
is.

The integral is computed as a sum over w = 2 pi k / period. By Poisson's summation formula, this sum
is the integral with max(1 - exp(-u), 0) exp(-tilt u), at u = X - epsilon, replaced by its sum over
u, u + period, u - period, and so on. No term is negative. So the sum is an upper bound for any
period, and the period is chosen so that the bound is tight. Bounds on the omitted frequencies and
on rounding errors are added (:class:`Composed`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real

import numpy as np
import numpy.typing as npt
from numpy import fft
from scipy import special

from ..arguments import shown
from ..arrays import Floats, Integers
from ..errors import PrivacyError, VertiMRFError
from .count_sketch import fast_length
from .events import Event
from .losses import LossGrid

Complex = npt.NDArray[np.complex128]

# Rényi orders: dense near the usual optimum, and wide enough for tiny and for huge budgets.
ORDERS = np.concatenate([1 + np.geomspace(1e-3, 1, 40), np.geomspace(2.05, 2000, 120)])
# Grid steps per standard deviation of one loss, and per standard deviation of the composed loss
# (for few events). A grid adds at most a quarter of a squared step to the variance: epsilon grows
# by less than 10^-4.
STEPS_PER_SPREAD, STEPS_PER_TOTAL = 50.0, 500.0
# The largest losses of an event count as infinite, up to this part of delta.
CUT = 1e-5
# What the repetition with a period adds, approximately, as a part of delta.
WRAPPED = 1e-6
# Standard deviation of an added Gaussian loss, as a part of that of the composed loss. It costs
# less than a thousandth of epsilon and bounds the frequencies: after LAST standard deviations the
# spectrum is below exp(-LAST^2 / 2).
SMOOTHING, LAST = 1e-3, 9.0
MAX_FREQUENCIES = 1 << 16
# Delta lies at most about this many powers of e below its Chernoff bound; rounding error, relative
# to that bound, that is accepted for a larger tilt.
LOOSE, WORTH = 10.0, 1e-10
# Above this weight (zCDP units), far beyond any protection, only Rényi divergences are used.
MAX_RHO = 1e6
# Rényi divergences are not computed if infinite losses take less than this part of delta.
RESOLVED = 0.05
# Smallest delta that losses are composed at. Parts of a smaller one are 0.
LEAST_DELTA = 1e-300
# A delta, and a standard deviation of the composed loss, that count as 0.
MIN_DELTA, MIN_TOTAL = 1e-250, 1e-15
# Most records of a person whose epsilon is computed, as of a plan.
MAX_GROUP = 10**12
# Relative distance from the target at which calibration stops.
CLOSE = 1e-4
# Candidate tilts, times the standard deviation of the composed loss.
TILTS = np.geomspace(5e-2, 5e3, 24)
FINER = np.geomspace(0.6, 1 / 0.6, 9)
# Relative error of a computed moment and of its power, per repetition.
ROUNDING = 1e-14
# This many repetitions are certain to narrow a spectrum; losses at a few atoms alone may not.
MANY = 32
# A spectrum and a variance below these count as 0.
NEGLIGIBLE, TINY = 1e-25, 1e-300
# Largest length of a fast Fourier transform, and table entries computed at a time.
MAX_LENGTH, AT_ONCE = 1 << 24, 1 << 22


@dataclass(frozen=True)
class Spent:
    """Privacy spent by a list of events.

    Attributes:
        epsilon: epsilon at the given delta; infinite if no epsilon meets it.
        method: the method with the smaller epsilon, "pld" (privacy-loss distributions) or "renyi".
    """

    epsilon: float
    method: str


def epsilon(events: Sequence[Event], delta: float) -> Spent:
    """Composed epsilon at ``delta``; adaptive composition is covered.

    Args:
        events: the events, in order.
        delta: delta of the whole list, between 0 and 1.

    Raises:
        PrivacyError: delta is below 1e-300 or not below 1, or there are no events.
    """
    return cumulative(events, delta, 1)[-1]


def cumulative(events: Sequence[Event], delta: float, last: int | None = None) -> list[Spent]:
    """Composed epsilon after each event. It never decreases from one event to the next.

    Args:
        events: the events, in order.
        delta: delta of the whole list, between 0 and 1.
        last: number of final entries to compute; default all.

    Raises:
        PrivacyError: delta is below 1e-300 or not below 1, or there are no events.
    """
    _check(events, delta)
    weights = np.cumsum([event.rho for event in events])
    light = int((weights <= MAX_RHO).sum())
    directions = _losses(events[:light], delta) if light else []
    out: list[Spent] = []
    for end in range(len(events), len(events) - (len(events) if last is None else last), -1):
        # Directions whose losses are the same up to here are composed once.
        sides = dict.fromkeys(losses[:end] for losses in directions) if end <= light else ()
        composed = [_compose(losses, delta) for losses in sides]
        pld = max((loss.epsilon(delta) for loss in composed), default=math.inf)
        spent = Spent(pld, "pld")
        if pld == math.inf or max(loss.infinite for loss in composed) >= RESOLVED * delta:
            # Infinite losses take a part of delta. Rényi divergences have no such part.
            renyi = Spent(float(by_renyi(events[:end], delta)[-1]), "renyi")
            spent = min(spent, renyi, key=lambda spent: spent.epsilon)
        # Part of a release costs no more than the whole, but the two bounds may differ slightly.
        out.append(min([spent, *out[-1:]], key=lambda spent: spent.epsilon))
    return out[::-1]


def by_renyi(events: Sequence[Event], delta: float) -> Floats:
    """Composed epsilon after each event, by Rényi divergences.

    Source: Canonne, Kamath and Steinke (2020), proposition 12.

    Args:
        events: the events, in order.
        delta: delta of the whole list, between 0 and 1.

    Returns:
        Epsilon after each event [shape=(n,), float64].

    Raises:
        PrivacyError: delta is below 1e-300 or not below 1, or there are no events.
    """
    _check(events, delta)
    renyi = np.cumsum([event.renyi(ORDERS) for event in events], axis=0)
    slack = np.log1p(-1 / ORDERS) - (math.log(delta) + np.log(ORDERS)) / (ORDERS - 1)
    least: Floats = np.maximum((renyi + slack).min(axis=1), 0.0)
    return least


def group_epsilon(events: Sequence[Event], delta: float, records: int) -> float:
    """Epsilon at ``delta`` for neighbours that differ in several records.

    If a mechanism is (e, d)-private for one record, it is (k e, d (exp(k e) - 1) / (exp(e) -
    1))-private for k records (Vadhan, 2017, lemma 2.2). The function tries every d for which the
    Rényi divergences give an e, and returns the least k e that meets ``delta``.

    Args:
        events: the events of the run.
        delta: delta of the whole list, between 0 and 1.
        records: number of records in which neighbours differ.

    Returns:
        Epsilon; infinite if there is no bound.

    Raises:
        PrivacyError: the number of records or delta is out of range, or there are no events.
    """
    _check(events, delta)
    check_group(records)
    renyi = np.sum([event.renyi(ORDERS) for event in events], axis=0)
    log_deltas = math.log(delta) - np.linspace(0, 3000, 6001)[:, None]
    slack = np.log1p(-1 / ORDERS) - (log_deltas + np.log(ORDERS)) / (ORDERS - 1)
    single = np.maximum((renyi + slack).min(axis=1), 1e-300)
    growth = (
        (records - 1) * single + np.log(-np.expm1(-records * single)) - np.log(-np.expm1(-single))
    )
    enough = single[log_deltas[:, 0] + growth <= math.log(delta) + 1e-12]
    return float(records * enough.min()) if enough.size else math.inf


def delta(events: Sequence[Event], epsilon: float) -> float:
    """Composed delta at ``epsilon``, by privacy-loss distributions.

    Raises:
        PrivacyError: epsilon is negative or not finite, or there are no events.
    """
    if not (math.isfinite(epsilon) and epsilon >= 0):
        raise PrivacyError(f"epsilon must be a finite number of at least 0, not {epsilon}.")
    _check(events, 0.5)
    guess = 1e-6
    while True:
        estimate = max(
            _compose(losses, guess, epsilon).delta(epsilon) for losses in _losses(events, guess)
        )
        # The part of the loss that may be cut off depends on the estimate.
        if estimate >= 0.1 * guess or guess < MIN_DELTA:
            return min(estimate, 1.0)
        guess = max(estimate, 1e-6 * guess)


def calibrate(events_at: Callable[[float], Sequence[Event]], target: float, delta: float) -> float:
    """The largest scale whose events spend at most ``target`` at ``delta``.

    Args:
        events_at: returns the events at a scale in zCDP units; twice the scale means about twice
            the ``rho`` of every event.
        target: epsilon to meet, above 0.
        delta: delta to meet it at, between 0 and 1.

    Returns:
        A scale whose epsilon lies within one part in 10^4 below the target, or as near as whole
        numbers of phantoms allow.

    Raises:
        PrivacyError: the target is not above 0, delta lies outside (0, 1), or no noise meets them.
    """
    if not (math.isfinite(target) and target > 0):
        raise PrivacyError(f"The target epsilon must be a number above 0, not {target}.")
    check_delta(delta)
    guess = math.log(gaussian_rho(target, delta))
    low, high = -math.inf, math.inf
    low_spent = high_spent = 0.0
    hopeless = PrivacyError(
        f"No noise meets epsilon {target} at delta {delta}; what is already spent exceeds it: raise the target."
    )
    for attempt in range(40):
        # A millionth of the first guess shows whether the events that do not scale exceed the
        # target already.
        if (
            attempt == 3
            and not math.isfinite(low)
            and epsilon(events_at(gaussian_rho(target, delta) * 1e-6), delta).epsilon > target
        ):
            raise hopeless
        spent = epsilon(events_at(math.exp(guess)), delta).epsilon
        if spent <= target:
            low, low_spent = guess, spent
            if spent >= target * (1 - CLOSE):
                return math.exp(low)
        else:
            high, high_spent = guess, spent
        if high - low < 1e-6:
            break
        # Epsilon grows about as the square root of the scale. Aim slightly below the target; bisect
        # if the aim leaves the bracket.
        aim = (
            guess + 2 * math.log(target * (1 - 0.4 * CLOSE) / spent)
            if math.isfinite(spent) and spent > 0
            else guess - 2
        )
        if math.isfinite(low) and math.isfinite(high):
            if math.isfinite(high_spent):
                along = (target * (1 - 0.4 * CLOSE) - low_spent) / (high_spent - low_spent)
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
    """ZCDP of the Gaussian mechanism that spends (epsilon, delta) (Balle and Wang, 2018).

    It is exact to one part in 10^9.
    """

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


def _check(events: Sequence[Event], delta: float) -> None:
    if not events:
        raise PrivacyError("There are no events to account for.")
    check_delta(delta)


def check_group(records: int) -> None:
    """Check that a person may have so many records.

    Raises:
        PrivacyError: it is no whole number from 1 to 10^12.
    """
    if not isinstance(records, int | np.integer) or not 1 <= records <= MAX_GROUP:
        raise PrivacyError(f"A person has 1 to {MAX_GROUP:,} records, not {shown(records)}.")


def check_delta(delta: float, error: type[VertiMRFError] = PrivacyError) -> None:
    """Check that a delta is one that losses are composed at.

    Args:
        delta: the delta.
        error: class of the error to raise.

    Raises:
        VertiMRFError: of the class ``error``: it is below 1e-300, or not below 1.
    """
    if not isinstance(delta, Real) or isinstance(delta, bool) or not LEAST_DELTA <= delta < 1:
        raise error(f"delta must be at least {LEAST_DELTA:g} and below 1, not {shown(delta)}.")


@dataclass(frozen=True, eq=False)
class Composed:
    """A composed privacy loss X, given by its moments E exp((tilt + i w) X).

    The frequencies are w = 2 pi k / period.

    Attributes:
        tilt: real part of z, above 0 (see the module).
        log_moment: log E exp(tilt X).
        period: period of the sum, in units of the loss.
        frequencies: frequencies from 0 on at which the spectrum is not negligible [shape=(k,),
            float64].
        spectrum: E exp((tilt + i w) X) / E exp(tilt X) at these frequencies [shape=(k,),
            complex128].
        error: bound on the relative error of the moment at the tilt, and on the absolute error of
            every entry of the spectrum.
        infinite: probability of an infinite loss, including everything that was cut off.
    """

    tilt: float
    log_moment: float
    period: float
    frequencies: Floats
    spectrum: Complex
    error: float
    infinite: float

    @cached_property
    def _waves(self) -> Complex:
        """The spectrum over z (z + 1) and the period."""
        z = self.tilt + 1j * self.frequencies
        out: Complex = self.spectrum / (z * (z + 1) * self.period)
        # Each frequency except 0, the first, also stands for its negative.
        out[1:] *= 2
        return out

    def delta(self, epsilon: float) -> float:
        """Delta at ``epsilon``: an upper bound."""
        estimate = float((self._waves * np.exp(-1j * self.frequencies * epsilon)).real.sum())
        # Sum of the errors of all frequencies, omitted ones included: 1 / |z (z + 1)| at 0 and its
        # integral.
        wide = self.tilt * (self.tilt + 1)
        wrong = self.error * (1 / (self.period * wide) + 0.5 / math.sqrt(wide))
        log_scale = self.log_moment - self.tilt * epsilon
        return (
            math.exp(min(log_scale, 700.0)) * (max(estimate, 0.0) + wrong) * (1 + self.error)
            + self.infinite
        )

    def epsilon(self, delta: float) -> float:
        """Smallest epsilon at ``delta``, to one part in 10^9; infinite if there is none."""
        if self.infinite >= delta:
            return math.inf
        if self.delta(0.0) <= delta:
            return 0.0
        # Up to rounding, the Chernoff bound is an upper end.
        low, high = (
            0.0,
            max((self.log_moment - math.log(delta - self.infinite)) / self.tilt, 0.0)
            + 1 / self.tilt,
        )
        if not self.delta(high) <= delta:
            return math.inf
        while high - low > 1e-9 * high:
            middle = 0.5 * (low + high)
            low, high = (low, middle) if self.delta(middle) <= delta else (middle, high)
        return high


@dataclass(frozen=True, eq=False)
class Loss:
    """Losses of an event on a grid, in rows of equal length. Rows without mass are left out.

    Attributes:
        count: number of repetitions.
        step: grid step.
        starts: index of the first loss of every row [shape=(r,), int64].
        mass: probabilities of one repetition [shape=(r, c), float64].
        lost: probability of an infinite loss in one repetition.
        variance: approximate variance of the loss of all repetitions together.
    """

    count: int
    step: float
    starts: Integers
    mass: Floats
    lost: float
    variance: float

    @classmethod
    def of(cls, event: Event, grid: LossGrid, step: float, rare: float) -> Loss:
        """Build the losses from an event's grid, without the largest ones.

        These have a total probability below ``rare``.
        """
        above = np.cumsum(grid.mass[::-1])[::-1]
        size = int(np.count_nonzero(above * event.count >= rare)) or 1
        lost = grid.lost + (float(above[size]) if size < len(above) else 0.0)
        width = math.isqrt(size) + 1
        rows = np.append(grid.mass[:size], np.zeros(-size % width)).reshape(-1, width)
        occupied = np.flatnonzero(rows.any(axis=1))
        return cls(
            event.count,
            step,
            grid.lowest + width * occupied,
            rows[occupied],
            lost,
            event.count * event.spread**2,
        )

    @property
    def losses(self) -> Floats:
        """The loss of every mass [shape=(r, c), float64]."""
        return np.asarray(
            self.step * (self.starts[:, None] + np.arange(self.mass.shape[1])), np.float64
        )

    def log_moments(self, tilts: Floats) -> Floats:
        """Log E exp(tilt X) of all repetitions at each tilt [shape=(t,), float64]."""
        occupied = self.mass > 0
        log_terms = np.log(self.mass[occupied]) + tilts[:, None] * self.losses[occupied]
        top = log_terms.max(axis=1)
        out: Floats = self.count * (top + np.log(np.exp(log_terms - top[:, None]).sum(axis=1)))
        return out

    def tilted(self, tilt: float) -> Floats:
        """The masses weighted by exp(tilt X) and normalised to 1 [shape=(r, c), float64]."""
        losses = self.losses
        top = float(losses[self.mass > 0].max())
        weighed = self.mass * np.exp(np.minimum(tilt * (losses - top), 0.0))
        out: Floats = weighed / weighed.sum()
        return out

    def spectrum(self, tilted: Floats, frequencies: Floats) -> Complex:
        """E exp(i w X) of all repetitions under tilted masses [shape=(k,), complex128]."""
        at_once = max(AT_ONCE // sum(self.mass.shape), 1)
        parts = []
        for first in range(0, len(frequencies), at_once):
            turn = 1j * self.step * frequencies[first : first + at_once]
            # Rotations within a row, and from row to row.
            within, starts = (
                np.exp(np.outer(np.arange(self.mass.shape[1]), turn)),
                np.exp(np.outer(self.starts, turn)),
            )
            parts.append(((tilted @ within) * starts).sum(axis=0))
        return _power(np.concatenate(parts), self.count)

    def transform(self, tilted: Floats, length: int, frequencies: int) -> Complex:
        """The spectrum at multiples of 2 pi / (length step), by a fast Fourier transform.

        Args:
            tilted: masses times exp(tilt loss), by grid point.
            length: length of the transform.
            frequencies: number of multiples, from 0 on.
        """
        folded = np.bincount(
            (self.starts[:, None] + np.arange(self.mass.shape[1])).ravel() % length,
            tilted.ravel(),
            length,
        )
        # The other half of a real transform is its conjugate.
        half = np.conj(fft.rfft(folded))
        at = np.arange(frequencies) % length
        mirrored = at >= len(half)
        values = half[np.where(mirrored, length - at, at)]
        return _power(np.where(mirrored, np.conj(values), values), self.count)


def _power(values: Complex, exponent: int) -> Complex:
    with np.errstate(divide="ignore"):  # a frequency that masses cancel at
        size = np.exp(exponent * np.log(np.abs(values)))
    angle = exponent * np.angle(values)
    out: Complex = size * np.cos(angle) + 1j * (size * np.sin(angle))
    return out


def _losses(events: Sequence[Event], delta: float) -> list[tuple[Loss, ...]]:
    """Losses of the events when a record is added and removed, to compose at about ``delta``; once
    if they are the same.

    Each loss dominates that of its event for any grid
    (:func:`~vertimrf.privacy.losses.connect_the_dots`).
    """
    total = math.sqrt(sum(event.count * event.spread**2 for event in events)) or MIN_TOTAL
    steps = [
        min(event.spread / STEPS_PER_SPREAD, total / STEPS_PER_TOTAL) or MIN_TOTAL
        for event in events
    ]
    both = []
    for event, step in zip(events, steps, strict=True):
        grids = event.losses(step, CUT * delta / event.count)
        sides = {grid: Loss.of(event, grid, step, CUT * delta) for grid in set(grids)}
        both.append([sides[grid] for grid in grids])
    return list(dict.fromkeys(zip(*both, strict=True)))


def _compose(losses: Sequence[Loss], delta: float, epsilon: float | None = None) -> Composed:
    """Compose the losses of one direction.

    The result gives epsilon at ``delta``, or a delta of about ``delta`` at ``epsilon``.
    """
    total = math.sqrt(sum(loss.variance for loss in losses)) or MIN_TOTAL

    def moments_at(tilts: Floats) -> Floats:
        out: Floats = sum((loss.log_moments(tilts) for loss in losses), start=np.zeros(len(tilts)))
        return out + 0.5 * (SMOOTHING * total) ** 2 * tilts * (tilts + 1)

    def chernoff(tilts: Floats, moments: Floats) -> Floats:
        """The bound to minimise: on epsilon at delta, or on the logarithm of delta at epsilon."""
        # max(1 - exp(-u), 0) is at most this many times exp(tilt u).
        log_most = moments + tilts * np.log(tilts) - (tilts + 1) * np.log1p(tilts)
        return (
            (log_most - math.log(delta)) / tilts if epsilon is None else log_most - tilts * epsilon
        )

    tilts = TILTS / total
    moments = moments_at(tilts)
    finer = tilts[int(np.argmin(chernoff(tilts, moments)))] * FINER
    tilts, moments = np.append(tilts, finer), np.append(moments, moments_at(finer))
    bounds = chernoff(tilts, moments)
    # The largest tilt that is nearly as good and keeps rounding errors small relative to delta; its
    # period is short.
    worse = math.log(max(WORTH / (ROUNDING * sum(loss.count for loss in losses)), 1.0))
    near = (bounds - bounds.min()) * (tilts if epsilon is None else 1.0) <= worse
    best = int(np.argmax(np.where(near, tilts, 0.0)))
    tilt, log_moment = float(tilts[best]), float(moments[best])
    at = max(float(bounds.min()) - LOOSE / tilt, 0.0) if epsilon is None else epsilon
    # Losses below epsilon add at most exp(-tilt period). Larger ones count as one or more periods
    # smaller, which a Chernoff bound covers.
    small = -math.log(WRAPPED * delta)
    larger = tilts > 1.01 * tilt
    beyond = (moments - tilts * at + small)[larger] / (tilts[larger] - tilt)
    first, *others = sorted(
        losses, key=lambda loss: (loss.count < MANY, 1 / (loss.step * max(loss.variance, TINY)))
    )
    period = max(small / tilt, float(beyond.min(initial=math.inf)) if larger.any() else 0.0)
    # The period is a whole number of steps of the first grid.
    length = math.ceil(period / first.step)
    length = fast_length(length, 2 * 3 * 5 * 7 * 11) if length <= MAX_LENGTH else length
    period = length * first.step
    smoothing = max(SMOOTHING * total, LAST * period / (2 * math.pi * MAX_FREQUENCIES))
    highest = math.ceil(LAST * period / (2 * math.pi * smoothing))
    frequencies = np.linspace(0.0, 2 * math.pi / period * highest, highest + 1)
    angle = frequencies * smoothing**2 * (0.5 + tilt)
    spectrum = np.exp(-0.5 * (smoothing * frequencies) ** 2) * (np.cos(angle) + 1j * np.sin(angle))
    log_moment += 0.5 * (smoothing**2 - (SMOOTHING * total) ** 2) * tilt * (tilt + 1)
    # The loss that narrows the spectrum most comes first and leaves the least to compute for the
    # others.
    for loss in (first, *others):
        tilted = loss.tilted(tilt)
        # A transform that is long for its frequencies takes longer than their sums.
        if loss is first and length <= min(MAX_LENGTH, len(frequencies) * sum(loss.mass.shape)):
            spectrum *= loss.transform(tilted, length, len(frequencies))
        else:
            spectrum *= loss.spectrum(tilted, frequencies)
        kept = np.abs(spectrum) > NEGLIGIBLE
        frequencies, spectrum = frequencies[kept], spectrum[kept]
    infinite = sum(loss.count * loss.lost for loss in losses)
    error = math.exp(-0.5 * LAST**2) + NEGLIGIBLE * len(losses) + ROUNDING * abs(log_moment)
    error += ROUNDING * sum(
        loss.count + math.sqrt(loss.count * loss.variance) * float(frequencies[-1])
        for loss in losses
    )
    return Composed(tilt, log_moment, period, frequencies, spectrum, error, infinite)

"""Record every draw of noise of one run, and give its results to a run on a neighbouring file.

The neighbour's run is told that every noisy figure came out as it did in the first run. So everything
that it decides from released figures is the same, and what still differs follows from the record in
another way than through noise:

- a draw that is made of one file and not of the other, or with another law or parameter: something
  was decided by exact values;
- exact values that noise is added to, and that differ by more than the ledger's event allows;
- a message that differs, although all noisy figures are the same: a value left without noise.

Sketches and responses add their noise inside a kernel, from a stream of random bytes. There the exact
counters or levels are compared, and published codes may differ only where these do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from msgspec.structs import replace

from vertimrf.privacy.choice import ChoiceEvent
from vertimrf.privacy.events import (
    CountSketchEvent,
    GaussianEvent,
    GeometricEvent,
    GRREvent,
    SketchEvent,
    ThresholdEvent,
)
from vertimrf.privacy.ledger import LedgerEntry
from vertimrf.privacy.noise import FixedNoise
from vertimrf.releases.count_sketches.encoding import CountSketchEncoder
from vertimrf.releases.encoder import Encoder, LevelEncoder


@dataclass
class Draw:
    """One draw of noise.

    Attributes:
        law: "gaussian", "geometric", "choice" or "bytes".
        parameter: of the law; 0 for bytes.
        exact: what noise was added to [int64]; of bytes, the exact counters or levels of sketches.
        result: what was released; of bytes, their seed.
        encoder: of bytes, the encoder that asked; None if another asked.
    """

    law: str
    parameter: float
    exact: np.ndarray
    result: object = None
    encoder: Encoder | None = None


@dataclass
class Recorder(FixedNoise):
    """Noise that keeps every draw, or gives the results of an earlier run again.

    Attributes:
        earlier: the draws of the first run; None records them.
        draws: the draws of this run.
        faults: how this run left the way of the first one.
        steps: the widths of codes that sketches were published in. They are public.
    """

    earlier: Sequence[Draw] | None = None
    seed: int = 1
    draws: list[Draw] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    steps: list[np.ndarray] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(self.seed)

    def _next(self, draw: Draw, make: Callable[[], object]) -> object:
        """Keep a draw; its result is that of the first run, if there was one."""
        place = len(self.draws)
        self.draws.append(draw)
        if self.earlier is None:
            draw.result = make()
            return draw.result
        if place >= len(self.earlier):
            self.faults.append(f"draw {place} ({draw.law}) is made of one file alone")
            return make()
        first = self.earlier[place]
        if draw.law == first.law == "geometric" and draw.parameter == first.parameter:
            aligned = _one_value_more(first, draw)
            if aligned is not None:
                draw.exact, draw.result = aligned[0], aligned[1]
                return aligned[2]
        for what, one, other in (
            ("law", first.law, draw.law),
            ("parameter", first.parameter, draw.parameter),
            ("shape", first.exact.shape, draw.exact.shape),
        ):
            if one != other:
                self.faults.append(f"draw {place} has another {what}: {one} and {other}")
                return make()
        draw.result = first.result
        return draw.result

    def gaussian(self, values, sigma):
        exact = np.array(values, np.int64)
        make = lambda: super(Recorder, self).gaussian(exact, sigma)  # noqa: E731
        return self._next(Draw("gaussian", float(sigma), exact), make)

    def geometrics(self, values, scale):
        exact = np.array(values, np.int64)
        make = lambda: super(Recorder, self).geometrics(exact, scale)  # noqa: E731
        return self._next(Draw("geometric", float(scale), exact), make)

    def choose(self, scores, scale):
        exact = np.array(scores, np.int64)
        make = lambda: super(Recorder, self).choose(exact, scale)  # noqa: E731
        return self._next(Draw("choice", float(scale), exact), make)

    def stream(self, exact):
        encoder = getattr(exact, "__self__", None)
        counters = np.empty(0, np.int64)
        if isinstance(encoder, Encoder):
            counters = encoder._state.astype(np.int64)
        else:
            encoder = None
        seed = 1000 * self.seed + len(self.draws)
        # The same bytes for both files, each time from the front.
        self._next(Draw("bytes", 0.0, counters, None, encoder), lambda: seed)
        return FixedNoise(seed).stream(lambda: b"")


def _one_value_more(first: Draw, draw: Draw) -> tuple[np.ndarray, object, object] | None:
    """Match noisy counts of the values that occur in two tables, one of which has one value more.

    The count of that value counts as 0 in the other table. Its noisy count is below every threshold
    there, and so it is here: what this hides is what the threshold's delta is for.

    Returns:
        The exact counts of this draw as the first run numbers them, the first run's result, and the
        result for this draw; None if the draws match as they are, or in no such way.
    """
    one, other = first.exact, draw.exact
    if one.ndim != 1 or abs(one.size - other.size) != 1:
        return None
    longer, shorter = (one, other) if one.size > other.size else (other, one)
    place = next((i for i, n in enumerate(shorter) if longer[i] != n), shorter.size)
    if not np.array_equal(np.delete(longer, place), shorter):
        return None
    if one.size > other.size:
        return np.insert(other, place, 0), first.result, np.delete(first.result, place)
    # The first run has no such value: it is not shown here, and its count is compared with 0.
    first.exact = np.insert(one, place, 0)
    first.result = np.insert(first.result, place, -(2**40))
    return other, first.result, first.result


def compared(
    first: Recorder, second: Recorder, entries: Sequence[LedgerEntry], person: int = 1
) -> Iterator[str]:
    """Everything by which two runs differ more than the ledger allows.

    Args:
        first: the first run.
        second: the replayed run.
        entries: the ledger's entries of this party, and of all parties together.
        person: largest number of records of a person.
    """
    yield from second.faults
    if len(second.draws) < len(first.draws):
        yield f"{len(first.draws) - len(second.draws)} draws are made of one file alone"
    if _differ(first.steps, second.steps):
        yield "sketches are published in steps that follow from exact figures"
    left = _allowed(entries)
    for place, (one, other) in enumerate(zip(first.draws, second.draws, strict=False)):
        if one.exact.shape != other.exact.shape or one.law != other.law:
            continue
        change = (other.exact - one.exact).ravel()
        if one.law == "bytes":
            if isinstance(one.encoder, CountSketchEncoder):
                yield from _sketched(place, change.reshape(one.exact.shape), one.encoder, person)
            elif isinstance(one.encoder, LevelEncoder):
                yield from _levelled(place, change, one.encoder, person)
            continue
        yield from _spent(place, one, change, left)


@dataclass
class _Allowance:
    """What a kind of draws may still do: draws of one sensitivity, with noise of one parameter."""

    sensitivity: float
    count: int


def _allowed(entries: Sequence[LedgerEntry]) -> dict[tuple[str, float], _Allowance]:
    """By law and parameter, what the ledger's events allow."""
    out: dict[tuple[str, float], _Allowance] = {}
    for entry in entries:
        event = entry.event
        if isinstance(event, GaussianEvent):
            key = "gaussian", float(event.sigma)
        elif isinstance(event, GeometricEvent | ThresholdEvent):
            key = "geometric", float(event.scale)
        elif isinstance(event, ChoiceEvent):
            key = "choice", float(event.scale)
        else:
            continue
        count = getattr(event, "count", 1)
        if key in out:
            out[key].count += count
        else:
            out[key] = _Allowance(event.sensitivity, count)
    return out


def _spent(
    place: int, draw: Draw, change: np.ndarray, left: dict[tuple[str, float], _Allowance]
) -> Iterator[str]:
    """Take a draw from what the ledger allows; a sentence if it is not there."""
    what = f"draw {place} ({draw.law}, {draw.parameter:.6g}, {draw.exact.size} values)"
    units, allowance = 1, left.get((draw.law, draw.parameter))
    if allowance is None and draw.law == "gaussian":
        # k units of a measurement are released together: k times the counts, root of k times the noise.
        for (law, sigma), some in left.items():
            ratio = (draw.parameter / sigma) ** 2
            if law == "gaussian" and some.count > 1 and abs(ratio - round(ratio)) < 1e-6 * ratio:
                units, allowance = round(ratio), some
                break
    if allowance is None:
        yield f"{what} has noise that no event of the ledger has"
        return
    measured = np.abs(change)
    together = math.sqrt(float((change.astype(np.float64) ** 2).sum()))
    if draw.law == "geometric":
        together = float(measured.sum())
    if draw.law == "choice":
        together = float(measured.max(initial=0))
    queries = units
    if together > units * allowance.sensitivity * (1 + 1e-9) and units == 1:
        # Several queries in one draw, each with a sensitivity of its own.
        queries, together = draw.exact.size, float(measured.max(initial=0))
    allowance.count -= queries
    if allowance.count < 0:
        yield f"{what} is beyond the number of draws in the ledger"
    if together > units * allowance.sensitivity * (1 + 1e-9):
        yield f"{what} moves by {together:.6g}, and the ledger allows {units * allowance.sensitivity:g}"


def _sketched(
    place: int, change: np.ndarray, encoder: CountSketchEncoder, person: int
) -> Iterator[str]:
    """What a record may do to counters: in each repetition, one of each group by 1. (A group's weight
    enters with the noise.)

    Args:
        place: number of the draw.
        change: difference of the exact counters [shape=(repetitions, rows, buckets)].
        encoder: the encoder.
        person: records of a person.
    """
    rows = encoder._first_row
    for group, begin, end in zip(encoder._groups, rows[:-1], rows[1:], strict=True):
        moved = np.abs(change[:, begin:end]).sum(axis=(1, 2))
        if (moved > person).any():
            yield f"draw {place}: counters of group {group} move by {moved.max()}, and a person's by {person}"
    # All values of one record lie in the same bucket.
    buckets = (change != 0).any(axis=1).sum(axis=1)
    if (buckets > person).any():
        yield f"draw {place}: a record has {buckets.max()} buckets in one repetition"


def _levelled(place: int, change: np.ndarray, encoder: LevelEncoder, person: int) -> Iterator[str]:
    """What a record may do to levels of scheduled pairs: under each key it enters one sketch of this
    party, and what it enters gets no lower.

    Args:
        place: number of the draw.
        change: difference of the exact levels, second file less first [shape=(n,)].
        encoder: the encoder.
        person: records of a person.
    """
    edges = np.cumsum([0, *(size * keys for size, keys in encoder._shapes)])
    for number, (size, keys) in enumerate(encoder._shapes):
        moved = change[edges[number] : edges[number + 1]].reshape(size, keys)
        if ((moved != 0).sum(axis=0) > person).any():
            yield f"draw {place}: a record enters several sketches under a key of pair {number}"
        if (moved > 0).any() and (moved < 0).any():
            yield f"draw {place}: a record raises levels of pair {number} and lowers others"


def spent(first: Sequence[Draw], second: Sequence[Draw]) -> float:
    """What Gaussian draws cost these two files, as a sum of (change / sigma)^2 / 2 (zCDP)."""
    return sum(
        float(((other.exact - one.exact).astype(np.float64) ** 2).sum()) / (2 * one.parameter**2)
        for one, other in zip(first, second, strict=False)
        if one.law == "gaussian" and one.exact.shape == other.exact.shape
    )


def same_message(one, other, first: Sequence[Draw], person: int = 1) -> Iterator[str]:
    """Differences of two messages whose noisy figures are the same.

    Codes of sketches may differ in as many places as exact counters do.
    """
    if one.count != other.count:
        yield "the record counts of the messages differ"
    if len(one.marginals) != len(other.marginals):
        yield "the messages have different numbers of marginals"
    for i, (a, b) in enumerate(zip(one.marginals, other.marginals, strict=False)):
        stated = (a.attributes, a.sigma, a.units, a.contrasts) == (
            b.attributes,
            b.sigma,
            b.units,
            b.contrasts,
        )
        if not stated or not np.array_equal(a.counts, b.counts):
            yield f"marginal {i} differs although its noisy counts do not"
    for what in ("fine", "bins", "tables"):
        if _differ(getattr(one, what), getattr(other, what)):
            yield f"{what} of the messages differ although noisy figures do not"
    pieces = (*one.sketches, *one.agreement), (*other.sketches, *other.agreement)
    if [each.shape for each in pieces[0]] != [each.shape for each in pieces[1]]:
        yield "the messages' sketches have other shapes"
        return
    places = [np.argwhere(a != b) for a, b in zip(*pieces, strict=True)]
    if any(draw.law == "bytes" and draw.encoder is None for draw in first):
        # Responses: those of one row, one for each attribute.
        rows = {int(row) for each in places for _, row in each}
        if len(rows) > person:
            yield f"responses of {len(rows)} rows differ"
        return
    changed, most = sum(map(len, places)), person * sum(_changes(draw.encoder) for draw in first)
    if changed > most:
        yield f"{changed} codes of sketches differ, and a person changes at most {most}"


def _changes(encoder: Encoder | None) -> int:
    """Published codes of an encoder that one record may change."""
    if isinstance(encoder, CountSketchEncoder):
        return encoder._plan.repetitions * len(encoder._groups)
    if isinstance(encoder, LevelEncoder):
        return sum(keys for _, keys in encoder._shapes)
    return 0


def _differ(one, other) -> bool:
    """Whether nested tuples of arrays differ."""
    if isinstance(one, tuple | list):
        return len(one) != len(other) or any(map(_differ, one, other))
    return not np.array_equal(one, other)


def entries_of(ledger, party: str) -> list[LedgerEntry]:
    """The ledger's entries of a party: of entries of several parties with a noise each, its part.

    Without sketches and responses, whose noise is not drawn one by one.
    """
    out = []
    for entry in ledger.entries:
        if entry.masked:
            out += [replace(entry, event=p.event) for p in entry.parts if p.party == party]
        elif entry.party == party and not isinstance(
            entry.event, CountSketchEvent | SketchEvent | GRREvent
        ):
            out.append(entry)
    return out

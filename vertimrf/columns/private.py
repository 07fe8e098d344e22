"""Private domains: bins or values that a search with noise finds.

- Bins follow from noisy histograms (:mod:`.number_range`).
- A value is listed, or is a point among numbers, if its noisy count exceeds a threshold that one person's records reach with
  probability delta at most.

Every figure that is read from the data is an event.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..arrays import Fields, Flags, Floats, Integers
from ..errors import SchemaError
from ..privacy.events import Event, GeometricEvent, ThresholdEvent
from ..privacy.ledger import Kind
from .calendar import DAY
from .column import PRIVATE, Attribute
from .listed import Listed
from .number_range import find_edges
from .numbers import Numbers, listed_numbers
from .read import read_attribute
from .text import MAX_SIZE, Value

if TYPE_CHECKING:
    import pyarrow as pa

    from ..privacy.noise import KeyedNoise

# Default of `most`: bins and values of a private domain.
BINS, VALUES = 16, 256
OTHER = "other"
# Part of the epsilon of a search of numbers that finds points, and most points.
POINTS_PART, POINTS = 0.5, 20
# A point has more than this many times the usual count of so many multiples of the step beside it.
STANDS_OUT, BESIDE = 3.0, 3


@dataclass(frozen=True)
class Search:
    """What one search with noise may spend.

    Attributes:
        epsilon: its budget.
        delta: probability that a value of one person alone is found.
        sensitivity: most rows of a person.
        noise: noise source.
    """

    epsilon: float
    delta: float
    sensitivity: int
    noise: KeyedNoise


@dataclass(frozen=True)
class PrivateDomain(ABC):
    """The public knowledge of an attribute whose domain is private.

    Attributes:
        known: the attribute with all that is public.
        most: largest number of bins or values.
        asked: the section of the schema file. It identifies a domain that was found before.
        looked_for, kind: what a search finds, in words and in the ledger.
    """

    known: Attribute
    most: int
    asked: Mapping[str, Any]

    looked_for: ClassVar[str]
    kind: ClassVar[Kind]

    @property
    def name(self) -> str:
        """Name of the attribute."""
        return self.known.name

    @property
    @abstractmethod
    def unknown(self) -> Attribute:
        """The attribute if the search was without result: its values are missing or ``other``."""

    @property
    def wanted(self) -> str:
        """What a valid cell is, for sentences."""
        return "a value"

    @abstractmethod
    def cells(self, column: pa.ChunkedArray, where: str) -> tuple[Any, Flags, Flags]:
        """What a search reads of a column, which cells are missing, and which are not valid."""

    @abstractmethod
    def find(self, cells: Any, search: Search) -> tuple[Attribute | None, list[Event]]:
        """Find the domain with noise.

        Args:
            cells: from :meth:`cells`.
            search: what it may spend.

        Returns:
            The attribute, None if nothing was significant, and what was spent.
        """

    @staticmethod
    def from_json(asked: Mapping[str, Any]) -> PrivateDomain:
        """Read a section of a schema file that has private bins or values.

        Args:
            asked: the section, with ``bins = "private"`` or ``values = "private"``.

        Raises:
            SchemaError: the section has keys that do not fit a private domain.
        """
        parts = dict(asked)
        name = parts.get("name", "")
        numeric = parts.get("bins") == PRIVATE
        most = parts.pop("most", BINS if numeric else VALUES)
        if type(most) is not int or not 2 <= most <= MAX_SIZE // 2:
            raise SchemaError(
                f"Attribute {name!r}: most is {most!r}; write how many bins or values there may be, 2 or more."
            )
        others = ("values", "codes", "edges") if numeric else ("bins", "bounds", "codes", "edges")
        if given := [key for key in others if key in parts]:
            raise SchemaError(
                f"Attribute {name!r} has private {'bins' if numeric else 'values'} as well as {given[0]}; give one of them."
            )
        return (PrivateNumbers if numeric else PrivateValues).of(parts, most, asked)


@dataclass(frozen=True)
class PrivateNumbers(PrivateDomain):
    """Numbers, dates or times of which bounds, bins and points are searched.

    Attributes:
        known: the attribute with a single bin, between public bounds if there are any.
        bounded: whether there are public bounds.
    """

    known: Numbers
    bounded: bool = field(kw_only=True)

    looked_for: ClassVar[str] = "bounds and bins"
    kind: ClassVar[Kind] = Kind.EDGES

    @classmethod
    def of(cls, parts: Fields, most: int, asked: Mapping[str, Any]) -> PrivateNumbers:
        """See :meth:`PrivateDomain.from_json`; ``parts`` without ``most``."""
        bounded = "bounds" in parts
        if parts.get("calendar") == "time" and not bounded:
            # The bounds of a day are public.
            parts["bounds"], bounded = [0, DAY], True
        if bounded:
            parts["bins"] = 1
        else:
            del parts["bins"]
            step = parts.get("resolution")
            parts["edges"] = [0, step if isinstance(step, int | float) and step > 1 else 1]
        known = read_attribute(parts)
        assert isinstance(known, Numbers)
        return cls(known, most, asked, bounded=bounded)

    @property
    def unknown(self) -> Attribute:
        """See :class:`PrivateDomain`."""
        return Listed(self.name, (OTHER,), other=OTHER, missing=self.known.missing)

    @property
    def wanted(self) -> str:
        """See :class:`PrivateDomain`."""
        if self.bounded:
            return "within the public bounds"
        return self.known.instants[0] if self.known.instants else "a number"

    def binned(self, edges: tuple[float, ...], points: tuple[float, ...]) -> Attribute:
        """The attribute with the edges and the points that were found.

        Without public bounds, numbers beyond the edges go to the nearest bin, or point if there is
        no bin.
        """
        known, clamp = replace(self.known, type=None), self.known.clamp or not self.bounded
        if edges:
            found = replace(known, edges=edges, points=points, clamp=clamp)
        else:
            alone: Fields = listed_numbers(points)
            alone |= {"resolution": None, "integral": False, "clamp": True}
            found = replace(known, **alone)
        # Noise may find bounds beyond what the type holds.
        with suppress(SchemaError):
            found = replace(found, type=self.known.type)
        return found

    def cells(self, column: pa.ChunkedArray, where: str) -> tuple[Floats, Flags, Flags]:
        """See :class:`PrivateDomain`: the valid numbers."""
        known = self.known
        numbers, missing = known.numbers(column, where)
        wrong = np.isnan(numbers) & ~missing
        low, high = known.limits
        if self.bounded and not known.clamp:
            wrong |= ~missing & ((numbers < low) | (numbers > high))
        present = numbers[~missing & ~wrong]
        return (np.clip(present, low, high) if self.bounded else present), missing, wrong

    def find(self, cells: Floats, search: Search) -> tuple[Attribute | None, list[Event]]:
        """See :class:`PrivateDomain`: the points first, then bins of the numbers beside them."""
        # A whole number stands for all numbers up to the next.
        cells = np.floor(cells) if self.known.integral else cells
        event = _threshold(search, POINTS_PART)
        events: list[Event] = [event]
        values, counts = np.unique(cells, return_counts=True)
        noisy = search.noise.geometrics(counts, event.scale)
        points = self._points(values, noisy, event.threshold)
        rest = cells[~np.isin(cells, points)]

        def histogram(edges: Floats, part: float) -> tuple[Integers, float]:
            scale = search.sensitivity / (part * (1 - POINTS_PART) * search.epsilon)
            events.append(GeometricEvent(scale, search.sensitivity))
            # Numbers outside the edges count in the first or last cell.
            at = np.clip(np.searchsorted(edges, rest, side="right") - 1, 0, len(edges) - 2)
            counts = np.bincount(at, minlength=len(edges) - 1)
            return search.noise.geometrics(counts, scale), scale

        bounds = self.known.limits if self.bounded else None
        edges = find_edges(histogram, self.most, self.known.step, bounds)
        # Noise may find edges in years that no calendar has.
        edges = tuple(np.unique(np.clip(edges or (), *self.known.reach)).tolist())
        edges = edges if len(edges) > 1 else ()
        # Histograms that were not needed are no events.
        found = bool(edges or points)
        return (self.binned(edges, points) if found else None), events

    def _points(self, values: Floats, noisy: Integers, threshold: int) -> tuple[float, ...]:
        """The values that stand out, increasing: from noisy counts that reach the threshold alone."""
        # Infinite ones count as the farthest number.
        shown = (noisy >= threshold) & np.isfinite(values)
        heavy = dict(zip(values[shown].tolist(), noisy[shown].tolist(), strict=True))
        step = self.known.step

        def usual(value: float) -> float:
            """The usual count of the multiples of the step beside a value."""
            near = (value + i * step for i in range(-BESIDE, BESIDE + 1) if i) if step else ()
            # Of a count below the threshold nothing is known.
            unknown = threshold / 2
            counts = [heavy.get(float(self.known.lattice.snapped(one)), unknown) for one in near]
            return float(np.median(counts)) if counts else 0.0

        out = [value for value, count in heavy.items() if count > STANDS_OUT * usual(value)]
        return tuple(sorted(sorted(out, key=lambda value: -heavy[value])[:POINTS]))


@dataclass(frozen=True)
class PrivateValues(PrivateDomain):
    """Texts of which the frequent ones are searched.

    Attributes:
        known: the attribute with the value ``other`` alone.
    """

    known: Listed

    looked_for: ClassVar[str] = "frequent values"
    kind: ClassVar[Kind] = Kind.VALUES

    @classmethod
    def of(cls, parts: Fields, most: int, asked: Mapping[str, Any]) -> PrivateValues:
        """See :meth:`PrivateDomain.from_json`; ``parts`` without ``most``."""
        if not isinstance(parts.setdefault("other", OTHER), str):
            raise SchemaError(
                f"Attribute {parts.get('name', '')!r}: private values are text, so 'other' is text too, not {parts['other']!r}."
            )
        known = read_attribute(parts | {"values": [parts["other"]]})
        assert isinstance(known, Listed)
        return cls(known, most, asked)

    @property
    def unknown(self) -> Attribute:
        """See :class:`PrivateDomain`."""
        return self.known

    def listed(self, values: tuple[Value, ...]) -> Attribute:
        """The attribute with the values that were found; all other values are ``other``."""
        return replace(self.known, values=tuple(v for v in values if v != self.known.other))

    def cells(self, column: pa.ChunkedArray, where: str) -> tuple[dict[str, int], Flags, Flags]:
        """See :class:`PrivateDomain`: records of each text except ``other``; every cell is valid."""
        from .cells import by_dictionary, canonical

        texts, indices = by_dictionary(column, where)
        absent = np.array([*map(self.known.is_missing, texts), True, True])
        missing = absent[indices]
        counts = np.bincount(indices[~missing], minlength=len(texts)).tolist()
        out: dict[str, int] = {}
        for value, count in zip(texts, counts, strict=True):
            text = canonical(value, "")
            if count and text != self.known.other:
                out[text] = out.get(text, 0) + count
        return out, missing, np.zeros(len(missing), bool)

    def find(self, cells: dict[str, int], search: Search) -> tuple[Attribute | None, list[Event]]:
        """See :class:`PrivateDomain`: the most frequent values whose noisy count exceeds a threshold."""
        event = _threshold(search)
        texts = sorted(cells)
        exact = np.array([cells[text] for text in texts], np.int64)
        noisy = search.noise.geometrics(exact, event.scale).tolist()
        kept = [
            (-count, text)
            for count, text in zip(noisy, texts, strict=True)
            if count >= event.threshold
        ]
        values = sorted(text for _, text in itertools.islice(sorted(kept), self.most))
        return (self.listed(tuple(values)) if values else None), [event]


def _threshold(search: Search, part: float = 1.0) -> ThresholdEvent:
    """Noisy counts of values that occur, for a part of the epsilon of a search, and all of its delta."""
    scale = search.sensitivity / (part * search.epsilon)
    least = ThresholdEvent.least_threshold(scale, search.delta, search.sensitivity)
    return ThresholdEvent(scale, least, search.sensitivity)

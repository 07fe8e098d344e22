"""An attribute and its public domain: what every kind of column can be asked.

Other modules call these methods, and never test the class of an attribute. Reading Arrow's arrays
(:mod:`vertimrf.columns.cells`) is imported when asked, so that planning loads no tables.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..arguments import FLAG, MANY, TEXT, WHOLE, check, maybe, takes
from ..arrays import Fields, Integral, Ints, Texts
from ..errors import SchemaError
from .calendar import Calendar
from .text import MAX_SIZE, Value, check_name, nearest_listed, parse, plain

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from ..arrays import Flags, Floats, Int32s
    from .inside import Span
    from .notations.notation import Notation

    Encode = Callable[[pa.ChunkedArray], Int32s]

# Limits of a condition, by name, as a schema file has them.
Limits = Sequence[tuple[str, Value]]
# Marks bins or values that will be found with noise, see :mod:`vertimrf.plan.open_schema`.
PRIVATE = "private"
# The source of a domain that was read off data.
DRAFTED = "data"
# Keys of a schema file, in the order in which they are written.
KEYS = (
    *("name", "values", "codes", "edges", "integral", "clamp"),
    *("missing", "missing_text", "other", "ordered"),
    *("resolution", "offset", "grid", "points", "calendar", "timezone", "format", "type", "source"),
)
# Limits of a condition by their names.
LOWEST, HIGHEST = ("from", "above"), ("below", "to")
FLAGS = ("integral", "clamp", "missing", "ordered")


@dataclass(frozen=True)
class Attribute(ABC):
    """An attribute and its domain.

    Codes number the values, or bins, in order. A missing value has the last code.

    Attributes:
        name: column name.
        missing: missing values are a category, instead of being an error.
        source: where the domain is from, such as "codebook"; "data" if it was drafted.
        type: type of the cells in written tables (:mod:`vertimrf.columns.cell_types`); None for the
            usual one.
        kinds: the kinds by the part that their domain is. A kind registers when it is loaded.
        kind: name of the kind, for sentences.
        noun: what a code stands for, for sentences.
        holds_numbers: whether values are numbers, dates or times.
        format: how texts are written, see the kinds; None for the usual way.
        step: values are multiples of it; 0 if they are not, or listed.
        instants: of dates and times, their calendar and their time zone; None of other values.
        limits: of numbers within public bounds, these; None of values that are listed.
    """

    name: str
    _: KW_ONLY
    missing: bool = False
    source: str | None = field(default=None, compare=False)
    type: str | None = field(default=None, compare=False)

    kinds: ClassVar[dict[str, Callable[..., Attribute]]] = {}
    kind: ClassVar[str]
    noun: ClassVar[str] = "value"

    def __init_subclass__(cls, domain: str = "") -> None:
        if domain:
            Attribute.kinds[domain] = cls

    def __post_init__(self) -> None:
        check_name(self.name)
        check(SchemaError, vars(self), missing=FLAG, source=maybe(TEXT))
        self._check(f"Attribute {self.name!r}")
        if self.type is not None:
            self._check_type(f"Attribute {self.name!r}")
        if self.size > MAX_SIZE:
            raise SchemaError(
                f"Attribute {self.name!r} has {self.size:,} codes; at most {MAX_SIZE:,} are possible, use wider bins or 'other'."
            )

    def __repr__(self) -> str:
        return f"<{self.name}: {self._domain}{', or missing' * self.missing}>"

    @abstractmethod
    def _check(self, where: str) -> None:
        """Check the domain; ``where`` begins the sentence of an error."""

    @abstractmethod
    def _check_type(self, where: str) -> None:
        """Check that the values can have the type; ``where`` begins the sentence of an error."""

    @property
    @abstractmethod
    def _domain(self) -> str:
        """The domain in a few words."""

    @property
    @abstractmethod
    def present(self) -> int:
        """Number of codes, without that of missing values."""

    @property
    def size(self) -> int:
        """Number of codes, including that of missing values."""
        return self.present + self.missing

    @property
    def ordered(self) -> bool:
        """Whether adjacent codes are similar."""
        return True

    @property
    def holds_numbers(self) -> bool:
        """Whether values are numbers, dates or times."""
        return True

    @property
    def origin(self) -> int:
        """A whole number that is added to the numbers of values beyond 2**53."""
        return 0

    @property
    def format(self) -> str | None:
        """How texts are written; None for the usual way."""
        return None

    @property
    def notation(self) -> Notation | None:
        """How texts of numbers, dates or times are written; None for plain numbers and for listed values."""
        return None

    @property
    def missing_text(self) -> Texts | None:
        """Texts that stand for a missing value; None for the usual ones."""
        return None

    @property
    def other(self) -> Value | None:
        """The value that replaces all unlisted ones, or None."""
        return None

    @property
    def step(self) -> float:
        """Values are multiples of it; 0 if they are not, or are listed."""
        return 0.0

    @property
    def instants(self) -> tuple[Calendar, str | None] | None:
        """Of dates and times, their calendar and their time zone; None of other values."""
        return None

    @property
    def limits(self) -> tuple[float, float] | None:
        """The public bounds that numbers lie within; None if values are listed."""
        return None

    @property
    def in_order(self) -> int:
        """How many codes are numbers in order, the first ones; 0 if values are listed."""
        return self.present if self.limits else 0

    @property
    def in_tails(self) -> Ints:
        """Codes of numbers in order that become rare towards the ends, without single values among
        bins; empty for dates, and for codes, whose order may have no meaning.
        """
        return ()

    @property
    def bounds_text(self) -> str:
        """The limits as a text."""
        return ""

    @property
    def clamp(self) -> bool:
        """Whether values beyond the limits count as the nearest one."""
        return False

    @property
    def extremes(self) -> tuple[float, float]:
        """The least and the greatest number."""
        low, high = self.ends()
        return float(low.min()), float(high.max())

    @property
    def other_code(self) -> int | None:
        """The code of ``other``, or None."""
        return None

    def bare(self) -> Attribute:
        """The attribute with values written as in conditions, and without a place for others."""
        return self

    @property
    def is_text(self) -> bool:
        """Whether numbers, dates or times of synthetic rows are texts, in the attribute's notation."""
        return False

    def as_plain(self) -> Attribute:
        """The attribute of synthetic rows that have plain numbers, dates and times."""
        return self

    def as_found(self, column: pa.ChunkedArray) -> Attribute:
        """The attribute as a column of a synthetic table is written: in its notation, or plain."""
        plain = self.as_plain()
        if plain == self or self.notation is None:
            return self
        from .cells import in_notation

        return self if in_notation(self, plain, column) else plain

    def binned_as(self, numbers: Floats) -> Attribute:
        """The attribute with bins for these numbers, or missing [shape=(n,), float64]."""
        raise NotImplementedError

    @property
    def fine(self) -> Attribute | None:
        """The same column in finer cells, each inside one code; None if no code has several.

        A one-way marginal of it (fine marginal) says how values are spread inside codes.
        """
        return None

    def shape(self, counts: Floats, fine: Floats | None, error: float) -> Floats:
        """Records by cell of :attr:`fine`, whose sums over the cells of a code are its records.

        Args:
            counts: records of each code, none negative [shape=(size,)].
            fine: noisy counts of the cells of :attr:`fine` [shape=(fine.size,)]; None if they were
                not measured.
            error: standard deviation of that noise.

        Returns:
            Records of each cell, without that of missing values [shape=(fine.present,), float64].
        """
        raise NotImplementedError

    # Texts.

    def code_text(self, code: int) -> str:
        """The value or bin of a code as text."""
        return "missing" if code == self.present else self._text(code)

    def label(self, code: int) -> str:
        """A value, or the lower edge of a bin, as a short text."""
        return "missing" if code == self.present else self._label(code)

    @abstractmethod
    def _text(self, code: int) -> str: ...

    @abstractmethod
    def _label(self, code: int) -> str: ...

    @property
    @abstractmethod
    def remedy(self) -> str:
        """What to do about values outside the domain."""

    @property
    @abstractmethod
    def found(self) -> str:
        """What a search for the domain has found, in a few words."""

    @abstractmethod
    def near(self, value: Any) -> str:
        """Words on the values that the attribute has near another one."""

    # Conditions and rules.

    def has(self, value: Any) -> bool:
        """Whether a value is listed."""
        return False

    def has_text(self, text: str) -> bool:
        """Whether a value is listed that is written so."""
        return False

    @abstractmethod
    def codes_of(self, value: Value) -> list[int]:
        """The code of a value, or the bin that contains no other value.

        Raises:
            SchemaError: there is no such value.
        """

    def limit(self, text: str) -> str | float:
        """A limit of a condition from its text: a number if it spells one, else the text."""
        number = parse(text)
        return text.strip() if number != number else number

    def number(self, limit: Value) -> float:
        """A limit of a condition as a number.

        Raises:
            SchemaError: it is no number, date or time as the attribute holds.
        """
        number = np.nan
        if not isinstance(limit, bool | str):
            try:
                number = float(limit)
            except OverflowError:
                number = np.inf
        if not np.isfinite(number):
            raise SchemaError(f"{limit!r} is no number, which {self.name!r} holds.")
        return number

    def interval(self, limits: Limits) -> tuple[float, float, bool, bool]:
        """The lower and the upper limit, and whether either is excluded; as :meth:`number`.

        Raises:
            SchemaError: a limit is no number, date or time as the attribute holds.
        """
        low, high = -math.inf, math.inf
        low_open = high_open = False
        for key, limit in limits:
            number = self.number(limit)
            if key in LOWEST:
                low, low_open = number, key == "above"
            else:
                high, high_open = number, key == "below"
        return low, high, low_open, high_open

    def between(self, limits: Limits) -> tuple[list[int], list[int]]:
        """Codes whose values all lie within limits, and codes of which only some do."""
        low, high, low_open, high_open = self.interval(limits)
        every, some = [], []
        for code, (first, last, last_open) in enumerate(self.spans()):
            # The intersection of the bin and the limits.
            begin, end = max(first, low), min(last, high)
            begin_open = low_open and low >= first
            end_open = (high_open and high <= last) or (last_open and last <= high)
            if (begin, end, begin_open, end_open) == (first, last, False, last_open):
                every.append(code)
            elif self._holds_any(begin, end, begin_open, end_open):
                some.append(code)
        return every, some

    def _holds_any(self, begin: float, end: float, begin_open: bool, end_open: bool) -> bool:
        """Whether there is a value from begin to end, of which one code holds both."""
        # A code that is listed is one value.
        return begin == end and not (begin_open or end_open)

    @abstractmethod
    def spans(self) -> list[tuple[float, float, bool]]:
        """First and last value of every code except that of missing values, and whether the last is
        excluded.
        """

    @abstractmethod
    def ends(self) -> tuple[Floats, Floats]:
        """The least and the greatest value of every code that is no missing value
        [each shape=(codes,), float64].
        """

    def nearest(self, limits: Floats, *, strict: bool = False, up: bool = True) -> Floats:
        """The value nearest to a limit, on one side of it. Bounds do not count.

        Args:
            limits: the limits [shape=(n,), float64].
            strict: whether the limit itself is excluded.
            up: whether values are at or above the limit, or at or below it.

        Returns:
            The values, infinite where no value is on that side [shape=(n,), float64].
        """
        return nearest_listed(self.ends()[0], limits, strict, up)

    @property
    @abstractmethod
    def digits(self) -> int | None:
        """Decimals of the numbers; None if they have any number of them."""

    def within(
        self, limits: Limits, counts: Callable[[], Floats]
    ) -> tuple[Sequence[int], Span | None] | None:
        """The codes of which some numbers lie within limits, and these limits.

        None if values are listed, so that a limit cuts no bin.

        Args:
            limits: of a condition.
            counts: gives the records of the codes in a model [shape=(size,)].
        """
        return None

    # Cells to codes.

    @abstractmethod
    def encoder(self, where: str) -> Encode:
        """A function from pieces of a column to codes, MISSING or OUTSIDE [shape=(n,), int32].

        Args:
            where: names the column in errors.
        """

    def numbers(self, column: pa.ChunkedArray, where: str) -> tuple[Floats, Flags]:
        """A column as numbers.

        Returns:
            Numbers, NaN for cells without one [shape=(n,), float64]; and which cells are missing
            [shape=(n,), bool]. Any other NaN is a cell that is not a number.

        Raises:
            SchemaError: the cells have a type that the attribute cannot have.
        """
        from .cells import column_numbers

        return column_numbers(self, column, where)

    @abstractmethod
    def original(self, column: pa.ChunkedArray, codes: Integral, where: str) -> Floats | None:
        """The numbers of a column and of its codes, NaN where one is missing; None if it has none."""

    # Codes to values.

    def span(self, counts: npt.NDArray[np.number], shape: Floats | None = None) -> Span | None:
        """Where numbers are drawn for codes; None if a code is a value.

        Args:
            counts: records of each code.
            shape: from :meth:`shape`, if a fine marginal was measured.
        """
        return None

    def shares(self, span: Span) -> Floats:
        """Share of each bin's records that are drawn within a span [shape=(bins,), float64]."""
        raise NotImplementedError

    def drawn(self, codes: Integral, span: Span, places: Floats) -> Floats:
        """Numbers at places inside codes, from 0 to 1 by the share of the code's records, NaN where they
        are missing [shape=(n,), float64].
        """
        raise NotImplementedError

    def coded_numbers(self, codes: Integral, drawn: Floats | None) -> Floats:
        """The numbers of codes, NaN for a missing value; ``drawn`` are those that :meth:`drawn` gave."""
        if drawn is not None:
            return drawn
        numbers: Floats = np.append(self.ends()[0], np.nan)[codes]
        return numbers

    @abstractmethod
    def arrow(self, codes: Integral, drawn: Floats | None) -> pa.Array:
        """Values of codes as an Arrow array, missing ones null; ``drawn`` as :meth:`coded_numbers`."""

    def typed(self, numbers: Floats) -> pa.Array:
        """Numbers that keep an equation as values, null where they are NaN [length n]."""
        raise NotImplementedError

    def sums(self, name: str, edges: tuple[float, float], missing: bool) -> Attribute:
        """The domain of a column of dates or times, these and a number of days or seconds."""
        raise NotImplementedError

    # Files.

    @abstractmethod
    def sdv(self) -> Fields:
        """What SDV's metadata say of the column."""

    def to_json(self) -> Fields:
        """The attribute as the mapping that a schema file holds; parts at their defaults are left
        out.
        """
        parts = {part.name: getattr(self, part.name) for part in fields(self)}
        defaults = {part.name: part.default for part in fields(self)}
        parts = {key: value for key, value in parts.items() if value != defaults[key]}
        parts |= self._written()
        return {key: parts[key] for key in KEYS if parts.get(key) is not None}

    @abstractmethod
    def _written(self) -> Fields:
        """The parts of :meth:`to_json` that are written in another way than they are stored."""

    # The kinds.

    @staticmethod
    @takes(SchemaError, values=MANY)
    def categorical(
        name: str,
        values: Iterable[Value],
        *,
        missing: bool = False,
        other: Value | None = None,
        ordered: bool = False,
    ) -> Attribute:
        """An attribute with listed values.

        Args:
            name: column name.
            values: the values, all text, all numbers or all true/false.
            missing: whether missing values are a category, not an error.
            other: replaces every value that is not listed.
            ordered: whether adjacent values are similar.

        Raises:
            SchemaError: the parts are no valid domain.
        """
        listed = tuple(map(plain, values))
        return Attribute.kinds["values"](
            name, listed, missing=missing, other=other, ordered=ordered
        )

    @staticmethod
    @takes(SchemaError, codes=WHOLE)
    def integer(name: str, codes: int, *, missing: bool = False) -> Attribute:
        """An attribute whose column has the codes 0 to ``codes`` - 1.

        Args:
            name: column name.
            codes: number of codes.
            missing: whether missing values are a category, not an error.

        Raises:
            SchemaError: the parts are no valid domain.
        """
        return Attribute.kinds["codes"](name, codes, missing=missing)

    @staticmethod
    @takes(SchemaError, edges=MANY, integral=FLAG, clamp=FLAG, format=maybe(TEXT))
    def numeric(
        name: str,
        edges: Iterable[float],
        *,
        integral: bool = False,
        resolution: float | None = None,
        clamp: bool = False,
        missing: bool = False,
        format: str | None = None,
        **more: Any,
    ) -> Attribute:
        """A numeric attribute with public bin edges.

        Args:
            name: column name.
            edges: bin edges, increasing; the last bin includes its upper edge.
            integral: whether values are whole numbers.
            resolution: values are multiples of it; None if they are not.
            clamp: whether values outside the edges count as the nearest edge.
            missing: whether missing values are a category, not an error.
            format: how texts are written.
            more: ``offset``, ``grid`` and ``points`` of
                :class:`vertimrf.columns.numbers.Numbers`.

        Raises:
            SchemaError: the parts are no valid domain.
        """
        return Attribute.kinds["edges"](
            name,
            tuple(edges),
            integral=integral,
            resolution=resolution,
            clamp=clamp,
            missing=missing,
            format=format,
            **more,
        )

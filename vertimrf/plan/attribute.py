"""An attribute and its public domain: its values, or the bins of its numbers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal
from zoneinfo import ZoneInfo

from ..errors import SchemaError
from .calendar import CALENDARS, UNITS, Calendar, calendar_of, to_number, to_text, unit_edges

Value = str | int | float | bool
Kind = Literal["categorical", "integer", "numeric"]
# Codes are uint16, and one value means "no code".
MAX_SIZE = 65_535
# Cells of text columns that mean a missing value, unless an attribute lists them as values.
MISSING_TEXT = ("", "NA", "N/A", "NaN", "nan", "null", "NULL")
# Steps of a resolution, counted from 0, that double precision can represent.
MAX_STEPS = 2.0**53
# The kind of an attribute by the part that its domain is.
KINDS: dict[str, Kind] = {"values": "categorical", "codes": "integer", "edges": "numeric"}
# Marks bins or values that will be found with noise, see :mod:`vertimrf.plan.open_schema`.
PRIVATE = "private"
# The source of a domain that was read off data.
DRAFTED = "data"
GRID = ("resolution", "calendar", "timezone", "format")
FLAGS = ("integral", "clamp", "missing", "ordered")


@dataclass(frozen=True)
class Attribute:
    """An attribute and its domain, which is one of ``values``, ``codes`` and ``edges``.

    Codes number the values, or bins, in order. A missing value has the last code.

    Attributes:
        name: column name.
        values: categorical: the values as in the file, all text, all numbers or all true/false.
        codes: integer: the column has the codes 0 to codes - 1.
        edges: numeric: public bounds and bins; bin i is [edges[i], edges[i+1]), and the last one
            includes its upper edge.
        integral: numeric: values are whole numbers, also decoded ones.
        resolution: numeric: values are multiples of it, also decoded ones (0.01 for prices); None
            if they are not.
        calendar: numeric: values and edges are dates ("date", in days), times of day ("time") or
            timestamps ("timestamp", both in seconds), as numbers of :mod:`vertimrf.plan.calendar`;
            ``resolution`` is then 1 by default.
        timezone: timestamps: the IANA name of their zone, such as "Europe/Vienna"; None for local
            time.
        format: how texts are written. Of dates and times in the codes of ``datetime.strptime``, such
            as "%d/%m/%Y"; None for ISO 8601. Of numbers their decimal mark, "." or ",": the text may
            then have separators of thousands and signs of currencies or percent.
        source: where the domain is from, such as "codebook"; "data" if it was drafted.
        clamp: numeric: values outside the bounds count as the nearest bound, instead of being an
            error.
        missing: missing values are a category, instead of being an error.
        other: categorical: replaces every value that is not listed; appended to ``values`` if not
            among them.
        ordered: adjacent codes are similar; always true for integer and numeric attributes.

    Raises:
        SchemaError: the parts are no valid domain.
    """

    name: str
    values: tuple[Value, ...] = ()
    codes: int = 0
    edges: tuple[float, ...] = ()
    integral: bool = False
    clamp: bool = False
    missing: bool = False
    other: Value | None = None
    ordered: bool = False
    resolution: float | None = None
    calendar: Calendar | None = None
    timezone: str | None = None
    format: str | None = None
    source: str | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise SchemaError(
                f"An attribute's name is {self.name!r}; give every attribute a non-empty text name."
            )
        if not is_text(self.name):
            raise SchemaError(
                f"An attribute's name is {self.name!r}, which is no text; correct it."
            )
        where = f"Attribute {self.name!r}"
        for flag in FLAGS:
            if not isinstance(getattr(self, flag), bool):
                raise SchemaError(
                    f"{where}: {flag} is {getattr(self, flag)!r}; write true or false."
                )
        if len(domains := [part for part in KINDS if getattr(self, part)]) != 1:
            raise SchemaError(
                f"{where} has {' and '.join(domains) or 'no domain, or an empty one'}; "
                "give it exactly one of values, codes, edges, or bounds with bins."
            )
        if self.source is not None and (not isinstance(self.source, str) or not self.source):
            raise SchemaError(
                f"{where}: source is {self.source!r}; write where the domain is from."
            )
        if self.kind == "categorical":
            self._check_values(where)
        elif self.other is not None:
            raise SchemaError(
                f"{where} has 'other', which only categorical attributes can have; remove it."
            )
        if self.kind == "integer" and (type(self.codes) is not int or self.codes < 1):
            raise SchemaError(
                f"{where} has {self.codes!r} codes; it needs a whole number of at least 1."
            )
        if self.kind == "numeric":
            self._check_grid(where)
            self._check_edges(where)
        elif given_away := [
            key for key in ("integral", "clamp", *GRID) if getattr(self, key) not in (None, False)
        ]:
            raise SchemaError(
                f"{where} has {given_away[0]!r}, which only numeric attributes can have; remove it."
            )
        if self.kind != "categorical":
            object.__setattr__(self, "ordered", True)
        if self.size > MAX_SIZE:
            raise SchemaError(
                f"{where} has {self.size:,} codes; at most {MAX_SIZE:,} are possible, use wider bins or 'other'."
            )

    def __repr__(self) -> str:
        codes = self.size - self.missing
        domain = {"categorical": f"{codes:,} values", "integer": f"codes 0 to {codes - 1}"}.get(
            self.kind, f"{codes:,} bins from {self.bounds_text if self.edges else ''}"
        )
        return f"<{self.name}: {domain}{', or missing' * self.missing}>"

    def _check_values(self, where: str) -> None:
        values = tuple(self.values)
        kinds = {type(value) for value in values} | (
            {type(self.other)} if self.other is not None else set()
        )
        # The checks below take time, and a schema may come from anyone.
        if len(values) > MAX_SIZE:
            raise SchemaError(
                f"{where} has {len(values):,} values; at most {MAX_SIZE:,} are possible, use 'other'."
            )
        if any(isinstance(value, int) and abs(value) >= 1 << 63 for value in (*values, self.other)):
            raise SchemaError(
                f"{where}: whole numbers among the values must have 64 bits or fewer; write larger ones as text."
            )
        if not all(is_text(value) for value in (*values, self.other) if isinstance(value, str)):
            raise SchemaError(f"{where}: a value is no text; correct it.")
        if kinds == {int, float}:
            values, kinds = tuple(map(float, values)), {float}
        numbers = kinds == {float}
        finite = not numbers or all(math.isfinite(float(value)) for value in values)
        if len(kinds) > 1 or not kinds <= {str, int, float, bool} or not finite:
            raise SchemaError(
                f"{where}: values and 'other' must be all text, all finite numbers or all true/false."
            )
        if self.other is not None and self.other not in values:
            values = (*values, self.other)
        object.__setattr__(self, "values", values)
        if len(set(values)) < len(values):
            twice = next(value for i, value in enumerate(values) if value in values[:i])
            raise SchemaError(f"{where} lists the value {twice!r} twice; list it once.")

    def _check_grid(self, where: str) -> None:
        if self.calendar is not None and self.calendar not in CALENDARS:
            raise SchemaError(
                f"{where} has the calendar {self.calendar!r}; use one of {', '.join(CALENDARS)}."
            )
        if self.timezone is not None:
            if self.calendar != "timestamp":
                raise SchemaError(
                    f"{where} has a timezone, which only timestamps can have; remove it."
                )
            _check_zone(self.name, self.timezone)
        if self.format is not None and not (
            isinstance(self.format, str) and "%" in self.format
            if self.calendar
            else self.format in (".", ",")
        ):
            raise SchemaError(
                f"{where}: format is {self.format!r}; of dates write '%d/%m/%Y' and the like, of numbers their decimal mark."
            )
        resolution = self.resolution
        if resolution is not None:
            if (
                isinstance(resolution, bool)
                or not isinstance(resolution, int | float)
                or not 0 < resolution < math.inf
            ):
                raise SchemaError(
                    f"{where}: resolution is {resolution!r}; write a number above 0, as 0.01 for hundredths."
                )
            if self.calendar is not None and resolution != int(resolution):
                raise SchemaError(
                    f"{where}: resolution is {resolution!r}; that of dates and times is a whole number."
                )
        if self.integral and (resolution is not None or self.calendar is not None):
            raise SchemaError(
                f"{where} is integral and has a resolution or a calendar; give it one of them."
            )

    def _check_edges(self, where: str) -> None:
        try:
            edges = tuple(float(edge) for edge in self.edges)
        except (TypeError, ValueError, OverflowError):
            raise SchemaError(f"{where}: edges must be numbers.") from None
        object.__setattr__(self, "edges", edges)
        if len(edges) < 2:
            raise SchemaError(
                f"{where} has {len(edges)} edges; it needs at least 2, the public bounds."
            )
        if not all(map(math.isfinite, edges)):
            raise SchemaError(
                f"{where}: edges must be finite; give public bounds, and clamp = true if values may exceed them."
            )
        if self.calendar is not None:
            try:
                _ = [
                    to_text(self.calendar, edge, self.timezone) for edge in (min(edges), max(edges))
                ]
            except (OverflowError, ValueError, OSError):
                raise SchemaError(f"{where}: edges must lie in the years 1 to 9999.") from None
        if self.step and max(map(abs, edges)) / self.step >= MAX_STEPS:
            raise SchemaError(
                f"{where}: edges lie more than {MAX_STEPS:g} steps of {self.step:g} from 0; use a coarser resolution."
            )
        for i, (low, high) in enumerate(itertools.pairwise(edges)):
            if low >= high:
                raise SchemaError(
                    f"{where}: edges must increase, but {self.edge_text(i)} is followed by {self.edge_text(i + 1)}."
                )
        if self.step:
            for code in range(len(edges) - 1):
                low, high = self.multiples(code)
                if low > high:
                    kind = "whole number" if self.integral else f"multiple of {self.step:g}"
                    raise SchemaError(
                        f"{where}: the bin from {self.edge_text(code)} to {self.edge_text(code + 1)} holds no {kind}; "
                        f"use wider bins or {'integral = false' if self.integral else 'a finer resolution'}."
                    )

    @classmethod
    def categorical(
        cls,
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
        values = tuple(map(plain, values))
        return cls(name, values, missing=missing, other=other, ordered=ordered)

    @classmethod
    def integer(cls, name: str, codes: int, *, missing: bool = False) -> Attribute:
        """An attribute whose column has the codes 0 to ``codes`` - 1.

        Args:
            name: column name.
            codes: number of codes.
            missing: whether missing values are a category, not an error.

        Raises:
            SchemaError: the parts are no valid domain.
        """
        return cls(name, codes=codes, missing=missing)

    @classmethod
    def numeric(
        cls,
        name: str,
        edges: Iterable[float],
        *,
        integral: bool = False,
        resolution: float | None = None,
        clamp: bool = False,
        missing: bool = False,
        format: str | None = None,
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

        Raises:
            SchemaError: the parts are no valid domain.
        """
        return cls(
            name,
            edges=tuple(edges),
            integral=integral,
            resolution=resolution,
            clamp=clamp,
            missing=missing,
            format=format,
        )

    @classmethod
    def temporal(
        cls,
        name: str,
        calendar: Calendar,
        edges: Iterable[Any],
        *,
        timezone: str | None = None,
        resolution: float | None = None,
        clamp: bool = False,
        missing: bool = False,
        format: str | None = None,
    ) -> Attribute:
        """Dates, times of day or timestamps with public bin edges.

        Args:
            name: column name.
            calendar: "date", "time" or "timestamp".
            edges: bin edges: numbers, objects of :mod:`datetime`, or ISO 8601 texts.
            timezone: IANA name of the time zone of timestamps; None for local time.
            resolution: values are multiples of it; None if they are not.
            clamp: whether values outside the edges count as the nearest edge.
            missing: whether missing values are a category, not an error.
            format: how texts are written.

        Raises:
            SchemaError: the parts are no valid domain.
        """
        numbers = _instants(name, calendar, edges, timezone)
        return cls(
            name,
            edges=numbers,
            clamp=clamp,
            missing=missing,
            resolution=resolution,
            calendar=calendar,
            timezone=timezone,
            format=format,
        )

    @property
    def kind(self) -> Kind:
        """The kind by that part: "categorical", "integer" or "numeric"."""
        return next(kind for part, kind in KINDS.items() if getattr(self, part))

    @property
    def size(self) -> int:
        """Number of codes, including that of missing values."""
        return (len(self.values) or self.codes or len(self.edges) - 1) + self.missing

    @property
    def step(self) -> float:
        """Values of a numeric attribute are multiples of it; 0 if they are not."""
        return 1.0 if self.integral else self.resolution or float(self.calendar is not None)

    def multiples(self, code: int) -> tuple[int, int]:
        """The least and greatest multiple of the step in a bin of a numeric attribute, in steps."""
        # Rounding removes errors such as 0.7 / 0.1 = 6.999...
        low, high = (round(edge / self.step, 6) for edge in self.edges[code : code + 2])
        last = code == len(self.edges) - 2
        return math.ceil(low), math.floor(high) if last else math.ceil(high) - 1

    def edge_text(self, index: int) -> str:
        """An edge of a numeric attribute as text."""
        edge = self.edges[index]
        return f"{edge:g}" if self.calendar is None else to_text(self.calendar, edge, self.timezone)

    @property
    def bounds_text(self) -> str:
        """The bounds of a numeric attribute as text."""
        return f"{self.edge_text(0)} to {self.edge_text(len(self.edges) - 1)}"

    def code_text(self, code: int) -> str:
        """The value or bin of a code as text."""
        if self.missing and code == self.size - 1:
            return "missing"
        if self.kind == "numeric":
            return f"from {self.edge_text(code)} to {self.edge_text(code + 1)}"
        return repr(self.values[code] if self.kind == "categorical" else code)

    def to_json(self) -> dict[str, Any]:
        """The attribute as the mapping that a schema file holds; parts at their defaults are left
        out.
        """
        parts = {part: getattr(self, part.name) for part in fields(self)}
        out = {part.name: value for part, value in parts.items() if value != part.default}
        if self.kind == "categorical":
            out["values"] = list(self.values)
        else:
            del out["ordered"]
        if self.kind == "numeric":
            out["edges"] = (
                [
                    int(edge) if edge.is_integer() and abs(edge) < 1e15 else edge
                    for edge in self.edges
                ]
                if self.calendar is None
                else [to_text(self.calendar, edge, self.timezone) for edge in self.edges]
            )
        return out

    @classmethod
    def from_json(cls, data: Any) -> Attribute:
        """Read the mapping of a schema file; ``bounds`` and ``bins`` (a number of equally wide
        ones, or a unit of the calendar) may stand for ``edges``, and the edges' kind for
        ``calendar``.

        Raises:
            SchemaError: unknown or contradicting keys, or parts that do not make a domain.
        """
        if not isinstance(data, Mapping):
            raise SchemaError(
                f"An attribute of the schema is {data!r}; write a name and its values, codes or edges."
            )
        parts = dict(data)
        name = parts.setdefault("name", "")
        if PRIVATE in (parts.get("bins"), parts.get("values")):
            raise SchemaError(
                f"Attribute {name!r} has a private domain, which has not been found yet: `vertimrf schema domains` finds it, "
                "with noise."
            )
        keys = [*(part.name for part in fields(cls)), "bounds", "bins"]
        if unknown := sorted(map(str, parts.keys() - set(keys))):
            raise SchemaError(
                f"Attribute {name!r} has the unknown key {unknown[0]!r}; the keys are {', '.join(keys)}."
            )
        if ("bounds" in parts or "bins" in parts) and "edges" in parts:
            raise SchemaError(
                f"Attribute {name!r} has edges as well as bounds or bins; give one or the other."
            )
        bounds, bins = parts.pop("bounds", None), parts.pop("bins", None)
        given = parts.get("edges", bounds)
        if _is_list(given) and given and calendar_of(given[0]) is not None:
            parts.setdefault("calendar", calendar_of(given[0]))
        if parts.get("calendar") in CALENDARS:
            zone = parts.get("timezone")
            if bounds is not None or bins is not None:
                parts["edges"] = calendar_edges(name, parts["calendar"], bounds, bins, zone)
            elif _is_list(given):
                parts["edges"] = _instants(name, parts["calendar"], given, zone)
        elif bounds is not None or bins is not None:
            parts["edges"] = equal_edges(name, bounds, bins)
        for key in ("values", "edges"):
            if key in parts:
                if not _is_list(parts[key]):
                    raise SchemaError(f"Attribute {name!r}: {key} is {parts[key]!r}; write a list.")
                parts[key] = tuple(parts[key])
        return cls(**parts)


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def plain(value: Any) -> Any:
    """Convert dates and times to text, and values of NumPy to plain ones."""
    value = getattr(value, "item", lambda: value)()
    return value if calendar_of(value) is None else value.isoformat()


def folded(text: str) -> str:
    """What texts share that differ by case and surrounding spaces alone."""
    return text.strip().casefold()


def is_text(value: str) -> bool:
    """Whether a text has no surrogates, which JSON can escape and UTF-8 cannot encode."""
    return not any("\ud800" <= character <= "\udfff" for character in value)


def equal_edges(name: str, bounds: Any, bins: Any) -> tuple[float, ...]:
    """Edges of bins of equal width between two bounds."""
    _check_bounds(name, bounds, "the two public bounds, as in bounds = [0, 100]", int | float)
    if type(bins) is not int or not 1 <= bins <= MAX_SIZE:
        raise SchemaError(
            f"Attribute {name!r}: bins is {bins!r}; write how many equally wide bins, as in bins = 20."
        )
    try:
        low, high = map(float, bounds)
    except OverflowError:
        raise SchemaError(
            f"Attribute {name!r}: a bound is too large for a number; give other bounds."
        ) from None
    return (*(low + (high - low) * i / bins for i in range(bins)), high)


def calendar_edges(
    name: str, calendar: Calendar, bounds: Any, bins: Any, timezone: str | None
) -> tuple[float, ...]:
    """Edges between two dates or times: bins of equal width, in whole days or seconds, or units of
    the calendar.
    """
    _check_bounds(name, bounds, f"the first and the last {calendar}", object)
    low, high = _instants(name, calendar, bounds, timezone)
    if bins in UNITS:
        try:
            return unit_edges(calendar, low, high, bins, MAX_SIZE, timezone)
        except (ValueError, OverflowError) as error:
            raise SchemaError(f"Attribute {name!r}: bins is {bins!r}, but {error}.") from None
    if isinstance(bins, str):
        raise SchemaError(
            f"Attribute {name!r}: bins is {bins!r}; write a number, or one of {', '.join(UNITS)}."
        )
    return tuple(float(round(edge)) for edge in equal_edges(name, (low, high), bins))


def _check_bounds(name: str, bounds: Any, remedy: str, kind: Any) -> None:
    pair = _is_list(bounds) and len(bounds) == 2
    if not pair or not all(isinstance(bound, kind) for bound in bounds):
        raise SchemaError(f"Attribute {name!r}: bounds is {bounds!r}; write {remedy}.")


def _check_zone(name: str, timezone: Any) -> None:
    try:
        ZoneInfo(timezone)
    except (KeyError, ValueError, OSError, TypeError, AttributeError):
        raise SchemaError(
            f"Attribute {name!r}: no time zone is called {timezone!r}; use a name as 'Europe/Vienna'."
        ) from None


def _instants(
    name: str, calendar: Calendar, values: Iterable[Any], timezone: str | None
) -> tuple[float, ...]:
    """Convert dates or times to numbers."""
    if timezone is not None:
        _check_zone(name, timezone)
    try:
        numbers = tuple(
            float(v) if type(v) in (int, float) else to_number(calendar, v, timezone)
            for v in values
        )
        if not all(map(math.isfinite, numbers)):
            raise ValueError("one is no finite number")
        return numbers
    except (ValueError, TypeError, AttributeError, OSError, OverflowError) as error:
        raise SchemaError(
            f"Attribute {name!r}: edges and bounds must be of the calendar {calendar!r} ({error})."
        ) from None

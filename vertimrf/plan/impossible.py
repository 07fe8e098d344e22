"""Impossible combinations: what no record can be, as public knowledge has it ("nobody under 15 is married").

A schema states them, and the model keeps them exactly: they are its structural zeros. Which codes they rule out follows from the
attributes' domains.
"""

from __future__ import annotations

import datetime
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import SchemaError
from .attribute import Attribute, Value
from .calendar import to_number

__all__ = ["Combination", "Condition", "Impossible", "contradiction", "never"]

# What says "no value" among values, unless the attribute has a value of that name; null of JSON, by itself, always does.
MISSING = "missing"
# Choices that are looked at to find whether combinations leave anything possible: a second, or so. There are combinations for
# which nobody knows how to find that soon (they can say whatever a Boolean formula says).
MAX_CHOICES = 4_000_000
LOWEST, HIGHEST = ("from", "above"), ("below", "to")

# Positions of attributes, increasing, each with the codes that it may not have together with the others'.
Combination = tuple[tuple[int, tuple[int, ...]], ...]


@dataclass(frozen=True)
class Condition:
    """Some values of one attribute: those listed, those between limits, those that are missing, or those that are not.

    Attributes:
        attribute: its name.
        values: any of these.
        limits: ``from`` or ``above``, ``below`` or ``to``, each with a number, or a date or time as text.
        missing: whether values are missing; None where the other parts say which are meant.
    """

    attribute: str
    values: tuple[Value, ...] = ()
    limits: tuple[tuple[str, Value], ...] = ()
    missing: bool | None = None

    def __str__(self) -> str:
        if self.missing is not None:
            return f"{self.attribute} {'' if self.missing else 'not '}missing"
        if self.limits:
            return f"{self.attribute} {' '.join(f'{key} {limit}' for key, limit in self.limits)}"
        return f"{self.attribute} = {' or '.join(map(repr, self.values))}"

    @classmethod
    def from_json(cls, attribute: str, given: Any) -> Condition:
        """Read a value, a list of values, or a table of limits.

        Raises:
            SchemaError: something else.
        """
        if given is None:
            return cls(attribute, missing=True)
        if isinstance(given, Mapping):
            if set(given) == {MISSING} and isinstance(given[MISSING], bool):
                return cls(attribute, missing=given[MISSING])
            limits = tuple((key, plain(given[key])) for key in (*LOWEST, *HIGHEST) if key in given)
            twice = any(set(ends) <= set(given) for ends in (LOWEST, HIGHEST))
            if (
                not limits
                or twice
                or len(limits) < len(given)
                or not all(isinstance(v, str | int | float) for _, v in limits)
            ):
                raise SchemaError(
                    f"{attribute!r} is {dict(given)!r}; write 'from' or 'above', 'below' or 'to', each with a number, date or "
                    "time, or 'missing' with true or false."
                )
            return cls(attribute, limits=limits)
        values = tuple(map(plain, given)) if isinstance(given, list | tuple) else (plain(given),)
        if not values or not all(isinstance(value, str | int | float) for value in values):
            raise SchemaError(
                f"{attribute!r} is {given!r}; write a value, a list of values, or limits as in {{below = 15}}."
            )
        return cls(attribute, values=values)

    def to_json(self) -> Any:
        """What :meth:`from_json` reads back."""
        if self.missing is not None:
            return {MISSING: self.missing}
        return dict(self.limits) if self.limits else list(self.values)

    def codes(self, attribute: Attribute) -> tuple[int, ...]:
        """The codes that it is about, increasing: of numbers, the bins that lie wholly within it.

        Raises:
            SchemaError: a value or limit that the attribute cannot have, or none that is meant.
        """
        present = attribute.size - attribute.missing
        if self.missing is not None:
            _check_missing(attribute)
            return (present,) if self.missing else tuple(range(present))
        if self.limits:
            found = set(_between(attribute, self.limits)[0])
        else:
            found = set()
            for value in self.values:
                if value == MISSING and MISSING not in attribute.values:
                    _check_missing(attribute)
                    found.add(present)
                else:
                    found.update(_codes_of(attribute, value))
        if not found:
            what = "bin" if attribute.kind == "numeric" else "value"
            raise SchemaError(
                f"no {what} of {attribute.name!r} lies wholly within {str(self)!r}; "
                + ("cut its bins there, by edges." if what == "bin" else "its values are others.")
            )
        return tuple(sorted(found))

    def cut(self, attribute: Attribute) -> tuple[int, ...]:
        """Bins that lie partly within the limits: they stay possible."""
        return tuple(_between(attribute, self.limits)[1]) if self.limits else ()


@dataclass(frozen=True)
class Impossible:
    """Values of some attributes that no record has together.

    Attributes:
        conditions: one per attribute, in the order of their names; no record fulfils all of them.
    """

    conditions: tuple[Condition, ...]

    def __post_init__(self) -> None:
        object.__setattr__(
            self,
            "conditions",
            tuple(sorted(self.conditions, key=lambda condition: condition.attribute)),
        )

    def __str__(self) -> str:
        return " and ".join(map(str, self.conditions))

    @classmethod
    def of(cls, **conditions: Any) -> Impossible:
        """A combination by attribute names, each with a value, a list of values, or limits as in a schema file.

        Example:
            >>> str(Impossible.of(age={"below": 15}, married="yes"))
            "age below 15 and married = 'yes'"
        """
        return cls.from_json(conditions)

    @classmethod
    def from_json(cls, data: Any) -> Impossible:
        """Read a table of conditions by attribute name.

        Raises:
            SchemaError: no such table.
        """
        if not isinstance(data, Mapping) or not data:
            raise SchemaError(
                f"it is {data!r}; write attributes with their values, as in age = {{below = 15}}."
            )
        return cls(tuple(Condition.from_json(name, given) for name, given in data.items()))

    def to_json(self) -> dict[str, Any]:
        """What :meth:`from_json` reads back."""
        return {condition.attribute: condition.to_json() for condition in self.conditions}

    def combination(self, attributes: Sequence[Attribute]) -> Combination:
        """The codes that are ruled out, by the attributes' positions; an attribute any of whose values will do is left out.

        Raises:
            SchemaError: an attribute or a value that there is not.
        """
        places = {attribute.name: place for place, attribute in enumerate(attributes)}
        out = {}
        for condition in self.conditions:
            if condition.attribute not in places:
                raise SchemaError(f"there is no attribute {condition.attribute!r}.")
            place = places[condition.attribute]
            codes = condition.codes(attributes[place])
            if len(codes) < attributes[place].size:
                out[place] = codes
        return tuple(sorted(out.items()))


def plain(value: Any) -> Any:
    """Dates and times of TOML as text, all else as it is."""
    return value.isoformat() if isinstance(value, datetime.date | datetime.time) else value


def _check_missing(attribute: Attribute) -> None:
    if not attribute.missing:
        raise SchemaError(
            f"{attribute.name!r} has no missing values; set missing = true for it, or leave the condition out."
        )


def _codes_of(attribute: Attribute, value: Value) -> list[int]:
    """Codes of one value: its own, or the bin that holds nothing else."""
    if attribute.kind == "numeric":
        return _between(attribute, (("from", value), ("to", value)))[0]
    listed: Iterable[Value] = (
        attribute.values if attribute.kind == "categorical" else range(attribute.codes)
    )
    numbers = not isinstance(value, bool | str)
    found = [
        code
        for code, own in enumerate(listed)
        if own == value
        and (numbers if not isinstance(own, bool | str) else type(own) is type(value))
    ]
    if not found:
        raise SchemaError(f"{value!r} is no value of {attribute.name!r} in the schema.")
    return found


def _between(
    attribute: Attribute, limits: Sequence[tuple[str, Value]]
) -> tuple[list[int], list[int]]:
    """Codes whose values all lie between limits, and codes of which some do."""
    low, high = -math.inf, math.inf
    low_open = high_open = False
    for key, limit in limits:
        number = _number(attribute, limit)
        if key in LOWEST:
            low, low_open = number, key == "above"
        else:
            high, high_open = number, key == "below"
    every, some = [], []
    for code, (first, last, last_open) in enumerate(_spans(attribute)):
        # What both have in common; an end that either leaves out is left out.
        begin, end = max(first, low), min(last, high)
        begin_open = low_open and low >= first
        end_open = (high_open and high <= last) or (last_open and last <= high)
        if (begin, end, begin_open, end_open) == (first, last, False, last_open):
            every.append(code)
        elif _holds_any(attribute, begin, end, begin_open, end_open):
            some.append(code)
    return every, some


def _holds_any(
    attribute: Attribute, begin: float, end: float, begin_open: bool, end_open: bool
) -> bool:
    """Whether the attribute has a value from begin to end."""
    if begin >= end:
        return begin == end and not (begin_open or end_open)
    if attribute.kind == "numeric" and not attribute.step:
        return True
    # Values are counted in whole numbers, or the span is one value.
    return (
        math.floor(begin) + 1 <= math.ceil(end) - 1
        or not (begin_open or begin % 1)
        or not (end_open or end % 1)
    )


def _spans(attribute: Attribute) -> list[tuple[float, float, bool]]:
    """First and last value of every code but a missing one's, and whether the last is left out."""
    if attribute.kind == "integer":
        return [(code, code, False) for code in range(attribute.codes)]
    if attribute.kind == "categorical":
        return [(float(value), float(value), False) for value in attribute.values]
    bins = range(len(attribute.edges) - 1)
    if attribute.step:
        return [(float(low), float(high), False) for low, high in map(attribute.multiples, bins)]
    return [(attribute.edges[i], attribute.edges[i + 1], i < bins[-1]) for i in bins]


def _number(attribute: Attribute, limit: Value) -> float:
    """A limit as a number of the attribute's spans."""
    if attribute.kind == "categorical" and (
        isinstance(limit, bool | str) or isinstance(attribute.values[0], bool | str)
    ):
        raise SchemaError(
            f"{attribute.name!r} has no numbers that {limit!r} could be a limit of; list its values."
        )
    try:
        if attribute.calendar is not None:
            number = to_number(attribute.calendar, limit, attribute.timezone)
        else:
            number = math.nan if isinstance(limit, bool | str) else float(limit)
    except (ValueError, TypeError, AttributeError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        kind = attribute.calendar or "number"
        raise SchemaError(f"{limit!r} is no {kind}, which {attribute.name!r} holds.")
    # As multiples of the step are counted: 0.7 is 6.999... steps of 0.1.
    return (
        round(number / attribute.step, 6)
        if attribute.kind == "numeric" and attribute.step
        else number
    )


def contradiction(
    combinations: Sequence[Combination],
    sizes: Sequence[int],
    given: Mapping[int, Iterable[int]] | None = None,
) -> tuple[int, ...]:
    """Which combinations together leave nothing possible: few, by their place; none if something is left.

    Args:
        combinations: codes that are ruled out together.
        sizes: number of codes of every attribute.
        given: by position, the codes that are asked for; any without it.

    Raises:
        SchemaError: nobody can tell soon.
    """
    asked = {} if given is None else given
    if (logic := _Logic(combinations, sizes)).possible(asked):
        return ()
    kept = list(range(len(combinations)))
    for one in range(len(combinations)):
        fewer = [i for i in kept if i != one]
        try:
            logic = _Logic([combinations[i] for i in fewer], sizes, logic.choices)
            if not logic.possible(asked):
                kept = fewer
        except _TooTangledError:
            break
    return tuple(kept)


def never(
    combinations: Sequence[Combination], sizes: Sequence[int]
) -> list[tuple[int, tuple[int, ...]]]:
    """Attributes with the codes that no record can have, whatever its others are; attributes without any, or for which nobody
    can tell soon, are left out.
    """
    logic = _Logic(combinations, sizes)
    out = []
    for place in sorted(logic.taking):
        try:
            found = tuple(
                code for code in range(sizes[place]) if not logic.possible({place: [code]})
            )
        except _TooTangledError:
            break
        if found:
            out.append((place, found))
    return out


class _TooTangledError(SchemaError):
    """Nobody can tell soon enough what combinations leave possible."""


class _Logic:
    """Which records break none of some combinations. Sets of combinations are bits of a number.

    Attributes:
        taking: by attribute, the combinations that it takes part in.
        among: by attribute and code, those whose codes it is among.
        choices: how many were looked at.
    """

    def __init__(
        self, combinations: Sequence[Combination], sizes: Sequence[int], choices: int = 0
    ) -> None:
        self._sayable = all(combinations)
        self.choices = choices + len(combinations)
        self.taking: dict[int, int] = defaultdict(int)
        self.among: dict[int, list[int]] = {}
        for i, combination in enumerate(combinations):
            for place, codes in combination:
                self.taking[place] |= 1 << i
                held = self.among.setdefault(place, [0] * sizes[place])
                for code in codes:
                    held[code] |= 1 << i
        self._codes = {place: set(held) for place, held in self.among.items()}

    def possible(self, given: Mapping[int, Iterable[int]]) -> bool:
        """Whether there is such a record among those of the codes given. What no combination links is looked at apart."""
        asked = {
            place: {self.among[place][code] for code in codes}
            for place, codes in given.items()
            if place in self.among
        }
        inside = {**self._codes, **asked}
        left = dict(self.taking)
        while left:
            place, linked = left.popitem()
            part = {place}
            while fresh := [p for p, bits in left.items() if bits & linked]:
                for p in fresh:
                    linked |= left.pop(p)
                part.update(fresh)
            if not self._search(linked, part, inside):
                return False
        return self._sayable

    def _search(self, alive: int, unset: set[int], inside: Mapping[int, set[int]]) -> bool:
        """Whether the attributes that are not set yet have codes that keep all combinations alive from being fulfilled.

        The attribute with the fewest choices goes first; codes that leave the same combinations alive are one choice.
        """
        if not alive:
            return True
        best: tuple[int, set[int]] | None = None
        self.choices += sum(len(inside[place]) for place in unset)
        if self.choices > MAX_CHOICES:
            raise _TooTangledError(
                "The impossible combinations are too entangled to tell whether they leave any record possible; state fewer of "
                "them, or each of fewer attributes."
            )
        for place in unset:
            others = 0
            for other in unset - {place}:
                others |= self.taking[other]
            own = self.taking[place]
            last = alive & own & ~others
            choices = {alive & ~(own & ~among) for among in inside[place] if not among & last}
            if best is None or len(choices) < len(best[1]):
                best = place, choices
        assert best is not None
        place, choices = best
        return any(
            self._search(alive, unset - {place}, inside)
            for alive in sorted(choices, key=lambda bits: bits.bit_count())
        )

"""Structural zeros of a schema ("nobody under 15 is married"), as codes of attributes.

A schema states them as public knowledge, under ``impossible``, and the model gives them exactly no
mass. This module converts them to codes of the attributes' domains, and decides whether they leave
any record possible.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..arguments import check, each, instance, shown
from ..arrays import Fields, Ints
from ..columns.column import Attribute
from ..columns.text import Value, plain
from ..errors import SchemaError

# Means a missing value among values, unless the attribute has a value of that name. JSON's null
# alone always means one.
MISSING = "missing"
# Most choices in a search for a possible record, about a second. Combinations can express any
# Boolean formula, so the problem is NP-hard.
MAX_CHOICES = 4_000_000
LOWEST, HIGHEST = ("from", "above"), ("below", "to")

# Positions of attributes, increasing, each with codes. No record has a listed code of every
# attribute.
Combination = tuple[tuple[int, Ints], ...]


@dataclass(frozen=True)
class Condition:
    """A condition on one attribute: listed values, values within limits, missing values, or values
    that are present.

    Attributes:
        attribute: name of the attribute.
        values: the listed values.
        limits: ``from`` or ``above``, ``below`` or ``to``, each with a number, or a date or time as
            text.
        missing: whether the value is missing; None for listed values and limits.
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
            SchemaError: it is none of these.
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
                f"{attribute!r} is {shown(given)}; write a value, a list of values, or limits as in {{below = 15}}."
            )
        return cls(attribute, values=values)

    def to_json(self) -> Any:
        """What :meth:`from_json` reads."""
        if self.missing is not None:
            return {MISSING: self.missing}
        return dict(self.limits) if self.limits else list(self.values)

    def codes(self, attribute: Attribute) -> Ints:
        """The codes that fulfil the condition, increasing. A bin must lie wholly within the limits.

        Raises:
            SchemaError: the attribute cannot have a value or limit, or no code fulfils the
                condition.
        """
        present = attribute.size - attribute.missing
        if self.missing is not None:
            _check_missing(attribute)
            return (present,) if self.missing else tuple(range(present))
        if self.limits:
            codes = set(attribute.between(self.limits)[0])
        else:
            codes = set()
            for value in self.values:
                if value == MISSING and not attribute.has(MISSING):
                    _check_missing(attribute)
                    codes.add(present)
                else:
                    codes.update(attribute.codes_of(value))
        if not codes:
            raise SchemaError(
                f"no {attribute.noun} of {attribute.name!r} lies wholly within {str(self)!r}; "
                + (
                    "cut its bins there, by edges."
                    if attribute.noun == "bin"
                    else "its values are others."
                )
            )
        return tuple(sorted(codes))

    def cut(self, attribute: Attribute) -> Ints:
        """Bins that lie partly within the limits; they do not fulfil the condition."""
        return tuple(attribute.between(self.limits)[1]) if self.limits else ()


@dataclass(frozen=True)
class Impossible:
    """A structural zero: conditions that no record fulfils together.

    Attributes:
        conditions: one per attribute, in the order of their names.
    """

    conditions: tuple[Condition, ...]

    def __post_init__(self) -> None:
        check(SchemaError, vars(self), conditions=each(instance("Condition")))
        object.__setattr__(
            self,
            "conditions",
            tuple(sorted(self.conditions, key=lambda condition: condition.attribute)),
        )

    def __str__(self) -> str:
        return " and ".join(map(str, self.conditions))

    __repr__ = __str__

    @classmethod
    def of(cls, **conditions: Any) -> Impossible:
        """A structural zero by attribute names, each with a value, a list of values, or limits as
        in a schema file.

        Example:
            >>> str(Impossible.of(age={"below": 15}, married="yes"))
            "age below 15 and married = 'yes'"
        """
        return cls.from_json(conditions)

    @classmethod
    def from_json(cls, data: Any) -> Impossible:
        """Read a table of conditions by attribute name.

        Raises:
            SchemaError: it is no such table.
        """
        if not isinstance(data, Mapping) or not data:
            raise SchemaError(
                f"it is {shown(data)}; write attributes with their values, as in age = {{below = 15}}."
            )
        return cls(tuple(Condition.from_json(name, given) for name, given in data.items()))

    def to_json(self) -> Fields:
        """What :meth:`from_json` reads."""
        return {condition.attribute: condition.to_json() for condition in self.conditions}

    def combination(self, attributes: Sequence[Attribute]) -> Combination:
        """The ruled-out codes by the attributes' positions, without attributes whose every code
        fulfils its condition.

        Raises:
            SchemaError: an attribute or a value does not exist.
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


def _check_missing(attribute: Attribute) -> None:
    if not attribute.missing:
        raise SchemaError(
            f"{attribute.name!r} has no missing values; set missing = true for it, or leave the condition out."
        )


def contradiction(
    combinations: Sequence[Combination],
    sizes: Sequence[int],
    given: Mapping[int, Iterable[int]] | None = None,
) -> Ints:
    """Find a few combinations that together rule out every record.

    Args:
        combinations: the ruled-out combinations.
        sizes: number of codes of every attribute.
        given: by position, the codes that a record may have; by default any.

    Returns:
        Indices of the combinations; empty if a record is possible.

    Raises:
        SchemaError: the search takes too long.
    """
    allowed = {} if given is None else given
    if (logic := _Logic(combinations, sizes)).possible(allowed):
        return ()
    kept = list(range(len(combinations)))
    for one in range(len(combinations)):
        fewer = [i for i in kept if i != one]
        try:
            logic = _Logic([combinations[i] for i in fewer], sizes, logic.choices)
            if not logic.possible(allowed):
                kept = fewer
        except _TooTangledError:
            break
    return tuple(kept)


def never(combinations: Sequence[Combination], sizes: Sequence[int]) -> list[tuple[int, Ints]]:
    """Attributes with the codes that no record can have.

    Attributes without such codes, or whose search takes too long, are left out.
    """
    logic = _Logic(combinations, sizes)
    out = []
    for place in sorted(logic.taking):
        try:
            codes = tuple(
                code for code in range(sizes[place]) if not logic.possible({place: [code]})
            )
        except _TooTangledError:
            break
        if codes:
            out.append((place, codes))
    return out


class _TooTangledError(SchemaError):
    """The search for a possible record takes too long."""


class _Logic:
    """Search for records that break none of some combinations. Sets of combinations are bit masks.

    Attributes:
        taking: by attribute, the combinations that name it.
        among: by attribute and code, the combinations that list the code.
        choices: number of choices so far.
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
                combinations_of_code = self.among.setdefault(place, [0] * sizes[place])
                for code in codes:
                    combinations_of_code[code] |= 1 << i
        self._codes = {
            place: set(combinations_of_code) for place, combinations_of_code in self.among.items()
        }

    def possible(self, given: Mapping[int, Iterable[int]]) -> bool:
        """Whether a record with some given codes is possible. Attributes that no combination links
        are searched apart.
        """
        allowed = {
            place: {self.among[place][code] for code in codes}
            for place, codes in given.items()
            if place in self.among
        }
        inside = {**self._codes, **allowed}
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
        """Whether the unset attributes have codes with which no combination in ``alive`` is
        fulfilled.

        The attribute with the fewest choices is set first. Codes that leave the same combinations
        alive are one choice.
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
            combinations = self.taking[place]
            last = alive & combinations & ~others
            choices = {
                alive & ~(combinations & ~among) for among in inside[place] if not among & last
            }
            if best is None or len(choices) < len(best[1]):
                best = place, choices
        assert best is not None
        place, choices = best
        return any(
            self._search(alive, unset - {place}, inside)
            for alive in sorted(choices, key=lambda bits: bits.bit_count())
        )

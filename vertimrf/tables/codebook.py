"""What the header of a file of SPSS, Stata or SAS says of its columns: labels of values, levels, missing codes and formats.

No record decides it, so it may decide how records are read.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..arrays import Texts
from ..columns.column import Attribute
from ..columns.listed import Listed
from ..columns.text import parse
from .objects import csv_text

SCALE, ORDINAL = "scale", "ordinal"
# Fewest labels of a variable of numbers that make it one of codes, where the file calls it a scale.
FEWEST = 2
# A code of SPSS, Stata or SAS; that of one of their kinds of missing is a letter.
Code = float | int | str


@dataclass(frozen=True)
class Variable:
    """What a file says of a column.

    Attributes:
        name: the column.
        about: its label, a sentence; empty if it has none.
        labels: what codes mean, in the order of the file.
        level: nominal, ordinal, scale, or unknown.
        missing: ranges of codes that are declared to be missing, the ends included.
        kinds: letters of the kinds of missing that labels name.
        format: how the program shows its numbers, such as DATE11 or %td; empty if it is not known.
        stored: the type of its cells: string, double, float, or int8 to int32.
    """

    name: str
    about: str = ""
    labels: tuple[tuple[Code, str], ...] = ()
    level: str = "unknown"
    missing: tuple[tuple[Code, Code], ...] = ()
    kinds: Texts = ()
    format: str = ""
    stored: str = "double"

    @classmethod
    def of(cls, parts: Mapping[str, Any]) -> Variable:
        """A variable of its parts as JSON has them."""
        pairs = {key: tuple(map(tuple, parts[key])) for key in ("labels", "missing")}
        return cls(**{**parts, **pairs, "kinds": tuple(parts["kinds"])})

    @property
    def shown(self) -> dict[Code, str]:
        """Labels of the codes that are values."""
        return {
            code: label
            for code, label in self.labels
            if code not in self.kinds and not any(_within(code, *ends) for ends in self.missing)
        }

    @property
    def coded(self) -> bool:
        """Whether cells are read as their labels.

        Example: 1 for yes and 2 for no are codes, also in a file that calls them a scale, as R's haven and PSPP do of all numbers; 1 for
        never and 7 for always are the ends of a scale.
        """
        codes = [*self.shown]
        if not codes or self.level != SCALE:
            return bool(codes)
        numbers = sorted(code for code in codes if not isinstance(code, str))
        gapless = all(after - code == 1 for code, after in itertools.pairwise(numbers))
        return len(codes) == len(numbers) >= FEWEST and gapless and numbers[0] % 1 == 0

    @property
    def texts(self) -> dict[Code, str]:
        """What cells of a code are read as: labels, with the code in brackets where another code has the same label; empty if not coded."""
        return told_apart(dict(self.labels)) if self.coded else {}

    @property
    def unread(self) -> bool:
        """Whether there are labels of values that are not read."""
        return bool(self.shown) and not self.coded


def variables(meta: Any, names: Mapping[str, str]) -> list[Variable]:
    """What pyreadstat says of a file.

    Args:
        meta: its metadata, read in an encoding that has all bytes or in the file's own.
        names: by name of a column, its name in ``meta``.
    """
    return [_variable(meta, name, there) for name, there in names.items()]


def _variable(meta: Any, name: str, there: str) -> Variable:
    ranges = meta.missing_ranges.get(there) or ()
    return Variable(
        name,
        meta.column_names_to_labels.get(there) or "",
        tuple((meta.variable_value_labels.get(there) or {}).items()),
        meta.variable_measure.get(there) or "unknown",
        tuple((ends["lo"], ends["hi"]) for ends in ranges),
        tuple(meta.missing_user_values.get(there) or ()),
        meta.original_variable_types.get(there) or "",
        meta.readstat_variable_types.get(there) or "double",
    )


def told_apart(labels: Mapping[Any, str]) -> dict[Any, str]:
    """Labels of values, with the value in brackets where another value has the same label."""
    often = Counter(labels.values())
    return {
        value: label if often[label] == 1 else f"{label} ({csv_text(value)})"
        for value, label in labels.items()
    }


def remarks(about: Iterable[Variable]) -> dict[str, tuple[str, str]]:
    """By column, what its owner should know of it, and what is done."""
    return {
        variable.name: (
            f"has labels of some values, such as {next(iter(variable.shown.values()))!r}, and the file calls it a scale",
            "its numbers are read; set its level to nominal or ordinal if they are codes",
        )
        for variable in about
        if variable.unread
    }


def in_order(attribute: Attribute, about: Mapping[str, Variable]) -> Attribute:
    """The draft of a column: one of labels with its values as their codes are ordered, if the file calls it ordinal."""
    variable = about.get(attribute.name)
    if variable is None or variable.level != ORDINAL or not isinstance(attribute, Listed):
        return attribute
    if attribute.other is not None or attribute.holds_numbers:
        return attribute
    codes = {label: code for code, label in variable.texts.items() if not isinstance(code, str)}
    # A code without a label is a text of its number.
    places = {value: codes.get(str(value), parse(str(value))) for value in attribute.values}
    if any(place != place for place in places.values()):
        return attribute
    return replace(attribute, values=tuple(sorted(places, key=places.__getitem__)), ordered=True)


def _within(code: Code, low: Code, high: Code) -> bool:
    """Whether a code is in a range; texts are in ranges of one text."""
    if isinstance(code, str) or isinstance(low, str) or isinstance(high, str):
        return code == low
    return low <= code <= high

"""Texts and numbers of values, as schemas and tables write them."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arguments import shown
from ..errors import SchemaError
from .calendar import calendar_of

if TYPE_CHECKING:
    from ..arrays import Floats

Value = str | int | float | bool
# Codes are uint16, and one value means "no code".
MAX_SIZE = 65_535
# Double precision tells whole numbers below it apart.
EXACT = 1 << 53
# How bytes are read that are invalid in a file's encoding.
UNDECODED = r"\\x[89a-f][0-9a-f]"
# Codes of cells that have no value in the domain.
MISSING, OUTSIDE = -1, -2
# Cells of text columns that mean a missing value, unless an attribute lists them as values or says
# which do. Stata and SAS write a point.
MISSING_TEXT = ("", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "null", "NULL", ".")


def check_name(name: Any) -> None:
    """Check an attribute's name.

    Raises:
        SchemaError: it is empty or no text.
    """
    if not isinstance(name, str) or not name:
        raise SchemaError(
            f"An attribute's name is {shown(name)}; give every attribute a non-empty text name."
        )
    if not is_text(name):
        raise SchemaError(f"An attribute's name is {shown(name)}, which is no text; correct it.")


def check_texts(where: str, texts: Any) -> None:
    """Check the texts that stand for a missing value.

    Raises:
        SchemaError: they are no texts.
    """
    if not all(isinstance(text, str) for text in texts or ()):
        raise SchemaError(f"{where}: missing_text is {texts!r}; write texts.")


def no_domain(where: str, given: Sequence[str] = ()) -> SchemaError:
    """The error about an attribute with no domain, or with several."""
    return SchemaError(
        f"{where} has {' and '.join(given) or 'no domain, or an empty one'}; "
        "give it exactly one of values, codes, edges, or bounds with bins."
    )


def plain(value: Any) -> Any:
    """Convert dates and times to text, and values of NumPy to plain ones."""
    with contextlib.suppress(TypeError, ValueError):
        # Arrays have it too, and are no value.
        value = getattr(value, "item", lambda: value)()
    return value if calendar_of(value) is None else value.isoformat()


def folded(text: str) -> str:
    """What texts share that differ by case and surrounding spaces alone."""
    return text.strip().casefold()


def is_text(value: str) -> bool:
    """Whether a text has no surrogates, which JSON can escape and UTF-8 cannot encode."""
    return not any("\ud800" <= character <= "\udfff" for character in value)


def parse(text: str) -> float:
    """The number that a text spells, or NaN."""
    try:
        return float(text) if "_" not in text else np.nan
    except ValueError:
        return np.nan


def nearest_listed(values: Floats, limits: Floats, strict: bool, up: bool) -> Floats:
    """As :meth:`Attribute.nearest`, among listed values [shape=(k,), float64, in any order]."""
    sign = 1.0 if up else -1.0
    values = np.append(np.sort(sign * values), np.inf)
    place = np.searchsorted(values[:-1], sign * limits, side="right" if strict else "left")
    nearest: Floats = sign * values[place]
    return nearest

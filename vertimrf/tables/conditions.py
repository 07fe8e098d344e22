"""Conditions on synthetic rows, from Python values or from texts such as "age>=18"."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from ..arrays import Fields, Floats, Integers
from ..columns.column import Attribute
from ..columns.inside import Span
from ..columns.text import plain
from ..errors import PlanError, SchemaError
from ..plan.defaults import HOLDERS_COLUMN
from ..plan.impossible import Condition
from ..plan.schema import Schema
from .table import coded

LIMITS = {">=": "from", ">": "above", "<=": "to", "<": "below"}


def read_conditions(texts: Iterable[str], schema: Schema) -> Fields:
    """Read conditions from texts: ``country=PRT|ESP``, ``adr>=100``, ``adr=100..200``.

    Texts with values of one column allow all of them. Texts with limits hold together.

    Args:
        texts: a column, one of =, >=, >, <=, <, and a value each.
        schema: the columns.

    Returns:
        The conditions by column, as for :func:`allowed`.

    Raises:
        PlanError: a text is no condition, or two contradict each other.
        SchemaError: the schema does not have a column.
    """
    names = sorted((*schema.names, HOLDERS_COLUMN), key=len, reverse=True)
    # A column's name may have operators in it.
    condition = re.compile(
        f"(?:({'|'.join(map(re.escape, names))})\\s*|(.+?))(>=|<=|=|<|>)(.*)", re.DOTALL
    )
    given: Fields = {}
    for text in texts:
        if not (parts := condition.fullmatch(text)):
            raise PlanError(
                f"--where takes COLUMN=VALUE, COLUMN>=VALUE or COLUMN=FROM..TO, not {text!r}."
            )
        known, other, operator, value = parts.groups()
        column = known or other.rstrip()
        if (column, operator) == (HOLDERS_COLUMN, "=") and column not in schema.names:
            asked: Any = value.split("|")
        else:
            asked = _read(schema.attributes[schema.index(column)], operator, value)
        before = given.setdefault(column, type(asked)())
        if type(before) is not type(asked) or (isinstance(asked, dict) and before.keys() & asked):
            raise PlanError(
                f"--where asks twice for {column!r}; give it values, or one lower and one upper limit."
            )
        (before.update if isinstance(asked, dict) else before.extend)(asked)
    return given


def _read(attribute: Attribute, operator: str, value: str) -> list[str] | Fields:
    """Values, or limits by their name."""
    if operator != "=":
        return {LIMITS[operator]: attribute.limit(value)}
    if attribute.has_text(value):
        return [value]
    low, dots, high = value.partition("..")
    if dots and attribute.holds_numbers:
        return {"from": attribute.limit(low), "to": attribute.limit(high)}
    return [part.strip() for part in value.split("|")]


def allowed(
    attribute: Attribute, value: Any, counts: Callable[[], Floats]
) -> tuple[Integers, Span | None]:
    """The codes that a condition allows, and the limits of numbers inside bins.

    Args:
        attribute: the attribute.
        value: a value, a list of values, or limits as in a schema: {"from": 100, "to": 200}. A
            value that is a number stands for its bin; a limit cuts bins.
        counts: gives the records of the attribute's codes in the model.

    Raises:
        SchemaError: the attribute does not have such a value; or a pair in brackets or a slice is
            given, which may be meant as a range.
    """
    if not isinstance(value, Mapping):
        return _codes(attribute, value), None
    as_limits = {key: _as_limit(attribute, limit) for key, limit in value.items()}
    condition = Condition.from_json(attribute.name, as_limits)
    part = attribute.within(condition.limits, counts) if condition.limits else None
    if part is None:
        return np.array(condition.codes(attribute)), None
    codes, span = part
    if not len(codes):
        raise SchemaError(f"The condition {condition} leaves no number; {attribute.near(None)}.")
    return np.array(codes), span


def _as_limit(attribute: Attribute, value: Any) -> Any:
    """A value or limit; a text in the column's notation as a limit of a schema."""
    if isinstance(value, str) and attribute.notation is not None:
        return attribute.limit(value)
    return value


def _codes(attribute: Attribute, value: Any) -> Integers:
    """Codes of a value, or of a list of values [int64]."""
    name, many = (
        attribute.name,
        isinstance(value, list | tuple | set | frozenset | range | np.ndarray),
    )
    if isinstance(value, slice) or (
        isinstance(value, tuple) and len(value) == 2 and attribute.holds_numbers
    ):
        low, high = (value.start, value.stop) if isinstance(value, slice) else value
        raise SchemaError(
            f"Column {name!r} is given {value!r}, which may be a range or two values; write "
            f'{{"from": {low!r}, "to": {high!r}}} for the range, or [{low!r}, {high!r}] for the values.'
        )
    values = [_as_limit(attribute, plain(v)) for v in (value if many else [value])]
    if not values:
        raise SchemaError(f"Column {name!r} is given no value; name at least one.")
    try:
        table = pa.table({name: pa.array(values)})
    except (pa.ArrowException, OverflowError):
        raise SchemaError(
            f"Column {name!r} is given {value!r}, which are not values of one kind."
        ) from None
    # What data only may hold is no value to ask for: others, and numbers beyond the bounds. Values
    # are written as limits are, not as in the data.
    strict = attribute.bare()
    encoder = strict.encoder(f"The condition: column {name!r}")
    codes, problems = coded(strict, encoder, table, None)
    for kind, problem in problems.items():
        if kind == "missing":
            raise SchemaError(f"The condition: column {name!r} has no missing values.")
        asked = values[problem.rows[0]]
        raise SchemaError(
            f"The condition: column {name!r} holds {problem.value}, outside the schema; {attribute.near(asked)}."
        )
    return np.unique(codes).astype(np.int64)

"""Draw values inside bins again until they keep the rules of the schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ..arrays import Flags, Floats, Integers
from ..plan.attribute import Attribute
from ..plan.rules import Order, ends, in_order, nearest

__all__ = ["keep_order"]

# Values of a record are drawn so often. Only then does their distribution inside the bins differ
# from the one under the condition that they keep the rules.
TRIES = 50


def keep_order(
    values: dict[str, Floats],
    codes: Mapping[str, Integers],
    attributes: Mapping[str, Attribute],
    rules: Sequence[Order],
    draw: Callable[[str, Integers], Floats],
    rng: np.random.Generator,
) -> None:
    """Change values in place so that all records keep the rules.

    Args:
        values: per column of the rules, a value per record, NaN where it is missing
            [each shape=(n,), float64].
        codes: the codes of the values, by column.
        attributes: the columns of the rules, by name.
        rules: the rules. No record has codes that they rule out.
        draw: draws values of a column again, for the given records.
        rng: draws the values of records that the tries did not settle.
    """
    rows = np.flatnonzero(_broken(values, rules))
    for _ in range(TRIES):
        if not rows.size:
            return
        for name, column in values.items():
            here = rows[~np.isnan(column[rows])]
            column[here] = draw(name, here)
        rows = rows[_broken({name: column[rows] for name, column in values.items()}, rules)]
    _settle(values, codes, attributes, rules, rows, rng)


def _broken(values: Mapping[str, Floats], rules: Sequence[Order]) -> Flags:
    """Which records break a rule; a missing value breaks none."""
    broken: Flags = np.logical_or.reduce(
        [
            (np.greater_equal if rule.strict else np.greater)(values[rule.low], values[rule.high])
            for rule in rules
        ]
    )
    return broken


def _settle(
    values: Mapping[str, Floats],
    codes: Mapping[str, Integers],
    attributes: Mapping[str, Attribute],
    rules: Sequence[Order],
    rows: Integers,
    rng: np.random.Generator,
) -> None:
    """Draw the values of some records column by column, each between those of the lower columns and
    what the higher columns leave.
    """
    order = in_order(rules)
    missing = {name: np.isnan(values[name][rows]) for name in order}
    latest: dict[str, Floats] = {}
    for name in reversed(order):
        most = ends(attributes[name])[1][np.where(missing[name], 0, codes[name][rows])]
        for rule in rules:
            if rule.low == name:
                limit = nearest(attributes[name], latest[rule.high], strict=rule.strict, up=False)
                most = np.minimum(most, limit)
        latest[name] = np.where(missing[name], np.inf, most)
    for name in order:
        attribute = attributes[name]
        least = ends(attribute)[0][np.where(missing[name], 0, codes[name][rows])]
        for rule in rules:
            if rule.high == name:
                before = np.where(missing[rule.low], -np.inf, values[rule.low][rows])
                least = np.maximum(least, nearest(attribute, before, strict=rule.strict))
        most = np.where(missing[name], least, latest[name])
        drawn = least + (most - least + attribute.step) * rng.random(len(rows))
        drawn = np.clip(nearest(attribute, drawn, strict=False, up=False), least, most)
        values[name][rows] = np.where(missing[name], np.nan, drawn)

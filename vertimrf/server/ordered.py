"""Draw values inside bins again until they keep the rules of the schema."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..arrays import Flags, Floats, Integral
from ..columns.column import Attribute
from ..plan.rules import Order, in_order

# Values of a record are drawn so often. Only then does their distribution inside the bins differ
# from the one under the condition that they keep the rules.
TRIES = 100


def keep_order(
    rules: Sequence[Order],
    attributes: Sequence[Attribute],
    codes: Integral,
    absent: Flags,
    numbers: Sequence[Floats | None],
    draw: Callable[[int, Integral], Floats],
    rng: np.random.Generator,
) -> None:
    """Change numbers in place so that all records keep the rules.

    Args:
        rules: the rules. No record has codes that they rule out.
        attributes: domain of each row.
        codes: one row per attribute [shape=(d, n), integer].
        absent: values that no rule has to consider [shape=(d, n), bool].
        numbers: per numeric attribute its numbers, NaN where one is missing
            [each shape=(n,), float64]; None for other attributes.
        draw: draws numbers of an attribute, by position, for codes.
        rng: draws the numbers that the tries did not settle.
    """
    places = {attribute.name: place for place, attribute in enumerate(attributes)}
    links = [(places[rule.low], places[rule.high], rule.strict) for rule in rules]
    order = [places[name] for name in in_order(rules)]
    rows = np.arange(codes.shape[1])

    def values(place: int) -> Floats:
        column = attributes[place].coded_numbers(codes[place], numbers[place])
        return np.where(absent[place, rows], np.nan, column[rows])

    for _ in range(TRIES):
        broken = np.zeros(len(rows), bool)
        for low, high, strict in links:
            # A missing value breaks no rule: no comparison with NaN is true.
            broken |= (np.greater_equal if strict else np.greater)(values(low), values(high))
        rows = rows[broken]
        if not rows.size:
            return
        for place in order:
            if (column := numbers[place]) is not None:
                column[rows] = draw(place, codes[place, rows])
    # Each is drawn between the lower columns' values and what the higher columns leave.
    missing = {place: np.isnan(values(place)) for place in order}
    least, most = {}, {}
    for place in reversed(order):
        least[place], most[place] = (
            np.append(end, 0.0)[codes[place, rows]] for end in attributes[place].ends()
        )
        for low, high, strict in links:
            if low == place:
                limit = attributes[low].nearest(most[high], strict=strict, up=False)
                most[low] = np.minimum(most[low], limit)
        most[place][missing[place]] = np.inf
    for place in order:
        known = ~missing[place]
        first, last, step = least[place][known], most[place][known], attributes[place].step
        drawn = first + (last - first + step) * rng.random(len(first))
        drawn = np.clip(attributes[place].nearest(drawn, up=False), first, last)
        if (column := numbers[place]) is not None:
            column[rows[known]] = drawn
        for low, high, strict in links:
            if low == place:
                limit = attributes[high].nearest(drawn, strict=strict)
                least[high][known] = np.maximum(least[high][known], limit)

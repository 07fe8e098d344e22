"""Analyses as people write them, and the marginals that each of them needs.

| written | marginals |
|---|---|
| ``y ~ a + b:c + C(d)`` | the columns of every two terms, y counted as a term |
| ``mean(y) by a, b`` | y with a and b |
| ``y vs a, b`` | y with a; y with b |
| ``a, b, c`` | these columns together |

A linear regression follows from the means of products of two terms. A model of the same marginals
has a logistic regression of a column of two values in it: it is log-linear, with a factor for each
pair. So both need the same.

Text is only split, and every part of it must be a column: nothing in it is evaluated.
"""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Iterable, Sequence

from ..arrays import Ints
from ..errors import PlanError
from .names import QUOTED, unquoted, written
from .schema import Schema

Marginal = Ints

# No two neighbours match the same characters, or text of a stranger takes cubic time.
MEAN = re.compile(rf"mean\((\s*{QUOTED}\s*|[^()`]*)\)(?:\s+by\s+(.*))?", re.DOTALL)
CATEGORICAL = re.compile(r"C\((.*)\)", re.DOTALL)
FORMS = "write y ~ a + b, mean(y) by a, b, y vs a, b, or a, b"
# Limits of an analysis: characters, columns of an interaction, and terms of a regression.
MAX_LENGTH, MAX_TOGETHER, MAX_TERMS = 4000, 4, 60


def listed(names: Sequence[str]) -> str:
    """The text of a list of columns."""
    return ", ".join(map(written, names))


def needed(text: str, schema: Schema) -> tuple[Marginal, ...]:
    """The marginals that an analysis needs, without those that lie within others.

    Args:
        text: the analysis.
        schema: the attributes.

    Returns:
        Attributes (increasing positions) of each marginal; those of the outcome first.

    Raises:
        PlanError: the text has none of the known forms, or names an unknown column.
    """
    try:
        if len(text) > MAX_LENGTH:
            raise _Unclear(f"it has more than {MAX_LENGTH:,} characters: leave columns out")
        sets = list(dict.fromkeys(_sets(text.strip(), schema)))
    except _Unclear as problem:
        shown = text if len(text) < 200 else text[:200] + "…"
        raise PlanError(f"The workload's {shown!r} is not clear: {problem}.") from None
    largest = [one for one in sets if not any(one < other for other in sets)]
    return tuple(tuple(sorted(one)) for one in largest)


class _Unclear(Exception):
    """The text is not clear; the message says why, and the remedy."""


def _sets(text: str, schema: Schema) -> Iterable[frozenset[int]]:
    """The marginals of an analysis, also those within others."""
    outcome, *right = _split(text, "~")
    if right:
        if len(right) > 1:
            raise _Unclear(f"it has more than one ~; {FORMS}")
        terms = list(dict.fromkeys([_column(outcome, schema), *_terms(right[0], schema)]))
        if len(terms) > MAX_TERMS:
            raise _Unclear(f"it has {len(terms)} terms, and {MAX_TERMS} are the most")
        return [a | b for a, b in itertools.combinations_with_replacement(terms, 2)]
    outcome, *right = _split(text, r"\svs\s")
    if right:
        if len(right) > 1:
            raise _Unclear(f"it has more than one vs; {FORMS}")
        return [_column(outcome, schema) | other for other in _columns(right[0], schema)]
    if mean := MEAN.fullmatch(text):
        outcome, groups = mean.groups()
        return [_column(outcome, schema).union(*_columns(groups, schema) if groups else ())]
    columns = _columns(text, schema)
    if len(set(columns)) < len(columns):
        raise _Unclear("it repeats a column: name each once")
    return [frozenset().union(*columns)]


def _terms(text: str, schema: Schema) -> Iterable[frozenset[int]]:
    """The terms of the right side of a regression, each as its columns."""
    for signed in _split(text, r"\+"):
        added, *removed = _split(signed, "-")
        if any(part.strip() != "1" for part in removed):
            raise _Unclear("only the intercept can be removed, as - 1")
        if added.strip() in ("0", "1") or (removed and not added.strip()):
            continue
        factors = [
            frozenset().union(*(_factor(part, schema) for part in _split(crossed, ":")))
            for crossed in _split(added, r"\*")
        ]
        if len(frozenset().union(*factors)) > MAX_TOGETHER or len(factors) > MAX_TOGETHER:
            raise _Unclear(
                f"{added.strip()} joins more than {MAX_TOGETHER} columns: leave columns out"
            )
        for k in range(1, len(factors) + 1):
            for some in itertools.combinations(factors, k):
                yield frozenset().union(*some)


def _factor(text: str, schema: Schema) -> frozenset[int]:
    categorical = CATEGORICAL.fullmatch(text.strip())
    return _column(categorical.group(1) if categorical else text, schema)


def _columns(text: str, schema: Schema) -> list[frozenset[int]]:
    return [_column(part, schema) for part in _split(text, ",")]


def _column(text: str, schema: Schema) -> frozenset[int]:
    """The position of a column, as a set."""
    name = unquoted(text)
    if name in schema.names:
        return frozenset([schema.names.index(name)])
    if not name:
        raise _Unclear(f"a column is missing; {FORMS}")
    if re.search(r"[()~`*:/^|]|\s(by|vs)\s", name):
        raise _Unclear(
            f"{name!r} is no column; {FORMS}, where a and b are columns, C(column), a:b or a*b, "
            "and a column of other letters stands between backticks"
        )
    folded = {known.casefold(): known for known in schema.names}
    near = difflib.get_close_matches(name.casefold(), folded, 3)
    likely = (folded[one] for one in near) if near else schema.names
    raise _Unclear(
        f"there is no column {name!r}; "
        + ("near it: " if near else "there are ")
        + ", ".join(likely)
    )


def _split(text: str, at: str) -> list[str]:
    """Split a text at a regular expression, but not between backticks."""
    parts, last = [], 0
    for match in re.finditer(f"{QUOTED}|({at})", text):
        if match.group(1):
            parts.append(text[last : match.start()])
            last = match.end()
    return [*parts, text[last:]]

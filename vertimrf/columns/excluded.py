"""Columns that a draft leaves out: why, and what the owner writes to keep them.

Example: a column of remarks is left out as free text, and ``Aaa aaaa 99`` shows what its cells look like.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from ..arrays import Texts
from .text import parse

# Most shapes that are shown, most distinct texts that are looked at, and longest shape.
SHAPES, LOOKED_AT, LONGEST = 3, 10_000, 24
# What an owner writes where nothing else is said.
KEEP = 'state its domain (values, or edges), or have it found: values = "private"'


class Excluded(Exception):
    """A column has no domain; the text says what it has instead.

    Args:
        why: what it has.
        read_as: what its cells were taken for, in a few words.
        keep: what to write to keep it.
        texts: records by text, of which the shapes are shown.
    """

    def __init__(
        self,
        why: str,
        read_as: str = "text",
        keep: str = KEEP,
        texts: Mapping[Any, int] | None = None,
    ) -> None:
        super().__init__(why)
        self.read_as = read_as
        self.keep = keep
        self.shapes = shapes_of(texts or {})


def shape_of(text: str) -> str:
    """What a text looks like: 9 for a digit, A and a for letters, other signs as they are."""
    marks = (
        "9" if sign.isdigit() else "A" if sign.isupper() else "a" if sign.isalpha() else sign
        for sign in text[: LONGEST + 1]
    )
    shape = "".join(mark if mark.isprintable() else "?" for mark in marks)
    return shape if len(shape) <= LONGEST else shape[: LONGEST - 1] + "…"


def shapes_of(texts: Mapping[Any, int]) -> Texts:
    """The shapes that most records have, of texts that are no numbers if there are such."""
    some = [(str(text), count) for text, count in texts.items()][:LOOKED_AT]
    odd = [(text, count) for text, count in some if parse(text) != parse(text)]
    counts: Counter[str] = Counter()
    for text, count in odd or some:
        counts[shape_of(text)] += count
    return tuple(shape for shape, _ in counts.most_common(SHAPES))

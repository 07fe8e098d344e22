"""Numbers as offices write them: $1,200, 13%, 1 234,5, 1,00,000 and (59.22) for -59.22."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...errors import SchemaError
from ..text import parse
from .notation import DateOrder, Notation, Recognised
from .number_pattern import CURRENCY, Pattern
from .plain import as_numbers

if TYPE_CHECKING:
    import pyarrow as pa

    from ...arrays import Floats

MARKS = (".", ",")
# Texts of a column that are tried first.
TRIED = 100
# Spaces, also those that do not break a line.
SPACE = r"[\s\p{Zs}]*"
# Signs of a number that carry no value, besides the separator of thousands.
ORNAMENTS = r"\s\p{Zs}\p{Sc}%'’+"
# Signs of currencies, and percent.
NO_UNIT = f"[^%{CURRENCY}]"


@dataclass(frozen=True)
class Marked(Notation):
    """Numbers with a decimal mark, which may have separators of groups and signs of currency or percent.

    Groups have three digits, or all but the last have two, as in India. Brackets stand for a minus, as in accounts.

    Attributes:
        mark: the decimal mark, "." or ",".
        pattern: how numbers are written; by default digits and the mark alone. Whatever it is, all of the above are read.
    """

    mark: str
    pattern: Pattern | None = None

    @property
    def format(self) -> str:
        """See :class:`Notation`."""
        return self.mark if self.pattern is None else str(self.pattern)

    @property
    def may_identify(self) -> bool:
        """See :class:`Notation`: of bare digits, which may have a plus, as telephone numbers."""
        pattern = self.pattern
        return pattern is None or not (pattern.group or any(pattern.positive) or pattern.decimals)

    @classmethod
    def named(cls, format: str) -> Marked | None:
        """See :class:`Notation`: a decimal mark, or a pattern such as #,##0.00."""
        if format in MARKS:
            return cls(format)
        pattern = Pattern.of(format)
        return None if pattern is None else cls(pattern.mark, pattern)

    @classmethod
    def recognise(cls, counts: Mapping[str, int], order: DateOrder | None) -> Recognised | None:
        """See :class:`Notation`."""
        import pyarrow as pa
        import pyarrow.compute as pc

        texts = pa.chunked_array([pa.array(list(counts), pa.large_string())])
        if all(text.strip().startswith("(") for text in counts):
            # Numbers of lists, rather than debts.
            return None
        few = texts.slice(0, TRIED)
        for mark in MARKS:
            if as_numbers((text, 1) for text in cls(mark).plain(few).to_pylist()) is None:
                continue
            plain = cls(mark).plain(texts).to_pylist()
            numbers = as_numbers(zip(plain, counts.values(), strict=True))
            if numbers is not None:
                signs = sorted(
                    {*"".join(pc.replace_substring_regex(texts, NO_UNIT, "").unique().to_pylist())}
                )
                if len(signs) > 1:
                    raise SchemaError(
                        f"has amounts in {' and '.join(signs)}, which are not one quantity; convert them, or part the column"
                    )
                return Recognised(
                    cls(mark, Pattern.seen(counts, mark)),
                    numbers,
                    f"has numbers such as {max(counts, key=len)!r}",
                    f"read with the decimal mark {mark!r}; correct the format if it is another",
                )
        return None

    def plain(self, texts: pa.ChunkedArray) -> pa.ChunkedArray:
        """The texts with a decimal point, and without signs of currency and percent and separators of thousands.

        A text that is no such number stays no number.
        """
        import pyarrow.compute as pc

        mark, other = self.mark, ",.".replace(self.mark, "")
        texts = pc.replace_substring(texts, "\u2212", "-")
        # A plus is a sign after cents; 85+ is 85 and more.
        texts = pc.replace_substring_regex(texts, r"([.,]\d\d)\+$", r"\1")
        texts = pc.replace_substring_regex(texts, r"^([^()-]*\d[^()-]*)-$", r"-\1")
        texts = pc.replace_substring_regex(
            texts,
            rf"^({SPACE}\p{{Sc}}?{SPACE})\(([^()+-]*)\)({SPACE}\p{{Sc}}?{SPACE})$",
            r"-\1\2\3",
        )
        group = rf"[\s\p{{Zs}}'’{other}]"
        whole = rf"[1-9]\d{{0,2}}({group}\d{{3}})+|[1-9]\d?({group}\d{{2}})+{group}\d{{3}}|\d+"
        number = rf"(({whole})([{mark}]\d+)?|[{mark}]\d+)"
        shape = rf"{SPACE}[-+]?{SPACE}\p{{Sc}}?{SPACE}[-+]?{number}{SPACE}[%\p{{Sc}}]?{SPACE}"
        bare = pc.replace_substring_regex(texts, f"[{ORNAMENTS}{other}]", "")
        bare = pc.replace_substring(bare, mark, ".")
        return pc.if_else(
            pc.match_substring_regex(texts, f"^{shape}$"),
            bare,
            pc.replace_substring(texts, ".", mark),
        )

    def parsed(self, texts: pa.ChunkedArray) -> Floats:
        """See :class:`Notation`."""
        import pyarrow as pa

        plain = self.plain(texts)
        try:
            numbers: Floats = plain.cast(pa.float64()).to_numpy()
        except pa.ArrowInvalid:
            # Some cell is not a number; parse each cell to find out which.
            numbers = np.array([*map(parse, plain.to_pylist())], float)
        return numbers

    def written(self, values: pa.Array) -> pa.Array:
        """See :class:`Notation`."""
        return (self.pattern or Pattern(self.mark)).written(values)

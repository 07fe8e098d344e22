"""Numbers with a word: 75.3 kg, CHF 1'200.50, 36,9 °C, and in accounts 5,00 S for -5,00.

Their format has the words in single quotes, as patterns of LDML have: 0.0 'kg', 'CHF' #'##0.00 and 0,00 'H';0,00 'S'.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...errors import SchemaError
from .marked import TRIED, Marked
from .notation import DateOrder, Notation, Recognised
from .number_pattern import CURRENCY, Around

if TYPE_CHECKING:
    import pyarrow as pa

    from ...arrays import Floats

# A word before a number is that of a currency, or is apart; one after it is that of any unit. In Switzerland and Norway 5.- and 5,- stand for 5.00.
BEFORE = rf"(?:[A-Z]{{2,3}}\s|(?:Rs|kr|Fr|SFr)\.?\s?|(?:US|R|C|A|HK|NZ|S)[{CURRENCY}]\s?)"
AFTER = r"\s?(?:[°%]?\s?[^\W\d_][^\W\d_²³./]{0,11}(?:[./][^\W\d_.²³]{0,6}[.²³]?)*|[.,][-–])"
NUMBER = r"(?:\d[\d.,'’\s]*)?[.,]?\d"
TEXT = re.compile(
    rf"(?P<sign>[-−]?)(?P<before>{BEFORE}?)(?P<number>[-−+]?{NUMBER})(?P<after>(?:{AFTER})?)"
)
# What stands after credits and debits. Single letters may name something else, unless the numbers have cents.
SIDES = {"CR": "DR", "Cr": "Dr", "cr": "dr", "Cr.": "Dr.", "Haben": "Soll", "H": "S", "C": "D"}
CENTS = re.compile(r".*[.,]\d\d")
CODE = re.compile("[A-Z]{3}")
# The words of a format, in quotes, and spaces.
WORDS = r"((?:'[^'#0]+'|\s)*)"
CORE = r"([^';]*#(?:'##)+[0#][^';]*?|[^';]*[0#][^';]*?)"
FORMAT = re.compile(rf"{WORDS}{CORE}{WORDS}(?:;([-−]?){WORDS}\2{WORDS})?")


@dataclass(frozen=True)
class Worded(Notation):
    """Numbers with a word before or after them.

    Attributes:
        inner: how the numbers are written.
        positive: what stands before and after a number.
        negative: what stands before and after the size of a negative one; None if its number has a minus.
    """

    inner: Marked
    positive: Around
    negative: Around | None = None

    @property
    def format(self) -> str:
        """See :class:`Notation`."""
        core = self.inner.format
        parts = [core.join(map(_quoted, self.positive))]
        if self.negative is not None:
            parts.append(core.join(map(_quoted, self.negative)))
        return ";".join(parts)

    @property
    def may_identify(self) -> bool:
        """See :class:`Notation`: numbers after a word, as in ID 1000345."""
        return bool(self.positive[0]) and self.inner.may_identify

    @classmethod
    def named(cls, format: str) -> Worded | None:
        """See :class:`Notation`: a pattern of numbers, and words in quotes."""
        if "'" not in format or (found := FORMAT.fullmatch(format)) is None:
            return None
        before, core, after, minus, before_below, after_below = found.groups()
        number = Marked.named(core)
        positive = before.replace("'", ""), after.replace("'", "")
        if number is None or not any(map(str.strip, positive)):
            return None
        if before_below is None:
            return cls(number, positive)
        negative = minus + before_below.replace("'", ""), after_below.replace("'", "")
        return cls(number, positive, negative) if negative != positive else None

    @classmethod
    def recognise(cls, counts: Mapping[str, int], order: DateOrder | None) -> Recognised | None:
        """See :class:`Notation`."""
        if not all(TEXT.fullmatch(text.strip()) for text in itertools.islice(counts, TRIED)):
            return None
        read: list[tuple[Around, str, int]] = []
        around: set[Around] = set()
        for text, count in counts.items():
            if (found := TEXT.fullmatch(text.strip())) is None:
                return None
            sign, before, number, after = found.groups()
            words = (sign + before, after) if before else ("", after)
            around.add(words)
            if len(around) > 2:
                return None
            read.append((words, number if before else sign + number, count))
        if (sides := _sides(around, counts)) is None:
            return None
        bare: dict[str, int] = {}
        for words, number, count in read:
            core = ("-" if words == sides[1] else "") + number
            bare[core] = bare.get(core, 0) + count
        inner = Marked.recognise(bare, order)
        if inner is None or not isinstance(inner.notation, Marked) or ";" in inner.notation.format:
            return None
        notation = cls(inner.notation, *sides)
        return Recognised(
            notation,
            inner.numbers,
            f"has numbers such as {max(counts, key=len)!r}",
            f"read as {notation.format}; correct the format if it is another",
        )

    def _stripped(self, texts: pa.ChunkedArray) -> pa.ChunkedArray:
        """The texts without their words; a text without them stays as it is."""
        import pyarrow.compute as pc

        for words, to in ((self.negative, r"-\1"), (self.positive, r"\1")):
            if words is not None:
                before, after = (re.escape(word.strip()).replace(r"\ ", " ") for word in words)
                space = r"[\s\p{Zs}]*"
                shape = rf"^{space}{before}{space}(.*\d){space}{after}{space}$"
                texts = pc.replace_substring_regex(texts, shape, to)
        return texts

    def plain(self, texts: pa.ChunkedArray) -> pa.ChunkedArray:
        """See :class:`Notation`."""
        return self.inner.plain(self._stripped(texts))

    def parsed(self, texts: pa.ChunkedArray) -> Floats:
        """See :class:`Notation`."""
        return self.inner.parsed(self._stripped(texts))

    def written(self, values: pa.Array) -> pa.Array:
        """See :class:`Notation`."""
        import pyarrow.compute as pc

        below = pc.less(values, 0)
        size = values if self.negative is None else pc.abs(values)
        ends = [
            word if self.negative is None else pc.if_else(below, self.negative[i], word)
            for i, word in enumerate(self.positive)
        ]
        return pc.binary_join_element_wise(ends[0], self.inner.written(size), ends[1], "")


def _sides(
    around: Collection[Around], texts: Collection[str]
) -> tuple[Around, Around | None] | None:
    """What stands around numbers, and around negative ones if that differs; None if it is none.

    Raises:
        SchemaError: there are several currencies.
    """
    first, *others = sorted(around, key=lambda words: (words[0].startswith(("-", "−")), words))
    if not others:
        return (first, None) if any(map(str.strip, first)) else None
    (second,) = others
    codes = [word.strip() for words in (first, second) for word in words if word.strip()]
    if len(codes) == 2 and all(map(CODE.fullmatch, codes)) and codes[0] != codes[1]:
        raise SchemaError(
            f"has amounts in {' and '.join(sorted(codes))}, which are not one quantity; convert them, or part the column"
        )
    if second[0] and second[0].lstrip("-−") == first[0] and second[1] == first[1]:
        return first, second
    for above, below in ((first, second), (second, first)):
        credit, debit = above[1].strip(), below[1].strip()
        if above[0] == below[0] and SIDES.get(credit) == debit:
            sure = len(credit) > 1 or all(CENTS.match(text) for text in texts)
            return (above, below) if sure else None
    return None


def _quoted(word: str) -> str:
    """A word as a format has it: in quotes, but for spaces around it, and a minus."""
    bare = word.strip()
    if not bare or bare in "-−":
        return word
    minus = bare[0] if bare[0] in "-−" else ""
    return word.replace(bare, f"{minus}'{bare.removeprefix(minus)}'")

"""How numbers are written: #,##0.00 for 1,234.50, 0,# % for 12,5 %, $#,##0;($#,##0) for $5 and ($5).

Example: in ``#.##0,00 €`` a point parts groups of three digits, ``0`` is a digit that is always written, and what stands around the number is
written so. After a semicolon stands how negative numbers are written; else they have a minus before all. ``#,##,##0`` has groups as in India,
and ``#.00`` no zero before the mark. Numbers with more decimals than zeros keep them all, so that a text always reads as its number.

Source: the number patterns of Unicode's LDML (https://www.unicode.org/reports/tr35/tr35-numbers.html#Number_Format_Patterns), with the marks
themselves in place of those of a language.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

# Signs of currencies of Unicode's category Sc.
CURRENCY = "$¢-¥֏؋৲৳৻૱௹฿៛₠-⃀﷼﹩＄￠￡￥￦"
# What may stand before and after a number, and around a negative one.
BEFORE = re.compile(rf"\s*\+?\s*[{CURRENCY}]?\s*\+?")
AFTER = re.compile(rf"\s*[%{CURRENCY}]?\s*\+?")
# As SAP and COBOL write a minus.
LAST_MINUS = re.compile(rf"\s*[%{CURRENCY}]?\s*[-−]")
MINUS = re.compile(rf"\s*[-−]\s*[{CURRENCY}]?\s*|\s*[{CURRENCY}]?\s*[-−]")
OPEN, CLOSE = re.compile(rf"\s*[{CURRENCY}]?\s*\([^\S\n]*[{CURRENCY}]?\s*"), re.compile(rf"\s*[%{CURRENCY}]?\s*\)\s*[{CURRENCY}]?\s*")  # fmt: skip
NUMBER = re.compile(
    r"(?:#(?P<group>[\s.,'’])(?P<two>##(?P=group))?##)?(?P<last>[0#])(?:(?P<mark>[.,])(?P<zeros>0*)#?)?"
)
# A text, as what stands before its number, the number, and what stands after it.
TEXT = re.compile(r"(?P<before>\D*?)(?P<number>[.,]?\d(?:[\d.,'’\s]*\d)?)(?P<after>\D*)")
# Most texts whose shape is looked at.
LOOKED_AT = 10_000

Around = tuple[str, str]


@dataclass(frozen=True)
class Pattern:
    """How numbers are written.

    Attributes:
        mark: the decimal mark.
        group: what parts groups of digits; empty if nothing does.
        two: groups but the last have two digits, not three.
        zero: numbers below 1 have a zero before the mark.
        decimals: fewest decimals.
        positive, negative: what stands before and after a number.
    """

    mark: str
    group: str = ""
    two: bool = False
    zero: bool = True
    decimals: int = 0
    positive: Around = ("", "")
    negative: Around = ("-", "")

    @classmethod
    def of(cls, text: str) -> Pattern | None:
        """The pattern with this text; None if it is none."""
        positive, _, negative = text.partition(";")
        if (number := NUMBER.search(positive)) is None:
            return None
        group = number["group"] or ""
        mark = number["mark"] or usual_mark(group)
        around = positive[: number.start()], positive[number.end() :]
        below = "-" + around[0], around[1]
        if negative:
            begin, found, end = negative.partition(number[0])
            below = (begin, end) if found else ("", "")
        if mark == group or not _is_positive(around) or not _is_negative(below):
            return None
        decimals = len(number["zeros"] or "")
        return cls(mark, group, bool(number["two"]), number["last"] == "0", decimals, around, below)

    def __str__(self) -> str:
        number = "0" if self.zero else "#"
        if self.group:
            number = f"#{self.group}{f'##{self.group}' * self.two}##{number}"
        if self.decimals or self.mark != usual_mark(self.group):
            number += self.mark + ("0" * self.decimals or "#")
        before, after = self.positive
        below = "" if self.negative == ("-" + before, after) else number.join(self.negative)
        return before + number + after + f";{below}" * bool(below)

    @classmethod
    def seen(cls, counts: Mapping[str, int], mark: str) -> Pattern:
        """How most texts of a column are written, all of which are numbers.

        Args:
            counts: records by text.
            mark: the decimal mark.
        """
        above: Counter[Around] = Counter()
        below: Counter[Around] = Counter()
        groups: Counter[str] = Counter()
        fewest, bare, zero, two = [], False, False, False
        for text, count in itertools.islice(counts.items(), LOOKED_AT):
            if (parts := TEXT.fullmatch(text)) is None:
                continue
            around = parts["before"], parts["after"]
            whole, _, fraction = parts["number"].partition(mark)
            fewest.append(len(fraction))
            bare, zero = bare or not whole, zero or (whole == "0" and fraction != "")
            among = re.findall(r"\D", whole)
            if len(whole) - len(among) > 3:
                groups["".join(among[:1])] += count
                two = two or any(len(one) == 2 for one in re.split(r"\D", whole)[1:-1])
            if _is_positive(around):
                above[around] += count
            elif _is_negative(around):
                below[around] += count
        negative = below.most_common(1)[0][0] if below else None
        if above or negative is None:
            positive = above.most_common(1)[0][0] if above else ("", "")
        else:
            positive = re.sub(r"[-−(]", "", negative[0]), re.sub(r"[-−)]", "", negative[1])
        group = groups.most_common(1)[0][0] if groups else ""
        return cls(
            mark,
            group,
            two and bool(group),
            zero or not bare,
            min(fewest, default=0),
            positive,
            negative or ("-" + positive[0], positive[1]),
        )

    def written(self, values: pa.Array) -> pa.Array:
        """Numbers as texts, null where they are [length n]."""
        import pyarrow.compute as pc

        texts = positional(values)
        below = pc.starts_with(texts, "-")
        texts = pc.utf8_ltrim(texts, characters="-")
        whole = pc.replace_substring_regex(texts, r"\..*", "")
        fraction = pc.replace_substring_regex(texts, r"^[^.]*\.?", "")
        fraction = pc.utf8_rpad(fraction, self.decimals, "0")
        marked = pc.not_equal(fraction, "")
        if not self.zero:
            whole = pc.if_else(pc.and_(pc.equal(whole, "0"), marked), "", whole)
        if self.group:
            whole = self._grouped(whole)
        fraction = pc.if_else(
            marked, pc.binary_join_element_wise(self.mark, fraction, ""), fraction
        )
        ends = [pc.if_else(below, *both) for both in zip(self.negative, self.positive, strict=True)]
        return pc.binary_join_element_wise(ends[0], whole, fraction, ends[1], "")

    def _grouped(self, whole: pa.Array) -> pa.Array:
        """Digits in groups."""
        import pyarrow.compute as pc

        longest = pc.max(pc.utf8_length(whole)).as_py() or 0
        group, width = re.escape(self.group), 3
        for _ in range(1, longest, 2 if self.two else 3):
            whole = pc.replace_substring_regex(
                whole, rf"^(\d+)(\d{{{width}}})($|{group}.*)", rf"\1{self.group}\2\3"
            )
            width = 2 if self.two else 3
        return whole


def usual_mark(group: str) -> str:
    """The decimal mark where a pattern names none."""
    return "," if group == "." else "."


def positional(values: pa.Array) -> pa.Array:
    """Numbers as plain texts without an exponent, the shortest that read as them; null where they are."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = values.cast(pa.string())
    if pa.types.is_floating(values.type):
        texts = pc.if_else(pc.equal(values, 0), "0", texts)
        exponents = pc.fill_null(pc.match_substring(texts, "e"), False)
        if pc.any(exponents).as_py():
            # Few numbers are so large, or so small.
            far = values.filter(exponents).to_pylist()
            plain = [np.format_float_positional(number, trim="-") for number in far]
            texts = pc.replace_with_mask(texts, exponents, pa.array(plain, pa.string()))
    return texts


def _is_positive(around: Around) -> bool:
    return bool(BEFORE.fullmatch(around[0]) and AFTER.fullmatch(around[1]))


def _is_negative(around: Around) -> bool:
    before, after = around
    minus = MINUS.fullmatch(before) and AFTER.fullmatch(after)
    last = BEFORE.fullmatch(before) and LAST_MINUS.fullmatch(after)
    return bool(minus or last or (OPEN.fullmatch(before) and CLOSE.fullmatch(after)))

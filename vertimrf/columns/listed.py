"""Listed values: texts, numbers or true/false, each with a code."""

from __future__ import annotations

import difflib
import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..arrays import Fields, Integral, Ints, Texts
from ..errors import SchemaError
from .cell_types import DICTIONARY, check_number_type, typed_numbers, unknown_type
from .column import DRAFTED, Attribute
from .numbers import MAX_DECIMALS
from .partition import decimals
from .text import (
    MAX_SIZE,
    MISSING,
    MISSING_TEXT,
    OUTSIDE,
    Value,
    check_texts,
    folded,
    is_text,
    no_domain,
    parse,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from ..arrays import Floats, Int32s
    from .column import Encode


class ByValue(Attribute):
    """An attribute whose codes are single values."""

    @property
    @abstractmethod
    def listed(self) -> Sequence[Value]:
        """The values, by code."""

    @property
    def present(self) -> int:
        """See :class:`Attribute`."""
        return len(self.listed)

    def _text(self, code: int) -> str:
        return repr(self.listed[code])

    def _label(self, code: int) -> str:
        return str(self.listed[code])

    def near(self, value: Any) -> str:
        """See :class:`Attribute`."""
        number = parse(str(value))
        if isinstance(self.listed[0], str | bool) or number != number:
            by_text = {str(one).lower(): one for one in self.listed}
            texts = difflib.get_close_matches(str(value).lower(), by_text, 3, 0.0)
            near = [by_text[text] for text in texts]
        else:
            near = sorted(self.listed, key=lambda one: abs(float(one) - number))[:3]
        return f"the nearest values are {', '.join(map(repr, near))}"

    def codes_of(self, value: Value) -> list[int]:
        """See :class:`Attribute`; true is no number."""
        numbers = not isinstance(value, bool | str)
        codes = [
            code
            for code, one in enumerate(self.listed)
            if one == value
            and (numbers if not isinstance(one, bool | str) else type(one) is type(value))
        ]
        if not codes:
            raise SchemaError(f"{value!r} is no value of {self.name!r} in the schema.")
        return codes

    def spans(self) -> list[tuple[float, float, bool]]:
        """See :class:`Attribute`."""
        return [(float(value), float(value), False) for value in self.listed]

    def ends(self) -> tuple[Floats, Floats]:
        """See :class:`Attribute`."""
        values = np.array(self.listed, float)
        return values, values

    def sdv(self) -> Fields:
        """See :class:`Attribute`."""
        return {"sdtype": "boolean" if isinstance(self.listed[0], bool) else "categorical"}


@dataclass(frozen=True, repr=False)
class Listed(ByValue, domain="values"):
    """An attribute with listed values.

    Attributes:
        values: the values as in the file, all text, all numbers or all true/false.
        other: replaces every value that is not listed; appended to ``values`` if not among them.
        ordered: adjacent codes are similar.
        missing_text: texts that stand for a missing value, if they are not listed; None for the
            usual ones (:data:`MISSING_TEXT`).
    """

    values: tuple[Value, ...] = ()
    _: KW_ONLY
    other: Value | None = None
    ordered: bool = False
    missing_text: Texts | None = None

    kind: ClassVar[str] = "categorical"

    def _check(self, where: str) -> None:
        values = tuple(self.values)
        if not values:
            raise no_domain(where)
        every = values if self.other is None else (*values, self.other)
        kinds = {type(value) for value in every}
        # The checks below take time, and a schema may come from anyone.
        if len(values) > MAX_SIZE:
            raise SchemaError(
                f"{where} has {len(values):,} values; at most {MAX_SIZE:,} are possible, use 'other'."
            )
        bits = 64 if self.type == "uint64" else 63
        if any(isinstance(v, int) and not -(1 << 63) <= v < 1 << bits for v in every):
            raise SchemaError(
                f"{where}: whole numbers among the values must have 64 bits or fewer; write larger ones as text."
            )
        if not all(is_text(value) for value in every if isinstance(value, str)):
            raise SchemaError(f"{where}: a value is no text; correct it.")
        if kinds == {int, float}:
            values, kinds = tuple(map(float, values)), {float}
        finite = all(math.isfinite(value) for value in every if isinstance(value, float))
        if len(kinds) > 1 or not kinds <= {str, int, float, bool} or not finite:
            raise SchemaError(
                f"{where}: values and 'other' must be all text, all finite numbers or all true/false."
            )
        if self.other is not None and self.other not in values:
            values = (*values, self.other)
        object.__setattr__(self, "values", values)
        if len(set(values)) < len(values):
            twice = next(value for i, value in enumerate(values) if value in values[:i])
            raise SchemaError(f"{where} lists the value {twice!r} twice; list it once.")

        check_texts(where, self.missing_text)

    def is_missing(self, value: Any) -> bool:
        """Whether a cell's value stands for a missing one, if it is not listed."""
        texts = MISSING_TEXT if self.missing_text is None else self.missing_text
        return value is None or value != value or value in texts

    def _check_type(self, where: str) -> None:
        if self.type == DICTIONARY:
            return
        if not self.holds_numbers:
            raise unknown_type(where, self.type, (DICTIONARY,))
        numbers = [number for number in self.values if not isinstance(number, str)]
        whole = all(number % 1 == 0 for number in numbers)
        check_number_type(where, self.type, min(numbers), max(numbers), whole, self.digits)

    @property
    def _domain(self) -> str:
        return f"{self.present:,} values"

    @property
    def listed(self) -> Sequence[Value]:
        """See :class:`ByValue`."""
        return self.values

    @property
    def holds_numbers(self) -> bool:
        """See :class:`Attribute`."""
        return not isinstance(self.values[0], str | bool)

    @property
    def other_code(self) -> int | None:
        """See :class:`Attribute`."""
        return None if self.other is None else self.values.index(self.other)

    def bare(self) -> Attribute:
        """See :class:`Attribute`."""
        return replace(self, other=None)

    @property
    def remedy(self) -> str:
        """See :class:`Attribute`."""
        return "correct the values, list them in the schema, or give it an 'other'"

    @property
    def found(self) -> str:
        """See :class:`Attribute`."""
        return f"{len(self.values) - 1} values, {self.other!r} for the rest"

    @property
    def in_tails(self) -> Ints:
        """See :class:`Attribute`."""
        return tuple(range(self.present)) if self.ordered and self.holds_numbers else ()

    def has(self, value: Any) -> bool:
        """See :class:`Attribute`."""
        return value in self.values

    def has_text(self, text: str) -> bool:
        """See :class:`Attribute`."""
        return text in map(str, self.values)

    def number(self, limit: Value) -> float:
        """See :class:`Attribute`."""
        if isinstance(limit, bool | str) or isinstance(self.values[0], bool | str):
            raise SchemaError(
                f"{self.name!r} has no numbers that {limit!r} could be a limit of; list its values."
            )
        return super().number(limit)

    @property
    def digits(self) -> int | None:
        """See :class:`Attribute`."""
        digits = max(map(decimals, self.values))
        return digits if digits <= MAX_DECIMALS else None

    def encoder(self, where: str) -> Encode:
        """See :class:`Attribute`."""
        from .cells import by_dictionary, canonical

        sample = self.values[0]
        code_of = {canonical(value, value): code for code, value in enumerate(self.values)}
        unlisted = OUTSIDE if self.other is None else code_of[canonical(self.other, sample)]
        # The code of a cell that is no listed value, but one of them in another case or with spaces.
        similar: dict[str, int] = {}
        for text, code in code_of.items():
            similar[folded(text)] = unlisted if folded(text) in similar else code

        def code_for(value: Any) -> int:
            text = canonical(value, sample)
            if text in code_of:
                return code_of[text]
            return MISSING if self.is_missing(value) else similar.get(folded(text), unlisted)

        def encode(column: pa.ChunkedArray) -> Int32s:
            distinct, indices = by_dictionary(column, where)
            # The indices -2 and -1 are those of cells without a value.
            return np.array([*map(code_for, distinct), OUTSIDE, MISSING], np.int32)[indices]

        return encode

    def original(self, column: pa.ChunkedArray, codes: Integral, where: str) -> Floats | None:
        """See :class:`Attribute`."""
        if not self.holds_numbers:
            return None
        numbers: Floats = np.array([*map(float, self.values), *[np.nan] * self.missing])[codes]
        return numbers

    def arrow(self, codes: Integral, drawn: Floats | None) -> pa.Array:
        """See :class:`Attribute`."""
        import pyarrow as pa

        from .cells import present_codes

        places = present_codes(codes, self.present)
        if self.type == DICTIONARY:
            values = pa.array(list(self.values))
            places = places.cast(pa.int32())
            return pa.DictionaryArray.from_arrays(places, values, ordered=self.ordered)
        values = pa.array(list(self.values), pa.uint64() if self.type == "uint64" else None)
        return typed_numbers(values, self.type).take(places)

    def sdv(self) -> Fields:
        """See :class:`Attribute`."""
        if not self.ordered:
            return super().sdv()
        if self.holds_numbers:
            return {"sdtype": "ordinal"}
        # The order of texts is that of the list. The metadata cannot say that it was read off data.
        listed = {"sdtype": "ordinal", "range_values": list(self.values)}
        return super().sdv() if self.source == DRAFTED else listed

    def _written(self) -> Fields:
        texts = None if self.missing_text is None else list(self.missing_text)
        return {"values": list(self.values), "missing_text": texts}

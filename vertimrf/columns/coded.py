"""Codes: a column that has the whole numbers 0 to codes - 1, as data sets that are encoded already."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ..arrays import Fields, Integral
from ..errors import SchemaError
from .cell_types import check_number_type, typed_numbers
from .listed import ByValue
from .text import MISSING, OUTSIDE, no_domain

if TYPE_CHECKING:
    import pyarrow as pa

    from ..arrays import Floats, Int32s
    from .column import Encode


@dataclass(frozen=True, repr=False)
class Coded(ByValue, domain="codes"):
    """An attribute whose column has the codes 0 to ``codes`` - 1.

    Attributes:
        codes: number of codes.
    """

    codes: int = 0

    kind: ClassVar[str] = "integer"

    def _check(self, where: str) -> None:
        if not self.codes:
            raise no_domain(where)
        if type(self.codes) is not int or self.codes < 1:
            raise SchemaError(
                f"{where} has {self.codes!r} codes; it needs a whole number of at least 1."
            )

    def _check_type(self, where: str) -> None:
        check_number_type(where, self.type, 0, self.codes - 1, True, 0)

    @property
    def _domain(self) -> str:
        return f"codes 0 to {self.codes - 1}"

    @property
    def present(self) -> int:
        """See :class:`Attribute`; a range beyond all memory has no length."""
        return self.codes

    @property
    def listed(self) -> range:
        """See :class:`ByValue`."""
        return range(self.codes)

    @property
    def remedy(self) -> str:
        """See :class:`Attribute`."""
        return f"the codes are 0 to {self.codes - 1}: correct the values or the schema"

    @property
    def found(self) -> str:
        """See :class:`Attribute`."""
        return self._domain

    @property
    def digits(self) -> int | None:
        """See :class:`Attribute`."""
        return 0

    def encoder(self, where: str) -> Encode:
        """See :class:`Attribute`."""

        def encode(column: pa.ChunkedArray) -> Int32s:
            numbers, missing = self.numbers(column, where)
            with np.errstate(invalid="ignore"):
                fits = (numbers >= 0) & (numbers < self.codes) & (numbers == np.floor(numbers))
                codes = np.where(fits, numbers, OUTSIDE).astype(np.int32)
            codes[missing] = MISSING
            return codes

        return encode

    def original(self, column: pa.ChunkedArray, codes: Integral, where: str) -> Floats | None:
        """See :class:`Attribute`."""
        return None

    def arrow(self, codes: Integral, drawn: Floats | None) -> pa.Array:
        """See :class:`Attribute`."""
        from .cells import present_codes

        return typed_numbers(present_codes(codes, self.present), self.type)

    def _written(self) -> Fields:
        return {}

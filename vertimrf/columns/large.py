"""Whole numbers beyond 2**53, which double precision does not tell apart."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import Fields, Flags, Floats
from ..errors import SchemaError
from .numbers import Numbers
from .text import EXACT, Value

if TYPE_CHECKING:
    import pyarrow as pa

LISTS = ("edges", "points", "grid")
WRITTEN = re.compile(r"[-+]?\d{1,20}")


@dataclass(frozen=True, repr=False)
class Large(Numbers):
    """An attribute of whole numbers that lie close together, far from 0.

    All numbers are distances from the origin.

    Attributes:
        origin: the number that is 0, a multiple of the resolution.
    """

    _: KW_ONLY
    origin: int = 0

    def value_text(self, number: float) -> str:
        """See :class:`Numbers`."""
        return str(int(number) + self.origin)

    def limit(self, text: str) -> str | float:
        """See :class:`Attribute`."""
        return int(text) if WRITTEN.fullmatch(text.strip()) else super().limit(text)

    def number(self, limit: Value) -> float:
        """See :class:`Attribute`."""
        far = super().number(limit)
        return self.lattice.snapped(
            float(limit - self.origin) if isinstance(limit, int) else far - self.origin
        )

    def numbers(self, column: pa.ChunkedArray, where: str) -> tuple[Floats, Flags]:
        """See :class:`Attribute`."""
        import pyarrow as pa

        from .cells import by_type, is_text, written_out

        def read(cells: pa.ChunkedArray) -> tuple[Floats, Flags]:
            near, missing = super(Large, self).numbers(cells, where)
            near = near - self.origin
            cells = written_out(cells)
            if is_text(cells.type) or not pa.types.is_floating(cells.type):
                texts = cells.cast("string")
                texts = (
                    self.notation.plain(texts) if self.notation and is_text(cells.type) else texts
                )
                exact = [self._distance(text) for text in texts.to_pylist()]
                near = np.where(np.isnan(exact), near, exact)
            return near, missing

        return by_type(column, read, (np.nan, np.False_))

    def _distance(self, text: str | None) -> float:
        """The distance of a written number from the origin; NaN if it is none."""
        known = text is not None and WRITTEN.fullmatch(text.strip())
        return float(int(text or "") - self.origin) if known else np.nan

    def _number(self, number: float) -> Any:
        return int(number) + self.origin


def is_large(parts: Mapping[str, Any]) -> bool:
    """Whether parts of an attribute hold whole numbers that double precision does not tell apart."""
    return any(
        isinstance(number, int) and abs(number) > EXACT
        for key in LISTS
        if isinstance(parts.get(key), Sequence)
        for number in parts[key]
    )


def from_origin(where: str, parts: Mapping[str, Any]) -> Fields:
    """The parts of a :class:`Large` attribute, of those with the numbers themselves.

    Raises:
        SchemaError: they are not all whole, or too far apart.
    """
    numbers = [number for key in LISTS for number in parts.get(key) or ()]
    steps = parts.get("resolution") or 1, parts.get("offset") or 0
    whole = all(isinstance(one, int | float) and one % 1 == 0 for one in steps)
    if not whole or not all(isinstance(number, int) for number in numbers) or steps[0] < 1:
        raise SchemaError(
            f"{where} has numbers beyond 2**53 and others that are not whole; write all as whole numbers."
        )
    if min(numbers) < -(1 << 63) or max(numbers) >= 1 << 64:
        raise SchemaError(
            f"{where}: whole numbers must have 64 bits or fewer; write larger ones as listed texts."
        )
    step, offset = map(int, steps)
    origin = min(numbers) // step * step
    if max(numbers) - origin >= EXACT:
        raise SchemaError(
            f"{where} has numbers beyond 2**53 that lie more than 2**53 apart; list the values, or give it no integral and no grid."
        )
    lists = {key: tuple(n - origin for n in parts[key]) for key in LISTS if parts.get(key)}
    return {**parts, **lists, "offset": offset % step, "origin": origin}

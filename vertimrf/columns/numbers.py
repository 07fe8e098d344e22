"""Numbers between public bounds, in bins."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..arrays import Floats
from ..errors import SchemaError
from .column import Attribute, Limits, Value, decimals, no_domain
from .edges import drafted_edges

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from .column import Encode
    from .inside import Span

# Steps of a resolution, counted from 0, that double precision can represent.
MAX_STEPS = 2.0**53
# Numbers with more decimals have any number of them.
MAX_DECIMALS = 9


@dataclass(frozen=True, repr=False)
class Numbers(Attribute):
    """An attribute of numbers with public bounds and bins.

    Attributes:
        edges: bin i is [edges[i], edges[i+1]), and the last one includes its upper edge.
        integral: values are whole numbers, also decoded ones.
        clamp: values outside the bounds count as the nearest bound, instead of being an error.
        resolution: values are multiples of it, also decoded ones (0.01 for prices); None if they
            are not.
        format: the decimal mark of texts, "." or ",", which may then have separators of thousands
            and signs of currencies or percent; None for plain numbers.
    """

    edges: tuple[float, ...] = ()
    integral: bool = field(default=False, kw_only=True)
    clamp: bool = field(default=False, kw_only=True)
    resolution: float | None = field(default=None, kw_only=True)
    format: str | None = field(default=None, kw_only=True)

    kind: ClassVar[str] = "numeric"
    noun: ClassVar[str] = "bin"

    def _check(self, where: str) -> None:
        if not self.edges:
            raise no_domain(where)
        self._check_grid(where)
        self._check_edges(where)

    def _check_grid(self, where: str) -> None:
        self._check_format(where)
        if self.resolution is not None and (
            isinstance(self.resolution, bool)
            or not isinstance(self.resolution, int | float)
            or not 0 < self.resolution < math.inf
        ):
            raise SchemaError(
                f"{where}: resolution is {self.resolution!r}; write a number above 0, as 0.01 for hundredths."
            )
        if self.integral and self.resolution is not None:
            raise SchemaError(
                f"{where} is integral and has a resolution or a calendar; give it one of them."
            )

    def _check_format(self, where: str) -> None:
        if self.format is not None and self.format not in (".", ","):
            raise SchemaError(
                f"{where}: format is {self.format!r}; of dates write '%d/%m/%Y' and the like, of numbers their decimal mark."
            )

    def _check_edges(self, where: str) -> None:
        try:
            edges = tuple(float(edge) for edge in self.edges)
        except (TypeError, ValueError, OverflowError):
            raise SchemaError(f"{where}: edges must be numbers.") from None
        object.__setattr__(self, "edges", edges)
        if len(edges) < 2:
            raise SchemaError(
                f"{where} has {len(edges)} edges; it needs at least 2, the public bounds."
            )
        if not all(map(math.isfinite, edges)):
            raise SchemaError(
                f"{where}: edges must be finite; give public bounds, and clamp = true if values may exceed them."
            )
        self._check_range(where)
        if self.step and max(map(abs, edges)) / self.step >= MAX_STEPS:
            raise SchemaError(
                f"{where}: edges lie more than {MAX_STEPS:g} steps of {self.step:g} from 0; use a coarser resolution."
            )
        for i, (low, high) in enumerate(itertools.pairwise(edges)):
            if low >= high:
                raise SchemaError(
                    f"{where}: edges must increase, but {self.edge_text(i)} is followed by {self.edge_text(i + 1)}."
                )
        if self.step:
            for code in range(len(edges) - 1):
                low, high = self.multiples(code)
                if low > high:
                    kind = "whole number" if self.integral else f"multiple of {self.step:g}"
                    raise SchemaError(
                        f"{where}: the bin from {self.edge_text(code)} to {self.edge_text(code + 1)} holds no {kind}; "
                        f"use wider bins or {'integral = false' if self.integral else 'a finer resolution'}."
                    )

    def _check_range(self, where: str) -> None:
        """Check that edges can be written as texts."""

    @property
    def _domain(self) -> str:
        return f"{self.present:,} bins from {self.bounds_text}"

    @property
    def present(self) -> int:
        """See :class:`Attribute`."""
        return len(self.edges) - 1

    @property
    def limits(self) -> tuple[float, float]:
        """See :class:`Attribute`."""
        return self.edges[0], self.edges[-1]

    @property
    def extremes(self) -> tuple[float, float]:
        """See :class:`Attribute`."""
        return self.limits

    @property
    def step(self) -> float:
        """See :class:`Attribute`."""
        return 1.0 if self.integral else self.resolution or 0.0

    @property
    def counts(self) -> bool:
        """Whether values are whole numbers, of days or of seconds."""
        return self.integral

    def bare(self) -> Attribute:
        """See :class:`Attribute`."""
        return replace(self, clamp=False, format=None)

    def as_written(self) -> Attribute:
        """See :class:`Attribute`."""
        return replace(self, format=None)

    def binned_as(self, numbers: Floats) -> Attribute:
        """See :class:`Attribute`."""
        edges = drafted_edges(Counter(numbers.tolist()))
        return replace(self, edges=edges, missing=True)

    def multiples(self, code: int) -> tuple[int, int]:
        """The least and greatest multiple of the step in a bin, in steps."""
        # Rounding removes errors such as 0.7 / 0.1 = 6.999...
        low, high = (round(edge / self.step, 6) for edge in self.edges[code : code + 2])
        last = code == len(self.edges) - 2
        return math.ceil(low), math.floor(high) if last else math.ceil(high) - 1

    def edge_text(self, index: int) -> str:
        """An edge as text."""
        return f"{self.edges[index]:g}"

    @property
    def bounds_text(self) -> str:
        """The bounds as text."""
        return f"{self.edge_text(0)} to {self.edge_text(len(self.edges) - 1)}"

    def _text(self, code: int) -> str:
        return f"from {self.edge_text(code)} to {self.edge_text(code + 1)}"

    def _label(self, code: int) -> str:
        return self.edge_text(code)

    @property
    def remedy(self) -> str:
        """See :class:`Attribute`."""
        return f"the bounds are {self.bounds_text}: correct the values, widen the bounds, or set clamp = true"

    @property
    def found(self) -> str:
        """See :class:`Attribute`."""
        return f"{self.bounds_text}, {self.present} bins"

    def near(self, value: Any) -> str:
        """See :class:`Attribute`."""
        return f"the bounds are {self.bounds_text}"

    def codes_of(self, value: Value) -> list[int]:
        """See :class:`Attribute`."""
        return self.between((("from", value), ("to", value)))[0]

    def number(self, limit: Value) -> float:
        """See :class:`Attribute`."""
        return self._steps(super().number(limit))

    def _steps(self, number: float) -> float:
        """A number in steps, if there are any."""
        # Rounding removes errors such as 0.7 / 0.1 = 6.999...
        return round(number / self.step, 6) if self.step else number

    def spans(self) -> list[tuple[float, float, bool]]:
        """See :class:`Attribute`."""
        bins = range(self.present)
        if self.step:
            return [(float(low), float(high), False) for low, high in map(self.multiples, bins)]
        return [(self.edges[i], self.edges[i + 1], i < bins[-1]) for i in bins]

    @property
    def dense(self) -> bool:
        """See :class:`Attribute`."""
        return not self.step

    def ends(self) -> tuple[Floats, Floats]:
        """See :class:`Attribute`."""
        if not self.step:
            edges = np.array(self.edges)
            return edges[:-1], np.append(np.nextafter(edges[1:-1], -np.inf), edges[-1])
        low, high = np.transpose([self.multiples(code) for code in range(self.present)])
        return times(low, self.step), times(high, self.step)

    def nearest(self, limits: Floats, *, strict: bool = False, up: bool = True) -> Floats:
        """See :class:`Attribute`."""
        sign = 1.0 if up else -1.0
        limits = sign * limits
        step = self.step
        if not step:
            return sign * (np.nextafter(limits, np.inf) if strict else limits)
        steps = np.floor(limits / step) - 1
        finite = np.isfinite(limits)
        while True:
            values = times(steps, step)
            short = finite & ((values <= limits) if strict else (values < limits))
            if not short.any():
                return sign * values
            steps[short] += 1

    @property
    def digits(self) -> int | None:
        """See :class:`Attribute`."""
        if not self.step:
            return None
        digits = decimals(self.step)
        return digits if digits <= MAX_DECIMALS else None

    def within(
        self, limits: Limits, counts: Callable[[], Floats]
    ) -> tuple[Sequence[int], Span | None] | None:
        """See :class:`Attribute`."""
        from .inside import Span, shares_inside

        low, high, low_open, high_open = self.interval(limits)
        if self.step:
            low = np.floor(low) + 1 if low_open else np.ceil(low)
            high = np.ceil(high) if high_open else np.floor(high) + 1
        else:
            low = np.nextafter(low, np.inf) if low_open else low
            high = np.nextafter(high, -np.inf) if high_open else high
        span = Span(low, high, counts()[: self.present])
        return np.flatnonzero(shares_inside(self, span) > 0).tolist(), span

    def encoder(self, where: str) -> Encode:
        """See :class:`Attribute`."""
        from .cells import binned_encoder

        return binned_encoder(self, where)

    def original(
        self, column: pa.ChunkedArray, codes: npt.NDArray[np.integer], where: str
    ) -> Floats | None:
        """See :class:`Attribute`."""
        values, _ = self.numbers(column, where)
        return np.where(np.isfinite(values), values, np.nan)

    def span(self, counts: npt.NDArray[np.number]) -> Span | None:
        """See :class:`Attribute`."""
        from .inside import Span

        return Span(-np.inf, np.inf, counts[: self.present])

    def shares(self, span: Span) -> Floats:
        """See :class:`Attribute`."""
        from .inside import shares_inside

        return shares_inside(self, span)

    def drawn(self, codes: npt.NDArray[np.integer], span: Span, rng: np.random.Generator) -> Floats:
        """See :class:`Attribute`."""
        from .inside import numbers_inside

        numbers = np.full(len(codes), np.nan)
        known = codes < self.present
        numbers[known] = numbers_inside(self, codes[known].astype(np.int64), span, rng)
        return numbers

    def arrow(self, codes: npt.NDArray[np.integer], drawn: Floats | None) -> pa.Array:
        """See :class:`Attribute`."""
        assert drawn is not None
        return self.typed(drawn)

    def typed(self, numbers: Floats) -> pa.Array:
        """See :class:`Attribute`."""
        import pyarrow as pa

        missing = np.isnan(numbers)
        if not self.integral:
            return pa.array(numbers, mask=missing)
        return pa.array(np.where(missing, 0, numbers).astype(np.int64), mask=missing)

    def sdv(self) -> dict[str, str]:
        """See :class:`Attribute`."""
        kind = "Int64" if self.integral else "Float"
        return {"sdtype": "numerical", "computer_representation": kind}

    def _written(self) -> dict[str, Any]:
        return {
            "edges": [
                int(edge) if edge.is_integer() and abs(edge) < 1e15 else edge for edge in self.edges
            ]
        }


def times(steps: Any, step: float) -> Floats:
    """Multiples of a step."""
    # Rounding removes errors such as 3 * 0.1 = 0.30000000000000004.
    product: Floats = np.round(np.asarray(steps, float) * step, decimals(step))
    return product

"""What every notation can be asked: to recognise texts, to read them as numbers, and to write numbers so."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

if TYPE_CHECKING:
    import pyarrow as pa

    from ...arrays import Floats
    from ..calendar import Calendar

DateOrder = Literal["day-first", "month-first"]


@dataclass(frozen=True)
class Recognised:
    """Texts of a column that are all in one notation.

    Attributes:
        notation: the notation.
        numbers: records by number.
        problem, done: what an owner should check, and how the texts are read.
    """

    notation: Notation
    numbers: dict[float, int]
    problem: str
    done: str


class Notation(ABC):
    """A way to write numbers, dates or times.

    Attributes:
        of_texts: whether a column that is text by its type may be read so, not only one of a CSV file.
        calendar: of dates and times, their kind; None of other numbers.
        may_identify: whether numbers of the notation may be ids, and not only quantities.
    """

    of_texts: ClassVar[bool] = False

    @property
    def calendar(self) -> Calendar | None:
        """See :class:`Notation`."""
        return None

    @property
    def may_identify(self) -> bool:
        """See :class:`Notation`."""
        return False

    @property
    def zone(self) -> str | None:
        """The time zone of timestamps; None of others."""
        return None

    @property
    @abstractmethod
    def format(self) -> str | None:
        """The notation as a schema names it; None for the usual one."""

    @classmethod
    def named(cls, format: str) -> Notation | None:
        """The notation of numbers that a schema names so; None if it is none of this kind."""
        return None

    @classmethod
    @abstractmethod
    def recognise(cls, counts: Mapping[str, int], order: DateOrder | None) -> Recognised | None:
        """Read the texts of a column.

        Args:
            counts: records by text.
            order: which of day and month comes first, where both fit.

        Returns:
            What they are; None if a text is in another notation.

        Raises:
            SchemaError: they may mean different things.
        """

    @abstractmethod
    def parsed(self, texts: pa.ChunkedArray) -> Floats:
        """Texts without nulls as numbers, NaN for those of another notation [shape=(n,), float64]."""

    @abstractmethod
    def written(self, values: pa.Array) -> pa.Array:
        """Numbers as texts, which :meth:`parsed` reads as these numbers, null where they are [length n].

        Args:
            values: whole numbers of 64 bits, or numbers in double precision.
        """

    def text(self, number: float) -> str:
        """A number as text, see :meth:`written`."""
        import pyarrow as pa

        text: str = self.written(pa.array([number]))[0].as_py()
        return text

    def number(self, text: str) -> float:
        """One text as a number; NaN if it is in another notation."""
        import pyarrow as pa

        return float(self.parsed(pa.chunked_array([pa.array([text], pa.large_string())]))[0])

    def plain(self, texts: pa.ChunkedArray) -> pa.ChunkedArray:
        """The texts as programs write numbers, as far as they are some; those of dates and times as they are."""
        return texts

    def is_of(self, column: pa.ChunkedArray) -> bool:
        """Whether texts, of which some may be null, are written as :meth:`written` writes them."""
        import pyarrow as pa
        import pyarrow.compute as pc

        texts = column.drop_null().cast(pa.string()).unique()
        numbers = pa.array(self.parsed(pa.chunked_array([texts])), from_pandas=True)
        return bool(pc.all(pc.fill_null(pc.equal(self.written(numbers), texts), False)).as_py())

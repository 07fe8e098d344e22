"""Records that a party's releases leave out, counted by reason, for that party only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import pyarrow as pa

from ..arrays import Flags, Integers, Ints, Texts
from ..errors import SchemaError, TableError

# Number of examples of faulty records in messages.
EXAMPLES = 3
# Characters shown of an unreadable row.
SHOWN = 60
# Most bytes of a row of a CSV file. A longer one is left out, so that one row, such as one with a
# stray quote, takes no more memory.
LONGEST_ROW = 1 << 24
# What a row has that cannot be read.
CELLS = "more or fewer cells than the header"
ENDLESS = f"more than {LONGEST_ROW >> 20} MB, or a quote that nothing closes"
NO_VALUE = "a cell that is no text, number, date or time"
NO_OBJECT = "a text that is no JSON object"
UNREADABLE = (CELLS, ENDLESS, NO_VALUE, NO_OBJECT)


class Unreadable(Protocol):
    """Told of rows of a table that cannot be read."""

    def __call__(self, why: str, row: str, count: int, read: pa.Table | None = None) -> None:
        """Why, the text of the first of them, their number, and what columns of them can be read."""


Kind = Literal[
    "unreadable", "no id", "no person", "repeated id", "missing", "outside", "impossible"
]
# Reasons in the table itself; the others concern the schema as well.
OF_THE_TABLE: tuple[Kind, ...] = ("unreadable", "no id", "no person", "repeated id")


@dataclass(frozen=True)
class Tally:
    """Records that have one problem.

    Attributes:
        count: number of records.
        rows: the first of them, counted from 0.
        name: what the first is called; default its row.
        value: its value that is the problem, as messages show it.
    """

    count: int = 0
    rows: Ints = ()
    name: str = ""
    value: str = ""

    @classmethod
    def of(cls, marked: Flags, before: int = 0) -> Tally:
        """Marked records of a piece that follows ``before`` records [shape=(n,), bool]."""
        return cls.at(before + np.flatnonzero(marked))

    @classmethod
    def at(cls, rows: Integers) -> Tally:
        """Records in some rows, increasing [shape=(n,), int64]."""
        return cls(len(rows), tuple(rows[:EXAMPLES].tolist()))

    def then(self, later: Tally, before: int = 0) -> Tally:
        """These, and those of a piece that follows ``before`` records."""
        rows = (*self.rows, *(before + row for row in later.rows))
        first = self if self.count else later
        return Tally(self.count + later.count, rows[:EXAMPLES], first.name, first.value)

    @property
    def records(self) -> str:
        """The number of records and the first of them, in words."""
        several = self.count > 1
        first = self.name or f"row {self.rows[0] + 1}"
        return f"{self.count:,} record{'s' * several} ({'the first is ' * several}{first})"


@dataclass(frozen=True)
class Reason:
    """One reason why records were dropped.

    Attributes:
        kind: kind of reason.
        what: the column, the impossible combination in words, or what an unreadable row has.
        count: number of records; several reasons may apply to one record.
        sentence: the number of records, where they are, the first of them, and the remedy.
    """

    kind: Kind
    what: str
    count: int
    sentence: str


@dataclass(frozen=True)
class Dropped:
    """Records of a table that are left out of its releases.

    The numbers are exact and stay with the party. They are part of no message, answer, exit code or
    file that leaves it.

    Attributes:
        records: number of records.
        reasons: why they were dropped.
    """

    records: int = 0
    reasons: tuple[Reason, ...] = ()

    def lines(self) -> Texts:
        """Lines for the party's operator: the number of dropped records, and each reason.

        There are no lines if no record was dropped.
        """
        if not self.records:
            return ()
        several = self.records > 1
        whole = f"{self.records:,} record{'s do' if several else ' does'} not fit and {'are' if several else 'is'} left out"
        return (f"{whole}; this stays here.", *(reason.sentence for reason in self.reasons))

    def also(self, records: int, reason: Reason) -> Dropped:
        """These, and ``records`` further records for another reason."""
        return Dropped(self.records + records, (*self.reasons, reason))

    def refuse(self) -> None:
        """Raise an error if a record was dropped.

        Outputs that are not private need every record.

        Raises:
            TableError, SchemaError: a record was dropped; the message is that of the first reason.
        """
        for reason in self.reasons:
            raise (TableError if reason.kind in OF_THE_TABLE else SchemaError)(reason.sentence)


NONE = Dropped()

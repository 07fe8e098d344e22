"""What a party's releases leave out of its table: records that do not fit, counted by reason, for that party's own eyes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..errors import SchemaError, TableError

__all__ = ["NONE", "Dropped", "Kind", "Reason"]

Kind = Literal["unreadable", "no id", "no person", "repeated id", "missing", "outside", "impossible"]
# Reasons that lie in the table; the others lie in the schema as well.
OF_THE_TABLE: tuple[Kind, ...] = ("unreadable", "no id", "no person", "repeated id")


@dataclass(frozen=True)
class Reason:
    """One reason for which records were dropped.

    Attributes:
        kind: what it is.
        what: the column, or the impossible combination in words; empty where the record as such is meant.
        count: how many records it applies to; several reasons may apply to one record.
        sentence: how many, where, the first of them, and the remedy.
    """

    kind: Kind
    what: str
    count: int
    sentence: str


@dataclass(frozen=True)
class Dropped:
    """Records of a table that take no part in what is released of it.

    The numbers are exact: they stay with the party, and are part of no message, answer, exit code or file that leaves it.

    Attributes:
        records: how many.
        reasons: why.
    """

    records: int = 0
    reasons: tuple[Reason, ...] = ()

    def lines(self) -> tuple[str, ...]:
        """For the party's operator: how many records were dropped, and a sentence for every reason; none if none were."""
        if not self.records:
            return ()
        several = self.records > 1
        whole = f"{self.records:,} record{'s do' if several else ' does'} not fit and {'are' if several else 'is'} left out"
        return (f"{whole}; this stays here.", *(reason.sentence for reason in self.reasons))

    def also(self, records: int, reason: Reason) -> Dropped:
        """These, and so many of the others for another reason."""
        return Dropped(self.records + records, (*self.reasons, reason))

    def refuse(self) -> None:
        """For what is not private and needs every record: none may have been dropped.

        Raises:
            TableError, SchemaError: some were; the first reason's sentence.
        """
        for reason in self.reasons:
            raise (TableError if reason.kind in OF_THE_TABLE else SchemaError)(reason.sentence)


NONE = Dropped()


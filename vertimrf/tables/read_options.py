"""``ReadOptions``: how a table of records is read."""

from __future__ import annotations

import codecs
import io
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..errors import TableError

__all__ = ["DEFAULT", "FORMATS", "ReadOptions", "check_formats"]

# How ids that are written differently are normalised, in this order: surrounding spaces dropped, letters made small, 123.0 made
# 123, leading zeros dropped.
FORMATS = ("strip", "lower", "whole", "unpad")
# Encodings of Python's that write names of hosts and source code, not files.
NO_FILES = ("idna", "punycode", "undefined", "unicode_escape", "raw_unicode_escape")
FORMAT_HELP = "For ids that others write differently: strip, lower, whole (123.0 is 123), unpad (00123 is 123); with commas."


def check_formats(formats: Sequence[str]) -> tuple[str, ...]:
    """Id formats, each once, in the order of :data:`FORMATS`.

    Raises:
        TableError: no such format.
    """
    if unknown := [name for name in formats if name not in FORMATS]:
        raise TableError(f"There is no id format {unknown[0]!r}; they are {', '.join(FORMATS)}.")
    return tuple(name for name in FORMATS if name in formats)


@dataclass(frozen=True)
class ReadOptions:
    """How a table is read: which rows belong to one person, how ids are normalised, how CSV files are written.

    Attributes:
        person: the column that says whose a record is, where people have several; None if every record is a person's only one.
        id_format: how ids that other parties write differently are normalised (:data:`FORMATS`).
        ignore_extra: leave out columns that the schema does not have, instead of refusing the table.
        delimiter: between the cells of a CSV file, one ASCII character.
        encoding: of the text of a CSV file, a name that Python knows; bytes that are not text in it are read as ``\\xNN``.

    Raises:
        TableError: no such id format, delimiter or encoding.
    """

    person: str | None = field(default=None, metadata={"help": "Column that says whose a record is, where people have several."})
    id_format: tuple[str, ...] = field(default=(), metadata={"help": FORMAT_HELP})
    ignore_extra: bool = field(
        default=False, metadata={"help": "Leave out columns that the plan does not know, instead of refusing the table."}
    )
    delimiter: str = field(default=",", metadata={"help": "Between the cells of CSV files; \\t for tabs."})
    encoding: str = field(default="utf-8", metadata={"help": "Of the text of CSV files, such as latin-1."})

    def __post_init__(self) -> None:
        object.__setattr__(self, "id_format", check_formats(self.id_format))
        if len(self.delimiter) != 1 or not self.delimiter.isascii() or self.delimiter in '"\r\n':
            raise TableError(f"The delimiter of a CSV file is one ASCII character, not {self.delimiter!r}.")
        try:
            # Which also knows the codecs that turn text into text, or bytes into bytes.
            io.TextIOWrapper(io.BytesIO(), encoding=self.encoding)
            known = codecs.lookup(self.encoding).name.replace("-", "_") not in NO_FILES
        except (LookupError, ValueError):
            known = False
        if not known:
            raise TableError(
                f"There is no encoding {self.encoding!r} that text files are written in; give a name such as utf-8 or latin-1."
            )


DEFAULT = ReadOptions()

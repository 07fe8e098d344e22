"""``ReadOptions``: how a table of records is read."""

from __future__ import annotations

import codecs
import io
from collections.abc import Sequence
from dataclasses import dataclass

from ..arguments import check_fields
from ..errors import TableError, some
from ..plan.options import described

# Formats of ids, applied in this order: drop surrounding spaces; lower case; 123.0 becomes 123;
# drop leading zeros.
FORMATS = ("strip", "lower", "whole", "unpad")
# Python encodings of host names and source code, which files do not use.
NO_FILES = ("idna", "punycode", "undefined", "unicode_escape", "raw_unicode_escape")
FORMAT_HELP = "Normalise ids: strip, lower, whole (123.0 is 123), unpad (00123 is 123); separate several with commas."


def check_formats(formats: Sequence[str]) -> tuple[str, ...]:
    """Id formats without repetitions, in the order of :data:`FORMATS`.

    Raises:
        TableError: a format is unknown.
    """
    if unknown := [name for name in formats if name not in FORMATS]:
        raise TableError(
            f"There is no id format {unknown[0]!r}; choose among {', '.join(FORMATS)}."
        )
    return tuple(name for name in FORMATS if name in formats)


@dataclass(frozen=True)
class ReadOptions:
    r"""How a table is read: records of one person, normalised ids, and the format of CSV files.

    Attributes:
        person: column of person ids, if people have several records; None if every record is a
            different person.
        id_format: how to normalise ids that parties write differently (:data:`FORMATS`).
        delimiter: separator between cells of a CSV file, one ASCII character. By default it is the
            one of comma, semicolon, tab and bar that the header has most often.
        encoding: Python name of the text encoding of a CSV file, by default UTF-8. Invalid bytes
            are read as ``\\xNN``.
        skip_rows: number of lines before the header of a CSV file, by default 0.
        no_header: whether the first row of a CSV file is a record. ``columns`` and ``delimiter``
            are then stated, because nothing is read off a record; only a draft does without.
        columns: names of the columns of a file that has no header: of a CSV file in their order, of
            JSON lines the keys. JSON lines of which none are stated have the schema's columns.
        query: SELECT statement of a table that is a database (:mod:`vertimrf.tables.databases`).

    Raises:
        TableError: an id format, delimiter or encoding is unknown, a number of lines negative, or
            a column named twice.
    """

    person: str | None = described(None, "Column of person ids, if people have several records.")
    id_format: tuple[str, ...] = described((), FORMAT_HELP)
    delimiter: str = described("", "Separator between cells of CSV files; \\t for tabs.")
    encoding: str = described("", "Text encoding of CSV files, such as latin-1.")
    skip_rows: int | None = described(None, "Lines before the header of CSV files.")
    no_header: bool = described(False, "CSV files have no header; give --columns and --delimiter.")
    columns: tuple[str, ...] = described(
        (), "Names of the columns of files without a header, separated by commas."
    )
    query: str | None = described(
        None, "Query of a database: --table duckdb:FILE --query 'SELECT ...'."
    )

    def __post_init__(self) -> None:
        check_fields(self, TableError)
        object.__setattr__(self, "id_format", check_formats(self.id_format))
        if len(set(self.columns)) < len(self.columns) or "" in self.columns:
            raise TableError(
                f"The columns of a file without a header are {some(self.columns)}; give each a name of its own."
            )
        if self.lines_before < 0:
            raise TableError(f"The lines before a header are 0 or more, not {self.skip_rows}.")
        if (
            len(self.delimiter) > 1
            or not self.delimiter.isascii()
            or self.delimiter in ('"', "\r", "\n")
        ):
            raise TableError(
                f"The delimiter of a CSV file is one ASCII character, not {self.delimiter!r}."
            )
        try:
            # TextIOWrapper refuses codecs from text to text or from bytes to bytes.
            io.TextIOWrapper(io.BytesIO(), encoding=self.charset)
            known = codecs.lookup(self.charset).name.replace("-", "_") not in NO_FILES
        except (LookupError, ValueError):
            known = False
        if not known:
            raise TableError(
                f"There is no text encoding {self.encoding!r}; give a name such as utf-8 or latin-1."
            )

    @property
    def charset(self) -> str:
        """The text encoding of a CSV file."""
        return self.encoding or "utf-8"

    @property
    def lines_before(self) -> int:
        """The number of lines before the header of a CSV file."""
        return self.skip_rows or 0


DEFAULT = ReadOptions()

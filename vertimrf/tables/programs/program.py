"""What a program's file is: the contract of this folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from ...arrays import Texts
from ...errors import TableError
from ...files.atomic import AnyPath
from ..codebook import Variable

# By column, what a codebook says of it.
About = Mapping[str, Variable]


@dataclass(frozen=True)
class Program:
    """A kind of file.

    Attributes:
        name: the program.
        suffixes: what names of its files end in.
        needs: packages that write it.
        rows, columns: most of a table that a file has; None: any number.
        write: writes a table to a new file; calls its last argument with a sentence for each thing that the file cannot hold, before it
            writes.
    """

    name: str
    suffixes: Texts
    needs: Texts
    write: Callable[[pa.Table, Path, About, Callable[[str], None]], None]
    rows: int | None = None
    columns: int | None = None

    def check(self, path: AnyPath, rows: int, columns: int) -> None:
        """Check that a table of so many rows and columns fits.

        Raises:
            TableError: it does not.
        """
        for most, count, what in ((self.rows, rows, "rows"), (self.columns, columns, "columns")):
            if most is not None and count > most:
                fewer = (
                    "ask for fewer (--rows), or write Parquet"
                    if what == "rows"
                    else "write Parquet"
                )
                raise TableError(
                    f"A file of {self.name} has at most {most:,} {what}, and {path} would have {count:,}: {fewer}."
                )

"""What a program's file is: the contract of this folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from ...arrays import Texts
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
        write: writes a table to a new file; gives a sentence for each thing that the file cannot hold, after calling its last argument
            with these sentences before it writes.
    """

    name: str
    suffixes: Texts
    needs: Texts
    write: Callable[[pa.Table, Path, About, Callable[[str], None]], None]

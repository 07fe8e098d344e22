"""The programs whose files are written, by the end of a file's name."""

from __future__ import annotations

import importlib.util
import logging
import os
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...errors import TableError
from ...files.atomic import AnyPath
from ..arrow import one_line
from ..codebook import Variable
from . import excel, statistics
from .program import Program

LOG = logging.getLogger(__name__)
PROGRAMS: dict[str, Program] = {
    suffix: program
    for program in (*statistics.PROGRAMS, *excel.PROGRAMS)
    for suffix in program.suffixes
}


def program_of(path: AnyPath) -> tuple[str, Program] | None:
    """The end of a file's name, and the program whose files are called so; None if there is none.

    Raises:
        TableError: a package that writes it is not installed.
    """
    suffix = Path(path).suffix
    program = PROGRAMS.get(suffix)
    if program is None:
        return None
    if any(importlib.util.find_spec(package) is None for package in program.needs):
        raise TableError(
            f"{path} is a file of {program.name}: to write it, pip install 'vertimrf[files]', or write Parquet or CSV."
        )
    return suffix, program


def write(table: pa.Table, path: Path, sink: Any, about: Iterable[Variable]) -> None:
    """Write a table as the file of a program. What the file cannot hold is said before.

    Args:
        table: the table.
        path: what the file is called.
        sink: gets its bytes.
        about: a codebook.

    Raises:
        TableError: the table cannot be written so.
    """
    program = PROGRAMS[path.suffix]
    program.check(path, table.num_rows, table.num_columns)
    with tempfile.TemporaryDirectory() as folder:
        draft = Path(folder, f"table{path.suffix}")

        def say(sentence: str) -> None:
            LOG.warning("%s, for %s: column %s.", path, program.name, sentence)

        try:
            program.write(table, draft, {one.name: one for one in about}, say)
        except (TableError, OSError):
            raise
        except Exception as error:  # whatever a package raises
            raise TableError(
                f"{path} cannot be written for {program.name} ({one_line(error)}); write Parquet or CSV."
            ) from None
        with draft.open("rb") as made:
            shutil.copyfileobj(made, sink)


def codebook(sources: Iterable[Any]) -> tuple[Variable, ...]:
    """What the headers of files of SPSS, Stata and SAS say of columns; of a column of several files, the first.

    Args:
        sources: tables of any kind.

    Raises:
        TableError: such a file cannot be read.
    """
    from ..sources import STATISTICS, first_file, format_of, open_pieces

    found: dict[str, Variable] = {}
    for source in sources:
        path = first_file(source) if isinstance(source, str | os.PathLike) else None
        if path is not None and format_of(path) in STATISTICS:
            for variable in open_pieces(path).about:
                found.setdefault(variable.name, variable)
    return tuple(found.values())

"""What readers of files with values of many types share: rows of cells become batches, errors one sentence."""

from __future__ import annotations

import contextlib
import functools
import importlib
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..errors import TableError
from .arrow import RecordBatches, no_table, object_batches
from .dropped import Unreadable
from .objects import from_objects

# Rows that are made into columns at a time.
ROWS = 1 << 15


def batches_of(
    rows: Iterator[Sequence[Any]],
    names: Sequence[str],
    wanted: Sequence[str],
    unreadable: Unreadable,
) -> RecordBatches:
    """Batches of some columns of rows of cells."""
    places = [names.index(name) for name in wanted]
    while block := list(itertools.islice(rows, ROWS)):
        columns = {
            name: functools.partial(from_objects, [row[place] for row in block], True)
            for name, place in zip(wanted, places, strict=True)
        }
        yield from object_batches(columns, wanted, unreadable)


def installed(package: str, path: Path | str, kind: str, extra: str = "files") -> Any:
    """A package of an extra.

    Raises:
        TableError: it is not installed.
    """
    try:
        return importlib.import_module(package)
    except ImportError:
        raise TableError(
            f"{path} is {kind}: to read it, pip install 'vertimrf[{extra}]', or save it as CSV or Parquet."
        ) from None


@contextlib.contextmanager
def any_error(what: str) -> Iterator[None]:
    """Turn whatever a package raises for a malformed file into a TableError about the subject of its sentence."""
    try:
        yield
    except TableError:
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and not is_panic(error):
            raise
        raise no_table(what, error) from None


def is_panic(error: BaseException) -> bool:
    """Whether code in Rust has panicked, which is no Exception."""
    return type(error).__name__ == "PanicException"

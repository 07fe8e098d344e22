"""Tables of several files: those in a folder, or that a pattern names; folders `key=value` are columns."""

from __future__ import annotations

import glob
import itertools
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa

from ..errors import TableError
from .arrow import LABEL_FILE, Pieces, RecordBatches
from .dropped import Unreadable

PATTERN = re.compile(r"[*?\[]")
# What programs write for a missing value in the name of a folder.
NO_KEY = "__HIVE_DEFAULT_PARTITION__"
# Most files of a table.
MAX_FILES = 100_000


@dataclass(frozen=True)
class Part:
    """A file of a table of several files.

    Attributes:
        path: the file.
        keys: the columns that the names of its folders give, and their value; None if it is
            missing.
    """

    path: Path
    keys: tuple[tuple[str, str | None], ...] = ()

    def __str__(self) -> str:
        return str(self.path)


def parts_of(path: Path) -> list[Part] | None:
    """The files of a table, in the order of their names; None if the path is not one of several.

    Files and folders whose names begin with a dot or an underscore are no part of it.

    Raises:
        TableError: there are no files or too many, or one of them is a link.
    """
    try:
        there, is_folder = path.exists(), path.is_dir()
    except OSError as error:
        raise TableError(f"{path} cannot be read as a table ({error.strerror}).") from None
    if is_folder:
        root, found = path, _below(path, path)
    elif PATTERN.search(str(path)) and not there:
        fixed = itertools.takewhile(lambda part: not PATTERN.search(part), path.parts)
        root = Path(*fixed)
        named = (Path(name) for name in glob.iglob(str(path), recursive=True))
        found = (
            file
            for name in named
            if not _hidden(name, root)
            for file in (_below(name, root) if name.is_dir() else (name,))
        )
    else:
        return None
    files = set(itertools.islice(found, MAX_FILES + 1))
    if not files:
        raise TableError(
            f"{path} has no files; name a folder of a table's files, or a pattern that they fit."
        )
    if len(files) > MAX_FILES:
        raise TableError(f"{path} names more than {MAX_FILES:,} files; name those of one table.")
    for file in files:
        _check_no_link(file, root)
    return [Part(file, _keys(file, root)) for file in sorted(files)]


def _below(folder: Path, root: Path) -> Iterator[Path]:
    """The files in a folder and in its folders."""
    _check_no_link(folder, root)
    for where, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name[0] not in "._"]
        for name in folders:
            _check_no_link(Path(where, name), root)
        for name in files:
            if name[0] not in "._" and not name.endswith(LABEL_FILE):
                yield Path(where, name)


def _hidden(path: Path, root: Path) -> bool:
    return any(part[0] in "._" for part in path.relative_to(root).parts)


def _check_no_link(path: Path, root: Path) -> None:
    """Refuse a link below a folder, which may lead out of it or count rows twice.

    Raises:
        TableError: the path has one.
    """
    while path not in (root, path.parent):
        if path.is_symlink():
            raise TableError(
                f"{path} is a link, and links in a table's folder are not followed: put the file itself there."
            )
        path = path.parent


def _keys(path: Path, root: Path) -> tuple[tuple[str, str | None], ...]:
    """The columns that the names of a file's folders give."""
    pairs = (name.partition("=") for name in path.relative_to(root).parent.parts)
    return tuple(
        (unquote(key), None if value == NO_KEY else unquote(value))
        for key, mark, value in pairs
        if key and mark
    )


def with_keys(pieces: Pieces, part: Part) -> Pieces:
    """A file's rows with the columns that its folders' names give, as text.

    Raises:
        TableError: the file has such a column, too.
    """
    keys = dict(part.keys)
    if twice := [name for name in keys if name in pieces.names] or len(keys) < len(part.keys):
        what = repr(twice[0]) if isinstance(twice, list) else "of one name"
        raise TableError(
            f"{part.path} has a column {what} twice, the names of its folders included; rename one."
        )
    if not keys:
        return pieces

    def batches(columns: Sequence[str], unreadable: Unreadable) -> RecordBatches:
        wanted = [name for name in columns if name not in keys] or list(pieces.names[:1])
        for batch in pieces.batches(wanted, unreadable):
            arrays = [
                pa.repeat(pa.scalar(keys[name], pa.string()), batch.num_rows)
                if name in keys
                else batch.column(wanted.index(name))
                for name in columns
            ]
            yield pa.RecordBatch.from_arrays(arrays, list(columns))

    names = (*pieces.names, *keys)
    return replace(pieces, names=names, batches=batches)


def together(pieces: Sequence[Pieces], where: str) -> Pieces:
    """The rows of several files, one after the other; ``where`` names the table in errors.

    Raises:
        TableError: a file has other columns than the first.
    """
    first = next((each for each in pieces if not each.any_column), pieces[0])
    pieces = [each.asked(first.names) for each in pieces] if not first.any_column else pieces
    for other in pieces[1:]:
        for one, two in ((first, other), (other, first)):
            if absent := [name for name in one.names if name not in two.names]:
                raise TableError(
                    f"{two.where} lacks the column {absent[0]!r}, which {one.where} has; give all files of a table the same columns."
                )

    def batches(columns: Sequence[str], unreadable: Unreadable) -> RecordBatches:
        for each in pieces:
            yield from each.batches(columns, unreadable)

    typed = all(each.typed for each in pieces)
    return replace(first, where=where, batches=batches, typed=typed)

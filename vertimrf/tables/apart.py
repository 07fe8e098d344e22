"""Read files of SPSS, Stata and SAS in a child process, which alone ends where a damaged file crashes its reader, keeps it busy or
asks for far too much memory.

The child writes frames to its standard output: a kind, the length, and that many bytes.
"""

from __future__ import annotations

import codecs
import contextlib
import itertools
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..errors import TableError
from .arrow import Pieces, RecordBatches
from .codebook import Variable, variables
from .dropped import NO_VALUE, Unreadable
from .read_options import ReadOptions
from .rows import ROWS, any_error, batches_of, installed

# Kinds of frames: what the header says of columns, a batch, rows that cannot be read, an error, and the end.
NAMES, BATCH, UNREAD, ERROR, END = b"n", b"b", b"u", b"e", b"."
# An encoding in which any bytes are a text.
BYTES = "ISO-8859-1"
# Formats of SPSS and SAS whose numbers are seconds of a duration, with their width. Only TOD is a time of day.
SPANS = re.compile(r"(D?TIME|MTIME|HHMM)[\d.]*", re.IGNORECASE)
# Bytes of a frame's length.
LENGTH = 8
# A child may take so long for each frame: seconds, those for a byte of the file, and those for a column of a batch. Readers take
# a tenth of it or less.
SECONDS, A_BYTE, A_COLUMN = 60.0, 1e-6, 0.1
# Its most memory: bytes, those for a byte of the file, and those for a column of a batch.
MEMORY, EACH_BYTE, EACH_COLUMN = 16 << 30, 100, 1 << 22


def apart(function: str, kind: str, path: Path, read: ReadOptions) -> Pieces:
    """Open a file as :func:`statistics` does, in a child process.

    Raises:
        TableError: the file cannot be read, or its reader crashed or takes too long.
    """
    asked = [function, kind, str(path)]
    ((_, header),) = _frames(path, asked)
    about = tuple(map(Variable.of, json.loads(header)))
    names = tuple(variable.name for variable in about)
    return Pieces(names, str(path), partial(_batches, path, asked), about=about)


def _batches(
    path: Path, asked: Sequence[str], wanted: Sequence[str], unreadable: Unreadable
) -> RecordBatches:
    for kind, body in _frames(path, asked, list(wanted)):
        if kind == BATCH:
            yield from pa.ipc.open_stream(body)
        else:
            unreadable(*json.loads(body))


def _frames(path: Path, asked: Sequence[str], *wanted: list[str]) -> Iterator[tuple[bytes, bytes]]:
    """What a child process answers."""
    seconds = SECONDS + A_BYTE * path.stat().st_size + A_COLUMN * sum(map(len, wanted))
    why = ["its reader crashed"]
    with subprocess.Popen(
        [sys.executable, "-m", __name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None

        def end() -> None:
            why[0] = f"its reader gave nothing for {seconds:.0f} seconds"
            child.kill()

        try:
            child.stdin.write(json.dumps([*asked, *wanted]).encode())
            child.stdin.close()
            while True:
                timer = threading.Timer(seconds, end)
                timer.start()
                try:
                    kind = child.stdout.read(1)
                    size = int.from_bytes(child.stdout.read(LENGTH), "little")
                    body = child.stdout.read(size)
                finally:
                    timer.cancel()
                if kind == END:
                    return
                if kind == ERROR:
                    raise TableError(body.decode())
                if not kind or len(body) < size:
                    break
                yield kind, body
        finally:
            child.kill()
    raise TableError(
        f"{path} is {asked[1]} that cannot be read as a table (it is damaged, and {why[0]}): save it again, or as CSV or Parquet."
    )


def statistics(function: str, kind: str, path: Path) -> Pieces:
    """Open a file of SPSS, Stata or SAS. A damaged one may crash the process. A value with a label is read as its label, and a value
    that is declared to be missing as missing. A label of several values gets the value in brackets. Columns of the formats TIME, DTIME
    and the like hold durations, whatever is in them. No cell refuses the file: bytes that are no text stay in their cell, written as in a
    CSV file, and a date that Python does not have costs its record.

    Args:
        function: the name of pyreadstat's reader.
        kind: what the file is, for errors.
        path: the file.
    """
    package = installed("pyreadstat", path, kind)
    what = f"{path} is {kind} that"
    with any_error(what):
        file = _File(getattr(package, function), str(path))

    def batches(wanted: Sequence[str], unreadable: Unreadable) -> RecordBatches:
        with any_error(what):
            yield from batches_of(file.rows(wanted, unreadable), wanted, wanted, unreadable)

    return Pieces(tuple(file.names), str(path), batches, about=file.about)


class _File:
    """A file of statistics, whose texts are read in an encoding that has all bytes, and then one by one."""

    def __init__(self, reader: Callable[..., Any], path: str) -> None:
        self._reader, self._path = reader, path
        # Else the header's ranges of missing codes are left out. A transport file has none.
        missing = {} if reader.__name__ == "read_xport" else {"user_missing": True}
        _, meta = reader(path, metadataonly=True, **missing)
        try:
            charset = codecs.lookup(meta.file_encoding or "utf-8").name
        except LookupError:
            charset = ""
        self._charset, self._more = charset, {"encoding": BYTES} if charset else {}
        _, bare = reader(path, metadataonly=True, **self._more)
        # Names as people read them, and as this encoding writes them.
        self.names = dict(zip(meta.column_names, bare.column_names, strict=True))
        self._counted = meta.number_rows is not None
        self.about = tuple(variables(meta, {name: name for name in meta.column_names}))
        self._labels = {variable.name: variable.texts for variable in self.about}
        self._spans = {variable.name for variable in self.about if SPANS.fullmatch(variable.format)}

    def _read(
        self, wanted: Sequence[str], before: int, most: int, raw: bool = False
    ) -> dict[str, Any]:
        """Some columns of at most so many rows after the first; all of them if that is 0.

        Durations are numbers of seconds, as all dates and times are if ``raw``: pyreadstat makes times of day of durations.
        """
        found: dict[str, Any] = {}
        for spans in (False, True):
            some = [self.names[name] for name in wanted if (name in self._spans) == spans]
            if some:
                columns, _ = self._reader(
                    self._path,
                    usecols=some,
                    output_format="dict",
                    row_offset=before,
                    row_limit=most,
                    disable_datetime_conversion=raw or spans,
                    **self._more,
                )
                found |= columns
        return found

    def rows(self, wanted: Sequence[str], unreadable: Unreadable) -> Iterator[Sequence[Any]]:
        """The rows. Files of some kinds do not state their number of rows, and are read at once."""
        for before in itertools.count(0, ROWS):
            # A file's number of rows is no limit to pyreadstat, which then goes on for ever.
            most = ROWS if self._counted else 0
            read = 0
            for row in self._block(wanted, before, most, unreadable):
                read += 1
                if row is not None:
                    yield row
            if not self._counted or read < ROWS:
                return

    def _block(
        self, wanted: Sequence[str], before: int, most: int, unreadable: Unreadable
    ) -> Iterator[Sequence[Any] | None]:
        """Some rows; None for one of which a cell has no value in Python."""
        try:
            columns = self._read(wanted, before, most)
        except (ArithmeticError, ValueError):
            # Numbers that are no dates can always be read.
            raw = self._read(wanted, before, most, raw=True)
            count = len(raw[self.names[wanted[0]]])
            if count == 1:
                unreadable(NO_VALUE, f"row {before + 1}", 1)
                yield None
                return
            half = count // 2
            yield from self._block(wanted, before, half, unreadable)
            yield from self._block(wanted, before + half, count - half, unreadable)
            return
        cells = [self._cells(name, columns[self.names[name]]) for name in wanted]
        yield from zip(*cells, strict=True)

    def _cells(self, name: str, cells: Iterable[Any]) -> Iterator[Any]:
        labels = self._labels.get(name, {})
        for cell in cells:
            if isinstance(cell, str) and self._charset:
                cell = cell.encode("latin-1", "replace").decode(self._charset, "backslashreplace")
            if name in self._spans and cell not in labels:
                cell = _span(cell)
            yield None if cell == "" else labels.get(cell, cell)


def _span(seconds: float | None) -> timedelta | None:
    """A duration. One that is longer than any becomes the longest of Python, which no column holds: it costs its record."""
    if seconds is None or seconds != seconds:
        return None
    try:
        return timedelta(seconds=seconds)
    except OverflowError:
        return timedelta.max


def main() -> None:
    """Answer what a parent process asks, as its child."""
    out = os.fdopen(os.dup(1), "wb")
    # Whatever else is printed here is no frame.
    os.dup2(2, 1)

    def send(kind: bytes, body: bytes = b"") -> None:
        out.write(kind + len(body).to_bytes(LENGTH, "little") + body)
        out.flush()

    def unread(why: str, row: str, count: int, read: pa.Table | None = None) -> None:
        send(UNREAD, json.dumps([why, row, count]).encode())

    function, what, path, *wanted = json.load(sys.stdin)
    # Windows has no such limit, and some systems set none.
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        most = MEMORY + EACH_BYTE * Path(path).stat().st_size + EACH_COLUMN * sum(map(len, wanted))
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    try:
        pieces = statistics(function, what, Path(path))
        if not wanted:
            send(NAMES, json.dumps([*map(asdict, pieces.about)]).encode())
        for columns in wanted:
            for batch in pieces.batches(columns, unread):
                with pa.BufferOutputStream() as sink:
                    with pa.ipc.new_stream(sink, batch.schema) as writer:
                        writer.write_batch(batch)
                    send(BATCH, sink.getvalue())
    except TableError as error:
        send(ERROR, str(error).encode())
    else:
        send(END)


if __name__ == "__main__":
    main()

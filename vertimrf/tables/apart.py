"""Read files of SPSS, Stata and SAS in a child process, which alone ends where a damaged file crashes its reader, keeps it busy or
asks for far too much memory.

The child writes frames to its standard output: a kind, the length, and that many bytes.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..arrays import Fields
from ..errors import TableError
from .arrow import Pieces, RecordBatches
from .dropped import Unreadable
from .read_options import ReadOptions
from .rows import ROWS, any_error, batches_of, installed

# Kinds of frames: column names, a batch, rows that cannot be read, an error, and the end.
NAMES, BATCH, UNREAD, ERROR, END = b"n", b"b", b"u", b"e", b"."
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
    names = [json.loads(body) for _, body in _frames(path, asked)]
    return Pieces(tuple(names[0]), str(path), partial(_batches, path, asked))


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
    that is declared to be missing as missing.

    Args:
        function: the name of pyreadstat's reader.
        kind: what the file is, for errors.
        path: the file.
    """
    package = installed("pyreadstat", path, kind)
    reader = getattr(package, function)
    what = f"{path} is {kind} that"
    with any_error(what):
        _, meta = reader(str(path), metadataonly=True)
    labels: Mapping[str, Mapping[Any, str]] = {
        name: its
        for name, its in meta.variable_value_labels.items()
        if meta.variable_measure.get(name) != "scale"
    }

    def rows(wanted: Sequence[str]) -> Iterator[Sequence[Any]]:
        with any_error(what):
            # Files of some kinds do not state their number of rows, and are read at once.
            given: Fields = {"usecols": list(wanted), "output_format": "dict"}
            if meta.number_rows is not None:
                given["row_limit"] = ROWS
            # pyreadstat's own loop over a file goes on until all rows have come that a header states.
            for before in itertools.count(0, ROWS):
                columns, _ = reader(str(path), row_offset=before, **given)
                cells = [_labelled(columns[name], labels.get(name, {})) for name in wanted]
                yield from zip(*cells, strict=True)
                if "row_limit" not in given or len(columns[wanted[0]]) < ROWS:
                    return

    def batches(wanted: Sequence[str], unreadable: Unreadable) -> RecordBatches:
        yield from batches_of(rows(wanted), wanted, wanted, unreadable)

    return Pieces(tuple(meta.column_names), str(path), batches)


def _labelled(cells: Iterable[Any], labels: Mapping[Any, str]) -> Iterator[Any]:
    for cell in cells:
        yield None if cell == "" else labels.get(cell, cell)


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
            send(NAMES, json.dumps(pieces.names).encode())
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

"""Read files of SPSS, Stata and SAS in a child process, which alone ends where a damaged file crashes its reader.

The child writes frames to its standard output: a kind, the length, and that many bytes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..errors import TableError
from .arrow import Pieces, RecordBatches
from .dropped import Unreadable
from .read_options import ReadOptions
from .rows import ROWS, any_error, batches_of, installed

# Kinds of frames: column names, a batch, rows that cannot be read, an error, and the end.
NAMES, BATCH, UNREAD, ERROR, END = b"n", b"b", b"u", b"e", b"."
# Bytes of a frame's length.
LENGTH = 8


def apart(function: str, kind: str, path: Path, read: ReadOptions) -> Pieces:
    """Open a file as :func:`statistics` does, in a child process.

    Raises:
        TableError: the file cannot be read, or its reader crashed.
    """
    asked = [function, kind, str(path)]
    names = [json.loads(body) for _, body in _frames(path, asked)]
    return Pieces(tuple(names[0]), str(path), partial(_batches, path, asked))


def _batches(
    path: Path, asked: Sequence[str], wanted: Sequence[str], unreadable: Unreadable
) -> RecordBatches:
    for kind, body in _frames(path, [*asked, list(wanted)]):
        if kind == BATCH:
            yield from pa.ipc.open_stream(body)
        else:
            unreadable(*json.loads(body))


def _frames(path: Path, asked: Sequence[object]) -> Iterator[tuple[bytes, bytes]]:
    """What a child process answers."""
    with subprocess.Popen(
        [sys.executable, "-m", __name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            child.stdin.write(json.dumps(asked).encode())
            child.stdin.close()
            while kind := child.stdout.read(1):
                size = int.from_bytes(child.stdout.read(LENGTH), "little")
                body = child.stdout.read(size)
                if kind == END:
                    return
                if kind == ERROR:
                    raise TableError(body.decode())
                if len(body) < size:
                    break
                yield kind, body
        finally:
            child.kill()
    raise TableError(
        f"{path} cannot be read as a table (it is damaged, and its reader crashed): save it again, or as CSV or Parquet."
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
    with any_error(path):
        _, meta = reader(str(path), metadataonly=True)
    labels: Mapping[str, Mapping[Any, str]] = {
        name: its
        for name, its in meta.variable_value_labels.items()
        if meta.variable_measure.get(name) != "scale"
    }

    def rows(wanted: Sequence[str]) -> Iterator[Sequence[Any]]:
        with any_error(path):
            given = {"usecols": list(wanted), "output_format": "dict"}
            # Files of some kinds do not state their number of rows, and are read at once.
            chunks = (
                [reader(str(path), **given)]
                if meta.number_rows is None
                else package.read_file_in_chunks(reader, str(path), chunksize=ROWS, **given)
            )
            for columns, _ in chunks:
                cells = (_labelled(columns[name], labels.get(name, {})) for name in wanted)
                yield from zip(*cells, strict=True)

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

    def unread(*told: object) -> None:
        send(UNREAD, json.dumps(told).encode())

    function, what, path, *wanted = json.load(sys.stdin)
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

"""Read the rows of CSV files in blocks, each by the thread that asks for it and in bounded memory.

Arrow's streaming reader reads ahead on threads of its own, which here would run Python: to decode,
and for every malformed row. After an error, such threads run on while the interpreter ends, and
abort it. So a file is decoded, cut and parsed step by step, and nothing runs when nobody reads.

No record decides how others are read. Names, their number and what separates them come from the
first line, which is a header and no record, or are stated. The kind of a compressed file comes from
its first bytes, which are the header's, or, without one, from its name.
"""

from __future__ import annotations

import codecs
import contextlib
import itertools
import lzma
import re
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

from ..errors import TableError
from ..kernels.csv_rows import BEFORE, take_rows
from .dropped import CELLS, ENDLESS, LONGEST_ROW, Unreadable
from .encodings import decoder_of
from .read_options import ReadOptions

DELIMITERS = ",;\t|"
# The end of a line. A carriage return at the end of a text may have its line feed in the next one.
LINE_END = re.compile(rb"\r\n|\n|\r(?!\Z)")
FIRST_LINE = re.compile(rb"([^\r\n]+)[\r\n]")
# Bytes that are read at a time, and bytes of the head of a file.
BLOCK, HEAD = 1 << 22, 1 << 20
# Bytes shown of an unreadable row.
START = 240
MARK = codecs.BOM_UTF8
# First bytes of compressed files, and what their names end in, by the names of Arrow or, for xz, of
# Python.
LONGEST_MAGIC = 10
COMPRESSED = {
    "gzip": re.compile(rb"\x1f\x8b"),
    "bz2": re.compile(rb"BZh[1-9]1AY&SY"),
    "zstd": re.compile(rb"\x28\xb5\x2f\xfd"),
    "lz4": re.compile(rb"\x04\x22\x4d\x18"),
    "xz": re.compile(rb"\xfd7zXZ\0"),
}
ENDINGS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4", ".xz": "xz"}


def csv_names(path: Path, read: ReadOptions) -> list[str]:
    """Column names of a CSV file.

    Raises:
        TableError: the file has no header, and it is not stated what is in its place.
    """
    if read.no_header and not (read.columns and read.delimiter):
        raise TableError(
            f"{path} has no header, and nothing is read off a record: state its columns and its delimiter, as a draft writes them "
            "into the schema (--columns, --delimiter)."
        )
    return csv_header(path, read)[0]


def csv_header(path: Path, read: ReadOptions) -> tuple[list[str], str]:
    """Column names of a CSV file, and what separates its cells.

    Raises:
        TableError: the file has no header.
    """
    with contextlib.closing(_decoded(path, read)) as texts:
        return _header(texts, path, read)[:2]


def csv_batches(
    path: Path, read: ReadOptions, columns: Sequence[str], unreadable: Unreadable
) -> Iterator[pa.RecordBatch]:
    """Rows of a CSV file.

    Every cell is text; only cells with nothing between the delimiters are null. Whether a row is
    read depends on this row alone. A row ends where its quotes are closed, so one that leaves a
    quote open is a row together with those up to the next quote. In UTF-16 and UTF-32, bytes that are no
    text may damage later rows.

    Args:
        path, read: the file and its format.
        columns: columns to read.
        unreadable: told of rows that are left out.
    """
    with contextlib.closing(_decoded(path, read)) as texts:
        names, delimiter, rest = _header(texts, path, read)
        convert = _as_text(names, columns)
        # Of a row with more or fewer cells, no other cell is sure to be in its place.
        first = names[0] if names[0] in columns else None
        for rows in _rows(itertools.chain([rest], texts), delimiter, len(names), unreadable, first):
            yield from _parsed(rows, delimiter, convert, names).to_batches()


def csv_head(path: Path, named: bool) -> bytes:
    """The first bytes of a file, which may be compressed; ``named`` as for :func:`unpacked`."""
    with unpacked(path, named) as file:
        head: bytes = file.read(HEAD)
    return head


def header_delimiter(header: str) -> str:
    """The separator that a CSV file's header has most often; a comma if it has none."""
    return max(DELIMITERS, key=re.sub('"[^"]*"', "", header).count)


def encoding_of(head: bytes) -> str:
    """Encoding of a text by its first bytes: UTF-8, UTF-16 with a mark, or else cp1252."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
        return "utf-8"
    except UnicodeDecodeError:
        return "cp1252"


def _header(texts: Iterator[bytes], path: Path, read: ReadOptions) -> tuple[list[str], str, bytes]:
    """The column names and the delimiter, stated or from the first line, and the text read after it.

    A quote that is open at the end of this line would let records close it.
    """
    head, skip = b"", read.lines_before
    for text in texts:
        head += text
        while skip and (end := LINE_END.search(head)):
            head, skip = head[end.end() :], skip - 1
        if skip:
            # It may end a line together with what comes.
            head = head[-1:] if head.endswith(b"\r") else b""
            continue
        if read.no_header:
            return list(read.columns), read.delimiter, head
        # A row without a character is none.
        head = head.lstrip(b"\r\n")
        line = FIRST_LINE.match(head)
        if line is None and len(head) <= LONGEST_ROW:
            continue
        row = head[:LONGEST_ROW] if line is None else line[1]
        delimiter = read.delimiter or header_delimiter(row.decode(errors="ignore"))
        # No row has 0 cells, so a whole one is left out.
        whole = _taken(row + b"\n", delimiter, 0)[1][2]
        if line is None or not whole:
            raise TableError(f"{path} has no header: its first row has {ENDLESS} on the same line.")
        names = _parsed(pa.py_buffer(row + b"\n"), delimiter).column_names
        return names, delimiter, head[len(row) :]
    if read.no_header:
        return list(read.columns), read.delimiter, b""
    more = f" behind --skip-rows {read.lines_before}" * bool(read.lines_before)
    raise TableError(f"{path} is empty{more}; a table needs a header and records.")


def _rows(
    texts: Iterator[bytes],
    delimiter: str,
    cells: int,
    unreadable: Unreadable,
    first_name: str | None,
) -> Iterator[pa.Buffer]:
    """Complete rows with the right number of cells, block by block.

    The first cells of other rows are given to ``unreadable``, as a column of this name.
    """
    carried, skipping, state = b"", False, BEFORE
    for text in texts:
        text = carried + text
        while True:
            kept, found = _taken(text, delimiter, cells, skipping, state)
            before, (_, end, count, first, last, stop, state) = state, found
            if count:
                read = None
                if first_name is not None:
                    cut, _ = _taken(text, delimiter, -cells, skipping, before)
                    if cut.to_pybytes().strip():
                        read = _parsed(cut, delimiter, _as_text([first_name]), [first_name])
                unreadable(CELLS, _start(text[first:last]), count, read)
            if kept.size:
                yield kept
            skipping = skipping and not end
            if stop == len(text):
                break
            unreadable(ENDLESS, _start(text[end:stop]), 1)
            text, skipping = text[stop:], True
        carried, state = (b"", state) if skipping else (text[end:], BEFORE)
    if carried:
        unreadable(ENDLESS, _start(carried), 1)


def _taken(
    text: bytes, delimiter: str, cells: int, skipping: bool = False, state: int = BEFORE
) -> tuple[pa.Buffer, list[int]]:
    """What :func:`take_rows` keeps of a text, and what it finds.

    The buffer is Arrow's own: the release of memory of Python's would be left to Arrow's threads.
    """
    kept, found = pa.allocate_buffer(len(text)), np.empty(7, np.int64)
    numbers = map(np.int64, (ord(delimiter), cells, LONGEST_ROW, skipping, state))
    take_rows(np.frombuffer(text, np.uint8), *numbers, np.frombuffer(kept, np.uint8), found)
    return kept.slice(0, int(found[0])), found.tolist()


def _parsed(
    rows: pa.Buffer,
    delimiter: str,
    convert: pa.csv.ConvertOptions | None = None,
    names: list[str] | None = None,
) -> pa.Table:
    """A table of complete rows, of which the first has the names unless these are given."""
    if bytes(rows[: len(MARK)]) == MARK:
        # Arrow takes it for a file's mark, wherever a block begins. An empty row is none.
        rows = pa.py_buffer(b"\n" + rows.to_pybytes())
    return pa.csv.read_csv(
        pa.BufferReader(rows),
        pa.csv.ReadOptions(use_threads=False, block_size=rows.size, column_names=names),
        pa.csv.ParseOptions(newlines_in_values=True, delimiter=delimiter),
        convert,
    )


def _as_text(names: Sequence[str], wanted: Sequence[str] = ()) -> pa.csv.ConvertOptions:
    """How cells are converted: all are text, of the wanted columns, by default of all."""
    return pa.csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()),
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        include_columns=list(wanted),
    )


def _start(row: bytes) -> str:
    """The start of a row, for messages."""
    return row[:START].decode(errors="ignore")


def _decoded(path: Path, read: ReadOptions) -> Generator[bytes]:
    r"""Text of a file in UTF-8, in blocks, with a line feed at its end.

    Bytes that are invalid in its encoding are written as ``\\xNN``.
    """
    decoder = decoder_of(read.charset)
    skip = len(MARK)
    with unpacked(path, read.no_header) as file:
        while data := file.read(BLOCK):
            # Decoders of some encodings let surrogates pass, which UTF-8 does not have.
            text = decoder.decode(data).encode("utf-8", "backslashreplace")
            yield text[skip * text.startswith(MARK) :]
            skip *= not text
        yield decoder.decode(b"", True).encode("utf-8", "backslashreplace") + b"\n"


def compression(path: Path, named: bool = False) -> str | None:
    """How a file is compressed: by its first bytes, or by its name if these are a record's.

    Args:
        path: the file.
        named: whether its name says so.

    Returns:
        A name of :data:`COMPRESSED`; None if the file is not compressed, or in no known way.
    """
    if named:
        return ENDINGS.get(path.suffix)
    with path.open("rb") as file:
        start = file.read(LONGEST_MAGIC)
    return next((kind for kind, magic in COMPRESSED.items() if magic.match(start)), None)


def unpacked(path: Path, named: bool = False) -> pa.NativeFile | lzma.LZMAFile:
    """A file's content as a stream; the file may be compressed, as by :func:`compression`."""
    kind = compression(path, named)
    return lzma.open(path) if kind == "xz" else pa.input_stream(path, compression=kind)

"""Arrow tables, in pieces or from data frames."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

from ..arrays import Texts
from ..errors import TableError
from ..kernels.jit import for_each
from .codebook import Variable
from .dropped import NO_VALUE, SHOWN, Unreadable
from .objects import Cells, csv_text, from_objects
from .polars_frame import (
    POLARS_OWN,
    POLARS_WIDE,
    of_polars,
    package_of,
    polars_column,
    types_of,
)

# A table carries its privacy label under this key of its metadata or, if its format has none, in a
# file with this ending.
LABEL_KEY = b"vertimrf.label"
LABEL_FILE = ".label.json"
RecordBatches = Iterator[pa.RecordBatch]
# Most cells, and most rows, of a piece of a table.
PIECE_CELLS, PIECE_ROWS = 1 << 23, 1 << 18
# Errors of Arrow's conversion of Python objects.
UNFIT = (pa.ArrowException, ArithmeticError, TypeError, ValueError)
# Types of text, and the types of their bytes.
RAW = {
    pa.string(): pa.binary(),
    pa.large_string(): pa.large_binary(),
    pa.string_view(): pa.binary_view(),
}


@dataclass(frozen=True)
class Pieces:
    """A table that can be read in pieces, any number of times.

    Only one piece of a file is in memory at a time.

    Attributes:
        names: column names.
        where: name of the table, for errors.
        batches: returns the rows of some columns in batches of any size; calls its second argument
            as :meth:`read` does.
        typed: whether columns have types of their own, unlike those of CSV files, which are text.
        any_column: whether rows name their cells, so that any column can be asked for
            (:meth:`asked`).
        about: what a file's header says of columns, besides their names.
    """

    names: Texts
    where: str
    batches: Callable[[Sequence[str], Unreadable], RecordBatches]
    typed: bool = True
    any_column: bool = False
    about: tuple[Variable, ...] = ()

    def asked(self, columns: Iterable[str | None]) -> Pieces:
        """A table whose rows name their cells, with these columns; any other table itself."""
        if not self.any_column:
            return self
        names = tuple(dict.fromkeys(name for name in columns if name is not None))
        return replace(self, names=names, any_column=False)

    def read(
        self, columns: Sequence[str] | None = None, unreadable: Unreadable | None = None
    ) -> Iterator[pa.Table]:
        """The rows in order, in tables that are not empty.

        Args:
            columns: names of columns, in the order wanted; default all.
            unreadable: told of rows that cannot be read; they are left out. Without it, the table
                is refused for one.

        Raises:
            TableError: the file cannot be read to its end.
        """
        columns = self.names if columns is None else columns
        most = min(max(PIECE_CELLS // max(len(columns), 1), 1), PIECE_ROWS)
        pending: list[pa.RecordBatch] = []
        rows = 0
        for batch in self.batches(columns, unreadable or self._refuse):
            batch = _all_mended(batch)
            # Files of one table may have a column in several types. Batches are not cut where that
            # can be helped, because a piece of one keeps all of it in memory.
            if pending and (
                rows + batch.num_rows > most or not batch.schema.equals(pending[0].schema)
            ):
                yield pa.Table.from_batches(pending)
                pending, rows = [], 0
            for start in range(0, batch.num_rows, most):
                pending.append(batch.slice(start, most))
                rows += pending[-1].num_rows
                if rows == most:
                    yield pa.Table.from_batches(pending)
                    pending, rows = [], 0
        if pending:
            yield pa.Table.from_batches(pending)

    def _refuse(self, why: str, row: str, count: int, read: pa.Table | None = None) -> None:
        """Raise an error about a row that cannot be read."""
        raise TableError(
            f"{self.where}: a row has {why} ({row[:SHOWN]!r}); correct it{header_doubt(self.names)}."
        )

    def whole(self, unreadable: Unreadable | None = lambda *_: None) -> pa.Table:
        """All rows and columns in memory; see :meth:`read`. By default, unreadable rows are left out."""
        pieces = list(self.read(unreadable=unreadable))
        if any(not piece.schema.equals(pieces[0].schema) for piece in pieces):
            try:
                return pa.concat_tables(pieces, promote_options="permissive")
            except pa.ArrowException as error:
                raise TableError(
                    f"{self.where} has a column in several types ({one_line(error)}); write its files alike."
                ) from None
        return (
            pa.concat_tables(pieces)
            if pieces
            else pa.table({name: pa.nulls(0) for name in self.names})
        )

    def cells(self, column: str, rows: Sequence[int]) -> list[pa.Scalar]:
        """Some cells of a column.

        Args:
            column: name of the column.
            rows: rows, counted from 0, increasing.

        Returns:
            The cells, in order.
        """
        out: list[pa.Scalar] = []
        first = 0
        for piece in self.read([column], lambda *_: None) if rows else ():
            while len(out) < len(rows) and rows[len(out)] < first + piece.num_rows:
                out.append(piece[column][rows[len(out)] - first])
            first += piece.num_rows
            if len(out) == len(rows):
                break
        return out


def header_doubt(names: Sequence[str]) -> str:
    """What to do if the names of columns are none; empty if they seem to be names."""
    odd = len(names) == 1 or any(
        name[:1] == "#" or name.replace(".", "", 1).isdigit() for name in names
    )
    return (
        "; if these are no names, give skip_rows (--skip-rows) or no_header (--no-header)"
        if odd
        else ""
    )


def from_object(source: Any) -> pa.Table:
    """Convert an object in memory to an Arrow table."""
    if isinstance(source, pa.Table):
        return source
    source = collected(source)
    package = package_of(source)
    try:
        if package == "pandas":
            return _from_pandas(source)
        if package == "duckdb" and hasattr(source, "fetch_arrow_table"):
            # Fetch all rows at once: a relation's stream blocks its connection for other queries
            # until it is read to the end.
            newer = hasattr(source, "to_arrow_table")
            source = in_utc(source)
            source = source.to_arrow_table() if newer else source.fetch_arrow_table()
        if not POLARS_WIDE.isdisjoint(types_of(source)):
            return pa.table({s.name: of_polars(s) for s in source.iter_columns()})
        if hasattr(source, "__arrow_c_stream__") or isinstance(source, pa.RecordBatch):
            return pa.table(source)
        if hasattr(source, "__dataframe__"):
            from pyarrow.interchange import from_dataframe

            return from_dataframe(source)
    except Exception as error:  # whatever a query's engine calls it
        raise no_table(f"The {type(source).__name__}", error) from None
    raise TableError(
        f"A {type(source).__name__} is not a table; pass a file, a folder, an Arrow table, a pandas or polars frame, or a DuckDB relation."
    )


def in_utc(relation: Any) -> Any:
    """A relation of DuckDB whose times of day with an offset (TIMETZ) are those of UTC: Arrow would drop their offset."""
    zoned = [str(kind) == "TIME WITH TIME ZONE" for kind in relation.types]
    if not any(zoned):
        return relation
    quoted = ['"' + name.replace('"', '""') + '"' for name in relation.columns]
    return relation.project(
        ", ".join(
            f"({name}::TIME - to_seconds(date_part('timezone', {name})))::TIME AS {name}"
            if aware
            else name
            for name, aware in zip(quoted, zoned, strict=True)
        )
    )


def no_table(what: object, error: BaseException) -> TableError:
    """What is told of a table that an error stops; ``what`` is the subject of the sentence."""
    return TableError(f"{what} cannot be read as a table ({one_line(error)}).")


def collected(source: Any) -> Any:
    """A lazy frame of polars as a frame, and an iterator of batches as a table; any other object
    itself.
    """
    kind = type(source).__name__
    try:
        if isinstance(source, Iterator | pa.RecordBatchReader):
            return pa.concat_tables(map(pa.table, source), promote_options="permissive")
        return source.collect() if (package_of(source), kind) == ("polars", "LazyFrame") else source
    except Exception as error:  # whatever makes the batches, or polars, raises
        raise no_table(f"The {kind}", error) from None


# Reads a column: the column, and by row the objects that are no values.
Column = Callable[[], Cells]


def object_columns(source: Any) -> list[tuple[str, Column]]:
    """Columns of a data frame that may hold Python objects, with their names; none of other tables."""
    if isinstance(source, Mapping):
        lengths = {len(c) if hasattr(c, "__len__") else -1 for c in source.values()}
        if not source or len(lengths) > 1 or -1 in lengths:
            raise TableError(
                "The table is no dict of arrays of one length; give all columns as many rows."
            )
        return [(str(n), functools.partial(_listed_column, cells)) for n, cells in source.items()]
    package = package_of(source)
    if not POLARS_OWN.isdisjoint(types_of(source)):
        return [(s.name, functools.partial(polars_column, s)) for s in source.iter_columns()]
    if package != "pandas" or not hasattr(source, "columns"):
        return []
    names = [str(name) for name in source.columns]
    places = [source.iloc[:, i] for i in range(len(names))]
    # A named index counts as columns; the default index does not.
    for i, name in enumerate(source.index.names if any(_named(source)) else ()):
        known = name is not None and str(name) not in names
        names.append(str(name) if known else f"__index_level_{i}__")
        places.append(source.index.get_level_values(i))
    return [(n, functools.partial(_pandas_column, p)) for n, p in zip(names, places, strict=True)]


def _named(frame: Any) -> Iterator[bool]:
    """Which levels of a frame's index have names."""
    return (name is not None for name in frame.index.names)


def _listed_column(cells: Any) -> Cells:
    """Cells in an array or a list."""
    if isinstance(cells, pa.ChunkedArray):
        return cells.combine_chunks(), {}
    if getattr(getattr(cells, "dtype", None), "kind", "O") != "O":
        with contextlib.suppress(*UNFIT):
            return pa.array(cells, from_pandas=True), {}
    return (cells, {}) if isinstance(cells, pa.Array) else from_objects(cells)


def _pandas_column(column: Any) -> Cells:
    """A column of a frame; one of objects, or of categories that are objects, cell by cell."""
    column = _without_spans(column)
    if getattr(column.dtype, "categories", column).dtype != object:
        with contextlib.suppress(*UNFIT):
            return pa.array(column, from_pandas=True), {}
    column = column.astype(object)
    # The same as cell by cell, and faster. A float that is no NaN is no text.
    if {*map(type, column)} <= {str, float, type(None)}:
        with contextlib.suppress(*UNFIT):
            return pa.array(column, pa.large_string(), from_pandas=True), {}
    return from_objects(column)


def object_batches(
    columns: Mapping[str, Column], wanted: Sequence[str], unreadable: Unreadable
) -> RecordBatches:
    """Batches of a data frame, without rows of which a cell in a wanted column is no value."""
    unfit: dict[int, str] = {}
    arrays = []
    for name in wanted:
        array, others = columns[name]()
        arrays.append(array)
        unfit |= {row: f"{kind} in {name!r}" for row, kind in others.items()}
    table = pa.table(arrays, list(wanted))
    if unfit:
        kept = np.ones(table.num_rows, bool)
        kept[list(unfit)] = False
        # What is no value is null in what can be read.
        unreadable(NO_VALUE, unfit[min(unfit)], len(unfit), table.filter(pa.array(~kept)))
        table = table.filter(pa.array(kept))
    yield from table.to_batches(PIECE_ROWS)


def _from_pandas(frame: Any) -> pa.Table:
    """Convert a pandas frame.

    Columns of objects of several kinds, for which Arrow has no type, become text.
    """
    named = any(_named(frame))
    frame = frame.copy(deep=False)
    for place in range(frame.shape[1]):
        frame.isetitem(place, _without_spans(frame.iloc[:, place]))
    try:
        return pa.Table.from_pandas(frame, preserve_index=named)
    except UNFIT:
        for place in range(frame.shape[1]):
            column = frame.iloc[:, place]
            try:
                pa.array(column, from_pandas=True)
            except UNFIT:
                frame.isetitem(place, column.map(csv_text, na_action="ignore"))
        return pa.Table.from_pandas(frame, preserve_index=named)


def _without_spans(column: Any) -> Any:
    """A column of intervals or periods of pandas, or of categories that are, as their texts; one that
    stores few of its cells as one that stores all.
    """
    kind = column.dtype
    if type(kind).__name__ == "SparseDtype":
        return column.sparse.to_dense() if hasattr(column, "sparse") else column
    if not str(getattr(kind, "categories", column).dtype).startswith(("interval", "period")):
        return column
    if hasattr(kind, "categories"):
        names = list(map(str, kind.categories))
        cells = getattr(column, "cat", column)
        return cells.rename_categories(names)
    return column.astype(object).map(str, na_action="ignore")


def check_sound(batch: pa.RecordBatch) -> None:
    """Check that offsets and indices stay within the data, which nothing else does.

    Text may be any bytes (:func:`mended`).

    Raises:
        pa.ArrowInvalid: they do not.
    """
    for column in batch.columns:
        # A dictionary is checked like a column.
        for part in (
            (column.dictionary, column.indices)
            if pa.types.is_dictionary(column.type)
            else (column,)
        ):
            raw = RAW.get(part.type)
            (part if raw is None else part.view(raw)).validate(full=True)
        if not pa.types.is_dictionary(column.type) or column.type.value_type not in RAW:
            column.validate(full=column.type not in RAW)


def _all_mended(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch with valid text in all columns."""
    arrays = for_each(batch.num_columns, lambda i: mended(batch.column(i)))
    return pa.RecordBatch.from_arrays(arrays, batch.schema.names) if arrays else batch


def mended(column: pa.Array) -> pa.Array:
    r"""A column with valid UTF-8 text; invalid bytes are written as ``\\xNN``, as in a CSV file."""
    if pa.types.is_dictionary(column.type) and column.type.value_type in RAW:
        texts = mended(column.dictionary)
        return (
            column
            if texts is column.dictionary
            else pa.DictionaryArray.from_arrays(column.indices, texts, ordered=column.type.ordered)
        )
    if column.type not in RAW:
        return column
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        cells = column.view(RAW[column.type]).to_pylist()
        return pa.array(
            [None if cell is None else cell.decode("utf-8", "backslashreplace") for cell in cells],
            column.type,
        )
    return column


def check_names(names: Sequence[str], where: str) -> None:
    """Check that column names are distinct.

    Raises:
        TableError: two columns have the same name.
    """
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise TableError(f"{where} has two columns {name!r}; rename or remove one.")
        seen.add(name)


def one_line(error: BaseException) -> str:
    """The first line of an error's text without the full stop."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")

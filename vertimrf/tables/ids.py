"""Record ids: formats, keyed digests, and the check that ids are distinct."""

from __future__ import annotations

import functools
import re
import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..arrays import Flags, Integers, Words
from ..columns.cells import by_type, cell_value, is_text, written_out
from ..errors import TableError
from ..kernels.digest import KEY_BYTES, digest_integers, digest_strings
from ..plan.id_form import LONGEST_FORM
from .arrow import Pieces, RecordBatches, mended
from .dropped import EXAMPLES, Tally, Unreadable
from .read_options import ReadOptions, check_formats

# Kinds of characters in shapes of ids. A zero that other digits follow in a number is a Z.
KINDS = (
    (r"\p{Ll}", "a"),
    (r"\p{Lu}", "A"),
    (r"(^|[^0-9])0([0-9])", r"\1Z\2"),
    (r"\p{N}", "0"),
    (r"[^ -~]", "w"),
)
# What two formats of ids keep a part of.
NUMBERS = {"whole": r"^(-?[0-9]+)\.0*$", "unpad": r"^0+([0-9A-Za-z])"}
RUNS = re.compile(r"[0Z]+|a+|A+|w+")
LETTERS = re.compile(r"[0ZaAw]*")
# A form is that of the most frequent kinds of ids, which are at least this part of them. Further
# shapes are not looked at.
USUAL, MAX_SHAPES = 0.95, 10_000
# With more records an id than this, a column is not one of record ids.
MAX_RECORDS_AN_ID = 10


@dataclass(frozen=True)
class IdKeys:
    """Keys of the digests of ids.

    Tables whose ids must match share them. They do not appear in the text form.

    Nobody who can choose an id may know these keys: with them, one can find an id with the digest
    of another (:mod:`vertimrf.kernels.digest`). Parties derive them from their secret
    (:func:`vertimrf.party.secret.id_keys`).

    Attributes:
        records: key for ids of records [16 bytes].
        persons: key for ids of persons [16 bytes].
        pairs: key for a person and an id together (:func:`of_persons`) [16 bytes].

    Raises:
        TableError: a key has another length.
    """

    records: bytes = field(repr=False)
    persons: bytes = field(repr=False)
    pairs: bytes = field(repr=False)

    def __post_init__(self) -> None:
        lengths = [len(self.records), len(self.persons), len(self.pairs)]
        if set(lengths) != {KEY_BYTES}:
            raise TableError(
                f"Keys of digests have {KEY_BYTES} bytes, not {', '.join(map(str, lengths))}."
            )

    @classmethod
    def drawn(cls) -> IdKeys:
        """New keys from the operating system, for tables read by one process."""
        return cls(*(secrets.token_bytes(KEY_BYTES) for _ in range(3)))


def format_ids(
    column: pa.ChunkedArray, formats: Sequence[str], where: str = "Record ids"
) -> pa.ChunkedArray:
    """Normalise ids; other types than text become text first.

    Args:
        column: the ids.
        formats: names of formats; see :class:`ReadOptions`.
        where: name of the column, for errors.

    Returns:
        The normalised ids; the column itself if there are no formats.

    Raises:
        TableError: a format is unknown, or the type cannot hold ids.
    """
    formats = check_formats(formats)
    if not formats:
        return column
    texts = as_texts(column, where)
    for name in formats:
        if name == "strip":
            texts = pc.utf8_trim_whitespace(texts)
        elif name == "lower":
            texts = pc.utf8_lower(texts)
        else:
            texts = pc.replace_substring_regex(texts, NUMBERS[name], r"\1")
    return texts


def named_ids(pieces: Pieces, read: ReadOptions, *names: str | None) -> Pieces:
    """A table with the ids that several of its columns have together.

    An id column that the table lacks, and whose name is that of several columns with commas between
    them, takes their place. The texts of their normalised cells are joined by commas; a comma or a
    backslash within one gets a backslash before it, so that ("a,b", "c") and ("a", "b,c") differ.
    Without one of its parts, a record has no id.

    Args:
        pieces: the table.
        read: how ids are normalised.
        names: names of id columns; None is skipped.
    """
    for name in names:
        parts = (name or "").split(",")
        if name is None or name in pieces.names or not {*parts} <= {*pieces.names}:
            continue
        kept = [each for each in pieces.names if each not in parts or each in names]
        batches = functools.partial(_joined_batches, pieces, name, parts, read.id_format)
        pieces = replace(pieces, names=(*kept, name), batches=batches)
    return pieces


def _joined_batches(
    pieces: Pieces,
    name: str,
    parts: Sequence[str],
    formats: Sequence[str],
    columns: Sequence[str],
    unreadable: Unreadable,
) -> RecordBatches:
    if name not in columns:
        yield from pieces.batches(columns, unreadable)
        return
    needed = dict.fromkeys([*parts, *(each for each in columns if each != name)])
    where = f"{pieces.where}, id column {name!r}"
    for batch in pieces.batches(list(needed), unreadable):
        ids: list[pa.ChunkedArray] = []
        for part in parts:
            cells = pa.chunked_array([mended(batch.column(part))])
            texts = as_texts(format_ids(cells, formats, where), where)
            texts = pc.if_else(pc.equal(texts, ""), None, texts)
            ids.append(pc.replace_substring_regex(texts, r"([\\,])", r"\\\1"))
        joined = pc.binary_join_element_wise(*ids, pa.scalar(",", pa.large_string()))
        arrays = {each: batch.column(each) for each in needed} | {name: joined.combine_chunks()}
        yield pa.RecordBatch.from_arrays([arrays[each] for each in columns], list(columns))


def as_texts(column: pa.ChunkedArray, where: str) -> pa.ChunkedArray:
    """Ids as the text that is hashed; null for bytes that are not UTF-8.

    Raises as :func:`plain_ids`.
    """
    column = plain_ids(column, where)
    try:
        return column.cast(pa.large_string())
    except pa.ArrowInvalid:
        return pa.chunked_array(
            [pa.array([text_of(value) for value in column.to_pylist()], pa.large_string())]
        )


def text_of(value: bytes | None) -> str | None:
    """Bytes decoded as UTF-8, or None."""
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


def plain_ids(column: pa.ChunkedArray, where: str) -> pa.ChunkedArray:
    """Ids as text, bytes or integers, however they are stored.

    Numbers that are not whole become null, and so do cells of a type that cannot hold ids in a
    column of several types. UUIDs become their usual text.

    Raises:
        TableError: the type cannot hold ids.
    """
    if pa.types.is_union(column.type):
        (texts,) = by_type(column, lambda cells: (_as_bytes(plain_ids(cells, where)),), (None,))
        return pa.chunked_array([pa.array(texts, pa.large_binary())])
    column = written_out(column)
    kind = column.type
    if pa.types.is_floating(kind):
        # Data frames with missing values store integers as decimals.
        values = (
            pc.fill_null(column.cast(pa.float64()), float("nan"))
            .combine_chunks()
            .to_numpy(zero_copy_only=False)
        )
        whole = (values == np.floor(values)) & (np.abs(values) <= 2**53)
        return pa.chunked_array(
            [pa.array(np.where(whole, values, 0).astype(np.int64), mask=~whole)]
        )
    if is_text(kind) or (pa.types.is_decimal(kind) and kind.scale == 0):
        return column.cast(pa.large_string())
    if getattr(kind, "extension_name", "") == "arrow.uuid":
        storage = column.combine_chunks().storage
        raw = storage.buffers()[1].slice(16 * storage.offset, 16 * len(storage))
        letters = np.frombuffer(raw.to_pybytes().hex().encode(), np.uint8).reshape(-1, 32)
        dashed = np.insert(letters, [8, 12, 16, 20], ord("-"), axis=1).view("S36").ravel()
        texts = pa.array(dashed).cast(pa.large_string())
        return pa.chunked_array([pc.if_else(storage.is_valid(), texts, None)])
    if not (is_bytes(kind) or pa.types.is_integer(kind) or pa.types.is_null(kind)):
        raise TableError(f"{where}: ids are of the type {kind}; use text, whole numbers or UUIDs.")
    return column


def _as_bytes(ids: pa.ChunkedArray) -> npt.NDArray[Any]:
    """Ids of one type as the bytes of their texts [shape=(n,), object]."""
    texts = ids if is_bytes(ids.type) else ids.cast(pa.large_string())
    cells: npt.NDArray[Any] = texts.cast(pa.large_binary()).to_numpy(zero_copy_only=False)
    return cells


def id_shapes(column: pa.ChunkedArray) -> Counter[str]:
    """Count ids by shape: every digit and letter is replaced by its kind.

    Missing ids, and those that are not text, are not counted.
    """
    texts = as_texts(column, "Record ids")
    for pattern, kind in KINDS:
        texts = pc.replace_substring_regex(texts, pattern, kind)
    counts = texts.drop_null().value_counts().slice(0, MAX_SHAPES).to_pylist()
    return Counter({one["values"]: one["counts"] for one in counts})


def id_form(shapes: Mapping[str, int]) -> str | None:
    """The form of ids (:mod:`vertimrf.plan.id_form`) from their shapes; None without ids."""
    kinds: Counter[str] = Counter()
    for shape, count in shapes.items():
        kinds[_kinds(shape)] += count
    left, usual = (1 - USUAL) * kinds.total(), set()
    for kind, count in reversed(kinds.most_common()):
        left -= count
        if left < 0:
            usual.add(kind)
    texts = [shape for shape in shapes if shape and _kinds(shape) in usual]
    if not texts:
        return None
    marks = [Counter(LETTERS.sub("", text)) for text in texts]
    every = {mark for mark in marks[0] if all(c[mark] == marks[0][mark] for c in marks)}
    if len({"".join(c for c in text if c in every) for text in texts}) > 1:
        every = set()
    between = re.compile("([" + re.escape("".join(every)) + "])") if every else re.compile("($^)")
    parts = zip(*(between.split(text) for text in texts), strict=True)
    form = "".join(part[0] if i % 2 else _part_form(part) for i, part in enumerate(parts))
    if len(form) > LONGEST_FORM:
        form = re.sub(r"([0aAxXw])\1+", r"\1", form)
    return form if len(form) <= LONGEST_FORM else "*"


def _kinds(shape: str) -> str:
    """The kinds of characters in a shape, without their number."""
    return RUNS.sub(lambda run: run[0][0].replace("Z", "0"), shape)


def _part_form(texts: Sequence[str]) -> str:
    """The form of the parts of shapes at one place between punctuation."""
    if not any(texts):
        return ""
    if not all(text and LETTERS.fullmatch(text) for text in texts):
        return "*"
    if len({_kinds(text) for text in texts}) > 1:
        return _run_form(texts)
    every = zip(*(RUNS.findall(text) for text in texts), strict=True)
    return "".join(_run_form(runs) for runs in every)


def _run_form(runs: Sequence[str]) -> str:
    """The form of runs of characters: one class, with their length if it is the same."""
    kinds = set().union(*runs)
    if kinds == {"0"}:
        return "9"
    mixed = {"Z": "0", "a": "x", "A": "X"}
    digits, letters = kinds & {"0", "Z"}, kinds - {"0", "Z"}
    if len(letters) > 1:
        kind = "w"
    elif letters:
        kind = letters.pop()
        kind = mixed.get(kind, kind) if digits else kind
    else:
        kind = "0"
    lengths = {len(run) for run in runs}
    return kind * (lengths.pop() if len(lengths) == 1 else 1)


def record_digests(key: bytes, ids: npt.NDArray) -> Words:
    """64-bit keyed digests of record ids.

    An integer has the digest of its decimal text, so 42 matches "42".

    Args:
        key: key of the digests [16 bytes].
        ids: integers, or fixed-width NumPy strings or bytes [shape=(n,)].

    Returns:
        Digests [shape=(n,), uint64].

    Raises:
        TableError: ids of another type or shape.
    """
    ids = np.asarray(ids)
    if ids.ndim != 1:
        raise TableError(f"Record ids must be one row, not {ids.ndim}-dimensional.")
    if ids.dtype.kind not in "iuSU":
        raise TableError(
            f"Record ids must be integers or strings, not {ids.dtype}; convert them, for instance with ids.astype(str)."
        )
    if ids.dtype.kind in "iu":
        return digest_integers(key, ids)
    return digested(key, pa.chunked_array([ids.tolist()]), "Record ids")[0]


def shown(cell: pa.Scalar) -> str:
    """A cell's value for messages: at most 60 characters, text in quotes."""
    value = cell_value(cell)
    text = repr(value) if isinstance(value, str | bytes) else str(value)
    return text if len(text) <= 60 else text[:57] + "..."


def is_bytes(kind: pa.DataType) -> bool:
    """Whether a type is variable-length bytes."""
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def without_id(absent: Tally, where: str) -> str:
    """A sentence with the number of records that have no id, the first of them, and the remedy."""
    examples = ", ".join(str(row + 1) for row in absent.rows)
    return (
        f"{where}: {absent.count:,} record{'s have' if absent.count > 1 else ' has'} no id "
        f"(row {examples}{', ...' if absent.count > EXAMPLES else ''}); "
        "give every record an id: text, a whole number or a UUID."
    )


def digested(key: bytes, column: pa.ChunkedArray, where: str) -> tuple[Words, Flags]:
    """64-bit keyed digests of ids, of which some may be missing.

    An integer has the digest of its decimal text, a UUID that of its usual text.

    Args:
        key: one key of :class:`IdKeys` [16 bytes].
        column: text, bytes, integers or UUIDs.
        where: name of the column, for errors.

    Returns:
        Digests [shape=(n,), uint64], and which records have an id [shape=(n,), bool]. Other digests
        have no meaning.

    Raises:
        TableError: the type cannot hold ids.
    """
    column = plain_ids(column, where)
    missing = column.is_null()
    if is_text(column.type) or is_bytes(column.type):
        missing = pc.or_(missing, pc.fill_null(pc.equal(pc.binary_length(column), 0), True))
    present = ~missing.to_numpy()
    if pa.types.is_null(column.type):
        return np.zeros(len(column), np.uint64), present
    if pa.types.is_integer(column.type):
        return digest_integers(key, pc.fill_null(column, 0).to_numpy()), present
    array = column.cast(pa.large_binary()).combine_chunks()
    _, offsets, data = array.buffers()
    bounds = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    # Empty columns may have no buffer.
    return digest_strings(key, bounds, np.frombuffer(data or b"", np.uint8)), present


def of_persons(key: bytes, persons: Words, records: Words) -> Words:
    """64-bit keyed digests of records that a person and an id name together.

    Each is the digest of the two digests, of 8 bytes each, so that no other pair has the same text.

    Args:
        key: ``pairs`` of :class:`IdKeys` [16 bytes].
        persons: digests of the persons' ids [shape=(n,), uint64].
        records: digests of the records' ids [shape=(n,), uint64].

    Returns:
        Digests [shape=(n,), uint64].
    """
    pairs = np.stack([persons, records], axis=1).astype("<u8")
    return digest_strings(key, np.arange(len(pairs) + 1) * 16, pairs.view(np.uint8).ravel())


def places_of(persons: Words, order: Integers | None = None) -> Integers:
    """Place of each record among those of its person, counted from 0 [shape=(n,), int64].

    It depends on the records of that person alone.

    Args:
        persons: digests of the persons' ids [shape=(n,), uint64].
        order: rows by person, and by what decides within a person [shape=(n,), int64]; default the
            order of the rows.
    """
    if order is None:
        order = np.argsort(persons, kind="stable")
    grouped = persons[order]
    first = np.append(True, grouped[1:] != grouped[:-1])[: len(order)]
    starts = np.flatnonzero(first)
    out = np.empty(len(order), np.int64)
    out[order] = np.arange(len(order)) - starts[np.cumsum(first) - 1]
    return out


def repeated(digests: Words) -> Words:
    """Digests that several records have, each once, increasing."""
    ordered = np.sort(digests)
    return np.unique(ordered[1:][ordered[1:] == ordered[:-1]])


def only_in(these: Words, those: Words) -> Words:
    """Digests of ``these`` that are not among ``those``, each once, increasing.

    NumPy finds distinct numbers by hashing, in ten times the time of sorting. So ``those`` are
    searched for ``these``, which are few, and not made distinct.
    """
    return np.setdiff1d(these, those[np.isin(those, these)])


def few_ids(ids: int, records: int, where: str) -> str:
    """A sentence about a column with too few values to be record ids; else an empty one."""
    if ids * MAX_RECORDS_AN_ID >= records:
        return ""
    return f"{where}: {records:,} records have only {ids:,} ids, and a record needs an id of its own; name another column."

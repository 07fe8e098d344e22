"""Bulk digests bit for bit those of SipHash-2-4 as its paper has it, and what a key does."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import siphash

from vertimrf.errors import TableError
from vertimrf.kernels.digest import digest_fixed, digest_integers, digest_strings
from vertimrf.tables.ids import record_digests

KEY = bytes(range(100, 116))


def expected(strings: list[bytes]) -> list[int]:
    return [siphash(KEY, s) for s in strings]


def arrow(strings: list[bytes], dtype: type = np.int32) -> tuple[np.ndarray, np.ndarray]:
    offsets = np.cumsum([0] + [len(s) for s in strings]).astype(dtype)
    return offsets, np.frombuffer(b"".join(strings), np.uint8)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_strings_of_every_length(dtype: type) -> None:
    rng = np.random.default_rng(2)
    strings = [rng.bytes(length) for length in [*range(100), 1000, 4096]]
    assert digest_strings(KEY, *arrow(strings, dtype)).tolist() == expected(strings)


@given(st.lists(st.binary(max_size=80), max_size=20))
@settings(max_examples=50)
def test_any_bytes(strings: list[bytes]) -> None:
    assert digest_strings(KEY, *arrow(strings)).tolist() == expected(strings)


def test_sliced_and_strided_buffers() -> None:
    strings = [b"a", b"", b"second", b"third id"]
    offsets, data = arrow(strings)
    assert digest_strings(KEY, offsets[1:], data).tolist() == expected(strings[1:])
    wide = np.zeros((len(offsets), 2), np.int32)
    wide[:, 0] = offsets
    assert digest_strings(KEY, wide[:, 0], data).tolist() == expected(strings)


@pytest.mark.parametrize("offsets", [[0, 5], [-1, 1], [0, 2, 1], []])
def test_offsets_outside_the_data_are_refused(offsets: list[int]) -> None:
    with pytest.raises(ValueError, match="offsets"):
        digest_strings(KEY, np.array(offsets, np.int32), np.zeros(3, np.uint8))


def test_no_strings() -> None:
    assert digest_strings(KEY, np.zeros(1, np.int32), np.zeros(0, np.uint8)).size == 0


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64, np.uint64])
def test_integers_are_their_decimal_text(dtype: type) -> None:
    info = np.iinfo(dtype)
    rng = np.random.default_rng(3)
    values = np.concatenate(
        [
            np.array([info.min, info.max, 0, 1, 9, 10, 99, 100], dtype),
            rng.integers(info.min, info.max, 50, dtype, endpoint=True),
        ]
    )
    assert digest_integers(KEY, values).tolist() == expected([str(v).encode() for v in values.tolist()])


def test_the_same_id_as_number_string_and_bytes() -> None:
    digests = {int(record_digests(KEY, np.array([x]))[0]) for x in (42, "42", b"42")}
    assert digests == {siphash(KEY, b"42")}


def test_fixed_width_strings() -> None:
    texts = ["", "a", "naïve", "日本語", "😀", "x" * 50, "\U0010ffff"]
    assert digest_fixed(KEY, np.array(texts)).tolist() == expected([t.encode() for t in texts])
    assert digest_fixed(KEY, np.array(texts).astype(">U50")).tolist() == expected([t.encode() for t in texts])
    raw = [b"", b"a", b"in\x00side", b"y" * 70]
    assert digest_fixed(KEY, np.array(raw)).tolist() == expected(raw)
    assert digest_fixed(KEY, np.array(raw)[::2]).tolist() == expected(raw[::2])
    assert digest_fixed(KEY, np.array([], "U5")).size == 0
    assert digest_fixed(KEY, np.array([""])).tolist() == expected([b""])


@pytest.mark.parametrize("ids", [np.array(["a", 1], object), np.array([0.5]), np.array([True])])
def test_other_ids_are_refused(ids: np.ndarray) -> None:
    with pytest.raises(TableError, match="integers or strings"):
        record_digests(KEY, ids)


def test_ids_must_be_one_row() -> None:
    with pytest.raises(TableError, match="one row"):
        record_digests(KEY, np.zeros((2, 2), np.int64))


def test_read_only_and_strided_ids() -> None:
    ids = np.arange(10)
    ids.flags.writeable = False
    assert record_digests(KEY, ids[::3]).tolist() == expected([b"0", b"3", b"6", b"9"])

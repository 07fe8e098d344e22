"""Bulk digests bit for bit those of SipHash-2-4 as its paper has it, and what a key does."""

import numpy as np
import pytest
from oracles import siphash

from vertimrf.errors import TableError
from vertimrf.kernels.digest import digest_integers, digest_strings
from vertimrf.kernels.jit import threads
from vertimrf.tables.ids import record_digests

KEY = bytes(range(100, 116))
# Of the authors' reference implementation (vectors.h): the key 00 01 ... 0f, messages 00 01 ... of these lengths.
REFERENCE = {
    0: 0x726FDB47DD0E0E31,
    1: 0x74F839C593DC67FD,
    7: 0xAB0200F58B01D137,
    8: 0x93F5F5799A932462,
    15: 0xA129CA6149BE45E5,
    63: 0x958A324CEB064572,
}


def expected(strings):
    return [siphash(KEY, s) for s in strings]


def arrow(strings, dtype=np.int32):
    offsets = np.cumsum([0] + [len(s) for s in strings]).astype(dtype)
    return offsets, np.frombuffer(b"".join(strings), np.uint8)


def test_reference_vectors():
    strings = [bytes(range(length)) for length in REFERENCE]
    assert digest_strings(bytes(range(16)), *arrow(strings)).tolist() == list(REFERENCE.values())


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_strings_of_every_length(dtype):
    rng = np.random.default_rng(2)
    strings = [rng.bytes(length) for length in [*range(300), 1000, 4096]]
    for some in (strings, strings[::-1], [strings[i] for i in rng.permutation(len(strings))]):
        assert digest_strings(KEY, *arrow(some, dtype)).tolist() == expected(some)


def test_any_number_of_threads_and_pieces():
    """Long strings begin and end in every place of a block, and slices of threads begin anywhere."""
    rng = np.random.default_rng(4)
    strings = [rng.bytes(length) for length in rng.integers(0, 40, 150_000)]
    for i in range(0, len(strings), 997):
        strings[i] = rng.bytes(300)
    offsets, data = arrow(strings)
    chosen = np.unique(
        np.append(rng.integers(0, len(strings), 2000), np.arange(0, len(strings), 997))
    )
    wanted = expected([strings[i] for i in chosen])
    wanted_numbers = expected([str(v).encode() for v in range(-70_000, 80_000, 1234)])
    for count in (1, 2, 3):
        with threads(count):
            whole = digest_strings(KEY, offsets, data)
            numbers = digest_integers(KEY, np.arange(150_000) - 70_000)
        assert whole[chosen].tolist() == wanted
        assert numbers[::1234].tolist() == wanted_numbers
    pieces = [
        digest_strings(KEY, piece, data)
        for piece in (offsets[:70_001], offsets[70_000:70_002], offsets[70_001:])
    ]
    assert np.array_equal(np.concatenate(pieces), whole)


def test_few_bytes_in_all():
    """Fewer than a word has: what lies behind them is no part of an id."""
    for text in (b"", b"a", b"ab" * 3, b"seven b"):
        for cut in range(len(text) + 1):
            assert digest_strings(KEY, *arrow([text[:cut], text[cut:]])).tolist() == expected(
                [text[:cut], text[cut:]]
            )


@pytest.mark.parametrize("key", [b"", bytes(15), bytes(32)])
def test_keys_of_another_length_are_refused(key):
    with pytest.raises(ValueError, match="16 bytes"):
        digest_integers(key, np.array([1]))
    with pytest.raises(ValueError, match="16 bytes"):
        digest_strings(key, *arrow([b"a"]))


def test_sliced_and_strided_buffers():
    strings = [b"a", b"", b"second", b"third id"]
    offsets, data = arrow(strings)
    assert digest_strings(KEY, offsets[1:], data).tolist() == expected(strings[1:])
    wide = np.zeros((len(offsets), 2), np.int32)
    wide[:, 0] = offsets
    assert digest_strings(KEY, wide[:, 0], data).tolist() == expected(strings)


@pytest.mark.parametrize("offsets", [[0, 5], [-1, 1], [0, 2, 1], []])
def test_offsets_outside_the_data_are_refused(offsets):
    with pytest.raises(ValueError, match="offsets"):
        digest_strings(KEY, np.array(offsets, np.int32), np.zeros(3, np.uint8))


def test_no_strings():
    assert digest_strings(KEY, np.zeros(1, np.int32), np.zeros(0, np.uint8)).size == 0


@pytest.mark.parametrize(
    "dtype", [np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64, np.uint64]
)
def test_integers_are_their_decimal_text(dtype):
    info = np.iinfo(dtype)
    rng = np.random.default_rng(3)
    values = np.concatenate(
        [
            np.array([info.min, info.max, 0, 1, 9, 10, 99, 100], dtype),
            rng.integers(info.min, info.max, 50, dtype, endpoint=True),
        ]
    )
    assert digest_integers(KEY, values).tolist() == expected(
        [str(v).encode() for v in values.tolist()]
    )


def test_fixed_width_strings():
    texts = ["", "a", "naïve", "日本語", "😀", "x" * 50, "\U0010ffff"]
    assert record_digests(KEY, np.array(texts)).tolist() == expected([t.encode() for t in texts])
    assert record_digests(KEY, np.array(texts).astype(">U50")).tolist() == expected(
        [t.encode() for t in texts]
    )
    raw = [b"", b"a", b"in\x00side", b"y" * 70]
    assert record_digests(KEY, np.array(raw)).tolist() == expected(raw)
    assert record_digests(KEY, np.array(raw)[::2]).tolist() == expected(raw[::2])
    assert record_digests(KEY, np.array([], "U5")).size == 0
    assert record_digests(KEY, np.array([""])).tolist() == expected([b""])


@pytest.mark.parametrize("ids", [np.array(["a", 1], object), np.array([0.5]), np.array([True])])
def test_other_ids_are_refused(ids):
    with pytest.raises(TableError, match="integers or strings"):
        record_digests(KEY, ids)


def test_ids_must_be_one_row():
    with pytest.raises(TableError, match="one row"):
        record_digests(KEY, np.zeros((2, 2), np.int64))


def test_read_only_and_strided_ids():
    ids = np.arange(10)
    ids.flags.writeable = False
    assert record_digests(KEY, ids[::3]).tolist() == expected([b"0", b"3", b"6", b"9"])

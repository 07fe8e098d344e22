"""Sealed files: they open whole and unaltered, or not at all."""

import itertools
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vertimrf.errors import MessageError
from vertimrf.files import sealed

KEY = bytes(range(32))
CHUNK, TAG = 64, sealed.TAG


@pytest.fixture(autouse=True, scope="module")
def small_chunks():
    """Many chunks in a few bytes."""
    usual, sealed.CHUNK = sealed.CHUNK, CHUNK
    yield
    sealed.CHUNK = usual


def make(contents, key=KEY, header=None):
    return sealed.seal_chunks(
        sealed.pack_head({"kind": "test"} if header is None else header), key, contents
    )


def open_file(data, key=KEY):
    """The contents, or None however the file was refused."""
    try:
        _, head = sealed.peek(data, "file")
    except MessageError:
        return None
    return sealed.open_chunks(head, key, data)


def pieces(data):
    """A file's header and chunks."""
    _, head = sealed.peek(data, "file")
    body = data[len(head) :]
    return head, [body[i : i + CHUNK + TAG] for i in range(0, len(body), CHUNK + TAG)]


@given(st.binary(max_size=5 * CHUNK), st.binary(min_size=32, max_size=32))
def test_what_is_sealed_opens(contents, key):
    data = make(contents, key)
    assert open_file(data, key) == contents
    assert len(data) <= sealed.most_bytes(len(contents))
    assert open_file(data, KEY if key != KEY else bytes(32)) is None


@pytest.mark.parametrize(
    "size", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 3 * CHUNK - 1, 3 * CHUNK]
)
def test_sizes_at_the_edges_of_chunks(size):
    contents = os.urandom(size)
    data = make(contents)
    assert open_file(data) == contents
    assert len(pieces(data)[1]) == max(-(-size // CHUNK), 1)


def test_no_byte_of_one_file_can_be_changed():
    """Each of them, in each bit: header, chunks and tags."""
    whole = make(bytes(CHUNK + 10))
    for place, bit in itertools.product(range(len(whole)), range(8)):
        altered = bytearray(whole)
        altered[place] ^= 1 << bit
        assert open_file(bytes(altered)) is None


def test_no_file_can_be_cut_at_any_byte():
    whole = make(os.urandom(4 * CHUNK))
    for size in range(len(whole)):
        assert open_file(whole[:size]) is None


def test_chunks_cannot_be_dropped_reordered_repeated_or_added():
    other = pieces(make(os.urandom(4 * CHUNK), bytes(32)))[1]
    for size in (3 * CHUNK, 3 * CHUNK + 7):
        contents = os.urandom(size)
        head, chunks = pieces(make(contents))
        assert open_file(head + b"".join(chunks)) == contents
        n = len(chunks)
        changed = [
            list(order) for length in range(n) for order in itertools.permutations(chunks, length)
        ]
        changed += [list(order) for order in itertools.permutations(chunks)][1:]
        changed += [[*chunks, chunk] for chunk in (*chunks, *other)]
        changed += [[*chunks[:i], chunk, *chunks[i + 1 :]] for i in range(n) for chunk in other]
        changed += [[*chunks, bytes(extra)] for extra in (1, TAG, CHUNK + TAG)]
        for parts in changed:
            assert open_file(head + b"".join(parts)) is None


def test_a_header_is_readable_and_cannot_be_exchanged():
    one, two = (make(b"contents", header={"kind": "test", "from": name}) for name in ("one", "two"))
    assert sealed.peek(one, "file")[0] == {"kind": "test", "from": "one"}
    (head, _), (_, chunks) = pieces(one), pieces(two)
    assert open_file(head + b"".join(chunks)) is None


def test_nothing_but_the_header_shows():
    contents = b"a row of the table " * 20
    data = make(contents)
    assert all(contents[i : i + 8] not in data for i in range(len(contents) - 8))
    # As incompressible as noise: the same contents under two keys share no chunk.
    assert not set(pieces(data)[1]) & set(pieces(make(contents, bytes(32)))[1])


@pytest.mark.parametrize(
    "data, said",
    [
        (b"", "not a sealed file"),
        (b"VMRF" + bytes(100), "not a sealed file"),
        (sealed.MAGIC + b"\x02\x00" + bytes(60), "version 2"),
        (sealed.MAGIC + b"\x01\x00\xff\xff\xff\xff" + bytes(60), "does not fit"),
        (sealed.MAGIC + b"\x01\x00\x00\x00\x00\x00" + bytes(60), "cannot be read"),
        (sealed.MAGIC + b"\x01\x00\x02\x00\x00\x00[]" + bytes(60), "cannot be read"),
        (sealed.MAGIC + b"\x01\x00\x88\x13\x00\x00" + b"[" * 5000 + bytes(60), "cannot be read"),
    ],
)
def test_what_is_no_sealed_file_is_told_in_one_sentence(data, said):
    with pytest.raises(MessageError, match=said):
        sealed.peek(data, "file")

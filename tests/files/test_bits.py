"""Packing: against the bits written out one by one."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from vertimrf.files.bits import pack_bits, packed_size, unpack_bits


@given(bits=st.integers(1, 4), numbers=st.lists(st.integers(0, 15), max_size=40))
def test_there_and_back(bits, numbers):
    """Tables, row after row."""
    expected = np.array([x % (1 << bits) for x in numbers], np.uint8)
    packed = pack_bits(expected.reshape(2 - len(numbers) % 2, -1), bits)
    assert packed.shape == (packed_size(expected.size, bits),)
    written = sum(int(x) << (bits * i) for i, x in enumerate(expected))
    assert packed.tobytes() == written.to_bytes(packed.size, "little")
    np.testing.assert_array_equal(unpack_bits(packed, expected.size, bits), expected)

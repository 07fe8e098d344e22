"""The binary container: round trips, and refuses anything it did not write."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vertimrf.errors import MessageError
from vertimrf.files import container


def example():
    arrays = {
        "a": np.arange(6, dtype=np.int64).reshape(2, 3),
        "b": np.zeros((0, 4), np.uint8),
        "c": np.array(2.5),
    }
    return container.pack("thing", {"x": [1, None, "y"]}, arrays), arrays


def test_round_trip():
    data, arrays = example()
    header, back = container.unpack(data, "thing", "file")
    assert header == {"x": [1, None, "y"]}
    assert back.keys() == arrays.keys()
    for name, array in arrays.items():
        assert back[name].dtype == array.dtype
        np.testing.assert_array_equal(back[name], array)


@given(st.integers(min_value=0, max_value=10_000), st.integers(min_value=1, max_value=255))
def test_any_changed_byte_is_noticed(position, change):
    data = bytearray(example()[0])
    data[position % len(data)] ^= change
    with pytest.raises(MessageError):
        container.unpack(bytes(data), "thing", "file")


@given(st.integers(min_value=0, max_value=10_000))
def test_any_cut_is_noticed(length):
    data = example()[0]
    with pytest.raises(MessageError, match="truncated"):
        container.unpack(data[: length % len(data)], "thing", "file")


def test_another_kind_is_named():
    with pytest.raises(MessageError, match="is a thing, not a model"):
        container.unpack(example()[0], "model", "file")


def test_missing_file_is_named(tmp_path):
    with pytest.raises(MessageError, match="nowhere"):
        container.read(tmp_path / "nowhere")

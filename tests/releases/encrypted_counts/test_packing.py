"""The layout of counters: round trips, no overflow, and what does not fit is refused."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vertimrf.errors import PlanError, PrivacyError
from vertimrf.releases.encrypted_counts.packing import TAIL, Layout, N, Q


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_sums_of_rows_and_noise_come_out_as_they_went_in(data):
    """Whatever the flooding and the errors are, up to their bounds."""
    sizes = tuple(data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=5)))
    sigma = data.draw(st.sampled_from([0.0, 0.7, 20.0, 1e9]))
    capacity, signed = data.draw(st.integers(1, 2000) | st.just(1 << 24)), data.draw(st.booleans())
    layout = Layout(sizes, capacity, sigma, signed=signed, sums=data.draw(st.integers(1, 10**6)))
    limits = st.integers(-layout.reach, layout.reach)
    noise = np.array([[data.draw(limits) for _ in range(layout.counters)]], np.int64)
    least = -capacity if signed else 0
    counts = [data.draw(st.sampled_from([least, 0, 1, capacity])) for _ in range(layout.counters)]
    (plaintexts,) = layout.pack(noise)
    assert len(plaintexts) == layout.slots
    for counter, count in enumerate(counts):
        slot, k = divmod(counter, layout.per_slot)
        plaintexts[slot] += count << (k * layout.width)
    assert min(plaintexts) >= 0
    below = st.sampled_from([0, layout.above_flooding - 1])
    numbers = [layout.scale * plaintext + data.draw(below) for plaintext in plaintexts]
    assert max(numbers) < Q
    assert layout.above_flooding <= layout.scale
    assert layout.unpack(numbers) == (np.array(counts) + noise[0]).tolist()


def test_the_figures_of_a_layout():
    layout = Layout((8, 16, 7), 45_222, 45.2, sums=60)
    assert layout.offset == math.ceil(12 * 45.2) == 543
    assert layout.width == (45_222 + 2 * 543).bit_length() == 16
    assert (layout.per_slot, layout.counters, layout.slots, layout.blocks) == (5, 31, 7, 6)
    rows = 7 * 7 * 5 * 8192 * 4
    assert (layout.pieces, layout.piece_bytes(0)) == ([range(7)], 32 + rows)
    assert layout.answer_bytes(60) == 60 * (8192 + 7) * 5 * 4
    # Of 100 counters, a row has at most 700 bytes; blocks are filled up with blanks.
    assert Layout((100,), 8192 * 6, 45.2, sums=100).block_bytes < 700 * 8192 * 6 / 7


@pytest.mark.parametrize("capacity", [1, 8192, 45_222, 1 << 20, 1 << 24])
@pytest.mark.parametrize("sums", [1, 90, 10**5])
@pytest.mark.parametrize("sigma", [4.0, 1e9])
def test_the_flooding_hides_errors_and_nothing_wraps(capacity, sums, sigma):
    """The statistical distance of all answers to a packer, and the largest number, as the proof has them."""
    layout = Layout((50, 60, 2), capacity, sigma, (2,), True, sums)
    mean_error = math.sqrt(10.5 * (capacity + 2 * N))
    assert sums * layout.slots * mean_error / 2**layout.flooding_bits <= 2.0**-43
    assert layout.largest_error == 21 * (capacity + 2 * N)
    # One more bit of flooding would not fit.
    assert layout.above_flooding <= layout.scale < layout.above_flooding + 2**layout.flooding_bits
    assert layout.scale << (layout.per_slot * layout.width) <= Q
    assert 3 * capacity + 2 * math.ceil(12 * sigma) < 2**layout.width


def test_noise_beyond_the_offset_has_a_chance_below_2_to_the_minus_60():
    assert 2**40 * 2 * math.exp(-(TAIL**2) / 2) < 2**-60
    layout = Layout((3,), 10, 2.0)
    noise = np.array([[0, layout.offset, -layout.offset]])
    (plaintexts,) = layout.pack(noise)
    assert layout.unpack([layout.scale * one for one in plaintexts]) == noise[0].tolist()
    with pytest.raises(PrivacyError, match="Noise exceeds 24 on a counter"):
        layout.pack(noise + 1)


def test_places_of_values_and_blanks():
    codes = np.array([[0, 1, -1], [2, -1, 0]])
    assert Layout((2, 3), 3, 1.0).places(codes).tolist() == [[0, 1, -1], [4, -1, 2]]


@pytest.mark.parametrize("codes", [[[0], [3]], [[-2], [0]], [[0]]])
def test_codes_that_the_layout_lacks_are_no_rows(codes):
    with pytest.raises(ValueError, match="below the sizes"):
        Layout((2, 3), 3, 1.0).places(np.array(codes))


def test_plaintexts_of_another_layout_are_noticed():
    layout = Layout((2,), 6, 0.0)
    assert layout.width == 3
    assert layout.unpack([layout.scale * 0b110_101]) == [5, 6]
    for wrong in (0b1_000_000, 0b111_000):
        assert layout.unpack([layout.scale * wrong]) == []
    assert layout.unpack([layout.scale * 0b110_101 + layout.above_flooding]) == []


def test_tables_are_of_every_pair_of_groups():
    counters = np.arange(20).reshape(4, 5)
    tables = Layout((2, 3), 1, 0.0).tables(counters, (1, 3))
    assert [table.tolist() for table in tables[:2]] == [[[0, 1]], [[2, 3, 4]]]
    assert [table.tolist() for table in tables[2:]] == [
        [[5, 6], [10, 11], [15, 16]],
        [[7, 8, 9], [12, 13, 14], [17, 18, 19]],
    ]


@pytest.mark.parametrize("sizes, capacity", [((), 10), ((3, 0), 10), ((2,), 0)])
def test_nothing_to_count_is_refused(sizes, capacity):
    with pytest.raises(PlanError, match="need a row and a value"):
        Layout(sizes, capacity, 1.0)


def test_contrasts_of_more_values_are_refused():
    with pytest.raises(ValueError, match="two values"):
        Layout((3,), 10, 1.0, contrasts=(0,), signed=True)


@pytest.mark.parametrize("sigma", [1e30, math.inf, math.nan, -1.0])
def test_a_counter_wider_than_a_slot_is_refused(sigma):
    with pytest.raises(PlanError, match="does not fit into 155 bits with what hides it: raise eps"):
        Layout((2,), 10, sigma)

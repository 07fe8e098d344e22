"""The layout of counters: round trips, no overflow, and what does not fit is refused."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vertimrf.errors import PlanError, PrivacyError
from vertimrf.releases.encrypted_counts.packing import TAIL, Layout


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_sums_of_rows_and_noise_come_out_as_they_went_in(data):
    sizes = tuple(data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=5)))
    sigma = data.draw(st.sampled_from([0.0, 0.7, 20.0]))
    layout = Layout(sizes, data.draw(st.integers(1, 2000)), sigma, data.draw(st.integers(30, 130)))
    limits = st.integers(-layout.offset, layout.offset)
    noise = np.array([[data.draw(limits) for _ in range(layout.counters)]], np.int64)
    counts = [data.draw(st.sampled_from([0, 1, layout.capacity])) for _ in range(layout.counters)]
    (plaintexts,) = layout.pack(noise)
    assert len(plaintexts) == layout.ciphertexts
    for counter, count in enumerate(counts):
        ciphertext, k = divmod(counter, layout.per_ciphertext)
        plaintexts[ciphertext] += count << (k * layout.width)
    assert max(plaintexts) < 1 << (layout.modulus_bits - 1)
    assert layout.unpack(plaintexts) == (np.array(counts) + noise[0]).tolist()


def test_the_figures_of_a_layout():
    layout = Layout((8, 16, 7), 45_222, 45.2)
    assert layout.offset == math.ceil(12 * 45.2) == 543
    assert layout.width == (45_222 + 2 * 543).bit_length() == 16
    assert (layout.per_ciphertext, layout.counters, layout.ciphertexts) == (191, 31, 1)
    assert layout.ciphertext_bytes == 768
    assert layout.row_bytes == 45_222 * 768
    assert layout.answer_bytes(60) == 60 * 768
    assert Layout((100, 92), 45_222, 45.2).ciphertexts == 2


def test_noise_beyond_the_offset_has_a_chance_below_2_to_the_minus_60():
    assert 2**40 * 2 * math.exp(-(TAIL**2) / 2) < 2**-60
    layout = Layout((3,), 10, 2.0)
    noise = np.array([[0, layout.offset, -layout.offset]])
    assert layout.unpack(layout.pack(noise)[0]) == noise[0].tolist()
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
    layout = Layout((2,), 7, 0.0)
    assert layout.width == 3
    assert layout.unpack([0b111_101]) == [5, 7]
    assert layout.unpack([0b1_000_000]) == []


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


@pytest.mark.parametrize("sigma", [1e20, math.inf, math.nan, -1.0])
def test_a_counter_wider_than_a_plaintext_is_refused(sigma):
    with pytest.raises(PlanError, match="does not fit into 64 bits: raise epsilon"):
        Layout((2,), 10, sigma, 64)

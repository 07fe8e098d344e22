"""Sharing work out to threads: everything is done exactly once, whatever the number of threads."""

import numpy as np
import pytest

from vertimrf.kernels.count_sketch import cross_products
from vertimrf.kernels.geometric import encode_shared, hazards
from vertimrf.kernels.jit import for_each, in_slices, threads


@pytest.mark.parametrize("several", [1, 2, 3])
@pytest.mark.parametrize("count", [0, 1, 2, 7, 1000])
@pytest.mark.parametrize("least", [1, 5, 2000])
def test_slices_cover_the_range_once_and_in_order(several, count, least):
    with threads(several):
        slices = in_slices(count, least, lambda begin, end: (begin, end))
    assert [i for begin, end in slices for i in range(begin, end)] == list(range(count))


def test_slices_are_passed_by_name():
    with pytest.raises(TypeError):
        in_slices(10, 1, lambda table, _: None)


@pytest.mark.parametrize("several", [1, 2, 3])
@pytest.mark.parametrize("count", [0, 1, 2, 50])
def test_every_task_runs_once(several, count):
    runs = np.zeros(count, int)

    def work(index):
        runs[index] += 1
        return index * index

    with threads(several):
        assert for_each(count, work) == [index * index for index in range(count)]
    assert (runs == 1).all()


@pytest.mark.parametrize("several", [1, 2, 3])
@pytest.mark.parametrize("tables", [1, 2, 5, 16])
def test_shared_keys_encode_every_record_into_one_of_the_tables(several, tables):
    rng = np.random.default_rng(3)
    digests = rng.integers(0, 1 << 63, 500).astype(np.uint64)
    codes = rng.integers(0, 4, (2, 500)).astype(np.uint16)
    arguments = (
        np.uint64(1),
        np.uint64(2),
        digests,
        codes,
        np.array([0, 4]),
        np.ones(8, np.uint8),
        0,
        *hazards(20),
    )
    expected, encoded = np.ones((1, 8, 64), np.uint8), np.ones((tables, 8, 64), np.uint8)
    with threads(1):
        encode_shared(*arguments, expected)
    with threads(several):
        encode_shared(*arguments, encoded)
    # Maximum-merging the tables of any number of workers gives the table of one worker.
    assert np.array_equal(encoded.max(axis=0), expected[0])


@pytest.mark.parametrize("several", [1, 2, 3])
def test_products_are_the_same_on_any_number_of_threads(several):
    codes = np.random.default_rng(4).integers(0, 16, (6, 5000)).astype(np.uint8)
    odd = 2.0 * codes + 1 - 16
    with threads(several):
        assert np.array_equal(cross_products(codes, 4), odd @ odd.T / codes.shape[1])

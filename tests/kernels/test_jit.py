"""Sharing work out to threads: everything is done exactly once, whatever the number of threads."""

import numpy as np
import pytest

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

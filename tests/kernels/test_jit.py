"""Sharing work out to threads: everything is done exactly once, whatever the number of threads."""

import numpy as np
import pytest

from vertimrf.kernels.jit import for_each, in_order, in_slices, threads


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
def test_tasks_wait_for_those_that_they_need(several):
    needs = [[], [], [0, 1], [2], [2], [3, 4], [], [5, 6]]
    ended, workers = [], set()

    def work(task, worker):
        assert set(needs[task]) <= set(ended)
        workers.add(worker)
        ended.append(task)

    with threads(several):
        in_order(needs, [5, 6, 4, 3, 2, 1, 7, 0], 2, work)
    assert sorted(ended) == list(range(8))
    assert workers <= set(range(min(several, 2)))
    if several == 1:
        assert ended == [6, 1, 0, 2, 3, 4, 5, 7]


@pytest.mark.parametrize("several", [1, 2])
def test_a_task_that_fails_ends_all(several):
    def work(task, _):
        if task == 1:
            raise ValueError("failed")

    with threads(several), pytest.raises(ValueError, match="failed"):
        in_order([[], [0], [1]], [3, 2, 1], several, work)

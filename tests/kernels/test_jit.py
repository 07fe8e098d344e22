"""Sharing work out to threads: everything is done exactly once, whatever the number of threads."""

import os
import threading
import time

import numba
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


@pytest.mark.parametrize("several", [1, 2, 3])
def test_tasks_in_tasks_share_the_threads(several):
    inside, most, lock = 0, 0, threading.Lock()

    def inner(index):
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        time.sleep(1e-4)
        with lock:
            inside -= 1
        return index

    with threads(several):
        number = numba.get_num_threads()
        seen = for_each(20, lambda _: (for_each(5, inner), numba.get_num_threads()))
        assert seen == [([0, 1, 2, 3, 4], number)] * 20
        assert most <= number
        assert numba.get_num_threads() == number


def test_a_thread_that_has_nothing_left_to_do_takes_part_in_what_others_began():
    if numba.config.NUMBA_NUM_THREADS == 1:
        pytest.skip("needs two threads")

    def who(_):
        time.sleep(1e-3)
        return threading.get_ident()

    caller = threading.get_ident()

    def outer(_):
        # The other thread ends at once, and may take a while to notice that it has nothing left to do.
        return threading.get_ident() != caller or any(
            len(set(for_each(2, who))) == 2 for _ in range(5000)
        )

    with threads(2):
        assert all(for_each(2, outer))


def test_an_error_ends_the_tasks():
    runs = []

    def work(index):
        runs.append(index)
        if index == 3:
            raise KeyError("the fourth")

    with threads(2):
        with pytest.raises(KeyError, match="the fourth"):
            for_each(100_000, work)
        assert len(runs) < 100_000
        assert for_each(5, abs) == [0, 1, 2, 3, 4]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_has_threads_of_its_own():
    with threads(2):
        for_each(2, abs)
        child = os.fork()
        if child == 0:
            try:
                os._exit(sum(for_each(5, abs)))
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 10

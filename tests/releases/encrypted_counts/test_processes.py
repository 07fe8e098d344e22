"""Work spread over processes gives what one process gives, and its failures are those of the work."""

import os
import subprocess
import sys

import numba
import pytest

from vertimrf.errors import RunError
from vertimrf.kernels.jit import threads
from vertimrf.releases.encrypted_counts.processes import spread

several = pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="one core")


def start(offset):
    return lambda piece: (piece + offset, os.getpid())


def failing():
    return lambda piece: 1 // piece


def ending():
    return lambda piece: os._exit(piece)


def test_one_thread_works_in_this_process():
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        assert list(spread(start, (5,), range(3))) == [(5 + i, os.getpid()) for i in range(3)]
    finally:
        numba.set_num_threads(before)
    assert list(spread(start, (5,), [])) == []
    assert list(spread(start, (5,), [1, 2])) == [(6, os.getpid()), (7, os.getpid())]


@several
def test_several_threads_work_in_processes_of_their_own():
    with threads(2):
        results = list(spread(start, (5,), range(20)))
    assert [value for value, _ in results] == [5 + i for i in range(20)]
    assert os.getpid() not in {process for _, process in results}


@several
def test_an_error_of_the_work_is_raised_here():
    with pytest.raises(ZeroDivisionError), threads(2):
        list(spread(failing, (), [1, 1, 0, *[1] * 9]))


@several
def test_a_process_that_ends_is_one_sentence():
    with (
        pytest.raises(RunError, match=r"ended before its work was done.*with fewer threads"),
        threads(2),
    ):
        list(spread(ending, (), [3] * 8))


@several
def test_scripts_without_a_guard_and_programs_from_standard_input_work():
    """Processes do not import the main script again."""
    code = (
        "import sys; sys.path.insert(0, 'tests')\n"
        "from vertimrf.releases.encrypted_counts.processes import spread\n"
        "from releases.encrypted_counts.test_processes import start\n"
        "print(sum(value for value, _ in spread(start, (1,), range(8))))\n"
    )
    run = subprocess.run([sys.executable, "-"], input=code, capture_output=True, text=True)
    assert (run.stdout, run.stderr) == ("36\n", "")

"""Compilation policy of all kernels.

Kernels compile lazily, are cached on disk, release the GIL, follow NumPy's error model (no
exceptions on division) and keep IEEE semantics (no fastmath) unless a kernel asks for it.

A first run waits for compilation, so kernels are cheap to compile:

* Kernels are serial, and :func:`in_slices` runs them on Python threads. Numba's own parallel loops
  compile three to eight times as slowly, and its threads spin while they wait.
* A function that only kernels call is a :func:`callee`.
* Small functions are inlined by LLVM (``forceinline``), not by Numba (``inline="always"``), which
  would compile them again at every call.
* Arrays are copied and filled by loops, because slice assignment compiles NumPy's shape rules and
  their error messages.

Kernels with fastmath that other kernels call are inlined. A callee that is not is compiled on its
own and once more with its caller, and the process that compiled both runs another one than later
processes do, with other rounding.

``cache.py`` says where compiled kernels are kept. VERTIMRF_JIT_CACHE=0 turns the cache off. No kernel
runs on Numba's threading layer, which belongs to the embedding program, so kernels also run in
forked processes.
"""

from __future__ import annotations

import collections
import functools
import heapq
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import numba
import numpy as np

from .cache import KernelCache, is_off, is_there

T = TypeVar("T")

# ``fastmath`` of kernels whose sums may be reassociated for vectorisation; nothing else is relaxed.
VECTOR = {"reassoc", "contract", "nsz"}
# Slices per thread: on a busy machine some threads are slower.
SLICES = 4


def kernel(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile a serial kernel: ``@kernel``, or with Numba options ``@kernel(forceinline=True)``."""
    if function is None:
        return lambda f: kernel(f, **options)
    if numba.config.DISABLE_JIT:  # Python's arithmetic warns where compiled code wraps around.
        return np.errstate(all="ignore")(function)
    # C calls no kernel.
    policy = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    dispatcher = numba.njit(**policy, **options)(function)
    if not is_off() and is_there():
        dispatcher._cache = KernelCache(function)
    return dispatcher


def callee(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile a function that kernels call, as :func:`kernel`. A call from Python would crash: the
    code that converts Python's arguments, a sixth of what kernels take to compile, is left out.
    """
    return kernel(function, no_cpython_wrapper=True, **options)


def in_slices(count: int, least: int, work: Callable[..., T]) -> list[T]:
    """Cut a range into slices and run ``work(begin=..., end=...)`` for each on several threads.

    The bounds are passed by name, so that a callee cannot ignore one. Other parallel work, such as
    one task per table, uses :func:`for_each`.

    Args:
        count: length of the range.
        least: fewest items worth a slice.
        work: runs a serial kernel, which releases the GIL, on the items from ``begin`` up to
            ``end``. Slices may run at the same time, so no two may write to the same place.

    Returns:
        The results, in the order of the slices.
    """
    several = numba.get_num_threads()
    pieces = min(SLICES * several, count // max(least, 1)) if several > 1 else 1
    cuts = [count * i // max(pieces, 1) for i in range(max(pieces, 1) + 1)]
    return for_each(len(cuts) - 1, lambda piece: work(begin=cuts[piece], end=cuts[piece + 1]))


def for_each(count: int, work: Callable[[int], T]) -> list[T]:
    """Run ``work(index)`` for every index below ``count`` on several threads.

    Args:
        count: number of tasks.
        work: one task. Tasks may run at the same time, so no two may write to the same place. A task
            may use several threads too: those that are free when it asks.

    Returns:
        The results, by index.
    """
    out: list[Any] = [None] * count
    # Threads take the next index in turns.
    remaining = iter(range(count))

    def run() -> None:
        try:
            for index in remaining:
                out[index] = work(index)
        finally:
            collections.deque(remaining, 0)  # After an error, nothing is begun.

    helpers = _helpers().start(run, count - 1)
    try:
        run()
    finally:
        for helper in helpers:
            helper.result()
    return out


class _Helpers:
    """The threads of this process beside its own, which are kept because starting one takes a
    millisecond.

    Tasks in tasks borrow them too. So no more threads work than Numba was set to, and one that has
    nothing left to do takes part in what others began.
    """

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(numba.config.NUMBA_NUM_THREADS)
        self._lock = threading.Lock()
        self._busy = 0

    def start(self, run: Callable[[], None], most: int) -> list[Future[None]]:
        """Run a function on the threads that are free, ``most`` of them at most."""
        number = numba.get_num_threads()
        with self._lock:
            free = max(min(number - 1 - self._busy, most), 0)
            self._busy += free
        return [self._pool.submit(self._run, run, number) for _ in range(free)]

    def _run(self, run: Callable[[], None], number: int) -> None:
        try:
            numba.set_num_threads(number)
            run()
        finally:
            with self._lock:
                self._busy -= 1


@functools.cache
def _helpers() -> _Helpers:
    return _Helpers()


def in_order(
    needs: Sequence[Sequence[int]],
    rest: Sequence[float],
    workers: int,
    work: Callable[[int, int], None],
) -> None:
    """Run ``work(index, worker)`` for every task, after the tasks that it needs, on several threads.

    Args:
        needs: for every task, the tasks that must end before it starts.
        rest: for every task, its work and that of the longest chain of tasks that wait for it. Of
            the tasks that can start, the one with the most starts first.
        workers: most threads.
        work: one task, and the number of the thread that runs it, below ``workers``.
    """
    then: list[list[int]] = [[] for _ in needs]
    for task, before in enumerate(needs):
        for one in before:
            then[one].append(task)
    missing = [len(before) for before in needs]
    ready = [(-rest[task], task) for task, count in enumerate(missing) if not count]
    heapq.heapify(ready)
    left, changed = len(needs), threading.Condition()

    def run(worker: int) -> None:
        nonlocal left
        with changed:
            while left:
                if not ready:
                    changed.wait()
                    continue
                _, task = heapq.heappop(ready)
                left -= 1
                changed.release()
                try:
                    work(task, worker)
                except BaseException:
                    left = 0
                    raise
                finally:
                    changed.acquire()
                    for other in then[task]:
                        missing[other] -= 1
                        if not missing[other]:
                            heapq.heappush(ready, (-rest[other], other))
                    changed.notify_all()

    for_each(min(workers, numba.get_num_threads()), run)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_helpers.cache_clear)


@contextmanager
def threads(num_threads: int | None) -> Iterator[None]:
    """Run kernels on ``num_threads`` threads within the block, and restore the setting after it.

    Args:
        num_threads: at least 1; None keeps the setting. The number that Numba was started with
            (NUMBA_NUM_THREADS, by default the number of cores) is the upper limit.

    Raises:
        ValueError: ``num_threads`` is less than 1.
    """
    if num_threads is None:
        yield
        return
    if num_threads < 1:
        raise ValueError(
            f"num_threads must be at least 1, not {num_threads}; leave it out to use every core."
        )
    before = numba.get_num_threads()
    numba.set_num_threads(min(num_threads, numba.config.NUMBA_NUM_THREADS))
    try:
        yield
    finally:
        numba.set_num_threads(before)

"""How every kernel is compiled: one policy, in one place.

Kernels compile lazily, are cached on disk, release the GIL, follow NumPy's error model (no exceptions on division) and
keep IEEE semantics (no fastmath) unless one asks for it.

Compiling is what a first run waits for, so kernels are cheap to compile. They are serial, and :func:`in_slices` runs them on
threads of Python: Numba's own parallel loops take three to eight times as long to compile, and threads that spin while they
wait slow everything down on a busy machine. Small functions that others call are inlined by LLVM (``forceinline``), not by
Numba (``inline="always"``), which would compile their text anew at every call. Arrays are copied and filled by loops: an array
assigned to a slice brings in NumPy's rules of shapes, with the text of their errors.

NUMBA_CACHE_DIR moves the cache. Where it names a folder that can only be read, as in a container's image, kernels are loaded
from it (``read_only.py``); where no cache location is writable and there is no such folder, the same kernel runs uncached;
VERTIMRF_JIT_CACHE=0 asks for that. The threading layer is never set here: it belongs to the program that embeds us.

Under the ``omp`` layer a forked child of a process that has run a parallel kernel is ended by the OpenMP runtime at its first
parallel kernel, without a word that Python could catch. :func:`threads`, which all roles run in, refuses before that.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import numba

from .read_only import ReadOnlyCache, read_only_folder

__all__ = ["for_each", "in_slices", "kernel", "parallel_kernel", "threads"]

T = TypeVar("T")

# Slices for each thread: on a busy machine threads do not come equally far.
SLICES = 4


def kernel(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile a serial kernel; use it bare (``@kernel``) or with more Numba options (``@kernel(forceinline=True)``)."""
    if function is None:
        return lambda f: kernel(f, **options)
    options = {"nogil": True, "error_model": "numpy", **options}
    if os.environ.get("VERTIMRF_JIT_CACHE") == "0":
        return numba.njit(**options)(function)
    if read_only_folder():
        dispatcher = numba.njit(**options)(function)
        dispatcher._cache = ReadOnlyCache(function)
        return dispatcher
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # "cannot cache function": no candidate location is writable
        return numba.njit(**options)(function)


def parallel_kernel(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile a kernel whose ``prange`` loops run on Numba's threads; for comparisons that nothing waits for."""
    return kernel(function, parallel=True, **options)


def in_slices(count: int, least: int, work: Callable[..., T]) -> list[T]:
    """Cut the range 0 to ``count`` into slices, and run ``work(begin=..., end=...)`` for each, on several threads.

    The bounds are passed by name, so that no callee can leave one of them out. Work that is not a range of like things, such as
    one task per table, goes to :func:`for_each`.

    Args:
        count: length of the range.
        least: how many things are worth a slice.
        work: runs a serial kernel, which releases the GIL, on everything from ``begin`` up to ``end``. Slices may run at the same
            time, so no two may write to one place.

    Returns:
        The results, in the order of the slices.
    """
    several = numba.get_num_threads()
    pieces = min(SLICES * several, count // max(least, 1)) if several > 1 else 1
    cuts = [count * i // max(pieces, 1) for i in range(max(pieces, 1) + 1)]
    return for_each(len(cuts) - 1, lambda piece: work(begin=cuts[piece], end=cuts[piece + 1]))


def for_each(count: int, work: Callable[[int], T]) -> list[T]:
    """Run ``work(index)`` for every index below ``count``, on several threads.

    Args:
        count: number of tasks.
        work: one task; tasks may run at the same time, so no two may write to one place.

    Returns:
        The results, by index.
    """
    several = min(numba.get_num_threads(), count)
    if several <= 1:
        return [work(index) for index in range(count)]
    with ThreadPoolExecutor(several) as pool:
        return list(pool.map(work, range(count)))


# The threading layer that the parent of a forked process was running, if it was.
_forked_from: str | None = None


def _remember_fork() -> None:
    global _forked_from
    try:
        _forked_from = numba.threading_layer()
    except ValueError:  # no parallel kernel has run yet
        return


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_remember_fork)


@contextmanager
def threads(num_threads: int | None) -> Iterator[None]:
    """Run kernels on ``num_threads`` threads within the block, and restore the setting after it.

    Args:
        num_threads: at least 1; None leaves the setting as it is. More than Numba was started with
            (NUMBA_NUM_THREADS, by default the number of cores) means all of them.

    Raises:
        ValueError: ``num_threads`` is less than 1.
        RuntimeError: this process was forked where parallel kernels would end it.
    """
    if _forked_from == "omp":
        raise RuntimeError(
            "This process was forked from one that had run compiled kernels, and OpenMP would end it: start processes by spawn "
            "or forkserver, or set NUMBA_THREADING_LAYER=workqueue."
        )
    if num_threads is None:
        yield
        return
    if num_threads < 1:
        raise ValueError(f"num_threads must be at least 1, not {num_threads}; leave it out to use every core.")
    before = numba.get_num_threads()
    numba.set_num_threads(min(num_threads, numba.config.NUMBA_NUM_THREADS))
    try:
        yield
    finally:
        numba.set_num_threads(before)

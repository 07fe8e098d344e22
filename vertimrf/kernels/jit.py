"""How every kernel is compiled: one policy, in one place.

Kernels compile lazily, are cached on disk, release the GIL, follow NumPy's error model (no exceptions on division) and
keep IEEE semantics (no fastmath) unless one asks for it. Where no cache location is writable, as for read-only
installations in containers, the same kernel runs uncached. The threading layer is never set here: it belongs to the
program that embeds us. Under the ``omp`` layer a forked child must not run parallel kernels: start processes by spawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numba

__all__ = ["kernel", "parallel_kernel", "threads"]


def kernel(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile a serial kernel; use it bare (``@kernel``) or with more Numba options (``@kernel(inline="always")``)."""
    if function is None:
        return lambda f: kernel(f, **options)
    options = {"nogil": True, "error_model": "numpy", **options}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # "cannot cache function": no candidate location is writable
        return numba.njit(**options)(function)


def parallel_kernel(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile a kernel whose ``prange`` loops run on Numba's threads; bare or with further options."""
    return kernel(function, parallel=True, **options)


@contextmanager
def threads(num_threads: int | None) -> Iterator[None]:
    """Run kernels on ``num_threads`` threads within the block, and restore the setting after it.

    Args:
        num_threads: at least 1; None leaves the setting as it is. More than Numba was started with
            (NUMBA_NUM_THREADS, by default the number of cores) means all of them.

    Raises:
        ValueError: ``num_threads`` is less than 1.
    """
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

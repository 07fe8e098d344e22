"""Compile the kernels that a role needs into the disk cache, in several processes.

A kernel otherwise compiles on first use, one after the other on one core, because Numba compiles
under a lock. Here kernels are listed with the types with which the package calls them, so that
processes can share the work. A cache file is written atomically, and two processes that compile the
same kernel write the same content.

Types: a letter for the type of number, and the number of axes of an array; all arrays are
C-contiguous.
"""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import threading
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import Any, NamedTuple

from numba import (
    boolean,
    float64,
    get_num_threads,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from numba.core import config
from numba.types import Array

from . import (
    carry,
    contingency,
    count_sketch,
    csv_rows,
    digest,
    eliminate,
    geometric,
    intersections,
    multiset,
    phantoms,
    potentials,
    propagation,
    proximal_step,
    ring,
    rows,
    sample,
    splits,
)
from .cache import folder, is_off, is_there, is_writable

PARTY, SERVER = "party", "server"
# Encoders by their names in plans. Party and server both need their kernels.
PAIRS, COUNTS, ENCRYPTED = "scheduled-pairs", "count-sketch", "encrypted"

F1, F2, F3 = float64[::1], float64[:, ::1], float64[:, :, ::1]
I1, I2 = int64[::1], int64[:, ::1]
B1, B2 = uint8[::1], uint8[:, ::1]
READ_ONLY = Array(uint8, 1, "C", readonly=True)
H1, H2 = uint16[::1], uint16[:, ::1]
W1, U1, U2 = uint32[::1], uint64[::1], uint64[:, ::1]
W2, W3, S2 = uint32[:, ::1], uint32[:, :, ::1], int8[:, ::1]
M1, M2 = int32[::1], int32[:, ::1]
M3, M4 = int32[:, :, ::1], int32[:, :, :, ::1]
L1, L2 = boolean[::1], boolean[:, ::1]
KEY = (uint64, uint64)
RANGE = (int64, int64)


class Job(NamedTuple):
    """Kernels that one process compiles, because they share callees.

    Attributes:
        name: name for messages.
        wanted: roles or encoders that need them.
        kernels: each kernel with the types of its arguments.
    """

    name: str
    wanted: Collection[str]
    kernels: tuple[tuple[Any, tuple[Any, ...]], ...]


# The slowest to compile come first.
JOBS = (
    Job(
        "belief propagation",
        {SERVER},
        ((propagation.run_passes, (int64, *RANGE, *RANGE, I2, I2, I2, I2, M1, I2, I2, F1, F1)),),
    ),
    Job(
        "scheduled pairs",
        {PAIRS},
        (
            (geometric._encode_tasks, (*KEY, U1, I2, F1, F1, B1, B1)),
            (geometric._count, (H1, *RANGE, int64)),
            (geometric._place, (U1, H1, *RANGE, I1, U1)),
            (phantoms.raise_by_phantoms, (B1, B1, B1, I1)),
            (phantoms.raise_unsettled, (B1, B1, I1, U1, U1, int64)),
        ),
    ),
    Job(
        "estimates from scheduled pairs",
        {PAIRS},
        (
            (intersections._solve, (M4, F1, F1, F1, F1, float64, float64, F1, *RANGE, F2, F2)),
            (intersections._count_levels, (B2, B2, int64, int64, *RANGE, int32[:, ::1])),
        ),
    ),
    Job(
        "count sketches",
        {COUNTS},
        (
            (count_sketch._add_words, (*KEY, *RANGE, U1, H2, I2, int64, M3)),
            (count_sketch.add_noise, (M1, int64, H1, int16[::1], I1)),
            (count_sketch.settle_noise, (M1, H1, I1, uint64[:, ::1], H1, U1, U1, int64)),
            # Some of the repetitions, and all of them at once.
            (count_sketch.quantise, (M3, F1, int64, uint8[:, :])),
            (count_sketch.quantise, (M3, F1, int64, B2)),
            (count_sketch.add_products, (B2, int64, *RANGE, F2)),
        ),
    ),
    Job(
        "encrypted counts",
        {ENCRYPTED},
        (
            (ring.add_products, (S2, W2, W2, W2, W2, W1, *RANGE, W3)),
            (ring.constants, (W3, W2, W2, S2, W2, W2, W2, W1, *RANGE, W3)),
            (ring.weigh, (S2, W2, *RANGE, I2)),
            (ring.add_marks, (I2, I1, W2, W1, W3)),
            (ring.centred_binomial, (U1, int8[::1])),
        ),
    ),
    Job(
        "fits",
        {SERVER},
        (
            (potentials.potentials, (F1, F1, F1, I2, I2, M1, F1, F1)),
            (potentials.absorb, (F1, F1, I2, I2, M1)),
            (potentials.expected_counts, (I2, I2, M1, F1, int64, float64, F1)),
            (splits.cheapest, (I1, I2, I2, I1, I2, boolean, float64, int64, I1)),
            (proximal_step.products, (F1, F1, F2, F2, int64, *RANGE, F2)),
            (proximal_step.weights, (F2, F2, F2, I1)),
            (proximal_step.direction, (F1, F1, F2, F2, I1, F2, float64, *RANGE, F1)),
            (proximal_step.dot, (F1, F1)),
            (proximal_step.regularised, (F1, F1, F1, F1)),
            (proximal_step.root_mean_square, (F1, F1)),
        ),
    ),
    Job(
        "marginals and samples",
        {SERVER},
        (
            (carry.multiply_onto, (F1, I1, I1, F1)),
            (carry.sum_onto, (F1, I1, I1, F1)),
            (carry.add_bins, (F3, I1, F3)),
            (carry.carry, (F2, int64, I1, I1, F2, F1, F2, int64, int64)),
            (carry.collect, (F2, int64, F2, F2)),
            (sample.number_groups, (H2, I1, I1, int64, *RANGE, W1)),
            (sample.share_out, (F1, I1, I1, int64, I1, *RANGE, uint64, W1)),
            (sample.assign, (H2, W1, W1, I1, I1, I1, *RANGE)),
            (rows.add_logs, (H2, I2, I2, F1, *RANGE, F1)),
            (rows.weighed_counts, (H2, I2, I2, F1, *RANGE, F1)),
            (rows.rake, (H2, I2, I2, int64, F1, F1, *RANGE, W1, F1)),
            (rows.start_gaps, (M1, F1, B1, int64, *RANGE, int64, float64, *RANGE, M2)),
            (rows.pick, (H2, U2, U2, I1, B1, float64, M1, *RANGE, I1)),
        ),
    ),
    Job(
        "tables",
        {PARTY},
        (
            (csv_rows.take_rows, (READ_ONLY, *(int64,) * 5, B1, I1)),
            (digest._strings, (*KEY, I1, READ_ONLY, int64, *RANGE, U1)),
            (digest._integers, (*KEY, U1, boolean, *RANGE, U1)),
            (multiset._record_sum, (*KEY, U1, H2, *RANGE, U1)),
        ),
    ),
    Job(
        "junction trees",
        {PARTY, SERVER},
        (
            (contingency._count_records, (H2, I1, I1, int64, *RANGE)),
            (eliminate.triangulate, (L2, L1, F1, F1, float64, L2)),
            (eliminate.grow, (L2, I1, L2, I2, F1, F1, float64, int64, L1, L2)),
            (eliminate.maximal, (L2, int64)),
            (eliminate.forest, (U2, I1)),
        ),
    ),
)


def warmup(jobs: Iterable[Job] = JOBS) -> None:
    """Compile or load all kernels of the given jobs, by default all of the package."""
    for job in jobs:
        for function, types in job.kernels:
            function.compile(types)


def load(wanted: Collection[str]) -> None:
    """Begin to load what some roles and encoders need from the cache, while the caller reads files.

    A kernel that is called before loads at the call. One thread alone would gain nothing, and what
    the cache lacks is left to the calls.
    """
    kept = not (config.DISABLE_JIT or is_off()) and is_there()
    if kept and get_num_threads() > 1 and not _lacking(wanted):
        # Those that parties call come last in the list.
        threading.Thread(target=warmup, args=(reversed(_of(wanted)),)).start()


def missing(wanted: Collection[str] | None = None) -> list[Job]:
    """Jobs of some roles and encoders that are not in the cache; None means all roles or encoders.

    None are missing if there is no cache to fill. A cache of another processor counts as filled, and
    is updated on first use.
    """
    if config.DISABLE_JIT or is_off() or not is_writable():
        return []
    return _lacking(wanted)


def _of(wanted: Collection[str] | None) -> list[Job]:
    return [job for job in JOBS if wanted is None or any(need in job.wanted for need in wanted)]


def _lacking(wanted: Collection[str] | None) -> list[Job]:
    return [
        job
        for job in _of(wanted)
        if not all(kernel._cache.index.exists() for kernel, _ in job.kernels)
    ]


def not_kept(wanted: Collection[str] | None = None) -> str:
    """Why every process has to compile kernels anew, and the remedy.

    Args:
        wanted: roles and encoders whose kernels are needed; None means all.

    Returns:
        A sentence; empty if a folder keeps these kernels, or can.
    """
    if config.DISABLE_JIT:
        return "Kernels are not compiled, because NUMBA_DISABLE_JIT is set; unset it."
    if is_off():
        return "Compiled kernels are not kept, because VERTIMRF_JIT_CACHE is 0; unset it."
    if is_writable():
        return ""
    if not is_there():
        return (
            f"Compiled kernels cannot be kept: {folder()} cannot be written to; "
            "set NUMBA_CACHE_DIR to a folder that can."
        )
    if _lacking(wanted):
        return (
            f"{folder()} does not have all compiled kernels and cannot be written to; run `vertimrf warmup` where it can, "
            "or set NUMBA_CACHE_DIR to another folder."
        )
    return ""


def compile_missing(
    jobs: Collection[Job], advance: Callable[[int, int], None] = lambda done, of: None
) -> None:
    """Compile jobs in as many processes as there are cores, and wait for them.

    Processes are spawned, so a script that calls this must be importable (``if __name__ ==
    "__main__"``). If a process is killed, its remaining jobs are compiled on first use.

    Args:
        jobs: jobs to compile.
        advance: called with the number of jobs done, and of all jobs.
    """
    workers = min(len(jobs), os.cpu_count() or 1)
    if not workers:
        return
    numbers = [JOBS.index(job) for job in jobs]
    spawned = multiprocessing.get_context("spawn")
    with (
        contextlib.suppress(BrokenProcessPool),
        # Compiling makes objects that live on: looking for garbage among them takes a tenth of its time.
        ProcessPoolExecutor(workers, spawned, initializer=gc.disable) as pool,
    ):
        for done, future in enumerate(
            as_completed([pool.submit(_compile, number) for number in numbers]), 1
        ):
            future.result()
            advance(done, len(jobs))


def _compile(number: int) -> None:
    warmup([JOBS[number]])

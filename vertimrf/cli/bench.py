"""Speed of the encoders on this machine, beside its own bandwidths."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numba
import numpy as np

from ..errors import PlanError
from ..files.bits import packed_size
from ..kernels.bandwidth import scatter_add
from ..kernels.jit import for_each, in_slices, threads
from ..plan.defaults import ENCODER
from ..progress import SILENT, Progress
from ..releases.count_sketches.encoding import CountSketchEncoder
from ..releases.count_sketches.intersections import CountedGroup, estimate_cells
from ..releases.count_sketches.parameters import CountSketches
from ..releases.encrypted_counts.counts import encrypt_rows, open_sums, sum_rows
from ..releases.encrypted_counts.lattice import PrivateKey
from ..releases.encrypted_counts.packing import Layout
from ..releases.scheduled_pairs.encoding import SketchEncoder
from ..releases.scheduled_pairs.intersections import Side, estimate_pair
from ..releases.scheduled_pairs.parameters import ScheduledPair, ScheduledPairs
from ..releases.shared_keys.encoding import SharedKeyEncoder
from ..releases.shared_keys.estimation import estimate_cells as estimate_shared
from ..releases.shared_keys.parameters import SharedKeys
from ..sketch import Sketch

# Both parties have COLUMNS columns of VALUES values. A value has KEYS counters, or COLUMNS * COLUMNS
# pairs share KEYS keys; the paper has PAPER_KEYS.
COLUMNS, VALUES, KEYS, PAPER_KEYS, BUCKETS, BITS = 4, 8, 131_072, 2_000, 2048, 4
SIZES, OURS = (VALUES,) * 2 * COLUMNS, tuple(range(COLUMNS))
PHANTOMS, FLOOR, CEILING = 6326, 9, 20
PAIRS = tuple(itertools.product(OURS, range(COLUMNS, 2 * COLUMNS)))
SECRET = bytes(32)
REPEATS = 3
# Encrypted rows have hundreds of bytes each, and datasketches takes a microsecond an id.
MOST_ENCRYPTED, MOST_IDS, MOST_ROWS = 1 << 17, 1 << 20, 1 << 27
# Bytes of an array that no cache holds. Places and entries of scattered additions are a count
# sketch's: the second-level cache holds them.
COPIED, PLACES, ROUNDS = 1 << 26, 1 << 14, 1 << 9


@dataclass(frozen=True)
class Machine:
    """Bandwidths on some threads.

    Attributes:
        threads: number of threads.
        copy: bytes read and written by a copy, in a second.
        scatter: bytes read and written by additions to 32-bit counters at random places, in a
            second.
    """

    threads: int
    copy: float
    scatter: float


@dataclass(frozen=True)
class Work:
    """What an encoder does at a party whose table is in memory.

    Attributes:
        rows: records.
        counters: counters that records are added to, once for each record.
        scattered: those whose place a hash draws, so that the machine must add to each.
        message: bytes of the party's message.
        encode: from arrays to what is published.
        merge: the state of one half of the table with another's; None for encryption.
        estimate: cells of all pairs across the parties.
    """

    rows: int
    counters: float
    scattered: float
    message: int
    encode: Callable[[], Any]
    merge: Callable[[], Any] | None
    estimate: Callable[[], Any]

    @property
    def moved(self) -> int:
        """Bytes of the party's table and message."""
        return self.rows * (8 + 2 * COLUMNS) + self.message

    def least(self, machine: Machine) -> float:
        """Seconds in which the machine moves these bytes as a copy does, and adds to these counters."""
        return self.moved / machine.copy + 8 * self.scattered / machine.scatter


def median_seconds(action: Callable[[], Any], repeats: int = REPEATS) -> float:
    """Median seconds of some calls, after one that is not counted."""
    action()
    seconds = []
    for _ in range(repeats):
        begin = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds)


def measure_machine() -> Machine:
    """The machine's bandwidths on as many threads as kernels have."""
    number = numba.get_num_threads()
    source = np.ones(COPIED, np.uint8)
    copy = np.empty_like(source)
    places = np.random.default_rng(0).integers(0, BUCKETS * VALUES, PLACES).astype(np.uint32)
    tables = np.zeros((number, BUCKETS * VALUES), np.int32)

    def copied(begin: int, end: int) -> None:
        copy[begin:end] = source[begin:end]

    copying = median_seconds(lambda: in_slices(COPIED, 1 << 20, copied))
    adding = median_seconds(
        lambda: for_each(number, lambda one: scatter_add(places, tables[one], ROUNDS))
    )
    return Machine(number, 2 * COPIED / copying, 8 * number * ROUNDS * PLACES / adding)


def table(rows: int) -> tuple[Any, Any]:
    """Digests [shape=(rows,), uint64] and codes [shape=(COLUMNS, rows), uint16] of a party."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, VALUES, (COLUMNS, rows), dtype=np.uint16)
    return rng.integers(0, 2**64, rows, dtype=np.uint64), codes


def _streamed(
    rows: int, plan: Any, make: Callable[..., Any], estimate: Callable[[Any], Any], *sizes: Any
) -> Work:
    """Work of an encoder that adds records one by one: ``make(plan, groups, secret)``."""
    digests, codes = table(rows)

    def added(part: slice = slice(None)) -> Any:
        encoder = make(plan, OURS, SECRET)
        encoder.update(digests[part], codes[:, part])
        return encoder

    first, second = added(slice(rows // 2)), added(slice(rows // 2, None)).state()
    published = added().result(*sizes)
    scattered = float(rows) * COLUMNS * plan.repetitions if sizes else 0.0
    counters = scattered or float(rows) * sum(tables.shape[1] for tables in published)
    return Work(
        rows,
        counters,
        scattered,
        sum(packed_size(tables.size, BITS) for tables in published),
        lambda: added().result(*sizes),
        lambda: first.merge_state(second),
        lambda: estimate(published),
    )


def count_sketches(rows: int) -> Work:
    """Count sketches with KEYS counters a value."""
    plan = CountSketches(KEYS // BUCKETS, BUCKETS, 2.0 * len(SIZES), BITS, SIZES)
    each = np.full(VALUES, rows / VALUES)

    def estimate(published: Any) -> Any:
        groups = [CountedGroup(codes, each, each, np.ones(VALUES)) for codes in published]
        return estimate_cells(plan, groups * 2, rows)

    return _streamed(rows, plan, CountSketchEncoder, estimate, [each] * COLUMNS)


def scheduled_pairs(rows: int) -> Work:
    """Scheduled pairs with KEYS keys over all pairs."""
    pairs = tuple(ScheduledPair(left, right, KEYS // len(PAIRS)) for left, right in PAIRS)
    plan = ScheduledPairs(PHANTOMS, FLOOR, CEILING, pairs, SIZES)
    each = np.full(VALUES, rows / VALUES)

    def estimate(published: Any) -> Any:
        for levels in published:
            side = Side(0, np.arange(VALUES), each, levels, np.ones(VALUES))
            other = Side(COLUMNS, np.arange(VALUES), each, levels, np.ones(VALUES))
            estimate_pair(plan, side, other, rows)

    return _streamed(rows, plan, SketchEncoder, estimate)


def shared_keys(rows: int) -> Work:
    """The paper's sketches, with all columns under every key."""
    plan = SharedKeys(PHANTOMS, FLOOR, CEILING, PAPER_KEYS, SIZES)

    def estimate(published: Any) -> Any:
        return estimate_shared(plan, np.concatenate(published * 2), SIZES, PAIRS, rows)

    return _streamed(rows, plan, SharedKeyEncoder, estimate)


def encrypted_counts(rows: int) -> Work:
    """Encrypted counts; estimating is the other party's additions and their decryption."""
    rows = min(rows, MOST_ENCRYPTED)
    sizes = SIZES[:COLUMNS]
    layout = Layout(sizes, rows, 10.0, sums=sum(sizes))
    private, codes = PrivateKey.new(), table(rows)[1].astype(np.int32)
    noise = np.zeros((sum(sizes), layout.counters), np.int64)
    encrypted = encrypt_rows(private, codes, layout)

    def estimate() -> Any:
        sums = sum_rows([encrypted], codes, sizes, lambda: noise, layout)
        return open_sums(private, sums, sizes, layout)

    counters = float(rows) * layout.counters
    encode = lambda: encrypt_rows(private, codes, layout)  # noqa: E731
    return Work(rows, counters, 0.0, layout.row_bytes, encode, None, estimate)


ENCODERS = {
    ENCODER: count_sketches,
    "scheduled-pairs": scheduled_pairs,
    "published": shared_keys,
    "encrypted": encrypted_counts,
}


def run_bench(
    rows: int = 1_000_000,
    encoders: Sequence[str] = (),
    several: Sequence[int] = (),
    progress: Progress = SILENT,
) -> dict[str, list[dict[str, Any]]]:
    """Time the encoders at one of two parties with random tables.

    Args:
        rows: number of records; encrypted counts have at most MOST_ENCRYPTED.
        encoders: their names in plans; empty means all.
        several: numbers of threads; empty means 1 and all.
        progress: receives what is measured.

    Returns:
        ``machine``: its bandwidths (:class:`Machine`) for every number of threads; ``encoders``: for
        every encoder and number of threads its figures, in SI units and with shares as fractions.

    Raises:
        PlanError: a number is out of range, or an encoder is unknown.
    """
    most = numba.config.NUMBA_NUM_THREADS
    several = sorted(set(several or (1, most)))
    if not 2 <= rows <= MOST_ROWS or several[0] < 1 or several[-1] > most:
        raise PlanError(
            f"A benchmark has 2 to {MOST_ROWS:,} rows and 1 to {most} threads (NUMBA_NUM_THREADS), not {rows:,} and {several}."
        )
    if unknown := set(encoders) - set(ENCODERS):
        raise PlanError(f"No encoder {min(unknown)!r}: choose of {', '.join(ENCODERS)}.")
    machines, figures = [], []
    for number in several:
        progress.step(f"bandwidths, {number} threads")
        with threads(number):
            machines.append(measure_machine())
    if not encoders:
        encoders = list(ENCODERS)
    for name in encoders:
        progress.step(name)
        with threads(most):
            work = ENCODERS[name](rows)
        first = 0.0
        for done, machine in enumerate(machines, 1):
            with threads(machine.threads):
                figures.append({"encoder": name} | _measure(work, machine))
            used = figures[-1]["encode_seconds"] * machine.threads
            # The fewest threads count as fully used.
            first = first or used
            figures[-1]["efficiency"] = first / used
            progress.advance(done, len(machines))
    return {"machine": [asdict(machine) for machine in machines], "encoders": figures}


def _measure(work: Work, machine: Machine) -> dict[str, Any]:
    """An encoder's figures on one number of threads."""
    repeats = 1 if work.merge is None else REPEATS
    seconds = median_seconds(work.encode, repeats)
    return {
        "threads": machine.threads,
        "rows": work.rows,
        "encode_seconds": seconds,
        "rows_per_second": work.rows / seconds,
        "counters_per_second": work.counters / seconds,
        "bytes_per_second": (work.moved + 8 * work.scattered) / seconds,
        # Encryption is bound by arithmetic.
        "roofline": None if work.merge is None else work.least(machine) / seconds,
        "message_bytes": work.message,
        "merge_seconds": None if work.merge is None else median_seconds(work.merge, repeats),
        "estimate_seconds": median_seconds(work.estimate, repeats),
    }


def against_datasketches(rows: int) -> dict[str, float]:
    """Ids per second into a sketch of a set, on one thread: ours and a HyperLogLog of datasketches.

    Raises:
        PlanError: datasketches is not installed.
    """
    try:
        from datasketches import hll_sketch, tgt_hll_type
    except ImportError:
        raise PlanError(
            "datasketches is not installed: pip install datasketches, or leave out --against."
        ) from None
    ids = np.arange(min(rows, MOST_IDS))
    numbers = ids.tolist()

    def theirs() -> None:
        sketch = hll_sketch(12, tgt_hll_type.HLL_8)
        for number in numbers:
            sketch.update(number)

    with threads(1):
        ours = len(ids) / median_seconds(lambda: Sketch.encode(ids, SECRET))
    other = len(ids) / median_seconds(theirs)
    return {"vertimrf": ours, "datasketches": other, "ratio": ours / other}


def in_words(figures: dict[str, Any]) -> list[str]:
    """The figures of :func:`run_bench` as a table with units."""
    lines = [
        f"{m['threads']} threads: copy {m['copy'] / 1e9:.1f} GB/s, scattered additions {m['scatter'] / 1e9:.1f} GB/s"
        for m in figures["machine"]
    ]
    lines += [
        "",
        "encoder           threads      rows   rows/s  counters/s    GB/s  roofline  efficiency   message    merge  estimate",
    ]
    for one in figures["encoders"]:
        roofline = "-" if one["roofline"] is None else f"{one['roofline']:.1%}"
        merge = "-" if one["merge_seconds"] is None else f"{1e3 * one['merge_seconds']:.2f} ms"
        lines.append(
            f"{one['encoder']:17} {one['threads']:7} {one['rows']:9,} {one['rows_per_second']:8.2g}"
            f" {one['counters_per_second']:11.2g} {one['bytes_per_second'] / 1e9:7.2g} {roofline:>9} {one['efficiency']:11.0%}"
            f" {one['message_bytes'] / 1e6:6.2f} MB {merge:>8} {1e3 * one['estimate_seconds']:6.1f} ms"
        )
    return lines

"""Speed of the encoders on this machine, beside its own bandwidths."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numba
import numpy as np

from ..columns.column import Attribute
from ..errors import PlanError
from ..kernels.bandwidth import scatter_add
from ..kernels.jit import for_each, in_slices, threads
from ..model.fit import fit
from ..party.party import Party
from ..party.secret import Secret
from ..plan.defaults import SHARES
from ..plan.options import PlanOptions
from ..plan.plan import Plan
from ..plan.planner import make_plan
from ..plan.schema import Schema
from ..privacy.noise import SystemNoise
from ..progress import SILENT, Progress
from ..releases.register import KINDS, kind_of
from ..releases.release import ROWS, Side
from ..server.cross_party import cross_party_marginals
from ..sketch import Sketch
from ..tables.table import Table

# Both parties have COLUMNS columns of VALUES values, and sketches of at most MESSAGE bytes.
COLUMNS, VALUES, MESSAGE = 4, 8, 1 << 19
SECRET = bytes(32)
REPEATS = 3
# Encrypted rows have hundreds of bytes each, and datasketches takes a microsecond an id.
MOST_ENCRYPTED, MOST_IDS, MOST_ROWS = 1 << 17, 1 << 20, 1 << 27
# Bytes of an array that no cache holds. Places and entries of scattered additions are a count
# sketch's: the second-level cache holds them.
COPIED, PLACES, BUCKETS, ROUNDS = 1 << 26, 1 << 14, 2048, 1 << 9


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


def planned(encoder: str, rows: int) -> Plan:
    """The plan that an encoder is timed under."""
    kind = kind_of(encoder)
    columns = {
        name: [Attribute.integer(f"{name}{i}", VALUES) for i in range(COLUMNS)]
        for name in ("one", "two")
    }
    planning = PlanOptions(
        expected_records=min(rows, MOST_ENCRYPTED) if kind.exchanges else rows,
        encoder=encoder,
        claim_as_published=True,
        message_bytes=None if kind.exchanges else MESSAGE,
        shares=SHARES,
        even_if_useless=True,
    )
    return make_plan(Schema.of(columns), 1.0, planning)


def work_of(encoder: str, rows: int) -> Work:
    """What an encoder does; estimating encrypted counts is the other party's sums and their opening."""
    plan = planned(encoder, rows)
    sketch, names, rows = plan.sketch, plan.party_names, plan.expected_records
    assert sketch is not None
    digests, codes = table(rows)
    sizes = [plan.groups[g].size for g in plan.groups_of(0)]
    values = (codes * np.array(sizes, np.uint16)[:, None] // VALUES).astype(np.uint16)
    halves: list[Any] = []

    def encoded(make: Callable[[], Any]) -> Any:
        def added(part: slice = slice(None)) -> Any:
            one = make()
            one.update(digests[part], values[:, part])
            return one

        halves[:] = halves or [added(slice(rows // 2)), added(slice(rows // 2, None)).state()]
        return added()

    side = Side(
        plan,
        0,
        SECRET,
        lambda _: SECRET,
        encoded,
        lambda: (digests, values),
        lambda: (digests, values.astype(np.int32)),
        lambda: [np.full(size, rows / size) for size in sizes],
        SystemNoise(),
        SILENT,
    )
    files, secret = sketch.files(plan.groups_by_party), Secret.new()
    sent = [piece for kind, _, _, piece, _ in files if kind == ROWS]
    key = sketch.private_key() if sent else None
    one, two = (Party(plan, name, secret, counting_key=key) for name in names)
    mine, theirs = (Table(plan.schema.encoding(name), digests, codes) for name in names)

    def encode() -> Any:
        return [one.rows(mine, piece) for piece in sent] or sketch.encode(side)

    first = encode()
    messages = [] if sent else [one.run(mine), two.run(theirs)]
    model = fit(plan.schema.sizes, [], float(rows))

    def estimate() -> Any:
        received = messages
        if sent:
            answers = two.answers(theirs, {names[0]: first})
            received = [one.run(mine, {names[1]: answers[names[0]]}), two.run(theirs)]
        return cross_party_marginals(plan, received, model, float(rows), SILENT)

    counters = float(rows) * sketch.added(plan.groups_of(0))
    return Work(
        rows,
        counters,
        counters * sketch.hashed,
        plan.message_size(0, rows) + sum(size for _, sender, *_, size in files if sender == 0),
        encode,
        (lambda: halves[0].merge_state(halves[1])) if halves else None,
        estimate,
    )


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
    if unknown := set(encoders) - set(KINDS):
        raise PlanError(f"No encoder {min(unknown)!r}: choose of {', '.join(KINDS)}.")
    machines, figures = [], []
    for number in several:
        progress.step(f"bandwidths, {number} threads")
        with threads(number):
            machines.append(measure_machine())
    for name in encoders or KINDS:
        progress.step(name)
        with threads(most):
            work = work_of(name, rows)
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
        # Encryption, and rows of responses, are bound by arithmetic.
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

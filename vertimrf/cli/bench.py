"""Speed of the encoders on this machine, beside its own bandwidths."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numba
import numpy as np
from llvmlite.binding import get_host_cpu_name

from ..columns.column import Attribute
from ..errors import PlanError
from ..kernels.bandwidth import scatter_add
from ..kernels.jit import for_each, in_slices, threads
from ..model.fit import fit
from ..party.comparison import compare_all
from ..party.party import Party
from ..party.secret import Secret
from ..plan.defaults import SHARES
from ..plan.options import PlanOptions
from ..plan.plan import Plan
from ..plan.planner import make_plan
from ..plan.schema import Schema
from ..privacy.noise import SystemNoise
from ..progress import SILENT, Progress
from ..releases.encoder import guess_stops
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
MOST_ENCRYPTED, MOST_IDS = 1 << 17, 1 << 20
# Bytes of an array that no cache holds. Places and entries of scattered additions are a count
# sketch's: the second-level cache holds them.
COPIED, PLACES, BUCKETS, ROUNDS = 1 << 26, 1 << 14, 2048, 1 << 9


@dataclass(frozen=True)
class Machine:
    """Bandwidths on some threads.

    Attributes:
        threads: number of threads.
        copy: bytes read and written by a copy, in a second.
        additions: to 32-bit counters at random places of a table that the second-level cache holds,
            in a second.
    """

    threads: int
    copy: float
    additions: float


@dataclass(frozen=True)
class Work:
    """What an encoder does at a party whose table is in memory.

    Attributes:
        rows: records.
        counters: that records are added to or raise, at places that a hash draws, once for each
            record that does; 0 where arithmetic takes the time.
        width: bytes of a counter.
        message: bytes of the party's message.
        encode: from arrays to what is published.
        merge: the state of one half of the table with another's; None for encryption.
        estimate: cells of all pairs across the parties.
    """

    rows: int
    counters: float
    width: int
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
        return self.moved / machine.copy + self.counters / machine.additions


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
    return Machine(number, 2 * COPIED / copying, number * ROUNDS * PLACES / adding)


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
    sketch: Any = plan.sketch
    names, rows = plan.party_names, plan.expected_records
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
    if sent:
        compare_all(dict(zip(names, (one.comparison(mine), two.comparison(theirs)), strict=True)))

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

    groups = plan.groups_of(0)
    added = rows * sketch.added(groups)
    # Of levels only those are drawn that a row does not reach in any case.
    levels = sketch.shapes(groups, 1) if halves and not added else []
    drawn = (
        keys * 0.5 ** guess_stops(np.array([rows // size]), keys, sketch)[0]
        for size, keys in levels
    )
    return Work(
        rows,
        added or rows * sum(drawn),
        4 if added else 1,
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
) -> dict[str, Any]:
    """Time the encoders at one of two parties with random tables.

    Args:
        rows: number of records, at least 2; encrypted counts have at most MOST_ENCRYPTED.
        encoders: their names in plans; empty means all.
        several: numbers of threads; empty means 1 and all.
        progress: receives what is measured.

    Returns:
        ``processor``, ``cores``; ``machine``: its bandwidths (:class:`Machine`) for every number of
        threads; ``encoders``: for every encoder and number of threads its figures, in SI units and with
        shares as fractions; None where a figure means nothing.

    Raises:
        PlanError: there are no such numbers of threads.
    """
    most = numba.config.NUMBA_NUM_THREADS
    several = sorted(set(several or (1, most)))
    if several[0] < 1 or several[-1] > most:
        raise PlanError(
            f"Kernels here have 1 to {most} threads (NUMBA_NUM_THREADS), not {', '.join(map(str, several))}."
        )
    machines, figures = [], []
    for number in several:
        progress.step(f"the machine on {number} threads")
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
    return {
        "processor": get_host_cpu_name(),
        "cores": numba.config.NUMBA_DEFAULT_NUM_THREADS,
        "machine": [asdict(machine) for machine in machines],
        "encoders": figures,
    }


def _measure(work: Work, machine: Machine) -> dict[str, Any]:
    """An encoder's figures on one number of threads."""
    # Encryption, and rows of responses, are bound by arithmetic.
    repeats = REPEATS if work.counters else 1
    seconds = median_seconds(work.encode, repeats)
    rates = {
        "counters_per_second": work.counters,
        "bytes_per_second": work.moved + 2 * work.width * work.counters,
        "roofline": work.least(machine),
    }
    return {
        "threads": machine.threads,
        "rows": work.rows,
        "encode_seconds": seconds,
        "rows_per_second": work.rows / seconds,
        **{name: (work.counters and rate / seconds) or None for name, rate in rates.items()},
        "efficiency": 1.0,
        "message_bytes": work.message,
        "merge_seconds": work.merge and median_seconds(work.merge, repeats),
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


# By what figures from the fourth on are multiplied in the table.
SCALES = (1, 1e-6, 1e-6, 1e-9, 100, 100, 1e-6, 1e3, 1e3)
HEADS = """
encoder          threads        rows    encode    rows/s counters/s   bytes/s  roofline  efficiency   message     merge  estimate
                                             s         M          M        GB         %           %        MB        ms        ms"""
LEGEND = f"""
A party of two has {COLUMNS} columns of {VALUES} values each; its message, where its size is free, at most {MESSAGE / 1e6:.2f} MB.
encode: from arrays in memory to what is published. counters: that records are added to, or raise, at places that a hash draws.
roofline: what moving the bytes of table and message and adding to the counters would take at the machine's rates, as a share of encoding;
the rest is hashing and noise. -: arithmetic decides, or there is nothing to merge.
efficiency: times as fast as the fewest threads, over times as many. merge: two halves of a table. estimate: all {COLUMNS**2} pairs, at the server."""


def in_words(figures: dict[str, Any]) -> list[str]:
    """The figures of :func:`run_bench` as a table with units."""
    lines = [f"{figures['cores']} cores ({figures['processor']})"]
    lines += [
        f"  threads {m['threads']}: copies {m['copy'] / 1e9:.1f} GB/s, additions at random places {m['additions'] / 1e6:,.0f} M/s"
        for m in figures["machine"]
    ]
    lines.append(HEADS)
    for one in figures["encoders"]:
        encoder, number, rows, *rest = one.values()
        cells = (
            "-" if value is None else f"{float(f'{value * scale:.3g}'):,g}"
            for value, scale in zip(rest, SCALES, strict=True)
        )
        head = f"{encoder:16}{number:8}{rows:12,}"
        lines.append(head + "{:>10}{:>10}{:>11}{:>10}{:>10}{:>12}{:>10}{:>10}{:>10}".format(*cells))
    return [*lines, LEGEND]

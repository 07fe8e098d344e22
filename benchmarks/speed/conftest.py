"""Every benchmark says rows, cells, counters and bytes a second where they mean something, its share of what the machine can do, its
speed-up over one thread, and its ratio to a reference that takes turns with it. A table of them stands below pytest-benchmark's own.
"""

import statistics
import time
from pathlib import Path

import numba
import pytest

from benchmarks import datasets
from benchmarks.speed.problems import measure_pairs
from vertimrf.cli.bench import measure_machine
from vertimrf.kernels import warmup
from vertimrf.kernels.jit import threads

ROUNDS = 5
COLUMNS = ("rows/s", "cells/s", "counters/s", "bytes/s", "roofline", "speed-up", "ratio")
ROWS = (10**4, 10**5, 10**6, 10**7)
MOST = numba.config.NUMBA_NUM_THREADS
# Bars are for two cores, however many the machine has.
TWO = min(2, MOST)


def pytest_addoption(parser):
    parser.addoption("--smoke", action="store_true", help="a hundredth of the rows")
    parser.addoption("--data", type=Path, default=datasets.FOLDER, help="folder of adult")


def pytest_configure(config):
    config.addinivalue_line("markers", "usual(rows): the least that shows what users see")


def pytest_generate_tests(metafunc):
    """Rows from the usual ones up and down; numbers of threads 1, 2, 4 ... and all."""
    if "rows" in metafunc.fixturenames:
        usual = metafunc.definition.get_closest_marker("usual").args[0]
        few = metafunc.config.getoption("--smoke")
        some = [pytest.param(n, id=f"{n}_rows", marks=pytest.mark.slow) for n in ROWS if n != usual]
        first = pytest.param(usual // (100 if few else 1), id="usual")
        metafunc.parametrize("rows", [first, *some])
    if "on" in metafunc.fixturenames:
        metafunc.parametrize("on", sorted({1 << i for i in range(MOST.bit_length())} | {MOST}))


@pytest.fixture(scope="session", autouse=True)
def compiled():
    warmup()


@pytest.fixture(scope="session")
def machine():
    """Bandwidths by number of threads, each measured once."""
    seen = {}

    def of(number):
        if number not in seen:
            with threads(number):
                seen[number] = measure_machine()
        return seen[number]

    return of


@pytest.fixture(scope="session")
def alone():
    """Seconds on one thread by benchmark."""
    return {}


@pytest.fixture(scope="session")
def smoke(pytestconfig):
    return pytestconfig.getoption("--smoke")


@pytest.fixture
def million(smoke):
    """The rows at which ratios are held."""
    return 10**4 if smoke else 10**6


@pytest.fixture(scope="session")
def adult(pytestconfig):
    """Adult, or a table of its shape."""
    return datasets.adult(pytestconfig.getoption("--data"))


@pytest.fixture(scope="session")
def problem(adult, smoke):
    """One-way marginals and 25 pairs of Adult, cliques of at most 600,000 cells."""
    return measure_pairs(adult.codes, adult.sizes, *((1e4, 3) if smoke else (6e5, 25)))


@pytest.fixture(scope="session")
def fitted(problem):
    return problem.fit()


@pytest.fixture(scope="session")
def peer():
    pytest.importorskip("mbi")
    from benchmarks.speed.beside_mbi import Peer

    return Peer()


@pytest.fixture
def speed(benchmark, machine, alone, request):
    def measure(
        action, on=None, reference=None, rounds=ROUNDS, moved=0, scattered=0, width=4, **work
    ):
        """Median seconds of an action and of its reference, which may be known.

        Args:
            action: is timed.
            on: threads; None for as many as there are.
            reference: takes turns with it, or seconds.
            rounds: as often.
            moved: bytes that it cannot do without reading or writing; what has arithmetic to wait for says none.
            scattered: counters at places that a hash draws, which it adds to or raises.
            width: bytes of a counter.
            work: rows, cells or counters, of which a second's number is shown.
        """
        theirs = []

        def turn():
            begin = time.perf_counter()
            reference()
            theirs.append(time.perf_counter() - begin)

        with threads(on):
            benchmark.pedantic(
                action,
                setup=turn if callable(reference) else None,
                rounds=rounds,
                warmup_rounds=1,
                iterations=1,
            )
        if benchmark.stats is None:
            pytest.skip("benchmarks are disabled")
        mine, info = benchmark.stats.stats.median, benchmark.extra_info
        if scattered:
            work.setdefault("counters", scattered)
        info |= {f"{name}/s": number / mine for name, number in work.items()}
        if moved:
            info["bytes/s"] = (moved + 2 * width * scattered) / mine
            one = machine(on or numba.get_num_threads())
            info["roofline"] = (moved / one.copy + scattered / one.additions) / mine
        if "on" in request.fixturenames:
            parameters = request.node.callspec.params.items()
            key = request.function, *(str(v) for name, v in parameters if name != "on")
            if on == 1:
                alone[key] = mine
            if key in alone:
                info["speed-up"] = alone[key] / mine
        seconds = statistics.median(theirs) if theirs else reference
        if seconds:
            info["ratio"] = seconds / mine
        return mine, seconds

    benchmark.group = request.function.__name__.removeprefix("test_").replace("_", " ")
    return measure


@pytest.fixture
def hold(benchmark):
    """Keeps a row for ``bars.toml``."""
    return benchmark.extra_info.setdefault("rows", {}).__setitem__


# After pytest-benchmark's own.
@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter, config):
    session = getattr(config, "_benchmarksession", None)
    done = [one for one in getattr(session, "benchmarks", []) if one.extra_info]
    if not done:
        return
    write = terminalreporter.write_line
    terminalreporter.section("speed")
    write(
        "roofline: what copying its bytes and adding to its counters alone would take, as a share of its time; "
        "speed-up: over one thread; ratio: times as fast as the reference"
    )
    width = max(len(one.name) for one in done)
    write(" " * (width + 11) + "".join(f"{column:>11}" for column in COLUMNS))
    for one in done:
        info = one.extra_info
        shown = [f"{info[name]:.3g}" if name in info else "-" for name in COLUMNS]
        if "roofline" in info:
            shown[4] = f"{info['roofline']:.1%}"
        cells = "".join(f"{cell:>11}" for cell in (f"{1e3 * one.stats.median:.4g} ms", *shown))
        write(f"{one.name:{width}}{cells}")
        for row, value in info.get("rows", {}).items():
            write(f"    {row.strip()}: {value:.4g}")

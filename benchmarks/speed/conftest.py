"""Every benchmark says rows, counters and bytes a second, its share of what the machine can do, its speed-up over one thread, and
its ratio to a reference that takes turns with it. A table of them stands below pytest-benchmark's own.
"""

import statistics
import time

import numba
import pytest

from benchmarks.speed.paths import measure_machine, threads, warmup

ROUNDS = 5
COLUMNS = ("rows/s", "counters/s", "bytes/s", "roofline", "speed-up", "ratio")


def pytest_addoption(parser):
    parser.addoption("--smoke", action="store_true", help="a hundredth of the rows")


def pytest_generate_tests(metafunc):
    if "rows" in metafunc.fixturenames:
        large = [pytest.param(size, marks=pytest.mark.slow) for size in (10**5, 10**6, 10**7)]
        metafunc.parametrize("rows", [10**4, *large])
    if "on" in metafunc.fixturenames:
        most = numba.config.NUMBA_NUM_THREADS
        metafunc.parametrize("on", sorted({1, min(2, most), most}))


@pytest.fixture(scope="session", autouse=True)
def compiled():
    warmup()


@pytest.fixture(scope="session")
def machine():
    """Bandwidths by number of threads, each measured once; seconds on one thread by benchmark."""
    seen = {}

    def of(number):
        if number not in seen:
            with threads(number):
                seen[number] = measure_machine()
        return seen[number]

    return of


@pytest.fixture(scope="session")
def alone():
    return {}


@pytest.fixture
def million(request):
    """The rows at which ratios are held."""
    return 10**6 // (100 if request.config.getoption("--smoke") else 1)


@pytest.fixture
def speed(benchmark, machine, alone, request):
    def measure(action, rows, on=None, reference=None, rounds=ROUNDS, **work):
        """Seconds of an action and of its reference (medians); ``work`` has counters, moved and scattered of ``bench.Work``."""
        theirs = []

        def turn():
            begin = time.perf_counter()
            reference()
            theirs.append(time.perf_counter() - begin)

        with threads(on):
            benchmark.pedantic(
                action, setup=reference and turn, rounds=rounds, warmup_rounds=1, iterations=1
            )
        if benchmark.stats is None:
            pytest.skip("benchmarks are disabled")
        mine, info = benchmark.stats.stats.median, benchmark.extra_info
        info["rows/s"] = rows / mine
        if work:
            moved = work.get("moved", 0) + 8 * work.get("scattered", 0)
            info |= {"counters/s": work.get("counters", 0) / mine, "bytes/s": moved / mine}
            one = machine(on or numba.get_num_threads())
            least = work.get("moved", 0) / one.copy + 8 * work.get("scattered", 0) / one.scatter
            info["roofline"] = least / mine
        key = request.function, rows, request.node.name.split("[")[0]
        key += (
            tuple(str(v) for n, v in request.node.callspec.params.items() if n != "on")
            if on
            else ()
        )
        if on == 1:
            alone[key] = mine
        if on and key in alone:
            info["speed-up"] = alone[key] / mine
        if reference:
            info["ratio"] = statistics.median(theirs) / mine
        return mine, statistics.median(theirs) if theirs else None

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
    width = max(len(one.name) for one in done)
    write(" " * width + "".join(f"{column:>12}" for column in COLUMNS))
    for one in done:
        figures = (one.extra_info.get(column) for column in COLUMNS)
        shown = "".join(f"{'-' if f is None else f'{f:.3g}':>12}" for f in figures)
        write(f"{one.name:{width}}{shown}")
        for row, value in one.extra_info.get("rows", {}).items():
            write(f"    {row.strip()}: {value:.4g}")

"""Threads are set once, around the roles' public methods, and every kernel of a run sees the same number."""

import json
import multiprocessing
import os
import subprocess
import sys

import pytest

COUNT = """
import json, sys, threading, types
import numba, numpy as np
from numba.core.dispatcher import Dispatcher
from vertimrf.utility.distances import tvd
from vertimrf import Attribute, PlanOptions, RunOptions, Schema, make_plan
from vertimrf.tables.table import Table
from vertimrf.trial import run_protocol

seen, inside, most, lock = {}, set(), 0, threading.Lock()

def watched(name, kernel):
    def call(*arguments):
        global most
        me = threading.get_ident()
        with lock:
            inside.add(me)
            most = max(most, len(inside))
            # Numba's count belongs to a thread; the threads of a pool run serial kernels, and there are as many as asked for.
            if threading.current_thread() is threading.main_thread():
                seen.setdefault(name, set()).add(numba.get_num_threads())
        try:
            return kernel(*arguments)
        finally:
            with lock:
                inside.discard(me)
    return call

for name, module in list(sys.modules.items()):
    if name.startswith("vertimrf."):
        for attribute, value in list(vars(module).items()):
            if isinstance(value, Dispatcher) and not name.startswith("vertimrf.kernels."):
                setattr(module, attribute, watched(attribute, value))
        for attribute, value in list(vars(module).items()):
            if isinstance(value, types.ModuleType) and value.__name__.startswith("vertimrf.kernels."):
                kernels = {n: watched(n, k) if isinstance(k, Dispatcher) else k for n, k in vars(value).items()}
                setattr(module, attribute, types.SimpleNamespace(**kernels))
rng = np.random.default_rng(0)
schema = Schema.of({party: [Attribute.integer(f"{party}{i}", 4) for i in range(3)] for party in "ab"})
digests = rng.integers(0, 1 << 63, 2000).astype(np.uint64)
tables = [Table(schema.part(party), digests, rng.integers(0, 4, (3, 2000)).astype(np.uint16)) for party in "ab"]
planning = PlanOptions(expected_records=2000, keys=1 << 12, encoder="scheduled-pairs", tau=100)
plan = make_plan(schema, 1.0, planning)
run_protocol(plan, tables, RunOptions(rows=100, num_threads={threads}))
print(json.dumps([len(seen), max(set().union(*seen.values())), most, numba.get_num_threads()]))
"""


@pytest.mark.parametrize("threads", [pytest.param(1, marks=pytest.mark.slow), 3])
def test_every_kernel_of_a_run_sees_the_threads_asked_for(threads):
    environment = {**os.environ, "NUMBA_NUM_THREADS": "4"}
    script = COUNT.replace("{threads}", str(threads))
    run = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    kernels, counted, together, after = json.loads(run.stdout)
    assert kernels >= 10
    # Kernels may take fewer where there is little to do, never more.
    assert counted == threads
    assert together <= threads
    assert after == 4


FORKED = """
import multiprocessing, numba, numpy as np
from vertimrf.kernels.contingency import contingency
from vertimrf.kernels.jit import threads

def child(queue):
    with threads(2):
        queue.put(contingency(codes, (2, 2), (0, 1)).tolist())

if __name__ == "__main__":
    codes = np.zeros((2, 10), np.uint16)
    contingency(codes, (2, 2), (0, 1))
    @numba.njit(parallel=True)
    def run(x):
        for i in numba.prange(4):
            x[i] += 1
    run(np.zeros(4))
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    one = context.Process(target=child, args=(queue,))
    one.start()
    one.join(60)
    print(one.exitcode, queue.get() if one.exitcode == 0 else "")
"""


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork")
@pytest.mark.parametrize("layer", ["omp", "workqueue"])
def test_kernels_run_in_a_process_forked_after_a_parallel_loop_of_numba(layer):
    environment = {**os.environ, "NUMBA_THREADING_LAYER": layer}
    run = subprocess.run(
        [sys.executable, "-c", FORKED], env=environment, capture_output=True, text=True
    )
    if run.returncode and "No threading layer could be loaded" in run.stderr:
        pytest.skip(f"this machine has no {layer} layer")
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == "0 [[10, 0], [0, 0]]"


def test_kernels_run_uncached_when_asked():
    code = "import vertimrf.kernels.prf as p; print(type(p.fill_words._cache).__name__)"
    for value, expected in (("0", "NullCache"), ("1", "KernelCache")):
        environment = {**os.environ, "VERTIMRF_JIT_CACHE": value}
        run = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert run.stdout.strip() == expected

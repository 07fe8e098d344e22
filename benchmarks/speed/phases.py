"""What each phase of a whole run takes on one and on two threads, and how much of it is serial.

    python benchmarks/speed/phases.py [--data FOLDER] [--quick | --smoke] [--json FILE]

FOLDER holds nltcs, adult and pisa (NAME.csv.gz with record_id and integer codes, NAME-domain.json); others are left out.
Processor seconds count, because other work on the machine changes wall times. On two threads the calling thread has all serial
work and half of the rest, so its seconds are what an idle machine would take, and their excess over half is serial.
Parties run at the same time, so theirs is one phase. The last of three runs counts: the first may compile.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks import datasets
from benchmarks.speed.measured import KEPT, ROOT
from benchmarks.verdict import FULL, SMOKE, Verdict, arguments, finish

RUNS = {"nltcs": ("8,8", 0.8), "adult": ("8,7", 0.8), "pisa": ("41,40", 1.0)}
# Prints phase: [wall, processor seconds of all threads, processor seconds of this thread].
CHILD = """
import contextlib, json, sys, time
began, spent = time.perf_counter(), {}
@contextlib.contextmanager
def timed(phase):
    before = time.perf_counter(), time.process_time(), time.thread_time()
    yield
    after = time.perf_counter(), time.process_time(), time.thread_time()
    spent[phase] = [sum(x) for x in zip(spent.get(phase, [0, 0, 0]), after, [-b for b in before])]
from vertimrf.__main__ import run
from vertimrf.cli import outputs, trial as command
compile_kernels, write = command.compile_kernels, outputs.Outputs.write
def compiled(*wanted):
    compile_kernels(*wanted)
    import vertimrf.trial as trial
    clock, for_each = trial.Clock.__call__, trial.for_each
    def of_phase(self, phase):
        return clock(self, phase) if phase in ("LocMRF", "LocEnc", "sending") else timed(phase)
    def parties(*given):
        with timed("parties"):
            return for_each(*given)
    trial.Clock.__call__, trial.for_each = of_phase, parties
    spent["start"] = [time.perf_counter() - began, time.process_time(), time.thread_time()]
def writing(*given):
    with timed("writing"):
        return write(*given)
command.compile_kernels, outputs.Outputs.write = compiled, writing
with contextlib.suppress(SystemExit):
    run()
spent["whole run"] = [time.perf_counter() - began, time.process_time(), time.thread_time()]
print(json.dumps(spent))
"""


def phases(words, threads):
    environment = {**KEPT, "NUMBA_NUM_THREADS": str(threads), "PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        [sys.executable, "-c", CHILD, "synthesize", *words],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(run.stdout.splitlines()[-1])


def rows(data, size):
    from vertimrf.plan.schema import Schema

    names = ["generated"] if size == SMOKE else list(RUNS)[: None if size == FULL else 2]
    for name in names:
        split, epsilon = RUNS.get(name, ("4,4", 1.0))
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            if not datasets.present(name, data):
                yield Verdict(f"{name}: whole run", None)
                continue
            if name == "generated":
                datasets.write(datasets.load(name), folder)
            table, domain = datasets.files(name, folder if name == "generated" else data)
            schema = folder / "schema.json"
            Schema.load(domain).split([int(count) for count in split.split(",")]).save(schema)
            words = f"{table} --id record_id --schema {schema} --epsilon {epsilon} --seed 0"
            words = f"{words} --out {folder}/out.csv".split()
            phases(words, 2)
            two = min(os.cpu_count(), 2)
            one, both = phases(words, 1), phases(words, two)
        for phase, (wall, busy, mine) in both.items():
            what = f"{name}, {phase}"
            yield Verdict(f"{what}: processor seconds on one thread", one[phase][1])
            yield Verdict(f"{what}: wall, one thread over {two}", one[phase][0] / wall)
            yield Verdict(f"{what}: serial share", max(2 * mine / busy - 1, 0.0))
        whole = one["whole run"][1] / both["whole run"][2]
        yield Verdict(f"{name}: one thread over two, by processor seconds", whole)


if __name__ == "__main__":
    options = arguments(__doc__, quick="no pisa", data="nltcs, adult and pisa").parse_args()
    finish(rows(options.data, options.size), "phases", options)

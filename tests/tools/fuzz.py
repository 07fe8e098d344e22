"""Bad files of every kind that the library reads: a typed error or a valid object each time, soon, and in little memory.

    python tests/tools/fuzz.py [--count N] [--smoke] [--seed S] [--jobs N] [--only KIND ...] [--case N] [--keep FOLDER]
        [--json FILE]

Sound files (``fuzzed/seeds.py``) are damaged in ways that know their structure (``fuzzed/damage.py``), then read and used as the
library's commands do (``fuzzed/readers.py``). What must not happen: an error that is none of ``vertimrf/errors.py``, or not one
plain sentence; a crash; more time or memory than these bars, which are wider than "a second" and "twice the plan's size":

- Time: the lesser of core seconds and seconds on the clock, of reading and using a file, may be 2 s beyond twice the work
  that a plan's forecast states for what the case goes on to do (nothing where it only reads). A hang is 150 s on the clock: more than
  two child processes get that read files of statistics. What composing the events of a sound plan gave is kept from case to case; what damage changes in them is composed anew.
- Memory: the peak above what was held before may be 48 MiB, and 30 bytes per byte of the file (Python's objects of JSON), beyond
  twice what is stated: by a plan's forecast, a message's largest size, a model's size; or, for a table, 200 bytes per byte of it
  once inflated (a column takes kilobytes, however few its cells); or what the largest sound file of the kind took. What composes
  events may take the accountant's grids besides, 600 MiB, which are of one largest size whatever the plan.
- What states more than 600 MB or 3 core seconds of work is read, and counted as "valid, too large to try".

Every case follows from seed, kind and number, but for keys, seals and noise, which are the system's: so the bytes of what went
wrong are kept, with the name of the sound file that they were.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import logging
import multiprocessing
import multiprocessing.connection
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from benchmarks.verdict import FULL, arguments, at_most, finish
from tools.fuzzed.readers import KINDS, Use
from tools.fuzzed.seeds import Seeds, build
from vertimrf.errors import VertiMRFError
from vertimrf.plan import plan as plan_module
from vertimrf.privacy import ledger as ledger_module

# A case may take so long, in core seconds and on the clock, beyond twice what its file states.
SECONDS = 2.0
# After so long on the clock a worker is ended: the case hangs. Twice as long as tables/apart.py gives its child, and more.
HANGS = 150.0
# What a process may take to load libraries and compile kernels, besides.
STARTS = 240.0
# Bytes that a case may take beyond twice what its file states, or what a sound one takes; what Python makes of a byte of JSON is
# 20 or more.
SPARE_BYTES = 48 << 20
BYTES_PER_BYTE = 30
# What composing events takes besides, whatever they are: the accountant's grids have a largest size.
GRIDS = 600 << 20
WITH_EVENTS = (
    "plan",
    "model",
    "ledger",
    "inspect",
    "schema",
    "schema json",
    "open schema",
    "domain record",
)
# What a worker may take at all: beyond it, an allocation fails.
MAX_BYTES = 6 << 30
LONGEST_SENTENCE = 1500
# One of so many cases of a worker is preceded by a look for garbage.
TIDY = 200


@dataclass(frozen=True)
class Wrong:
    """What must not happen.

    Attributes:
        kind: of file.
        case: its number.
        what: "untyped", "sentence", "slow", "memory", "crash" or "hang".
        words: more on it.
        file: the sound file that was damaged.
        kept: where the damaged bytes are.
    """

    kind: str
    case: int
    what: str
    words: str
    file: str
    kept: str


@dataclass
class Counts:
    """Outcomes of a run.

    Attributes:
        outcomes: how many, by kind of file and outcome: "valid", "valid, too large to try", or the error's type.
        wrong: what must not happen, one by one.
        seconds: core seconds of the slowest case by kind, beyond what its file states.
        bytes: memory of the largest case by kind.
        left: cases that an interruption left out.
    """

    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    wrong: list[Wrong] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    bytes: dict[str, float] = field(default_factory=dict)
    left: int = 0

    @property
    def count(self):
        """Cases."""
        return sum(self.outcomes.values())


def fuzz(
    count,
    seed=0,
    *,
    jobs=None,
    only=None,
    keep=None,
    case=None,
    seeds=None,
):
    """Damage files and read them, in processes of their own.

    Args:
        count: how many, shared out to the kinds.
        seed: of the damage.
        jobs: processes; default one a core.
        only: kinds; default all.
        keep: folder for what went wrong; default a new one, which stays if anything did.
        case: this case of each kind alone.
        seeds: folder of sound files; default a new one, which goes.
    """
    kinds = [kind for kind in KINDS if only is None or kind.name in only]
    whole = sum(kind.share for kind in kinds)
    cases = [
        (kind.name, i) for kind in kinds for i in range(max(round(count * kind.share / whole), 1))
    ]
    if case is not None:
        cases = [(kind.name, case) for kind in kinds]
    np.random.default_rng(seed).shuffle(cases)
    jobs = min(jobs or os.cpu_count() or 1, len(cases))
    kept = Path(tempfile.mkdtemp(prefix="fuzz-")) if keep is None else keep
    kept.mkdir(parents=True, exist_ok=True)
    counts = Counts()
    with tempfile.TemporaryDirectory(
        prefix="seeds-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None
    ) as temporary:
        folder = seeds or build(Path(temporary)).folder
        slots = [_Worker(folder, Path(temporary), kept, seed, cases[i::jobs]) for i in range(jobs)]
        try:
            while any(slot.process is not None for slot in slots):
                multiprocessing.connection.wait(
                    [slot.results for slot in slots if slot.process is not None], timeout=1.0
                )
                for slot in slots:
                    slot.collect(counts)
        except KeyboardInterrupt:
            # A second signal would lose what was found.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            counts.left = len(cases) - counts.count
            for slot in slots:
                slot.end()
    if keep is None and not any(kept.iterdir()):
        kept.rmdir()
    return counts


class _Worker:
    """A process, started again where it was ended."""

    def __init__(self, folder, scratch, kept, seed, cases):
        self._rest = (folder, scratch, kept, seed)
        self._cases = list(cases)
        self._done = 0
        self._start()

    def _start(self):
        context = multiprocessing.get_context("spawn")
        self.results, writer = context.Pipe(duplex=False)
        self._last = time.monotonic() + STARTS
        self._ready = False
        self.process = context.Process(
            target=_work, args=(*self._rest, self._cases[self._done :], writer), daemon=True
        )
        self.process.start()
        writer.close()

    def collect(self, counts):
        """What has come since, and whether the process still lives."""
        if self.process is None:
            return
        ended = False
        try:
            while self.results.poll():
                result = self.results.recv()
                self._last = time.monotonic()
                if result is None:
                    self._ready = True
                else:
                    _count(counts, *result)
                    self._done += 1
        except EOFError:
            ended = True
        if ended and not self._ready:
            raise RuntimeError("Sound files are refused, or a process cannot start; see above.")
        if not ended and time.monotonic() - self._last > HANGS:
            self.process.kill()
            self._lost(counts, "hang", f"more than {HANGS:g} s")
        elif ended:
            self.process.join()
            if self._done < len(self._cases):
                self._lost(counts, "crash", f"exit code {self.process.exitcode}")
            else:
                self.process = None

    def end(self):
        """Stop, and leave no draft."""
        if self.process is not None:
            self.process.kill()
            self.process.join()
            for path in self._rest[2].glob(f"{self.process.pid}-*"):
                path.unlink()

    def _lost(self, counts, what, words):
        self.process.join()
        kind, case = self._cases[self._done]
        left = [path for path in self._rest[2].glob(f"{self.process.pid}-*")]
        kept, name = "", ""
        if left:
            name = left[0].name.split("-", 1)[1]
            kept = str(
                left[0].rename(left[0].with_name(f"{what}-{kind}-{case}-{name}".replace(" ", "_")))
            )
        counts.outcomes[kind, what] += 1
        counts.wrong.append(Wrong(kind, case, what, words, name, kept))
        self._done += 1
        self.process = None
        if self._done < len(self._cases):
            self._start()


def _count(
    counts,
    kind,
    case,
    outcome,
    seconds,
    size,
    wrong,
):
    counts.outcomes[kind, outcome] += 1
    counts.wrong += wrong
    counts.seconds[kind] = max(counts.seconds.get(kind, 0.0), seconds)
    counts.bytes[kind] = max(counts.bytes.get(kind, 0.0), size)


def _work(
    folder,
    scratch,
    kept,
    seed,
    cases,
    results,
):
    """A process: one case after the other."""
    # The system's memory is given back at once, so that what a case takes shows.
    ctypes.CDLL(None).mallopt(-3, 1 << 23)
    logging.getLogger("vertimrf").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    os.environ["OMP_NUM_THREADS"] = "1"
    _remember()
    seeds = Seeds(folder)
    kinds = {kind.name: kind for kind in KINDS}
    sound = _warm(seeds, {kinds[name] for name, _ in cases})
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (_status("VmSize") + MAX_BYTES, resource.RLIM_INFINITY))
    scratch = scratch / f"worker-{os.getpid()}"
    scratch.mkdir()
    gc.freeze()
    results.send(None)
    for number, (name, case) in enumerate(cases):
        if number % TIDY == 0:
            gc.collect()
        results.send(_case(seeds, kinds[name], case, seed, scratch, kept, sound[name]))
    results.close()


def _remember():
    """Keep what composing some events gave: most damage leaves a plan's events as they are."""
    for module, name in (
        (plan_module, "composed_epsilon"),
        (ledger_module, "composed_epsilon"),
        (ledger_module, "cumulative"),
    ):
        setattr(module, name, _remembering(getattr(module, name)))


def _remembering(compose):
    """A function of events that remembers its latest results."""
    kept = functools.lru_cache(256)(compose)
    return lambda events, *rest: kept(tuple(events), *rest)


def _warm(seeds, kinds):
    """Read and use every sound file a few times: kernels are compiled and libraries loaded then, and nothing is refused.

    Returns:
        The most memory that reading a sound file took, by kind, when everything was loaded.
    """
    sound = {}
    for kind in sorted(kinds, key=lambda kind: kind.name):
        for name in kind.files:
            # A child process reads files of statistics; here, nothing is loaded.
            for attempt in range(1 if kind.name == "statistics" else 3):
                with tempfile.TemporaryDirectory() as folder:
                    path = Path(folder) / name
                    path.write_bytes(seeds.path(name).read_bytes())
                    before = _reset()
                    try:
                        kind.read(path, name, Use(seeds, np.random.default_rng(attempt)))
                    except VertiMRFError:
                        # Shown with another's key, or under another plan.
                        if kind.name != "inspect":
                            raise
                    if attempt or kind.name == "statistics":
                        sound[kind.name] = max(sound.get(kind.name, 0), _status("VmHWM") - before)
    return sound


def _case(seeds, kind, case, seed, scratch, kept, sound=0):
    """Damage a file and read it."""
    rng = np.random.default_rng([seed, *kind.name.encode(), case])
    name = kind.files[case % len(kind.files)]
    data = kind.damage(seeds, rng, name, seeds.path(name).read_bytes())
    path = scratch / name
    path.write_bytes(data)
    draft = kept / f"{os.getpid()}-{name}"
    draft.write_bytes(data)
    use = Use(seeds, rng)
    wrong = []
    before = _reset()
    clock, work = time.perf_counter(), time.process_time()
    try:
        kind.read(path, name, use)
        outcome = "valid" if use.tried else "valid, too large to try"
    except VertiMRFError as error:
        outcome = type(error).__name__
        if reason := unclear(str(error)):
            wrong.append(("sentence", f"{reason}: {str(error)[:300]!r}"))
    except BaseException as error:
        outcome = "untyped"
        last = traceback.extract_tb(error.__traceback__)
        frames = [frame for frame in last if "vertimrf/" in frame.filename] or last
        at = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}"
        what = "memory" if isinstance(error, MemoryError) else "untyped"
        wrong.append((what, f"{at} {type(error).__name__}: {str(error)[:200]}"))
    seconds = min(time.perf_counter() - clock, time.process_time() - work) - 2 * use.seconds
    size = max(_status("VmHWM") - before, 0)
    if seconds > SECONDS:
        wrong.append(("slow", f"{seconds:.2f} s in {outcome}"))
    spare = SPARE_BYTES + (GRIDS if kind.name in WITH_EVENTS else 0)
    if size > spare + 2 * max(sound, use.stated) + BYTES_PER_BYTE * len(data):
        wrong.append(
            (
                "memory",
                f"{size / 1e6:.0f} MB where {use.stated / 1e6:.1f} MB are stated, in {outcome}",
            )
        )
    path.unlink(missing_ok=True)
    out = []
    for what, words in wrong:
        file = kept / f"{what}-{kind.name}-{case}-{name}".replace(" ", "_")
        file.write_bytes(data)
        out.append(Wrong(kind.name, case, what, words, name, str(file)))
    draft.unlink()
    return kind.name, case, outcome, seconds, size, out


def unclear(sentence):
    """Why an error's text is not one plain sentence; empty where it is."""
    if not sentence.strip():
        return "empty"
    if len(sentence) > LONGEST_SENTENCE:
        return f"{len(sentence)} characters"
    if not sentence.isprintable():
        return "control characters, several lines, or no text"
    return ""


def _status(name):
    """A figure of this process, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) << 10
    return 0


def _reset():
    """Start to measure the memory's peak anew, and what is held now."""
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def table(counts):
    """Outcomes by kind, for people."""
    for kind in sorted({kind for kind, _ in counts.outcomes}):
        outcomes = {outcome: n for (name, outcome), n in counts.outcomes.items() if name == kind}
        listed = ", ".join(
            f"{outcome} {n:,}" for outcome, n in sorted(outcomes.items(), key=lambda item: -item[1])
        )
        most = f"at most {counts.seconds.get(kind, 0):5.2f} s {counts.bytes.get(kind, 0) / 1e6:5.0f} MB"
        yield f"{kind:<15}{sum(outcomes.values()):>8,}  {most}  {listed}"


def verdicts(counts):
    """The figures that are held to bars."""
    by = Counter(wrong.what for wrong in counts.wrong)
    total = f"in {counts.count:,} damaged files"
    return [
        at_most(f"untyped errors {total}", by["untyped"], 0),
        at_most(f"errors that are not one plain sentence {total}", by["sentence"], 0),
        at_most(f"crashes {total}", by["crash"], 0),
        at_most(
            f"hangs, or more than two seconds beyond what is stated, {total}",
            by["hang"] + by["slow"],
            0,
        ),
        at_most(f"more than twice the memory that is stated, {total}", by["memory"], 0),
        at_most("damaged files that an interruption left out", counts.left, 0),
    ]


def main():
    parser = arguments(__doc__)
    parser.add_argument("--count", type=int, help="how many damaged files; default 100,000")
    parser.add_argument("--seed", type=int, default=0, help="of the damage")
    parser.add_argument("--jobs", type=int, help="processes; default one a core")
    parser.add_argument(
        "--only",
        action="append",
        choices=[kind.name for kind in KINDS],
        help="this kind; may be repeated",
    )
    parser.add_argument("--case", type=int, help="this case of each kind alone")
    parser.add_argument("--keep", type=Path, help="folder for what went wrong")
    options = parser.parse_args()
    options.count = options.count or (100_000 if options.size == FULL else 40)
    # What was found until then is told all the same.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    begun = time.monotonic()
    counts = fuzz(
        options.count,
        options.seed,
        jobs=options.jobs,
        only=options.only,
        keep=options.keep,
        case=options.case,
    )
    print(*table(counts), sep="\n")
    groups = {}
    for wrong in counts.wrong:
        same = wrong.words if wrong.what == "untyped" else wrong.kind
        groups.setdefault((wrong.what, same), []).append(wrong)
    for (what, _), cases in sorted(groups.items(), key=lambda item: -len(item[1])):
        first = cases[0]
        print(
            f"{what} × {len(cases)}: {first.kind}, case {first.case} ({first.file}): {first.words}\n    {first.kept}"
        )
    print(f"{counts.count:,} damaged files in {time.monotonic() - begun:.0f} s.")
    finish(verdicts(counts), "", options)


if __name__ == "__main__":
    main()

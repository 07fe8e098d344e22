"""Mutation testing: would the tests notice if the code that keeps the privacy claim were wrong?

Every mutant is one change to one file, in a copy of the package; the tests that are about that file run until one fails. A mutant
that none notices has survived: a test is missing. Mutations are mistakes that somebody could make, or once made, each a piece of
code and what takes its place. Code is compared token by token, whatever its layout. When it no longer stands in its file exactly
once, the run stops and says so: rewrite the mutation along with the code.

The golden file of the encoder takes no part: it notices every change of the hash and says nothing of what is wrong with it.
Processes are forked from one that has the libraries loaded, so that a mutant takes seconds; POSIX only. Tests run in a copy, and
compiled kernels are kept there from mutant to mutant: kernels themselves are not mutated.

    python tests/tools/mutants.py [--only TEXT ...] [--jobs N]
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import functools
import json
import multiprocessing
import os
import re
import shutil
import signal
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing import forkserver
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).resolve().parents[2]
# Loaded once, before anything is mutated.
LIBRARIES = [
    "numpy",
    "scipy.stats",
    "scipy.signal",
    "scipy.optimize",
    "numba",
    "pandas",
    "pyarrow",
    "opendp.prelude",
    "pytest",
    "hypothesis",
    "networkx",
    "cryptography.hazmat.primitives.ciphers.aead",
    "dp_accounting.pld.pld_pmf",
    "mpmath",
]
# Modules, or folders of them, whose docstrings promise what keeps the privacy claim true. Every mutation of them quotes what it breaks.
PROMISING = (
    "privacy/",
    "party/",
    "columns/private.py",
    "columns/number_range.py",
    "releases/encrypted_counts/counts.py",
    "releases/encrypted_counts/encoding.py",
    "releases/encrypted_counts/packing.py",
    "releases/encrypted_counts/lattice.py",
    "releases/encrypted_counts/positions.py",
    "keys.py",
    "message.py",
    "files/sealed.py",
    "releases/count_sketches/agreement.py",
)
# A mutant that makes the tests run longer than this has been noticed.
SECONDS = 180.0

TOKEN = re.compile(
    r"""(?P<layout>\s+|\#[^\n]*)|[rbfuRBFU]{0,2}(?:\"{3}.*?\"{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|\w+|.""",
    re.DOTALL | re.VERBOSE,
)


@functools.cache
def lexed(code):
    """Tokens of a piece of Python, each with its begin and end in the text.

    Layout, comments and the kind of quotes are left out, and commas right before a closing bracket.
    """
    tokens = [
        (one[0], one.start(), one.end()) for one in TOKEN.finditer(code) if one.lastgroup is None
    ]
    following = [*(token for token, *_ in tokens[1:]), ""]
    kept = [
        one
        for one, after in zip(tokens, following, strict=True)
        if one[0] != "," or after not in list(")]}")
    ]
    return [
        (token if '"' in token else token.replace("'", '"'), begin, end)
        for token, begin, end in kept
    ]


def places(text, code):
    """Begin and end of every place in a text that has the same tokens as a piece of code, and what stays behind the code.

    The text may have pairs of brackets besides that a formatter puts around what it breaks into lines. Where such a pair begins
    within the code and ends behind it, the place ends with the pair.
    """
    tokens, wanted = lexed(text), [token for token, *_ in lexed(code)]
    for first in (i for i, (token, *_) in enumerate(tokens) if token == wanted[0]):
        i, j, extra = first, 0, 0
        while i < len(tokens) and j < len(wanted):
            token = tokens[i][0]
            if token == wanted[j]:
                j += 1
            elif token == "(" or (token == ")" and extra):
                extra += 1 if token == "(" else -1
            else:
                break
            i += 1
        if j == len(wanted):
            rest, inner = [], 0
            while extra:
                token, begin, end = tokens[i]
                inner += {"(": 1, ")": -1}.get(token, 0)
                if inner < 0:
                    extra, inner = extra - 1, 0
                else:
                    rest.append(text[begin:end])
                i += 1
            yield tokens[first][1], tokens[i - 1][2], " ".join(["", *rest])


@functools.cache
def docstrings(text):
    """Docstrings of a module's text and of all that it defines, each in one line."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    nodes = (node for node in ast.walk(ast.parse(text)) if isinstance(node, documented))
    return [" ".join((ast.get_docstring(node) or "").split()) for node in nodes]


@dataclass(frozen=True)
class Mutation:
    """One change to one file.

    Attributes:
        name: what it does wrong.
        file: below the package.
        before: code of the file, there exactly once, however it is laid out.
        after: what takes its place.
        tests: below ``tests``, in order, the quickest to notice first, with blanks between them; node ids or files.
        promise: words of a docstring of the file that are wrong with it. Every module of :data:`PROMISING` has such a mutation.
    """

    name: str
    file: str
    before: str
    after: str
    tests: str
    promise: str = ""

    def apply(self, text):
        """The file's text, mutated.

        Raises:
            SystemExit: the code is not there, or more than once.
        """
        matches = list(places(text, self.before))
        if len(matches) != 1:
            sys.exit(
                f"Mutation {self.name!r} no longer applies: {self.file} has its code {len(matches)} times, not once."
            )
        ((begin, end, rest),) = matches
        mutated = text[:begin] + self.after.strip() + rest + text[end:]
        ast.parse(mutated)
        return mutated

    def quotes(self, text):
        """Whether the promise that it breaks stands in a docstring of the file's text."""
        return any(self.promise in words for words in docstrings(text))

    @property
    def chosen_tests(self):
        """Tests to run."""
        return self.tests.split()


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant.

    Attributes:
        name: of the mutation.
        by: the first test that failed; "time" when they took too long; empty when it survived.
        seconds: how long it took.
    """

    name: str
    by: str
    seconds: float

    @property
    def killed(self):
        """Whether a test failed, or none came to an end in time."""
        return bool(self.by)


# The mutations, a table of data.
NAMED = tuple(
    Mutation(**one)
    for one in tomllib.loads(Path(__file__).with_suffix(".toml").read_text())["mutation"]
)


def copy_project(folder):
    """A copy of what the tests need, with modification times, so that compiled kernels stay valid."""
    for name in ("vertimrf", "tests", "benchmarks", "examples", "docs"):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name)
    for name in ("pyproject.toml", "README.md"):
        shutil.copy2(ROOT / name, folder / name)


class FirstFailure:
    """A plugin that remembers the first test that fails."""

    def __init__(self):
        self.name = ""

    def pytest_runtest_logreport(self, report):
        if report.failed and not self.name:
            self.name = report.nodeid

    def pytest_collectreport(self, report):
        if report.failed and not self.name:
            self.name = f"{report.nodeid} (does not import)"


def run_tests(folder, tests, result):
    """In a process of its own: run tests of a copy until one fails; the exit code and its name go to a file."""
    os.setsid()
    out = os.open(os.devnull, os.O_WRONLY)
    os.dup2(out, 1)
    os.dup2(out, 2)
    os.chdir(folder)
    paths = (ROOT, ROOT / "tests", ROOT / "tests" / "tools")
    sys.path[:] = [folder, *(path for path in sys.path if Path(path or ".").resolve() not in paths)]
    sys.modules.pop("tools", None)
    os.environ |= {"PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1"}
    sys.dont_write_bytecode = True
    import pytest

    import vertimrf

    assert Path(vertimrf.__file__).is_relative_to(folder), vertimrf.__file__
    failure = FirstFailure()
    arguments = ["-x", "-q", "-p", "no:cacheprovider", "--no-header"]
    if all("::" in test for test in tests):
        # A test that is named runs, slow or not.
        arguments += ["-m", "not bars and not elsewhere"]
    arguments += [f"tests/{test}" for test in tests]
    code = int(pytest.main(arguments, plugins=[failure]))
    Path(result).write_text(json.dumps([code, failure.name]))


class Field:
    """Copies of the project in which mutants are tried, some at a time.

    Args:
        folder: where the copies go.
        jobs: how many.
    """

    def __init__(self, folder, jobs):
        self._processes = multiprocessing.get_context("forkserver")
        self._processes.set_forkserver_preload(LIBRARIES)
        # One thread each: on a busy machine, threads that wait for one another take many times as long. Numba reads it as it
        # loads; in this process it may have its threads already.
        before = os.environ.get("NUMBA_NUM_THREADS")
        os.environ["NUMBA_NUM_THREADS"] = "1"
        forkserver.ensure_running()
        del os.environ["NUMBA_NUM_THREADS"]
        if before is not None:
            os.environ["NUMBA_NUM_THREADS"] = before
        self._free = SimpleQueue()
        self._jobs = jobs
        for i in range(jobs):
            copy_project(folder / str(i))
            self._free.put(folder / str(i))

    def check(self, tests):
        """The tests pass on the unmutated copies, whose kernels are then compiled.

        Raises:
            SystemExit: one fails.
        """
        copies = [self._free.get() for _ in range(self._jobs)]
        with ThreadPoolExecutor(self._jobs) as threads:
            for by, _ in threads.map(lambda copy: self._run(copy, tests, 20 * SECONDS), copies):
                if by:
                    sys.exit(f"Without any mutation {by} fails: mend that first.")
        for copy in copies:
            self._free.put(copy)

    def try_out(self, mutation):
        """Whether the tests notice a mutation."""
        copy = self._free.get()
        path = copy / "vertimrf" / mutation.file
        text, status = path.read_text(), path.stat()
        try:
            path.write_text(mutation.apply(text))
            # Python goes by size and second of modification.
            for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.cpython*.pyc"):
                compiled.unlink()
            by, seconds = self._run(copy, mutation.chosen_tests, SECONDS)
        finally:
            path.write_text(text)
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
            self._free.put(copy)
        return Outcome(mutation.name, by, seconds)

    def _run(self, copy, tests, seconds):
        """Name of the first failing test, or "", and how long it took."""
        start = time.perf_counter()
        result = copy / "result.json"
        result.unlink(missing_ok=True)
        process = self._processes.Process(
            target=run_tests, args=(str(copy), list(tests), str(result))
        )
        process.start()
        process.join(seconds)
        with contextlib.suppress(ProcessLookupError, TypeError):
            # With whatever processes the tests have started: it leads a session of its own.
            os.killpg(process.pid, signal.SIGKILL)
        late = process.is_alive()
        process.join()
        took = time.perf_counter() - start
        if late:
            return "time", took
        if not result.exists():
            return f"the interpreter ended with {process.exitcode}", took
        code, name = json.loads(result.read_text())
        return ("" if code == 0 else name or f"pytest ended with {code}"), took


def chosen(options):
    """The mutations that the command line asks for; all are applied to their files, so that none is stale."""
    for mutation in NAMED:
        mutation.apply((ROOT / "vertimrf" / mutation.file).read_text())
    return [
        mutation
        for mutation in NAMED
        if not options.only or any(text in mutation.name for text in options.only)
    ]


def main():
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", action="append", help="mutations whose name has this text; may be repeated"
    )
    parser.add_argument("--jobs", type=int, default=1, help="mutants at a time")
    options = parser.parse_args()
    mutations = chosen(options)
    begun = time.perf_counter()
    outcomes = []

    with tempfile.TemporaryDirectory() as folder:
        field = Field(Path(folder), options.jobs)
        field.check(sorted({test for mutation in mutations for test in mutation.chosen_tests}))
        print(
            f"{len(mutations)} mutants; the tests pass without, after {time.perf_counter() - begun:.0f} s.",
            flush=True,
        )
        with ThreadPoolExecutor(options.jobs) as threads:
            for outcome in threads.map(field.try_out, mutations):
                outcomes.append(outcome)
                said = f"killed by {outcome.by}" if outcome.killed else "SURVIVED"
                print(f"{outcome.seconds:5.1f} s  {said}: {outcome.name}", flush=True)
    survivors = [outcome.name for outcome in outcomes if not outcome.killed]
    print(
        f"{len(outcomes)} tried of {len(mutations)}, {len(outcomes) - len(survivors)} killed, {len(survivors)} survived."
    )
    sys.exit(1 if survivors else 0)


if __name__ == "__main__":
    main()

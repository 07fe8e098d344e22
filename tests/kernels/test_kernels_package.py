"""What importing and warming up the kernels costs: NumPy and Numba, and no compilation left for later."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import vertimrf

# A line by which kernels, or what is in them, come into a file.
IMPORTS = re.compile(r"^\s*(from|import)\s.*\bkernels\b", re.MULTILINE)

LIST_PACKAGES = """
import json, sys
{imports}
files = {{name.partition(".")[0]: getattr(m, "__file__", None) or "" for name, m in list(sys.modules.items())}}
names = {{name for name, file in files.items() if "site-packages" in file}} - {{"vertimrf"}}
print(json.dumps(sorted(names)))
"""

COUNT_COMPILATIONS = """
import json, sys
import numpy as np, pyarrow as pa
from vertimrf.utility.distances import tvd
from vertimrf import PlanOptions, RunOptions, draft_schema, kernels, synthesize
from vertimrf.tables.ids import record_digests
modules = [m for name, m in sys.modules.items() if name.startswith("vertimrf.kernels.")]
def compiled():
    return {f"{m.__name__}.{n}": len(f.signatures) for m in modules for n, f in vars(m).items() if hasattr(f, "signatures")}
import_time = sum(compiled().values())
kernels.warmup()
before = compiled()
rng = np.random.default_rng(0)
n, d = 3000, 8
# Chains of dependence between and within parties, so that the model has separators, and larger local marginals.
codes = np.cumsum(rng.random((d, n)) < 0.3, axis=0) % 4
frozen = np.arange(n)
frozen.flags.writeable = False
for ids in (frozen, frozen.astype(np.uint64), frozen.astype(str), frozen.astype("S")):
    record_digests(bytes(16), ids)
for ids, encoder in ((frozen, "scheduled-pairs"), (frozen.astype(str), "count-sketch")):
    columns = {"id": ids} | {f"a{i}": row for i, row in enumerate(codes)}
    planning = PlanOptions(encoder=encoder, message_bytes=300_000, tau=200)
    table = pa.table(columns)
    schema = draft_schema(table, "id").schema.split((d // 2, d // 2))
    trial = synthesize([table], "id", 20.0, schema=schema, planning=planning, options=RunOptions(seed=1))
trial.result.model.marginals([(0, d - 1), (0, 1, d - 1)])
tvd(codes.astype(np.uint16), trial.result.codes, (4,) * d, ways=(2,), marginals=10)
after = compiled()
print(json.dumps([import_time, sorted(name for name in after if after[name] != before.get(name, 0))]))
"""

TWICE = """
import json, os
from vertimrf.kernels.warm import JOBS, compile_missing, missing
if __name__ == "__main__":
    jobs = [job for job in JOBS if job.name in ("estimates from scheduled pairs", "count sketches")]
    told = []
    before = {job.name for job in missing()}
    compile_missing(jobs, lambda done, of: told.append([done, of]))
    after = {job.name for job in missing()}
    print(json.dumps([len(before) == len(JOBS), sorted(before - after), told]))
"""

REFUSE = """
import errno, tempfile
def refuse(*given, **options):
    raise OSError(errno.EROFS, "Read-only file system")
tempfile.TemporaryFile = refuse  # as if the folder, which root may always write to, were read-only
"""
READ_ONLY = """
import json, sys, threading
from numba.core import event
import numpy as np
from vertimrf.kernels import proximal_step, warm
with event.install_recorder("numba:compile") as recorder:
    warm.load(["count-sketch"])
    threading.enumerate()[-1].join()
    ready = all(kernel.signatures for job in warm._of(["count-sketch"]) for kernel, _ in job.kernels)
    loaded = ready, len(recorder.buffer), "numba.np.arrayobj" in sys.modules
    proximal_step.dot(np.ones(2), np.ones(2))
print(json.dumps([loaded, len(recorder.buffer) > 0, warm.missing()]))
"""

UNCOMPILED = """
from vertimrf import Sketch
left, right = (Sketch.encode(range(first, first + 60), bytes(32), keys=16) for first in (0, 20))
print(left.intersection(right)[0])
"""


def run(words, **environment):
    environment = {**os.environ, **environment}
    done = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, env=environment, check=True
    )
    return json.loads(done.stdout)


def test_kernels_import_numpy_numba_and_platformdirs_alone():
    alone, ours = (
        run(["-c", LIST_PACKAGES.format(imports=f"import {names}")])
        for names in ("numpy, numba, platformdirs", "vertimrf.kernels")
    )
    assert ours == alone


def test_kernels_that_round_freely_are_inlined_in_their_callers():
    """Else a first run and later ones, which load them from the cache, differ in last bits."""
    free, called = {}, set()
    for path in Path(vertimrf.__file__).parent.glob("kernels/*.py"):
        for function in ast.walk(ast.parse(path.read_text())):
            if isinstance(function, ast.FunctionDef):
                decorators = " ".join(map(ast.unparse, function.decorator_list))
                if "fastmath" in decorators:
                    free[function.name] = "forceinline" in decorators
                if decorators.startswith(("kernel", "callee")):
                    calls = [n.func for n in ast.walk(function) if isinstance(n, ast.Call)]
                    called |= {f.id for f in calls if isinstance(f, ast.Name)}
    assert len(free) > 10
    assert {name for name in called if not free.get(name, True)} == set()


def test_callees_are_called_by_kernels_alone():
    """From Python a call would crash."""

    def wrapped(function, *names):
        decorators = getattr(function, "decorator_list", ())
        return any(ast.unparse(d).partition("(")[0] in names for d in decorators)

    root = Path(vertimrf.__file__).parents[1]
    sources = {
        path: ast.parse(text)
        for folder in ("vertimrf", "tests", "benchmarks", "examples")
        for path in (root / folder).rglob("*.py")
        # No other file can import one.
        if IMPORTS.search(text := path.read_text()) or path.parent.name == "kernels"
    }
    callees = {
        (path.stem, function.name)
        for path, tree in sources.items()
        if path.parent.name == "kernels"
        for function in tree.body
        if wrapped(function, "callee")
    }
    assert len(callees) > 40
    found = set()
    for path, tree in sources.items():
        modules = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                *_, folder, module = f".{node.module}".split(".")
                names = {name.name: name.asname or name.name for name in node.names}
                if module == "kernels":
                    modules |= {known: name for name, known in names.items()}
                elif folder == "kernels":
                    found |= {(module, name) for name in names} & callees
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                found |= {(modules.get(node.value.id), node.attr)} & callees
        if path.parent.name == "kernels":
            for statement in tree.body:
                if not wrapped(statement, "kernel", "callee"):
                    names = {n.id for n in ast.walk(statement) if isinstance(n, ast.Name)}
                    found |= {(path.stem, name) for name in names} & callees
    assert not found


def test_warmup_compiles_all_that_a_run_needs_and_imports_compile_nothing():
    assert run(["-c", COUNT_COMPILATIONS]) == [0, []]


def test_nothing_is_missing_without_a_cache_to_fill():
    script = "import json; from vertimrf.kernels.warm import missing; print(json.dumps(missing()))"
    assert run(["-c", script], VERTIMRF_JIT_CACHE="0") == []


@pytest.mark.slow
def test_other_processes_fill_the_cache_and_one_that_can_only_be_read_is_read(tmp_path):
    """Two kinds of kernels are compiled into a fresh cache. In a container's image those are loaded, without what compiling
    imports, and all else is not kept."""
    cache, script = tmp_path / "cache", tmp_path / "script.py"
    script.write_text(TWICE)
    # A script has its own folder on its path, where `python -c` has this one: both are to import the same files.
    path = os.pathsep.join(
        [str(Path(vertimrf.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    )
    told = run([str(script)], NUMBA_CACHE_DIR=str(cache), PYTHONPATH=path)
    assert told == [True, ["count sketches", "estimates from scheduled pairs"], [[1, 2], [2, 2]]]
    before = sorted(path.name for path in cache.rglob("*"))
    assert any(name.endswith(".nbc") for name in before)
    read = run(["-c", REFUSE + READ_ONLY], NUMBA_CACHE_DIR=str(cache), NUMBA_NUM_THREADS="2")
    assert read == [[True, 0, False], True, []]
    assert sorted(path.name for path in cache.rglob("*")) == before


def test_kernels_are_kept_outside_the_package_and_by_the_content_of_all_sources(tmp_path):
    """Beside the source they would outlive it. Numba compares a kernel's own file alone, not those of its callees."""
    package = Path(vertimrf.__file__).parent
    copy = tmp_path / "copy" / "vertimrf"
    shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__"))
    script = "import json; from vertimrf.kernels import cache, eliminate as e; print(json.dumps([str(cache.folder()), str(e.forest._cache.index)]))"

    def told(root, **more):
        root, cache = str(root), str(tmp_path / "cache")
        return run(
            ["-P", "-c", script],
            **{"PYTHONPATH": root, "NUMBA_CACHE_DIR": "", "XDG_CACHE_HOME": cache} | more,
        )

    kept, index = told(package.parent)
    assert kept == str(Path(index).parent)
    assert not Path(kept).is_relative_to(package)
    if sys.platform == "linux":
        assert Path(kept).parent == tmp_path / "cache" / "vertimrf"
    named = Path(told(copy.parent, NUMBA_CACHE_DIR=str(tmp_path / "named"))[0])
    assert named == tmp_path / "named" / Path(kept).name
    callee = copy / "kernels" / "prf.py"
    callee.write_text(callee.read_text() + "# Another content.\n")
    assert told(copy.parent)[0] != kept


@pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.0.0", reason="its unsigned integers become floats"
)
def test_without_compilation_kernels_run_as_python_without_warnings():
    interpreted = run(["-W", "error", "-c", UNCOMPILED], NUMBA_DISABLE_JIT="1")
    assert interpreted == pytest.approx(run(["-c", UNCOMPILED]))


@pytest.mark.parametrize(
    "before, environment, sentence",
    [
        ("", {"NUMBA_CACHE_DIR": "/dev/null/cache"}, "cannot be kept: /dev/null/cache/kernels-"),
        ("", {"VERTIMRF_JIT_CACHE": "0"}, "because VERTIMRF_JIT_CACHE is 0"),
        ("", {"NUMBA_DISABLE_JIT": "1"}, "because NUMBA_DISABLE_JIT is set"),
        (
            REFUSE,
            {"NUMBA_CACHE_DIR": "empty"},
            "does not have all compiled kernels and cannot be written to",
        ),
    ],
)
def test_a_place_that_keeps_no_kernels_is_said_once(tmp_path, before, environment, sentence):
    if environment.get("NUMBA_CACHE_DIR") == "empty":
        environment = {"NUMBA_CACHE_DIR": str(tmp_path)}
    warmup = "from vertimrf.cli import main; main(['warmup'])"
    # What every command does that needs kernels.
    other = "from vertimrf.cli.common import compile_kernels; compile_kernels('party')"
    for work, status in ((warmup, 2), (other, 0)):
        done = subprocess.run(
            [sys.executable, "-c", f"{before}\n{work}"],
            capture_output=True,
            text=True,
            env={**os.environ, **environment},
        )
        assert (done.returncode, done.stderr.count(sentence)) == (status, 1), done.stderr
        assert "Traceback" not in done.stderr

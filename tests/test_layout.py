"""Who may import what: the folders show who may see what, and this holds them to it (docs/architecture.md)."""

import ast
import functools
import graphlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import vertimrf

ROOT = Path(vertimrf.__file__).parent
# Rooms whose imports within the package are all named.
ONLY = {
    "kernels": {"kernels", "arrays"},
    "files": {"arguments", "files", "arrays", "errors"},
    "keys": {"arguments", "arrays", "files", "errors"},
    "model": {"arguments", "model", "arrays", "files", "kernels", "errors"},
    "privacy": {"arguments", "privacy", "arrays", "errors", "files"},
    "columns": {"arguments", "columns", "arrays", "privacy", "errors"},
    "utility": {"utility", "arrays", "columns", "kernels", "errors"},
    "flower": {"flower", "runs", "errors"},
    "adapters": {
        "adapters",
        "arrays",
        "columns",
        "model",
        "errors",
        "synthesizer",
        "plan",
        "privacy",
    },
}
# Rooms that must not import others.
NEVER = {
    "server": {"tables", "party", "trial", "report", "cli", "demo"},
    "party": {"server", "trial", "report", "cli", "demo"},
    "cluster": {"server", "trial", "report", "cli", "demo"},
    "report": {"party", "cli", "demo"},
    "plan": {"server", "party", "tables", "model", "kernels"},
    "releases": {"server", "party", "tables", "runs", "trial", "report", "cli", "demo"},
    "message": {"server", "party", "tables"},
    "tables": {"server", "party"},
    "runs": {"trial", "report", "cli", "demo"},
}
# The paper's own encoders and estimators serve comparison: only where encoders are told apart may they be named.
PUBLISHED = ("releases.shared_keys", "releases.randomised_responses")
PUBLISHED_IMPORTERS = {
    "cli/bench.py",
    "releases/encoder.py",
}


# Rooms from the lowest to the highest. A room imports lower ones, except those of UPWARDS: a plan holds a release.
ORDER = (
    *(
        "arrays",
        "errors",
        "arguments",
        "progress",
        "__init__",
        "kernels",
        "files",
        "keys",
        "privacy",
        "model",
    ),
    *("columns", "utility", "plan", "options", "releases", "message", "tables", "sketch", "party"),
    *("server", "cluster", "evaluation", "named_model", "trial", "synthesizer", "adapters", "runs"),
    *("flower", "report", "demo", "cli", "__main__"),
)
UPWARDS = {("plan", "releases")}
LONGEST_FILE, MOST_MODULES = 600, 14


@functools.cache
def imports(path):
    """Modules of the package that a file imports anywhere in it, as paths below the package with dots."""
    return list(_imports(path))


def _imports(path):
    package = path.relative_to(ROOT).parts[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = [
                *package[: len(package) - node.level + 1],
                *(node.module.split(".") if node.module else []),
            ]
            for name in node.names:
                yield ".".join([*base, name.name])
        else:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not any(name.split(".")[0] == "vertimrf" for name in names), (
                f"{path}: import relatively"
            )


def loads(root):
    """By module below a folder, those that it imports anywhere in it, but for those that are only for types."""
    modules = {path.relative_to(root).with_suffix("").parts: path for path in root.rglob("*.py")}
    out = {}
    for module, path in modules.items():
        waiting, found = [ast.parse(path.read_text())], set()
        while waiting:
            node = waiting.pop()
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
                continue
            waiting += ast.iter_child_nodes(node)
            if not isinstance(node, ast.ImportFrom):
                continue
            base = tuple((node.module or "").split(".")) if node.module else ()
            if node.level:
                base = (*module[: len(module) - node.level], *base)
            elif base[:1] == (root.name,):
                base = base[1:]
            else:
                continue
            for name in node.names:
                found.add((*base, name.name) if (*base, name.name) in modules else base)
        out[module] = {one if one in modules else (*one, "__init__") for one in found}
    return out


FILES = sorted(ROOT.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_rooms_import_only_what_they_may(path):
    where = path.relative_to(ROOT)
    room = where.parts[0] if len(where.parts) > 1 else where.stem
    imported = {name.split(".")[0] for name in imports(path)}
    assert imported <= ONLY.get(room, imported), f"{room} imports {imported - ONLY[room]}"
    assert not imported & NEVER.get(room, set())
    # What a party encodes with, and the server estimates with, is the other's to load.
    loaded = {
        part for name in imports(path) if name.startswith("releases.") for part in name.split(".")
    }
    assert not (room == "server" and "encoding" in loaded)
    assert not (room in ("party", "cluster") and "estimation" in loaded)
    if ".".join(where.parts[:2]) not in PUBLISHED and str(where) not in PUBLISHED_IMPORTERS:
        assert not any(name.startswith(PUBLISHED) for name in imports(path))


@pytest.mark.parametrize(
    "modules, absent",
    [
        (
            "vertimrf.plan.planner, vertimrf.message",
            {"numba", "pyarrow", "pandas", "vertimrf.tables"},
        ),
        ("vertimrf.server.server", {"pyarrow", "pandas", "vertimrf.tables", "vertimrf.party"}),
        ("vertimrf.party.party", {"vertimrf.server"}),
        (
            "vertimrf.runs.server_run, vertimrf.runs.exchange",
            {"pyarrow", "pandas", "vertimrf.tables", "vertimrf.party"},
        ),
        ("vertimrf.runs.party_run", {"vertimrf.server"}),
        # Half a second to a second each.
        (
            "vertimrf.trial, vertimrf.synthesizer",
            {
                "scipy.stats",
                "scipy.signal",
                "scipy.optimize",
                "sklearn",
                "pandas",
                "matplotlib",
                "jinja2",
                "opendp",
            },
        ),
        ("vertimrf.report.page", {"matplotlib", "jinja2", "pandas"}),
        (
            "vertimrf",
            {
                "numba",
                "numpy",
                "scipy",
                "pyarrow",
                "pandas",
                "opendp",
                "mbi",
                "jax",
                "vertimrf.adapters",
            },
        ),
        ("vertimrf.synthesizer, vertimrf.adapters.linear", {"mbi", "jax", "snsynth", "polars"}),
        # What carries files between machines can load neither tables nor what reads them.
        (
            "vertimrf.flower.client_app",
            {"numba", "pyarrow", "vertimrf.party", "vertimrf.tables", "vertimrf.runs.party_run"},
        ),
    ],
)
def test_what_a_role_imports_leaves_other_roles_unloaded(modules, absent):
    if "flower" in modules:
        pytest.importorskip("flwr")
    code = f"import sys, {modules}\nprint(*sorted({absent!r} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []


def test_a_command_keeps_pandas_and_a_translator_of_fortran_out_of_its_process():
    code = (
        "import sys, pyarrow\nfrom vertimrf.__main__ import run\nsys.argv = ['vertimrf', '--version']\n"
        "try:\n    run()\nexcept SystemExit:\n    import scipy.special\n"
        "    print(pyarrow.array([1, None]).null_count, {'pandas', 'numpy.f2py.f2py2e'} & {*sys.modules})"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == "1 set()"


@pytest.mark.parametrize("root", [ROOT, ROOT.parent / "benchmarks"], ids=lambda root: root.name)
def test_no_modules_import_each_other(root):
    graphlib.TopologicalSorter(loads(root)).prepare()


def test_rooms_import_lower_ones():
    rooms = {(one[0], other[0]) for one, others in loads(ROOT).items() for other in others}
    assert {room for pair in rooms for room in pair} <= set(ORDER)
    assert {(a, b) for a, b in rooms if ORDER.index(a) < ORDER.index(b)} == UPWARDS


def test_files_are_short_and_few_stand_outside_a_room():
    lines = {path: path.read_text().count("\n") for path in FILES}
    assert max(lines.values()) <= LONGEST_FILE, max(lines, key=lines.__getitem__)
    assert len(list(ROOT.glob("*.py"))) <= MOST_MODULES


@pytest.mark.skipif(not (ROOT.parent / "docs").is_dir(), reason="installed without its pages")
def test_the_way_of_a_value_is_ten_short_functions():
    page = (ROOT.parent / "docs" / "architecture.md").read_text()
    way = re.findall(r"^\d+\. `(\w+)` \(`([\w/]+\.py)`\)", page, re.MULTILINE)
    assert len(way) == 10
    for name, file in way:
        (found,) = [
            node
            for node in ast.walk(ast.parse((ROOT / file).read_text()))
            if isinstance(node, ast.FunctionDef) and node.name == name
        ]
        assert found.end_lineno - found.lineno < 40, name

"""Every script runs at its smallest size: ``--smoke`` of those under benchmarks/, as they stand those under examples/.

Each ends well and writes rows that are read back. At this size no figure is held to a bar: whether bars hold is asked by
``python benchmarks/bars.py``.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import vertimrf
from benchmarks.verdict import Verdict

ROOT = Path(vertimrf.__file__).parents[1]
FOLDER = ROOT / "benchmarks"
# Programs that other tests call.
ELSEWHERE = {
    "bars": "benchmarks/test_verdict.py",
    "peers": "benchmarks/test_peers.py",
    "results": "benchmarks/test_results.py",
    "size": "test_size.py",
    "speed/plots": "cli/test_bench.py",
}
SCRIPTS = sorted(
    {
        str(path.relative_to(FOLDER).with_suffix("")).removesuffix("/__main__")
        for path in FOLDER.rglob("*.py")
        if path.parent.name != "peers" and 'if __name__ == "__main__":' in path.read_text()
    }.difference(ELSEWHERE)
)
# What some need beside the package's own dependencies.
NEEDED = {
    "speed/larger": "distributed",
    "speed/network": "flwr",
    "speed": "pytest_benchmark",
}
EXAMPLES = {
    "aim_through_opendp.py": "test_examples.py",
    "attack_published.py": "privacy/test_attack.py",
    "every_role.py": "test_examples.py",
    "mst_through_mbi.py": "test_examples.py",
    "notebook.ipynb": "test_examples.py",
    "sketch_in_arrow.py": "test_examples.py",
    "sketch_in_polars.py": "test_examples.py",
    "flower": "flower/test_network.py",
    "journeys/clinic.py": "test_journeys.py",
    "journeys/diabetes_registry.py": "test_journeys.py",
}


def smoke(name, folder):
    path = FOLDER / name
    words = ["-m", f"benchmarks.{name}"] if path.is_dir() else [f"benchmarks/{name}.py"]
    return subprocess.run(
        [sys.executable, *words, "--smoke", "--json", str(folder / "rows.json")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=1500,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_runs_at_its_smallest_size(name, tmp_path):
    if name in NEEDED:
        pytest.importorskip(NEEDED[name])
    done = smoke(name, tmp_path)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "no bar is held" in done.stdout
    rows = [Verdict(**row) for row in json.loads((tmp_path / "rows.json").read_text())]
    assert rows
    assert all(isinstance(row.name, str) and row.name for row in rows)
    assert all(row.value is None or isinstance(row.value, int | float) for row in rows)
    assert all(row.holds is None for row in rows)
    assert any(row.value is not None for row in rows)


def test_no_example_is_left_out():
    examples = {
        str(path.relative_to(ROOT / "examples")) for path in (ROOT / "examples").rglob("*.py")
    }
    # What types the journeys' commands is no example by itself; flower/ is an app.
    assert examples - {"journeys/shown.py"} | {"notebook.ipynb", "flower"} == set(EXAMPLES)
    for name, test in {**ELSEWHERE, **EXAMPLES}.items():
        assert Path(name).stem in (ROOT / "tests" / test).read_text().lower(), (
            f"tests/{test} does not call {name}"
        )

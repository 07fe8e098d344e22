"""The examples run as they stand, where what they need is installed."""

import importlib
import warnings
from pathlib import Path

import pytest

import vertimrf

FOLDER = Path(vertimrf.__file__).parents[1] / "examples"


@pytest.fixture(autouse=True)
def from_the_folder(monkeypatch):
    if not FOLDER.is_dir():
        pytest.skip("installed without its examples")
    monkeypatch.syspath_prepend(FOLDER)


def peer(version):
    """Skip without that version of mbi."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mbi = pytest.importorskip("mbi")
    if hasattr(mbi.estimation, "MirrorDescent") != (version == 2):
        pytest.skip(f"mbi is not version {version}")


def test_a_deployment_in_python(capsys):
    result = importlib.import_module("every_role").main()
    assert result.ledger.label.private
    assert result.warnings == ()
    rows = result.table.to_pandas()
    assert list(rows) == ["age", "smoker", "claims"]
    # Who claims twice or more smokes: known at different parties, and 3,500 to 1,500 records against noise of a hundred.
    assert rows.loc[rows["claims"] >= 2, "smoker"].mean() > 0.8
    assert rows.loc[rows["claims"] < 2, "smoker"].mean() < 0.2
    assert "fingerprint" in capsys.readouterr().out


def test_mst_through_mbi(capsys):
    peer(2)
    importlib.import_module("mst_through_mbi").main(["--epsilon", "5"])
    out = capsys.readouterr().out
    assert "Total: epsilon 5.0000" in out or "Total: epsilon 4.99" in out
    assert "synthetic rows by vertimrf.adapters.mbi2.Estimator" in out
    distances = [
        float(line.rsplit(" ", 1)[1]) for line in out.splitlines() if "total variation" in line
    ]
    # Attributes share a hidden number: pasted together as independent they would be 0.3 off and more.
    assert len(distances) == 10
    assert max(distances) < 0.25


def test_aim_through_opendp(capsys):
    peer(1)
    pytest.importorskip("polars")
    importlib.import_module("aim_through_opendp").main([])
    assert "fitted by vertimrf.adapters.mbi1" in capsys.readouterr().out


@pytest.mark.parametrize(
    "example, front", [("sketch_in_arrow", "pyarrow"), ("sketch_in_polars", "polars")]
)
def test_sketches_in_another_front_end(example, front):
    pytest.importorskip(front)
    shared, error = importlib.import_module(example).main()
    assert abs(shared - 2_000) < 5 * error < 500


@pytest.mark.slow
def test_the_notebook_runs(tmp_path, monkeypatch):
    """Every cell, as a reader would run them, and a picture where one is due."""
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("matplotlib")
    pytest.importorskip("ipykernel")
    # Its kernel is a process of its own.
    monkeypatch.setenv("PYTHONPATH", str(FOLDER.parent))
    notebook = nbformat.read(FOLDER / "notebook.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells)
    ran = nbclient.NotebookClient(
        notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    outputs = [output for cell in ran.cells for output in cell.get("outputs", [])]
    assert sum("image/png" in output.get("data", {}) for output in outputs) == 2
    said = "".join(output.get("text", "") for output in outputs)
    assert "survey and clinic agree on 'sex'" in said
    assert said.count("Private (add or remove one record)") == 2

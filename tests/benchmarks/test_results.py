"""Written tables and their births: what is put between the marks, and when a table is old."""

import re
import subprocess
import sys

import pytest

from benchmarks import results
from benchmarks.results import Table, put_between, tables


def test_a_table_is_written_with_its_birth(tmp_path):
    (tmp_path / "benchmarks" / "results").mkdir(parents=True)
    (tmp_path / "README.md").write_text("none\n")
    page = tmp_path / "benchmarks" / "results" / "page.md"
    page.write_text("a\n<!-- table: bars -->\nold\n<!-- end: bars -->\nb\n")
    (bare,) = tables(tmp_path)
    assert (bare.page, bare.name, bare.commit) == ("benchmarks/results/page.md", "bars", None)
    put_between(page, "bars", "new", "abc1234")
    birth = r"Measured at abc1234, .*, \d+ cores\. <!-- depends on .* -->\n"
    assert re.fullmatch(
        rf"a\n<!-- table: bars -->\n{birth}\nnew\n<!-- end: bars -->\nb\n", page.read_text()
    )
    (born,) = tables(tmp_path)
    assert born.commit == "abc1234"
    assert "vertimrf/model" in born.depends
    put_between(page, "bars", "newer", "abc1234")
    assert len(list(tables(tmp_path))) == 1
    with pytest.raises(ValueError, match="markers"):
        put_between(page, "other", "new", "abc1234")


def test_a_table_is_old_once_a_path_that_it_depends_on_has_changed(tmp_path, monkeypatch):
    def git(*words):
        who = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
        subprocess.run(["git", "-C", str(tmp_path), *who, *words], check=True, capture_output=True)

    monkeypatch.setattr(results, "ROOT", tmp_path)
    git("init", "-q")
    for name in ("code", "page"):
        (tmp_path / name).write_text("1")
    git("add", ".")
    git("commit", "-qm", "first")
    table = Table("page", "bars", results.commit(), "2026-01-01", "2 cores", ("code",))
    assert table.changes() == []
    (tmp_path / "page").write_text("2")
    git("commit", "-qam", "a page")
    assert table.changes() == []
    (tmp_path / "code").write_text("2")
    git("commit", "-qam", "code")
    assert [line.split(" ", 1)[1] for line in table.changes()] == ["code"]


def test_the_program_lists_old_tables(tmp_path):
    program = results.__file__
    assert program is not None
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True)
    assert "benchmarks/results/accuracy.md, bars: " in done.stdout

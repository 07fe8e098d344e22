"""The four tutorials are one run: their commands, in the order of their steps, as hospital, insurer and server type them.

So is the page on run folders where it shows two organisations that need nobody else.
"""

import json
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

import vertimrf
from vertimrf.cli import main

DOCS = Path(vertimrf.__file__).parents[1] / "docs"
ROLES = ("plan", "party", "server", "result")
RUNS = ("server.run", "hospital.run", "insurer.run")
STEP = re.compile(r"<!-- step: (\d+) -->\n```bash\n(.*?)```", re.DOTALL)


def typed(words):
    done = CliRunner().invoke(main, words, input="y\n")
    assert done.exit_code == 0, f"vertimrf {' '.join(words)}: {done.output}"
    return done.output


def typed_as(party, block):
    """Type commands that a page shows of the hospital, as this party types them."""
    for line in block.splitlines():
        name, *words = shlex.split(line.replace("hospital", party))
        assert name == "vertimrf", line
        if "7QK2-M0XR-…" in words:
            fingerprint = json.loads(typed(["status", "server.run", "--json", "-"]))["plan"]
            words[words.index("7QK2-M0XR-…")] = fingerprint
        typed(words)


def assert_done():
    """Nobody has anything left to do."""
    for folder in RUNS:
        assert json.loads(typed(["status", folder, "--json", "-"]))["done"], folder


@pytest.fixture
def pages(tmp_path, monkeypatch):
    """The tutorials of the roles, in a folder with the tables that they tell of."""
    if not DOCS.is_dir():
        pytest.skip("installed without its pages")
    monkeypatch.chdir(tmp_path)
    pages = {role: (DOCS / f"tutorial-{role}.md").read_text() for role in ROLES}
    typed(["demo", "--tables", "."])
    Path("shared").mkdir()
    return pages


def test_two_files_become_rows_by_copying_lines(tmp_path, monkeypatch):
    pytest.importorskip("pandas")
    if not DOCS.is_dir():
        pytest.skip("installed without its pages")
    monkeypatch.chdir(tmp_path)
    page = (DOCS / "tutorial.md").read_text()
    blocks = STEP.findall(page)
    assert [int(number) for number, _ in blocks] == list(range(1, page.count("```bash") + 1))
    Path("shared").mkdir()
    for _, block in blocks:
        for party in ("hospital", "insurer"):
            lines = [line for line in block.splitlines() if f"accept {party}" in line]
            typed_as(party, "\n".join(lines).replace(party, "hospital"))
        others = [line for line in block.splitlines() if "accept" not in line]
        typed_as("hospital", "\n".join(others))
    # What the page shows of the files and of its rows.
    for name in ("hospital", "insurer"):
        first = Path(f"{name}.csv").read_text().splitlines()[1].replace('"', "").split(",")
        shown = page.split("```text\n")[1].splitlines()[2]
        assert set(first) <= set(shown.split())
    assert len(Path("smokers.csv").read_text().splitlines()) == 501
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    scope = {}
    exec(compile(code, "tutorial.md", "exec"), scope)
    means = scope["rows"].groupby("claims")["age"].mean()
    # In the files from 22 to 76 years; a mean of rows is off by two or three.
    assert means[4] - means[0] > 30
    assert typed(["status", "server.run"]).count("done") > 3


def test_the_tutorials_make_one_run(pages):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("jinja2")
    steps = {}
    for role, page in pages.items():
        blocks = STEP.findall(page)
        assert len(blocks) == page.count("```bash"), "every command of a tutorial is a step"
        for number, block in blocks:
            assert int(number) not in steps
            steps[int(number)] = (role, block)
    assert sorted(steps) == list(range(1, len(steps) + 1))

    for number in sorted(steps):
        role, block = steps[number]
        # What the page for parties shows of the hospital, the insurer types as well.
        for party in ("hospital", "insurer") if role == "party" else ("hospital",):
            typed_as(party, block)
    assert_done()
    for folder in RUNS:
        assert "the ids of the parties match" in typed(["status", folder])
    assert Path("report.html").stat().st_size > 10_000
    smokers = pandas.read_csv("smokers.csv")
    assert (len(smokers), set(smokers)) == (500, {"age", "smoker", "claims"})
    for code in re.findall(r"```python\n(.*?)```", pages["result"], re.DOTALL):
        exec(compile(code, "tutorial-result.md", "exec"), {})


def test_two_organisations_need_nobody_else(pages):
    steps = dict(STEP.findall((DOCS / "runs.md").read_text()))
    for number in "1234" + 4 * "3":
        for party in ("hospital", "insurer"):
            typed_as(party, steps[number])
    assert_done()

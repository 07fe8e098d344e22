"""The pages for successors stay true: every module has its line, and every file that they name exists."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest

import vertimrf

ROOT = Path(vertimrf.__file__).parents[1]
PAGES = (
    "CONTRIBUTING.md", "docs/adapters.md", "docs/architecture.md", "docs/formats.md", "docs/glossary.md", "docs/kernels.md",
    "docs/larger.md", "docs/populations.md", "docs/python.md", "docs/report.md", "docs/runs.md", "docs/synthesizer.md",
)  # fmt: skip
RUNNABLE = {"docs/adapters.md": "mbi", "docs/kernels.md": "numba", "docs/python.md": "pandas", "docs/synthesizer.md": "pandas"}


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    texts = {page: (ROOT / page) for page in PAGES}
    if not all(path.exists() for path in texts.values()):
        pytest.skip("installed without its pages")
    return {page: path.read_text() for page, path in texts.items()}


def test_every_module_has_a_line_in_architecture(pages: dict[str, str]) -> None:
    text = pages["docs/architecture.md"]
    modules = [path for path in ROOT.glob("vertimrf/**/*.py") if path.name not in ("__init__.py", "__main__.py")]
    for path in modules:
        folder = path.parent.name
        heading = "**Top level**" if folder == "vertimrf" else f"**`{folder}/`**"
        section = re.split(r"\n(?:\*\*`|## )", text.split(heading, 1)[1])[0]
        assert f"`{path.name}`" in section, f"docs/architecture.md has no line for {path.relative_to(ROOT)}"


@pytest.mark.parametrize("page", PAGES)
def test_files_that_pages_name_exist(pages: dict[str, str], page: str) -> None:
    for name in set(re.findall(r"`([\w./-]+/[\w.-]+\.(?:py|md|toml))`", pages[page])):
        assert any((base / name).exists() for base in (ROOT, ROOT / "vertimrf")), f"{page} names {name}, which is not there"


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(pages: dict[str, str], page: str) -> None:
    for link in re.findall(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)", pages[page]):
        assert ((ROOT / page).parent / link).exists(), f"{page} links to {link}"
    anchors = re.findall(r"\]\(([^)#]*)#([^)]+)\)", pages[page])
    for link, anchor in anchors:
        target = ((ROOT / page).parent / link).resolve().relative_to(ROOT) if link else Path(page)
        headings = [line.lstrip("# ").lower().replace(" ", "-") for line in pages[str(target)].splitlines() if line[:1] == "#"]
        assert anchor in headings, f"{page} links to {link}#{anchor}"


def test_what_pages_call_by_name_is_there(pages: dict[str, str]) -> None:
    """`file.py` (`name`) in tables: the file defines the name."""
    for page, text in pages.items():
        for name, thing in re.findall(r"`([\w/]+\.py)` \(`([A-Za-z_]\w*)(?:\.\w+)?`", text):
            paths = [base / name for base in (ROOT, ROOT / "vertimrf") if (base / name).exists()]
            assert paths, f"{page} names {name}"
            assert re.search(rf"\b{thing}\b", paths[0].read_text()), f"{page}: {name} has no {thing}"


@pytest.mark.parametrize("page", RUNNABLE)
def test_the_code_of_a_page_runs(pages: dict[str, str], page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One after the other, as a reader would run it; its own assertions are the test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        needed = pytest.importorskip(RUNNABLE[page])
    if RUNNABLE[page] == "mbi" and not hasattr(needed.estimation, "MirrorDescent"):
        pytest.skip("mbi is not version 2")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", pages[page], re.DOTALL | re.MULTILINE)
    assert blocks, f"{page} has no code"
    scope: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, page, "exec"), scope)

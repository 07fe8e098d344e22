"""Takes what pages link to outside docs/ into the site: pages of the root, pages of results, and sources as they are; and adds
the list of modules.

On GitHub those links work as they stand. In the site a page `../CONTRIBUTING.md` becomes `CONTRIBUTING.md`, a page of results
`../benchmarks/results/a.md` becomes `results/a.md`, and a source `../examples/a.py` becomes a page that shows it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import modules
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("CHANGELOG.md", "CONTRIBUTING.md")
RESULTS = ROOT / "benchmarks" / "results"
LINK = re.compile(r"\]\(\.\./([^)#\s]+)(#[^)]*)?\)")
# What is shown as code, and what is handed out as it is.
SHOWN = {".py": "python", ".toml": "toml", ".yml": "yaml", "": "text"}


def _linked(config: MkDocsConfig) -> set[str]:
    """Files under the root that pages link to, but for PAGES. What is not there is left for mkdocs to complain of."""
    texts = [path.read_text() for path in Path(config.docs_dir).glob("*.md")]
    paths = {match[1] for text in texts for match in LINK.finditer(text)} - set(PAGES)
    return {path for path in paths if (ROOT / path).is_file() and (ROOT / path).parent != RESULTS}


def _place(path: str) -> str:
    """Where the site has a file of the root."""
    if path in PAGES:
        return path
    if path.startswith("benchmarks/results/"):
        return path.removeprefix("benchmarks/")
    return f"source/{path}.md" if Path(path).suffix in SHOWN else f"source/{path}"


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add pages of the root, the list of modules, pages of results, and every source that a page links to."""
    for name in PAGES:
        text = re.sub(r"\]\(docs/", "](", (ROOT / name).read_text())
        files.append(File.generated(config, name, content=text))
    files.append(File.generated(config, "modules.md", content=modules.listing()))
    for source in sorted(RESULTS.iterdir()):
        place = f"results/{source.name}"
        if source.suffix == ".md":
            files.append(
                File.generated(
                    config, place, content=source.read_text().replace("](../../docs/", "](../")
                )
            )
            files.src_uris[place].inclusion = InclusionLevel.NOT_IN_NAV
        else:
            files.append(File.generated(config, place, abs_src_path=str(source)))
    for path in sorted(_linked(config)):
        if Path(path).suffix in SHOWN:
            text = (
                f"# {path}\n\n````{SHOWN[Path(path).suffix]}\n{(ROOT / path).read_text()}\n````\n"
            )
            files.append(File.generated(config, _place(path), content=text))
            # They are reached by links alone.
            files.src_uris[_place(path)].inclusion = InclusionLevel.NOT_IN_NAV
        else:
            files.append(File.generated(config, _place(path), abs_src_path=str(ROOT / path)))
    return files


def on_page_content(html: str, **_: Any) -> str:
    """Docstrings name things as Sphinx does, :func:`name`; what is left of that is the name."""
    return re.sub(r":(?:func|meth|class|mod|attr):(?=<code>)", "", html)


def on_page_markdown(markdown: str, *, page: Page, **_: Any) -> str:
    """Turn links out of docs/ into links within the site."""
    if page.file.src_uri.startswith("results/"):
        return markdown
    return LINK.sub(lambda match: f"]({_place(match[1])}{match[2] or ''})", markdown)

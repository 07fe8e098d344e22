"""Takes what pages link to outside docs/ into the site: other pages of the root, and sources, shown as they are.

On GitHub those links work as they stand; in the site a page `../CONTRIBUTING.md` becomes `CONTRIBUTING.md`, and a source
`../examples/a.py` a page that shows it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("CHANGELOG.md", "CONTRIBUTING.md")
LINK = re.compile(r"\]\(\.\./([^)#\s]+)(#[^)]*)?\)")
# What is shown as code, and what is handed out as it is.
SHOWN = {".py": "python", ".toml": "toml", ".yml": "yaml", "": "text"}


def _linked(config: MkDocsConfig) -> set[str]:
    """Files under the root that pages link to, but for PAGES. What is not there is left for mkdocs to complain of."""
    texts = [path.read_text() for path in Path(config.docs_dir).glob("*.md")]
    paths = {match[1] for text in texts for match in LINK.finditer(text)} - set(PAGES)
    return {path for path in paths if (ROOT / path).is_file()}


def _place(path: str) -> str:
    """Where the site has a file of the root."""
    if path in PAGES:
        return path
    return f"source/{path}.md" if Path(path).suffix in SHOWN else f"source/{path}"


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add pages of the root, and every source that a page links to."""
    for name in PAGES:
        text = re.sub(r"\]\(docs/", "](", (ROOT / name).read_text())
        files.append(File.generated(config, name, content=text))
    for path in sorted(_linked(config)):
        if Path(path).suffix in SHOWN:
            text = f"# {path}\n\n````{SHOWN[Path(path).suffix]}\n{(ROOT / path).read_text()}\n````\n"
            files.append(File.generated(config, _place(path), content=text))
            # They are reached by links alone.
            files.src_uris[_place(path)].inclusion = InclusionLevel.NOT_IN_NAV
        else:
            files.append(File.generated(config, _place(path), abs_src_path=str(ROOT / path)))
    return files


def on_page_content(html: str, **_: Any) -> str:
    """Docstrings name things as Sphinx does, :func:`name`; what is left of that is the name."""
    return re.sub(r":(?:func|meth|class|mod|attr):(?=<code>)", "", html)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Turn links out of docs/ into links within the site."""
    return LINK.sub(lambda match: f"]({_place(match[1])}{match[2] or ''})", markdown)

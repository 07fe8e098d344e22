"""Lists every module with the first sentence of its docstring: python docs/modules.py. The site has the list as a page."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def summary(path: Path) -> str:
    """The first sentence of a module's docstring; empty where there is none."""
    text = ast.get_docstring(ast.parse(path.read_text())) or ""
    first = " ".join(text.split("\n\n")[0].split())
    return re.split(r"(?<=[.?]) (?=[A-Z`:])", first)[0]


def listing() -> str:
    """The page, as Markdown: a section a folder, a line a module."""
    parts = [
        "# Modules",
        "One line a module, from its docstring. How they work together: [architecture](architecture.md).",
    ]
    folders = sorted({path.parent for path in (ROOT / "vertimrf").rglob("*.py")})
    for folder in folders:
        parts.append(f"## {folder.relative_to(ROOT)}/")
        parts.append(
            "\n".join(f"- `{path.name}`: {summary(path)}" for path in sorted(folder.glob("*.py")))
        )
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    print(listing(), end="")

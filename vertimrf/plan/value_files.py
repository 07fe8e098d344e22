"""Long lists of values in text files beside a schema file, one value on a line.

In the schema, ``values`` is then the file's name. It begins with the schema file's own name without
the ending, and has no folder, so that a schema of somebody else names no other file of its reader.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..arrays import Fields
from ..errors import SchemaError
from ..files.atomic import MAX_JSON, read_bytes

# Longer lists of texts go to files; and the ending of these files.
LONG_LIST, ENDING = 100, ".txt"


def _attributes(data: Any) -> Iterator[Fields]:
    """Sections of attributes in the content of a schema file, as far as it is sound."""
    parties = data.get("party") if isinstance(data, dict) else None
    for party in parties if isinstance(parties, list) else []:
        sections = party.get("attribute") if isinstance(party, dict) else None
        for section in sections if isinstance(sections, list) else []:
            if isinstance(section, dict):
                yield section


def read_lists(data: Any, path: Path) -> None:
    """Replace names of files by the values that are in them.

    Args:
        data: content of a schema file, changed.
        path: the schema file.

    Raises:
        SchemaError: a file is named after another schema, cannot be read, is a link, or is too large.
    """
    left = MAX_JSON
    for section in _attributes(data):
        name = section.get("values")
        if not isinstance(name, str) or not name.endswith(ENDING):
            continue
        if (
            not name.startswith(f"{path.stem}.")
            or not name.isprintable()
            or Path(name).name != name
        ):
            raise SchemaError(
                f"Attribute {section.get('name')!r} has its values in {name!r}; a file of values lies beside its schema and is "
                f"called {path.stem}.COLUMN{ENDING}."
            )
        content = read_bytes(path.parent / name, "list of values", SchemaError, left, links=False)
        left -= len(content)
        try:
            text = content.decode("utf-8-sig").replace("\r\n", "\n")
        except UnicodeDecodeError as error:
            raise SchemaError(f"{path.parent / name} is no text in UTF-8 ({error}).") from None
        section["values"] = text.removesuffix("\n").split("\n")


def take_lists_out(data: Any, path: Path) -> dict[Path, str]:
    """Replace long lists of values by names of files.

    Args:
        data: content of a schema file, changed.
        path: the schema file that will be written.

    Returns:
        The files' contents.
    """
    files: dict[Path, str] = {}
    for section in _attributes(data):
        values = section.get("values", ())
        if len(values) <= LONG_LIST or any(
            type(v) is not str or re.search(r"[\r\n\ufeff]", v) for v in values
        ):
            continue
        column = re.sub(r"[^\w-]+", "_", section["name"])[:40]
        file = path.with_name(f"{path.stem}.{column}{ENDING}")
        while file in files:
            file = file.with_name(f"{file.stem}-{len(files)}{ENDING}")
        files[file] = "\n".join(values) + "\n"
        section["values"] = file.name
    return files

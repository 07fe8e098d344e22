"""Files that are either whole or not there, written beside their place and then renamed; and JSON read back."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..errors import VertiMRFError

__all__ = ["read_json", "replacing", "write_bytes", "write_text"]


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a path to write to, in the same folder, that replaces ``path`` when the block ends without an error.

    Raises:
        OSError: the folder is missing or not writable; nothing is left behind.
    """
    target = Path(path)
    draft = target.with_name(f".{secrets.token_hex(4)}.{target.name}")
    draft.touch(exist_ok=False)
    try:
        yield draft
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    """Write bytes to a file, whole or not at all.

    Raises:
        OSError: the file cannot be written.
    """
    with replacing(path) as draft:
        draft.write_bytes(data)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write UTF-8 text to a file, whole or not at all.

    Raises:
        OSError: the file cannot be written.
    """
    write_bytes(path, text.encode())


def read_json(path: str | os.PathLike[str], what: str, error: type[VertiMRFError]) -> Any:
    """Read a JSON file that ought to be, say, a "plan".

    Raises:
        VertiMRFError: of the kind given: the file cannot be read, or is not JSON.
    """
    try:
        return json.loads(Path(path).read_text())
    except OSError as failure:
        raise error(f"Cannot read the {what} {path}: {failure.strerror}.") from None
    except (ValueError, RecursionError):
        raise error(f"{path} is not a {what}: it is not valid JSON.") from None

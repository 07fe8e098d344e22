"""Files that are either whole or not there: written beside their place, then renamed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["replacing", "write_bytes", "write_text"]


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a path to write to, in the same folder, that takes the place of ``path`` when the block ends without an error.

    Raises:
        OSError: the folder is missing or not writable; nothing is left behind.
    """
    target = Path(path)
    # The last suffixes stay, because writers choose their format by them.
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix="".join(target.suffixes[-2:]), dir=target.parent)
    os.close(handle)
    draft = Path(name)
    try:
        # mkstemp makes a file only its owner can read; a result gets the rights that an ordinary new file gets.
        mask = os.umask(0)
        os.umask(mask)
        draft.chmod(0o666 & ~mask)
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

"""Write results to what a user named: a file as a whole, or a pipe or device as a stream.

Nothing else is written to, and no link is replaced.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from ..arguments import PATH, check
from ..errors import OutputError
from .atomic import AnyPath, kind_of, replacing

# The name of standard output.
STDOUT = "-"


def is_stream(path: AnyPath) -> bool:
    """Whether what is written to a path goes elsewhere: a pipe, a terminal or another device.

    A link to one, such as /dev/stdout, is one. Disks are not: writing to them destroys files.
    """
    if os.fspath(path) == STDOUT:
        return True
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)


def check_result(path: AnyPath) -> None:
    """Check before the work that a result can be written to a path.

    Args:
        path: the file, pipe or device; "-" is standard output.

    Raises:
        OutputError: it is a folder, a link to a file, a socket or a disk, it may not be written to,
            or its folder is missing or read-only.
    """
    check(OutputError, {"path": path}, path=PATH)
    if os.fspath(path) == STDOUT:
        return
    file = Path(path)
    try:
        mode = file.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        mode = stat.S_IFREG
    except (OSError, ValueError) as error:
        raise OutputError(
            f"Cannot write {path}: {getattr(error, 'strerror', error)}; name another file."
        ) from None
    if is_stream(file):
        if not os.access(file, os.W_OK):
            raise OutputError(f"Cannot write {path}: you may not write to it; name another file.")
    elif stat.S_ISLNK(mode):
        raise OutputError(
            f"Cannot write {path}: it is a link, and no link is replaced; name a file."
        )
    elif not stat.S_ISREG(mode):
        raise OutputError(f"Cannot write {path}: it is {kind_of(mode)}; name a file.")
    elif not file.parent.is_dir():
        raise OutputError(f"Cannot write {path}: its folder does not exist.")
    elif not os.access(file.parent, os.W_OK):
        raise OutputError(
            f"Cannot write {path}: its folder is read-only; name a file in another folder."
        )


@contextmanager
def opened(path: AnyPath, *, private: bool = False, synced: bool = False) -> Iterator[BinaryIO]:
    """Open what a user named for a result.

    A file is replaced when the block ends without an error, as by :func:`~.atomic.replacing`. A
    pipe or device is written to at once.

    Args:
        path: as for :func:`check_result`.
        private, synced: as in :func:`~.atomic.replacing`, for files.

    Raises:
        OutputError: as from :func:`check_result`.
        OSError: writing fails. It names the path.
    """
    check_result(path)
    if os.fspath(path) == STDOUT:
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        if is_stream(path):
            # Without O_CREAT: a pipe that is gone by now does not become a file.
            with open(
                path, "wb", opener=lambda name, _: os.open(name, os.O_WRONLY | os.O_NOCTTY)
            ) as stream:
                yield stream
        else:
            with replacing(path, private=private, synced=synced) as file:
                yield file
    except OSError as error:
        if error.errno is None:
            raise
        # Not the draft, whose name nobody knows.
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None


def save(
    path: AnyPath,
    content: str | bytes,
    *,
    private: bool = False,
    synced: bool = False,
) -> None:
    """Write a result as :func:`opened` does; text as UTF-8. Arguments and errors are the same."""
    with opened(path, private=private, synced=synced) as file:
        file.write(content.encode() if isinstance(content, str) else content)

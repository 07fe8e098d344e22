"""Files that are whole or not there, written beside their place and then renamed; and files read back, up to a size."""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import VertiMRFError
from .canonical import json_of

__all__ = [
    "DRAFT",
    "MAX_JSON",
    "MAX_KEY",
    "draft_of",
    "kind_of",
    "open_regular",
    "parse_json",
    "read_bytes",
    "read_json",
    "replacing",
    "sync",
    "write_bytes",
    "write_text",
]

# Largest files that are read, bytes: keys, offers, secrets and envelopes; plans, schemas and reports, which list
# values. A file that somebody else sent must not fill the memory of who looks at it.
MAX_KEY = 1 << 20
MAX_JSON = 1 << 26
# Names of drafts: those of the files that they were to be, behind a dot and eight digits.
DRAFT = re.compile(r"\.[0-9a-f]{8}\.(.+)")
KINDS = {
    stat.S_IFBLK: "a device", stat.S_IFCHR: "a device", stat.S_IFDIR: "a folder", stat.S_IFIFO: "a named pipe",
    stat.S_IFLNK: "a link", stat.S_IFREG: "a file", stat.S_IFSOCK: "a socket",
}  # fmt: skip


def draft_of(path: Path) -> Path:
    """A new name beside a path, for what is not whole yet; ``DRAFT`` matches it."""
    return path.with_name(f".{secrets.token_hex(4)}.{path.name}")


@contextmanager
def replacing(
    path: str | os.PathLike[str],
    *,
    private: bool = False,
    synced: bool = False,
    once: bool = False,
    dir_fd: int | None = None,
) -> Iterator[BinaryIO]:
    """Give a new file in the same folder, which replaces ``path`` when the block ends without an error.

    Args:
        path: the file to be.
        private: whether it is for its owner alone: it is so from the moment it exists, so that nobody can have opened it
            before.
        synced: whether it is to outlast a power cut from the moment it is there: for what cannot be had again, and for what
            others are told of.
        once: whether a file that is there stays, whoever made it and when. The file system must have hard links.
        dir_fd: the open folder that the path is relative to.

    Raises:
        OSError: the folder is missing or not writable; nothing is left behind.
    """
    target = Path(path)
    draft = draft_of(target)

    def opener(name: str, flags: int) -> int:
        return os.open(name, flags, 0o600 if private else 0o666, dir_fd=dir_fd)

    file = open(draft, "xb", opener=opener)  # noqa: SIM115 (closed before it is renamed, and removed only if this made it)
    try:
        with file:
            yield file
            if synced:
                file.flush()
                os.fsync(file.fileno())
        if once:
            # Of several processes the first makes the file, and may have removed the drafts of the others.
            with suppress(FileExistsError, FileNotFoundError):
                os.link(draft, target, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)
        else:
            os.replace(draft, target, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)
        if synced:
            sync(target.parent, dir_fd=dir_fd)
    finally:
        with suppress(OSError):
            os.unlink(draft, dir_fd=dir_fd)


def write_bytes(path: str | os.PathLike[str], data: bytes, *, private: bool = False, synced: bool = False) -> None:
    """Write bytes to a file, whole or not at all; ``private`` and ``synced`` as in :func:`replacing`.

    Raises:
        OSError: the file cannot be written.
    """
    with replacing(path, private=private, synced=synced) as file:
        file.write(data)


def write_text(path: str | os.PathLike[str], text: str, *, private: bool = False, synced: bool = False) -> None:
    """Write UTF-8 text to a file, whole or not at all; ``private`` and ``synced`` as in :func:`replacing`.

    Raises:
        OSError: the file cannot be written.
    """
    write_bytes(path, text.encode(), private=private, synced=synced)


def sync(path: str | os.PathLike[str], *, dir_fd: int | None = None) -> None:
    """Make a file's contents, or the names in a folder, outlast a crash of the machine."""
    handle = os.open(path, os.O_RDONLY, dir_fd=dir_fd)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def kind_of(mode: int) -> str:
    """What a file system calls a file of this mode, in words."""
    return KINDS.get(stat.S_IFMT(mode), "something else")


def open_regular(path: str | os.PathLike[str], *, dir_fd: int | None = None, links: bool = True) -> BinaryIO:
    """Open a regular file for reading. Anything else, such as a named pipe, is neither read nor waited for.

    Args:
        path: the file.
        dir_fd: the open folder that the path is relative to.
        links: whether the file may be a link to one.

    Raises:
        OSError: there is no such file, it cannot be read, or it is no regular file.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | (0 if links else os.O_NOFOLLOW), dir_fd=dir_fd)
    mode = os.fstat(handle).st_mode
    if not stat.S_ISREG(mode):
        os.close(handle)
        raise OSError(errno.EINVAL, f"it is {kind_of(mode)}, not a file", str(path))
    return os.fdopen(handle, "rb")


def read_bytes(path: str | os.PathLike[str], what: str, error: type[VertiMRFError], most: int) -> bytes:
    """Read a regular file that ought to be, say, a "plan", of at most so many bytes.

    Raises:
        VertiMRFError: of the kind given: the file cannot be read, is a pipe, folder or device, or is larger.
    """
    try:
        with open_regular(path) as file:
            # No more than it has, for a read takes the memory that it asks for.
            size = os.fstat(file.fileno()).st_size
            data = file.read(size + 1) if size <= most else b""
    except (OSError, ValueError) as failure:
        raise error(f"Cannot read the {what} {path}: {getattr(failure, 'strerror', failure)}.") from None
    if max(size, len(data)) > most:
        raise error(f"{path} has more than {most:,} bytes, more than any {what} that this library reads; ask who sent it.")
    return data


def read_json(path: str | os.PathLike[str], what: str, error: type[VertiMRFError], most: int = MAX_JSON) -> Any:
    """Read a JSON file that ought to be, say, a "plan".

    Raises:
        VertiMRFError: of the kind given: the file cannot be read, is larger than ``most`` bytes, or is not JSON.
    """
    return parse_json(read_bytes(path, what, error, most), str(path), what, error)


def parse_json(data: bytes, where: str, what: str, error: type[VertiMRFError]) -> Any:
    """JSON out of bytes that ought to be, say, a "plan".

    Raises:
        VertiMRFError: of the kind given: it is not JSON.
    """
    try:
        return json_of(data)
    except ValueError:
        raise error(f"{where} is not a {what}: it is not valid JSON.") from None

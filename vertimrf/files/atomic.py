"""Atomic writes (a draft beside the file, then a rename), and reads with a size limit."""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from ..arguments import PATH, check
from ..errors import VertiMRFError
from .canonical import json_of

AnyPath = str | os.PathLike[str]

# Largest files that are read, in bytes: keys, offers, secrets and envelopes; then plans, schemas
# and reports, which list values. A file from somebody else must not fill the reader's memory.
MAX_KEY = 1 << 20
MAX_JSON = 1 << 26
# A draft has the name of its file after a dot, eight hexadecimal digits and another dot.
DRAFT = re.compile(r"\.[0-9a-f]{8}\.(.+)")
KINDS = {
    stat.S_IFBLK: "a disk",
    stat.S_IFCHR: "a device",
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFLNK: "a link",
    stat.S_IFREG: "a file",
    stat.S_IFSOCK: "a socket",
}


def draft_of(path: Path) -> Path:
    """A new name beside a path for an unfinished file; :data:`DRAFT` matches it."""
    return path.with_name(f".{secrets.token_hex(4)}.{path.name}")


@contextmanager
def replacing(
    path: AnyPath,
    *,
    private: bool = False,
    synced: bool = False,
    once: bool = False,
    dir_fd: int | None = None,
) -> Iterator[BinaryIO]:
    """Open a draft in the same folder that replaces ``path`` when the block ends without an error.

    Args:
        path: the file to write.
        private: make the file readable by its owner only, from the moment it exists.
        synced: make the file survive a power cut from the moment it exists. For data that cannot be
            restored or that others are informed of.
        once: keep a file that exists already, whoever made it. The file system must support hard
            links.
        dir_fd: open folder to which the path is relative.

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
            # The first of several processes makes the file, and may have removed the drafts of the
            # others.
            with suppress(FileExistsError, FileNotFoundError):
                os.link(draft, target, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)
        else:
            os.replace(draft, target, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)
        if synced:
            sync(target.parent, dir_fd=dir_fd)
    finally:
        with suppress(OSError):
            os.unlink(draft, dir_fd=dir_fd)


def write_bytes(path: AnyPath, data: bytes, *, private: bool = False, synced: bool = False) -> None:
    """Write bytes to a file atomically.

    Args:
        path: the file.
        data: its content.
        private, synced: as in :func:`replacing`.

    Raises:
        OSError: the file cannot be written.
    """
    with replacing(path, private=private, synced=synced) as file:
        file.write(data)


def write_text(path: AnyPath, text: str, *, private: bool = False, synced: bool = False) -> None:
    """Write UTF-8 text to a file atomically.

    Args:
        path: the file.
        text: its content.
        private, synced: as in :func:`replacing`.

    Raises:
        OSError: the file cannot be written.
    """
    write_bytes(path, text.encode(), private=private, synced=synced)


def sync(path: AnyPath, *, dir_fd: int | None = None) -> None:
    """Make the contents of a file, or the names in a folder, survive a crash of the machine."""
    handle = os.open(path, os.O_RDONLY, dir_fd=dir_fd)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def kind_of(mode: int) -> str:
    """Name of the kind of file with this mode."""
    return KINDS.get(stat.S_IFMT(mode), "something else")


def open_regular(path: AnyPath, *, dir_fd: int | None = None, links: bool = True) -> BinaryIO:
    """Open a regular file for reading.

    Other files, such as named pipes, are refused without waiting.

    Args:
        path: the file.
        dir_fd: open folder to which the path is relative.
        links: follow a link to a file.

    Raises:
        OSError: the file is missing, not readable, or not a regular file.
    """
    if "\0" in str(path):
        raise OSError(errno.EINVAL, "no file has such a name", str(path))
    handle = os.open(
        path,
        os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | (0 if links else os.O_NOFOLLOW),
        dir_fd=dir_fd,
    )
    mode = os.fstat(handle).st_mode
    if not stat.S_ISREG(mode):
        os.close(handle)
        raise OSError(errno.EINVAL, f"it is {kind_of(mode)}, not a file", str(path))
    return os.fdopen(handle, "rb")


def read_bytes(
    path: AnyPath,
    what: str,
    error: type[VertiMRFError],
    most: int,
    *,
    links: bool = True,
) -> bytes:
    """Read a regular file of limited size.

    Args:
        path: the file.
        what: what it should be, such as "plan", for errors.
        error: class of the error to raise.
        most: largest size in bytes.
        links: whether a symbolic link is followed.

    Raises:
        VertiMRFError: of the class ``error``: the file cannot be read, is not a regular file, or is
            too large.
    """
    check(error, {"path": path}, path=PATH)
    try:
        with open_regular(path, links=links) as file:
            # A read reserves the memory that it asks for, so ask for no more than the file has.
            size = os.fstat(file.fileno()).st_size
            data = file.read(size + 1) if size <= most else b""
    except (OSError, ValueError) as failure:
        raise error(
            f"Cannot read the {what} {path}: {getattr(failure, 'strerror', failure)}."
        ) from None
    if max(size, len(data)) > most:
        raise error(
            f"{path} has more than {most:,} bytes, the limit for a {what}; ask its sender for a smaller file."
        )
    return data


def read_json(path: AnyPath, what: str, error: type[VertiMRFError], most: int = MAX_JSON) -> Any:
    """Read a JSON file of limited size; arguments as in :func:`read_bytes`.

    Raises:
        VertiMRFError: of the class ``error``: the file cannot be read, is too large, or is not
            JSON.
    """
    return parse_json(read_bytes(path, what, error, most), str(path), what, error)


def parse_json(data: bytes, where: str, what: str, error: type[VertiMRFError]) -> Any:
    """Parse JSON.

    Args:
        data: the content of a file.
        where: name of the file, for errors.
        what: what the file should be, for errors.
        error: class of the error to raise.

    Raises:
        VertiMRFError: of the class ``error``: the data is not JSON.
    """
    try:
        return json_of(data)
    except ValueError:
        raise error(f"{where} is not a {what}: it is not valid JSON.") from None


def check_space(folder: Path, needed: float) -> str | None:
    """What is wrong with writing so many bytes to a folder; None if nothing is."""
    try:
        free = shutil.disk_usage(folder).free
    except OSError as error:
        return f"{folder} cannot be used ({error.strerror}); name another folder."
    if free < needed:
        return f"{folder} has {free / 1e6:,.0f} MB left, and {needed / 1e6:,.0f} MB are needed; make room or name another folder."
    return None

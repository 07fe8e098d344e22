"""Files in a folder that others write to as well: no link is followed, and nothing but folders and regular files is opened.

Each component of a name is opened relative to the open folder before it. So nobody can swap a folder for a link between a check
and its use: what was opened stays what it was, whatever its name leads to by then.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import ObstacleError
from .atomic import DRAFT, kind_of, open_regular, replacing

__all__ = ["SharedFolder"]

FOLDER = os.O_RDONLY | os.O_DIRECTORY
# What a system says of one name that cannot be used as a file or folder. All other errors are about the whole place.
ABOUT_A_NAME = {
    errno.EACCES, errno.EEXIST, errno.EINVAL, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ENODEV, errno.ENOENT,
    errno.ENOTDIR, errno.ENOTEMPTY, errno.ENXIO, errno.EPERM,
}  # fmt: skip


class SharedFolder:
    """A folder, on this machine or mounted. Names have slashes; the folder itself may be a link, for its user named it.

    Args:
        root: the folder.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def read(self, name: str, most: int) -> bytes | None:
        """A file's first bytes.

        Args:
            name: the file, beneath the folder.
            most: how many bytes it may have; of a larger one as many and one more are read.

        Returns:
            The bytes; None if the file is not there.

        Raises:
            ObstacleError: something other than a file, or than a folder on the way to it, has that name.
            OSError: the folder cannot be reached.
        """
        *parts, last = name.split("/")
        with self._beneath(parts) as folder:
            if folder is None:
                return None
            try:
                file = open_regular(last, dir_fd=folder, links=False)
            except FileNotFoundError:
                return None
            except OSError as error:
                raise self._named(error, folder, parts, last) from None
            with file:
                return file.read(min(os.fstat(file.fileno()).st_size, most) + 1)

    def write(self, name: str, data: bytes) -> None:
        """Put a file, whole and synced, over what is there unless that is a folder; makes the folders on the way to it.

        Raises:
            ObstacleError: a folder has that name, or something other than a folder a name on the way to it.
            OSError: the folder cannot be reached, or is full.
        """
        *parts, last = name.split("/")
        with self._beneath(parts, make=True) as folder:
            assert folder is not None
            # Drafts of a process that was killed: a file has one writer, and that one works alone on its run.
            for entry in os.listdir(folder):
                if (draft := DRAFT.fullmatch(entry)) and draft[1] == last:
                    with suppress(OSError):
                        os.unlink(entry, dir_fd=folder)
            try:
                with replacing(last, synced=True, dir_fd=folder) as file:
                    file.write(data)
            except OSError as error:
                raise self._named(error, folder, parts, last) from None

    def stamp(self, name: str) -> object:
        """Something that is equal as long as the file of that name has not been changed; None if there is no regular file."""
        *parts, last = name.split("/")
        with self._beneath(parts) as folder:
            if folder is None:
                return None
            try:
                status = os.stat(last, dir_fd=folder, follow_symlinks=False)
            except OSError:
                return None
            whole = stat.S_ISREG(status.st_mode)
            return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns) if whole else None

    @contextmanager
    def _beneath(self, parts: Sequence[str], make: bool = False) -> Iterator[int | None]:
        """A folder beneath the root, open; None if it is not there and not to be made. The root itself is never made."""
        at = os.open(self._root, FOLDER)
        try:
            for depth, part in enumerate(parts):
                try:
                    inner = _open_folder(part, at, make)
                except OSError as error:
                    if make or not isinstance(error, FileNotFoundError):
                        raise self._named(error, at, parts[:depth], part, folder=True) from None
                    yield None
                    return
                os.close(at)
                at = inner
            yield at
        finally:
            os.close(at)

    def _named(self, error: OSError, at: int, parts: Sequence[str], name: str, folder: bool = False) -> OSError | ObstacleError:
        """The sentence about what is in the way, where it is that name; else the error itself."""
        if error.errno not in ABOUT_A_NAME:
            return error
        wanted, what = (stat.S_IFDIR, "folder") if folder else (stat.S_IFREG, "file")
        why = f"cannot be used ({error.strerror})"
        with suppress(OSError):
            mode = os.stat(name, dir_fd=at, follow_symlinks=False).st_mode
            if stat.S_IFMT(mode) != wanted:
                why = f"is {kind_of(mode)}, not a {what}"
        return ObstacleError(f"{'/'.join((str(self._root), *parts, name))} {why}: it is passed over until it is removed.")


def _open_folder(name: str, at: int, make: bool) -> int:
    """A folder in an open one; made where it is missing, if it is to be."""
    try:
        return os.open(name, FOLDER | os.O_NOFOLLOW, dir_fd=at)
    except FileNotFoundError:
        if not make:
            raise
    with suppress(FileExistsError):
        os.mkdir(name, dir_fd=at)
    return os.open(name, FOLDER | os.O_NOFOLLOW, dir_fd=at)

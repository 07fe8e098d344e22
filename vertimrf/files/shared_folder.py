"""A folder that others write to as well.

Links are not followed, and only folders and regular files are opened.

Each component of a name is opened relative to the open folder before it. So nobody can replace a
folder by a link between a check and its use.
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

FOLDER = os.O_RDONLY | os.O_DIRECTORY
# Errors about one name that cannot be used as a file or folder. All other errors concern the whole
# folder.
ABOUT_A_NAME = {
    errno.EEXIST,
    errno.EINVAL,
    errno.EISDIR,
    errno.ELOOP,
    errno.ENAMETOOLONG,
    errno.ENODEV,
    errno.ENOENT,
    errno.ENOTDIR,
    errno.ENOTEMPTY,
    errno.ENXIO,
}


class SharedFolder:
    """A local or mounted folder.

    Names of files use slashes. The folder itself may be a link, because its user chose it.

    Args:
        root: the folder.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def read(self, name: str, most: int) -> bytes | None:
        """Read the first bytes of a file.

        Args:
            name: the file, relative to the folder.
            most: limit in bytes; one more byte is read of a larger file.

        Returns:
            The bytes; None if the file does not exist.

        Raises:
            ObstacleError: the name, or a folder on its path, belongs to something else.
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
        """Write a file atomically and synced, and make the folders on its path.

        It replaces anything except a folder.

        Raises:
            ObstacleError: the name belongs to a folder, or a folder on its path to something else.
            OSError: the folder cannot be reached, or is full.
        """
        *parts, last = name.split("/")
        with self._beneath(parts, make=True) as folder:
            assert folder is not None
            # Remove drafts of a killed process. A file has only one writer, and it works alone on
            # its run.
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
        """A value that stays equal as long as the file is not changed.

        None if there is no regular file of that name.
        """
        *parts, last = name.split("/")
        with self._beneath(parts) as folder:
            if folder is None:
                return None
            try:
                status = os.stat(last, dir_fd=folder, follow_symlinks=False)
            except OSError:
                return None
            whole = stat.S_ISREG(status.st_mode)
            return (
                (
                    status.st_dev,
                    status.st_ino,
                    status.st_size,
                    status.st_mtime_ns,
                    status.st_ctime_ns,
                )
                if whole
                else None
            )

    def names(self, name: str) -> list[str]:
        """Names in a folder; none if it does not exist.

        Raises:
            ObstacleError: a folder on its path belongs to something else.
            OSError: the folder cannot be reached.
        """
        with self._beneath(name.split("/")) as folder:
            return [] if folder is None else sorted(os.listdir(folder))

    @contextmanager
    def _beneath(self, parts: Sequence[str], make: bool = False) -> Iterator[int | None]:
        """Open a folder beneath the root; None if it is missing and ``make`` is false.

        The root itself is never made.
        """
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

    def _named(
        self, error: OSError, at: int, parts: Sequence[str], name: str, folder: bool = False
    ) -> OSError | ObstacleError:
        """An ObstacleError if something else has this name; else the error, with the whole path."""
        path = "/".join((str(self._root), *parts, name))
        if error.errno not in ABOUT_A_NAME:
            return OSError(error.errno, error.strerror, path)
        wanted, what = (stat.S_IFDIR, "folder") if folder else (stat.S_IFREG, "file")
        why = f"cannot be used ({error.strerror})"
        with suppress(OSError):
            mode = os.stat(name, dir_fd=at, follow_symlinks=False).st_mode
            if stat.S_IFMT(mode) != wanted:
                why = f"is {kind_of(mode)}, not a {what}"
        return ObstacleError(f"{path} {why}; it is ignored until you remove it.")


def _open_folder(name: str, at: int, make: bool) -> int:
    """Open a folder in an open one; make it if it is missing and ``make`` is true."""
    try:
        return os.open(name, FOLDER | os.O_NOFOLLOW, dir_fd=at)
    except FileNotFoundError:
        if not make:
            raise
    with suppress(FileExistsError):
        os.mkdir(name, dir_fd=at)
    return os.open(name, FOLDER | os.O_NOFOLLOW, dir_fd=at)

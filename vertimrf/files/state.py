"""The folder of a user's state on a machine: records of releases, and of domain searches."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from pathlib import Path

import platformdirs

from ..errors import PrivacyError
from .atomic import open_regular, replacing, sync

# Environment variable that sets another folder.
STATE = "VERTIMRF_STATE"
KEY_BYTES = 32
# Bits of a mode: others may write; others may do anything at all.
OTHERS_WRITE, OTHERS = stat.S_IWGRP | stat.S_IWOTH, stat.S_IRWXG | stat.S_IRWXO


def state_folder() -> Path:
    """The folder: VERTIMRF_STATE if set, else the system's place for application state."""
    named = os.environ.get(STATE)
    return Path(named).absolute() if named else platformdirs.user_state_path("vertimrf")


def make_folder(path: Path) -> None:
    """Make a folder for its owner only, with missing parents, so that it survives a power cut.

    Raises:
        OSError: the folder cannot be made.
    """
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)
        sync(path.parent)


def machine_key(folder: Path) -> bytes:
    """A key that is drawn once and kept in a folder, for its owner only [32 bytes].

    Several processes that ask at once get the same key. Whoever could put a key of his there, or
    read this one, would know everything that is drawn with it.

    Raises:
        OSError: the key cannot be written or read, or its file has another size.
        PrivacyError: the folder or the key is somebody else's, or others can write to the folder or
            read the key.
    """
    make_folder(folder)
    _check_folders(folder)
    path = folder / "key"
    if not os.path.lexists(path):
        with replacing(path, private=True, synced=True, once=True) as file:
            file.write(secrets.token_bytes(KEY_BYTES))
    with open_regular(path, links=False) as file:
        _check_own(path, os.fstat(file.fileno()), OTHERS, "delete it")
        key = file.read(KEY_BYTES + 1)
    if len(key) != KEY_BYTES:
        raise OSError(errno.EINVAL, f"its key has not {KEY_BYTES} bytes", str(path))
    return key


def _check_folders(folder: Path) -> None:
    """Check that nobody else can put a file into a folder, or another folder in its place."""
    _check_own(folder, folder.stat(), OTHERS_WRITE, f"run `chmod go-w {folder}`, delete its key")
    for above in folder.resolve().parents if os.name == "posix" else ():
        mode = above.stat().st_mode
        # In a folder such as /tmp, with the sticky bit, everybody moves only what is his.
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise _not_own(above, "everybody can write to it", f"run `chmod o-w {above}`")


def _check_own(path: Path, status: os.stat_result, forbidden: int, remedy: str) -> None:
    """Check that a file or folder is this user's, or the system's, and nobody else's in part."""
    if os.name != "posix":
        return
    if status.st_uid not in (os.geteuid(), 0):
        raise _not_own(path, "it belongs to another user", "delete it")
    if status.st_mode & forbidden:
        raise _not_own(path, "others can read or write it", remedy)


def _not_own(path: Path, why: str, remedy: str) -> PrivacyError:
    return PrivacyError(
        f"Noise is not drawn with a key that others may know, and {path} is not yours alone ({why}): {remedy}, or name another "
        f"folder by {STATE}."
    )

"""The folder of a user's state on a machine: records of releases and of domain searches, and keys.

Whoever could put a file there would decide what is released again, or know the noise. So nothing is
read there that is not this user's alone to write.
"""

from __future__ import annotations

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


def own_folder(folder: Path) -> None:
    """Make a folder of the state, and check that nobody else can put a file into it.

    Raises:
        OSError: the folder cannot be made.
        PrivacyError: the folder is somebody else's, or others can write to it.
    """
    make_folder(folder)
    _check_folders(folder)


def read_own(path: Path, forbidden: int = OTHERS_WRITE, most: int = -1) -> bytes:
    """The content of a file of the state, if nobody else can have put it there.

    Args:
        path: the file; no link is followed.
        forbidden: bits of its mode that must not be set.
        most: how many bytes to read; all if negative.

    Raises:
        OSError: the file cannot be read.
        PrivacyError: the file or its folder is somebody else's, or others can write to it.
    """
    _check_folders(path.parent)
    with open_regular(path, links=False) as file:
        remedy = f"run `chmod go-rwx {path}` if you wrote it, else delete it"
        _check_own(path, os.fstat(file.fileno()), forbidden, remedy)
        return file.read(most)


def machine_key(folder: Path) -> bytes:
    """A key that is drawn once and kept in a folder, for its owner only [32 bytes].

    Several processes that ask at once get the same key. Whoever could put a key of his there, or
    read this one, would know everything that is drawn with it.

    Raises:
        OSError: the key cannot be written or read.
        PrivacyError: the key has another size; the folder or the key is somebody else's, or others
            can write to the folder or read the key.
    """
    own_folder(folder)
    path = folder / "key"
    if not os.path.lexists(path):
        with replacing(path, private=True, synced=True, once=True) as file:
            file.write(secrets.token_bytes(KEY_BYTES))
    key = read_own(path, OTHERS, KEY_BYTES + 1)
    if len(key) != KEY_BYTES:
        raise PrivacyError(
            f"{path} is damaged: it has not {KEY_BYTES} bytes; restore it from a backup."
        )
    return key


def _check_folders(folder: Path) -> None:
    """Check that nobody else can put a file into a folder, or another folder in its place."""
    _check_own(
        folder,
        folder.stat(),
        OTHERS_WRITE,
        f"run `chmod go-w {folder}`, and delete files in it that are not yours",
    )
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
        why = "it belongs to another user"
        raise _not_own(path, why, f"run `chown` on {path} if you made it, else delete it")
    if status.st_mode & forbidden:
        raise _not_own(path, "others can read or write it", remedy)


def _not_own(path: Path, why: str, remedy: str) -> PrivacyError:
    return PrivacyError(
        f"Releases and noise follow from files that nobody else can read or put in place, and {path} is not yours alone ({why}): {remedy}, "
        f"or name another folder by {STATE}."
    )

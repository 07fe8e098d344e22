"""The folder of a user's state on a machine: records of releases, and of domain searches."""

from __future__ import annotations

import errno
import os
import secrets
from pathlib import Path

import platformdirs

from .atomic import open_regular, replacing, sync

# Environment variable that sets another folder.
STATE = "VERTIMRF_STATE"
KEY_BYTES = 32


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

    Several processes that ask at once get the same key.

    Raises:
        OSError: the key cannot be written or read, or its file has another size.
    """
    make_folder(folder)
    path = folder / "key"
    if not os.path.lexists(path):
        with replacing(path, private=True, synced=True, once=True) as file:
            file.write(secrets.token_bytes(KEY_BYTES))
    with open_regular(path) as file:
        key = file.read(KEY_BYTES + 1)
    if len(key) != KEY_BYTES:
        raise OSError(errno.EINVAL, f"its key has not {KEY_BYTES} bytes", str(path))
    return key

"""The folder of a user's state on a machine: records of releases, and of domain searches."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

from .atomic import sync

# Environment variable that sets another folder.
STATE = "VERTIMRF_STATE"


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

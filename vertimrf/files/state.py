"""Where a machine keeps, for one user, what must be there once: records of releases, and of domains that were found."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import platformdirs

from .atomic import sync

__all__ = ["STATE", "make_folder", "state_folder"]

# The environment variable that names another folder.
STATE = "VERTIMRF_STATE"


def state_folder() -> Path:
    """Where it is: what VERTIMRF_STATE names, or the place that the system has for an application's state."""
    named = os.environ.get(STATE)
    return Path(named).absolute() if named else platformdirs.user_state_path("vertimrf")


def make_folder(path: Path) -> None:
    """Make a folder for its owner alone, with the parents that it lacks, so that it outlasts a power cut.

    Raises:
        OSError: it cannot be made.
    """
    if not path.is_dir():
        make_folder(path.parent)
        with suppress(FileExistsError):
            path.mkdir(mode=0o700)
        sync(path.parent)

"""Environments of Python that peers run in: packages that exclude ours, and each other, pinned."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

# Written last, so that an environment without it is one whose making was interrupted.
READY = "ready"


class NotInstalledError(RuntimeError):
    """pip did not install what a peer needs."""


@dataclass(frozen=True)
class Environment:
    """A set of pinned packages.

    Attributes:
        name: in the folder's name.
        requirements: as pip takes them, with versions.
    """

    name: str
    requirements: tuple[str, ...]

    def path(self, folder):
        """Its place among others: other pins, or another Python, have another."""
        version = ".".join(map(str, sys.version_info[:2]))
        digest = hashlib.sha256("\n".join([version, *self.requirements]).encode()).hexdigest()
        return folder / f"{self.name}-{digest[:12]}"

    def active(self, folder):
        """Whether this process runs in it."""
        return Path(sys.prefix).resolve() == self.path(folder).resolve()

    def python(self, folder):
        """Its interpreter; the environment is made where it is not there yet.

        Raises:
            NotInstalledError: with pip's own last word.
        """
        path = self.path(folder)
        python = path / "bin" / "python"
        if (path / READY).exists():
            return python
        shutil.rmtree(path, ignore_errors=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, "-m", "venv", path], check=True)
        if error := pip(python, "install", *self.requirements):
            raise NotInstalledError(f"{self.name} does not install: {error}")
        (path / READY).touch()
        return python


def pip(python, *words):
    """pip's last error, or None where it succeeds."""
    done = subprocess.run(
        [python, "-m", "pip", "--disable-pip-version-check", *words], capture_output=True, text=True
    )
    if not done.returncode:
        return None
    errors = [
        line.removeprefix("ERROR: ")
        for line in done.stderr.splitlines()
        if line.startswith("ERROR: ")
    ]
    return (errors or done.stderr.strip().splitlines() or ["no message"])[-1]

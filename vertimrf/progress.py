"""How far a run has come, told to whoever waits for it."""

from __future__ import annotations

import contextlib
import sys
import time
from typing import Any, Protocol

import click

__all__ = ["Progress", "Silent", "TerminalProgress", "for_terminal"]

# Seconds after which a step gets a bar.
SOON = 1.0


class Progress(Protocol):
    """Told of the steps of a run."""

    def step(self, name: str) -> None:
        """A step starts; the one before it is over."""

    def advance(self, done: int, of: int) -> None:
        """The step has done so much of what it is to do, in units of its own of about equal cost."""


class Silent:
    """Tells nobody."""

    def step(self, name: str) -> None:
        """See :class:`Progress`."""

    def advance(self, done: int, of: int) -> None:
        """See :class:`Progress`."""


class TerminalProgress:
    """A line for each step on standard error, and a bar with an estimate of what remains once a step takes longer."""

    def __init__(self) -> None:
        self._name = ""
        self._start = 0.0
        self._of = 0
        self._bar: Any = None
        self._open = contextlib.ExitStack()

    def step(self, name: str) -> None:
        """See :class:`Progress`."""
        self._open.close()
        self._bar, self._name, self._start = None, name, time.monotonic()
        click.echo(f"  {name} …", err=True)

    def advance(self, done: int, of: int) -> None:
        """See :class:`Progress`."""
        if self._bar is not None and of != self._of:
            # Another part of the same step, with units of its own.
            self._open.close()
            self._bar, self._start = None, time.monotonic()
        if self._bar is None and time.monotonic() - self._start >= SOON and done < of:
            self._of = of
            self._bar = self._open.enter_context(click.progressbar(length=of, label=f"  {self._name}", file=sys.stderr))
            # Its estimate counts from the start of the step, not from here.
            self._bar.start = self._bar.last_eta = time.time() - (time.monotonic() - self._start)
        if self._bar is not None:
            self._bar.update(done - self._bar.pos)


def for_terminal() -> Progress:
    """Progress on a terminal; silence in a pipe."""
    return TerminalProgress() if sys.stderr.isatty() else Silent()

"""How far a run has come, told to whoever waits for it."""

from __future__ import annotations

import contextlib
import logging
import math
import sys
import time
from collections.abc import Callable
from typing import Any, Protocol

import click

__all__ = ["Logged", "Progress", "Silent", "TerminalProgress", "fitting", "for_terminal", "towards"]

LOG = logging.getLogger("vertimrf")

# Seconds after which a step gets a bar, and between two lines of the log on one step.
SOON = 1.0
OFTEN = 20.0
# Proximal steps that a fit takes (Adult, PISA and the demo: three to five).
FIT_STEPS = 4.0
# Units of work whose end is not known beforehand.
PARTS = 1000


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


class Logged:
    """Tells the logger ``vertimrf``, as information, which nobody sees unless asked for."""

    def __init__(self) -> None:
        self._name = ""
        self._start = self._reported = 0.0

    def step(self, name: str) -> None:
        """See :class:`Progress`."""
        now = time.monotonic()
        if self._name:
            LOG.info("%s: took %.1f s", self._name, now - self._start)
        self._name, self._start, self._reported = name, now, now
        LOG.info("%s", name)

    def advance(self, done: int, of: int) -> None:
        """See :class:`Progress`."""
        now = time.monotonic()
        if now - self._reported >= OFTEN:
            self._reported = now
            LOG.info("%s: %.0f %%, %.0f s so far", self._name, 100 * done / max(of, 1), now - self._start)


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


def towards(done: float, expected: float) -> tuple[int, int]:
    """What to tell of work that is expected to end after ``expected`` units, and may end later: arguments of ``advance``.

    Three quarters of the bar go by what was expected; from there on it slows down, and never says that nothing remains.
    """
    along = max(done, 0.0) / expected
    if along > 0.75:
        along = 1 - 0.25 * math.exp(-(along - 0.75) / 0.25)
    return min(int(PARTS * along), PARTS - 1), PARTS


def fitting(progress: Progress, tolerance: float = 0.02) -> Callable[[int, int, float], None]:
    """Tell of a fit by its steps and by how far the gradient of each has come down, on a scale of logarithms.

    Args:
        progress: told.
        tolerance: the gradient that a step ends at.
    """
    first: dict[int, float] = {}
    furthest = 0.0

    def report(step: int, iteration: int, gradient: float) -> None:
        nonlocal furthest
        if not math.isfinite(gradient):
            return
        start = max(first.setdefault(step, gradient), 2 * tolerance)
        inside = math.log(start / min(max(gradient, tolerance), start)) / math.log(start / tolerance)
        furthest = max(furthest, step + inside)
        progress.advance(*towards(furthest, FIT_STEPS))

    return report


def for_terminal() -> Progress:
    """Progress on a terminal; in a pipe the log, which is silent unless it is asked for."""
    return TerminalProgress() if sys.stderr.isatty() else Logged()

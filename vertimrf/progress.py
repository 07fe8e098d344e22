"""Progress of a run: callbacks for steps, their display in the log or on a terminal, and wall time per phase."""

from __future__ import annotations

import contextlib
import logging
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol, runtime_checkable

import click

LOG = logging.getLogger("vertimrf")

# Seconds before a step gets a progress bar, and between two log lines of one step.
SOON = 1.0
OFTEN = 20.0
# Expected proximal steps of a fit.
FIT_STEPS = 4.0
# Gradient at which a step ends.
TOLERANCE = 0.02
# Units of a bar whose end is not known beforehand.
PARTS = 1000


@runtime_checkable
class Progress(Protocol):
    """Receives the progress of a run."""

    def step(self, name: str) -> None:
        """A step starts, and the previous step has ended."""

    def advance(self, done: int, of: int, unit: str = "") -> None:
        """The step has done ``done`` of ``of`` units; units have about equal cost and each step has
        its own. Those with a name, such as rows, are shown with their number in a second.
        """


class Silent:
    """Ignores progress."""

    def step(self, name: str) -> None:
        """See :class:`Progress`."""

    def advance(self, done: int, of: int, unit: str = "") -> None:
        """See :class:`Progress`."""


SILENT = Silent()


class Logged:
    """Logs progress at level INFO to the logger ``vertimrf``."""

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

    def advance(self, done: int, of: int, unit: str = "") -> None:
        """See :class:`Progress`."""
        now = time.monotonic()
        if now - self._reported >= OFTEN:
            self._reported = now
            LOG.info(
                "%s: %.0f %%, %.0f s so far%s",
                self._name,
                100 * done / max(of, 1),
                now - self._start,
                rate(done, now - self._start, unit),
            )


class TerminalProgress:
    """Prints one line per step on standard error, and a progress bar with an estimate for longer
    steps.
    """

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

    def advance(self, done: int, of: int, unit: str = "") -> None:
        """See :class:`Progress`."""
        if self._bar is not None and of != self._of:
            # Another part of the same step has its own units.
            self._open.close()
            self._bar, self._start = None, time.monotonic()
        if self._bar is None and time.monotonic() - self._start >= SOON and done < of:
            self._of = of
            self._bar = self._open.enter_context(
                click.progressbar(
                    length=of,
                    label=f"  {self._name}",
                    file=sys.stderr,
                    item_show_func=lambda text: text and text[2:],
                )
            )
            # The estimate counts from the start of the step.
            self._bar.start = self._bar.last_eta = time.time() - (time.monotonic() - self._start)
        if self._bar is not None:
            self._bar.update(done - self._bar.pos, rate(done, time.monotonic() - self._start, unit))


def rate(done: int, seconds: float, unit: str) -> str:
    """How many units are done in a second, as text; empty if they have no name."""
    return f", {done / max(seconds, 1e-3):,.0f} {unit} a second" if unit else ""


def towards(done: float, expected: float) -> tuple[int, int]:
    """Arguments of ``advance`` for work that is expected to end after ``expected`` units but may
    end later.

    The expected work fills three quarters of the bar. After that the bar slows down and never
    fills.

    Args:
        done: units of work done.
        expected: expected units of work, above 0.

    Returns:
        Position on the bar, and the length of the bar.
    """
    along = max(done, 0.0) / expected
    if along > 0.75:
        along = 1 - 0.25 * math.exp(-(along - 0.75) / 0.25)
    return min(int(PARTS * along), PARTS - 1), PARTS


def fitting(progress: Progress) -> Callable[[int, int, float], None]:
    """A callback that reports a fit's progress, from its steps and from the log of each step's
    gradient.

    Args:
        progress: receives the progress.

    Returns:
        The callback; its arguments are step, iteration and gradient.
    """
    first: dict[int, float] = {}
    furthest = 0.0

    def report(step: int, iteration: int, gradient: float) -> None:
        nonlocal furthest
        if not math.isfinite(gradient):
            return
        start = max(first.setdefault(step, gradient), 2 * TOLERANCE)
        inside = math.log(start / min(max(gradient, TOLERANCE), start)) / math.log(
            start / TOLERANCE
        )
        furthest = max(furthest, step + inside)
        progress.advance(*towards(furthest, FIT_STEPS))

    return report


def for_terminal() -> Progress:
    """Progress on a terminal; in a pipe, progress in the log, which is silent by default."""
    return TerminalProgress() if sys.stderr.isatty() else Logged()


def utc(ago: float = 0.0) -> str:
    """The time by this machine's clock so many seconds ago, in UTC, such as 2026-05-01T08:30:00Z."""
    return (datetime.now(UTC) - timedelta(seconds=ago)).strftime("%Y-%m-%dT%H:%M:%SZ")


class Clock:
    """Wall time per phase, summed over all times that the phase runs, also at the same time.

    Args:
        before: seconds per phase of an earlier part of the same run.

    Attributes:
        seconds: seconds per phase, in the order in which phases first ran.
    """

    def __init__(self, before: Mapping[str, float] | None = None) -> None:
        self.seconds: dict[str, float] = dict(before or {})
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def __call__(self, phase: str) -> Iterator[None]:
        """Add the time of the block to ``phase``."""
        start = time.perf_counter()
        try:
            yield
        finally:
            with self._lock:
                self.seconds[phase] = self.seconds.get(phase, 0.0) + time.perf_counter() - start

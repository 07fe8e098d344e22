"""Wall time per phase of a run, and the time of day."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta


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

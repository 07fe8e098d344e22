"""Wall time per phase of a run."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

__all__ = ["Clock"]


class Clock:
    """Wall time per phase, summed over the times that a phase runs.

    Attributes:
        seconds: by phase, in the order in which phases first ran.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextlib.contextmanager
    def __call__(self, phase: str) -> Iterator[None]:
        """Time the block as a part of ``phase``."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[phase] = self.seconds.get(phase, 0.0) + time.perf_counter() - start

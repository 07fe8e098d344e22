"""Options of a run that are not in its plan: they change neither its releases nor their privacy."""

from __future__ import annotations

from dataclasses import dataclass, field

from .errors import PlanError
from .progress import Logged, Progress

__all__ = ["RunOptions"]


@dataclass(frozen=True)
class RunOptions:
    """Options of parties, server and simulations.

    Attributes:
        rows: number of synthetic rows; default the noisy record count.
        seed: seed of the sampling of synthetic rows only; privacy noise always comes from the
            operating system.
        num_threads: threads of the kernels; None keeps the setting. Results do not depend on it.
        progress: where progress is reported; default the logger ``vertimrf`` at level INFO.

    Raises:
        PlanError: an option out of range.
    """

    rows: int | None = None
    seed: int | None = None
    num_threads: int | None = None
    progress: Progress = field(default_factory=Logged)

    def __post_init__(self) -> None:
        if self.rows is not None and self.rows < 1:
            raise PlanError(f"A synthetic table has at least 1 row, not {self.rows}.")
        if self.num_threads is not None and self.num_threads < 1:
            raise PlanError(
                f"Kernels run on at least 1 thread, not {self.num_threads}; leave it out to use every core."
            )

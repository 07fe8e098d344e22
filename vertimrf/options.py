"""Options of a run that are no part of its plan: they change neither what is released nor its privacy."""

from __future__ import annotations

from dataclasses import dataclass, field

from .errors import PlanError
from .progress import Logged, Progress

__all__ = ["RunOptions"]


@dataclass(frozen=True)
class RunOptions:
    """How parties, server and trials run.

    Attributes:
        rows: synthetic rows; default the noisy record count.
        seed: of the sampling of synthetic rows only; privacy noise always comes from the operating system.
        num_threads: threads for the kernels; None leaves the setting as it is. Results do not depend on it.
        progress: told of each step as it starts, and of how far it has come; default the logger ``vertimrf``, as information.

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

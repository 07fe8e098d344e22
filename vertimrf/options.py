"""Options of a run that are no part of its plan: they change neither what is released nor its privacy."""

from __future__ import annotations

from dataclasses import dataclass, field

from .errors import PlanError
from .progress import Logged, Progress

__all__ = ["REDUCTIONS", "RunOptions"]

REDUCTIONS = ("fit", "hisrec", "unisam")


@dataclass(frozen=True)
class RunOptions:
    """How parties, server and trials run.

    Attributes:
        rows: synthetic rows; default the noisy record count.
        seed: of the sampling of synthetic rows only; privacy noise always comes from the operating system.
        reduction: what becomes of binned cross-party marginals. "fit": the model is fitted to the bins, and the values within
            follow from one-way marginals by maximum entropy; for comparison, the paper's "hisrec" (the same proportions,
            written out before the fit) and "unisam" (equal proportions).
        consistency: whether the paper's consistency enforcement is run on cross-party marginals before the fit, which
            reconciles by precision what it is given.
        num_threads: threads for the kernels; None leaves the setting as it is. Results do not depend on it.
        progress: told of each step as it starts, and of how far it has come; default the logger ``vertimrf``, as information.

    Raises:
        PlanError: an option out of range.
    """

    rows: int | None = None
    seed: int | None = None
    reduction: str = "fit"
    consistency: bool = False
    num_threads: int | None = None
    progress: Progress = field(default_factory=Logged)

    def __post_init__(self) -> None:
        if self.reduction not in REDUCTIONS:
            raise PlanError(f"Unknown reduction {self.reduction!r}; use one of {', '.join(REDUCTIONS)}.")
        if self.rows is not None and self.rows < 1:
            raise PlanError(f"A synthetic table has at least 1 row, not {self.rows}.")
        if self.num_threads is not None and self.num_threads < 1:
            raise PlanError(f"Kernels run on at least 1 thread, not {self.num_threads}; leave it out to use every core.")

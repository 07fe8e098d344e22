"""Options of runs and evaluations that are not part of a plan.

They change neither what is released nor its privacy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .arguments import check_fields
from .errors import PlanError
from .plan.defaults import CSV_SAFE_HELP, INNER, MAX_ROWS, PLAIN_HELP
from .plan.options import check_population, described
from .progress import Logged, Progress


def ignored(plan: Any) -> None:
    """What is done with a plan by default: nothing."""


def check_seed(seed: int | None) -> None:
    """Check that a seed is one that generators take.

    Raises:
        PlanError: it is negative.
    """
    if seed is not None and seed < 0:
        raise PlanError(f"A seed is a whole number of at least 0, not {seed}.")


@dataclass(frozen=True)
class RunOptions:
    """How parties, server and trials run.

    Attributes:
        rows: synthetic rows; default the noisy record count.
        seed: of the sampling of synthetic rows only; privacy noise always comes from the operating
            system.
        csv_safe: write CSV files so that a spreadsheet runs nothing in them
            (:func:`~vertimrf.write_table`).
        plain: synthetic rows have plain numbers, and dates and times as these, whatever the
            formats of the schema say. By default such cells are texts in the column's format.
        num_threads: threads for the kernels; None leaves the setting as it is. Results do not
            depend on it.
        progress: told of each step as it starts, and of how far it has come; default the logger
            ``vertimrf``, as information.
        planned: called with the plan, in a process that makes one itself, before anything is
            measured; default nothing.

    Raises:
        PlanError: an option out of range.
    """

    rows: int | None = described(None, "Synthetic rows; default the noisy record count.")
    seed: int | None = described(None, "Seed for the synthetic rows; privacy noise has no seed.")
    csv_safe: bool = described(False, CSV_SAFE_HELP)
    plain: bool = described(False, PLAIN_HELP)
    num_threads: int | None = described(None, "Threads for the kernels.")
    progress: Progress = field(default_factory=Logged)
    planned: Callable[[Any], None] = ignored

    def __post_init__(self) -> None:
        check_fields(self, PlanError)
        if self.rows is not None and not 1 <= self.rows <= MAX_ROWS:
            raise PlanError(
                f"A synthetic table has 1 to {MAX_ROWS:,} rows, not {self.rows}; draw several times for more."
            )
        check_seed(self.seed)
        if self.num_threads is not None and self.num_threads < 1:
            raise PlanError(
                f"Kernels run on at least 1 thread, not {self.num_threads}; leave it out to use every core."
            )


@dataclass(frozen=True)
class EvaluationOptions:
    """Options of an evaluation.

    Attributes:
        ways: attributes per marginal. Default: 3, 4 and 5, or as many as there are.
        marginals: number of random marginals for each number of attributes.
        seed: seed for the choice of marginals.
        party: compare only the attributes of this party. The real table is then this party's.
        population: which records of several real tables are compared: "inner", those in all tables;
            or "outer", those in any table. Values that no table has are missing.
        label: attribute that trees predict from the others, trained on synthetic records and tested
            on real ones.

    Raises:
        PlanError: the population is unknown.
    """

    ways: tuple[int, ...] | None = described(
        None, "Attributes per marginal; default 3,4,5, or as many as there are."
    )
    marginals: int = described(300, "Number of random marginals for each of --ways.")
    seed: int = described(0, "Seed for the choice of marginals.")
    party: str | None = described(
        None, "Compare only this party's attributes; give its real table alone."
    )
    population: str = described(
        INNER, "Compare the records in all real tables (inner), or in any (outer)."
    )
    label: str | None = described(
        None, "Column that trees predict, trained on synthetic rows; adds scores."
    )

    def __post_init__(self) -> None:
        check_fields(self, PlanError)
        check_seed(self.seed)
        check_population(self.population)

"""Functions that several commands share."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ..errors import PlanError, RunError
from ..progress import for_terminal


def compile_kernels(*wanted: str) -> None:
    """Compile the kernels of these roles and encoders, if this machine has not, and load them."""
    from ..kernels.warm import compile_missing, load, missing, not_kept

    jobs = missing(wanted)
    if obstacle := not_kept(wanted):
        print_warnings([obstacle])
    if jobs:
        progress = for_terminal()
        progress.step("compiling kernels, once on this machine")
        if not sys.stderr.isatty():
            # Compiling takes about a minute.
            click.echo(
                f"Compiling {len(jobs)} kernels, once on this machine; `vertimrf warmup` does so beforehand.",
                err=True,
            )
        compile_missing(jobs, progress.advance)
    load(wanted)


def print_warnings(warnings: Sequence[str]) -> None:
    """Print warnings on standard error."""
    for warning in warnings:
        click.echo(f"Warning: {warning}", err=True)


def print_dropped(dropped: Any) -> None:
    """Warn on standard error of the records that a release leaves out. They are in no output file."""
    lines = dropped.lines()
    print_warnings(lines[:1])
    for line in lines[1:]:
        click.echo(line, err=True)


def print_verdict(plan: Any) -> None:
    """Print on standard error how far the result of a plan can be trusted, before it is made."""
    from ..plan.verdict import NO_LINKS, links, verdict

    if (judged := verdict(plan)) is not None:
        click.echo(str(judged), err=True)
    for sentence in links(plan):
        click.echo(f"Warning: {sentence}" if sentence == NO_LINKS else sentence, err=True)


def print_known(figures: Any) -> None:
    """Print on standard error the pairs of columns that a result knows, and its warnings."""
    if figures["known"]:
        click.echo(figures["known"], err=True)
    print_warnings(figures["warnings"])


def print_check(
    table: str, id: str | None, schema: Any, party: str, read: Any, plan: Any
) -> list[str]:
    """Print what a check of a party's table finds. It is exact.

    Args:
        table: the table's path.
        id: its id column.
        schema: an ``OpenSchema``.
        party: the party's name.
        read: how the table is read.
        plan: the plan, or None.

    Returns:
        The problems.
    """
    from ..party.check import check_table

    outcome = check_table(table, id, schema, party, table, read, plan)
    for fact in outcome.facts:
        click.echo(f"  {fact}")
    problems = [*outcome.problems, *(() if plan is None else _check_message(plan, party))]
    for note in outcome.notes:
        click.echo(f"Note: {note}")
    for problem in problems:
        click.echo(f"Problem: {problem}", err=True)
    return problems


def _check_message(plan: Any, party: str) -> list[str]:
    """Print the size of a party's message. Return a sentence if the disk has no room for it."""
    from ..files.atomic import check_space
    from ..files.state import state_folder
    from ..plan.forecast import forecast

    index = plan.party_names.index(party)
    size = plan.message_size(index)
    # Releases are recorded in the state folder, which may not exist yet.
    state = state_folder()
    short = check_space(next(path for path in (state, *state.parents) if path.exists()), size)
    if (estimate := forecast(plan)) is not None:
        click.echo(
            f"  The message: about {size / 1e6:.1f} MB. Making it takes {estimate.parties[index]}."
        )
    return [short] if short else []


def how_many(problems: Sequence[str]) -> str:
    """The number of problems, in words."""
    return f"{len(problems)} problem{'s' * (len(problems) > 1)}"


def party_run(table: str, *given: Any) -> Any:
    """A party's run that has a plan, given its folder. None if ``table`` is no run folder.

    Args:
        table: a party's run folder, or its table.
        given: options that only a table may have.
    """
    from ..runs.folder import SETTINGS
    from ..runs.party_run import PartyRun

    if not (Path(table) / SETTINGS).is_file():
        return None
    run = PartyRun(table)
    if any(given):
        raise PlanError(
            f"{run.folder / SETTINGS} names the table and how it is read: leave the options out."
        )
    if run.plan is None:
        raise RunError(f"No plan has come to {run.folder} yet. Try again once it has.")
    return run

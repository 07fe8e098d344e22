"""Functions that several commands share."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

from ..progress import for_terminal

__all__ = [
    "compile_kernels",
    "print_dropped",
    "print_findings",
    "print_warnings",
]


def compile_kernels(*wanted: str) -> None:
    """Compile the kernels of these roles and encoders, if this machine has not compiled them."""
    from ..kernels.warm import compile_missing, missing

    jobs = missing(wanted)
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


def print_warnings(warnings: Sequence[str]) -> None:
    """Print warnings on standard error."""
    for warning in warnings:
        click.echo(f"Warning: {warning}", err=True)


def print_dropped(dropped: Any) -> None:
    """Print on standard error which records a release leaves out. They are in no output file."""
    for line in dropped.lines():
        click.echo(line, err=True)


def print_findings(result: Any) -> None:
    """Print warnings of a run, and how far parties contradict each other on shared columns."""
    print_warnings(result.warnings)
    for disagreement in result.disagreements:
        if not disagreement.significant:
            click.echo(disagreement.sentence(result.plan), err=True)

"""Steps that several commands take."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

from ..progress import for_terminal

__all__ = [
    "compile_kernels",
    "load_open_schema",
    "load_schema",
    "print_dropped",
    "print_findings",
    "print_warnings",
]


def compile_kernels(*wanted: str) -> None:
    """Compile what these roles and encoders will run, where that has not been done on this machine; says so."""
    from ..kernels.warm import compile_missing, missing

    jobs = missing(wanted)
    if jobs:
        progress = for_terminal()
        progress.step("compiling kernels, once on this machine")
        if not sys.stderr.isatty():
            # A minute or so of silence would worry whoever reads along.
            click.echo(
                f"Compiling {len(jobs)} kernels, once on this machine; `vertimrf warmup` does so beforehand.",
                err=True,
            )
        compile_missing(jobs, progress.advance)


def print_warnings(warnings: Sequence[str]) -> None:
    """What a run warns of, on standard error."""
    for warning in warnings:
        click.echo(f"Warning: {warning}", err=True)


def print_dropped(dropped: Any) -> None:
    """Which records are left out of a release, on standard error: what goes into a file is the same with and without them."""
    for line in dropped.lines():
        click.echo(line, err=True)


def print_findings(result: Any) -> None:
    """What a run could not do, and how far parties contradict each other on what several hold."""
    print_warnings(result.warnings)
    for found in result.disagreements:
        if not found.significant:
            click.echo(found.sentence(result.plan), err=True)


def load_open_schema(path: str | None) -> Any:
    """A schema, some of whose domains may be yet to be found."""
    from ..plan.open_schema import OpenSchema

    return None if path is None else OpenSchema.load(path)


def load_schema(path: str | None) -> Any:
    """A schema, where one is named."""
    from ..plan.schema import Schema

    return None if path is None else Schema.load(path)

"""Steps that several commands take."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

from ..errors import PlanError
from ..progress import for_terminal

__all__ = [
    "compile_kernels", "load_open_schema", "load_own", "load_schema", "print_dropped", "print_findings", "print_warnings",
    "read_records",
]  # fmt: skip


def read_records(who: Any, plan: Any, table: str, id_column: str, read: Any) -> Any:
    """The table of a party, encoded; says what it is doing, what is left out, and that encoding comes next."""
    progress = for_terminal()
    progress.step(f"reading {table}")
    records = who.encode(table, id_column, read)
    print_dropped(records.dropped)
    if records.persons is not None:
        from ..party.persons import beyond

        dropped, persons = beyond(records.persons, plan.records_per_person)
        if dropped:
            click.echo(
                f"{dropped:,} records of {persons:,} persons with more than {plan.records_per_person} are left out, the same at "
                "every party; this stays here.",
                err=True,
            )
    progress.step("encoding")
    return records


def compile_kernels(*wanted: str) -> None:
    """Compile what these roles and encoders will run, where that has not been done on this machine; says so."""
    from ..kernels.warm import compile_missing, missing

    jobs = missing(wanted)
    if jobs:
        progress = for_terminal()
        progress.step("compiling kernels, once on this machine")
        if not sys.stderr.isatty():
            # A minute or so of silence would worry whoever reads along.
            click.echo(f"Compiling {len(jobs)} kernels, once on this machine; `vertimrf warmup` does so beforehand.", err=True)
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


def load_own(plan_file: str, key_file: str, server: bool = False) -> tuple[Any, Any]:
    """The plan, and one's own private key, which must stand in it; refuses before the work, not after it."""
    from ..keys import PrivateKey
    from ..plan.plan import Plan

    agreed, key = Plan.load(plan_file), PrivateKey.load(key_file)
    if (key.party is None) != server:
        raise PlanError(
            f"{key_file} is a party's key; give the one that `vertimrf server offer` wrote."
            if server
            else f"{key_file} is the server's key; give the one that `vertimrf secret offer NAME` wrote."
        )
    agreed.sealing_keys().check(key)
    return agreed, key

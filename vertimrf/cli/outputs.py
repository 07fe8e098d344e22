"""Outputs of commands: checks before the work that they can be written, and writing them."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from ..errors import PlanError
from ..files.atomic import check_space
from ..files.results import STDOUT, check_result, is_stream, save
from ..options import RunOptions
from ..plan.defaults import BYTES_PER_VALUE, OUT_HELP, SCHEMA_FILE


@dataclass(frozen=True)
class Outputs:
    """Output files of a synthesis.

    Attributes:
        table: file of the synthetic table.
        model: file of the model; None: not written.
        figures: JSON file of the figures; "-" is standard output, None: not written.
    """

    table: str
    model: str | None
    figures: str | None

    @property
    def quiet(self) -> bool:
        """Whether the figures or the model go to standard output, so that nothing else may."""
        return STDOUT in (self.figures, self.model)

    def check(self, read: Sequence[str | None], csv_safe: bool) -> None:
        """Check that the files can be written. ``read`` are the files that the command reads."""
        from ..tables.write import table_files

        tables = table_files(self.table, csv_safe=csv_safe)
        check_writable(*tables, self.table + SCHEMA_FILE, self.model, self.figures, read=read)

    def write(
        self,
        pieces: Any,
        model: Any,
        figures: Callable[[], dict[str, Any]],
        options: RunOptions,
        like: Sequence[Any],
    ) -> None:
        """Write the synthetic table in pieces, its schema beside it, its model and its figures; ``like`` as for :func:`.write_table`."""
        from ..tables.write import as_many_as_fit, write_table

        label = model.ledger.label
        pieces = as_many_as_fit(pieces, self.table, options.rows)
        written = write_table(pieces, self.table, label, csv_safe=options.csv_safe, like=like)
        schema = model.schema.as_plain() if options.plain else model.schema
        schema.save(self.table + SCHEMA_FILE)
        if self.model is not None:
            model.save(self.model)
        if self.figures is not None:
            write_json(self.figures, figures() | {"rows": written})
        if not self.quiet:
            click.echo(model.ledger.table())
            click.echo(f"{written:,} synthetic rows written to {self.table}.")


def writes_results(command: Any) -> Any:
    """Options of a command that synthesises.

    The command receives an :class:`Outputs` as `outputs`.
    """

    @click.option("--out", required=True, help=OUT_HELP)
    @click.option(
        "--model", "model_file", help="Also save the fitted model, for `vertimrf sample`."
    )
    @click.option(
        "--json",
        "json_file",
        help="Write ledger, timings and sizes as JSON; - for standard output.",
    )
    @functools.wraps(command)
    def writing(
        *args: Any, out: str, model_file: str | None, json_file: str | None, **given: Any
    ) -> Any:
        return command(*args, outputs=Outputs(out, model_file, json_file), **given)

    return writing


def check_writable(*paths: str | None, read: Sequence[str | None] = ()) -> None:
    """Check before the work that files can be written.

    Args:
        paths: output files, pipes and devices. None is skipped.
        read: files that the command reads.

    Raises:
        OutputError: a file cannot be written.
        PlanError: a file would replace another output or an input.
    """
    named = [path for path in paths if path is not None]
    for path in named:
        check_result(path)
    # Several results may go to one device, such as /dev/null.
    files = [os.path.realpath(path) for path in named if not is_stream(path)]
    files += [path for path in named if path == STDOUT]
    if twice := [path for i, path in enumerate(files) if path in files[:i]]:
        raise PlanError(f"Two results would be written to {twice[0]}; name different files.")
    if inputs := [path for path in read if path is not None and os.path.realpath(path) in files]:
        raise PlanError(f"{inputs[0]} is read and would be overwritten; name another file.")
    for path in filter(None, read):
        if within := [file for file in files if Path(os.path.realpath(path)) in Path(file).parents]:
            raise PlanError(f"{path} is read, and {within[0]} would be a file of it; name another.")


def check_room(path: str, rows: int, columns: int) -> None:
    """Check before the work that the disk, and a file of its kind, have room for a table of so many rows.

    Raises:
        PlanError: the disk has not.
        TableError: such a file has not.
    """
    from ..tables.write import check_size

    check_size(path, rows, columns)
    needed = BYTES_PER_VALUE * rows * columns
    if not is_stream(path) and (short := check_space(Path(path).absolute().parent, needed)):
        raise PlanError(short)


def check_new(path: str, kept: str) -> None:
    """Refuse to replace an existing file.

    Args:
        path: the output file.
        kept: why an existing file may be needed, for the error.

    Raises:
        PlanError: the file exists.
        OutputError: it cannot be written.
    """
    check_writable(path)
    if not is_stream(path) and Path(path).exists():
        raise PlanError(
            f"{path} exists, and {kept}; name another file, or delete it if nothing needs it."
        )


def check_schema_file(path: str) -> None:
    """Refuse a schema file that exists, or whose suffix is not a format."""
    if Path(path).suffix not in (".toml", ".json"):
        raise PlanError(f"A schema file ends in .toml or .json, not {path}.")
    check_new(path, "may hold edits")


def write_json(path: str | None, data: Any) -> None:
    """Write JSON to a file, to standard output for "-", or nowhere for None."""
    if path is not None:
        save(path, json.dumps(data, indent=1) + "\n")

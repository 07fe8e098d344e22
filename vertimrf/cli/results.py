"""What comes of a run: more rows of a model, a report for people, and what a file is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ..errors import PlanError
from .group import main
from .options import reads_tables
from .outputs import check_writable

__all__ = ["inspect", "report", "sample"]


@main.command()
@click.argument("model_file", metavar="MODEL")
@click.option(
    "--rows",
    type=click.IntRange(min=1),
    help="How many; default as many as the model has, or has of such.",
)
@click.option(
    "--where",
    multiple=True,
    metavar="COLUMN=VALUE",
    help="A condition; of one column several, any of which will do.",
)
@click.option("--seed", type=click.IntRange(min=0), help="Of this draw.")
@click.option("--out", required=True, help="Synthetic table: .csv, .csv.gz, .parquet or .arrow.")
def sample(
    model_file: str, rows: int | None, where: Sequence[str], seed: int | None, out: str
) -> None:
    """Draw more rows from a saved model, of all records or of those that fulfil conditions: exactly, and at no further price."""
    from ..named_model import Model
    from ..tables.arrow import check_output, write_table

    check_writable(out)
    check_output(out)
    given: dict[str, list[str]] = {}
    for condition in where:
        column, equals, value = condition.partition("=")
        if not equals or not column:
            raise PlanError(f"--where takes COLUMN=VALUE, not {condition!r}.")
        given.setdefault(column, []).append(value)
    model = Model.load(model_file)
    written = write_table(model.pieces(rows, given=given, seed=seed), out, model.ledger.standing)
    click.echo(f"{written:,} synthetic rows written to {out}.\n{model.ledger.standing}")


@main.command()
@click.argument("run", nargs=-1, required=True, metavar="RUN")
@click.option("--out", required=True, help="The page to write: .html.")
@click.option(
    "--real",
    multiple=True,
    help="A party's real table; repeat for all. The page then is NOT PRIVATE, for own eyes.",
)
@click.option("--id", "id_column", help="With --real: the record id column.")
@click.option(
    "--utility",
    "label",
    metavar="LABEL",
    help="With --real: a column that trees tell, trained on rows of the model.",
)
@reads_tables("id_format", "ignore_extra", "delimiter", "encoding")
def report(
    read: Any,
    run: Sequence[str],
    out: str,
    real: Sequence[str],
    id_column: str | None,
    label: str | None,
) -> None:
    """One page of HTML on a run, for people: what was released, in words, and how good the model is.

    RUN is a server's run folder, or a folder with the model and the JSON file of one run, or these two files, as `synthesize`
    writes them (--model, --json). The page loads nothing from a network.
    """
    from ..report.page import write_report

    check_writable(out, read=(*run, *real))
    if not out.endswith((".html", ".htm")):
        raise PlanError(f"A report's name ends in .html, not {out}.")
    if real and id_column is None:
        raise PlanError("Real tables are joined by record ids: name their column with --id.")
    standing = write_report(run, out, real=real, id=id_column, read=read, label=label)
    click.echo(f"{out}: {Path(out).stat().st_size:,} bytes.\n{standing}")


@main.command()
@click.argument("file")
@click.option("--key", help="With a sealed file: the private key file of whom it is for.")
@click.option("--plan", "plan_file", help="With a sealed file: its plan.")
def inspect(file: str, key: str | None, plan_file: str | None) -> None:
    """Say what a file of this library is: a plan with its ledger, a message, a model, a schema, a key, or a report.

    Of a sealed file only the header can be read; with --key and --plan, what is inside.
    """
    from ..inspect import describe
    from ..keys import PrivateKey
    from ..plan.plan import Plan

    if (key is None) != (plan_file is None):
        raise PlanError("A sealed file opens with both: give --key and --plan.")
    opened_by = None if key is None else PrivateKey.load(key)
    click.echo(describe(file, opened_by, None if plan_file is None else Plan.load(plan_file)))

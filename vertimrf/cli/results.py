"""What comes of a run: more rows of a model, and what a file is."""

from __future__ import annotations

from collections.abc import Sequence

import click

from ..errors import PlanError
from .group import main
from .outputs import check_writable

__all__ = ["inspect", "sample"]


@main.command()
@click.argument("model_file", metavar="MODEL")
@click.option("--rows", type=click.IntRange(min=1), help="How many; default as many as the model has, or has of such.")
@click.option("--where", multiple=True, metavar="COLUMN=VALUE", help="A condition; of one column several, any of which will do.")
@click.option("--seed", type=click.IntRange(min=0), help="Of this draw.")
@click.option("--out", required=True, help="Synthetic table: .csv, .csv.gz, .parquet or .arrow.")
def sample(model_file: str, rows: int | None, where: Sequence[str], seed: int | None, out: str) -> None:
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

"""Commands on results: ``sample`` from a model, ``report`` on a run, and ``inspect`` a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ..errors import PlanError
from ..plan.defaults import CSV_SAFE_HELP, OUT_HELP, PLAIN_HELP
from ..tables.read_options import ReadOptions
from .common import party_run
from .group import main
from .options import reads_tables
from .outputs import check_room, check_writable


@main.command()
@click.argument("model_file", metavar="MODEL")
@click.option(
    "--rows",
    type=click.IntRange(min=1),
    help="Rows to draw; default the number that the model expects, under the conditions.",
)
@click.option(
    "--where",
    multiple=True,
    metavar="CONDITION",
    help="Draw only such rows: country=PRT|ESP, adr>=100 or adr=100..200; repeat for more.",
)
@click.option("--seed", type=click.IntRange(min=0), help="Seed for the rows.")
@click.option("--out", required=True, help=OUT_HELP)
@click.option(
    "--draws",
    type=click.IntRange(min=2),
    help="Number of tables, each from a redrawn model, whose spread shows noise and sampling. The first column, draw, numbers them.",
)
@click.option("--trust", help="Also write a table of how far every column and pair can be trusted.")
@click.option(
    "--like",
    multiple=True,
    metavar="FILE",
    help="With .sav, .dta or .xpt: a file of SPSS, Stata or SAS, whose codes, labels, levels and formats columns get; repeat for more.",
)
@click.option("--csv-safe", is_flag=True, help=CSV_SAFE_HELP)
@click.option("--plain", is_flag=True, help=PLAIN_HELP)
def sample(
    model_file: str,
    rows: int | None,
    where: Sequence[str],
    seed: int | None,
    out: str,
    draws: int | None,
    trust: str | None,
    like: Sequence[str],
    csv_safe: bool,
    plain: bool,
) -> None:
    """Draw more rows from a saved model, also under conditions. This has no privacy cost."""
    import numpy as np
    import pyarrow as pa

    from ..named_model import Model
    from ..tables.conditions import read_conditions
    from ..tables.write import check_output, table_files, write_table

    # One of both may have another format.
    results = [path for path in (out, trust) if path]
    safe = {path: csv_safe and ".csv" in check_output(path) for path in results}
    if not any(safe.values()):
        check_output(out, csv_safe=csv_safe)
    check_writable(
        *(file for path in results for file in table_files(path)), read=(model_file, *like)
    )
    model = Model.load(model_file)
    given = read_conditions(where, model.schema)
    if draws is None:
        pieces = model.pieces(rows, given=given, seed=seed, plain=plain)
    elif given or "draw" in model.schema.domains:
        raise PlanError(
            "--draws cannot be used with --where, or with a model that has a column named draw."
        )
    else:
        pieces = (
            table.add_column(0, "draw", pa.array(np.full(table.num_rows, number)))
            for number, table in enumerate(model.draws(draws, rows, seed=seed, plain=plain), 1)
        )
    # With a condition, how many rows there are is known only once they are drawn.
    each = rows or (1 if given else round(model.records))
    check_room(out, each * (draws or 1), len(model.schema.names))
    written = write_table(pieces, out, model.ledger.label, csv_safe=safe[out], like=like)
    if trust is not None:
        known = [vars(one) | {"columns": " × ".join(one.columns)} for one in model.trusts()]
        trusts = pa.Table.from_pylist(known)
        write_table(trusts, trust, model.ledger.label, csv_safe=safe[trust])
    click.echo(f"{written:,} synthetic rows written to {out}.\n{model.ledger.label}")


@main.command()
@click.argument("run", nargs=-1, required=True, metavar="RUN")
@click.option("--out", required=True, help="The page to write: .html.")
@click.option(
    "--real",
    multiple=True,
    help="Real table of a party, or its run folder; repeat for all. The page is then NOT PRIVATE: keep it to yourself.",
)
@click.option("--id", "id_column", help="With several --real: column of record ids.")
@click.option(
    "--utility",
    "label",
    metavar="LABEL",
    help="With --real: column that trees predict, trained on rows of the model.",
)
@reads_tables()
def report(
    read: Any,
    run: Sequence[str],
    out: str,
    real: Sequence[str],
    id_column: str | None,
    label: str | None,
) -> None:
    """Write an HTML page on a run: what was released, and how good the model is.

    RUN is a server's run folder, a folder with the model and the JSON file of one run, or these two
    files, as `synthesize` writes them (--model, --json). The page loads nothing from a network.
    """
    from ..report.page import write_report

    if not out.endswith((".html", ".htm")):
        raise PlanError(f"A report's name ends in .html, not {out}.")
    # A run folder may have its report in it.
    check_writable(out, read=(*(path for path in run if not Path(path).is_dir()), *real))
    party = None
    if real and (its := party_run(real[0], real[1:], id_column, read != ReadOptions())):
        party, real, id_column, read = its.name, [its.settings.table], its.settings.id, its.settings
    stated = write_report(run, out, real=real, id=id_column, party=party, read=read, label=label)
    click.echo(f"{out} written.\n{stated}")


@main.command()
@click.argument("file")
@click.option("--key", help="With a sealed file: file of the receiver's private key.")
@click.option("--plan", "plan_file", help="With a sealed file: its plan.")
@click.option(
    "--filing",
    is_flag=True,
    help="Of a plan, a model or a run's folder: its entry for the public registry of deployments, as YAML.",
)
def inspect(file: str, key: str | None, plan_file: str | None, filing: bool) -> None:
    """Describe a file: a plan with its ledger, a message, a model, a schema, a key, or a report.

    A sealed file shows only its header, or with --key and --plan its contents.
    """
    if filing:
        from ..report.filing import filing as entry

        if key or plan_file:
            raise PlanError("--filing takes no --key and no --plan: name a plan, a model or a run.")
        click.echo(entry(file), nl=False)
        return
    from ..keys import PrivateKey
    from ..plan.plan import Plan
    from .inspect import describe

    if (key is None) != (plan_file is None):
        raise PlanError("A sealed file needs both --key and --plan.")
    private_key = None if key is None else PrivateKey.load(key)
    click.echo(describe(file, private_key, None if plan_file is None else Plan.load(plan_file)))

"""The untrusted server: messages in, the synthetic table out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from ..errors import PlanError
from ..progress import for_terminal
from .common import compile_kernels, load_own, print_findings
from .group import main
from .outputs import check_room, check_writable, result_bytes, write_json

__all__ = ["server"]


@main.command()
@click.argument("messages", nargs=-1, required=True, metavar="MESSAGE...")
@click.option("--plan", "plan_file", required=True, help="The agreed plan.")
@click.option("--key", required=True, help="The server's private key file.")
@click.option("--rows", type=click.IntRange(min=1), help="Synthetic rows; default the noisy record count.")
@click.option("--seed", type=click.IntRange(min=0), help="Of the sampling of synthetic rows only.")
@click.option("--threads", type=click.IntRange(min=1), help="Threads for the kernels.")
@click.option("--out", required=True, help="Synthetic table: .csv, .csv.gz, .parquet or .arrow.")
@click.option("--overwrite", is_flag=True, help="Write over a table that is there.")
@click.option("--model", "model_file", help="Also save the fitted model, for `vertimrf sample`.")
@click.option("--json", "json_file", help="Ledger, timings and sizes; - for standard output.")
def server(
    messages: Sequence[str],
    plan_file: str,
    key: str,
    rows: int | None,
    seed: int | None,
    threads: int | None,
    out: str,
    overwrite: bool,
    model_file: str | None,
    json_file: str | None,
) -> None:
    """The untrusted server: all parties' messages in, a synthetic table out."""
    from ..message import Message
    from ..options import RunOptions
    from ..server.server import Server
    from ..tables.arrow import check_output, write_table

    check_writable(out, model_file, json_file, read=(*messages, plan_file, key))
    check_output(out)
    if Path(out).exists() and not overwrite:
        raise PlanError(f"{out} exists; name another file, or write over it with --overwrite.")
    agreed, own = load_own(plan_file, key, server=True)
    table_bytes, model_bytes = result_bytes(agreed, rows)
    check_room((out, table_bytes), (model_file, model_bytes))
    received = [Message.load(path, agreed, own) for path in messages]
    role = Server(agreed, RunOptions(rows=rows, seed=seed, num_threads=threads, progress=for_terminal()))
    compile_kernels("server", agreed.encoder)
    result = role.run(role.read(received))
    print_findings(result)
    standing = result.ledger.standing
    write_table(result.pieces(), out, standing)
    if model_file is not None:
        from ..named_model import Model

        Model(agreed.schema, result.model, result.ledger, result.others).save(model_file)
    write_json(json_file, result.to_json())
    if json_file != "-":
        click.echo(result.ledger.table())
        click.echo(f"{result.codes.shape[1]:,} synthetic rows written to {out}.")

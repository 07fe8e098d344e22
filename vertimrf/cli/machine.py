"""Commands for this machine: ``bench``, ``warmup`` and ``demo``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from ..errors import KernelError, PlanError
from ..plan.defaults import ENCODER
from ..progress import for_terminal
from .common import compile_kernels
from .group import main
from .options import runs
from .outputs import check_writable, write_json


@main.command()
@click.option("--rows", type=int, default=1_000_000, help="Records.")
@click.option("--attributes", type=int, default=8, help="Columns, half of them at each party.")
@click.option("--values", type=int, default=8, help="Domain size of each column.")
@click.option("--keys", type=int, default=131_072, help="Hash keys in total.")
@click.option("--threads", type=click.IntRange(min=1), help="Threads for the kernels.")
@click.option("--json", "json_file", help="Write figures as JSON; - for standard output.")
def bench(
    rows: int, attributes: int, values: int, keys: int, threads: int | None, json_file: str | None
) -> None:
    """Measure the speed of sketching on this machine."""
    from ..bench import run_bench

    check_writable(json_file)
    figures = run_bench(rows, attributes, values, keys, threads)
    write_json(json_file, {"kind": "benchmark"} | figures)
    if json_file != "-":
        for name, figure in figures.items():
            click.echo(f"{name.replace('_', ' '):26} {figure:,.4g}")


@main.command()
def warmup() -> None:
    """Compile all kernels now, once per machine or image, so that no run waits for them."""
    from ..kernels.cache import folder
    from ..kernels.warm import compile_missing, missing, not_kept

    if obstacle := not_kept():
        raise KernelError(obstacle)
    jobs = missing()
    progress = for_terminal()
    progress.step("compiling kernels")
    compile_missing(jobs, progress.advance)
    if lacking := missing():
        raise KernelError(
            f"{folder()} does not take compiled kernels ({lacking[0].name}); see whether its disk is full."
        )
    already = "are compiled" if jobs else "were compiled already"
    click.echo(f"Kernels {already}; they are kept in {folder()}.")


@main.command()
@click.option(
    "--folder", default="vertimrf-demo", help="Folder for tables, messages and the synthetic table."
)
@click.option("--epsilon", type=float, default=1.0, help="Privacy target of the whole run.")
@runs("seed", "num_threads")
@click.option("--json", "json_file", help="Write figures as JSON; - for standard output.")
def demo(folder: str, epsilon: float, options: Any, json_file: str | None) -> None:
    """Run a real case: a year of flights of an airline, a weather office and a registry."""
    from ..demo.run import check_installed, run_demo

    check_writable(json_file)
    if Path(folder).exists() and not Path(folder).is_dir():
        raise PlanError(f"{folder} is a file; name a folder for the demo's files.")
    check_installed()
    compile_kernels("party", "server", ENCODER)
    figures = run_demo(
        Path(folder),
        epsilon,
        say=lambda line: click.echo(line, err=json_file == "-"),
        # The same demo every time.
        options=replace(options, seed=options.seed or 0),
    )
    write_json(json_file, figures)

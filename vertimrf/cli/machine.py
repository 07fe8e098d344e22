"""Commands for this machine: ``bench``, ``warmup`` and ``demo``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from ..errors import KernelError, PlanError
from ..plan.defaults import ENCODER
from ..progress import for_terminal
from ..releases.register import KINDS
from .common import compile_kernels
from .group import main
from .options import parse_numbers, runs
from .outputs import check_writable, write_json


@main.command()
@click.option(
    "--rows",
    type=click.IntRange(2, 1 << 27),
    help="Records. Default: 1,000,000, or those of a plan.",
)
@click.option(
    "--encoder",
    type=click.Choice([*KINDS]),
    multiple=True,
    help="Only this one; may be repeated. Default: all, or that of a plan.",
)
@click.option("--threads", help="Numbers of threads, such as 1,2,4. Default: 1 and all.")
@click.option(
    "--against", type=click.Choice(["datasketches"]), help="Also time a HyperLogLog of it."
)
@click.option("--like", type=Path, help="A plan: time its encoder, and say what its run takes.")
@click.option("--json", "json_file", help="Write figures as JSON; - for standard output.")
def bench(
    rows: int,
    encoder: tuple[str, ...],
    threads: str | None,
    against: str | None,
    like: Path | None,
    json_file: str | None,
) -> None:
    """Time the encoders on this machine, on several threads, beside what it does at most."""
    from ..plan.forecast import forecast
    from ..plan.plan import Plan
    from .bench import against_datasketches, in_words, run_bench

    check_writable(json_file, read=[str(like)] if like else [])
    plan = None if like is None else Plan.load(like)
    if plan is not None and plan.groups:
        encoder = encoder or (plan.encoder,)
    if rows is None:
        rows = 1_000_000 if plan is None else plan.expected_records
    several = [] if threads is None else parse_numbers(threads, "--threads")
    compile_kernels("party", "server", *(encoder or KINDS))
    compared = {"datasketches": against_datasketches(rows)} if against else {}
    figures = run_bench(rows, encoder, several, for_terminal())
    write_json(json_file, {"kind": "benchmark"} | figures | compared)
    if json_file == "-":
        return
    lines = in_words(figures)
    for name, ids in compared.items():
        lines.append(
            f"\nA sketch of a set on one thread: {ids['vertimrf'] / 1e6:.1f} M ids/s, {ids['ratio']:.1f} times"
            f" the {ids[name] / 1e6:.1f} M ids/s of {name}, which takes one id a call."
        )
    if plan is not None and (expected := forecast(plan)) is not None:
        roles = *zip(plan.party_names, expected.parties, strict=True), ("server", expected.server)
        lines += [f"\nA run of {like}, forecast:", *(f"  {name}: {one}" for name, one in roles)]
    click.echo("\n".join(lines))


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
@click.option(
    "--tables",
    metavar="FOLDER",
    help="Only write the small tables of the tutorial into this folder: hospital.csv, insurer.csv and their schema.toml.",
)
def demo(
    folder: str, epsilon: float, options: Any, json_file: str | None, tables: str | None
) -> None:
    """Run a real case: a year of flights of an airline, a weather office and a registry."""
    if tables is not None:
        from ..demo.people import write_people

        click.echo(f"Written: {', '.join(map(str, write_people(Path(tables))))}.")
        return
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

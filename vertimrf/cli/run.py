"""One command a role for a whole run, in a folder, called as often as needed."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from ..errors import ExchangeError, PlanError
from ..plan.options import PlanOptions
from ..progress import for_terminal
from ..tables.read_options import ReadOptions
from .common import compile_kernels, load_schema
from .group import main
from .options import makes_plan, missing_options, reads_tables, runs
from .outputs import check_writable, write_json

__all__ = ["accept", "run", "run_party", "run_server", "status"]

LOG = logging.getLogger("vertimrf")

EXCHANGE = "Folder, mounted or shared, or URI such as s3://bucket/run, by which all roles exchange their files."
WAIT = (
    "Stay until the run is over; without it, do what can be done now, and say what is waited for."
)
# Seconds between two looks at what has come: few where much happens.
SOON, SELDOM, SLOWER = 0.5, 10.0, 1.5


@main.group()
def run() -> None:
    """A role's whole run, in a folder of its own; started again at any time, after whatever crash, by the FOLDER alone."""


@run.command("party")
@click.argument("folder")
@click.option("--name", help="The party's name in the schema.")
@click.option("--table", help="The party's records.")
@click.option("--id", "id_column", help="Record id column.")
@click.option("--exchange", help=EXCHANGE)
@click.option("--threads", type=click.IntRange(min=1), help="Threads for the kernels.")
@click.option("--wait", is_flag=True, help=WAIT)
@reads_tables()
def run_party(
    read: Any,
    folder: str,
    name: str | None,
    table: str | None,
    id_column: str | None,
    exchange: str | None,
    threads: int | None,
    wait: bool,
) -> None:
    """A data holder: its part of a run, from the key pair to the message. FOLDER alone goes on with a run.

    Nothing is released before you have accepted the plan (`vertimrf accept`).
    """
    from ..options import RunOptions
    from ..runs.exchange import party_turn
    from ..runs.party_run import PartyRun

    options = RunOptions(num_threads=threads, progress=for_terminal())
    if name is None and table is None and id_column is None:
        given = PartyRun(folder, options)
        if read != ReadOptions():
            raise PlanError(
                f"How the table of a run is read is in {given.folder / 'run.toml'}: edit it there."
            )
    elif name is None or table is None or id_column is None:
        needed = missing_options({"--name": name, "--table": table, "--id": id_column})
        raise PlanError(f"A new run also needs {needed}; to go on with one, name its folder alone.")
    else:
        given = PartyRun.create(
            folder,
            name=name,
            table=table,
            id=id_column,
            read=read,
            exchange=_place(exchange),
            options=options,
        )
    _play(given, "party", party_turn, _place(exchange) or given.settings.exchange, wait)


@run.command("server")
@click.argument("folder")
@click.option("--schema", "schema_file", help="Schema with its parties.")
@click.option("--epsilon", type=float, help="Privacy target of the whole run.")
@click.option(
    "--out", default="synthetic.parquet", help="The synthetic table's name in FOLDER/result."
)
@click.option("--exchange", help=EXCHANGE)
@click.option("--wait", is_flag=True, help=WAIT)
@makes_plan()
@runs
def run_server(
    folder: str,
    planning: PlanOptions,
    options: Any,
    schema_file: str | None,
    epsilon: float | None,
    out: str,
    exchange: str | None,
    wait: bool,
) -> None:
    """The untrusted server: its part of a run, from the plan to the synthetic table. FOLDER alone goes on with a run."""
    from ..runs.exchange import server_turn
    from ..runs.server_run import ServerRun

    expected_records = planning.expected_records
    if schema_file is None and epsilon is None and expected_records is None:
        given = ServerRun(folder, options)
    elif schema_file is None or epsilon is None or expected_records is None:
        needed = missing_options(
            {"--schema": schema_file, "--epsilon": epsilon, "--expected-records": expected_records}
        )
        raise PlanError(f"A new run also needs {needed}; to go on with one, name its folder alone.")
    else:
        given = ServerRun.create(
            folder,
            schema=load_schema(schema_file),
            epsilon=epsilon,
            planning=planning,
            out=out,
            exchange=_place(exchange),
            options=options,
        )
    _play(given, "server", server_turn, _place(exchange) or given.settings.exchange, wait)


@main.command()
@click.argument("folder")
@click.argument("fingerprint", nargs=-1, required=True)
def accept(folder: str, fingerprint: Sequence[str]) -> None:
    """A data holder: accept the plan of a run by the FINGERPRINT that all others read out, in full.

    Compare it by a way that the server does not control, such as by phone. Upper or lower case, dashes and spaces do not matter.
    """
    from ..runs.party_run import PartyRun

    click.echo(PartyRun(folder).accept(" ".join(fingerprint)))


@main.command()
@click.argument("folder")
@click.option("--json", "json_file", help="Write the state as JSON; - for standard output.")
def status(folder: str, json_file: str | None) -> None:
    """How far a run is, and what it waits for; at any time, also while another process is at work in the FOLDER."""
    from ..runs.folder import read_settings

    check_writable(json_file)
    given: Any
    if read_settings(Path(folder).absolute()).get("role") == "server":
        from ..runs.server_run import ServerRun

        given = ServerRun(folder)
    else:
        from ..runs.party_run import PartyRun

        given = PartyRun(folder)
    state = given.state()
    write_json(json_file, state.to_json())
    if json_file != "-":
        click.echo(state.text())


def _print_files(given: Any) -> None:
    """Which files have to be carried where nothing carries them."""
    from ..runs.exchange import by_hand

    gives, takes = by_hand(given)
    click.echo(
        "No --exchange: nothing carries this run's files. To carry them by hand, name a folder of this machine with --exchange.\n"
        f"  Files for others: {', '.join(gives) or 'none'}\n"
        f"  Files from others: {', '.join(takes) or 'none'}"
    )


def _place(exchange: str | None) -> str | None:
    """An exchange as a run's settings hold it: good in whatever folder the command is started again."""
    return exchange if exchange is None or "://" in exchange else str(Path(exchange).absolute())


def _play(
    given: Any, role: str, turn: Callable[[Any, Any], None], place: str | None, wait: bool
) -> None:
    """Turns of a run, until nothing is left to do; without ``wait``, until nothing can be done."""
    from ..runs.exchange import Exchange

    exchange = None if place is None else Exchange(place)
    told, warm, pause = "", False, SOON
    trouble: ExchangeError | None = None
    with given.hold():
        while True:
            before = given.state()
            if not warm and given.encoder is not None:
                compile_kernels(role, given.encoder)
                warm = True
            try:
                if exchange is None:
                    given.advance({})
                else:
                    turn(given, exchange)
                trouble = None
            except ExchangeError as error:
                # A line that is cut comes back, and what is in the way is removed.
                if wait and str(error) != str(trouble):
                    LOG.warning("%s It is tried again.", error)
                trouble = error
            after = given.state()
            # Steps alone: what others put in the way may be another thing each time.
            if after.steps != before.steps:
                pause = SOON
                continue
            if trouble is not None and not wait:
                raise trouble
            if after.text() != told:
                told = after.text()
                click.echo(told)
            if exchange is None:
                _print_files(given)
            if exchange is None or not wait or (after.done and trouble is None):
                return
            time.sleep(pause)
            pause = min(pause * SLOWER, SELDOM)

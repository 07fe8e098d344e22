"""The commands of a run: ``run party``, ``run server``, ``accept`` and ``status``."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import ExchangeError, PlaceError, PlanError, RunError, VertiMRFError
from ..plan.options import PlanOptions
from ..tables.read_options import ReadOptions
from .common import compile_kernels, how_many, print_check
from .group import main
from .options import begins_run, makes_plan, reads_tables, runs
from .outputs import check_writable, write_json

if TYPE_CHECKING:
    from ..runs.state import RunState

LOG = logging.getLogger("vertimrf")

EXCHANGE = (
    "Shared folder, or URI such as s3://bucket/run, through which all roles exchange their files."
)
WAIT = "Wait until the run is over. Without it, do what can be done now, and say what is missing."
# Shortest and longest pause between two checks for files, seconds, and the factor from one pause to
# the next.
MIN_PAUSE, MAX_PAUSE, PAUSE_FACTOR = 0.5, 10.0, 1.5


@main.group()
def run() -> None:
    """Run one role of the protocol in a run folder.

    To continue a run, also after a crash, name only its FOLDER.
    """


@run.command("party")
@click.argument("folder")
@click.option("--name", help="Name of the party in the schema.")
@click.option("--table", help="Table of the party.")
@click.option("--id", help="Column of record ids; a,b for ids in two.")
@click.option("--schema", "schema_file", help="The party's part, which says how TABLE is read.")
@click.option("--exchange", help=EXCHANGE)
@click.option("--dask", help="Scheduler of the party's own Dask cluster: tls://HOST:8786.")
@click.option("--wait", is_flag=True, help=WAIT)
@runs("num_threads")
@reads_tables()
def run_party(
    read: Any,
    options: Any,
    folder: str,
    schema_file: str | None,
    wait: bool,
    **given: Any,
) -> None:
    """Run a party, which holds data: from its key pair to its message.

    To continue a run, name only its FOLDER.

    Nothing is released before you accept the plan (`vertimrf accept`).
    """
    from ..plan.open_schema import OpenSchema
    from ..runs.party_run import PartyRun
    from ..tables.derived import as_stated

    name, place = given["name"], _place(given.pop("exchange"))
    if begins_run({"--name": name, "--table": given["table"], "--id": given["id"]}):
        if schema_file is not None:
            schema = OpenSchema.load(schema_file).schema
            schema.part(name)
            read = as_stated(read, schema, name)
        role = PartyRun.create(folder, read=read, exchange=place, options=options, **given)
    else:
        role = PartyRun(folder, options)
        if schema_file is not None or given["dask"] is not None or read != ReadOptions():
            raise PlanError(
                f"{role.folder / 'run.toml'} says how the table is read: edit it there."
            )
    _play(role, "party", place or role.settings.exchange, wait)


@run.command("server")
@click.argument("folder")
@click.option("--schema", "schema_file", help="Schema file, with the parties.")
@click.option("--epsilon", type=float, help="Privacy target of the whole run.")
@click.option(
    "--out", default="synthetic.parquet", help="File name of the synthetic table in FOLDER/result."
)
@click.option("--exchange", help=EXCHANGE)
@click.option("--wait", is_flag=True, help=WAIT)
@makes_plan("domain_share")
@runs()
def run_server(
    folder: str,
    planning: PlanOptions,
    options: Any,
    schema_file: Any,
    epsilon: Any,
    out: str,
    exchange: str | None,
    wait: bool,
) -> None:
    """Run the untrusted server: from the plan to the synthetic table.

    To continue a run, name only its FOLDER.
    """
    from ..plan.schema import Schema
    from ..runs.server_run import ServerRun

    records = planning.expected_records
    if begins_run({"--schema": schema_file, "--epsilon": epsilon, "--expected-records": records}):
        role = ServerRun.create(
            folder,
            schema=Schema.load(schema_file),
            epsilon=epsilon,
            planning=planning,
            out=out,
            exchange=_place(exchange),
            options=options,
        )
    else:
        role = ServerRun(folder, options)
    _play(role, "server", _place(exchange) or role.settings.exchange, wait)


@main.command()
@click.argument("folder")
@click.argument("fingerprint", nargs=-1, required=True)
@click.option(
    "--anyway",
    is_flag=True,
    help="Accept the plan whatever the check of the table finds. Without it, you are asked.",
)
def accept(folder: str, fingerprint: Sequence[str], anyway: bool) -> None:
    """Accept the plan of a party's run, given the whole FINGERPRINT that the other roles read out.

    Compare it over a channel that the server does not control, such as the phone. Case, dashes and
    spaces do not matter.

    The table is checked as by `vertimrf check`, and you are asked whether to go on, whatever was
    found. The figures printed are exact: keep them private.
    """
    from ..plan.open_schema import OpenSchema
    from ..runs.party_run import PartyRun

    role, words = PartyRun(folder), " ".join(fingerprint)
    plan, settings, as_it_is = role.plan_of(words), role.settings, role.table_as_it_is
    try:
        problems = print_check(
            settings.table, settings.id, OpenSchema(plan.schema, {}), role.name, settings, plan
        )
    except VertiMRFError as error:
        click.echo(f"Problem: {error}", err=True)
        problems = [str(error)]
    # The question is the same for every table: if findings decided, one record could.
    found = f"{how_many(problems)}, see above" if problems else "the check found no problem"
    if not anyway and not _said_yes(f"{settings.table}: {found}. Make and give the message of it?"):
        raise RunError(
            "Nobody said yes, so the plan is not accepted, and nothing is released: correct the table, and accept again; or add "
            "--anyway."
        )
    click.echo(role.accept(words, as_it_is))


@main.command()
@click.argument("folder")
@click.option("--json", "json_file", help="Write the state as JSON; - for standard output.")
def status(folder: str, json_file: str | None) -> None:
    """Show how far a run has come, and what it waits for.

    Another process may work in the FOLDER at the same time.
    """
    from ..runs.folder import read_settings

    check_writable(json_file)
    role: Any
    if read_settings(Path(folder).absolute()).get("role") == "server":
        from ..runs.server_run import ServerRun

        role = ServerRun(folder)
    else:
        from ..runs.party_run import PartyRun

        role = PartyRun(folder)
    state = role.state()
    write_json(json_file, state.to_json())
    if json_file != "-":
        click.echo(state.text())


def _said_yes(question: str) -> bool:
    """Whether the operator says yes. Where nobody is asked, nobody does."""
    try:
        return click.confirm(question)
    except click.Abort:
        click.echo()
        return False


def _print_files(role: Any) -> None:
    """Print the files that the user has to carry if there is no exchange."""
    from ..runs.exchange import by_hand

    gives, takes = by_hand(role)
    click.echo(
        "No --exchange: nothing carries this run's files. To carry them by hand, name a folder of this machine with --exchange.\n"
        f"  Files for others: {', '.join(gives) or 'none'}\n"
        f"  Files from others: {', '.join(takes) or 'none'}"
    )


def _place(exchange: str | None) -> str | None:
    """An exchange as a run's settings keep it: a URI, or an absolute path."""
    return exchange if exchange is None or "://" in exchange else str(Path(exchange).absolute())


def _play(role: Any, kind: str, place: str | None, wait: bool) -> None:
    """Advance a run until it is done or, without ``wait``, until nothing can be done now.

    Args:
        role: the run.
        kind: "party" or "server", whose kernels are compiled.
        place: the exchange. None: files are carried by hand.
        wait: whether to wait for files.
    """
    from ..runs.exchange import Exchange, take_turn
    from ..runs.waiting import Reminder

    remind = Reminder(partial(LOG.warning, "%s"))
    exchange = None if place is None else Exchange(place)
    shown: RunState | None = None
    compiled, pause = False, MIN_PAUSE
    failure: ExchangeError | None = None
    with role.hold():
        while True:
            before = role.state()
            if not compiled and role.encoder is not None:
                compile_kernels(kind, role.encoder)
                compiled = True
            try:
                if exchange is None:
                    role.take({})
                    role.note({})
                else:
                    take_turn(role, exchange)
                failure = None
            except PlaceError:
                raise
            except ExchangeError as error:
                # The network may come back, and obstacles may be removed.
                failure = error
            if wait:
                remind("" if failure is None else f"{failure} It is tried again.")
            after = role.state()
            # Only the steps are compared: obstacles may differ each time.
            if after.undated.steps != before.undated.steps:
                pause = MIN_PAUSE
                continue
            if failure is not None and not wait:
                raise failure
            if after.undated != shown:
                shown = after.undated
                click.echo(after.text())
            if exchange is None:
                _print_files(role)
            if exchange is None or not wait or (after.done and failure is None):
                return
            time.sleep(pause)
            pause = min(pause * PAUSE_FACTOR, MAX_PAUSE)

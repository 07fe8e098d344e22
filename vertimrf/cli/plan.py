"""The command ``plan``: a plan's ledger, forecast and predicted errors, before any data is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import click

from ..errors import PlanError
from ..files.results import STDOUT
from ..plan.options import PlanOptions
from .common import print_warnings
from .group import main
from .options import makes_plan, missing_options
from .outputs import check_new, check_writable, write_json


@main.command()
@click.argument("plans", nargs=-1, metavar="[PLAN...]")
@click.option("--schema", "schema_file", help="Schema file, with the parties.")
@click.option("--epsilon", type=float, help="Privacy target of the whole run.")
@click.option(
    "--out", help="Plan file to write (JSON, public). Without it, the plan is only priced."
)
@click.option("--json", "json_file", help="Write the ledger as JSON; - for standard output.")
@makes_plan("domain_share")
def plan(
    plans: Sequence[str],
    planning: PlanOptions,
    schema_file: Any,
    epsilon: Any,
    out: str | None,
    json_file: str | None,
) -> None:
    """Print the ledger, forecast and predicted errors of a plan, before any data is read.

    With --schema, --epsilon and --expected-records: of a new plan. The plan of a run, with
    everyone's keys, comes from `run server`.

    With PLANs: what they spend together on the same people, if a message is released once for each.
    --delta sets the delta (default: the sum of theirs). --records-per-person adds the epsilon of a
    person with so many records in every table.
    """
    from ..plan.planner import make_plan
    from ..plan.schema import Schema
    from ..plan.verdict import useful

    check_writable(out, json_file, read=(*plans, schema_file))
    if plans:
        kept = PlanOptions(delta=planning.delta, records_per_person=planning.records_per_person)
        if (schema_file, epsilon, out) != (None, None, None) or planning != kept:
            raise PlanError(
                "Existing PLANs are priced as they are; the only options are --delta, --records-per-person and --json."
            )
        _price(plans, planning, json_file)
        return
    records = planning.expected_records
    if needed := missing_options(
        {"--schema": schema_file, "--epsilon": epsilon, "--expected-records": records}
    ):
        raise PlanError(
            f"A new plan also needs {needed}. To price existing plans, name their files."
        )
    if out is not None:
        check_new(out, "other plans may be priced with it")
    loaded = Schema.load(schema_file)
    made = make_plan(loaded, epsilon, replace(planning, even_if_useless=True))
    if STDOUT not in (json_file, out):
        _print_plan(made, loaded.remarks())
    if not planning.even_if_useless:
        useful(made)
    if out is not None:
        made.save(out)
    write_json(json_file, made.ledger().to_json())


def _print_plan(plan: Any, remarks: Sequence[str]) -> None:
    """Print a new plan: its summary, forecast and ledger."""
    from ..plan.summary import summary
    from ..plan.target import target_in_words
    from ..plan.verdict import verdict

    print_warnings(target_in_words(plan.epsilon, plan.delta, plan.expected_records))
    click.echo(summary(plan))
    for remark in remarks:
        click.echo(f"  Note: {remark}")
    _print_forecast(plan)
    if (judged := verdict(plan)) is not None:
        click.echo("\n".join(f"  {line}" for line in judged.errors.lines()))
    click.echo(
        "  For pricing: it has no public keys. `vertimrf run server` makes the plan of a run, with everyone's keys."
    )
    click.echo(plan.ledger().table())


def _print_forecast(plan: Any) -> None:
    """Print the time and memory that each role will need on a machine like this one."""
    from ..plan.forecast import forecast

    estimate = forecast(plan)
    if estimate is not None:
        for name, party in zip(plan.party_names, estimate.parties, strict=True):
            click.echo(f"  {name}: its message takes {party}.")
        click.echo(
            f"  The server: {estimate.server}, for cliques of about {estimate.model_cells:,.0f} cells in all."
        )
        click.echo(f"  All in one process: {estimate.trial}.")


def _price(plans: Sequence[str], planning: PlanOptions, json_file: str | None) -> None:
    """Print what plans spend together."""
    from ..plan.plan import Plan
    from ..plan.target import target_in_words
    from ..privacy.ledger import Ledger

    loaded = [Plan.load(path) for path in plans]
    if len({one.digest() for one in loaded}) < len(loaded):
        raise PlanError(
            "A plan is given twice, but messages are released for a plan only once. Name each plan once."
        )
    ledger = Ledger.together([one.ledger() for one in loaded], planning.delta)
    priced, text = ledger.to_json(), ledger.table()
    if len(loaded) > 1:
        at = "; delta is the sum." if planning.delta is None else "."
        text += f"\n{len(loaded)} plans over the same people, together{at}"
    records = planning.records_per_person
    if records > 1:
        if ledger.records_per_person > 1:
            raise PlanError(
                f"This plan is for persons with up to {ledger.records_per_person} records, and its epsilon covers them all: "
                "leave --records-per-person out."
            )
        group = ledger.group_epsilon(records)
        priced = {
            "kind": "price",
            "ledger": priced,
            "records_per_person": records,
            "epsilon": group,
            "delta": ledger.delta,
        }
        text += f"\nA person with {records} records in every table: epsilon {group:.4f} at the same delta."
    print_warnings(
        target_in_words(
            priced["epsilon"], ledger.delta, min(one.expected_records for one in loaded)
        )
    )
    write_json(json_file, priced)
    if json_file != "-":
        click.echo(text)

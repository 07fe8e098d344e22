"""What is agreed before any data is touched: the plan, its price, its fingerprint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import click

from ..errors import PlanError
from ..plan.options import PlanOptions
from .common import load_schema, print_warnings
from .group import main
from .options import makes_plan, missing_options
from .outputs import check_new, check_writable, write_json

__all__ = ["account", "compare", "plan"]


@main.command()
@click.argument("offers", nargs=-1, metavar="[OFFER...]")
@click.option("--schema", "schema_file", required=True, help="Schema with its parties.")
@click.option("--epsilon", type=float, required=True, help="Privacy target of the whole run.")
@click.option("--errors", is_flag=True, help="Print the predicted error of every sketched marginal, not of the worst alone.")
@click.option("--out", required=True, help="Plan file to write (JSON, public).")
@makes_plan("split")
def plan(
    offers: Sequence[str],
    planning: PlanOptions,
    schema_file: str,
    epsilon: float,
    errors: bool,
    out: str,
) -> None:
    """Agree on everything public before any data is touched.

    OFFERs are everyone's public keys: one of every party (`vertimrf secret offer`) and the server's (`vertimrf server offer`).
    Without any, the plan can be priced, and no message can be made for it.
    """
    from ..keys import Offer, PublicKeys
    from ..plan.plan import target_in_words
    from ..plan.planner import make_plan, split_parties

    if planning.expected_records is None:
        raise PlanError("A plan needs --expected-records, a public order of magnitude of the number of records.")
    check_new(out, "messages made for it would be of no use without it")
    loaded = load_schema(schema_file)
    if planning.split is not None:
        loaded, planning = split_parties(loaded, planning.split), replace(planning, split=None)
    names = [name for name, _ in loaded.parties]
    keys = PublicKeys.of([Offer.load(path) for path in offers], names) if offers else None
    made = make_plan(loaded, epsilon, planning, public_keys=keys)
    made.save(out)
    print_warnings(target_in_words(made.epsilon, made.delta, made.expected_records))
    click.echo(made.summary())
    for remark in loaded.remarks():
        click.echo(f"  Note: {remark}")
    _print_forecast(made)
    click.echo(
        f"  Fingerprint {made.fingerprint}: all parties and the server must have this plan, with these keys; compare it by phone."
        if offers
        else "  For pricing: without everyone's offers no message can be made for this plan."
    )
    _print_errors(made, errors)
    click.echo(made.ledger().table())


def _print_forecast(plan: Any) -> None:
    """What the plan will take of every role's machine, taken to be like this one."""
    from ..plan.forecast import forecast

    foreseen = forecast(plan)
    if foreseen is not None:
        for name, party in zip(plan.party_names, foreseen.parties, strict=True):
            click.echo(f"  {name}: its message takes {party}.")
        click.echo(f"  The server: {foreseen.server}, for cliques of about {foreseen.model_cells:,.0f} cells in all.")
        click.echo(f"  All in one process: {foreseen.trial}.")


def _print_errors(plan: Any, every: bool, most: int = 10) -> None:
    """Predicted errors of the sketched marginals, largest first in relation to the average count."""
    from ..server.cross_party import predicted_marginals

    predicted = sorted(predicted_marginals(plan), key=lambda p: -p.error / p.average)
    if not predicted:
        return
    names = plan.schema.names
    click.echo("  Predicted standard error of a cell, and average count, in records; least certain first:")
    for p in predicted if every else predicted[:most]:
        sides = " x ".join("+".join(names[a] for a in side) for side in p.attributes)
        click.echo(f"    {sides}: {p.error:,.0f} of {p.average:,.0f}, {p.cells:,} cells")
    if not every and len(predicted) > most:
        click.echo(f"    and {len(predicted) - most} more; --errors prints them all.")


@main.command()
@click.argument("plans", nargs=-1, metavar="[PLAN...]")
@click.option("--records-per-person", type=click.IntRange(min=1), help="Also for a person with so many records in every table.")
@click.option("--sketch-keys", type=int, help="Or price sketches alone: hash keys t,")
@click.option("--phantoms", type=int, help="phantom records per sketch,")
@click.option("--floor", type=int, help="lowest published level,")
@click.option("--ceiling", type=int, help="highest published level,")
@click.option("--attributes-per-key", type=int, default=2, help="sketches a record touches under one key,")
@click.option("--gamma", type=float, default=1.0, help="a level exceeds k with probability (1 + gamma)^-k.")
@click.option("--groups", type=int, help="Or price count sketches alone: values that a record has, over all parties,")
@click.option("--variance", type=float, help="noise variance of a number,")
@click.option("--buckets", type=int, help="buckets of a repetition,")
@click.option("--repetitions", type=int, help="repetitions.")
@click.option("--delta", type=float, help="At which epsilon is stated; default the plan's, or the sum of the plans'.")
@click.option("--json", "json_file", help="Write the result as JSON; - for standard output.")
def account(
    plans: Sequence[str],
    records_per_person: int | None,
    sketch_keys: int | None,
    phantoms: int | None,
    floor: int | None,
    ceiling: int | None,
    attributes_per_key: int,
    gamma: float,
    groups: int | None,
    variance: float | None,
    buckets: int | None,
    repetitions: int | None,
    delta: float | None,
    json_file: str | None,
) -> None:
    """Price plans, or sketches alone, before any data is touched: the exact epsilon at delta.

    Several plans over the same people add up; of each a message is released once.
    """
    from ..plan.plan import Plan, target_in_words
    from ..privacy.accountant import epsilon
    from ..privacy.events import CountSketchEvent, Event, SketchEvent
    from ..privacy.ledger import Ledger

    check_writable(json_file)
    if bool(plans) + (sketch_keys is not None) + (groups is not None) != 1:
        raise PlanError(
            "Give either plans, or --sketch-keys with --phantoms, --floor, --ceiling and --delta, or --groups with --variance, "
            "--buckets, --repetitions and --delta."
        )
    loaded: list[Plan] = []
    if plans:
        loaded = [Plan.load(path) for path in plans]
        if len({one.digest() for one in loaded}) < len(loaded):
            raise PlanError("One plan is given twice: it can be released for only once, and two plans add up to less.")
        ledger = Ledger.together([one.ledger() for one in loaded], delta)
        priced, text = ledger.to_json(), ledger.table()
        if len(loaded) > 1:
            text += f"\n{len(loaded)} plans over the same people, together" + ("; delta is the sum." if delta is None else ".")
        if records_per_person is not None:
            if ledger.records_per_person > 1:
                raise PlanError(
                    f"This plan is for persons with up to {ledger.records_per_person} records: its epsilon covers them all; "
                    "leave --records-per-person out."
                )
            group = ledger.group_epsilon(records_per_person)
            priced = {"ledger": priced, "records_per_person": records_per_person, "epsilon": group, "delta": ledger.delta}
            text += f"\nA person with {records_per_person} records in every table: epsilon {group:.4f} at the same delta."
    else:
        event: Event
        if groups is not None:
            needed = {"--variance": variance, "--buckets": buckets, "--repetitions": repetitions, "--delta": delta}
            if variance is None or buckets is None or repetitions is None or delta is None:
                raise PlanError(f"Pricing count sketches also needs {missing_options(needed)}.")
            event = CountSketchEvent(groups, variance, buckets, repetitions)
        else:
            needed = {"--phantoms": phantoms, "--floor": floor, "--ceiling": ceiling, "--delta": delta}
            if sketch_keys is None or phantoms is None or floor is None or ceiling is None or delta is None:
                raise PlanError(f"Pricing sketches also needs {missing_options(needed)}.")
            event = SketchEvent(phantoms, floor, ceiling, sketch_keys, gamma, attributes_per_key)
        spent = epsilon([event], delta)
        priced = {"epsilon": spent.epsilon, "delta": delta, "method": spent.method}
        if records_per_person is not None:
            raise PlanError("--records-per-person goes with plans.")
        text = f"epsilon {spent.epsilon:.4f} at delta {delta:.4g} (add or remove one record; {spent.method})."
    records = min((one.expected_records for one in loaded), default=None)
    print_warnings(target_in_words(priced["epsilon"], ledger.delta if plans else delta, records))
    write_json(json_file, priced)
    if json_file != "-":
        click.echo(text)


@main.command()
@click.argument("file")
@click.argument("fingerprint", nargs=-1, required=True)
@click.option("--key", help="With a plan: your own private key file, which must stand in it.")
def compare(file: str, fingerprint: Sequence[str], key: str | None) -> None:
    """Compare a plan or secret with the FINGERPRINT that somebody else read out, in full.

    Upper or lower case, dashes and spaces do not matter.
    """
    from ..compare import compare as compared
    from ..keys import PrivateKey

    click.echo(compared(file, " ".join(fingerprint), None if key is None else PrivateKey.load(key)))

"""Everything on one machine: a trial's table, and how good it is."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from ..errors import PlanError
from ..plan.defaults import INNER, PAIRS_BYTES, POPULATIONS
from ..plan.options import PlanOptions
from .common import (
    compile_kernels,
    load_open_schema,
    load_schema,
    print_dropped,
    print_findings,
    print_warnings,
)
from .group import main
from .options import makes_plan, parse_numbers, reads_tables, runs
from .outputs import Outputs, check_room, check_writable, write_json, writes_results

__all__ = ["evaluate", "synthesize"]


@main.command()
@click.argument("tables", nargs=-1, required=True, metavar="TABLE...")
@click.option(
    "--id",
    "id_column",
    help="Record id column, in every table; one TABLE without --split needs none.",
)
@click.option(
    "--schema", help="Public domains; inferred from the data when absent (for trials: not private)."
)
@click.option("--epsilon", type=float, required=True, help="Privacy target of the whole run.")
@reads_tables()
@makes_plan("split", "domain_share")
@runs
@writes_results
def synthesize(
    read: Any,
    tables: Sequence[str],
    planning: PlanOptions,
    options: Any,
    id_column: str | None,
    schema: str | None,
    epsilon: float,
    outputs: Outputs,
) -> None:
    """All parties and the server on one machine, for trials; or one TABLE that one holder has, without any protocol."""
    from ..plan.plan import target_in_words

    outputs.check(read=(*tables, schema))
    domains = load_open_schema(schema)
    if domains is not None and domains.wanted:
        click.echo(
            f"Domains of {len(domains.wanted)} attributes are found with {100 * planning.domain_share:g} % of epsilon: "
            f"{', '.join(domains.wanted)}.",
            err=outputs.quiet,
        )
    print_warnings(target_in_words(epsilon, planning.delta, planning.expected_records))
    alone = (
        len(tables) == 1
        and planning.split is None
        and (domains is None or len(domains.schema.parties) == 1)
    )
    if alone:
        from ..synthesizer import Synthesizer

        made = Synthesizer(domains, id=id_column, planning=planning, read=read, options=options)
        compile_kernels("party", "server")
        made.fit(tables[0], epsilon=epsilon)
        print_dropped(made.dropped)
        outputs.write(
            made.model.pieces(options.rows, seed=options.seed), made.model, made.to_json()
        )
        return
    if id_column is None:
        raise PlanError(
            "Several parties' tables are joined by record ids: name their column with --id."
        )
    # A message for every table, before it is read back.
    messages = max(len(tables), len(planning.split or ()))
    check_room(
        (
            Path(tempfile.gettempdir()) / "message",
            messages * (planning.message_bytes or PAIRS_BYTES),
        )
    )
    compile_kernels("party", "server", planning.encoder)
    from ..trial import synthesize as run_trial

    trial = run_trial(
        tables, id_column, epsilon, schema=domains, planning=planning, read=read, options=options
    )
    for dropped in dict.fromkeys(trial.dropped.values()):
        print_dropped(dropped)
    print_findings(trial.result)
    from ..named_model import Model

    model = Model(trial.result.plan.schema, trial.model, trial.ledger, trial.result.others)
    outputs.write(trial.result.pieces(), model, trial.to_json())


def compares(command: Any) -> Any:
    """Options of how closely tables are compared; the command is handed an ``EvaluationOptions`` as `options`."""

    @click.option("--ways", help="Attributes per marginal; default 3,4,5, or as many as there are.")
    @click.option("--marginals", type=int, default=300, help="Random marginals for each of --ways.")
    @click.option(
        "--seed", type=click.IntRange(min=0), default=0, help="Of the choice of marginals."
    )
    @click.option(
        "--name",
        "party",
        help="Compare this party's attributes alone; its table is then the real one.",
    )
    @click.option(
        "--population",
        type=click.Choice(POPULATIONS),
        default=INNER,
        help="Records that all tables have, or any.",
    )
    @click.option(
        "--utility",
        "label",
        metavar="LABEL",
        help="A column that trees tell, trained on synthetic rows; and scores.",
    )
    @functools.wraps(command)
    def comparing(*args: Any, ways: str | None, **given: Any) -> Any:
        from ..evaluate import EvaluationOptions

        own = {
            field.name: given.pop(field.name)
            for field in fields(EvaluationOptions)
            if field.name != "ways"
        }
        numbers = None if ways is None else tuple(parse_numbers(ways, "--ways"))
        return command(*args, options=EvaluationOptions(ways=numbers, **own), **given)

    return comparing


@main.command()
@click.option("--real", multiple=True, required=True, help="A party's real table; repeat for all.")
@click.option("--synthetic", required=True, help="The synthetic table.")
@click.option("--id", "id_column", required=True, help="Record id column of the real tables.")
@click.option("--schema", required=True, help="The schema that the synthesis used.")
@compares
@click.option("--json", "json_file", help="Write the result as JSON; - for standard output.")
@reads_tables("id_format", "ignore_extra", "delimiter", "encoding")
def evaluate(
    read: Any,
    real: Sequence[str],
    synthetic: str,
    id_column: str,
    schema: str,
    options: Any,
    json_file: str | None,
) -> None:
    """Compare a synthetic table with the real ones: exact figures, so for your own eyes.

    Mean total variation distance (TVD) of marginals, beside that of as many records drawn from the real ones (better is rare)
    and of independent columns (worse is useless); then the columns and pairs that are farthest off.
    """
    from .. import evaluate as evaluation
    from ..privacy.standing import EXACT, Standing

    check_writable(json_file)
    outcome = evaluation.evaluate(
        list(real), synthetic, id_column, load_schema(schema), options, read
    )
    write_json(json_file, outcome)
    if json_file != "-":
        _print_evaluation(outcome)
    click.echo(f"These figures: {EXACT}", err=True)
    click.echo(
        f"The synthetic table: {Standing.from_json(outcome['synthetic_standing'])}", err=True
    )


def _print_evaluation(outcome: dict[str, Any], most: int = 5) -> None:
    click.echo(
        "TVD of two tables' marginal: the part of the records that would have to change for one to be the other, 0 to 1."
    )
    if "tables" in outcome["records"]:
        counts = ", ".join(f"{count:,}" for count in outcome["records"]["tables"])
        click.echo(
            f"The real tables have {counts} records; {outcome['records']['real']:,} are compared."
        )
    for way, distance in outcome["tvd"].items():
        across = outcome.get("tvd_across_parties", {}).get(way)
        click.echo(
            f"{way}-way TVD {distance:.4f}"
            + ("" if across is None else f", across parties {across:.4f}")
            + f" (records drawn from the real ones {outcome['tvd_resampled'][way]:.4f}, independent columns "
            f"{outcome['tvd_independent'][way]:.4f})"
        )
    for what in ("columns", "pairs"):
        listed = ", ".join(
            f"{' x '.join(marginal['columns'])} {marginal['tvd']:.3f}"
            for marginal in outcome[what][:most]
        )
        if listed:
            click.echo(f"Farthest {what}: {listed}")
    for line in sorted(outcome.get("impossible", []), key=lambda line: -line["synthetic"])[:most]:
        click.echo(
            f"Impossible, {line['combination']}: {line['synthetic']:,} synthetic records, {line['real']:,} real ones"
        )
    off = {
        name: (
            both["synthetic"]["mean"] - both["real"]["mean"],
            both["synthetic"]["deviation"] / both["real"]["deviation"],
        )
        for name, both in outcome["numbers"].items()
        if both["real"]["deviation"]
    }
    if off:
        click.echo(
            "Means (off by, in standard deviations) and standard deviations (synthetic / real):"
        )
        for name, (shift, ratio) in off.items():
            click.echo(
                f"  {name}: {shift / outcome['numbers'][name]['real']['deviation']:+.3f}, {ratio:.3f}"
            )
    if "utility" in outcome:
        _print_utility(outcome["utility"])
    if outcome["correlations"]:
        worst = outcome["correlations"][0]
        mean = sum(abs(pair["synthetic"] - pair["real"]) for pair in outcome["correlations"]) / len(
            outcome["correlations"]
        )
        click.echo(
            f"Correlations are off by {mean:.3f} on average, most that of {' and '.join(worst['columns'])}: "
            f"{worst['synthetic']:.2f} for {worst['real']:.2f}"
        )


def _print_utility(found: dict[str, Any]) -> None:
    click.echo(
        f"Trees trained on {found['trained']:,} synthetic records tell {found['label']} of {found['tried']:,} real ones, beside "
        f"trees trained on as many other real ones; its most frequent value has an accuracy of {found['majority']:.3f}:"
    )
    for name, trees in found["trees"].items():
        made, real = trees["synthetic"], trees["real"]
        click.echo(
            f"  {name}: AUC {made['auc']:.3f} (real {real['auc']:.3f}), "
            f"accuracy {made['accuracy']:.3f} (real {real['accuracy']:.3f})"
        )
    click.echo(
        f"Trees tell synthetic records from real ones with an AUC of {found['propensity']:.3f}; 0.5 is chance."
    )
    drawn = "records drawn from the real ones"
    score = found["k_marginal"]
    each = (
        f"of {k} attributes {own:.0f} ({drawn} {score['resampled'][k]:.0f})"
        for k, own in score["synthetic"].items()
    )
    click.echo(f"NIST's k-marginal score, 0 to 1000: {', '.join(each)}")
    if "quality" in found:
        score = found["quality"]
        parts = (
            f"{name.replace('_', ' ')} {own:.3f}"
            for name, own in score["synthetic"].items()
            if name != "score"
        )
        click.echo(
            f"SDMetrics' quality score, 0 to 1: {score['synthetic']['score']:.3f} ({', '.join(parts)}; "
            f"{drawn} {score['resampled']['score']:.3f})"
        )
    if found["absent"]:
        packages = " ".join(found["absent"]).lower()
        click.echo(
            f"Left out, for want of the package: {', '.join(found['absent'])} (pip install {packages})."
        )

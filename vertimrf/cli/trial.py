"""Commands that work on one machine: ``synthesize`` a table, and ``evaluate`` it."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from ..errors import PlanError
from ..files.atomic import check_space
from ..plan.defaults import AUTO, ENCODER, PAIRS_BYTES
from ..plan.options import PlanOptions
from ..releases.auto import chosen
from ..tables.read_options import ReadOptions
from .common import (
    compile_kernels,
    party_run,
    print_dropped,
    print_known,
    print_verdict,
    print_warnings,
)
from .group import main
from .options import compares, makes_plan, reads_tables, runs
from .outputs import Outputs, check_room, check_writable, write_json, writes_results


@main.command()
@click.argument("tables", nargs=-1, required=True, metavar="TABLE...")
@click.option(
    "--id",
    "id_column",
    help="Column of record ids, in every table; a,b for ids in two. One TABLE needs none.",
)
@click.option(
    "--schema", help="Schema file. Without it, domains are inferred from the data: not private."
)
@click.option("--epsilon", type=float, required=True, help="Privacy target of the whole run.")
@reads_tables()
@makes_plan()
@runs()
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
    """Synthesise a table on one machine, from one TABLE, or from several in a trial of all roles."""
    from ..party.before_plan import saying_run_spent
    from ..plan.open_schema import OpenSchema
    from ..plan.target import target_in_words

    outputs.check((*tables, schema), options.csv_safe)
    domains = None if schema is None else OpenSchema.load(schema)
    rows = options.rows or planning.expected_records or 0
    check_room(outputs.table, rows, 1 if domains is None else len(domains.schema.names))
    if domains is not None and domains.wanted:
        click.echo(
            f"Domains of {len(domains.wanted)} attributes are found with {100 * planning.domain_share:g} % of epsilon: "
            f"{', '.join(domains.wanted)}.",
            err=outputs.quiet,
        )
    print_warnings(target_in_words(epsilon, planning.delta, planning.expected_records))
    options = replace(options, planned=print_verdict)
    if len(tables) == 1 and (domains is None or len(domains.schema.parties) == 1):
        from ..synthesizer import Synthesizer

        made = Synthesizer(domains, id=id_column, planning=planning, read=read, options=options)
        compile_kernels("party", "server")
        made.fit(tables[0], epsilon=epsilon)
        print_dropped(made.dropped)
        figures = made.to_json()
        print_known(figures)
        pieces = made.model.pieces(options.rows, seed=options.seed, plain=options.plain)
        with saying_run_spent(made.ledger):
            outputs.write(pieces, made.model, lambda: figures, options, tables)
        return
    # The messages of all tables are written before they are read.
    messages = max(len(tables), 0 if domains is None else len(domains.schema.parties))
    needed = messages * (planning.message_bytes or PAIRS_BYTES)
    if short := check_space(Path(tempfile.gettempdir()), needed):
        raise PlanError(short)
    # Without a schema nobody states that people are the same.
    encoder = planning.encoder if domains is None else chosen(domains.schema, planning)[0].encoder
    compile_kernels("party", "server", ENCODER if encoder == AUTO else encoder)
    from ..trial import synthesize as run_trial

    trial = run_trial(
        tables,
        id_column,
        epsilon,
        schema=domains,
        planning=planning,
        read=read,
        options=options,
    )
    for dropped in dict.fromkeys(trial.dropped.values()):
        print_dropped(dropped)
    print_known(trial.result.to_json())
    for disagreement in trial.result.disagreements:
        if not disagreement.significant:
            click.echo(disagreement.sentence(trial.result.plan), err=True)
    with saying_run_spent(trial.ledger):
        outputs.write(trial.result.pieces(), trial.model, trial.to_json, options, tables)


@main.command()
@click.option(
    "--real",
    multiple=True,
    required=True,
    help="Real table of a party; repeat for all. Or a party's run folder.",
)
@click.option("--synthetic", required=True, help="Synthetic table.")
@click.option(
    "--id",
    "id_column",
    help="Column of record ids that joins several real tables; a,b for ids in two.",
)
@click.option(
    "--schema", help="Schema of the synthesis.  [default: that beside the synthetic table]"
)
@compares
@click.option("--json", "json_file", help="Write the result as JSON; - for standard output.")
@reads_tables()
def evaluate(
    read: Any,
    real: Sequence[str],
    synthetic: str,
    id_column: str | None,
    schema: str | None,
    options: Any,
    json_file: str | None,
) -> None:
    """Compare a synthetic table with the real ones. The figures are exact: keep them private.

    Prints the mean total variation distance (TVD) of marginals, beside that of as many records
    drawn from the real ones (better is rare) and that of independent columns (worse is useless).
    Then come the columns and pairs with the largest distance.
    """
    from ..evaluation import evaluate as compare
    from ..plan.open_schema import OpenSchema
    from ..privacy.label import EXACT, PrivacyLabel

    check_writable(json_file)
    run = party_run(real[0], real[1:], id_column, schema, options.party, read != ReadOptions())
    if run is None:
        domains = None if schema is None else OpenSchema.load(schema)
    else:
        domains, options = run.plan.schema, replace(options, party=run.name)
        real, id_column, read = [run.settings.table], run.settings.id, run.settings
    outcome = compare(list(real), synthetic, id_column, domains, options, read)
    write_json(json_file, outcome)
    if json_file != "-":
        _print_evaluation(outcome)
    click.echo(f"These figures: {EXACT}", err=True)
    click.echo(
        f"The synthetic table: {PrivacyLabel.from_json(outcome['synthetic_label'])}", err=True
    )


def _print_evaluation(outcome: dict[str, Any]) -> None:
    click.echo(
        "TVD of a marginal: the part of the records that must change to turn one table's into the other's, 0 to 1."
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
            for marginal in outcome[what][:5]
        )
        if listed:
            click.echo(f"Largest distances of {what}: {listed}")
    for line in sorted(outcome.get("impossible", []), key=lambda line: -line["synthetic"])[:5]:
        click.echo(
            f"Impossible, {line['combination']}: {line['synthetic']:,} synthetic records, {line['real']:,} real ones"
        )
    _print_values(outcome)
    if "utility" in outcome:
        _print_utility(outcome["utility"])
    if outcome["correlations"]:
        worst = outcome["correlations"][0]
        mean = sum(abs(pair["synthetic"] - pair["real"]) for pair in outcome["correlations"]) / len(
            outcome["correlations"]
        )
        click.echo(
            f"Correlations differ by {mean:.3f} on average, most that of {' and '.join(worst['columns'])}: "
            f"synthetic {worst['synthetic']:.2f}, real {worst['real']:.2f}"
        )


def _print_values(outcome: dict[str, Any]) -> None:
    """Print what readers of rows see: a line for each column of numbers, and SDMetrics' scores."""
    values = outcome["values"]
    numbers = {name: one for name, one in values["columns"].items() if "ks" in one}
    if numbers:
        click.echo(
            "Numbers: distance of Kolmogorov and Smirnov (KS); mean, off by, in standard deviations; standard deviation, "
            "synthetic / real; synthetic values that no real record has; shares of the commonest real values, synthetic (real):"
        )
    for name, one in numbers.items():
        real, made = (outcome["numbers"][name][which] for which in ("real", "synthetic"))
        moments = ["-", "-"]
        if spread := real["deviation"]:
            moments = [
                f"{(made['mean'] - real['mean']) / spread:+.3f}",
                f"{made['deviation'] / spread:.3f}",
            ]
        off = "-" if one["off_grid"] is None else f"{one['off_grid']:.1%}"
        common = ", ".join(
            f"{_short(each['value'])} {each['synthetic']:.1%} ({each['real']:.1%})"
            for each in one["commonest"]
        )
        click.echo(f"  {name}: KS {one['ks']:.3f}, {', '.join(moments)}; new {off}; {common}")
    scores = {
        "Column Shapes": values["column_shapes"],
        "Pair Trends": values["pair_trends"],
        "of dependent pairs": values["dependent_pair_trends"],
    }
    known = ", ".join(f"{name} {score:.3f}" for name, score in scores.items() if score is not None)
    if known:
        click.echo(f"As SDMetrics defines them, of values, 1 is best: {known}")


def _short(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:.10g}"


def _print_utility(figures: dict[str, Any]) -> None:
    click.echo(
        f"Trees trained on {figures['trained']:,} synthetic records predict {figures['label']} of {figures['tried']:,} real ones, "
        "beside trees trained on as many other real ones. The most frequent value has an accuracy of "
        f"{figures['majority']:.3f}:"
    )
    synthetic, real = figures["trees"]["synthetic"], figures["trees"]["real"]
    click.echo(
        f"  AUC {synthetic['auc']:.3f} (real {real['auc']:.3f}), "
        f"accuracy {synthetic['accuracy']:.3f} (real {real['accuracy']:.3f})"
    )
    click.echo(
        f"Trees distinguish synthetic records from real ones with an AUC of {figures['propensity']:.3f}; 0.5 is chance."
    )

"""Everything on one machine: a trial's table, and how good it is."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ..errors import PlanError
from ..plan.defaults import DELTA_HELP, DOMAIN_SHARE, ENCODER, INNER, PAIRS_BYTES, POPULATIONS
from ..progress import for_terminal
from .common import compile_kernels, load_open_schema, load_schema, print_dropped, print_findings, print_warnings
from .group import main
from .options import makes_plan, parse_numbers, reads_tables
from .outputs import check_room, check_writable, write_json

__all__ = ["evaluate", "synthesize"]


@main.command()
@click.argument("tables", nargs=-1, required=True, metavar="TABLE...")
@click.option("--id", "id_column", help="Record id column, in every table; one TABLE without --split needs none.")
@click.option("--schema", help="Public domains; inferred from the data when absent (for trials: not private).")
@click.option("--split", help="With one TABLE: how many columns each party gets, for example 8,7.")
@click.option("--epsilon", type=float, required=True, help="Privacy target of the whole run.")
@click.option("--delta", type=float, help=DELTA_HELP)
@click.option("--expected-records", type=int, help="Public order of magnitude; default a noisy count, in the ledger.")
@click.option("--domain-share", type=float, default=DOMAIN_SHARE, help="Part of epsilon that private domains are found with.")
@click.option("--claim-as-published", is_flag=True, help="Needed for the published encoder: its claim does not hold.")
@click.option("--rows", type=click.IntRange(min=1), help="Synthetic rows; default the noisy record count.")
@click.option("--seed", type=click.IntRange(min=0), help="Of the sampling of synthetic rows only; privacy noise is never seeded.")
@click.option("--records-per-person", type=click.IntRange(min=1), default=1, help="At most; others are left out. Needs --person.")
@click.option("--threads", type=click.IntRange(min=1), help="Threads for the kernels.")
@click.option("--out", required=True, help="Synthetic table: .csv, .csv.gz, .parquet or .arrow.")
@click.option("--model", "model_file", help="Also save the fitted model, for `vertimrf sample`.")
@click.option("--json", "json_file", help="Ledger, timings and sizes; - for standard output.")
@reads_tables("person", "id_format", "ignore_extra", "delimiter", "encoding")
@makes_plan
def synthesize(
    read: Any,
    tables: Sequence[str],
    planning: dict[str, Any],
    id_column: str | None,
    schema: str | None,
    split: str | None,
    epsilon: float,
    delta: float | None,
    expected_records: int | None,
    domain_share: float,
    claim_as_published: bool,
    rows: int | None,
    seed: int | None,
    records_per_person: int,
    threads: int | None,
    out: str,
    model_file: str | None,
    json_file: str | None,
) -> None:
    """All parties and the server on one machine, for trials; or one TABLE that one holder has, without any protocol."""
    from ..options import RunOptions
    from ..plan.plan import target_in_words
    from ..tables.arrow import check_output, write_table
    from ..trial import synthesize as run_trial

    check_writable(out, model_file, json_file, read=(*tables, schema))
    check_output(out)
    domains = load_open_schema(schema)
    if domains is not None and domains.wanted:
        click.echo(
            f"Domains of {len(domains.wanted)} attributes are found with {100 * domain_share:g} % of epsilon: "
            f"{', '.join(domains.wanted)}.",
            err=json_file == "-",
        )
    if len(tables) == 1 and split is None and (domains is None or len(domains.schema.parties) == 1):
        pooled = {name: planning.pop(name) for name in ("tau", "workload")}
        if planning != {"encoder": None, "message_bytes": None, "population": INNER, "collusion_epsilon": None}:
            raise PlanError(
                "One holder has no sketches and all the people: leave --encoder, --message-mb, --collusion-epsilon and "
                "--population out, or deal its columns with --split."
            )
        from ..synthesizer import Synthesizer

        print_warnings(target_in_words(epsilon, delta, expected_records))
        compile_kernels("party", "server")
        made = Synthesizer(
            domains, id=id_column, expected_records=expected_records, domain_share=domain_share,
            **pooled, records_per_person=records_per_person, read=read,
            options=RunOptions(num_threads=threads, progress=for_terminal()),
        ).fit(tables[0], epsilon=epsilon, delta=delta)  # fmt: skip
        print_dropped(made.dropped)
        written = write_table(made.model.pieces(rows, seed=seed), out, made.ledger.standing)
        if model_file is not None:
            made.save(model_file)
        write_json(json_file, made.to_json() | {"rows": written})
        if json_file != "-":
            click.echo(made.ledger.table())
            click.echo(f"{written:,} synthetic rows written to {out}.")
        return
    # A message for every table, before it is read back.
    most = planning["message_bytes"] or PAIRS_BYTES
    check_room((Path(tempfile.gettempdir()) / "message", (len(tables) + (split or "").count(",")) * most))
    if id_column is None:
        raise PlanError("Several parties' tables are joined by record ids: name their column with --id.")
    print_warnings(target_in_words(epsilon, delta, expected_records))
    compile_kernels("party", "server", planning["encoder"] or ENCODER)
    trial = run_trial(
        tables,
        id_column,
        epsilon,
        schema=domains,
        split=None if split is None else parse_numbers(split, "--split"),
        expected_records=expected_records,
        domain_share=domain_share,
        records_per_person=records_per_person,
        options=RunOptions(rows=rows, seed=seed, num_threads=threads, progress=for_terminal()),
        read=read,
        delta=delta,
        claim_as_published=claim_as_published,
        **planning,
    )
    for dropped in dict.fromkeys(trial.dropped.values()):
        print_dropped(dropped)
    print_findings(trial.result)
    write_table(trial.result.pieces(), out, trial.ledger.standing)
    if model_file is not None:
        from ..named_model import Model

        Model(trial.result.plan.schema, trial.model, trial.ledger, trial.result.others).save(model_file)
    write_json(json_file, trial.to_json())
    if json_file != "-":
        click.echo(trial.ledger.table())
        click.echo(f"{trial.result.codes.shape[1]:,} synthetic rows written to {out}.")


@main.command()
@click.option("--real", multiple=True, required=True, help="A party's table; repeat, or list more TABLEs behind it.")
@click.option("--synthetic", required=True, help="The synthetic table.")
@click.option("--id", "id_column", required=True, help="Record id column of the real tables.")
@click.option("--schema", required=True, help="The schema that the synthesis used.")
@click.option("--ways", help="Attributes per marginal; default 3,4,5, or as many as there are.")
@click.option("--marginals", type=int, default=300, help="Random marginals for each of --ways.")
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Of the choice of marginals.")
@click.option("--name", "party", help="Compare this party's attributes alone; its table is then the real one.")
@click.option("--population", type=click.Choice(POPULATIONS), default=INNER, help="Records that all real tables have, or any.")
@click.option("--utility", "label", metavar="LABEL", help="A column that trees tell, trained on synthetic rows; and scores.")
@click.option("--json", "json_file", help="Write the result as JSON; - for standard output.")
@click.argument("more", nargs=-1, metavar="[TABLE...]")
@reads_tables("id_format", "ignore_extra", "delimiter", "encoding")
def evaluate(
    read: Any,
    real: Sequence[str],
    synthetic: str,
    id_column: str,
    schema: str,
    ways: str | None,
    marginals: int,
    seed: int,
    party: str | None,
    population: str,
    label: str | None,
    json_file: str | None,
    more: Sequence[str],
) -> None:
    """Compare a synthetic table with the real ones: exact figures, so for your own eyes.

    Mean total variation distance (TVD) of marginals, beside that of as many records drawn from the real ones (better is rare)
    and of independent columns (worse is useless); then the columns and pairs that are farthest off.
    """
    from .. import evaluate as evaluation
    from ..privacy.standing import EXACT, Standing

    check_writable(json_file)
    outcome = evaluation.evaluate(
        [*real, *more],
        synthetic,
        id_column,
        load_schema(schema),
        ways=None if ways is None else tuple(parse_numbers(ways, "--ways")),
        marginals=marginals,
        seed=seed,
        party=party,
        read=read,
        population=population,
        label=label,
    )
    write_json(json_file, outcome)
    if json_file != "-":
        _print_evaluation(outcome)
    click.echo(f"These figures: {EXACT}", err=True)
    click.echo(f"The synthetic table: {Standing.from_json(outcome['synthetic_standing'])}", err=True)


def _print_evaluation(outcome: dict[str, Any], most: int = 5) -> None:
    click.echo("TVD of two tables' marginal: the part of the records that would have to change for one to be the other, 0 to 1.")
    if "tables" in outcome["records"]:
        counts = ", ".join(f"{count:,}" for count in outcome["records"]["tables"])
        click.echo(f"The real tables have {counts} records; {outcome['records']['real']:,} are compared.")
    for way, distance in outcome["tvd"].items():
        across = outcome.get("tvd_across_parties", {}).get(way)
        click.echo(
            f"{way}-way TVD {distance:.4f}"
            + ("" if across is None else f", across parties {across:.4f}")
            + f" (records drawn from the real ones {outcome['tvd_resampled'][way]:.4f}, independent columns "
            f"{outcome['tvd_independent'][way]:.4f})"
        )
    for what in ("columns", "pairs"):
        listed = ", ".join(f"{' x '.join(marginal['columns'])} {marginal['tvd']:.3f}" for marginal in outcome[what][:most])
        if listed:
            click.echo(f"Farthest {what}: {listed}")
    for line in sorted(outcome.get("impossible", []), key=lambda line: -line["synthetic"])[:most]:
        click.echo(f"Impossible, {line['combination']}: {line['synthetic']:,} synthetic records, {line['real']:,} real ones")
    off = {
        name: (both["synthetic"]["mean"] - both["real"]["mean"], both["synthetic"]["deviation"] / both["real"]["deviation"])
        for name, both in outcome["numbers"].items()
        if both["real"]["deviation"]
    }
    if off:
        click.echo("Means (off by, in standard deviations) and standard deviations (synthetic / real):")
        for name, (shift, ratio) in off.items():
            click.echo(f"  {name}: {shift / outcome['numbers'][name]['real']['deviation']:+.3f}, {ratio:.3f}")
    if "utility" in outcome:
        _print_utility(outcome["utility"])
    if outcome["correlations"]:
        worst = outcome["correlations"][0]
        mean = sum(abs(pair["synthetic"] - pair["real"]) for pair in outcome["correlations"]) / len(outcome["correlations"])
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
    click.echo(f"Trees tell synthetic records from real ones with an AUC of {found['propensity']:.3f}; 0.5 is chance.")
    drawn = "records drawn from the real ones"
    score = found["k_marginal"]
    each = (f"of {k} attributes {own:.0f} ({drawn} {score['resampled'][k]:.0f})" for k, own in score["synthetic"].items())
    click.echo(f"NIST's k-marginal score, 0 to 1000: {', '.join(each)}")
    if "quality" in found:
        score = found["quality"]
        parts = (f"{name.replace('_', ' ')} {own:.3f}" for name, own in score["synthetic"].items() if name != "score")
        click.echo(
            f"SDMetrics' quality score, 0 to 1: {score['synthetic']['score']:.3f} ({', '.join(parts)}; "
            f"{drawn} {score['resampled']['score']:.3f})"
        )
    if found["absent"]:
        packages = " ".join(found["absent"]).lower()
        click.echo(f"Left out, for want of the package: {', '.join(found['absent'])} (pip install {packages}).")

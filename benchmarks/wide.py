"""Tables of a hundred attributes: counting, marginals, sampling, structure search and whole runs, each against its bar.

    python benchmarks/wide.py [--data FOLDER] [--quick] [--json FILE]

FOLDER holds adult and pisa (NAME.csv.gz with record_id and integer codes, NAME-domain.json); rows that need them say so where
they are absent. The peer is mbi 2.0.0 (`pip install "mbi==2.0.0"`, the extra `peers`), in float64, in this process. Structure
search is compared with commit 1047a2a of this repository, on the same measurements, each in a process of its own that has
searched a smaller graph before the clock starts; the commit is checked out to a temporary folder. Run it on an otherwise idle
machine. --quick ends within two minutes: fewer records, the peer counts only, no PISA and no whole runs.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.verdict import Verdict, conclude, show

ROOT = Path(__file__).resolve().parents[1]
DEFAULT_DATA = ROOT.parent / "shared" / "data"
BEFORE = "1047a2a"
# Values of the 81 attributes of the 1940 census extract in mbi's own benchmarks (public: IPUMS).
CENSUS = (
    3, 40, 40, 113, 15, 2, 130, 5, 8, 11, 8, 2, 3, 3, 65, 14, 2, 2, 3, 17, 6, 2, 88, 13, 6, 4, 12, 10, 6, 5, 6, 80, 83, 31, 34,
    31, 32, 6, 6, 8, 10, 2, 8, 2, 23, 23, 13, 23, 4, 12, 3, 4, 8, 112, 118, 109, 111, 7, 9, 20, 8, 37, 3, 43, 65, 104, 101, 95,
    101, 5, 9, 45, 28, 6, 4, 4, 4, 2, 4, 5, 3,
)  # fmt: skip


def clock(work: Callable[[], Any]) -> tuple[float, Any]:
    """Wall seconds, and what the work returns."""
    start = time.perf_counter()
    out = work()
    return time.perf_counter() - start, out


class Peer:
    """mbi on the census domain."""

    def __init__(self) -> None:
        import jax

        jax.config.update("jax_enable_x64", True)
        jax.config.update("jax_enable_compilation_cache", False)
        import mbi

        self.mbi = mbi
        self.names = [str(i) for i in range(len(CENSUS))]
        self.domain = mbi.Domain(self.names, CENSUS)

    def counted(self, codes: np.ndarray, pairs: list[tuple[int, int]]) -> list[np.ndarray]:
        data = self.mbi.Dataset(dict(zip(self.names, codes, strict=True)), self.domain)
        return [np.asarray(data.project((str(a), str(b))).datavector(flatten=False)) for a, b in pairs]

    def asked(self, model: Any, attributes: tuple[int, ...]) -> np.ndarray:
        return np.asarray(model.project(tuple(map(str, attributes))).datavector(flatten=False))

    def model(self, ours: Any) -> Any:
        """Our factors as mbi's model."""
        factors = {}
        for f in ours.factors:
            names = tuple(map(str, f.attributes))
            factors[names] = self.mbi.Factor(self.domain.project(names), np.asarray(f.logs))
        potentials = self.mbi.CliqueVector(self.domain, tuple(factors), factors)
        marginals = self.mbi.marginal_oracles.message_passing_stable(potentials, ours.total)
        return self.mbi.MarkovRandomField(potentials=potentials, marginals=marginals, total=ours.total)


def census_codes(records: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.stack([rng.integers(0, size, records).astype(np.uint16) for size in CENSUS])


def census_model(records: float) -> Any:
    """A fitted model of 80 marginals that form a tree over the attributes, no clique above 5e5 cells."""
    from vertimrf.model.fit import fit
    from vertimrf.model.measurement import Measurement

    rng = np.random.default_rng(1)
    sigma = 50.0
    measurements = []
    order = rng.permutation(len(CENSUS))
    for i in range(1, len(order)):
        a, b = sorted((int(order[i]), int(order[rng.integers(max(0, i - 6), i)])))
        truth = rng.dirichlet(np.full(CENSUS[a] * CENSUS[b], 0.3)).reshape(CENSUS[a], CENSUS[b]) * records
        measurements.append(Measurement((a, b), (None, None), truth + sigma * rng.normal(size=truth.shape), sigma))
    return fit(CENSUS, measurements, records, steps=2)


def census_rows(quick: bool) -> Iterator[Verdict]:
    """Counting, marginals and sampling beside mbi."""
    from vertimrf.kernels.contingency import all_pairs
    from vertimrf.model.sample import sample

    records = 100_000 if quick else 1_000_000
    peer = Peer() if importlib.util.find_spec("mbi") else None
    pairs = list(itertools.combinations(range(len(CENSUS)), 2))
    rng = np.random.default_rng(2)

    def versus(name: str, ours: float, theirs: float | None, least: float) -> Iterator[Verdict]:
        yield Verdict(f"{name}, s", ours, "", None)
        if theirs is None:
            why = "mbi is not installed" if peer is None else "not with --quick"
            yield Verdict(f"{name}: times faster than mbi", None, why, None)
        else:
            yield Verdict(f"{name}: times faster than mbi", theirs / ours, f">= {least:g}", theirs / ours >= least)

    codes = census_codes(records)
    all_pairs(codes[:, :1000].copy(), CENSUS, pairs[:9])
    ours, counted = clock(lambda: all_pairs(codes, CENSUS, pairs))
    theirs = None
    if peer is not None:
        # Every pair takes mbi one histogram of all records; a part of them is asked for.
        asked = sorted(int(i) for i in rng.choice(len(pairs), 40 if quick else 324, replace=False))
        peer.counted(codes[:, :1000], pairs[:3])
        seconds, tables = clock(lambda: peer.counted(codes, [pairs[i] for i in asked]))
        theirs = seconds / len(asked) * len(pairs)
        assert all((table == counted[i]).all() for i, table in zip(asked, tables, strict=True))
    yield from versus(f"3,240 pair tables counted from {records:,} rows (mbi: from a sample of pairs)", ours, theirs, 20)

    model = census_model(1e6)
    census_model(1e4).marginals(pairs[:20])
    ours, marginals = clock(lambda: model.marginals(pairs))
    theirs = worst = None
    # mbi compiles for every pair anew, which is most of what it takes; --quick leaves that out.
    slow = None if quick else peer
    if slow is not None:
        other = slow.model(model)
        slow.asked(other, (0,))
        asked = sorted(int(i) for i in rng.choice(len(pairs), 12, replace=False))
        seconds, tables = clock(lambda: [slow.asked(other, pairs[i]) for i in asked])
        theirs = seconds / len(asked) * len(pairs)
        worst = max(float(np.abs(table - marginals[i]).max()) / model.total for i, table in zip(asked, tables, strict=True))
    yield from versus("3,240 pair marginals of a fitted model (mbi: from a sample of pairs)", ours, theirs, 50)
    same = None if worst is None else worst <= 1e-9
    yield Verdict("their largest difference from mbi's probabilities", worst, "<= 1e-9", same)

    sample(model, 1000, np.random.default_rng(0))
    ours, _ = clock(lambda: sample(model, records, np.random.default_rng(0)))
    theirs = None
    if slow is not None:
        other.synthetic_data(rows=1)
        theirs, _ = clock(lambda: other.synthetic_data(rows=records))
    yield from versus(f"{records:,} synthetic rows", ours, theirs, 20)


# What each side of a comparison runs: both layouts of the package, the one asked for on PYTHONPATH.
SEARCH = """
import json, sys, time
from types import SimpleNamespace
import numpy as np
try:
    from vertimrf.server.global_graph import combine_graphs
    from vertimrf.model.fit import fit
    from vertimrf.model.measurement import Measurement
    from vertimrf.model.sample import sample
except ImportError:
    from vertimrf.global_graph import combine_graphs
    from vertimrf.model import fit
    from vertimrf.measurement import Measurement
    from vertimrf.sample import sample

def load(path):
    data = np.load(path, allow_pickle=False)
    head = json.loads(str(data["head"]))
    made = []
    for i, m in enumerate(head["measurements"]):
        bins = tuple(data[f"bins{i}_{j}"] if binned else None for j, binned in enumerate(m["binned"]))
        made.append(Measurement(tuple(m["attributes"]), bins, data[f"counts{i}"], data[f"sigma{i}"]))
    plan = SimpleNamespace(schema=SimpleNamespace(sizes=tuple(head["sizes"])), tau=head["tau"])
    return plan, made[: head["local"]], made[head["local"] :], head["total"]

def search(path):
    plan, local, crossing, total = load(path)
    start = time.perf_counter()
    found = combine_graphs(plan, local, crossing, total)
    seconds = time.perf_counter() - start
    kept, tree, warm = found[:2] + (None,) if isinstance(found, tuple) else (found.kept, found.tree, found.start)
    used = [m for m in (*local, *kept) if tree.covering(m.attributes) >= 0]
    start = time.perf_counter()
    model = fit(plan.schema.sizes, used, total, tree=tree, warm=warm)
    return seconds, time.perf_counter() - start, sample(model, round(total), np.random.default_rng(0))

warmup, path, out = sys.argv[1:]
search(warmup)
seconds, fitting, codes = search(path)
np.save(out, codes)
print(json.dumps([seconds, fitting]))
"""


def save_measurements(path: Path, table: Path, domain: Path, split: tuple[int, ...], epsilon: float) -> np.ndarray:
    """What the server has measured after one run of the parties, to a file; returns the true codes."""
    from vertimrf.party.party import Party
    from vertimrf.party.secret import Secret
    from vertimrf.plan.planner import make_plan
    from vertimrf.plan.schema import Schema
    from vertimrf.server.server import Server
    from vertimrf.trial import open_tables

    schema, parts = open_tables([table], "record_id", Schema.load(domain), list(split))
    records = parts[0].codes.shape[1]
    plan = make_plan(schema, epsilon=epsilon, expected_records=records, delta=1 / records, nonce=os.urandom(16).hex())
    secret = Secret.new()
    messages = [Party(plan, name, secret).run(part) for name, part in zip(plan.party_names, parts, strict=True)]
    first = Server(plan).read(messages)
    measured = [*first.local, *first.crossing]
    head = {
        "sizes": list(schema.sizes), "tau": plan.tau, "total": first.total, "local": len(first.local),
        "measurements": [{"attributes": m.attributes, "binned": [b is not None for b in m.bins]} for m in measured],
    }  # fmt: skip
    arrays = {}
    for i, m in enumerate(measured):
        arrays[f"counts{i}"], arrays[f"sigma{i}"] = m.counts, np.asarray(m.sigma)
        arrays |= {f"bins{i}_{j}": b for j, b in enumerate(m.bins) if b is not None}
    np.savez(path, head=np.array(json.dumps(head)), **arrays)
    return np.concatenate([part.codes for part in parts])


def searched(package: Path, warmup: Path, path: Path, folder: Path) -> tuple[float, float, np.ndarray]:
    """Seconds of structure search and of the fit that follows, and synthetic codes, by the package in a folder."""
    out = folder / "codes.npy"
    run = subprocess.run(
        [sys.executable, "-c", SEARCH, warmup, path, out], check=True, capture_output=True, text=True, cwd=package,
        env={**os.environ, "PYTHONPATH": str(package)},
    )  # fmt: skip
    seconds, fitting = json.loads(run.stdout.splitlines()[-1])
    return seconds, fitting, np.load(out)


def search_rows(data: Path, quick: bool) -> Iterator[Verdict]:
    """Structure search beside the commit before it was rewritten."""
    from vertimrf.evaluate import tvd

    cases = [("adult", (8, 7), 0.8, 10.0), *([] if quick else [("pisa", (41, 40), 1.0, 15.0)])]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        before = folder / "before"
        made = subprocess.run(
            ["git", "-C", ROOT, "worktree", "add", "--detach", before, BEFORE], capture_output=True, text=True, check=False
        )
        try:
            for name, split, epsilon, least in cases:
                what = f"structure search, {name} {','.join(map(str, split))}, epsilon {epsilon:g}"
                if not (data / f"{name}.csv.gz").exists():
                    yield Verdict(what, None, f"{name}.csv.gz is not in {data}", None)
                    continue
                path = folder / f"{name}.npz"
                truth = save_measurements(path, data / f"{name}.csv.gz", data / f"{name}-domain.json", split, epsilon)
                warmup = folder / "adult.npz" if (folder / "adult.npz").exists() else path
                domain = json.loads((data / f"{name}-domain.json").read_text())
                sizes = list(domain.values())

                def distance(codes: np.ndarray, truth: np.ndarray = truth, sizes: list[int] = sizes) -> float:
                    return tvd(truth, codes, sizes, (3,))[3]

                ours, fitting, codes = searched(ROOT, warmup, path, folder)
                yield Verdict(f"{what}, s", ours, "", None)
                yield Verdict(f"{what}: the fit that follows, s", fitting, "", None)
                yield Verdict(f"{what}: 3-way TVD", distance(codes), "", None)
                if made.returncode:
                    yield Verdict(f"{what}: times faster than {BEFORE}", None, f"commit {BEFORE} is not available", None)
                    continue
                theirs, refitting, other = searched(before, warmup, path, folder)
                yield Verdict(f"{what}: times faster than {BEFORE}", theirs / ours, f">= {least:g}", theirs / ours >= least)
                yield Verdict(f"{what}: the fit that follows, times faster", refitting / fitting, "", None)
                # Two runs on the same measurements differ by about 2 % of their distance.
                share = distance(codes) / distance(other)
                yield Verdict(f"{what}: 3-way TVD, share of {BEFORE}'s", share, "<= 1.03", share <= 1.03)
        finally:
            subprocess.run(["git", "-C", ROOT, "worktree", "remove", "--force", before], capture_output=True, check=False)


def generated(path: Path, sizes: list[int], records: int, seed: int) -> None:
    """A table of tree-like dependence with dense blocks: each attribute follows one or three earlier ones, noisily."""
    import pyarrow as pa
    import pyarrow.csv as csv

    rng = np.random.default_rng(seed)
    columns: list[np.ndarray] = []
    for i, size in enumerate(sizes):
        fresh = (rng.random(records) ** 2 * size).astype(np.int64)
        if i:
            parents = rng.choice(i, min(i, 3 if i % 4 == 0 else 1), replace=False)
            mixed = sum(columns[p] / max(sizes[p] - 1, 1) for p in parents) / len(parents)
            follows = np.minimum((mixed * size).astype(np.int64), size - 1)
            fresh = np.where(rng.random(records) < 0.6, follows, fresh)
        columns.append(fresh)
    table = pa.table({"record_id": np.arange(records), **{f"a{i:03d}": column for i, column in enumerate(columns)}})
    csv.write_csv(table, path)


# Runs a command and prints its seconds and the peak memory of it, in GiB.
MEASURED = """
import resource, subprocess, sys, time
start = time.perf_counter()
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20)
"""


def whole(folder: Path, table: Path, domain: Path, split: str, epsilon: float) -> tuple[float, float]:
    """Seconds and GiB of `vertimrf synthesize`, start-up included."""
    command = [
        sys.executable, "-m", "vertimrf", "synthesize", table, "--id", "record_id", "--schema", domain, "--split", split,
        "--epsilon", epsilon, "--out", folder / "out.csv",
    ]  # fmt: skip
    run = subprocess.run(
        [sys.executable, "-c", MEASURED, *map(str, command)], check=True, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    seconds, memory = map(float, run.stdout.split()[-2:])
    return seconds, memory


def whole_rows(data: Path) -> Iterator[Verdict]:
    """Whole runs, compiled before."""
    rng = np.random.default_rng(3)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        cases: list[tuple[str, Path, Path, str, float, float, float]] = []
        for name, split, epsilon, limit, gib in (("adult", "8,7", 0.8, 6.0, 8.0), ("pisa", "41,40", 1.0, 60.0, 2.0)):
            if (data / f"{name}.csv.gz").exists():
                cases.append((name, data / f"{name}.csv.gz", data / f"{name}-domain.json", split, epsilon, limit, gib))
            else:
                yield Verdict(f"whole run, {name}", None, f"{name}.csv.gz is not in {data}", None)
        made = (
            ("110 attributes of 5 to 100 values", np.exp(rng.uniform(np.log(5), np.log(100), 110)).astype(int).tolist(),
             20_000, "55,55", 90.0),
            ("300 attributes of 4 values", [4] * 300, 50_000, "75,75,75,75", 600.0),
        )  # fmt: skip
        for name, sizes, records, split, limit in made:
            table, domain = folder / f"{len(sizes)}.csv", folder / f"{len(sizes)}-domain.json"
            generated(table, sizes, records, 4)
            domain.write_text(json.dumps({f"a{i:03d}": size for i, size in enumerate(sizes)}))
            cases.append((name, table, domain, split, 1.0, limit, 8.0))
        for i, (name, table, domain, split, epsilon, limit, gib) in enumerate(cases):
            if i == 0:
                whole(folder, table, domain, split, epsilon)
            seconds, memory = whole(folder, table, domain, split, epsilon)
            yield Verdict(f"whole run, {name} ({split}), s", seconds, f"<= {limit:g}", seconds <= limit)
            yield Verdict(f"whole run, {name} ({split}), GiB", memory, f"<= {gib:g}", memory <= gib)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA, help="folder of adult and pisa")
    parser.add_argument("--quick", action="store_true", help="two minutes: fewer records, no PISA, no whole runs")
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    parser.add_argument("--only", choices=("census", "search", "whole"), help="one part alone")
    options = parser.parse_args()
    parts: dict[str, Callable[[], Iterator[Verdict]]] = {
        "census": lambda: census_rows(options.quick),
        "search": lambda: search_rows(options.data, options.quick),
        "whole": lambda: iter(()) if options.quick else whole_rows(options.data),
    }
    some = [work for part, work in parts.items() if options.only in (None, part)]
    sys.exit(conclude(show(verdict for work in some for verdict in work()), options.json))


if __name__ == "__main__":
    main()

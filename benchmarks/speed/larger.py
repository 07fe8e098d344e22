"""Tables larger than memory: what a party's process takes for one that is read in pieces, and for one on a cluster.

    python benchmarks/speed/larger.py [--quick | --smoke] [--json FILE]

Tables are made up on the fly, in pieces. Times of `vertimrf run party` are those of the command with its start-up, its kernels
compiled before; memory is the peak resident set of its process. On the cluster, two workers of one thread, a party encodes 10^8
records of 8 attributes that the workers make up, and makes its message twice, under one fixed noise: in the second run a worker
is killed when one-way marginals have been released, with all that it holds. --quick ends within two minutes: a tenth of the
records, a hundredth on the cluster.
"""

import itertools
import os
import re
import resource
import signal
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.speed.measured import measured
from benchmarks.verdict import FULL, QUICK, SMOKE, Verdict, arguments, at_least, finish
from vertimrf import (
    Attribute,
    Party,
    PlanOptions,
    PrivateKey,
    PublicKeys,
    Schema,
    Secret,
    make_plan,
)
from vertimrf.columns.read import read_attribute
from vertimrf.party.releases import Releases
from vertimrf.party.secret import id_keys
from vertimrf.privacy.noise import FixedNoise
from vertimrf.runs.party_run import PartyRun
from vertimrf.tables.columns import encode_table

ROOT = Path(__file__).resolve().parents[2]
PIECE = 1 << 18

# 24 columns as registries have them: codes written as text, names of places, numbers with gaps, dates.
TEXTS = {f"text{i}": size for i, size in enumerate((2, 2, 3, 4, 5, 6, 8, 12, 20, 50, 200))}
CODES = {f"code{i}": size for i, size in enumerate((2, 4, 7, 16))}
NUMBERS = tuple(f"number{i}" for i in range(7))
DATES = ("born", "seen")
OTHERS = {"u": 4, "v": 8, "w": 3}
# Few attributes, as many records as make a partition, and a message small enough to make 10^8 records' in minutes.
NARROW = {f"a{i}": size for i, size in enumerate((2, 2, 3, 4, 4, 6, 8, 10))}
PARTITION = 1_000_000
SMALL_MESSAGE = 125_000
PATIENCE = 120


def integers(sizes):
    """Attributes of these sizes, by name."""
    return [Attribute.integer(*each) for each in sizes.items()]


def attributes():
    """The 24 columns' public domains."""
    return [
        *(
            Attribute.categorical(name, [f"{name} value {i}" for i in range(size)])
            for name, size in TEXTS.items()
        ),
        *integers(CODES),
        *(
            Attribute.numeric(name, [0, 1, 2, 4, 8, 16, 32, 64, 1000], missing=True)
            for name in NUMBERS
        ),
        *(
            read_attribute(
                {
                    "name": name,
                    "calendar": "date",
                    "edges": [f"{year}-01-01" for year in range(1940, 2025, 12)],
                }
            )
            for name in DATES
        ),
    ]


def piece(first, rows):
    """Rows of the wide table, the same however it is cut into pieces of PIECE."""
    rng = np.random.default_rng(first)
    mood = rng.random(rows)
    columns = {"person": pa.array([f"P{i:010d}" for i in range(first, first + rows)])}

    def drawn(size):
        return np.minimum((size * (0.5 * mood + 0.5 * rng.random(rows))).astype(np.int64), size - 1)

    for name, size in TEXTS.items():
        columns[name] = pa.array([f"{name} value {i}" for i in range(size)]).take(
            pa.array(drawn(size))
        )
    for name, size in CODES.items():
        columns[name] = pa.array(drawn(size))
    for name in NUMBERS:
        columns[name] = pa.array(
            np.round(999 * mood * rng.random(rows), 2), mask=rng.random(rows) < 0.05
        )
    for name in DATES:
        columns[name] = pa.array((drawn(30_000) - 10_950).astype(np.int32)).cast(pa.date32())
    return pa.table(columns)


def write(path, rows):
    """The wide table as a file, a piece at a time."""
    kind = pa.parquet.ParquetWriter if path.suffix == ".parquet" else pa.csv.CSVWriter
    with kind(path, piece(0, 1).schema) as file:
        for first in range(0, rows, PIECE):
            file.write_table(piece(first, min(PIECE, rows - first)))


def agree(folder, schema, rows, table):
    """The first party's run folder, with an accepted plan."""
    names = [name for name, _ in schema.parties]
    run = PartyRun.create(folder / "run", name=names[0], table=table, id="person")
    offers = [
        PrivateKey.load(folder / "run" / "key").offer,
        *(PrivateKey.new(name).offer for name in (*names[1:], None)),
    ]
    plan = make_plan(
        schema, 1.0, PlanOptions(expected_records=rows), public_keys=PublicKeys.of(offers, names)
    )
    plan.save(folder / "plan.json")
    run.advance({"plan": (folder / "plan.json").read_bytes()})
    run.accept(plan.fingerprint)


def party(folder, table):
    """`vertimrf run party` of a table, anew."""
    run = folder / "run"
    for left in Releases.of(PrivateKey.load(run / "key")).folder.glob("*"):
        left.unlink()
    settings = re.sub(r"(?m)^table = .*$", f'table = "{table}"', (run / "run.toml").read_text())
    (run / "run.toml").write_text(settings)
    role = PartyRun(run)
    role.accept(role.plan.fingerprint)
    return measured("run", "party", run)


def rows_streamed(rows):
    """`vertimrf run party` of 24 attributes, of either kind of file."""
    schema = Schema.of({"registry": attributes(), "other": integers(OTHERS)})
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write(folder / "small.parquet", 1000)
        agree(folder, schema, rows, folder / "small.parquet")
        party(folder, folder / "small.parquet")
        for suffix in ("parquet", "csv"):
            table = folder / f"table.{suffix}"
            write(table, rows)
            took = party(folder, table)
            size = table.stat().st_size / 1e6
            table.unlink()
            name = f"vertimrf run party, {rows:,} x 24, {suffix} of {size:,.0f} MB"
            yield Verdict(f"{name}, s", took.seconds)
            yield Verdict(f"{name}, s of all cores", took.worked)
            yield Verdict(f"{name}, peak memory, GiB", took.gib)


def made(number, rows):
    """A partition of the narrow table."""
    rng = np.random.default_rng(number)
    mood = rng.integers(0, 4, rows)
    columns = {name: (mood + rng.integers(0, size, rows)) % size for name, size in NARROW.items()}
    return pa.table({"person": np.arange(number * rows, (number + 1) * rows), **columns})


def peak_memory():
    """Of this process, GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)


def rows_cluster(rows):
    """The party's role on a cluster of processes, one of which is killed."""
    import dask
    from dask.delayed import delayed
    from distributed import Client, LocalCluster

    from vertimrf.cluster import encode_partitions

    schema = Schema.of({"registry": integers(NARROW), "other": integers(OTHERS)})
    plan = make_plan(
        schema,
        epsilon=1.0,
        planning=PlanOptions(expected_records=rows, message_bytes=SMALL_MESSAGE),
    )
    secret = Secret(bytes(range(32)))
    keys = id_keys(secret, plan.digest())
    mine = schema.part("registry")
    memory = {}
    each = min(PARTITION, rows // 8)

    with (
        # A new worker may take its time to start; a local cluster would give it up after 15 seconds.
        dask.config.set({"distributed.deploy.lost-worker-timeout": f"{PATIENCE} s"}),
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit="2GiB"
        ) as cluster,
        Client(cluster) as client,
    ):

        def look():
            """Note the workers' memory, which a killed one takes with it; their processes."""
            peaks = client.run(lambda: (os.getpid(), peak_memory()))
            memory.update(peaks.values())
            return sorted(process for process, _ in peaks.values())

        class Killing(FixedNoise):
            """Kills a worker when all one-way marginals have been released."""

            left = len(mine) + 1

            def gaussian(self, values, sigma):
                self.left -= 1
                if not self.left:
                    os.kill(look()[0], signal.SIGKILL)
                return super().gaussian(values, sigma)

        def encoded(parts, size):
            cut = [delayed(made, pure=False)(i, size) for i in range(parts)]
            return encode_partitions(cut, client, "person", schema, "registry", keys=keys)

        # Kernels are loaded, and what one machine makes of a small table is what the cluster does.
        few = encode_table(
            pa.concat_tables([made(i, 10_000) for i in range(6)]), "person", mine, keys=keys
        )
        both = (few, encoded(6, 10_000))
        alone, many = (
            Party(plan, "registry", secret, FixedNoise(1)).run(records).to_bytes(plan)
            for records in both
        )
        yield at_least(
            "a cluster's message of 60,000 records is that of one machine", float(alone == many), 1
        )
        begin = time.perf_counter()
        records = encoded(rows // each, each)
        name = f"cluster, {records.count:,} x {len(mine)}"
        yield Verdict(f"{name}, made up and encoded, s", time.perf_counter() - begin)
        messages = []
        for noise, what in (
            (FixedNoise(1), "message"),
            (Killing(1), "message with a worker killed"),
        ):
            begin = time.perf_counter()
            messages.append(Party(plan, "registry", secret, noise).run(records).to_bytes(plan))
            yield Verdict(f"{name}, {what}, s", time.perf_counter() - begin)
        client.wait_for_workers(2, timeout=PATIENCE)
        processes = len({*look(), *memory})
        yield at_least(f"{name}, worker processes in all, one of them killed", processes, 3)
        yield at_least(
            f"{name}, the message is the same when a worker is killed",
            float(messages[0] == messages[1]),
            1,
        )
        yield Verdict(f"{name}, peak memory of a worker, GiB", max(memory.values()))
        yield Verdict(f"{name}, peak memory of the party's process, GiB", peak_memory())


def main():
    parser = arguments(__doc__, quick="a tenth of the records, a hundredth on the cluster")
    options = parser.parse_args()
    streamed, cluster = {
        FULL: (10_000_000, 100_000_000),
        QUICK: (1_000_000, 1_000_000),
        SMOKE: (20_000, 80_000),
    }[options.size]
    finish(itertools.chain(rows_streamed(streamed), rows_cluster(cluster)), "larger", options)


if __name__ == "__main__":
    main()

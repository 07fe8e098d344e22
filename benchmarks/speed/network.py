"""A whole run of three parties over Flower on the loopback interface, with TLS: what it takes of whom.

Every role is a process of its own with a folder of its own. A party's figures are those of its command `vertimrf run party`, from
start to end, by which it takes the secret and makes its message once the plan is accepted; they do so one after the other: no
party's time has another's in it. Its SuperNode carries files between that command and the SuperLink. The server's time is that
from the last message to the table, in the process that Flower starts for it. Kernels are compiled before.

    python benchmarks/speed/network.py [--quick | --smoke] [--json FILE]

Run it on an otherwise idle machine; it takes Flower (the extra "flower").
"""

import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from tools.loopback import ROOT, Loopback

from benchmarks.speed.measured import measured
from benchmarks.verdict import FULL, QUICK, SMOKE, Verdict, arguments, finish
from vertimrf import Attribute, Plan, Schema

PARTIES = ("hospital", "insurer", "registry")
ATTRIBUTES = 24
EPSILON = 1.0
# Of sketches; a message has the marginals beside them.
MESSAGE_MB = 15.5


def play(records, folder):
    """Play a run of so many records in an empty folder.

    Returns:
        By party, what the command took that makes its message; the messages' sizes in bytes; seconds from the last message to the
        table.
    """
    places = {name: folder / f"{name}.place" for name in PARTIES}
    for place in places.values():
        place.mkdir()
    write_tables(folder, records)
    target = f"--epsilon {EPSILON} --expected-records {records} --message-mb {MESSAGE_MB}"
    vertimrf(f"run server {folder}/server --schema {folder}/schema.toml {target}")
    together(
        lambda name: vertimrf(
            f"run party {folder}/{name} --name {name} --table {folder}/{name}.parquet --id id --exchange {places[name]}"
        )
    )
    vertimrf("warmup")
    with Loopback(folder / "network") as network:
        together(network.register)
        for name, place in places.items():
            network.start_node(name, {"party": name, "exchange": str(place)})
        run = network.run_app(
            {"run-folder": str(folder / "server"), "pause": 1.0, "longest-pause": 2.0}
        )
        for name, place in places.items():
            network.until((place / "server" / name / "plan").exists, run)
        together(lambda name: vertimrf(f"run party {folder}/{name}"))
        fingerprint = Plan.load(folder / "server" / "plan").fingerprint
        together(lambda name: vertimrf(f"accept {folder}/{name} {fingerprint} --anyway"))
        taken = {}
        for name, place in places.items():
            if name != PARTIES[0]:
                network.until((place / "server" / name / "envelopes").exists, run)
            taken[name] = measured("run", "party", folder / name)
        network.end(run, folder / "server" / "result")
    received = [folder / "server" / "received" / name / "message" for name in PARTIES]
    begun = max(path.stat().st_mtime for path in received)
    seconds = (folder / "server" / "result").stat().st_mtime - begun
    return taken, [path.stat().st_size for path in received], seconds


def rows(records):
    """The figures of a run."""
    with tempfile.TemporaryDirectory(prefix="vertimrf-") as folder:
        parties, messages, seconds = play(records, Path(folder))
    what = f"{records:,} x {ATTRIBUTES}, three parties over Flower and TLS, epsilon {EPSILON:g}"
    worst = max(parties.values(), key=lambda figures: figures.seconds)
    most = max(figures.gib for figures in parties.values())
    yield Verdict(f"{what}: the slowest party, s", worst.seconds)
    yield Verdict(f"{what}: that party's threads worked, s", worst.worked)
    yield Verdict(f"{what}: a party's peak memory at most, GiB", most)
    yield Verdict(f"{what}: the largest message, MB", max(messages) / 1e6)
    yield Verdict(f"{what}: the server, from the last message to the table, s", seconds)


def write_tables(folder, records):
    """Three Parquet tables of the same people, eight attributes each that depend on each other, and their schema."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    rng = np.random.default_rng(11)
    hidden = rng.random(records)
    sizes = [2, 2, 3, 4, 5, 8, 10, 16] * len(PARTIES)
    ids = np.arange(records)
    each = ATTRIBUTES // len(PARTIES)
    parts = {}
    for k, name in enumerate(PARTIES):
        columns = {"id": rng.permutation(ids)}
        for i in range(k * each, (k + 1) * each):
            noisy = np.clip(hidden[columns["id"]] + 0.3 * rng.standard_normal(records), 0, 0.999)
            columns[f"a{i:02d}"] = (noisy * sizes[i]).astype(np.int16)
        parquet.write_table(pa.table(columns), folder / f"{name}.parquet")
        parts[name] = [
            Attribute.integer(f"a{i:02d}", sizes[i]) for i in range(k * each, (k + 1) * each)
        ]
    (folder / "schema.toml").write_text(Schema.of(parts).to_toml())


def vertimrf(words):
    """Run a command."""
    command = [sys.executable, "-m", "vertimrf", *words.split()]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=ROOT)


def together(work):
    """Do something for all parties at once."""
    with ThreadPoolExecutor(len(PARTIES)) as pool:
        list(pool.map(work, PARTIES))


def main():
    options = arguments(__doc__, quick="a tenth of the records").parse_args()
    records = {FULL: 1_000_000, QUICK: 100_000, SMOKE: 5000}[options.size]
    finish(rows(records), "network", options)


if __name__ == "__main__":
    main()

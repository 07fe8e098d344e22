"""A whole run of three parties over Flower on the loopback interface, with TLS: what it takes of whom, and what crosses the wire.

Every role is a process of its own with a folder of its own. A party's figures are those of its command `vertimrf run party`, from
start to end, by which it takes the secret and makes its message once the plan is accepted; they do so one after the other: no
party's time has another's in it. Its SuperNode carries files between that command and the SuperLink. The server's time is that
from the last message to the table, in the process that Flower starts for it. Kernels are compiled before.

    python benchmarks/network.py [--quick | --smoke] [--json FILE]

Run it on an otherwise idle machine; it takes Flower (the extra "flower").
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from tools.loopback import ROOT, Loopback, descendants

from benchmarks.limited import Figures, measured
from benchmarks.verdict import FULL, QUICK, SMOKE, Verdict, arguments, finish
from vertimrf.plan.attribute import Attribute
from vertimrf.plan.plan import Plan
from vertimrf.plan.schema import Schema

PARTIES = ("hospital", "insurer", "registry")
ATTRIBUTES = 24
EPSILON = 1.0
# Of sketches; a message has the marginals beside them.
MESSAGE_MB = 15.5
LONG = 1200.0


@dataclass(frozen=True)
class Outcome:
    """What a run took.

    Attributes:
        parties: by party, what the command took that makes its message.
        message_bytes: by party, its message's size.
        server_seconds: from the last message to the table.
        server_mib: peak memory of the server's process.
        wire_bytes: between SuperLink and SuperNodes, both ways, as Flower counts it.
        loopback_bytes: all that went over the loopback interface meanwhile, whoever's: TLS and the nodes' own processes included.
        seconds: of the whole, from the app's start to its end, acceptances included.
        load: how many processes wanted a core, on average over the last minute at the end.
    """

    parties: dict[str, Figures]
    message_bytes: dict[str, int]
    server_seconds: float
    server_mib: float
    wire_bytes: int
    loopback_bytes: int
    seconds: float
    load: float


def play(records, folder):
    """Play a run.

    Args:
        records: that all parties hold.
        folder: an empty one.
    """
    places = {name: folder / f"{name}.place" for name in PARTIES}
    for place in places.values():
        place.mkdir()
    write_tables(folder, records)
    vertimrf(
        "run",
        "server",
        folder / "server",
        "--schema",
        folder / "schema.toml",
        "--epsilon",
        EPSILON,
        "--expected-records",
        records,
        "--message-mb",
        MESSAGE_MB,
    )
    together(
        lambda name: vertimrf(
            "run",
            "party",
            folder / name,
            "--name",
            name,
            "--table",
            folder / f"{name}.parquet",
            "--id",
            "id",
            "--exchange",
            places[name],
        )
    )
    vertimrf("warmup")
    with Loopback(folder / "network") as network:
        together(network.register)
        for name, place in places.items():
            network.start_node(name, {"party": name, "exchange": str(place)})
        before, start = loopback_bytes(), time.monotonic()
        run = network.run_app(
            {"run-folder": str(folder / "server"), "pause": 1.0, "longest-pause": 2.0}
        )
        peak = Peak(network.processes["superlink"].pid, "flwr-serverapp")
        for name, place in places.items():
            wait(place / "server" / name / "plan", network, run)
        together(lambda name: vertimrf("run", "party", folder / name))
        fingerprint = Plan.load(folder / "server" / "plan").fingerprint
        together(lambda name: vertimrf("accept", folder / name, fingerprint))
        taken = {}
        for name, place in places.items():
            if name != PARTIES[0]:
                wait(place / "server" / name / "envelopes", network, run)
            taken[name] = measured("run", "party", folder / name)
        wait(folder / "server" / "result", network, run)
        while not (state := network.run_state(run))["status"].startswith("finished"):
            time.sleep(1.0)
        seconds, after = time.monotonic() - start, loopback_bytes()
        server_mib = peak.stop()
        if state["status"] != "finished:completed":
            raise RuntimeError(network.run_log(run))
    received = [folder / "server" / "received" / name / "message" for name in PARTIES]
    return Outcome(
        parties=taken,
        message_bytes={
            name: path.stat().st_size for name, path in zip(PARTIES, received, strict=True)
        },
        server_seconds=(folder / "server" / "result").stat().st_mtime
        - max(path.stat().st_mtime for path in received),
        server_mib=server_mib,
        wire_bytes=int(state["network-traffic"]["total-bytes"]),
        loopback_bytes=after - before,
        seconds=seconds,
        load=os.getloadavg()[0],
    )


def rows(records):
    """The figures of a run."""
    with tempfile.TemporaryDirectory(prefix="vertimrf-") as folder:
        outcome = play(records, Path(folder))
    what = f"{records:,} x {ATTRIBUTES}, three parties over Flower and TLS, epsilon {EPSILON:g}"
    parties = outcome.parties.values()
    worst = max(parties, key=lambda figures: figures.seconds)
    yield Verdict(f"{what}: the slowest party, s", worst.seconds)
    yield Verdict(f"{what}: that party's threads worked, s", worst.worked)
    yield Verdict(
        f"{what}: a party's peak memory at most, GiB", max(figures.gib for figures in parties)
    )
    yield Verdict(f"{what}: the largest message, MB", max(outcome.message_bytes.values()) / 1e6)
    yield Verdict(
        f"{what}: the server, from the last message to the table, s", outcome.server_seconds
    )
    yield Verdict(f"{what}: the server's peak memory, GiB", outcome.server_mib / 2**10)
    yield Verdict(f"{what}: all messages, MB", sum(outcome.message_bytes.values()) / 1e6)
    yield Verdict(
        f"{what}: between SuperLink and SuperNodes as Flower counts it, MB",
        outcome.wire_bytes / 1e6,
    )
    yield Verdict(
        f"{what}: over the loopback interface, everything on it, MB", outcome.loopback_bytes / 1e6
    )
    yield Verdict(f"{what}: the whole, with three acceptances, s", outcome.seconds)
    yield Verdict(
        f"{what}: processes that wanted one of {os.cpu_count()} cores meanwhile", outcome.load
    )


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


def vertimrf(*words):
    """What a command prints."""
    command = [sys.executable, "-m", "vertimrf", *map(str, words)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT).stdout


def together(work):
    """Do something for all parties at once."""
    with ThreadPoolExecutor(len(PARTIES)) as pool:
        for done in [pool.submit(work, name) for name in PARTIES]:
            done.result()


def wait(path, network, run):
    """Until something is there."""
    end = time.monotonic() + LONG
    while not path.exists():
        if time.monotonic() > end:
            raise RuntimeError(f"{path} does not come:\n{network.run_log(run)}")
        time.sleep(0.2)


def loopback_bytes():
    """Bytes that were sent over the loopback interface since the machine started."""
    line = next(
        line
        for line in Path("/proc/net/dev").read_text().splitlines()
        if line.strip().startswith("lo:")
    )
    return int(line.split(":")[1].split()[8])


class Peak:
    """Looks at the peak memory of a process that another one will have started, until it is stopped.

    Args:
        ancestor: the process that starts it.
        name: by which its command line is known.
    """

    def __init__(self, ancestor, name):
        self._ancestor, self._name = ancestor, name
        self._kib = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def stop(self):
        """The peak, MiB."""
        self._stop.set()
        self._thread.join()
        return self._kib / 2**10

    def _look(self):
        while not self._stop.wait(0.2):
            for pid in descendants(self._ancestor):
                try:
                    if self._name.encode() not in Path(f"/proc/{pid}/cmdline").read_bytes():
                        continue
                    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
                except OSError:
                    continue
                self._kib = max(
                    [
                        self._kib,
                        *(int(line.split()[1]) for line in lines if line.startswith("VmHWM")),
                    ]
                )


def main():
    options = arguments(__doc__, quick="a tenth of the records").parse_args()
    records = {FULL: 1_000_000, QUICK: 100_000, SMOKE: 5000}[options.size]
    finish(rows(records), "network", options)


if __name__ == "__main__":
    main()

"""Whole runs over Flower: simulated, and over a SuperLink and SuperNodes that are processes of their own, with TLS and keys."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as parquet
import pytest

pytest.importorskip("flwr")

from conftest import PARTIES, Folders

from benchmarks.loopback import ROOT, Loopback
from vertimrf.runs.party_run import PartyRun
from vertimrf.runs.server_run import ServerRun

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not Path("/proc/self").exists(), reason="finds its processes by /proc")]

# Seconds; a busy machine takes a while to start so many processes.
LONG = 300.0


def until(what: Callable[[], object], why: Callable[[], str]) -> None:
    end = time.monotonic() + LONG
    while not what():
        assert time.monotonic() < end, why()
        time.sleep(0.3)


def ended(network: Loopback, run: str) -> str:
    """The state in which a run ended."""
    until(lambda: network.run_state(run)["status"].startswith("finished"), lambda: network.run_log(run))
    return str(network.run_state(run)["status"])


def everybody_has_the_plan(folders: Folders) -> bool:
    return all(folders.party(name).plan is not None for name in PARTIES)


def test_a_simulated_run_ends_with_a_table(folders: Folders, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    with Loopback(tmp_path / "network", simulation=True) as network:
        run = network.run_app(
            {"run-folder": str(folders.server), "simulated-parties": str(folders.parties), "pause": 0.2, "longest-pause": 2.0},
            "--federation-config", "num-supernodes=3 client-resources-num-cpus=1 init-args-num-cpus=3",
        )  # fmt: skip
        until(lambda: everybody_has_the_plan(folders), lambda: network.run_log(run))
        folders.accept()
        assert ended(network, run) == "finished:completed", network.run_log(run)
    assert parquet.read_table(folders.server / "result" / "synthetic.parquet").num_rows == 500


def test_a_run_over_tls_survives_what_happens_to_its_nodes(folders: Folders, tmp_path: Path) -> None:
    """Three parties and a stranger; one party's node is killed midway; one party keeps its run in a process of its own."""
    settings = {"run-folder": str(folders.server), "pause": 1.0, "longest-pause": 4.0}
    place = tmp_path / "place"
    place.mkdir()
    with Loopback(tmp_path / "network") as network:
        for name in (*PARTIES, "bank"):
            network.register(name)
        network.start_node("bank", {"party": "insurer", "run-folder": str(folders.parties / "insurer")})
        network.start_node("hospital", {"party": "hospital", "exchange": str(place)})
        network.start("own", sys.executable, "-m", "vertimrf", "run", "party", folders.parties / "hospital", "--exchange", place, "--wait")
        for name in ("insurer", "registry"):
            network.start_node(name, {"party": name, "run-folder": str(folders.parties / name)})
        run = network.run_app(settings)
        until(lambda: everybody_has_the_plan(folders), lambda: network.run_log(run))

        # The registry's node dies once its message is on record, wherever that is by then, and comes back.
        for name in ("hospital", "registry"):
            folders.party(name).accept(ServerRun(folders.server).plan.fingerprint)
        until(lambda: "message" in folders.party("registry").outgoing(), lambda: network.log_of("registry"))
        network.kill("registry")
        made = folders.party("registry").outgoing()["message"]
        node = {"party": "registry", "run-folder": str(folders.parties / "registry")}

        def back() -> bool:
            # The SuperLink takes a node that did not say goodbye for online until its heartbeat fails to come, for a minute.
            if "registry" not in network.processes or network.processes["registry"].poll() is not None:
                network.start_node("registry", node)
                time.sleep(5)
            return "Activated" in network.log_of("superlink").rpartition("registry died")[2]

        folders.party("insurer").accept(ServerRun(folders.server).plan.fingerprint)

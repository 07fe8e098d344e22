"""Whole runs over Flower: simulated, and over a SuperLink and SuperNodes that are processes of their own, with TLS and keys."""

import sys
from pathlib import Path

import pyarrow.parquet as parquet
import pytest

pytest.importorskip("flwr")

from folders import PARTIES
from tools.loopback import Loopback

from vertimrf.runs.files import MATCH

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self").exists(), reason="finds its processes by /proc"),
]


def everybody_has_the_plan(folders):
    return all(folders.party(name).plan is not None for name in PARTIES)


def test_a_simulated_run_ends_with_a_table(folders, tmp_path):
    pytest.importorskip("ray")
    with Loopback(tmp_path / "network", simulation=True) as network:
        run = network.run_app(
            {
                "run-folder": str(folders.server),
                "simulated-parties": str(folders.parties),
                "pause": 0.2,
                "longest-pause": 2.0,
            },
            "--federation-config",
            "num-supernodes=3 client-resources-num-cpus=1 init-args-num-cpus=3",
        )
        network.until(lambda: everybody_has_the_plan(folders), run)
        folders.accept(*PARTIES)
        network.end(run, folders.server / "result")
    assert all(folders.party(name).state().done for name in PARTIES)
    rows = parquet.read_table(folders.server / "result" / "synthetic.parquet").to_pandas()
    assert len(rows) == 500
    assert (rows["total"] == rows["a"] + rows["b"]).all()


def test_a_run_over_tls_survives_what_happens_to_its_nodes(folders, tmp_path):
    """Three parties and a stranger. One party's node is killed midway; one party's run is a process of its own; one's is not."""
    settings = {"run-folder": str(folders.server), "pause": 1.0, "longest-pause": 4.0}
    place = tmp_path / "place"
    place.mkdir()
    nodes = {name: {"party": name, "run-folder": str(folders.parties / name)} for name in PARTIES}
    nodes["hospital"] = {"party": "hospital", "exchange": str(place)}
    # The SuperLink knows it, the run does not; and it would like to speak for a party.
    nodes["bank"] = {"party": "insurer", "run-folder": str(folders.parties / "insurer")}
    with Loopback(tmp_path / "network") as network:
        words = [
            sys.executable,
            "-m",
            "vertimrf",
            "run",
            "party",
            folders.parties / "hospital",
            "--exchange",
            place,
            "--wait",
        ]
        own = network.start("own", *words)
        for name, node in nodes.items():
            network.register(name)
            network.start_node(name, node)
        run = network.run_app(settings)
        network.until(lambda: everybody_has_the_plan(folders), run)

        folders.accept("hospital", "registry")
        # If it is killed while it sends the message, Flower waits three minutes for the rest.
        network.until(lambda: "message" in folders.party("registry").outgoing(), run, 0.01)
        network.kill("registry")
        made = folders.party("registry").outgoing()["message"]
        folders.accept("insurer")
        network.revive("registry", nodes["registry"])

        network.end(run, folders.server / "result")
        log = network.run_log(run)
        # Every party has the last file: the command that waits ends, and the others' `status` says so.
        assert own.wait(60) == 0
        assert f"done   {MATCH}: by the messages" in network.log_of("own")
        assert all(folders.party(name).state().done for name in PARTIES)
        # A run that is over stays over.
        result = (folders.server / "result" / "synthetic.parquet").read_bytes()
        again = network.run_app(settings)
        network.end(again, folders.server / "result")
        assert (folders.server / "result" / "synthetic.parquet").read_bytes() == result
    assert (
        "is refused: 'bank' is no party of this run, whose parties are 'hospital', 'insurer', 'registry'."
        in log
    )
    assert "query.exchange" not in network.log_of("bank")
    came = {name: (folders.server / "received" / name / "message").read_bytes() for name in PARTIES}
    assert came == {name: folders.party(name).outgoing()["message"] for name in PARTIES}
    assert came["registry"] == made

"""A party's run with its records on its own cluster: the message and the record of one machine, byte for byte, also if a role is killed; and one sentence for a cluster that fails."""

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from commands import good, refused
from runs.conversation import RECORDS, Conversation, files_of, process

from vertimrf.cluster.records import ClusterRecords
from vertimrf.errors import PlanError, TableError
from vertimrf.plan.options import PlanOptions
from vertimrf.runs.folder import SETTINGS
from vertimrf.runs.party_run import PartyRun

distributed = pytest.importorskip("distributed")

NOBODY = "tcp://127.0.0.1:1"
# A role that does its next steps, and ends by SIGKILL before its n-th question to the cluster or file put in place.
TURN = """
import os, signal, sys
from vertimrf.cluster import records
from vertimrf.runs.party_run import PartyRun
left = [int(sys.argv[2])]
def counted(function):
    def step(*given, **more):
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*given, **more)
    return step
records.gathered = counted(records.gathered)
os.replace, os.rename, os.link = map(counted, (os.replace, os.rename, os.link))
PartyRun(sys.argv[1]).advance({})
print(left[0])
"""


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit="2GiB"
    ) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """A run in which nothing was released. The hospital's table is also a folder of files, with records that do not fit."""
    folder = tmp_path_factory.mktemp("runs")
    Conversation.begun(
        folder / "start", PlanOptions(expected_records=RECORDS, message_bytes=50_000)
    )
    table = pa.csv.read_csv(folder / "start" / "hospital.csv")
    other = table.slice(0, 4).set_column(1, "smoker", pa.array([9, 9, 0, 0]))
    pq.write_table(pa.concat_tables([table, other]), folder / "whole.parquet")
    for i in range(3):
        (folder / f"people/site={i}").mkdir(parents=True)
        part = pq.read_table(folder / "whole.parquet").slice(i * 120, 120)
        pq.write_table(part, folder / f"people/site={i}/part.parquet")
    return folder


def run_of(begun, folder, address=None):
    """The hospital's run in a copy, its table here and read by this cluster."""
    lines = [f"table = '{begun}/people'", *[f"dask = '{address}'"] * (address is not None)]
    return Conversation.copied(begun / "start", folder).accepted("hospital", *lines)


def test_a_killed_run_on_a_cluster_gives_the_message_and_the_record_of_one_machine(
    begun, cluster, tmp_path, monkeypatch
):
    def told(folder, address, kills):
        monkeypatch.setenv("VERTIMRF_STATE", str(tmp_path / f"{folder}.state"))
        run = run_of(begun, tmp_path / folder, address)
        for kill in kills:
            process(TURN, run, kill)
        process(TURN, run, 0)
        assert run.state().left_out
        own = files_of(run.folder)
        return own["left-out"], run.outgoing(), files_of(tmp_path / f"{folder}.state")

    assert told("many", cluster.scheduler_address, (1, 3, 6)) == told("one", None, ())


def test_an_address_may_change_after_the_acceptance(begun, cluster, tmp_path, monkeypatch):
    """It decides nothing about the message. A cluster that does not answer stops the run with a sentence, and nothing is released."""
    monkeypatch.setattr("vertimrf.cluster.records.PATIENCE", 1)
    monkeypatch.setenv("VERTIMRF_STATE", str(tmp_path / "state"))
    run = run_of(begun, tmp_path / "run", NOBODY)
    before = files_of(run.folder)
    with pytest.raises(TableError, match=rf"{NOBODY} cannot be used \(Timed out.*nothing is rel"):
        run.advance({})
    assert files_of(run.folder).keys() - before.keys() == {"stopped"}
    assert not [*(tmp_path / "state").rglob("*message*")]
    settings = run.folder / SETTINGS
    settings.write_text(settings.read_text().replace(NOBODY, cluster.scheduler_address))
    assert "message" in PartyRun(run.folder).advance({})


def test_a_scheduler_that_goes_away_is_one_sentence(begun, tmp_path, monkeypatch):
    monkeypatch.setenv("VERTIMRF_STATE", str(tmp_path / "state"))
    monkeypatch.setattr("vertimrf.cluster.records.PATIENCE", 2)
    with distributed.LocalCluster(
        n_workers=1, processes=False, protocol="tcp", dashboard_address=":0"
    ) as cluster:
        run = run_of(begun, tmp_path / "run", cluster.scheduler_address)
        count = ClusterRecords.marginals

        def gone(*given):
            cluster.close()
            return count(*given)

        monkeypatch.setattr(ClusterRecords, "marginals", gone)
        with pytest.raises(TableError, match=r"connection was lost.*nothing is released"):
            run.advance({})
    assert not [*(tmp_path / "state").rglob("*message*")]


def test_workers_of_another_version_are_refused(begun, cluster, tmp_path, monkeypatch):
    run = run_of(begun, tmp_path / "run", cluster.scheduler_address)
    monkeypatch.setattr("vertimrf.cluster.work.__version__", "0.0.9")
    with pytest.raises(TableError, match=r"and this machine 0.0.9: install one version"):
        run.advance({})


def test_commands_say_what_no_cluster_can_do(begun, tmp_path):
    begin = f"run party {tmp_path}/run --name hospital --id id --dask {NOBODY} --table"
    printed = refused(f"{begin} {begun}/whole.parquet")
    assert "name a folder of files" in printed
    assert not [*tmp_path.iterdir()]
    good(f"{begin} {begun}/people")
    assert f'dask = "{NOBODY}"' in (tmp_path / "run" / SETTINGS).read_text()
    assert "edit it there" in refused(f"run party {tmp_path}/run --dask {NOBODY}")


def test_a_plan_that_needs_all_records_in_one_place_is_not_accepted(tmp_path):
    run = Conversation.make(
        tmp_path / "r",
        planning=PlanOptions(expected_records=RECORDS, encoder="encrypted"),
    )
    run.round(accepting=False)
    run.round(accepting=False)
    settings = run.parties["hospital"].folder / SETTINGS
    settings.write_text(settings.read_text() + f"dask = '{NOBODY}'\n")
    with pytest.raises(PlanError, match="needs all records in one place"):
        run.accept("hospital")

"""Run folders of three parties and a server, as they stand before anybody is connected."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from builders import schema_of

from vertimrf.runs.party_run import PartyRun
from vertimrf.runs.server_run import ServerRun

PARTIES = {"hospital": {"a": 3, "b": 2}, "insurer": {"c": 4}, "registry": {"d": 2}}


@dataclass(frozen=True)
class Folders:
    """Where everybody's run lives; parties' folders are called after them, in one folder."""

    server: Path
    parties: Path

    def party(self, name: str) -> PartyRun:
        return PartyRun(self.parties / name)

    def accept(self, *names: str) -> None:
        """What people do by phone: these accept the plan that the server made."""
        plan = ServerRun(self.server).plan
        assert plan is not None
        for name in names:
            self.party(name).accept(plan.fingerprint)


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    records = 2000
    rng = np.random.default_rng(5)
    (tmp_path / "parties").mkdir()
    for name, sizes in PARTIES.items():
        columns = {attribute: rng.integers(0, size, records) for attribute, size in sizes.items()}
        parquet.write_table(pa.table({"id": np.arange(records), **columns}), tmp_path / f"{name}.parquet")
        PartyRun.create(tmp_path / "parties" / name, name=name, table=tmp_path / f"{name}.parquet", id="id")
    server = ServerRun.create(
        tmp_path / "server", schema=schema_of(**PARTIES), epsilon=2.0, expected_records=records, message_bytes=100_000, rows=500
    )
    return Folders(server.folder, tmp_path / "parties")


@pytest.fixture
def within_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Flower makes messages only in a process of one of its tasks; here the test's."""
    from flwr.supercore.task_identity import TaskIdentity

    for name in ("_run_id", "_node_id", "_task_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)

"""Run folders of three parties and a server, as they stand before anybody is connected."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
from builders import schema_of

from vertimrf import PlanOptions, RunOptions, Schema
from vertimrf.runs.party_run import PartyRun
from vertimrf.runs.server_run import ServerRun

PARTIES = {"hospital": {"a": 3, "b": 2}, "insurer": {"c": 4}, "registry": {"d": 2}}


@dataclass(frozen=True)
class Folders:
    """Where everybody's run lives; parties' folders are called after them, in one folder."""

    server: Path
    parties: Path

    def party(self, name):
        return PartyRun(self.parties / name)

    def node(self, name):
        """Settings of a party's node."""
        return {"party": name, "run-folder": str(self.parties / name)}

    def accept(self, *names):
        """What people do by phone: these accept the plan that the server made."""
        plan = ServerRun(self.server).plan
        assert plan is not None
        for name in names:
            self.party(name).accept(plan.fingerprint)


def make_folders(folder, **options):
    """Tables, of which one has a sum in place of a term, and run folders with key pairs."""
    records = 2000
    rng = np.random.default_rng(5)
    (folder / "parties").mkdir()
    for name, sizes in PARTIES.items():
        columns = {attribute: rng.integers(0, size, records) for attribute, size in sizes.items()}
        if name == "hospital":
            columns["total"] = columns["a"] + columns.pop("b")
        parquet.write_table(
            pa.table({"id": np.arange(records), **columns}), folder / f"{name}.parquet"
        )
        PartyRun.create(
            folder / "parties" / name, name=name, table=folder / f"{name}.parquet", id="id"
        )
    server = ServerRun.create(
        folder / "server",
        schema=Schema.from_json(schema_of(**PARTIES).to_json() | {"rules": ["total = a + b"]}),
        epsilon=2.0,
        planning=PlanOptions(expected_records=records, **(options or {"message_bytes": 100_000})),
        options=RunOptions(rows=500),
    )
    return Folders(server.folder, folder / "parties")

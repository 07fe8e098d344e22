"""Second releases from other places: a party's key, secret and run folder copied, linked, restored, and used from Python.

Nobody has to be malicious here either. What counts is how many different messages get out for one plan and one table, on one
machine, which has a record, and on machines that have none; and whether another table gets one where there is a record.
"""

import os
import re
import shutil
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

from vertimrf import (
    Attribute,
    Plan,
    PlanOptions,
    PrivateKey,
    PublicKeys,
    Schema,
    Secret,
    VertiMRFError,
    make_plan,
)
from vertimrf.party import party as party_module
from vertimrf.privacy.noise import SystemNoise
from vertimrf.runs.party_run import PartyRun

from ..verdict import Verdict

ROWS = 300
NAMES = ("hospital", "insurer")


@contextmanager
def machine(folder):
    """As if on a machine whose state folder is this one."""
    before = os.environ.get("VERTIMRF_STATE")
    os.environ["VERTIMRF_STATE"] = str(folder)
    try:
        yield
    finally:
        if before is None:
            del os.environ["VERTIMRF_STATE"]
        else:
            os.environ["VERTIMRF_STATE"] = before


class Victim:
    """The hospital, whose run has got as far as an accepted plan; and a backup of its folder from then.

    Args:
        folder: where everything goes.
    """

    def __init__(self, folder):
        self.folder, self.run, self.table = folder, folder / "hospital.run", folder / "hospital.csv"
        self.write_table(0)
        run = PartyRun.create(self.run, name=NAMES[0], table=self.table, id="id")
        offers = [
            PrivateKey.load(self.run / "key").offer,
            PrivateKey.new(NAMES[1]).offer,
            PrivateKey.new(None).offer,
        ]
        schema = Schema.of(
            {
                NAMES[0]: [Attribute.integer("smoker", 2), Attribute.integer("ward", 3)],
                NAMES[1]: [Attribute.integer("tariff", 3)],
            }
        )
        plan = make_plan(
            schema,
            epsilon=1.0,
            planning=PlanOptions(expected_records=ROWS, message_bytes=50_000),
            public_keys=PublicKeys.of(offers, NAMES),
        )
        plan.save(folder / "plan.json")
        run.advance({"plan": (folder / "plan.json").read_bytes()})
        run.accept(plan.fingerprint)
        # The secret is drawn, and nothing is released yet: there is no table.
        self.table.rename(folder / "away")
        with suppress(VertiMRFError):
            run.advance({})
        (folder / "away").rename(self.table)
        assert (self.run / "secret").exists()
        shutil.copytree(self.run, folder / "backup")

    def write_table(self, seed):
        """A table of other people for every seed."""
        rng = np.random.default_rng(seed)
        columns = {
            "id": np.arange(ROWS),
            "smoker": rng.integers(0, 2, ROWS),
            "ward": rng.integers(0, 3, ROWS),
        }
        pa.csv.write_csv(pa.table(columns), self.table)

    def by_folder(self, run):
        """The message that `vertimrf run party` gives."""
        return PartyRun(run).advance({})["message"]

    def by_program(self, secret, key=None):
        """The message that a program of one's own gives."""
        plan, private_key = (
            Plan.load(self.folder / "plan.json"),
            PrivateKey.load(key or self.run / "key"),
        )
        party = party_module.Party(plan, NAMES[0], Secret.load(secret), key=private_key)
        return party.release(party.encode(self.table, "id"))

    def copy(self, name, link=False):
        """A copy of one of the run's files, in a folder of its own."""
        there = Path(tempfile.mkdtemp(dir=self.folder)) / name
        (os.link if link else shutil.copy)(self.run / name, there)
        return there

    def copied_run(self, source):
        """A copy of a run folder, which exchanges its files elsewhere."""
        there = Path(tempfile.mkdtemp(dir=self.folder)) / "copy.run"
        shutil.copytree(self.folder / source, there)
        text = re.sub(r"(?m)^exchange = .*\n", "", (there / "run.toml").read_text())
        (there / "run.toml").write_text(text + f'exchange = "{there.parent}/x"\n')
        return there


PLACES = {
    "the run folder": lambda victim: victim.by_folder(victim.run),
    "a program with the folder's key and secret": lambda victim: victim.by_program(
        victim.run / "secret"
    ),
    "a copied secret": lambda victim: victim.by_program(victim.copy("secret")),
    "a hard link to the secret": lambda victim: victim.by_program(victim.copy("secret", link=True)),
    "a copied key and secret": lambda victim: victim.by_program(
        victim.copy("secret"), victim.copy("key")
    ),
    "a copied run folder with another exchange": lambda victim: victim.by_folder(
        victim.copied_run("hospital.run")
    ),
    "a backup from before the release": lambda victim: victim.by_folder(
        victim.copied_run("backup")
    ),
}


def messages(folder, machines):
    """What gets out at every place, on so many machines by turns."""
    victim = Victim(folder)
    out = []
    for i, place in enumerate(PLACES.values()):
        with machine(folder / f"state{i % machines}"):
            out.append(place(victim))
    return out


def refusals(folder):
    """How many places give a message of another table, on the machine where the first was released for."""
    victim, given = Victim(folder), 0
    with machine(folder / "state"):
        victim.by_folder(victim.run)
        # Whatever the folders themselves remember.
        victim.write_table(1)
        for name in (
            "a program with the folder's key and secret",
            "a copied secret",
            "a hard link to the secret",
        ):
            try:
                PLACES[name](victim)
            except VertiMRFError as error:
                given += "from another table" not in str(error)
            else:
                given += 1
    return given


def rows():
    """What gets out with and without each defence."""
    count = len(PLACES)
    with tempfile.TemporaryDirectory() as name:
        folders = iter(Path(name) / str(i) for i in range(9))

        def fresh():
            folder = next(folders)
            folder.mkdir()
            return folder

        keyed = party_module.KeyedNoise
        try:
            party_module.KeyedNoise = lambda key: SystemNoise()
            undefended = len(set(messages(fresh(), count)))
            recorded = len(set(messages(fresh(), 1)))
        finally:
            party_module.KeyedNoise = keyed
        title = f"many places: different messages of {count}"
        yield Verdict(
            f"{title}, fresh noise, no common record",
            undefended,
            f"{count}: it matters",
            undefended == count,
        )
        yield Verdict(f"{title}, fresh noise, one record a machine", recorded, "1", recorded == 1)
        elsewhere = len(set(messages(fresh(), count)))
        yield Verdict(f"{title}, noise by key, on as many machines", elsewhere, "1", elsewhere == 1)
        both = len(set(messages(fresh(), 1)))
        yield Verdict(f"{title}, as it is", both, "1", both == 1)
        second = refusals(fresh())
        yield Verdict(
            "many places: messages of another table, from copies", second, "0", second == 0
        )

"""One sound file of every kind that the library reads, from small runs over made-up tables; all in one folder."""

from __future__ import annotations

import importlib.util
import json
import math
import sqlite3
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.orc
import tomli_w
from builders import decode, temporal
from planning import plan_with
from workbooks import opendocument, workbook

from vertimrf import (
    Attribute,
    Impossible,
    Message,
    Model,
    OpenSchema,
    Party,
    Plan,
    PrivateKey,
    ReadOptions,
    RunOptions,
    Schema,
    Secret,
    Server,
    Sketch,
    write_table,
)
from vertimrf.errors import ModelError
from vertimrf.keys import KeyRing
from vertimrf.model.fit import fit
from vertimrf.model.markov_random_field import Factor
from vertimrf.model.measurement import Measurement
from vertimrf.party.alignment import sample_ids, seal_sample
from vertimrf.party.domain_record import DomainRecord, Searched
from vertimrf.party.private_domains import close, find_domains
from vertimrf.party.records import InMemory
from vertimrf.party.releases import Release, Releases, table_digest
from vertimrf.party.secret import seal_secret
from vertimrf.privacy.events import GeometricEvent
from vertimrf.privacy.label import PrivacyLabel
from vertimrf.privacy.ledger import LedgerEntry
from vertimrf.privacy.noise import FixedNoise
from vertimrf.runs.files import match_of
from vertimrf.tables.arrow import LABEL_FILE
from vertimrf.tables.columns import encode_table
from vertimrf.tables.ids import IdKeys

NAMES = ("hospital", "insurer", "registry")
RELEASE = "message.release"
PLANS = ("count", "pairs", "grr", "published", "persons")
ROWS = 300
# What files of other programs are read by, which may be absent.
HAS = {
    name: importlib.util.find_spec(name) is not None
    for name in ("duckdb", "pyreadstat", "python_calamine")
}
# One key for all plans, so that tables need encoding once.
KEYS = IdKeys(bytes(16), bytes(range(16)), bytes(range(16, 32)))
# Threads of workers would fight for the cores that other workers need.
QUIET = RunOptions(num_threads=1, seed=0)


@dataclass(frozen=True)
class Seeds:
    """The folder of sound files, read back; everything below is read once.

    Attributes:
        folder: where they are.
    """

    folder: Path

    def path(self, name):
        """A file by its name."""
        return self.folder / name

    @cached_property
    def keys(self):
        """Everyone's private keys; None is the server."""
        return {
            name: PrivateKey.load(self.path(f"{name or 'server'}.key")) for name in (*NAMES, None)
        }

    @cached_property
    def secret(self):
        """The parties'."""
        return Secret.load(self.path("parties.secret"))

    @cached_property
    def plans(self):
        """By name."""
        return {name: Plan.load(self.path(f"{name}.plan.json")) for name in PLANS}

    @cached_property
    def messages(self):
        """By plan and party."""
        return {
            plan: {
                name: Message.load(
                    self.path(f"{plan}-{name}.message"), self.plans[plan], self.keys[None]
                )
                for name in NAMES
            }
            for plan in PLANS
        }

    def table(self, plan, party):
        """A party's records, encoded for a plan."""
        return encoded(self.plans[plan], party, self.path(f"{party}.parquet"))


def encoded(plan, party, source):
    """A party's records; they name persons where the plan is for several records of one."""
    person = "person" if plan.records_per_person > 1 else None
    part = plan.schema.encoding(party)
    return encode_table(source, "id", part, read=ReadOptions(person=person), keys=KEYS)


def schema():
    """Every sort of attribute, one of them at two parties, combinations of values that cannot be, and every sort of rule."""
    ward = Attribute.categorical("ward", ["a", "b", "c"], missing=True, other="elsewhere")
    return Schema.of(
        {
            "hospital": [
                ward,
                Attribute.numeric("age", [0, 15, 40, 65, 120], integral=True),
                Attribute.categorical("smoker", [True, False]),
            ],
            "insurer": [
                Attribute.integer("tariff", 4),
                Attribute.numeric("cost", [0, 1.5, 10], resolution=0.5, clamp=True),
                temporal("since", "date", [date(2000, 1, 1), date(2010, 1, 1), date(2020, 1, 1)]),
            ],
            "registry": [
                ward,
                Attribute.integer("children", 3),
                Attribute.categorical("level", [1.0, 2.5]),
            ],
        },
        impossible=[
            Impossible.of(age={"below": 15}, smoker=True),
            Impossible.of(children=2, tariff=[0, 3]),
        ],
        rules=["children <= tariff", "due = cost + level", "until = since + tariff - children"],
    )


def plain_schema():
    """For encoders that take neither shared columns nor impossible combinations."""
    sizes = {"hospital": {"h0": 3, "h1": 2}, "insurer": {"i0": 4}, "registry": {"r0": 2, "r1": 3}}
    return Schema.of(
        {
            party: [Attribute.integer(name, size) for name, size in columns.items()]
            for party, columns in sizes.items()
        }
    )


def rows_of(attributes, count, seed):
    """Records under ids, with persons, of any attributes; every value drawn apart from the others."""
    rng = np.random.default_rng(seed)
    codes = np.array([rng.integers(0, attribute.size, count) for attribute in attributes])
    table = decode(codes, attributes, rng)
    ids = pa.array([f"{i:05d}" for i in range(count)])
    return pa.table(
        {"id": ids, "person": pa.array([f"p{i // 2}" for i in range(count)])}
        | dict(zip(table.column_names, table.columns, strict=True))
    )


def people(seed):
    """All parties' records in one table, without what the schema calls impossible."""
    whole = replace(schema(), ids="A000000")
    tables = rows_of((*whole.attributes, *plain_schema().attributes), ROWS * 2, seed)
    codes = encode_table(tables, "id", whole.attributes, keys=KEYS).codes
    kept = np.ones(ROWS * 2, bool)
    for combination in whole.combinations:
        kept &= ~np.all([np.isin(codes[place], values) for place, values in combination], axis=0)
    return tables.filter(pa.array(kept)).slice(0, ROWS)


def plans(keys):
    """One of every encoder, and one for persons with several records, domains that cost something, and a workload."""
    spent = LedgerEntry(
        GeometricEvent(200.0, 2),
        "insurer",
        "bounds and bins of 'cost'",
        "two-sided geometric",
        "cafe-0",
    )
    common = {
        "epsilon": 2.0,
        "expected_records": ROWS,
        "delta": 1e-6,
        "public_keys": keys.public,
        "tau": 2000,
    }
    whole = replace(schema(), ids="A000000")
    return {
        "count": plan_with(whole, nonce="count", keys=256, **common),
        "pairs": plan_with(
            plain_schema(), nonce="pairs", encoder="scheduled-pairs", keys=400, **common
        ),
        "grr": plan_with(plain_schema(), nonce="grr", encoder="grr", **common),
        "published": plan_with(
            plain_schema(),
            nonce="published",
            encoder="published",
            keys=64,
            claim_as_published=True,
            **common,
        ),
        "persons": plan_with(
            replace(plain_schema(), spent=(spent,)),
            nonce="persons",
            keys=256,
            records_per_person=2,
            prior=[
                LedgerEntry(
                    GeometricEvent(300.0, 2), "coordinator", "record count", "two-sided geometric"
                )
            ],
            workload={("h0", "r1"): 2.0, ("i0",): 1.0},
            **common,
        ),
    }


def build(folder):
    """Make every file; they are about the same at every call, but for the keys, what is sealed, and what noise decides."""
    keys = KeyRing.new(NAMES)
    secret = Secret.new()
    for name, key in {**keys.parties, "server": keys.server}.items():
        key.save(folder / f"{name}.key")
        key.offer.save(folder / f"{name}.offer")
    secret.save(folder / "parties.secret")
    table = people(1)
    _tables(folder, table)
    made = plans(keys)
    for name, plan in made.items():
        plan.save(folder / f"{name}.plan.json")
        (folder / f"{name}.envelopes.json").write_text(
            json.dumps(
                seal_secret(secret, plan.digest(), plan.sealing_keys(), keys.parties["hospital"])
            )
        )
        _messages(folder, name, plan, table, keys, secret)
    (folder / "count.match").write_bytes(match_of(made["count"], few=True))
    sample = sample_ids([table.select(["id"])], secret, made["count"], "The table")
    (folder / "ids.sample.json").write_text(
        json.dumps(seal_sample(sample, made["count"], keys.parties["insurer"]))
    )
    (folder / "ids.sketch").write_bytes(Sketch.encode(range(ROWS), bytes(32), 256).to_bytes())
    _schemas(folder, table)
    (folder / "ledger.json").write_text(json.dumps(made["persons"].ledger().to_json()))
    (record,) = (folder / "releases").glob("*.release")
    record.rename(folder / RELEASE)
    return Seeds(folder)


def _tables(folder, table):
    for party, names in schema().parties:
        part = table.select(["id", "person", *names, *plain_schema().names])
        for suffix in (".csv", ".csv.gz", ".parquet", ".arrow"):
            write_table(
                part, folder / f"{party}{suffix}", PrivacyLabel(1.0, 1e-6, notes=("made up",))
            )
    assert (folder / f"hospital.csv{LABEL_FILE}").exists()
    _foreign(folder, table.select(["id", "person", *dict(schema().parties)["hospital"]]))


def _foreign(folder, table):
    """The hospital's table as programs of other people write it."""
    lines = table.to_pylist()
    texts = {
        "csv": (folder / "hospital.csv").read_bytes(),
        "jsonl": "".join(json.dumps(line, default=str) + "\n" for line in lines).encode(),
    }
    (folder / "hospital.jsonl").write_bytes(texts["jsonl"])
    for kind, suffix in (("csv", "bz2"), ("csv", "zst"), ("jsonl", "zst")):
        path = folder / f"hospital.{kind}.{suffix}"
        with pa.output_stream(path, compression="detect") as out:
            out.write(texts[kind])
    pa.orc.write_table(table, folder / "hospital.orc")
    pa.feather.write_feather(table, folder / "hospital.feather")
    plain = [[str(c) if isinstance(c, bool) else c for c in line.values()] for line in lines]
    rows = [table.column_names, *plain]
    (folder / "hospital.xlsx").write_bytes(workbook(rows))
    (folder / "hospital.ods").write_bytes(opendocument(rows))
    with sqlite3.connect(folder / "hospital.sqlite") as file:
        names = ", ".join(table.column_names)
        file.execute(f"CREATE TABLE people ({names})")
        marks = ", ".join("?" * table.num_columns)
        file.executemany(f"INSERT INTO people VALUES ({marks})", rows[1:])
    file.close()
    if HAS["duckdb"]:
        import duckdb

        with duckdb.connect(str(folder / "hospital.duckdb")) as connection:
            connection.from_arrow(table).create("people")
    if HAS["pyreadstat"]:
        import pyreadstat

        frame = table.drop_columns("smoker").to_pandas()
        pyreadstat.write_sav(frame, str(folder / "hospital.sav"))
        pyreadstat.write_sav(frame, str(folder / "hospital.zsav"), compress=True)
        pyreadstat.write_dta(frame, str(folder / "hospital.dta"))
        pyreadstat.write_xport(frame, str(folder / "hospital.xpt"))


def _messages(folder, name, plan, table, keys, secret):
    received = []
    for number, party in enumerate(NAMES):
        records = encoded(plan, party, table)
        message = Party(plan, party, secret, noise=FixedNoise(number), options=QUIET).run(records)
        message.save(folder / f"{name}-{party}.message", plan, keys.parties[party])
        received.append(message)
        if name == "count" and party == "hospital":
            digest = plan.digest()
            key = keys.parties[party]
            release = Release(digest, number, table_digest(InMemory(records), key, digest))
            Releases(folder / "releases").once(
                release,
                partial(message.seal, plan, keys.parties[party]),
            )
    if name in ("count", "persons"):
        result = Server(plan, QUIET).run(Server(plan, QUIET).read(received))
        released = Model.of(result)
        released.save(folder / f"{name}.model")
        if name == "count":
            (folder / "report.json").write_text(json.dumps(result.to_json()))
            _outer_model(folder, keys, table, secret)
            _model_in_classes(folder, released)
            _model_with_more(folder, released)


def _model_in_classes(folder, released):
    """A model that has several values of an attribute as one."""
    sizes = released.schema.sizes
    classes = {0: np.arange(sizes[0]) // 2}
    margins = [released.field.marginal((a,)) for a in range(len(sizes))]
    alone = [Measurement((a,), (None,), counts, 1.0) for a, counts in enumerate(margins)]
    field = fit(sizes, alone, released.field.total, classes=classes)
    replace(released, field=field, noise=None).save(folder / "classes.model")


def _model_with_more(folder, released):
    """A model with factors beyond its cliques."""
    shape = released.schema.sizes[0], released.schema.sizes[-1]
    beyond = Factor(
        (0, len(released.schema.sizes) - 1),
        np.arange(float(math.prod(shape))).reshape(shape) / math.prod(shape),
    )
    replace(released, field=released.field.weighed([beyond])).save(folder / "beyond.model")


def _outer_model(folder, keys, table, secret):
    """A model of everybody that any party holds."""
    plan = plan_with(
        plain_schema(),
        epsilon=50.0,
        expected_records=ROWS,
        delta=1e-6,
        keys=1024,
        tau=2000,
        nonce="outer",
        population="outer",
    )
    for _ in range(5):
        received = []
        for number, party in enumerate(NAMES):
            records = encoded(plan, party, table.slice(40 * number, ROWS - 80))
            received.append(
                Party(plan, party, secret, noise=FixedNoise(number), options=QUIET).run(records)
            )
        try:
            result = Server(plan, QUIET).run(Server(plan, QUIET).read(received))
            break
        except ModelError:
            # So few records, under the hashes of some secrets, look like counts that cannot be.
            secret = Secret.new()
    outer = Model(plan.schema, result.model, result.ledger, result.others, shapes=result.shapes)
    outer.save(folder / "outer.model")


def _schemas(folder, table):
    whole = replace(schema(), ids="A000000")
    whole.save(folder / "schema.toml")
    whole.save(folder / "schema.json")
    (folder / "domain.json").write_text(json.dumps({"a": 3, "b": 2, "c": 12}))
    asked = {
        "party": [
            {
                "name": "insurer",
                "attribute": [
                    {"name": "tariff", "codes": 4},
                    {
                        "name": "cost",
                        "bins": "private",
                        "bounds": [0, 10],
                        "resolution": 0.5,
                        "clamp": True,
                    },
                    {
                        "name": "since",
                        "bins": "private",
                        "bounds": [date(2000, 1, 1), date(2030, 1, 1)],
                        "calendar": "date",
                    },
                ],
            },
            {
                "name": "hospital",
                "attribute": [
                    {"name": "ward", "values": "private", "most": 20, "missing": True},
                    {"name": "age", "bounds": [0, 120], "bins": 6, "integral": True},
                ],
            },
        ],
        "impossible": [{"age": {"below": 20}, "ward": "c"}],
    }
    (folder / "open.toml").write_text(tomli_w.dumps(asked))
    (folder / "open.json").write_text(json.dumps(asked, default=str))
    part = OpenSchema.load(folder / "open.toml")
    domains, _ = DomainRecord(folder / "domains").once(
        Searched(part, folder / "open.toml", "table", table),
        lambda wanted, secret: find_domains(
            wanted, lambda name: table, 50.0, 1e-6, lambda name: "insurer", noise=FixedNoise(3)
        ),
    )
    (folder / "domains.json").write_bytes((folder / "domains" / "found.json").read_bytes())
    close(part, domains).save(folder / "found.json")

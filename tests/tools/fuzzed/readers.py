"""Who reads which file, and what is done with it then: every kind of file of the library, as its commands read and use it."""

from __future__ import annotations

import base64
import gzip
import io
import json
import shutil
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from builders import decode
from planning import plan_with

from vertimrf import (
    Ledger,
    Message,
    Model,
    Offer,
    OpenSchema,
    Party,
    Plan,
    PrivateKey,
    PublicKeys,
    ReadOptions,
    Schema,
    Secret,
    Server,
    Sketch,
)
from vertimrf.cli.inspect import describe
from vertimrf.errors import MessageError
from vertimrf.files import sealed
from vertimrf.files.atomic import MAX_KEY, read_json
from vertimrf.keys import _file_key, open_sealed, seal, to_base64
from vertimrf.message import largest_message
from vertimrf.party.alignment import best_match, open_sample
from vertimrf.party.domain_record import DomainRecord, Searched
from vertimrf.party.private_domains import close
from vertimrf.party.records import InMemory
from vertimrf.party.releases import Release, Releases, table_digest
from vertimrf.party.secret import open_envelope
from vertimrf.plan.forecast import PROCESS_BYTES, Forecast, forecast
from vertimrf.plan.sections import read_schema
from vertimrf.plan.summary import summary
from vertimrf.runs.files import read_match
from vertimrf.tables.arrow import LABEL_FILE, LABEL_KEY
from vertimrf.tables.columns import encode_table
from vertimrf.tables.csv_file import unpacked
from vertimrf.tables.ids import IdKeys
from vertimrf.tables.sources import open_pieces, read_label
from vertimrf.tables.table import Table

from .damage import (
    Rng,
    damaged_bytes,
    damaged_container,
    damaged_head,
    damaged_json,
    damaged_toml,
    hostile,
    picked,
    written,
)
from .seeds import HAS, NAMES, PLANS, QUIET, RELEASE, Seeds

# Bytes, core seconds: larger things that a file states are not tried out, only counted.
MAX_BYTES, MAX_SECONDS = 600e6, 3.0


@dataclass
class Use:
    """What is done with a file, and what it may take.

    Attributes:
        seeds: the sound files around it.
        rng: decides what is tried out.
        stated: bytes that the file, or its plan, says the work will take.
        seconds: core seconds that it says so.
        tried: whether what it asks for was small enough to be tried out.
    """

    seeds: Seeds
    rng: Rng
    stated: float = 0.0
    seconds: float = 0.0
    tried: bool = True

    def allows(self, bytes, seconds):
        """Whether to go on with work that states so much."""
        if bytes > MAX_BYTES or seconds > MAX_SECONDS:
            self.tried = False
            return False
        self.stated, self.seconds = max(self.stated, bytes), self.seconds + seconds
        return True


@dataclass(frozen=True)
class Kind:
    """A kind of file.

    Attributes:
        name: of the kind.
        share: of all mutations.
        files: sound ones, by name in the seeds' folder.
        damage: makes a damaged one of a sound one's bytes.
        read: reads the damaged file, and does with it what its readers do.
    """

    name: str
    share: float
    files: tuple[str, ...]
    damage: Callable[[Seeds, Rng, str, bytes], bytes]
    read: Callable[[Path, str, Use], Any]


# Damage.


def as_json(*others):
    """JSON, with parts of other files."""
    return lambda seeds, rng, name, data: damaged_json(
        rng, data, [seeds.path(other).read_bytes() for other in others]
    )


def as_toml(seeds, rng, name, data):
    """TOML."""
    return damaged_toml(rng, data, read_schema(seeds.path(name), dict))


def as_container(seeds, rng, name, data):
    """A container that is not sealed."""
    others = (
        [seeds.path(f"{other}.model").read_bytes() for other in ("persons", "outer")]
        if name.endswith(".model")
        else []
    )
    return damaged_container(rng, data, others)


def as_sealed(seeds, rng, name, data):
    """A sealed message: opened, its contents damaged, sealed again by its sender; or its header, or its bytes."""
    plan, kind = seeds.plans[name.split("-")[0]], "party message"
    keys = plan.sealing_keys()
    sender, inside = open_sealed(data, kind, plan.digest(), keys, seeds.keys[None], name)
    choice = rng.random()
    if choice < 0.1:
        return damaged_bytes(rng, data)
    if choice < 0.25:
        return resealed(seeds, rng, sealed.peek(data, name)[0], inside, sender, None)
    others = [open_sealed(data, kind, plan.digest(), keys, seeds.keys[None], name)[1]]
    return seal(
        damaged_container(rng, inside, others), kind, plan.digest(), keys, seeds.keys[sender], None
    )


def resealed(seeds, rng, header, inside, sender, to):
    """Contents sealed under a damaged header as if it were the right one."""
    once = PrivateKey.new(None)
    receiver = seeds.keys[to].offer.public
    head = damaged_head(rng, {**header, "ephemeral": to_base64(once.offer.public)})
    key = _file_key(
        once.agree(receiver),
        seeds.keys[sender].agree(receiver),
        seeds.keys[sender].offer.public,
        receiver,
        head,
    )
    return sealed.seal_chunks(head, key, inside)


def as_envelopes(seeds, rng, name, data):
    """Envelopes: JSON of sealed files."""
    if rng.random() < 0.5:
        return damaged_json(rng, data)
    plan = seeds.plans[name.split(".")[0]] if name != "ids.sample.json" else seeds.plans["count"]
    tree = json.loads(data)
    sender, kind = ("hospital", "secret") if name != "ids.sample.json" else ("insurer", "id sample")
    to = "registry"
    envelope = base64.b64decode(tree["envelopes"][to])
    _, inside = open_sealed(
        envelope, kind, plan.digest(), plan.sealing_keys(), seeds.keys[to], "seed"
    )
    if rng.random() < 0.3:
        changed = resealed(seeds, rng, sealed.peek(envelope, "seed")[0], inside, sender, to)
    else:
        inside = (
            damaged_container(rng, inside) if kind == "id sample" else damaged_bytes(rng, inside)
        )
        changed = seal(inside, kind, plan.digest(), plan.sealing_keys(), seeds.keys[sender], to)
    tree["envelopes"][to] = to_base64(changed)
    return json.dumps(tree).encode()


def as_release(seeds, rng, name, data):
    """A release record."""
    return damaged_container(rng, data)


def as_table(seeds, rng, name, data):
    """A table: its cells, its bytes, its metadata, its compression."""
    choice = rng.random()
    if name.endswith(".csv.gz"):
        if choice < 0.3:
            return damaged_bytes(rng, data)
        inside = gzip.decompress(data)
        if choice < 0.4:
            # Much of nothing: zeros, or one line again and again.
            inside += picked(rng, [b"\0", b"\n", inside[-40:], b","]) * int(
                rng.integers(1, 100_000)
            )
        packed = gzip.compress(damaged_csv(rng, inside), 1)
        if choice < 0.6:
            # The length that gzip states at its end, and its checksum.
            packed = packed[:-8] + struct.pack(
                "<II", int(rng.integers(1 << 32)), int(rng.integers(1 << 32))
            )
        return packed + packed if choice > 0.95 else packed
    if name.endswith(".csv"):
        return damaged_csv(rng, data)
    return damaged_bytes(rng, data) if choice < 0.6 else restated(rng, seeds.path(name))


def damaged_csv(rng, data):
    """A CSV file with other cells, rows or columns, or as bytes."""
    if rng.random() < 0.3:
        return damaged_bytes(rng, data)
    rows = [line.split(b",") for line in data.split(b"\n")]
    for _ in range(int(rng.geometric(0.5))):
        row = rows[0] if rng.random() < 0.2 else picked(rng, rows)
        at = int(rng.integers(len(row)))
        match int(rng.integers(7)):
            case 0 | 1 | 2:
                odd = [b"", b'"', b"\xff\xfe", b"1e309", b"-0", b"NaN"]
                row[at] = written(hostile(rng)) if rng.random() < 0.7 else picked(rng, odd)
            case 3:
                del row[at:]
                row.append(b"")
            case 4:
                row.append(row[at])
            case 5:
                rows.append(list(row))
            case 6:
                row[at] = picked(rng, picked(rng, rows))
    return b"\n".join(b",".join(row) for row in rows)


def restated(rng, path):
    """A Parquet or Arrow table with other metadata."""
    if path.suffix == ".parquet":
        table = pa.parquet.read_table(path)
    else:
        with pa.ipc.open_file(str(path)) as file:
            table = file.read_all()
    metadata = dict(table.schema.metadata)
    metadata[LABEL_KEY] = damaged_json(rng, metadata[LABEL_KEY])
    if rng.random() < 0.5:
        column = int(rng.integers(table.num_columns))
        values = table.column(column)
        changes = [
            lambda: pa.nulls(len(values)),
            lambda: pa.array([[1]] * len(values)),
            lambda: pa.array([{"a": 1}] * len(values)),
            lambda: pa.array(rng.normal(size=len(values)) * 1e300),
            lambda: pa.array([b"\xff"] * len(values)),
            lambda: pa.array(rng.integers(-(2**63), 2**63 - 1, len(values))),
            lambda: values.dictionary_encode(),
            lambda: pa.array([2**64 - 1] * len(values), pa.uint64()),
            lambda: pa.array([float("nan")] * len(values)),
            lambda: pa.array([10**11] * len(values), pa.timestamp("s")),
            lambda: values.slice(0, 0),
        ]
        made = picked(rng, changes)()
        table = (
            table.set_column(column, table.schema.names[column], made)
            if len(made) == len(values)
            else table.slice(0, 0)
        )
    table = table.replace_schema_metadata(metadata)
    sink = pa.BufferOutputStream()
    if path.suffix == ".parquet":
        pa.parquet.write_table(
            table, sink, compression=picked(rng, ["snappy", "gzip", "zstd", "none"])
        )
    else:
        with pa.ipc.new_file(sink, table.schema) as file:
            file.write_table(table)
    out = sink.getvalue().to_pybytes()
    return damaged_bytes(rng, out) if rng.random() < 0.2 else out


def as_foreign(seeds, rng, name, data):
    """A table of another program: nothing, its first bytes, its bytes, what is compressed in it, or another kind's first bytes."""
    choice, suffix = rng.random(), Path(name).suffix
    if choice < 0.05:
        return b""
    if choice < 0.15:
        return picked(rng, HEADS) + damaged_bytes(rng, data)
    if choice < 0.4:
        return damaged_bytes(rng, data[:600]) + data[600:]
    if choice < 0.7 and suffix in (".xlsx", ".ods"):
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            parts = {part: file.read(part) for part in file.namelist()}
        part = picked(rng, sorted(parts))
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
            for one, text in parts.items():
                file.writestr(one, damaged_bytes(rng, text) if one == part else text)
        return out.getvalue()
    if choice < 0.7 and suffix in (".bz2", ".zst"):
        kind = picked(rng, ["bz2", "zstd", "lz4"])
        with pa.input_stream(seeds.path(name), compression="detect") as file:
            inside = damaged_csv(rng, file.read())
        packed = pa.BufferOutputStream()
        with pa.CompressedOutputStream(packed, kind) as file:
            file.write(inside)
        return packed.getvalue().to_pybytes()
    return damaged_bytes(rng, data)


def as_anything(seeds, rng, name, data):
    """Any file, as its own kind damages it, or as bytes of any other."""
    kind = next(kind for kind in KINDS if name in kind.files and kind.name != "inspect")
    if rng.random() < 0.8:
        return kind.damage(seeds, rng, name, data)
    other = seeds.path(
        picked(
            rng,
            ["schema.toml", "count.model", "count.plan.json", "hospital.parquet", "ledger.json"],
        )
    )
    return damaged_bytes(rng, data, [other.read_bytes()])


# Reading and using.


def read_plan(path, name, use):
    """A plan as everybody reads it, and as a party follows it."""
    plan = Plan.load(path)
    sizes = [plan.message_size(party) for party in range(len(plan.local))]
    _ = (
        plan.digest(),
        plan.fingerprint,
        summary(plan).encode(),
        str(plan.label),
        largest_message(plan),
        plan.schema.remarks(),
    )
    if plan.public_keys is not None and use.rng.random() < 0.1:
        seal(b"", "secret", plan.digest(), plan.public_keys, use.seeds.keys["hospital"], None)
    predicted = forecast(plan)
    if use.rng.random() < 0.2:
        _ = plan.ledger().table().encode()
    if use.rng.random() < 0.35:
        follow(plan, sizes, [] if predicted is None else predicted.parties, use)
    return plan


def follow(plan, sizes, predicted, use):
    """Every party, and then the server, do what a plan says."""
    plan = replace(plan, public_keys=None)
    received = []
    rows = 40
    for party, name in enumerate(plan.party_names):
        cost = predicted[party] if predicted else Forecast(1.0, PROCESS_BYTES + 8 * sizes[party])
        # The table is small, and only what does not follow from it is as the plan says.
        if not use.allows(cost.memory - PROCESS_BYTES, cost.work):
            return
        part = plan.schema.encoding(name)
        codes = np.array(
            [use.rng.integers(0, attribute.size, rows) for attribute in part], np.uint16
        )
        impossible = np.zeros(rows, bool)
        for combination in plan.schema.combinations_at(name).values():
            impossible |= np.all(
                [np.isin(codes[place], ruled_out) for place, ruled_out in combination], axis=0
            )
        codes[:, impossible] = codes[:, ~impossible][:, :1]
        digests = np.arange(rows, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        persons = digests if plan.records_per_person > 1 else None
        message = Party(plan, name, use.seeds.secret, options=QUIET).run(
            Table(part, digests, codes, persons)
        )
        received.append(Message.from_bytes(message.to_bytes(plan), plan))
    whole = forecast(plan)
    if (
        plan.encoder != "published"
        and whole is not None
        and use.allows(whole.server.memory - PROCESS_BYTES, whole.server.work)
    ):
        server = Server(plan, replace(QUIET, rows=rows))
        _ = server.run(server.read(received)).table


def read_message(path, name, use):
    """A message as the server reads it, beside the other parties' sound ones."""
    which, party = name.removesuffix(".message").split("-")
    plan = use.seeds.plans[which]
    use.stated = largest_message(plan)
    message = Message.load(path, plan, use.seeds.keys[None])
    if which != "published" and use.rng.random() < 0.7:
        predicted = forecast(plan)
        if predicted is not None:
            use.allows(predicted.server.memory - PROCESS_BYTES, predicted.server.work)
        server = Server(plan, QUIET)
        result = server.run(
            server.read(list({**use.seeds.messages[which], party: message}.values()))
        )
        _ = result.table, result.to_json()
    return message


def read_offer(path, name, use):
    """An offer beside the others'."""
    offers = [Offer.load(path)] + [
        use.seeds.keys[other].offer
        for other in (*NAMES, None)
        if f"{other or 'server'}.offer" != name
    ]
    keys = PublicKeys.of(offers, NAMES)
    seal(b"x", "secret", bytes(32), keys, use.seeds.keys["hospital"], None)
    return keys


def read_key(path, name, use):
    """A private key, as its owner uses it."""
    key = PrivateKey.load(path)
    _ = key.offer, repr(key)
    use.seeds.plans["pairs"].sealing_keys().check(key)
    return key


def read_secret(path, name, use):
    """A secret."""
    secret = Secret.load(path)
    _ = secret.fingerprint
    return secret


def read_envelopes(path, name, use):
    """Envelopes as a party opens its own."""
    content = read_json(path, "file of envelopes", MessageError, MAX_KEY)
    plan = use.seeds.plans[name.split(".")[0]]
    _, secret = open_envelope(
        content, plan.digest(), plan.sealing_keys(), use.seeds.keys["registry"]
    )
    return secret


def read_match_file(path, name, use):
    """What the server says of the ids, as a party reads it."""
    return read_match(use.seeds.plans[name.split(".")[0]], path.read_bytes())


def read_sample(path, name, use):
    """An id sample as another party compares it."""
    content = read_json(path, "id sample", MessageError)
    plan = use.seeds.plans["count"]
    _, theirs = open_sample(content, plan, use.seeds.keys["registry"], str(path))
    return best_match({formats: digests[:50] for formats, digests in theirs.items()}, theirs)


def read_model(path, name, use):
    """A model as people sample it and ask it for marginals."""
    model = Model.load(path)
    _ = model.summary(), repr(model), model.ledger.label
    # Probabilities of all cliques take eight bytes a cell.
    if use.allows(8 * model.field.tree.cells * (1 + len(model.others)), 0.0):
        model.sample(50, seed=1)
        names = model.schema.names
        model.marginal([picked(use.rng, names)])
        first = model.schema.attributes[0]
        needed = (
            decode(np.zeros((1, 1), np.int64), [first], np.random.default_rng(0))
            .column(0)[0]
            .as_py()
        )
        if needed is not None:
            model.sample(10, given={names[0]: needed}, seed=1)
        if use.rng.random() < 0.3:
            model.sample(seed=1)
            model.marginal(list(names[:3]))
            model.to_json()
            if model.noise is not None and not model.others:
                next(model.draws(2, rows=5, seed=1))
    return model


def read_schema_file(path, name, use):
    """A schema as everybody reads it: its digest, its remarks, rows of it encoded and decoded, sometimes a plan."""
    schema = Schema.load(path)
    _ = schema.digest(), schema.to_toml(), schema.remarks(), schema.combinations
    codes = np.array([use.rng.integers(0, attribute.size, 20) for attribute in schema.attributes])
    if len(schema.attributes) < 1000:
        table = decode(codes, schema.attributes, use.rng)
        encode_table(table, None, schema.attributes, keys=IdKeys.drawn())
    if use.rng.random() < 0.05 and len(schema.attributes) < 40 and max(schema.sizes) < 5000:
        use.seconds += 2.0
        # Beyond what schemas say was spent.
        plan = plan_with(
            schema, epsilon=100.0, expected_records=1000, message_bytes=100_000, tau=10_000
        )
        Plan.from_json(json.loads(json.dumps(plan.to_json())))
    return schema


def read_open_schema(path, name, use):
    """A schema with private domains."""
    schema = OpenSchema.load(path)
    _ = [domain.asked for domain in schema.wanted.values()], schema.schema.digest()
    return schema


def read_domains(path, name, use):
    """The record of the domains that were found."""
    part = OpenSchema.load(use.seeds.path("open.toml"))
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(path, Path(folder) / "found.json")
        shutil.copy(use.seeds.path("domains") / "key", folder)
        # Known again by the part's path.
        table = pa.table({name: ["a"] for name in part.wanted})
        search = Searched(part, use.seeds.path("open.toml"), "table", table)
        domains, _ = DomainRecord(folder).once(search, lambda wanted, secret: ())
    return close(part, domains) if set(part.wanted) <= {f.domain.name for f in domains} else domains


def read_release(path, name, use):
    """The record of a release, as a party that runs again finds it."""
    plan = use.seeds.plans["count"]
    table = use.seeds.table("count", "hospital")
    digest = plan.digest()
    release = Release(digest, 0, table_digest(InMemory(table), use.seeds.keys["hospital"], digest))
    path.rename(path.with_name(release.name))
    try:
        return Releases(path.parent).once(release, lambda: b"never")
    finally:
        path.with_name(release.name).unlink(missing_ok=True)


def read_sketch(path, name, use):
    """A sketch beside the sound one, updated."""
    sketch = Sketch.from_bytes(path.read_bytes(), str(path))
    sound = Sketch.from_bytes(use.seeds.path(name).read_bytes())
    _ = repr(sketch), sketch.jaccard(sound), sketch.intersection(sound), sketch.union(sound)
    return sketch.merge(sound).update([1], bytes(32))


def read_ledger(path, name, use):
    """A ledger."""
    return Ledger.from_json(read_json(path, "ledger", MessageError)).table()


def read_anything(path, name, use):
    """Any file as ``inspect`` shows it, with a key and a plan or without."""
    key = plan = None
    if use.rng.random() < 0.5:
        key, plan = (
            use.seeds.keys[picked(use.rng, [None, "hospital"])],
            use.seeds.plans[picked(use.rng, PLANS)],
        )
    text = describe(path, key, plan)
    text.encode()
    return text


def read_label_file(path, name, use):
    """What a table states of itself."""
    table = Path(str(path).removesuffix(LABEL_FILE))
    table.write_bytes(use.seeds.path(name.removesuffix(LABEL_FILE)).read_bytes())
    try:
        return str(read_label(table)) + describe(table)
    finally:
        table.unlink()


def read_table(path, name, use):
    """A party's table, and what a table states of itself."""
    party = name.split(".")[0]
    str(read_label(path)).encode()
    part = use.seeds.plans["count"].schema.encoding(party)
    # A column takes kilobytes however few its cells.
    use.stated = 200 * inflated(path)
    read, source = ReadOptions(person="person"), path
    if name in DATABASES:
        read = replace(read, query="SELECT * FROM people")
        source = f"{path.suffix[1:]}:{path}"
    if use.rng.random() < 0.3:
        for piece in open_pieces(source, read).read():
            _ = piece.num_rows
    # What a file lacks, such as truth values in SPSS, its schema need not have.
    part = [one for one in part if name not in STATISTICS or one.name != "smoker"]
    return encode_table(source, "id", part, read=read, keys=IdKeys.drawn())


def inflated(path):
    """Bytes of a file, those of a compressed file once it is inflated, as far as it can be."""
    size = 0
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as file:
                return sum(one.file_size for one in file.infolist())
        if path.suffix in (".gz", ".bz2", ".zst"):
            with unpacked(path) as file:
                while piece := file.read(1 << 20):
                    size += len(piece)
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile):
        pass
    return max(size, path.stat().st_size)


SEALED = tuple(f"{plan}-{party}.message" for plan in PLANS for party in NAMES)
PLAN_FILES = tuple(f"{plan}.plan.json" for plan in PLANS)
TABLES = tuple(
    f"{party}{suffix}"
    for party in ("hospital", "insurer")
    for suffix in (".csv", ".csv.gz", ".parquet", ".arrow")
)
TEXTS = tuple(f"hospital.{kind}" for kind in ("jsonl", "csv.bz2", "csv.zst", "jsonl.zst"))
FOREIGN = ("hospital.orc", "hospital.feather", *TEXTS)
SPREADSHEETS = ("hospital.xlsx", "hospital.ods") if HAS["python_calamine"] else ()
DATABASES = ("hospital.sqlite", *(("hospital.duckdb",) if HAS["duckdb"] else ()))
STATISTICS = (
    tuple(f"hospital.{kind}" for kind in ("sav", "zsav", "dta", "xpt")) if HAS["pyreadstat"] else ()
)
# First bytes of kinds of which no sound file is here, or which are refused.
HEADS = (
    bytes(12) + b"\xc2\xea\x81\x60\xb3\x14\x11\xcf\xbd\x92\x08\0",
    bytes(200) + b"ASCII SPSS PORT FILE",
    b"PK\3\4",
    b"SQLite format 3\0",
    bytes(8) + b"DUCK",
    b"BZh91AY&SY",
    b"\x28\xb5\x2f\xfd",
)
KINDS = (
    Kind("plan", 0.16, PLAN_FILES, as_json(*PLAN_FILES), read_plan),
    Kind("message", 0.27, SEALED, as_sealed, read_message),
    Kind(
        "offer",
        0.03,
        tuple(f"{party}.offer" for party in (*NAMES, "server")),
        as_json("hospital.key"),
        read_offer,
    ),
    Kind(
        "key",
        0.03,
        tuple(f"{party}.key" for party in (*NAMES, "server")),
        as_json("hospital.offer"),
        read_key,
    ),
    Kind("secret", 0.02, ("parties.secret",), as_json("hospital.key"), read_secret),
    Kind(
        "envelopes",
        0.04,
        tuple(f"{plan}.envelopes.json" for plan in ("count", "pairs")),
        as_envelopes,
        read_envelopes,
    ),
    Kind("match", 0.01, ("count.match",), as_json("hospital.offer"), read_match_file),
    Kind("id sample", 0.02, ("ids.sample.json",), as_envelopes, read_sample),
    Kind(
        "model",
        0.08,
        tuple(f"{plan}.model" for plan in ("count", "persons", "outer", "classes", "beyond")),
        as_container,
        read_model,
    ),
    Kind("schema", 0.07, ("schema.toml",), as_toml, read_schema_file),
    Kind(
        "schema json",
        0.07,
        ("schema.json", "found.json", "domain.json"),
        as_json("schema.json"),
        read_schema_file,
    ),
    Kind("open schema", 0.05, ("open.toml",), as_toml, read_open_schema),
    Kind("domain record", 0.03, ("domains.json",), as_json("open.json"), read_domains),
    Kind("release record", 0.03, (RELEASE,), as_release, read_release),
    Kind("sketch", 0.02, ("ids.sketch",), as_container, read_sketch),
    Kind("ledger", 0.02, ("ledger.json",), as_json("persons.plan.json"), read_ledger),
    Kind("label", 0.02, (f"hospital.csv{LABEL_FILE}",), as_json(), read_label_file),
    Kind("table", 0.07, TABLES, as_table, read_table),
    Kind("foreign table", 0.03, FOREIGN, as_foreign, read_table),
    Kind("database", 0.02, DATABASES, as_foreign, read_table),
    *([Kind("spreadsheet", 0.02, SPREADSHEETS, as_foreign, read_table)] * bool(SPREADSHEETS)),
    *([Kind("statistics", 0.01, STATISTICS, as_foreign, read_table)] * bool(STATISTICS)),
    Kind("report", 0.01, ("report.json",), as_json("ledger.json"), read_anything),
    Kind(
        "inspect",
        0.03,
        (
            *PLAN_FILES,
            "count.model",
            "count-hospital.message",
            "hospital.offer",
            "hospital.key",
            "ledger.json",
            "ids.sketch",
            "parties.secret",
            "report.json",
            "schema.toml",
            "schema.json",
            "count.envelopes.json",
            "hospital.parquet",
            "hospital.csv",
            RELEASE,
        ),
        as_anything,
        read_anything,
    ),
)

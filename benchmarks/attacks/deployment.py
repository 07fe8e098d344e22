"""Three parties and a server as an attacker finds them: everyone's keys, one plan, and all files of a run."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from vertimrf import Attribute, Message, Party, Plan, PlanOptions, Schema, Secret, make_plan
from vertimrf.keys import KeyRing
from vertimrf.party.secret import derive, seal_secret
from vertimrf.releases.count_sketches.encoding import CountSketchEncoder
from vertimrf.tables.table import Table

NAMES = ("hospital", "insurer", "registry")


@dataclass(frozen=True, eq=False)
class Deployment:
    """All that was made in a run, private and public.

    Attributes:
        ring: everyone's private keys.
        plan: of scheduled pairs.
        secret: the parties'.
        envelopes: it, sealed by the first party for the others.
        messages: what each party releases, before it is sealed.
        sealed_messages: the files.
    """

    ring: KeyRing
    plan: Plan
    secret: Secret
    envelopes: dict
    messages: dict[str, Message]
    sealed_messages: dict[str, bytes]


def schema():
    """Two attributes at each of three parties."""
    parties = {
        "hospital": [Attribute.integer("diagnosis", 6), Attribute.integer("smoker", 2)],
        "insurer": [Attribute.integer("tariff", 4), Attribute.integer("claims", 3)],
        "registry": [Attribute.integer("region", 5), Attribute.integer("children", 3)],
    }
    return Schema.of(parties)


def tables_for(plan, rows, seed):
    """Every party's part of one made-up population, whose attributes depend on each other."""
    rng = np.random.default_rng(seed)
    hidden = rng.random(rows)
    digests = rng.permutation(
        np.arange(1, rows + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    )
    codes = np.array(
        [
            np.minimum((0.5 * hidden + 0.5 * rng.random(rows)) * size, size - 1)
            for size in plan.schema.sizes
        ],
        np.uint16,
    )
    return [
        Table(
            plan.schema.part(name),
            digests,
            np.ascontiguousarray(codes[list(plan.schema.party_attributes(name))]),
        )
        for name in plan.party_names
    ]


def plan_for(
    ring,
    rows,
    keys,
    nonce="attacked",
    encoder="count-sketch",
):
    """A plan for those parties."""
    public = None if ring is None else ring.public
    return make_plan(
        schema(),
        epsilon=1.0,
        planning=PlanOptions(expected_records=rows, keys=keys, encoder=encoder),
        nonce=nonce,
        public_keys=public,
    )


def deploy(rows=500, keys=1 << 21, seed=0):
    """Run up to where the server has all messages. So many keys give messages of a few chunks each."""
    ring = KeyRing.new(NAMES)
    plan = plan_for(ring, rows, keys, encoder="scheduled-pairs")
    secret = Secret.new()
    parties = {name: Party(plan, name, secret) for name in NAMES}
    tables = dict(zip(NAMES, tables_for(plan, rows, seed), strict=True))
    messages = {name: parties[name].run(tables[name]) for name in NAMES}
    return Deployment(
        ring=ring,
        plan=plan,
        secret=secret,
        envelopes=seal_secret(secret, plan.digest(), plan.sealing_keys(), ring.parties[NAMES[0]]),
        messages=messages,
        sealed_messages={name: messages[name].seal(plan, ring.parties[name]) for name in NAMES},
    )


def dealt(
    data,
    first,
    rows=(slice(None), slice(None)),
    seed=0,
):
    """A schema of two parties, and their tables of a data set's people.

    Args:
        data: the data set.
        first: how many attributes "one" has; "two" has the others.
        rows: records of either party; by default all.
        seed: of the ids.
    """
    named = [
        Attribute.integer(name, size) for name, size in zip(data.names, data.sizes, strict=True)
    ]
    schema = Schema.of({"one": named[:first], "two": named[first:]})
    digests = np.random.default_rng(seed).integers(0, 1 << 64, data.records, np.uint64)
    columns = data.codes[:first], data.codes[first:]
    return schema, [
        Table(schema.part(name), digests[some], np.ascontiguousarray(codes[:, some]))
        for name, codes, some in zip(schema.party_names, columns, rows, strict=True)
    ]


def signs_of(plan, secret, digests):
    """What each record adds to every number of a value that it has, as all parties know [shape=(records, numbers)]."""
    sketch, wanted = plan.sketch, len(digests)
    # Every record is a value of its own, and there is no noise: the counters are the records' signs.
    alone = replace(sketch, sizes=(wanted,), contrasts=(), weights=())
    encoder = CountSketchEncoder(alone, (0,), derive(secret, plan.digest(), purpose="sketches"))
    encoder.update(digests, np.arange(wanted, dtype=np.uint16)[None])
    counters = np.frombuffer(encoder.state(), "<i4")[-wanted * sketch.numbers :]
    by_record = np.moveaxis(counters.reshape(sketch.repetitions, wanted, sketch.buckets), 1, 0)
    return by_record.reshape(wanted, -1).astype(np.float32)


def with_ring(plan, ring):
    """The same plan with other keys in it."""
    return replace(plan, public_keys=ring.public)

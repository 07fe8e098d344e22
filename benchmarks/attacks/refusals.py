"""Refusals: whoever wrote the schema learns of one record from whether a message goes out at all.

The attacker knows how the row of his victim looks, or planted a second row under her id, and has the schema rule that row out: by
a value that is not listed, or a combination that is called impossible. He needs no message: that there is one, or none, is his
answer. Here he plays against a party that refuses such a table, as parties once did, and against one that leaves the row out.
"""

import tempfile
from pathlib import Path

import numpy as np

from vertimrf import (
    Attribute,
    Impossible,
    Party,
    PlanOptions,
    Schema,
    Secret,
    VertiMRFError,
    make_plan,
)
from vertimrf.keys import KeyRing

from ..verdict import Verdict, at_most
from .many_places import machine

RECORDS = 500
# The victim's row in the hospital's table, and by what the attacker would know it.
VICTIMS = {
    "a rare value, left out of the schema": "victim,1,rare,40",
    "an age, left out of the bounds": "victim,1,flu,97",
    "a missing value, where none is allowed": "victim,,flu,40",
    "a combination, called impossible": "victim,1,measles,40",
    "a second row, planted under her id": "victim,1,flu,40\nvictim,0,flu,40",
    "a row of too many cells": "victim,1,flu,40,",
    "letters of another encoding": "victim,1,gr\xfcn,40",
}


def plan_of(ring):
    """What the attacker proposed, and all parties accepted."""
    hospital = [
        Attribute.integer("smoker", 2),
        Attribute.categorical("diagnosis", ["flu", "measles"]),
        Attribute.numeric("age", [0, 30, 60, 90]),
    ]
    schema = Schema.of(
        {"hospital": hospital, "insurer": [Attribute.integer("tariff", 3)]},
        impossible=[Impossible.of(smoker=1, diagnosis="measles")],
    )
    return make_plan(
        schema,
        epsilon=1.0,
        planning=PlanOptions(expected_records=RECORDS, message_bytes=50_000),
        public_keys=ring.public,
    )


def table_of(folder, name, more):
    """The hospital's table with some more lines, as a CSV file."""
    rng = np.random.default_rng(0)
    smoker, ill, age = (
        rng.integers(0, 2, RECORDS),
        rng.integers(0, 2, RECORDS),
        rng.integers(0, 90, RECORDS),
    )
    people = enumerate(zip(smoker, ill, age, strict=True))
    lines = [f"p{i},{s},{'measles' if m and not s else 'flu'},{a}" for i, (s, m, a) in people]
    path = folder / name
    path.write_text(
        "\n".join(["id,smoker,diagnosis,age", *lines, *([more] if more else [])]) + "\n",
        encoding="latin-1",
    )
    return path


def released(plan, ring, table, refusing):
    """Whether a message goes out: all that the attacker looks at."""
    party = Party(plan, "hospital", Secret.new(), key=ring.parties["hospital"])
    try:
        # Every table is a party's of its own, which has released nothing before.
        with machine(table.with_suffix(".state")):
            read = party.encode(table, "id")
            if refusing:
                read.dropped.refuse()
            return bool(party.release(read))
    except VertiMRFError:
        return False


def rows():
    """How many victims are told from nobody, of all kinds."""
    ring = KeyRing.new(("hospital", "insurer"))
    plan = plan_of(ring)
    for refusing in (True, False):
        revealed = 0
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for number, row in enumerate(VICTIMS.values()):
                there, absent = (
                    released(plan, ring, table_of(folder, f"{number}{who}.csv", record), refusing)
                    for who, record in (("with", row), ("without", ""))
                )
                revealed += there != absent
        if refusing:
            what = f"refusals: of {len(VICTIMS)} victims told from nobody by a party that refuses"
            yield Verdict(what, revealed, f"{len(VICTIMS)}: it works", revealed == len(VICTIMS))
        else:
            yield at_most(
                f"refusals: of {len(VICTIMS)} victims told from nobody by whether a message goes out",
                revealed,
                0,
            )

"""Samples of ids: the same people at every party, and nobody to a reader without the secret."""

import json

import numpy as np
import pyarrow as pa
import pytest
from builders import schema_of
from planning import plan_with

from vertimrf.keys import KeyRing
from vertimrf.party import alignment
from vertimrf.party.alignment import best_match, open_sample, sample_ids, seal_sample
from vertimrf.party.secret import Secret

RING = KeyRing.new(("hospital", "insurer"))
SECRET = Secret(bytes(range(32)))
SCHEMA = schema_of(hospital=(2,), insurer=(2,))
PLAN = plan_with(SCHEMA, expected_records=500, nonce="ids", public_keys=RING.public)
IDS = [f"P{i}" for i in range(500)]


def sample(ids, pieces=1, secret=SECRET):
    tables = [
        pa.table({"id": pa.array(part.tolist(), pa.string())})
        for part in np.array_split(np.array(ids, object), pieces)
    ]
    return sample_ids(tables, secret, PLAN, "The table")


@pytest.mark.parametrize("pieces", [1, 3, 50])
def test_every_party_takes_the_same_people_whatever_the_order_of_its_table(pieces, monkeypatch):
    """A party that chose by position could choose whose ids it compares."""
    monkeypatch.setattr(alignment, "SAMPLED", 40)
    mine = sample(IDS)
    theirs = sample(list(np.random.default_rng(0).permutation(IDS)), pieces)
    assert all(len(digests) == 40 for digests in mine.values())
    assert mine.keys() == theirs.keys()
    for formats, digests in mine.items():
        np.testing.assert_array_equal(digests, theirs[formats])
    # Of a party with half of the people, those of the sample that it has come first.
    half = {bytes(digest) for digest in sample(IDS[::2])[()]}
    assert 10 < len(half & {bytes(digest) for digest in mine[()]}) < 30


def test_who_opens_a_sample_without_the_secret_finds_nobody_in_it():
    """A thief of the receiver's private key has a dictionary of all ids. Sealing aside, digests are keyed."""
    sent = json.loads(json.dumps(seal_sample(sample(IDS), PLAN, RING.parties["hospital"])))
    sender, theirs = open_sample(sent, PLAN, RING.parties["insurer"], "the file")
    assert sender == "hospital"
    assert best_match(sample(IDS), theirs).matching == 500
    for guess in (Secret(bytes(32)), Secret.new()):
        assert best_match(sample(IDS, secret=guess), theirs).matching == 0

"""The length of a file tells nothing of the table that the noise does not cover.

Messages are the same to the byte where the noisy answers are (`test_leaks.py`). Here are the other files that a party gives away:
samples of ids, and parts of a schema with domains that were found, each made from a table, from one with a record more, and from
one with another value. docs/formats.md says of each file what its length depends on.
"""

import itertools
import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from builders import Tape, schema_of
from planning import plan_with

from vertimrf import OpenSchema, Secret
from vertimrf.errors import MessageError
from vertimrf.keys import KeyRing
from vertimrf.party import alignment
from vertimrf.party.alignment import (
    COMBINATIONS,
    SAMPLED,
    best_match,
    open_sample,
    sample_ids,
    seal_sample,
)
from vertimrf.party.private_domains import close, find_domains

SECRET = Secret(bytes(range(32)))
RECORDS = 2500

# Samples of ids.


@pytest.fixture(scope="module")
def ring():
    return KeyRing.new(("hospital", "insurer", "registry"))


@pytest.fixture(scope="module")
def plan(ring):
    schema = schema_of(hospital=(2,), insurer=(2,), registry=(2,))
    return plan_with(schema, expected_records=5000, nonce="ids", keys=64, public_keys=ring.public)


SAMPLES = {}


def sample(plan, ids):
    """The sample of these ids, of which each is made once."""
    asked = plan.digest(), tuple(ids)
    if asked not in SAMPLES:
        table = pa.table({"id": pa.array(ids, pa.string())})
        SAMPLES[asked] = sample_ids([table], SECRET, plan, "The table")
    return SAMPLES[asked]


def written(count):
    """Ids of which some become others, or the same as others, when blanks go or letters are made small."""
    return [f"P{i}" if i % 3 else f" p{i - 1 if i % 2 else i} " for i in range(count)]


@pytest.mark.parametrize("count", [0, 1, 50, 5000, SAMPLED - 1, SAMPLED, SAMPLED + 1])
def test_samples_of_ids_are_all_of_one_length(plan, ring, count):
    one, other = (
        json.dumps(seal_sample(sample(plan, written(n)), plan, ring.parties["hospital"]))
        for n in (777, count)
    )
    assert len(one) == len(other)


def test_records_without_an_id_are_left_out_of_samples(plan):
    """A refusal would tell the other parties that there is one."""
    ids = written(200)
    without, among = sample(plan, ids), sample(plan, [None, *ids, ""])
    assert all((without[formats] == among[formats]).all() for formats in COMBINATIONS)


def lists_of(plan, ring, ids, reader="insurer"):
    sealed = seal_sample(sample(plan, ids), plan, ring.parties["hospital"])
    return open_sample(sealed, plan, ring.parties[reader], "sample")[1]


def test_a_person_and_an_id_are_compared_together(ring):
    """Visits 1, 2 and 3 of everybody are as many ids as there are visits, and match where both parts do, in one format."""
    schema = schema_of(hospital=(2,), insurer=(2,), registry=(2,))
    plan = plan_with(schema, expected_records=5000, nonce="ids", records_per_person=3)

    def taken(ids, persons):
        table = pa.table({"id": pa.array(ids), "who": pa.array(persons)})
        return sample_ids([table[:50], table[50:]], SECRET, plan, "The table")

    ids, persons = ["1", "2", "3"] * 40, [f"p{i // 3}" for i in range(120)]
    mine = taken(ids, persons)
    entries = {
        formats: np.array([list(alignment._entry(bytes(digest), i)) for digest in theirs], np.uint8)
        for i, (formats, theirs) in enumerate(
            taken([*ids[:60], *"999"], [f" {p}" for p in persons[:63]]).items()
        )
    }
    match = best_match(mine, entries)
    assert (match.mine, match.plain, match.matching) == (120, 0, 60)
    assert match.their_format == ("strip",)
    # Rows without a person are left out, as of a release.
    assert len(taken(ids, [None] * 60 + persons[60:])[()]) == 60


def test_nobody_can_be_followed_from_list_to_list(plan, ring):
    """Ids of digits are written alike in all ways. Padding is nowhere twice, so people must not be either."""
    lists = [
        set(map(bytes, digests))
        for digests in lists_of(plan, ring, [str(i) for i in range(500)]).values()
    ]
    assert all(len(entries) == SAMPLED for entries in lists)
    assert not any(one & other for one, other in itertools.combinations(lists, 2))


def test_padding_is_the_same_in_every_sample_and_for_every_reader(plan, ring):
    """Whoever compares two samples, or what two parties got, sees no more than who joined or left."""
    ids = written(500)
    first = lists_of(plan, ring, ids)
    for again in (lists_of(plan, ring, ids), lists_of(plan, ring, ids, "registry")):
        assert all((first[formats] == again[formats]).all() for formats in COMBINATIONS)
    joined = lists_of(plan, ring, [*ids, "new"])
    assert all(
        len(set(map(bytes, first[f])) - set(map(bytes, joined[f]))) == 1 for f in COMBINATIONS
    )
    # And under another plan, or of another party, another one.
    other = replace(plan, nonce="other ids")
    elsewhere = seal_sample(sample(plan, []), other, ring.parties["hospital"])
    theirs = seal_sample(sample(plan, []), plan, ring.parties["registry"])
    nobody = set(map(bytes, lists_of(plan, ring, [])[()]))
    assert not nobody & set(
        map(bytes, open_sample(elsewhere, other, ring.parties["insurer"], "sample")[1][()])
    )
    assert not nobody & set(
        map(bytes, open_sample(theirs, plan, ring.parties["insurer"], "sample")[1][()])
    )


def test_a_reader_finds_its_own_people_and_counts_nobody_else(plan, ring):
    theirs = lists_of(plan, ring, [f"p{i}" for i in range(3000)])
    mine = sample(plan, [f" P{i}" for i in range(2900, 3100)])
    match = best_match(mine, theirs)
    assert (match.mine, match.plain, match.matching) == (200, 0, 100)
    assert set(match.my_format) == {"strip", "lower"}
    assert match.their_format == ()
    assert not hasattr(match, "theirs")


def test_a_sample_of_any_other_length_is_refused(plan, ring, monkeypatch):
    monkeypatch.setattr(alignment, "SAMPLED", 100)
    sealed = seal_sample(sample(plan, written(50)), plan, ring.parties["hospital"])
    monkeypatch.setattr(alignment, "SAMPLED", SAMPLED)
    with pytest.raises(MessageError, match="malformed"):
        open_sample(sealed, plan, ring.parties["insurer"], "sample")


# Parts of a schema, with domains that were found.


OPEN = """
[[party]]
name = "hospital"
[[party.attribute]]
name = "ward"
values = "private"
[[party.attribute]]
name = "stay"
bins = "private"
integral = true
"""


def test_a_schema_part_with_found_domains_is_as_long_for_other_tables(tmp_path):
    (tmp_path / "open.toml").write_text(OPEN)
    schema = OpenSchema.load(tmp_path / "open.toml")
    rng = np.random.default_rng(0)
    wards = rng.choice(["east", "north", "south"], RECORDS).tolist()
    stays = rng.integers(0, 900, RECORDS).tolist()

    def part(wards, stays, played=None):
        noise = Tape(played)
        table = pa.table({"ward": wards, "stay": stays})
        wanted = list(schema.wanted.values())
        domains = find_domains(
            wanted, lambda name: table.select([name]), 1.0, 1e-6, lambda _: "hospital", noise=noise
        )
        return len(close(schema, domains).to_toml()), noise

    length, answers = part(wards, stays)
    tables = {
        "a record more": ([*wards, "east"], [*stays, 17]),
        # Of a value that nobody else has, and a number with more digits than any other.
        "a record more, of a new value": ([*wards, "west"], [*stays, 12345]),
        "another value": (
            ["south" if wards[0] == "east" else "east", *wards[1:]],
            [stays[0] + 1, *stays[1:]],
        ),
    }
    for what, (other_wards, other_stays) in tables.items():
        assert part(other_wards, other_stays, answers)[0] == length, what

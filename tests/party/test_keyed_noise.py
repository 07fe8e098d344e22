"""A party's noise follows from its private key, the plan and its whole table.

Equal inputs give equal bytes, from whatever copy; inputs that differ anywhere give noise that is independent everywhere.
"""

from dataclasses import replace

import numpy as np
import pytest
from builders import dealt, records_of, schema_of
from oracles import crossed
from planning import plan_with

from vertimrf import Message, Party, Plan, PrivateKey, RunOptions, Secret
from vertimrf.errors import PlanError, PrivacyError
from vertimrf.files.state import STATE
from vertimrf.keys import KeyRing
from vertimrf.party import party as party_module
from vertimrf.party.records import InMemory
from vertimrf.party.secret import derive

ROWS = 3000
SECRET = Secret(bytes(range(32)))
RING = KeyRing.new(("one", "two"))
SCHEMA = schema_of(one={"a": 6, "b": 5, "common": 4}, two={"c": 3, "common": 4})
# For encoders that do not take shared columns.
APART = schema_of(one={"a": 6, "b": 5}, two={"c": 3})
CASES = {
    "count sketches": {"encoder": "count-sketch", "message_bytes": 100_000},
    "scheduled pairs": {"encoder": "scheduled-pairs", "keys": 1 << 10},
    "as published": {"encoder": "published", "claim_as_published": True, "keys": 1 << 10},
    "responses": {"encoder": "grr"},
}


def plan_of(case, ring=RING):
    schema = SCHEMA if case == "count sketches" else APART
    settings = {"epsilon": 2.0, "expected_records": ROWS, "nonce": "noise"} | CASES[case]
    return plan_with(schema, public_keys=ring.public, **settings)


def table_of(plan):
    rng = np.random.default_rng(0)
    return dealt(
        plan.schema, np.array([rng.integers(0, size, ROWS) for size in plan.schema.sizes])
    )[0]


def changed(table, attribute=-1, records=(1234,)):
    """The same table but for one value, or that of several records."""
    codes = table.codes.copy()
    codes[attribute, records] = (codes[attribute, records] + 1) % table.attributes[attribute].size
    return replace(table, codes=codes)


def party(plan, key=None, secret=SECRET, **options):
    return Party(
        plan,
        "one",
        secret,
        key=RING.parties["one"] if key is None else key,
        options=RunOptions(**options),
    )


def noise_of(message, table):
    """What was added to the counts of single attributes, of the message's record count and of its larger marginals."""
    out = {(): np.array([message.count - table.records])}
    for m in message.marginals:
        if len(m.attributes) <= 2 and not m.contrasts and not m.bins:
            places = [
                [a.name for a in table.attributes].index(SCHEMA.names[attribute])
                for attribute in m.attributes
            ]
            sizes = [table.attributes[place].size for place in places]
            exact = crossed(table.codes[places], sizes)
            out[m.attributes] = (m.counts - m.units * exact).ravel()
    return out


@pytest.fixture(scope="module", params=CASES)
def plan(request):
    return plan_of(request.param)


@pytest.fixture(scope="module")
def counting():
    return plan_of("count sketches")


def test_the_same_table_gives_the_same_sealed_bytes_on_any_machine(plan, tmp_path, monkeypatch):
    """Another machine, another order of the rows, other numbers of threads: no record of the first is there."""
    table = table_of(plan)
    shuffled = records_of(table, np.random.default_rng(1).permutation(ROWS))
    sent = set()
    for i, (ordered, threads) in enumerate(
        ((table, None), (table, 1), (shuffled, 2), (shuffled, 3))
    ):
        monkeypatch.setenv(STATE, str(tmp_path / str(i)))
        sent.add(party(plan, num_threads=threads).release(ordered))
    assert len(sent) == 1
    assert Message.unseal(sent.pop(), plan, RING.server).private


def test_one_value_that_differs_changes_the_noise_of_every_count_and_sketch(counting):
    """Also of the attributes that are the same in both tables: nobody sees that they are."""
    table = table_of(counting)
    other = changed(table)
    one, two = (party(counting).run(theirs) for theirs in (table, other))
    mine, theirs = noise_of(one, table), noise_of(two, other)
    assert {(), (0,), (1,)} <= mine.keys() & theirs.keys()
    # Each equal number has a chance of about 1 in 4 sigma; of 20 or so, with sigma 3 and more, six are seldom equal.
    equal = [(mine[a] == theirs[a]).sum() for a in mine.keys() & theirs.keys()]
    assert sum(equal) <= 6 < sum(mine[a].size for a in mine.keys() & theirs.keys())
    assert not np.array_equal(mine[(0,)], theirs[(0,)])
    # Codes of both are of the same counters but one: with the same noise nearly all would be the same.
    for left, right in zip(one.sketches, two.sketches, strict=True):
        agree = (left == right).mean()
        assert agree < 0.6


@pytest.mark.parametrize("what", ["id", "plan", "private key"])
def test_the_same_holds_for_an_id_a_plan_or_a_private_key_that_differs(counting, what, monkeypatch):
    """Of the private key under one plan digest and one secret: noise is not of what other parties know."""
    plan, table, key = counting, table_of(counting), RING.parties["one"]
    mine = noise_of(party(plan, key).run(table), table)
    if what == "id":
        digests = table.digests.copy()
        digests[77] ^= np.uint64(1)
        table = replace(table, digests=digests)
    elif what == "plan":
        plan = replace(plan, nonce="later")
    else:
        ring, digest = KeyRing.new(("one", "two")), plan.digest()
        plan, key = plan_of("count sketches", ring), ring.parties["one"]
        monkeypatch.setattr(Plan, "digest", lambda self: digest)
    theirs = noise_of(party(plan, key).run(table), table)
    assert not np.array_equal(mine[(0,)], theirs[(0,)])
    assert not np.array_equal(mine[(1,)], theirs[(1,)])


def test_the_noise_of_sketches_is_bound_to_their_exact_numbers(plan, monkeypatch):
    """As if a version of a library had counted otherwise: the same table, by its digest, has other numbers in its sketches."""
    if plan.sketch.encoder == "grr":
        pytest.skip("responses have no numbers before noise but the values themselves")
    table = table_of(plan)
    seen = []

    class Watched(party_module.KeyedNoise):
        def stream(self, exact):
            take = super().stream(exact)
            seen.append(take(16))
            return take

    monkeypatch.setattr(party_module, "KeyedNoise", Watched)
    monkeypatch.setattr(InMemory, "keyed_sum", lambda self, key: 5)
    party(plan).run(table)
    first, seen = seen, []
    encoded, wrong = InMemory.encoded, set()

    def otherwise(self, make, composites, *others, **named):
        if named.keys() >= wrong:
            other = changed(self.table, composites[0].places[0], range(0, ROWS, 2))
            self = InMemory(other)
        return encoded(self, make, composites, *others, **named)

    monkeypatch.setattr(InMemory, "encoded", otherwise)

    party(plan).run(table)
    assert len(first) == len(seen) > 0
    assert not set(first) & set(seen)
    if plan.agreement:
        # Sketches of agreement, which come last, are the only wrong ones.
        wrong.add("words")
        seen = []
        party(plan).run(table)
        assert seen[:-1] == first[:-1]
        assert seen[-1] != first[-1]


def test_another_secret_gives_the_same_counts_and_other_sketches(counting):
    """Counts with fresh noise would tell more; sketches have other hashes, and other noise for what they count."""
    table, other = table_of(counting), Secret(derive(SECRET, bytes(32), purpose="another"))
    one, two = (party(counting, secret=secret).run(table) for secret in (SECRET, other))
    for mine, theirs in zip(one.marginals, two.marginals, strict=True):
        np.testing.assert_array_equal(mine.counts, theirs.counts)
    assert all(
        (mine == theirs).mean() < 0.6
        for mine, theirs in zip(one.sketches, two.sketches, strict=True)
    )


def test_parties_that_draw_another_secret_do_not_release_for_one_plan_again(tmp_path, monkeypatch):
    """Two releases of one table under different hashes, with one noise in their counts, are more than the ledger has."""
    monkeypatch.setenv(STATE, str(tmp_path))
    plan = plan_of("scheduled pairs")
    table = table_of(plan)
    released = party(plan).release(table)
    with pytest.raises(PrivacyError, match="from another table or under another secret"):
        party(plan, secret=Secret(bytes(32))).release(table)
    assert party(plan).release(table) == released


def test_without_a_private_key_noise_is_the_systems_and_nothing_is_released(counting):
    table, alone = table_of(counting), Party(counting, "one", SECRET)
    assert not np.array_equal(*(noise_of(alone.run(table), table)[(0,)] for _ in range(2)))
    with pytest.raises(PlanError, match="needs the private key of 'one'"):
        alone.release(table)


def test_a_key_that_is_not_this_partys_is_refused(counting):
    for key, sentence in (
        (RING.parties["two"], "The key is that of 'two', not of 'one'"),
        (PrivateKey.new("one"), "another key for 'one'"),
        (RING.server, "The key is that of the server"),
    ):
        with pytest.raises(PlanError, match=sentence):
            Party(counting, "one", SECRET, key=key)

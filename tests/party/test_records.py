"""What a party asks of its records has one answer, in whatever pieces it is worked out."""

import functools

import numpy as np
import pytest
from builders import dealt, schema_of
from planning import plan_with

from vertimrf import Party, Secret
from vertimrf.party.records import Composite, InMemory, take_in
from vertimrf.privacy.noise import FixedNoise
from vertimrf.progress import Silent
from vertimrf.releases.count_sketches.encoding import CountSketchEncoder
from vertimrf.releases.count_sketches.parameters import CountSketches

SCHEMA = schema_of(one=(4, 3, 300), two=(2, 5))
SECRET = Secret(bytes(range(32)))


def tables(records=3000):
    rng = np.random.default_rng(2)
    return dealt(SCHEMA, np.array([rng.integers(0, size, records) for size in SCHEMA.sizes]))


@pytest.mark.parametrize("encoder", ["count-sketch", "scheduled-pairs", "grr"])
def test_messages_do_not_depend_on_the_pieces(encoder, monkeypatch):
    plan = plan_with(SCHEMA, expected_records=3000, encoder=encoder, message_bytes=100_000)

    def message():
        sources = zip(plan.party_names, tables(), strict=True)
        return [Party(plan, name, SECRET, FixedNoise(5)).run(table) for name, table in sources]

    whole = [one.to_bytes(plan) for one in message()]
    monkeypatch.setattr("vertimrf.party.records.CELLS_AT_ONCE", 1000)
    assert [one.to_bytes(plan) for one in message()] == whole


def test_an_attribute_is_sketched_by_its_bins():
    codes = np.array([[0, 3, 2], [1, 0, 2]], np.uint16)
    out = np.empty(3, np.uint16)
    Composite((1,), (np.array([3, 1, 1]),)).values(codes, out)
    assert out.tolist() == [1, 3, 1]


def test_parities_tell_an_odd_number_of_second_bins_from_an_even_one():
    codes = np.array([[0, 1, 0, 1], [0, 1, 2, 2], [1, 1, 0, 1]], np.uint16)
    out = np.empty(4, np.uint16)
    maps = (np.arange(2), np.array([0, 0, 1]), np.arange(2))
    Composite((0, 1, 2), maps).values(codes, out)
    assert out.tolist() == [1, 0, 1, 1]


def test_progress_goes_through_all_pieces_once(monkeypatch):
    monkeypatch.setattr("vertimrf.party.records.CELLS_AT_ONCE", 700)
    steps = []

    class Told(Silent):
        def advance(self, done, of):
            steps.append(done / of)

    (one, _) = tables(1000)
    plan = CountSketches(repetitions=40, buckets=64, variance=20.0, bits=4, sizes=(4, 2))
    take_in(
        CountSketchEncoder(plan, (0,), bytes(32)),
        one.digests,
        one.codes,
        [Composite((0,), (np.arange(4),))],
        Told(),
    )
    assert steps == sorted(steps)
    assert steps[-1] == 1


def test_words_tell_records_apart_by_their_values_too():
    (one, _) = tables(500)
    plan = CountSketches(repetitions=40, buckets=64, variance=20.0, bits=4, sizes=(1, 1))
    make = functools.partial(CountSketchEncoder, plan, (0,), bytes(32))
    composite, words = Composite((0,), (np.arange(4),)), np.arange(1, 5, dtype=np.uint64)
    encoded = InMemory(one).encoded(make, [composite], words=words)
    oracle = make()
    oracle.update(
        one.digests ^ (one.codes[0].astype(np.uint64) + np.uint64(1)), np.zeros((1, 500), np.uint16)
    )
    assert encoded.state() == oracle.state()

"""Positions of records, and the digest by which parties compare their ids."""

import numpy as np
import pytest

from vertimrf.releases.encrypted_counts.positions import place, population_digest

KEY = bytes(range(16))


def digests(count, seed=1):
    return np.random.default_rng(seed).integers(0, 1 << 64, count, dtype=np.uint64)


@pytest.mark.parametrize("capacity", [1, 40, 50, 60])
def test_two_tables_of_the_same_ids_are_aligned(capacity):
    ids, shuffled = digests(50), np.random.default_rng(2).permutation(50)
    values = np.arange(50)[None]
    placed = place(values, ids, capacity)
    assert placed.dtype == np.int32
    assert placed.shape == (1, capacity)
    assert (placed == place(values[:, shuffled], ids[shuffled], capacity)).all()
    # Every record has one position, and those without one are the last.
    assert len(set(placed[placed >= 0])) == min(capacity, 50)
    assert (placed[0, 50:] == -1).all()


def test_the_lowest_digests_are_kept_in_order():
    ids = np.array([30, 10, 1 << 63, 20], np.uint64)
    assert place(np.array([[7, -1, 9, 8]]), ids, 3).tolist() == [[-1, 8, 7]]
    assert place(np.array([[7, -1, 9, 8]]), ids, 5).tolist() == [[-1, 8, 7, 9, -1]]


def test_no_records_have_no_positions():
    assert place(np.empty((2, 0), int), digests(0), 3).tolist() == [[-1] * 3] * 2


def test_equal_sets_of_ids_have_equal_digests_in_any_order():
    ids = digests(1000)
    digest = population_digest(KEY, ids)
    assert len(digest) == 16
    assert population_digest(KEY, ids[::-1].copy()) == digest
    others = [ids[1:], np.append(ids, ids[:1]), np.append(ids[1:], np.uint64(5)), ids[:0]]
    assert len({digest, *(population_digest(KEY, other) for other in others)}) == 5
    assert population_digest(KEY[::-1], ids) != digest

"""A party that departs from the protocol of encrypted counts, which nothing prevents: it encrypts marks in place of its rows.

The other party adds what it gets. Its noise changes the low bits of a counter, and a sum's high bits come back as they are. A row has
a bit of its own there, and the sum for a value tells exactly which of these rows have it.
"""

import numpy as np

from vertimrf.kernels.ring import add_marks
from vertimrf.privacy.noise import SystemNoise
from vertimrf.releases.encrypted_counts import lattice
from vertimrf.releases.encrypted_counts.counts import Rows, sum_rows
from vertimrf.releases.encrypted_counts.packing import PRIMES, Layout, N

from ..verdict import Verdict

SIZES = (4, 3)


def read_whole(counters=512):
    """Rows of the other party that are read in full, and how many have a mark.

    Args:
        counters: of the party that departs from the protocol.
    """
    key = lattice.PrivateKey.new()
    layout = Layout((counters,), N, 8.0, sums=sum(SIZES))
    low = (2 * layout.offset).bit_length()
    slots, marks = layout.marks()
    bits = range(low, layout.width)
    numbers = [mark << bit for mark in marks[:counters] for bit in bits]
    marked = len(numbers)
    secrets, seed = lattice.transformed(key.secrets(layout.slots)), lattice.new_seed()
    blocks = np.empty((2, layout.slots, len(PRIMES), N), np.uint32)
    for block, words in enumerate(blocks):
        errors = lattice.Randomness().errors(layout.slots, N)
        words[:] = lattice.with_errors(secrets, errors, lattice.public_polynomial(seed, block))
    where = np.repeat(slots[:counters], len(bits))
    added = lattice.residues(numbers).astype(np.uint32)
    add_marks(np.arange(marked)[None], where, added, lattice.ring().moduli, blocks[1])
    rng = np.random.default_rng(0)
    codes = np.array([rng.integers(0, size, N) for size in SIZES], np.int32)
    drawn = SystemNoise().gaussian(np.zeros((sum(SIZES), counters), np.int64), layout.sigma)
    answers = sum_rows([Rows(seed, blocks)], codes, SIZES, lambda: drawn, layout)
    masks = lattice.weighed(key.secrets(layout.slots), answers.vectors).transpose(1, 0, 2)
    opened = (answers.sums - masks) % np.array(PRIMES)
    sums = [
        [number // layout.scale >> layout.width * place for place in range(layout.per_slot)]
        for number in lattice.integers(opened.reshape(-1, len(PRIMES)))
    ]
    found = np.array(sums, object).reshape(sum(SIZES), -1)[:, :counters]
    there = np.array([[[one >> bit & 1 for bit in bits] for one in row] for row in found])
    there = there.reshape(sum(SIZES), -1)
    read = np.array([part.argmax(0) for part in np.split(there, np.cumsum(SIZES)[:-1])])
    return int((read == codes[:, :marked]).all(0).sum()), marked


def rows():
    """What departing from the protocol gives. It has no bar, because nothing prevents it."""
    read, marked = read_whole()
    yield Verdict(
        f"encrypted counts: rows read whole by a party that encrypts marks, of {marked}", read
    )

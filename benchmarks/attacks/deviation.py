"""A party that departs from the protocol of encrypted counts, which nothing prevents: it encrypts marks in place of its rows.

The other party adds what it gets. Its noise is in the counters, so that a plaintext's bits beyond them come back as they are. A
row has a bit of its own there, and the sum for a value tells exactly which of these rows have it.
"""

import numpy as np

from vertimrf.privacy.noise import SystemNoise
from vertimrf.releases.encrypted_counts.counts import sum_rows
from vertimrf.releases.encrypted_counts.packing import MODULUS_BITS, Layout
from vertimrf.releases.encrypted_counts.paillier import Masks, PrivateKey, as_bytes, numbers

from ..verdict import Verdict

SIZES = (4, 3)


def read_whole(bits=MODULUS_BITS):
    """Rows of the other party that are read in full, and how many have a mark.

    Args:
        bits: of the modulus.
    """
    key, layout = PrivateKey._of_bits(bits), Layout((2,), bits, 8.0, bits)
    first = layout.counters * layout.width
    marked, masks, public = bits - 1 - first, Masks(key), key.public
    marks = [(row < marked) << (first + row) for row in range(layout.capacity)]
    encrypted = as_bytes(
        ((1 + mark * public.n) * masks() % public.square for mark in marks),
        layout.ciphertext_bytes,
    )
    rng = np.random.default_rng(0)
    codes = np.array([rng.integers(0, size, bits) for size in SIZES], np.int32)
    drawn = SystemNoise().gaussian(np.zeros((sum(SIZES), 2), np.int64), layout.sigma)
    answers = sum_rows(public, encrypted[:, None], codes, SIZES, drawn, layout)
    sums = [key.decrypt(answer) >> first for answer in numbers(answers)]
    there = np.array([[one >> row & 1 for row in range(marked)] for one in sums])
    read = np.array([part.argmax(0) for part in np.split(there, np.cumsum(SIZES)[:-1])])
    return int((read == codes[:, :marked]).all(0).sum()), marked


def rows():
    """What departing from the protocol gives. It has no bar, because nothing prevents it."""
    read, marked = read_whole()
    yield Verdict(
        f"encrypted counts: rows read whole by a party that encrypts marks, of {marked}", read
    )

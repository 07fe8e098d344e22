"""A selector of encrypted counts that forgets one of its three noises, and a packer that looks for it.

The packer has all that a packer has: its key, the errors of its rows, and the answers. It knows two tables one of which is the
selector's, and says which. They differ in one record, or for the two noises of the encryption in all records, which then have no
values at the packer, so that counts tell nothing. Half of its words are right by chance.
"""

import math
from contextlib import contextmanager

import numpy as np

from vertimrf.privacy.noise import SystemNoise
from vertimrf.releases.encrypted_counts import counts, lattice
from vertimrf.releases.encrypted_counts.packing import PRIMES, Layout, N

from ..verdict import Verdict, at_most

TRIED = 64
NOISE, ZERO, FLOODING = "its Gaussian noise", "the encryption of zero", "the flooding"
COUNTERS = 400
LAYOUT = Layout((COUNTERS,), N, 45.0, sums=1)


@contextmanager
def forgetting(what):
    """While this holds, a selector draws nothing where it should draw one of the noises of the encryption."""

    class Forgetful(lattice.Randomness):
        def thirds(self, *shape):
            return super().thirds(*shape) * (what != ZERO)

        def errors(self, *shape):
            return super().errors(*shape) * (what != ZERO)

        def integers(self, count, bits):
            return [number * (what != FLOODING) for number in super().integers(count, bits)]

    kept, counts.Randomness = counts.Randomness, Forgetful
    try:
        yield
    finally:
        counts.Randomness = kept


class Packer:
    """A packer with one set of rows.

    Args:
        seen: what it looks at, the noise that may be forgotten.
        rng: draws its table.
    """

    def __init__(self, seen, rng):
        self._seen, self._key = seen, lattice.PrivateKey.new()
        self._codes = rng.integers(0, COUNTERS, (1, LAYOUT.capacity)).astype(np.int32)
        if seen != NOISE:
            self._codes[:] = -1
        self.rows = counts.encrypt_rows(self._key, self._codes, LAYOUT)

    def guess(self, answers, tables):
        """Which of two tables the answers are of."""
        fits = [self._misfit(answers, table[0] >= 0) for table in tables]
        return int(fits[1] < fits[0])

    def _misfit(self, answers, chosen):
        if self._seen == NOISE:
            (found,) = counts.open_sums(self._key, answers, (1,), LAYOUT)
            exact = np.bincount(self._codes[0, chosen], minlength=COUNTERS)
            return float(np.square(found[0] - exact).sum())
        weights = np.zeros((1, N), np.int8)
        weights[0, : chosen.size] = chosen
        polynomial = lattice.public_polynomial(self.rows.seed, 1)
        nothing, total = np.zeros((1, N), np.int8), np.zeros((1, len(PRIMES), N), np.uint32)
        lattice.added(total, weights, polynomial)
        if self._seen == ZERO:
            return float((lattice.with_errors(total, nothing) != answers.vectors).mean())
        # Errors of its rows: the same in all residues.
        secrets = self._key.secrets(LAYOUT.slots)
        masks = lattice.with_errors(
            lattice.transformed(secrets), np.zeros((LAYOUT.slots, N), np.int8), polynomial
        )
        q = PRIMES[0]
        errors = (self.rows.blocks[1][:, 0].astype(np.int64) - masks[:, 0] + q // 2) % q - q // 2
        opened = answers.sums[0] - lattice.weighed(secrets, answers.vectors)[:, 0]
        below = [x % LAYOUT.scale for x in lattice.integers(opened % np.array(PRIMES))]
        rest = np.array([x - LAYOUT.largest_error for x in below], float)
        return float(np.square(rest - errors @ weights[0]).sum())


def right(forgotten, seen, tried=TRIED):
    """How many of the packer's words are right.

    Args:
        forgotten: the noise that the selector forgets; None if it forgets none.
        seen: the noise that the packer looks for.
        tried: number of answers.
    """
    rng = np.random.default_rng(1)
    packer, found = Packer(seen, rng), 0
    for _ in range(tried):
        one = np.where(rng.random((1, LAYOUT.capacity)) < 0.5, 0, -1).astype(np.int32)
        other = -1 - one
        if seen == NOISE:
            other = one.copy()
            other[0, 0] = -1 - other[0, 0]
        tables, which = (one, other), int(rng.integers(2))

        def noise():
            none = np.zeros((1, LAYOUT.counters), np.int64)
            return none if forgotten == NOISE else SystemNoise().gaussian(none, LAYOUT.sigma)

        with forgetting(forgotten):
            answers = counts.sum_rows([packer.rows], tables[which], (1,), noise, LAYOUT)
        found += packer.guess(answers, tables) == which
    return found


def rows(tried=TRIED):
    """Words that are right of selectors that forget, and of one that forgets nothing."""
    for seen in (NOISE, ZERO, FLOODING):
        head = f"encrypted counts, words of {tried} that are right on which table it is"
        yield Verdict(f"{head}: a selector forgets {seen}", right(seen, seen, tried))
        chance = tried / 2 + 5 * math.sqrt(tried) / 2
        yield at_most(f"{head}: the selector draws {seen}", right(None, seen, tried), chance)

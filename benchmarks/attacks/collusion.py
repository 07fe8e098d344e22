"""The colluding party: it hands the server the secret of the hashes, and they read the other party's rows out of its message.

They know every record's buckets and signs, and the noise. Of each attribute they take the value that is likeliest by the numbers
that a record of this value would have moved, and by the party's own released counts. How many rows they get right in full follows
from how many numbers there are: with large messages many, with small ones none. The ledger's second total says so beforehand.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from vertimrf import Message, Party, Plan, PlanOptions, Secret, make_plan
from vertimrf.plan.groups import released_sizes
from vertimrf.releases.count_sketches.encoding import adding, code_steps, number_sigmas
from vertimrf.releases.release import CONTRAST_SIGNS

from .. import datasets
from ..verdict import Verdict, at_least, at_most
from .audit import audit_known
from .deployment import dealt, signs_of

SIZES = (15_000_000, 1_000_000, 100_000, 20_000)
SPLIT, EPSILON = 8, 0.8
# Rows that are tried, and how many of them at a time.
TRIED, AT_ONCE = 2000, 100
TRIALS = 20_000


@dataclass(frozen=True, eq=False)
class Collusion:
    """The first party's message, and what the second and the server know together.

    Attributes:
        plan: of two parties.
        secret: the parties'.
        message: the first party's, as the server opens it.
        digests: of the people whose rows are wanted [shape=(targets,), uint64].
        truth: their values at that party [shape=(groups, targets)].
    """

    plan: Plan
    secret: Secret
    message: Message
    digests: npt.NDArray[np.uint64]
    truth: npt.NDArray[np.int64]

    @classmethod
    def of(cls, data, message_bytes, seed=0, tried=TRIED):
        """A message about a table whose first attributes the first party holds."""
        schema, (table, _) = dealt(data, SPLIT, seed=seed)
        plan = make_plan(
            schema,
            epsilon=EPSILON,
            planning=PlanOptions(
                delta=1 / data.records, expected_records=data.records, message_bytes=message_bytes
            ),
        )
        secret = Secret.new()
        message = Party(plan, "one", secret).run(table)
        rng = np.random.default_rng(seed)
        wanted = rng.choice(data.records, min(tried, data.records), replace=False)
        truth = np.array(
            [
                bins[0][code]
                for bins, code in zip(message.bins, data.codes[:SPLIT, wanted], strict=True)
            ],
            np.int64,
        )
        return cls(plan, secret, message, table.digests[wanted], truth)

    @cached_property
    def sizes(self):
        """Records of each value of each group as the message itself tells."""
        one_way = {
            m.attributes[0]: m.counts.astype(np.float64)
            for m in self.message.marginals
            if len(m.attributes) == 1
        }
        groups = [self.plan.groups[group] for group in self.plan.groups_of(0)]
        return released_sizes(groups, self.message.bins, one_way)

    def rows(self, known=True):
        """Part of the wanted rows that they write down in full, and rightly; unless hashes are ``known``, by counts alone."""
        right = 0
        for first in range(0, len(self.digests), AT_ONCE):
            some = slice(first, first + AT_ONCE)
            right += int(
                (self._guessed(self.digests[some], known) == self.truth[:, some]).all(axis=0).sum()
            )
        return right / len(self.digests)

    def _guessed(self, digests, known):
        """The likeliest value of each group [shape=(groups, targets)]."""
        sketch = self.plan.sketch
        signs = signs_of(self.plan, self.secret, digests) if known else None
        guessed = []
        for group, table, sizes in zip(
            self.plan.groups_of(0), self.message.sketches, self.sizes, strict=True
        ):
            scores = np.log(np.maximum(sizes, 1.0))[:, None] + np.zeros(len(digests))
            if signs is not None:
                weight = sketch.weight(group)
                moved = adding(sizes, group in sketch.contrasts)
                numbers = (table - (2**sketch.bits - 1) / 2) * code_steps(sketch, moved, weight)[
                    :, None
                ]
                # Of a number that the record moves by w: log P(with) / P(without) = (2 w x - w^2) / (2 sigma^2).
                sigma = number_sigmas(sketch, np.maximum(moved, 0.0), weight)[:, None]
                summed = (
                    weight * (numbers.astype(np.float32) @ signs.T)
                    - weight**2 * sketch.repetitions / 2
                ) / sigma**2
                scores = scores + (
                    np.outer(CONTRAST_SIGNS, summed) if group in sketch.contrasts else summed
                )
            guessed.append(scores.argmax(axis=0))
        return np.array(guessed)


def rows():
    """Rows read in full by size of the messages, beside the ledger's epsilon; and the ledger's epsilon against a game."""
    data = datasets.adult()
    read = {}
    for size in SIZES:
        played = Collusion.of(data, size)
        head = f"collusion, {data.name} at epsilon {EPSILON:g}, messages of {size / 1e6:g} MB: "
        spent = played.plan.ledger().colluding_epsilon or math.nan
        read[size] = played.rows()
        by_counts = played.rows(known=False)
        yield Verdict(f"{head}the ledger's epsilon if a party colludes", spent)
        yield Verdict(
            f"{head}part of {len(played.digests)} rows read in full by counts alone", by_counts
        )
        name = f"{head}part read in full with the secret"
        if size == SIZES[-1]:
            # Nothing but chance: as many as by counts, and five standard errors more.
            most = by_counts + 5 * math.sqrt(
                max(by_counts, 1 / len(played.digests)) / len(played.digests)
            )
            yield at_most(f"{name} (small messages withstand it)", read[size], most)
        else:
            yield Verdict(name, read[size])
    yield at_least(
        f"collusion, {data.name}: rows read in full at {SIZES[0] / 1e6:g} MB (the attack works)",
        read[SIZES[0]],
        0.2,
    )
    game = audit_known(TRIALS)
    yield from game.verdicts()
    yield at_least(
        f"{game.name}: epsilon certainly exceeded, against half the ledger's",
        game.lower_bound,
        game.exact / 2,
    )

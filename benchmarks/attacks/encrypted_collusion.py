"""The colluding party against encrypted counts: it knows its noise, and reads the other party's rows out of what is left.

The server and the second party know every record's values at the second party, and all tables of counts with one noise instead of
two. For each attribute of the first party they take the value that is likeliest by these tables and the record's known values
(naive Bayes). Whoever has the published tables alone, with both noises, makes the same guess. What the first reads beyond the
second is what the collusion is worth. Beside them, except in a quick run: the same collusion against count sketches
(:mod:`.collusion`). A table of 200 records, each with a value of its own at the second party, shows that rows are read off tables
without noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from vertimrf.columns.column import Attribute
from vertimrf.message import Message
from vertimrf.party.comparison import compare_all
from vertimrf.party.party import Party
from vertimrf.party.secret import Secret
from vertimrf.plan.options import PlanOptions
from vertimrf.plan.plan import Plan
from vertimrf.plan.planner import make_plan
from vertimrf.plan.schema import Schema
from vertimrf.privacy.noise import KeyedNoise, SystemNoise
from vertimrf.releases.encrypted_counts.encoding import Steps
from vertimrf.releases.encrypted_counts.lattice import PrivateKey

from .. import datasets
from ..plain_counts import without_encryption
from ..verdict import Verdict, at_most
from . import collusion
from .deployment import dealt

EPSILON, TRIED = 0.8, 1500
SPLIT = 8


class NoNoise(KeyedNoise):
    """What the coalition makes of the second party's noise: it knows it, and subtracts it."""

    def __init__(self):
        super().__init__(bytes(32))

    def gaussian(self, values, sigma):
        """No noise is left."""
        return values


@dataclass(frozen=True, eq=False)
class Play:
    """Tables of the first party, as somebody knows them.

    Attributes:
        plan: of two parties.
        message: the first party's, with the second's noise or without it.
        bins: of the second party's groups, the map code -> bin; those of attributes come first.
    """

    plan: Plan
    message: Message
    bins: tuple[np.ndarray, ...]

    @classmethod
    def of(cls, data, known):
        """A message on a table whose first attributes the first party holds; ``known`` is the second party's noise."""
        schema, (one, two) = dealt(data, SPLIT)
        options = PlanOptions(
            delta=1 / data.records, expected_records=data.records, encoder="encrypted"
        )
        plan, secret, key = make_plan(schema, EPSILON, options), Secret.new(), PrivateKey.new()
        with without_encryption():
            first = Party(plan, "one", secret, counting_key=key)
            second = Party(plan, "two", secret, known, counting_key=key)
            # Its local model has noise in any case.
            local = Party(plan, "two", secret)._local_once(second._checked(two))
            second._local_once = lambda _: local
            compare_all({"one": first.comparison(one), "two": second.comparison(two)})
            answers = second.answers(two, {"one": [first.rows(one)]})
            bins = tuple(maps[0] for maps in local.bins)
            return cls(plan, first.run(one, {"two": answers["one"]}), bins)

    def guessed(self, known):
        """The likeliest bin of each attribute of the first party [shape=(attributes, records)].

        Args:
            known: the records' values at the second party [shape=(attributes, records)].
        """
        plan, sketch = self.plan, self.plan.sketch
        one_way = {m.attributes[0]: m.counts for m in self.message.marginals if m.counts.ndim == 1}
        scores = {}
        for (g, own), table in zip(plan.counted_pairs(0), self.message.tables, strict=True):
            other, attributes = plan.groups[g].attributes, plan.groups[own].attributes
            if len(other) > 1 or len(attributes) > 1:
                continue
            (maps,) = self.message.bins[plan.groups_of(0).index(own)]
            size = int(maps.max()) + 1
            sums = np.bincount(maps, np.maximum(one_way[attributes[0]], 1.0), size)
            values = self.bins[other[0] - SPLIT][known[other[0] - SPLIT]]
            counts, total = table.astype(float), sums.sum()
            margin = np.array([total * np.mean(values == v) for v in range(sketch.sizes[g])])
            # Both values of a contrast from their difference and their sum.
            if own in sketch.contrasts:
                sum_of = margin[:1] - margin[1:] if g in sketch.contrasts else margin
                counts = np.concatenate([sum_of[:, None] + counts, sum_of[:, None] - counts], 1) / 2
            if g in sketch.contrasts:
                counts = np.concatenate([sums + counts, sums - counts]) / 2
            likely = np.log(np.maximum(counts[:, :size], 1.0) / sums)
            start = scores.setdefault(own, np.log(sums)[:, None] + np.zeros(known.shape[1]))
            scores[own] = start + likely[values].T
        return np.array([scores[own].argmax(axis=0) for own in sorted(scores)])


def read_whole(data, coalition, tried=TRIED):
    """Rows of the first party that are written down in full and rightly.

    Args:
        data: the joined table.
        coalition: whether the second party's noise is known.
        tried: number of rows.
    """
    play = Play.of(data, NoNoise() if coalition else SystemNoise())
    wanted = np.random.default_rng(1).choice(data.records, min(tried, data.records), replace=False)
    guessed = play.guessed(data.codes[SPLIT:, wanted].astype(int))
    truth = [
        maps[0][codes]
        for maps, codes in zip(play.message.bins, data.codes[:SPLIT, wanted], strict=False)
    ]
    return int((guessed == np.array(truth[: len(guessed)])).all(axis=0).sum())


def read_alone(noise, records=200):
    """Rows of the first party that are read off the tables as they stand, of records with a value of their own at the second.

    Args:
        noise: the first party's. The second's is known.
        records: number of records.
    """
    columns = [Attribute.integer(f"a{i}", 4) for i in range(SPLIT)]
    schema = Schema.of({"one": columns, "two": [Attribute.integer("own", records)]})
    plan = make_plan(
        schema,
        EPSILON,
        PlanOptions(
            expected_records=50_000, encoder="encrypted", workload="own vs a0", even_if_useless=True
        ),
    )
    assert plan.groups[-1].size == records
    own = np.arange(records, dtype=np.int32)
    values = np.random.default_rng(1).integers(0, 4, (SPLIT, records)).astype(np.int32)
    first, second = (
        Steps(
            plan,
            plan.sketch,
            party,
            lambda purpose: bytes(32),
            own.astype(np.uint64),
            codes,
            PrivateKey.new(),
        )
        for party, codes in enumerate((values, own[None]))
    )
    answer = second.answer(0, [first.rows()], lambda _: NoNoise())
    read = [table.argmax(axis=1) for table in first.tables({1: answer}, lambda _: noise)]
    return int((np.array(read) == values).all(axis=0).sum())


def rows(names=("adult", "nltcs"), tried=TRIED, sketched=True):
    """Rows read whole by the coalition, by the published tables alone, and out of count sketches unless not ``sketched``."""
    head = "collusion of the server and a party, 200 records with a value of their own: read whole"
    yield Verdict(f"{head} where the other party forgets its noise", read_alone(NoNoise()))
    # A row is right by chance with 4^-8.
    yield at_most(f"{head} with encrypted counts", read_alone(SystemNoise()), 2)
    for name in names:
        data = datasets.load(name) if datasets.present(name) else datasets.adult_like()
        head = f"collusion of the server and a party, {data.name}, of {min(tried, data.records)} rows: "
        published, together = (read_whole(data, known, tried) for known in (False, True))
        if sketched:
            sketches = collusion.Collusion.of(data, collusion.SIZES[0], tried=tried)
            read = sketches.rows() * len(sketches.digests)
            yield Verdict(f"{head}read whole out of count sketches", read)
        yield Verdict(f"{head}guessed whole from the published counts alone", published)
        yield Verdict(f"{head}read whole with encrypted counts", together)
        # Two guesses of the same people from two draws of noise differ by chance.
        chance = 5 * math.sqrt(max(published, 1))
        yield at_most(f"{head}read beyond what published counts tell", together - published, chance)

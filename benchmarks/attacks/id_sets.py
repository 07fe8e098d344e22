"""Whose ids differ: a party of encrypted counts looks for the few people whom it holds and the other does not.

It follows the protocol, and tries every set of so many people among some of whom it thinks: what would it see if just these were
missing at the other party? It takes the set whose sight is most like what it saw. It has the parties' secret, its own number and all
files of the comparison. Once parties were shown a digest of all ids under a key that they have, and then it finds them always. It also finds
them if the other's secret number is known, or left out of what is hashed, which shows that it looks at the right things.
"""

import itertools
import secrets

import numpy as np
from scipy import stats

from vertimrf.columns.column import Attribute
from vertimrf.errors import MessageError
from vertimrf.plan.options import PlanOptions
from vertimrf.plan.planner import make_plan
from vertimrf.plan.schema import Schema
from vertimrf.releases.encrypted_counts import comparison
from vertimrf.releases.encrypted_counts.encoding import Steps
from vertimrf.releases.encrypted_counts.positions import population_digest

from ..verdict import at_least, at_most

PEOPLE, GAMES = 300, 40
# By how many people sets differ, and how many people the party thinks of.
DIFFERENCES = {1: 16, 2: 8, 5: 8}
# Chance that a guesser finds more.
RARE = 1e-6


def plan_of():
    """A plan of encrypted counts for two parties."""
    schema = Schema.of({"one": [Attribute.integer("a", 2)], "two": [Attribute.integer("b", 2)]})
    return make_plan(schema, 1.0, PlanOptions(expected_records=PEOPLE, encoder="encrypted"))


def steps_of(plan, party, key, digests):
    """A party's steps with people of these digests."""
    values = np.zeros((1, len(digests)), np.int32)
    return Steps(plan, plan.sketch, party, lambda purpose: key, digests, values)


class Game:
    """One comparison of a party that holds all people and one that lacks some of those that the first thinks of.

    Args:
        plan: of the two.
        rng: draws the people.
        missing: how many the other lacks.
        pool: of how many the party thinks.
    """

    def __init__(self, plan, rng, missing, pool):
        self.plan = plan
        self.digests = rng.integers(0, 2**64, PEOPLE, np.uint64)
        self.key = rng.bytes(32)
        self.sets = list(itertools.combinations(range(pool), missing))
        self.truth = self.sets[rng.integers(len(self.sets))]
        self.number, self.others = secrets.token_bytes(32), secrets.token_bytes(32)
        mine = steps_of(plan, 0, self.key, self.digests)
        theirs = steps_of(plan, 1, self.key, self.without(self.truth))
        self.own = mine.people
        self.ids = theirs.ids(0, self.others)
        self.again = theirs.ids_again(0, self.others, mine.ids(1, self.number))
        self.shown = theirs.people
        opened = (comparison.opened(plan, 1, 0, self.ids, again=False),)
        self.points = (*opened, comparison.opened(plan, 1, 0, self.again, again=True))
        self.seen = [*self.points, *(comparison.hidden(self.number, p) for p in self.points)]
        self.lengths = len(self.ids), len(self.again)
        self.same = True
        try:
            mine.compare(1, self.number, self.ids, self.again)
        except MessageError:
            self.same = False

    def without(self, some):
        """Digests of all people but some."""
        return np.delete(self.digests, list(some))

    def found(self, likeness):
        """Whether the likeliest set is the right one; of several the first.

        Args:
            likeness: of what was seen, and what would be seen of a digest.
        """
        tried = [likeness(population_digest(self.key, self.without(some))) for some in self.sets]
        return self.sets[int(np.argmax(tried))] == self.truth

    def by_digest(self, digest):
        """The digest as it was shown."""
        return digest == self.shown

    def by_points(self, digest):
        """What a party makes of a guess, its number and what it sees: the most bits in which two of these agree."""
        return self._agreeing(digest, self.seen)

    def by_bare_hash(self, digest):
        """The same, if the other had confirmed its own point without its number."""
        bare = comparison.confirmation(self.plan, 1, 0, comparison.point_of(self.shown))
        return self._agreeing(digest, [bare])

    def _agreeing(self, digest, seen):
        guess = comparison.point_of(digest)
        products = guess, comparison.hidden(self.number, guess)
        hashes = (
            comparison.confirmation(self.plan, *ends, product)
            for ends in ((0, 1), (1, 0))
            for product in products
        )
        bits = [
            (int.from_bytes(one, "little") ^ int.from_bytes(other, "little")).bit_count()
            for one in (*products, *hashes)
            for other in seen
        ]
        return 256 - min(bits)

    def by_known_number(self, digest):
        """The other's number is no secret: a guess is hidden by it, and compared with what the other sent."""
        return comparison.hidden(self.others, comparison.point_of(digest)) == self.points[0]


def rows(games=GAMES):
    """Sets found of each size of difference: by the old digest, by two mistakes, and as it is."""
    plan, rng = plan_of(), np.random.default_rng(1)
    alike = [Game(plan, rng, 0, 1) for _ in range(games)]
    yield at_least(
        f"ids that differ by nobody: of {games} comparisons, those that say so",
        sum(one.same for one in alike),
        games,
    )
    lengths = {one.lengths for one in alike}
    for missing, pool in DIFFERENCES.items():
        played = [Game(plan, rng, missing, pool) for _ in range(games)]
        name = f"ids that differ by {missing} of {pool} people: of {games} comparisons, "
        yield at_most(f"{name}those that say nothing of it", sum(one.same for one in played), 0)
        lengths |= {one.lengths for one in played}
        digest, number, bare, points = (
            sum(one.found(getattr(one, how)) for one in played)
            for how in ("by_digest", "by_known_number", "by_bare_hash", "by_points")
        )
        yield at_least(f"{name}those whose people are found by a keyed digest", digest, games)
        yield at_least(f"{name}those whose people are found by a known number", number, games)
        yield at_least(f"{name}those whose people are found by a hash without it", bare, games)
        chance = stats.binom.isf(RARE, games, 1 / len(played[0].sets))
        yield at_most(f"{name}those whose people are found", points, chance)
    sizes = ", ".join(map(str, (0, *DIFFERENCES)))
    yield at_most(f"ids that differ by {sizes} people: lengths of files", len(lengths), 1)

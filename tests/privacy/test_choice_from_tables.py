"""The price of choices of pairs, derived a second time: from all small tables, by the code that a party runs.

``test_choice_anew.py`` begins at scores. Here all tables of a few records are listed, and of each the exact law of the sequence of
all choices, path by path: noise that follows a script says which candidate is chosen, and the scores that the party computed
say how likely that was. Released figures are given and the same for all tables, as what was released before is in an adaptive
composition. So sensitivity, scale, the number of choices, and what later choices may depend on are all compared with the ledger.
"""

import functools
import itertools
import math

import numpy as np
import pytest

from vertimrf.party.local_model import release_local_model
from vertimrf.plan.local_bins import Cutting
from vertimrf.plan.local_plan import LocalPlan, local_entries
from vertimrf.privacy.accountant import delta
from vertimrf.privacy.ledger import Kind

SCALE = 2.0
# Exact sums against a grid that may only be above.
ROUNDING = 1e-12


class Script:
    """Noise that chooses by a script and releases figures that are given.

    Args:
        path: the candidates to choose, and the first one where it ends.
        figures: seed of all figures.
    """

    def __init__(self, path, figures):
        self.path, self.figures = list(path), figures
        self.scores, self.released = [], 0

    def gaussian(self, values, sigma):
        self.released += 1
        rng = np.random.default_rng([self.figures, self.released])
        return rng.integers(-1, 5, np.shape(values))

    def choose(self, scores, scale):
        place = len(self.scores)
        self.scores.append(np.array(scores) / scale)
        if place == len(self.path):
            self.path.append(0)
        return self.path[place]


def plan_of(columns, scale=SCALE):
    """A tree, and a further pair of each column."""
    choices = columns - 1 + columns
    return LocalPlan(1.0, 0.0, 4 * choices, 4.0, 10**4, False, True, 0.0, choices, scale)


@functools.cache
def law(records, sizes, figures, scale=SCALE):
    """Log probability of every sequence of choices about a table.

    Args:
        records: the values of each, in order.
        sizes: values of each column.
        figures: seed of the released figures.
        scale: of choices.
    """
    codes = np.array(records, np.int64).reshape(-1, len(sizes)).T

    def marginals(wanted, maps):
        for attributes in wanted:
            rows = [maps[a][codes[a]] if a in maps else codes[a] for a in attributes]
            shape = [int(maps[a].max()) + 1 if a in maps else sizes[a] for a in attributes]
            table = np.zeros(shape, np.int64)
            np.add.at(table, tuple(rows), 1)
            yield table

    out, path = {}, []
    cuts = [Cutting(True, False, False)] * len(sizes)
    while True:
        script = Script(path, figures)
        release_local_model(marginals, sizes, plan_of(len(sizes), scale), script, cuttings=cuts)
        chosen = zip(script.scores, script.path, strict=True)
        out[tuple(script.path)] = sum(s[i] - np.logaddexp.reduce(s) for s, i in chosen)
        # The next path in the order of an odometer.
        path = script.path
        while path and path[-1] + 1 == len(script.scores[len(path) - 1]):
            path.pop()
        if not path:
            break
        path[-1] += 1
    assert sum(map(math.exp, out.values())) == pytest.approx(1)
    return out


def worst(one, other, at):
    """The larger of the exact deltas in both directions, over whole paths."""
    assert one.keys() == other.keys()
    p, q = (np.exp([some[path] for path in one]) for some in (one, other))
    return max(np.maximum(a - math.exp(at) * b, 0).sum() for a, b in ((p, q), (q, p)))


def stated(columns, person, at):
    plan = plan_of(columns)
    entries = local_entries("one", columns, 0, plan, person)
    (event,) = (entry.event for entry in entries if entry.kind is Kind.CHOICES)
    return delta([event], at)


def neighbours(sizes, most, person):
    """All tables of up to so many records, and of each those with a person's records more."""
    cells = [*itertools.product(*map(range, sizes))]
    for n in range(most + 1):
        for table in itertools.combinations_with_replacement(cells, n):
            for more in itertools.combinations_with_replacement(cells, person):
                yield table, tuple(sorted((*table, *more)))


def highest(sizes, most, person, at, seeds, scale=SCALE):
    """The largest exact delta of all pairs of tables, whatever the released figures are."""
    return max(
        worst(law(one, sizes, figures, scale), law(other, sizes, figures, scale), at)
        for figures in range(seeds)
        for one, other in neighbours(sizes, most, person)
    )


@pytest.mark.parametrize(
    "sizes, most, person, seeds",
    [
        ((2, 2, 2), 2, 1, 2),
        ((2, 3, 2), 1, 1, 2),
        ((2, 2, 2), 1, 2, 3),
        pytest.param((2, 2, 2, 2), 0, 1, 2, marks=pytest.mark.slow),
        pytest.param((3, 2, 2), 2, 1, 3, marks=pytest.mark.slow),
    ],
)
def test_no_pair_of_small_tables_costs_more_than_the_ledger_states(sizes, most, person, seeds):
    for at in (0.3, 1.0, 2.0):
        exact = highest(sizes, most, person, at, seeds)
        price = stated(len(sizes), person, at)
        assert exact <= price + ROUNDING
        # Small tables come near to the price where a few choices with two candidates each decide.
        if at < 1:
            assert exact > 0.4 * price


def test_choices_of_less_noise_cost_more_than_the_ledger_states():
    """The comparison notices it: with a quarter of the scale the price is passed."""
    assert highest((2, 2, 2), 1, 1, 1.0, 1, SCALE / 4) > stated(3, 1, 1.0)

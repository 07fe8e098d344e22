"""Whole runs over long domains: what is merged at the parties is spread again, whatever the encoder."""

import math
from functools import partial

import numpy as np
import pytest
from builders import dealt
from planning import plan_with
from roles import messages_of, run_server
from scipy.stats import binom, norm

from vertimrf import Attribute, Model, Schema, Secret
from vertimrf.evaluation import tvd
from vertimrf.plan import shares
from vertimrf.plan.defaults import SHARES

N = 20_000
LABELS = [f"t{i}" for i in range(150)]


SCHEMA = Schema.of(
    {
        "one": [Attribute.integer("pay", 120), Attribute.integer("grade", 4)],
        "two": [
            Attribute.categorical("title", LABELS),
            Attribute.integer("hours", 90),
            Attribute.integer("kind", 3),
        ],
    }
)
# A plan for the table.
planned = partial(plan_with, SCHEMA, delta=1e-6, expected_records=N, tau=20_000, nonce="long")


def table(seed=0):
    """Titles of which few have most people; pay that follows from them, and is nothing for some; hours of which most are full."""
    rng = np.random.default_rng(seed)
    weights = 1 / np.arange(1, 151) ** 1.2
    title = rng.choice(150, N, p=weights / weights.sum())
    level = rng.permutation(150)[title]
    pay = np.where(rng.random(N) < 0.3, 0, np.clip(level // 3 + rng.geometric(0.2, N), 0, 119))
    hours = np.where(rng.random(N) < 0.6, 40, rng.binomial(89, 0.3, N))
    return np.array([pay, level % 4, title, hours, (hours > 30) + (pay > 20)])


def run(plan, codes, secret, **options):
    messages = messages_of(plan, dealt(plan.schema, codes), secret, fixed=True)
    return run_server(plan, messages, seed=0, **options)


@pytest.mark.parametrize(
    "options",
    [
        {"keys": 1 << 13},
        {"encoder": "scheduled-pairs", "keys": 1 << 12},
        {"encoder": "grr"},
    ],
    ids=["count sketches", "scheduled pairs", "randomised responses"],
)
def test_a_run_has_every_value_again(options, tmp_path):
    codes = table()
    plan = planned(epsilon=3.0, **options)
    result = run(plan, codes, Secret(bytes(range(32))))
    assert result.model.sizes == plan.schema.sizes
    assert set(result.model.classes) >= {0, 2, 3}
    assert result.model.tree.sizes[2] < 80
    # Values within a class have the noise of their own counts: some 15 records of 20,000 each, 150 of them.
    far = tvd(codes.astype(np.uint16), result.codes, plan.schema.sizes, (1,))[1]
    assert far < 0.05
    assert (np.bincount(result.codes[2], minlength=150) > 0).sum() > 100
    saved = Model(plan.schema, result.model, result.ledger)
    saved.save(tmp_path / "long.model")
    back = Model.load(tmp_path / "long.model")
    np.testing.assert_allclose(
        back.marginal(["title", "kind"]), saved.marginal(["title", "kind"]), atol=1e-6
    )
    assert set(back.sample(20, given={"title": ["t3", "t90"]}, seed=0)["title"].to_pylist()) <= {
        "t3",
        "t90",
    }


def test_parties_of_different_people_merge_too():
    codes = table()
    plan = planned(epsilon=8.0, nonce="overlap", keys=1 << 13, population="outer")
    people = slice(3 * N // 4), slice(N // 4, None)
    tables = dealt(plan.schema, codes, people=people)
    messages = messages_of(plan, tables, Secret(bytes(range(32))), fixed=True)
    result = run_server(plan, messages, seed=0)
    assert len(result.others) == 2
    assert all(part.field.sizes == plan.schema.sizes for part in result.others)
    assert (result.codes < np.array(plan.schema.sizes)[:, None]).all()


def test_a_domain_of_nothing_but_rare_values_is_one_value():
    rng = np.random.default_rng(0)
    schema = Schema.of(
        {
            "one": [
                Attribute.categorical("id", [str(i) for i in range(500)]),
                Attribute.integer("b", 4),
            ],
            "two": [Attribute.integer("c", 3)],
        }
    )
    plan = plan_with(
        schema,
        epsilon=0.1,
        delta=1e-6,
        expected_records=2_000,
        nonce="rare",
        keys=1 << 10,
        shares=SHARES,
    )
    codes = np.array(
        [rng.integers(0, 500, 2_000), rng.integers(0, 4, 2_000), rng.integers(0, 3, 2_000)]
    )
    result = run(plan, codes, Secret(bytes(range(32))))
    # A value stays apart if its count has noise of more than 3 sigma, less what it counts itself. How many do so is
    # at most binomial. (Fixed noise would not fix it: the last bits of sigma, which depend on the platform, key it.)
    counted = np.bincount(codes[0]).max() / plan.local[0].one_way_sigma
    apart = binom.isf(1e-5, 500, norm.sf(3 - counted))
    assert apart < 10
    assert result.model.tree.sizes[0] <= 1 + apart
    assert result.model.sizes == (500, 4, 3)
    assert len(set(result.codes[0])) > 100


def test_merging_helps_where_cliques_are_scarce(monkeypatch):
    """Three-way distances of the same table. Over six draws of noise their ratio had a mean of 0.87 and a standard deviation of
    0.03; over five at an epsilon of 0.3, of 0.96 and 0.04."""
    monkeypatch.setattr(shares, "NOISE_ALONE", math.inf)  # No attribute is halved.
    codes = table().astype(np.uint16)
    distances = []
    for longest in (64, 1000):
        monkeypatch.setattr("vertimrf.plan.merging.LONG_DOMAIN", longest)
        plan = planned(epsilon=0.1, nonce="helps", keys=1 << 13)
        distances.append(
            tvd(codes, run(plan, codes, Secret(bytes(range(32)))).codes, plan.schema.sizes, (3,))[3]
        )
    assert distances[0] < distances[1], distances

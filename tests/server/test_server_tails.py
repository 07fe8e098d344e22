"""The server settles the tails of columns of numbers, and of nothing else."""

import numpy as np
from planning import plan_with

from vertimrf import Attribute, Schema, Server
from vertimrf.party.party import Party
from vertimrf.party.secret import Secret
from vertimrf.tables.table import Table


def test_one_way_marginals_of_numbers_are_settled():
    edges = [0, *range(1, 20)]
    schema = Schema.of({"one": [Attribute.numeric("amount", edges), Attribute.integer("code", 19)]})
    plan = plan_with(schema, expected_records=1000, even_if_useless=True)
    rng = np.random.default_rng(0)
    domains = schema.encoding("one")
    places = np.minimum(rng.geometric(0.5, 1000) - 1, 18)
    codes = np.array([places * a.size // 19 for a in domains])
    table = Table(domains, np.arange(1000, dtype=np.uint64), codes.astype(np.uint16))
    message = Party(plan, "one", Secret.new()).run(table)
    alone = {m.attributes: m for m in Server(plan).read([message]).local if len(m.attributes) == 1}
    assert alone[0,].settled
    assert not alone[1,].settled
    # The values of the tail fall; of the code, noise is as it was released.
    assert (np.diff(alone[0,].counts[-5:]) < 0).all()
    assert (alone[1,].counts == np.round(alone[1,].counts)).all()

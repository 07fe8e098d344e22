"""A table's domains are found once on a machine, also at once; the attacker is the benchmarks'."""

import pytest

from benchmarks.attacks.domains_again import AT_ONCE, at_once, searches


@pytest.mark.slow
def test_several_searches_at_once_give_the_same_edges_and_spend_once(tmp_path):
    schemas = at_once(tmp_path)
    assert searches(schemas) == (1, 1)
    assert len(schemas) == AT_ONCE
    assert all(schema.spent == schemas[0].spent for schema in schemas)

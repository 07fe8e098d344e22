"""Forecasts: for every role, from public figures, and growing with what there is to do."""

from __future__ import annotations

import pytest

from vertimrf.plan.attribute import Attribute
from vertimrf.plan.forecast import PROCESS_BYTES, forecast
from vertimrf.plan.planner import make_plan
from vertimrf.plan.schema import Schema


def planned(records, keys, encoder="scheduled-pairs"):
    schema = Schema.of({party: [Attribute.integer(f"{party}{i}", 12) for i in range(3)] for party in "abc"})
    return make_plan(schema, epsilon=1.0, delta=1e-6, expected_records=records, keys=keys, encoder=encoder, nonce="test")


def test_every_role_has_one_and_memory_holds_the_levels():
    plan = planned(100_000, 1 << 20)
    parties, server = forecast(plan)
    assert len(parties) == 3
    for party, one in enumerate(parties):
        assert one.seconds > 0
        # Two levels to a byte in the message, one in memory.
        assert one.memory > PROCESS_BYTES + 2 * plan.message_size(party)
    assert server.memory > max(one.memory for one in parties) - PROCESS_BYTES
    assert "cores" in str(server)


@pytest.mark.parametrize("more", [{"records": 400_000}, {"keys": 1 << 22}])
def test_more_to_do_takes_longer(more):
    base = {"records": 50_000, "keys": 1 << 20}
    (less, *_), _ = forecast(planned(**base))
    (longer, *_), _ = forecast(planned(**(base | more)))
    assert longer.seconds >= less.seconds
    assert longer.memory > less.memory


def test_other_kinds_have_none():
    assert forecast(planned(1000, None, encoder="grr")) is None

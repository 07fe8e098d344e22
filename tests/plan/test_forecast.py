"""Forecasts: for every role, from public figures, growing with what there is to do, and near what then happens."""

import itertools
import math
import os
import random
import subprocess
import sys

import pytest
from builders import schema_of
from planning import plan_with

from vertimrf.model.clique_budget import CliqueBudget
from vertimrf.party.local_model import choose_marginals
from vertimrf.plan.forecast import PROCESS_BYTES, forecast, measured_cells, model_cells


def planned_for(records, keys, encoder="scheduled-pairs", values=12, attributes=3):
    return plan_with(
        schema_of(**{party: (values,) * attributes for party in "abc"}),
        delta=1e-6,
        expected_records=records,
        keys=keys,
        encoder=encoder,
        nonce="test",
    )


@pytest.mark.parametrize("encoder", ["scheduled-pairs", "count-sketch"])
def test_every_role_has_one_and_memory_holds_the_levels(encoder):
    plan = planned_for(100_000, 1 << 14, encoder)
    foreseen = forecast(plan)
    assert len(foreseen.parties) == 3
    for party, one in enumerate(foreseen.parties):
        assert 0 < one.seconds <= one.work
        # Two levels to a byte in the message, one in memory.
        assert one.memory > PROCESS_BYTES + 2 * plan.message_size(party)
    assert foreseen.server.memory > max(one.memory for one in foreseen.parties) - PROCESS_BYTES
    assert foreseen.trial.work < sum(one.work for one in foreseen.parties) + foreseen.server.work
    assert foreseen.trial.memory >= foreseen.server.memory
    assert "cores" in str(foreseen.server)


def test_encrypted_counts_take_longer_with_more_rows_and_at_parties_with_more_to_add():
    """The first party encrypts, the last one adds; a sample has as many rows at any number of records."""
    plan = planned_for(20_000, None, "encrypted")
    first, _, last = forecast(plan).parties
    layout = plan.sketch.layout(plan.groups_of(0))
    sent = (layout.blocks + 1) * layout.block_bytes
    assert first.work > 0.2e-3 * layout.slots * layout.blocks
    assert last.work > first.work
    assert forecast(plan).trial.memory > forecast(plan).server.memory + sent
    assert first.memory > PROCESS_BYTES + sent
    assert last.memory > PROCESS_BYTES + 2 * sent
    works = [
        [one.sketch.encoding_work(one.groups_by_party, party, 0) for party in range(3)]
        for one in (plan, planned_for(80_000, None, "encrypted"))
    ]
    # 12 blocks with one of zeros instead of 4, and eight slots instead of six.
    assert all(2 * less < more < 4 * less for less, more in zip(*works, strict=True))


@pytest.mark.parametrize("more", [{"records": 400_000}, {"keys": 1 << 22}])
def test_more_to_do_takes_longer(more):
    base = {"records": 50_000, "keys": 1 << 20}
    less, longer = forecast(planned_for(**base)), forecast(planned_for(**(base | more)))
    for one, other in zip(
        (*less.parties, less.server, less.trial),
        (*longer.parties, longer.server, longer.trial),
        strict=True,
    ):
        assert other.work > one.work
        assert other.memory > one.memory


@pytest.mark.parametrize("encoder", ["grr", "published"])
def test_encoders_for_comparison_have_none(encoder):
    plan = plan_with(
        schema_of(a=(3,), b=(3,)),
        expected_records=1000,
        encoder=encoder,
        claim_as_published=encoder == "published",
    )
    assert plan.encoder == encoder
    assert forecast(plan) is None


SIZES = {
    "narrow": [2, 5, 9, 3, 16, 7, 2, 12],
    "wide": [5 + 95 * i // 39 for i in range(40)],
    "small values": [4] * 60,
}


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_cells_are_within_two_of_those_of_a_graph_grown_in_any_order(sizes):
    limit = 100_000
    schema = schema_of(a=sizes, b=(9,))
    plan = plan_with(schema, delta=1e-6, expected_records=40_000, keys=1 << 10, nonce="test")
    budget = CliqueBudget(sizes, limit)
    pairs = list(itertools.combinations(range(len(sizes)), 2))
    random.Random(1).shuffle(pairs)
    for pair in pairs:
        budget.try_edges([pair])
    tree = budget.tree()
    assert 0.5 < model_cells(sizes, limit) / sum(tree.clique_cells) < 2
    local = plan.local[0]
    budget = CliqueBudget(sizes, local.largest_clique)
    for pair in pairs:
        budget.try_edges([pair])
    chosen = choose_marginals(budget.tree(), 40_000, local)
    cells = sum(sizes) + sum(math.prod(sizes[a] for a in attributes) for attributes, _ in chosen)
    assert 0.5 < measured_cells(sizes, local, 40_000) / cells < 2


@pytest.mark.slow
def test_memory_is_within_two_of_what_a_trial_takes():
    script = """
import re
from pathlib import Path
import numpy as np
from vertimrf.plan.forecast import forecast
from vertimrf.plan.options import PlanOptions
from vertimrf.plan.planner import make_plan
from vertimrf.plan.schema import Attribute, Schema
from vertimrf.tables.table import Table
from vertimrf.trial import run_protocol
rng = np.random.default_rng(0)
schema = Schema.of({party: [Attribute.integer(f"{party}{i}", 8) for i in range(4)] for party in "ab"})
planning = PlanOptions(delta=1e-6, expected_records=20_000, message_bytes=60_000_000)
plan = make_plan(schema, 1.0, planning)
digests = rng.integers(0, 1 << 63, 20_000).astype(np.uint64)
tables = [Table(schema.part(party), digests, rng.integers(0, 8, (4, 20_000)).astype(np.uint16)) for party in "ab"]
run_protocol(plan, tables)
peak = 1024 * int(re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1])
print(forecast(plan).trial.memory / peak)
"""
    if not os.path.exists("/proc/self/status"):
        pytest.skip("peak memory is read from /proc")
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert 0.5 < float(run.stdout) < 2

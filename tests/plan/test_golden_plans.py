"""Plans stay what they were: the same parameters give the same marginals, keys and noise, however planning is computed."""

import hashlib
import json
import math
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import astuple
from planning import plan_with

from vertimrf import Attribute, Schema
from vertimrf.plan import shares
from vertimrf.plan.defaults import SHARES

# Written by the planner as it was before it was made to scale to hundreds of attributes; whose cliques are free is later. Those of
# scheduled pairs were written when pairs became those of single attributes.
GOLDEN = Path(__file__).with_name("golden_plans.json")


def sizes_between(seed, attributes, least, most):
    """Domain sizes, log-uniform."""
    spread = np.random.default_rng(seed).uniform(np.log(least), np.log(most), attributes)
    return [int(size) for size in np.round(np.exp(spread))]


PAIRS = {"encoder": "scheduled-pairs"}
# Sizes of attributes, how many of them each party has, and expected records.
SMALL = ([4, 3, 4, 2], [2, 2], 20_000)
ADULT = ([85, 9, 20, 16, 16, 7, 15, 6, 5, 2, 40, 40, 99, 42, 2], [8, 7], 45_222)
LARGE = ([10_000, *sizes_between(2, 22, 2, 10_000), 10_000], [8, 8, 8], 42_000)
THIRTY = (sizes_between(3, 30, 2, 60), [10, 10, 10], 300_000)
HUNDRED = (sizes_between(1, 110, 5, 100), [37, 37, 36], 20_000)
FEW = ([16, 9, 7, 2], [2, 2], 50_000)
CASES = {
    "two parties": (*SMALL, PAIRS),
    "one party": ([16, 9, 7, 40], [4], 50_000, {}),
    "grr": (*FEW, {"encoder": "grr"}),
    "published": (*FEW, {"encoder": "published", "claim_as_published": True}),
    "adult": (*ADULT, PAIRS),
    "large domains": (*LARGE, PAIRS),
    "small messages": (*THIRTY, PAIRS | {"message_bytes": 3_000_000}),
    "110 attributes": (*HUNDRED, PAIRS),
    "300 attributes": ([4] * 300, [75] * 4, 50_000, PAIRS),
    # Written when count sketches became the default, and anew when attributes of two values became contrasts, sketches 15 MB, and
    # when attributes of more values always had larger weights. The shares are those that plans had then.
    "two parties, count sketches": (*SMALL, {}),
    "adult, count sketches": (*ADULT, {}),
    "large domains, count sketches": (*LARGE, {"shares": SHARES}),
    "small messages, count sketches": (*THIRTY, {"message_bytes": 3_000_000}),
    "110 attributes, count sketches": (*HUNDRED, {"shares": SHARES}),
    # Written when parties of one attribute of two values began to tell presence, and anew when groups of one value told it.
    "an attribute each, count sketches": ([2, 2, 7, 2, 3], [1] * 5, 20_000, {}),
}


def figures(case):
    """What a plan decides: whole numbers as a digest, noise scales as they are."""
    sizes, parties, records, options = CASES[case]
    schema = Schema.of(
        {"all": [Attribute.integer(f"a{i}", size) for i, size in enumerate(sizes)]}
    ).split(parties)
    plan = plan_with(schema, delta=1 / records, expected_records=records, nonce="test", **options)
    sketch = plan.sketch
    counts = {key: value for key, value in vars(sketch).items() if not isinstance(value, float)}
    # Phantoms follow the noise.
    phantoms = counts.pop("phantoms", 0)
    if "pairs" in counts:
        counts["pairs"] = [astuple(pair) for pair in counts["pairs"]]
    whole = [
        [tuple(group.to_json().values()) for group in plan.groups],
        sorted(counts.items()),
        [(local.units, local.largest_clique, local.free) for local in plan.local],
    ]
    scales = [plan.count_sigma, phantoms]
    for local in plan.local:
        scales += [local.one_way_sigma, local.score_sigma, local.unit_sigma]
    scales += [value for value in vars(sketch).values() if isinstance(value, float)]
    return {"whole": hashlib.sha256(json.dumps(whole).encode()).hexdigest(), "scales": scales}


@pytest.mark.parametrize("case", CASES)
def test_a_plan_without_halved_attributes_is_what_it_was(case, monkeypatch):
    monkeypatch.setattr(shares, "NOISE_ALONE", math.inf)
    monkeypatch.setattr(shares, "MOST_ONE_WAY", 0.0)
    golden = json.loads(GOLDEN.read_text())[case]
    made = figures(case)
    assert made["whole"] == golden["whole"]
    # Composition over tens of millions of keys was exact to a few millionths then; phantoms are whole numbers.
    for ours, theirs in zip(made["scales"], golden["scales"], strict=True):
        assert ours == pytest.approx(
            theirs, rel=1e-5, abs=1 if isinstance(theirs, int) and theirs > 1e3 else 0
        )

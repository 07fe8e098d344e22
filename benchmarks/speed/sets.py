"""Two sets of ids compared: ``Sketch`` and ``align`` beside datasketches and private set intersection of OpenMined.

    python benchmarks/speed/sets.py [--smoke] [--json FILE] [--ids 10000] [--page benchmarks/results/sets.md]

Both holders have so many ids, of which a hundredth, a tenth or a half are the same. Of each way: the size of the intersection that it
gives, beside the exact one; seconds of processor time of both holders together; and bytes that one of them sends at most.

    pip install datasketches openmined-psi    # without them, their rows are left out

The ways do not protect the same. Sketches of vertimrf need a key that the server lacks, and those of datasketches have none: whoever has one
can test which ids are in it. ``align`` and private set intersection tell a receiver which of its ids match, and how many (the latter tells a
client only how many, if it is asked for that).
"""

import importlib.util
import json
import secrets
import sys
import time
from pathlib import Path

import pyarrow as pa

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.results import commit, put_between
from benchmarks.verdict import SMOKE, Verdict, arguments, finish
from vertimrf import Attribute, PlanOptions, Schema, Sketch, make_plan
from vertimrf.keys import KeyRing
from vertimrf.party.alignment import SAMPLED, best_match, open_sample, sample_ids, seal_sample
from vertimrf.party.secret import Secret

SHARES = (0.01, 0.1, 0.5)
# Private set intersection takes a third of a millisecond an id and step.
MOST_PSI = 20_000


def sketches(ours, theirs):
    """Sketches of 4,096 hash keys."""
    key = secrets.token_bytes(32)
    one, other = Sketch.encode(ours, key), Sketch.encode(theirs, key)
    return one.intersection(other)[0], len(one.to_bytes())


def aligned(ours, theirs):
    """Sealed samples of ids in every combination of formats."""
    if len(ours) > SAMPLED:
        return None
    ring = KeyRing.new(("a", "b"))
    schema = Schema.of({party: [Attribute.categorical(f"x{party}", [0, 1])] for party in "ab"})
    plan = make_plan(schema, 1.0, PlanOptions(expected_records=len(ours)), public_keys=ring.public)
    secret = Secret(secrets.token_bytes(32))
    mine, other = (
        sample_ids([pa.table({"id": ids})], secret, plan, "The table") for ids in (ours, theirs)
    )
    sent = json.dumps(seal_sample(other, plan, ring.parties["b"]))
    _, opened = open_sample(json.loads(sent), plan, ring.parties["a"], "The sample")
    return best_match(mine, opened).plain, len(sent)


def theta(ours, theirs):
    """Theta sketches of datasketches, of 4,096 entries."""
    import datasketches

    made = []
    for ids in (ours, theirs):
        sketch = datasketches.update_theta_sketch(12)
        for one in ids:
            sketch.update(one)
        made.append(sketch.compact())
    both = datasketches.theta_intersection()
    for sketch in made:
        both.update(sketch)
    return both.get_result().get_estimate(), len(made[0].serialize())


def hyperloglog(ours, theirs):
    """HyperLogLogs of datasketches, of 4,096 registers: the sum of both sets less their union."""
    import datasketches

    union, sizes = datasketches.hll_union(12), []
    for ids in (ours, theirs):
        sketch = datasketches.hll_sketch(12, datasketches.tgt_hll_type.HLL_8)
        for one in ids:
            sketch.update(one)
        union.update(sketch)
        sizes.append(sketch.get_estimate())
    return sum(sizes) - union.get_estimate(), len(sketch.serialize_compact())


def intersected(ours, theirs):
    """Private set intersection, of which the client learns the size."""
    import private_set_intersection.python as psi

    if len(ours) > MOST_PSI:
        return None
    client, server = psi.client.CreateWithNewKey(False), psi.server.CreateWithNewKey(False)
    setup = server.CreateSetupMessage(1e-9, len(ours), theirs, psi.DataStructure.RAW)
    response = server.ProcessRequest(client.CreateRequest(ours))
    sent = len(setup.SerializeToString()) + len(response.SerializeToString())
    return client.GetIntersectionSize(setup, response), sent


# By name: what is imported, and the way.
WAYS = {
    "Sketch, 4,096 keys": ("vertimrf", sketches),
    "align": ("vertimrf", aligned),
    "datasketches, theta of 4,096": ("datasketches", theta),
    "datasketches, HyperLogLog of 4,096": ("datasketches", hyperloglog),
    "openmined-psi, size": ("private_set_intersection", intersected),
}


def compared(count):
    """By way: by share of common ids, what it finds less the exact size, in ids; seconds; bytes."""
    found = {}
    for share in SHARES:
        common = round(share * count)
        ours = [f"p{i:09d}" for i in range(count)]
        theirs = [f"p{i:09d}" for i in range(count - common, 2 * count - common)]
        for name, (package, way) in WAYS.items():
            if importlib.util.find_spec(package) is None:
                continue
            begin = time.process_time()
            made = way(ours, theirs)
            if made is not None:
                figures = made[0] - common, time.process_time() - begin, made[1]
                found.setdefault(name, {})[share] = figures
    return found


def page(found, count):
    """The table of a page."""
    heads = [f"of {round(share * count):,} common ids" for share in SHARES]
    lines = [
        f"| way, two sets of {count:,} ids | {' | '.join(heads)} | seconds | bytes |",
        "|---" * (len(SHARES) + 3) + "|",
    ]
    for name, figures in found.items():
        off = " | ".join(f"{figures[share][0]:+,.0f}" for share in SHARES)
        seconds = min(one for _, one, _ in figures.values())
        size = max(sent for *_, sent in figures.values())
        lines.append(f"| {name} | {off} | {seconds:.2g} | {size:,} |")
    return "\n".join(lines)


def main():
    parser = arguments(__doc__)
    parser.add_argument("--ids", type=int, default=10_000, help="ids of each holder")
    parser.add_argument("--page", type=Path, help="also write the table into this page")
    options = parser.parse_args()
    count = 500 if options.size == SMOKE else options.ids
    compared(100)  # Kernels compile.
    found = compared(count)
    if options.page is not None:
        put_between(options.page, f"sets of {count}", page(found, count), commit())
    print(page(found, count))
    rows = []
    for name, figures in found.items():
        for share, (off, seconds, size) in figures.items():
            what = f"{name}, {share:.0%} of {count:,} ids in common"
            rows.append(Verdict(f"{what}: found less exact size", off))
            rows.append(Verdict(f"{what}: processor seconds", seconds))
            rows.append(Verdict(f"{what}: bytes sent at most", size))
    finish(rows, "", options)


if __name__ == "__main__":
    main()

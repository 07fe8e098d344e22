"""Where the error of a run comes from, on a table whose truth is known: so that work goes where the error is.

    python benchmarks/decompose.py adult --epsilon 0.8            # two parties, as the paper splits it
    python benchmarks/decompose.py payroll --epsilon 0.8 --parties 1

One run of the protocol is taken apart by models of the same graph, each fitted to a little more of what the run had instead of
the truth; the figure of a line is how much the mean distance (TVD) of three-way marginals grows by it, so that the lines add up
to the run's own:

    structure     the exact marginals of the graph's cliques: what the graph cannot hold, and what merged values hide
    measured      instead, exact counts of the marginals that were measured, in the bins that they were measured in: what nobody
                  measured, and what bins hide
    fit           the same, weighed by the noise's size and fitted as far as a run does: what shrinking costs without noise
    cross-party   with the noise of the cross-party estimates
    local         with the noise of the parties' own marginals
    beyond        with the factors beyond the cliques: below zero, what they gain
    rounding      rows, as many as the table's, instead of the model

Every model is judged by rows of it, eight times as many as the table's. The order matters a little: noise of one kind hides
behind another. What the graph would be without noise is not asked; what a better graph could gain shows in "structure". Exact
figures: for development, on public data.
"""

from __future__ import annotations

import functools
import math
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import datasets
from benchmarks.reproduce.splits import PAPER_SPLITS, deal, even_counts
from benchmarks.verdict import SMOKE, Verdict, arguments, conclude, show
from vertimrf.distances import tvd
from vertimrf.model.fit import fit
from vertimrf.model.markov_random_field import Factor, MarkovRandomField
from vertimrf.model.measurement import Measurement
from vertimrf.model.sample import propose, sample
from vertimrf.model.value_classes import spread_within
from vertimrf.options import RunOptions
from vertimrf.party.party import Party
from vertimrf.party.secret import Secret
from vertimrf.plan.attribute import Attribute
from vertimrf.plan.defaults import TAU
from vertimrf.plan.planner import make_plan
from vertimrf.plan.schema import Schema
from vertimrf.server.server import Result, Server
from vertimrf.tables.table import Table

__all__ = ["decompose"]

# Rows that stand for a model, as a multiple of the table's: rounding is then small beside the rest.
ROWS = 8
# Exact measurements count as measured so many times better than they were, and are fitted to the end.
EXACTLY = 1e-3


def exact(measurement: Measurement, codes: datasets.Codes) -> Measurement:
    """The same marginal, counted."""
    shape = measurement.counts.shape
    rows = [
        codes[a].astype(np.int64) if bins is None else np.asarray(bins)[codes[a]]
        for a, bins in zip(measurement.attributes, measurement.bins, strict=True)
    ]
    counts = np.bincount(np.ravel_multi_index(rows, shape), minlength=math.prod(shape)).reshape(shape).astype(np.float64)
    return replace(measurement, counts=counts)


def of_cliques(model: MarkovRandomField, codes: datasets.Codes) -> MarkovRandomField:
    """A model of the same graph, and the same classes of values, with the exact marginals of its cliques."""
    tree, maps, factors, values = model.tree, model.class_maps, [], {}
    for a, classes in maps.items():
        counts = np.bincount(codes[a], minlength=len(classes)).astype(np.float64)
        values[a] = spread_within(classes, np.bincount(classes, weights=counts).astype(np.float64), counts, 0.0)
    codes = np.array([maps[a][row] if a in maps else row for a, row in enumerate(codes)], np.uint16)
    for clique, separator in zip(tree.cliques, tree.separators, strict=True):
        shape = tuple(tree.sizes[a] for a in clique)
        rows = [codes[a].astype(np.int64) for a in clique]
        counts = np.bincount(np.ravel_multi_index(rows, shape), minlength=math.prod(shape)).reshape(shape).astype(np.float64)
        own = counts.sum(axis=tuple(i for i, a in enumerate(clique) if a not in separator), keepdims=True)
        # What never occurs is next to impossible; given what never occurs, all is alike.
        logs = np.log(np.where(own > 0, np.maximum(counts, 1e-9) / np.maximum(own, 1), own.size / counts.size))
        factors.append(Factor(clique, logs))
    return MarkovRandomField(tree, float(codes.shape[1]), factors, classes=values)


def stages(
    result: Result, local: Sequence[Measurement], crossing: Sequence[Measurement], codes: datasets.Codes
) -> Iterator[tuple[str, MarkovRandomField]]:
    """The models, from the truth to the run's own."""
    tree, total = result.model.tree, result.model.total
    again = functools.partial(fit, result.model.sizes, tree=tree, classes=result.model.class_maps)
    held = [m for m in local if tree.covering(m.attributes) >= 0]
    kept = [m for m in crossing if tree.covering(m.attributes) >= 0]
    yield "structure", of_cliques(result.model, codes)
    counted, crossed = [exact(m, codes) for m in held], [exact(m, codes) for m in kept]
    sharp = [replace(m, sigma=EXACTLY * np.asarray(m.sigma)) for m in (*counted, *crossed)]
    yield "measured", again(sharp, float(codes.shape[1]), min_improvement=0.0, steps=12)
    yield "fit", again([*counted, *crossed], float(codes.shape[1]))
    if kept:
        yield "cross-party", again([*counted, *kept], total)
    yield "local", result.model.weighed(())
    if result.model.beyond:
        yield "beyond", result.model


def decompose(
    data: datasets.Dataset, counts: Sequence[int], epsilon: float, marginals: int = 300, seed: int = 0, tau: int = TAU
) -> dict[str, float]:
    """Parts of a run's mean three-way distance, and their sum.

    Args:
        data: the table; ``counts``: attributes of each party, in the order of the columns.
        epsilon: privacy target; delta is one over the number of records.
        marginals: random marginals of three attributes; ``seed``: of their choice, and of the rows.
        tau: limit on the cells of a clique.
    """
    n = data.records
    held = deal(tuple(counts))
    schema = Schema.of(
        {f"party{i + 1}": [Attribute.integer(f"x{a}", data.sizes[a]) for a in own] for i, own in enumerate(held)}
    )
    plan = make_plan(schema, epsilon=epsilon, delta=1 / n, expected_records=n, tau=tau, nonce=os.urandom(16).hex())
    digests = np.random.default_rng(0).integers(0, 1 << 64, n, np.uint64)
    secret = Secret.new()
    messages = [
        Party(plan, f"party{i + 1}", secret).run(
            Table(schema.part(f"party{i + 1}"), digests, np.ascontiguousarray(data.codes[list(own)]))
        )
        for i, own in enumerate(held)
    ]
    server = Server(plan, RunOptions(rows=n, seed=seed))
    first = server.read(messages)
    result = server.run(first)

    def distance(codes: npt.NDArray[np.uint16]) -> float:
        return float(tvd(data.codes, codes, data.sizes, (3,), marginals, seed)[3])

    parts: dict[str, float] = {}
    before = 0.0
    for name, model in stages(result, first.local, first.crossing, data.codes):
        draw = sample if model.beyond else propose
        now = distance(draw(model, ROWS * n, np.random.default_rng(seed)))
        parts[name] = now - before
        before = now
    parts["rounding"] = distance(result.codes) - before
    return parts | {"all": before + parts["rounding"]}


def main() -> None:
    parser = arguments(__doc__)
    known = ", ".join((*datasets.NAMES, *datasets.GENERATED, "flights"))
    parser.add_argument("data", metavar="DATA", nargs="*", default=["generated"], help=known)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.2, 0.8, 3.2])
    parser.add_argument("--parties", type=int, help="as many, of about as many attributes each; default the paper's two")
    parser.add_argument("--marginals", type=int, default=300)
    parser.add_argument("--tau", type=int, default=TAU, help="limit on the cells of a clique")
    parser.add_argument("--folder", type=Path, default=datasets.FOLDER, help="of the data sets")
    options = parser.parse_args()
    if options.size == SMOKE:
        options.data, options.epsilon, options.marginals = ["generated"], [0.8], 20
    rows: list[Verdict] = []
    for name in options.data:
        if not datasets.present(name, options.folder):
            print(f"{options.folder} has no {name}.csv.gz; give the folder of the data sets with --folder.", file=sys.stderr)
            sys.exit(2)
        data = datasets.load(name, options.folder)
        usual = PAPER_SPLITS.get(name, even_counts(len(data.sizes), 2))
        counts = usual if options.parties is None else even_counts(len(data.sizes), options.parties)
        for epsilon in options.epsilon:
            parts = decompose(data, counts, epsilon, options.marginals, tau=options.tau)
            head = f"{name}, {len(counts)} parties, epsilon {epsilon:g}"
            rows += show(Verdict(f"{head}: {part}", value) for part, value in parts.items())
    sys.exit(conclude(rows, options.json, options.size))


if __name__ == "__main__":
    main()

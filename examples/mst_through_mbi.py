"""MST (McKenna, Miklau, Sheldon, 2021) on mbi 2, fitted by this library's engine instead of mbi's: one line differs.

    pip install 'vertimrf[mbi]' && python examples/mst_through_mbi.py [--rows 2000] [--epsilon 1] [--estimator mbi]

Noisy one-way marginals, a spanning tree of the pairs that they fit worst, noisy counts of those pairs, a model, rows. Noise is
discrete Gaussian from the operating system's entropy; the ledger composes what it costs. The table is made up.
"""

from __future__ import annotations

import argparse
import itertools
import math

import mbi
import numpy as np

from vertimrf.adapters.mbi2 import Estimator
from vertimrf.kernels.contingency import contingency
from vertimrf.privacy.accountant import calibrate
from vertimrf.privacy.events import GaussianEvent
from vertimrf.privacy.ledger import Ledger, LedgerEntry
from vertimrf.privacy.noise import SystemNoise

DELTA = 1e-9
# A record moves an L1 distance by 1, and rounding it to a whole number by 1 more.
SCORE_SENSITIVITY = 2


def made_up(rows: int) -> tuple[mbi.Domain, np.ndarray]:
    """A table whose attributes follow a hidden type: the domain, and codes [shape=(attributes, rows)]."""
    rng = np.random.default_rng(0)
    domain = mbi.Domain(["age", "job", "income", "home", "health"], [8, 6, 5, 4, 3])
    hidden = rng.random(rows)
    mixed = [np.where(rng.random(rows) < 0.7, hidden, rng.random(rows)) for _ in domain.shape]
    return domain, np.stack(
        [(x * size).astype(np.uint16) for x, size in zip(mixed, domain.shape, strict=True)]
    )


def events(attributes: int, rho: float) -> list[GaussianEvent]:
    """One-way marginals, scores of pairs, pairs: a third of a zCDP budget each."""
    pairs = math.comb(attributes, 2)
    return [
        GaussianEvent(math.sqrt(3 * attributes / (2 * rho)), count=attributes),
        GaussianEvent(
            SCORE_SENSITIVITY * math.sqrt(3 * pairs / (2 * rho)), SCORE_SENSITIVITY, pairs
        ),
        GaussianEvent(math.sqrt(3 * (attributes - 1) / (2 * rho)), count=attributes - 1),
    ]


def spanning_tree(
    names: tuple[str, ...], scores: dict[tuple[str, str], float]
) -> list[tuple[str, str]]:
    """The tree of greatest score."""
    component = {name: name for name in names}
    tree = []
    for a, b in sorted(scores, key=lambda pair: -scores[pair]):
        if component[a] != component[b]:
            tree.append((a, b))
            old, new = component[b], component[a]
            component = {name: new if c == old else c for name, c in component.items()}
    return tree


def main(arguments: list[str] | None = None) -> None:
    """Run MST and print what it cost and what it made."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--estimator", choices=("vertimrf", "mbi"), default="vertimrf")
    options = parser.parse_args(arguments)

    # The one line: mbi's own estimator, or ours.
    estimator = mbi.estimation.MirrorDescent() if options.estimator == "mbi" else Estimator()

    domain, codes = made_up(options.rows)
    names, noise = domain.attributes, SystemNoise()
    one_way, score, pair = events(
        len(names), calibrate(lambda rho: events(len(names), rho), options.epsilon, DELTA)
    )

    def exact(clique: tuple[str, ...]) -> np.ndarray:
        return contingency(codes, domain.shape, [names.index(a) for a in clique])

    def measure(cliques: list, sigma: float) -> list[mbi.LinearMeasurement]:
        return [
            mbi.LinearMeasurement(noise.gaussian(exact(c), sigma).ravel().astype(float), c, sigma)
            for c in cliques
        ]

    measurements = measure([(a,) for a in names], one_way.sigma)
    model = estimator.estimate(domain, measurements)
    pairs = list(itertools.combinations(names, 2))
    misfits = [np.abs(exact(p) - np.asarray(model.project(p).values)).sum() for p in pairs]
    noisy = noise.gaussian(np.rint(misfits).astype(np.int64), score.sigma)
    measurements += measure(spanning_tree(names, dict(zip(pairs, noisy, strict=True))), pair.sigma)
    model = estimator.estimate(domain, measurements, warm_start=model)
    rows = model.synthetic_data()

    words = ("one-way marginals", "scores of pairs", "pairs of a tree")
    entries = [
        LedgerEntry(event, "holder", what, f"discrete Gaussian, sigma {event.sigma:.1f}")
        for event, what in zip((one_way, score, pair), words, strict=True)
    ]
    print(Ledger(tuple(entries), DELTA).table())
    made = np.stack([np.asarray(rows.to_dict()[a]) for a in names]).astype(np.uint16)
    for p in pairs:
        found = contingency(made, domain.shape, [names.index(a) for a in p]) / made.shape[1]
        print(
            f"{p[0]} × {p[1]}: total variation distance {0.5 * np.abs(exact(p) / codes.shape[1] - found).sum():.3f}"
        )
    print(
        f"{made.shape[1]:,} synthetic rows by {type(estimator).__module__}.{type(estimator).__name__}"
    )


if __name__ == "__main__":
    main()

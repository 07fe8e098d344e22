"""Doing one run."""

import time

import numba

from vertimrf.utility.distances import tvd, usual_ways

from ..datasets import load
from .methods import METHODS
from .splits import by_correlation, by_importance, deal, even_counts
from .svm import folds, labels_of, majority, misclassification


def split_of(data, run):
    """Attributes of each party of a run.

    Raises:
        ValueError: an unknown kind of split.
    """
    d = len(data.sizes)
    kind, _, value = run.split.partition("=")
    if kind in ("paper", "m"):
        # The paper's two parties (VertiMRF, Table 1) have halves, in the order of the columns.
        return deal(even_counts(d, d if value == "all" else int(value or 2)))
    if kind == "importance":
        return by_importance(d, 2, float(value), run.seed)
    if kind == "correlation":
        return by_correlation(data.codes, even_counts(d, 2), float(value), run.seed)
    raise ValueError(f"unknown split {run.split!r}")


def execute(run, folder):
    """Synthesise and evaluate."""
    whole = load(run.data, folder)
    split = split_of(whole, run)
    data = whole
    if run.metric == "svm":
        train, test = folds(whole.records, run.seed)[run.fold]
        data = whole.part(train)
    start = time.perf_counter()
    made = METHODS[run.method].synthesize(
        data.codes, data.sizes, split, run.epsilon, 1 / data.records, run.seed, **dict(run.options)
    )
    result = {
        "seconds": time.perf_counter() - start,
        "party_seconds": made.party_seconds,
        "server_seconds": made.server_seconds,
        "message_bytes": list(made.message_bytes),
        "spent": made.spent,
        "private": made.private,
        "parties": len(split),
        "threads": numba.get_num_threads(),
        **made.detail,
    }
    if run.metric == "utility":
        from .usefulness import judged

        return result | judged(whole, made.codes, run.seed)
    if run.metric == "svm":
        labels = labels_of(whole)
        positive = [
            1 if whole.sizes[label] == 2 else majority(whole.codes[label]) for label in labels
        ]
        test_codes = whole.part(test).codes
        result["misclassification"] = misclassification(
            made.codes, test_codes, whole.sizes, labels, positive
        )
        return result
    owners = [
        next(i for i, columns in enumerate(split) if a in columns) for a in range(len(whole.sizes))
    ]
    ways = (2, *usual_ways(len(whole.sizes)))
    for way, mean in tvd(whole.codes, made.codes, whole.sizes, ways, run.marginals).items():
        result[f"tvd{way}"] = mean
    result["across3"] = tvd(
        whole.codes, made.codes, whole.sizes, (3,), run.marginals, parties=owners
    )[3]
    return result

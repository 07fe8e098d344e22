"""All figures on what a synthetic table is good for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import SchemaError, TableError
from ..plan.attribute import Attribute
from .scores import k_marginal, quality
from .trees import CATBOOST, SCIKIT, learners, propensity, told

__all__ = ["utility"]

Codes = npt.NDArray[np.uint16]

# Most values of a label, and most records that trees are trained on, or tried on.
MOST_CLASSES = 50
MOST_ROWS = 100_000
# Fewer real records than this leave too few to try anything on.
LEAST_ROWS = 100
SDMETRICS = "SDMetrics"


def utility(
    real: Codes, synthetic: Codes, attributes: Sequence[Attribute], label: str, seed: int = 0, marginals: int = 300
) -> dict[str, Any]:
    """Trees trained on synthetic records, beside trees trained on as many real ones, tried on other real ones; whether trees tell
    synthetic records from real ones; and scores of how alike the tables are.

    The synthetic table was made of all real records, those that it is tried on included: what that adds is bounded by the run's
    epsilon, and small.

    Args:
        real, synthetic: records [each shape=(attributes, records), uint16].
        attributes: whose codes they are.
        label: the attribute that trees are to tell from the others.
        seed: of who is tried on, of the trees and of the marginals.
        marginals: of each k, for the k-marginal score.

    Returns:
        - ``"label"`` as given, and how many records trees were ``"trained"`` on and ``"tried"`` on;
        - ``"trees"``: by what trained them, "scikit-learn" and, where it is installed, "CatBoost", then by what they were trained
          on, "synthetic" and "real", ``"auc"`` and ``"accuracy"`` (see :func:`vertimrf.utility.trees.told`);
        - ``"majority"``: the accuracy of always naming the most frequent value;
        - ``"propensity"``: the AUC of scikit-learn's trees that tell synthetic records from real ones; 0.5 where they cannot;
        - ``"k_marginal"``: :func:`vertimrf.utility.scores.k_marginal` of the ``"synthetic"`` records and, to judge it by, of as
          many drawn from the real ones, ``"resampled"``;
        - ``"quality"``: likewise :func:`vertimrf.utility.scores.quality`; only where SDMetrics is installed;
        - ``"absent"``: what is not installed, and therefore left out.

    Raises:
        SchemaError: an unknown label, one of a single value or of very many, or nothing to tell it from.
        TableError: too few records, or the real ones' label never varies.
        PlanError: scikit-learn is not installed.
    """
    known = learners()
    names = [attribute.name for attribute in attributes]
    if label not in names:
        raise SchemaError(f"There is no attribute {label!r} to be a label; the attributes are {', '.join(names)}.")
    if len(names) == 1:
        raise SchemaError(f"{label!r} is the only attribute: there is nothing to tell it from.")
    place = names.index(label)
    if not 2 <= attributes[place].size <= MOST_CLASSES:
        raise SchemaError(
            f"{label!r} has {attributes[place].size} values; a label has 2 to {MOST_CLASSES}: name another attribute."
        )
    if min(real.shape[1], synthetic.shape[1]) < LEAST_ROWS:
        raise TableError(
            f"There are {real.shape[1]:,} real and {synthetic.shape[1]:,} synthetic records; utility needs {LEAST_ROWS} of each."
        )
    rng = np.random.default_rng(seed)
    order = rng.permutation(real.shape[1])
    tried, own = real[:, order[: len(order) // 2][:MOST_ROWS]], real[:, order[len(order) // 2 :]]
    count = min(own.shape[1], synthetic.shape[1], MOST_ROWS)
    made = synthetic[:, rng.permutation(synthetic.shape[1])]
    truth = tried[place]
    if len(np.unique(truth)) < 2:
        raise TableError(f"All real records have the same {label!r}: there is nothing to tell; name another attribute.")
    compared = {"synthetic": synthetic, "resampled": real[:, rng.integers(real.shape[1], size=synthetic.shape[1])]}
    sizes = [attribute.size for attribute in attributes]
    alike = {name: quality(real, codes, attributes) for name, codes in compared.items()}
    out: dict[str, Any] = {
        "label": label,
        "trained": count,
        "tried": tried.shape[1],
        "trees": {
            name: {
                source: told(learner, codes[:, :count], tried, attributes, place, seed)
                for source, codes in (("synthetic", made), ("real", own))
            }
            for name, learner in known.items()
        },
        "majority": float(np.bincount(truth).max() / len(truth)),
        "propensity": propensity(known[SCIKIT], real[:, order[:MOST_ROWS]], made, attributes, seed),
        "k_marginal": {name: k_marginal(real, codes, sizes, marginals, seed) for name, codes in compared.items()},
        "absent": [CATBOOST] * (CATBOOST not in known) + [SDMETRICS] * (alike["synthetic"] is None),
    }
    if alike["synthetic"] is not None:
        out["quality"] = alike
    return out

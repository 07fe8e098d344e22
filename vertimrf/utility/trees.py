"""Trees trained on some records and tried on others: how well they tell a label, and whether they tell two tables apart.

Gradient-boosted trees on codes: ordered attributes by their order, others as categories. scikit-learn's, and CatBoost's where
that is installed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import PlanError
from ..plan.attribute import Attribute

__all__ = ["CATBOOST", "SCIKIT", "Learner", "learners", "propensity", "told"]

Codes = npt.NDArray[np.uint16]
Floats = npt.NDArray[np.float64]
# Of the positions of categories among the inputs, and a seed, a classifier that is not fitted yet.
Learner = Callable[[Sequence[int], int], Any]

SCIKIT, CATBOOST = "scikit-learn", "CatBoost"
# Categories that trees can tell apart; of more, all go by their order.
MOST_CATEGORIES = 255
# Rounds of CatBoost, and categories that are indicators to it, not statistics of the label: on Adult its usual 1,000 rounds of
# statistics have an AUC of 0.9137 after 106 seconds, this 0.9127 after 3.
ROUNDS = 300


def learners() -> dict[str, Learner]:
    """What trains trees, by name: scikit-learn's, and CatBoost's where that is installed.

    Raises:
        PlanError: scikit-learn is not installed.
    """
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier
    except ImportError:
        raise PlanError("Utility is measured by scikit-learn's trees: pip install 'vertimrf[utility]'.") from None

    def scikit(categories: Sequence[int], seed: int) -> Any:
        return HistGradientBoostingClassifier(categorical_features=list(categories), random_state=seed)

    found: dict[str, Learner] = {SCIKIT: scikit}
    with contextlib.suppress(ImportError):
        from catboost import CatBoostClassifier

        def catboost(categories: Sequence[int], seed: int) -> Any:
            return CatBoostClassifier(
                iterations=ROUNDS, one_hot_max_size=MOST_CATEGORIES, cat_features=list(categories), random_seed=seed,
                allow_writing_files=False, verbose=False,
            )  # fmt: skip

        found[CATBOOST] = catboost
    return found


def categories(attributes: Sequence[Attribute]) -> list[int]:
    """Positions of the attributes that trees take for categories."""
    return [i for i, own in enumerate(attributes) if not own.ordered and own.size <= MOST_CATEGORIES]


def told(
    learner: Learner, trained: Codes, tried: Codes, attributes: Sequence[Attribute], place: int, seed: int
) -> dict[str, float]:
    """How well trees that were trained on some records tell a label of others.

    Args:
        learner: one of :func:`learners`.
        trained, tried: records [each shape=(attributes, records), uint16].
        attributes: whose codes they are.
        place: position of the label.
        seed: of the trees.

    Returns:
        ``"auc"``, the area under the receiver operating characteristic (of several values one against the rest each, weighed by
        how often it occurs), and ``"accuracy"``.
    """
    rest = [i for i in range(len(attributes)) if i != place]
    values = np.unique(trained[place])
    scores = np.zeros((tried.shape[1], attributes[place].size))
    if len(values) == 1:
        scores[:, values] = 1.0
    else:
        trees = learner(categories([attributes[i] for i in rest]), seed).fit(trained[rest].T, trained[place])
        scores[:, values] = trees.predict_proba(tried[rest].T)
    truth = tried[place]
    return {"auc": area(scores, truth), "accuracy": float((scores.argmax(axis=1) == truth).mean())}


def area(scores: Floats, truth: Codes) -> float:
    """One value against the rest, weighed by how often it occurs; of two values this is the usual one.

    Args:
        scores: by value [shape=(records, values)].
        truth: the values [shape=(records,)].
    """
    from sklearn.metrics import roc_auc_score

    found = [value for value in np.unique(truth) if (truth != value).any()]
    areas = [float(roc_auc_score(truth == value, scores[:, value])) for value in found]
    return float(np.average(areas, weights=[(truth == value).sum() for value in found]))


def propensity(learner: Learner, real: Codes, synthetic: Codes, attributes: Sequence[Attribute], seed: int) -> float:
    """How well trees tell synthetic records from real ones, as an AUC: trained on half of both, tried on the others.

    Arguments as of :func:`told`; tables of different lengths count as far as the shorter one goes.
    """
    from sklearn.metrics import roc_auc_score

    count = min(real.shape[1], synthetic.shape[1])
    records = np.concatenate([real[:, :count], synthetic[:, :count]], axis=1).T
    made = np.arange(2 * count) >= count
    half = np.arange(2 * count) % 2 == 0
    scores = learner(categories(attributes), seed).fit(records[half], made[half]).predict_proba(records[~half])[:, 1]
    return float(roc_auc_score(made[~half], scores))

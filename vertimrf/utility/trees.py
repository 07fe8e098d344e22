"""Gradient-boosted trees that predict a label, or that distinguish two tables.

They are trained on some records and tested on others.

Trees are scikit-learn's and work on codes. Ordered attributes are numbers to them, others are
categories.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..arrays import Codes, Floats
from ..columns.column import Attribute
from ..errors import PlanError

# Makes an unfitted classifier from the positions of categories among the inputs, and a seed.
Learner = Callable[[Sequence[int], int], Any]

# Largest number of categories that trees distinguish. Attributes with more are treated as ordered.
MAX_CATEGORIES = 255


def learner() -> Learner:
    """The maker of classifiers.

    Raises:
        PlanError: scikit-learn is not installed.
    """
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier
    except ImportError:
        raise PlanError(
            "Utility is measured by scikit-learn's trees: pip install 'vertimrf[utility]'."
        ) from None

    return lambda categories, seed: HistGradientBoostingClassifier(
        categorical_features=list(categories), random_state=seed
    )


def categories(attributes: Sequence[Attribute]) -> list[int]:
    """Positions of the attributes that trees treat as categories."""
    return [
        i
        for i, attribute in enumerate(attributes)
        if not attribute.ordered and attribute.size <= MAX_CATEGORIES
    ]


def predict(
    learner: Learner,
    trained: Codes,
    tried: Codes,
    attributes: Sequence[Attribute],
    place: int,
    seed: int,
) -> dict[str, float]:
    """Train trees on some records and measure how well they predict a label of others.

    Args:
        learner: :func:`learner`.
        trained, tried: codes of the training and the test records [each shape=(attributes,
            records), uint16].
        attributes: domains of the codes.
        place: position of the label.
        seed: seed of the trees.

    Returns:
        ``"auc"``, see :func:`area`, and ``"accuracy"``, the share of correct predictions.
    """
    rest = [i for i in range(len(attributes)) if i != place]
    values = np.unique(trained[place])
    scores = np.zeros((tried.shape[1], attributes[place].size))
    if len(values) == 1:
        scores[:, values] = 1.0
    else:
        trees = learner(categories([attributes[i] for i in rest]), seed).fit(
            trained[rest].T, trained[place]
        )
        scores[:, values] = trees.predict_proba(tried[rest].T)
    truth = tried[place]
    return {"auc": area(scores, truth), "accuracy": float((scores.argmax(axis=1) == truth).mean())}


def area(scores: Floats, truth: Codes) -> float:
    """Area under the ROC curve: mean of one value against the rest, weighted by frequency.

    For two values this is the usual area.

    Args:
        scores: scores by value [shape=(records, values), float64].
        truth: the true values [shape=(records,), uint16].
    """
    from sklearn.metrics import roc_auc_score

    present = [value for value in np.unique(truth) if (truth != value).any()]
    areas = [float(roc_auc_score(truth == value, scores[:, value])) for value in present]
    return float(np.average(areas, weights=[(truth == value).sum() for value in present]))


def propensity(
    learner: Learner, real: Codes, synthetic: Codes, attributes: Sequence[Attribute], seed: int
) -> float:
    """AUC of trees that distinguish synthetic from real records.

    They are trained on half of both tables and tested on the other half. Of the longer table, only
    as many records are used as the shorter one has.

    Args:
        learner: :func:`learner`.
        real, synthetic: codes of two tables [each shape=(attributes, records), uint16].
        attributes: domains of the codes.
        seed: seed of the trees.
    """
    from sklearn.metrics import roc_auc_score

    count = min(real.shape[1], synthetic.shape[1])
    records = np.concatenate([real[:, :count], synthetic[:, :count]], axis=1).T
    made = np.arange(2 * count) >= count
    half = np.arange(2 * count) % 2 == 0
    scores = (
        learner(categories(attributes), seed)
        .fit(records[half], made[half])
        .predict_proba(records[~half])[:, 1]
    )
    return float(roc_auc_score(made[~half], scores))

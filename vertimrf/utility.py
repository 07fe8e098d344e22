"""What a synthetic table is good for: trees trained on it and tried on real records, and trees that try to tell the two apart.

Gradient-boosted trees of scikit-learn, on codes: ordered attributes by their order, others as categories. Exact statistics of
real tables, so for one's own eyes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import PlanError, SchemaError, TableError
from .plan.attribute import Attribute

__all__ = ["utility"]

Codes = npt.NDArray[np.uint16]
Floats = npt.NDArray[np.float64]

# Most values of a label, and most records that trees are trained on, or tried on.
MOST_CLASSES = 50
MOST_ROWS = 100_000
# Fewer real records than this leave too few to try anything on.
LEAST_ROWS = 100
# Categories that the trees can tell apart; of more, all go by their order.
MOST_CATEGORIES = 255


def utility(
    real: Codes, synthetic: Codes, attributes: Sequence[Attribute], label: str, seed: int = 0
) -> dict[str, Any]:
    """Trees trained on synthetic records, beside trees trained on as many real ones, tried on other real ones.

    The synthetic table was made of all real records, those that it is tried on included: what that adds is bounded by the run's
    epsilon, and small.

    Args:
        real, synthetic: records [each shape=(attributes, records), uint16].
        attributes: whose codes they are.
        label: the attribute that trees are to tell from the others.
        seed: of who is tried on, and of the trees.

    Returns:
        - ``"label"`` as given, and how many records trees were ``"trained"`` on and ``"tried"`` on;
        - ``"synthetic"`` and ``"real"``, by what trees were trained on: ``"auc"``, the area under the receiver operating
          characteristic (of several values one against the rest each, weighed by how often it occurs), and ``"accuracy"``;
        - ``"majority"``: the accuracy of always naming the most frequent value;
        - ``"propensity"``: the AUC of trees that tell synthetic records from real ones; 0.5 where they cannot.

    Raises:
        SchemaError: an unknown label, one of a single value or of very many.
        TableError: too few records, or the real ones' label never varies.
        PlanError: scikit-learn is not installed.
    """
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier
    except ImportError:
        raise PlanError("Utility is measured by scikit-learn's trees: pip install 'vertimrf[utility]'.") from None
    names = [attribute.name for attribute in attributes]
    if label not in names:
        raise SchemaError(f"There is no attribute {label!r} to be a label; the attributes are {', '.join(names)}.")
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
    rest = [i for i in range(len(attributes)) if i != place]

    def classifier(own: Sequence[int]) -> Any:
        several = [attributes[i].kind == "categorical" and attributes[i].size <= MOST_CATEGORIES for i in own]
        return HistGradientBoostingClassifier(categorical_features=several, random_state=int(rng.integers(1 << 31)))

    order = rng.permutation(real.shape[1])
    tried, own = real[:, order[: len(order) // 2][:MOST_ROWS]], real[:, order[len(order) // 2 :]]
    count = min(own.shape[1], synthetic.shape[1], MOST_ROWS)
    made = synthetic[:, rng.permutation(synthetic.shape[1])]
    truth = tried[place]
    if len(np.unique(truth)) < 2:
        raise TableError(f"All real records have the same {label!r}: there is nothing to tell; name another attribute.")
    out: dict[str, Any] = {"label": label, "trained": count, "tried": tried.shape[1]}
    for name, codes in (("synthetic", made[:, :count]), ("real", own[:, :count])):
        values = np.unique(codes[place])
        scores = np.zeros((tried.shape[1], attributes[place].size))
        if len(values) == 1:
            scores[:, values] = 1.0
        else:
            trees = classifier(rest).fit(codes[rest].T, codes[place])
            scores[:, values] = trees.predict_proba(tried[rest].T)
        out[name] = {"auc": _auc(scores, truth), "accuracy": float((scores.argmax(axis=1) == truth).mean())}
    out["majority"] = float(np.bincount(truth).max() / len(truth))
    out["propensity"] = _propensity(real[:, order[:MOST_ROWS]], made, classifier(range(len(attributes))))
    return out


def _auc(scores: Floats, truth: Codes) -> float:
    """One value against the rest, weighed by how often it occurs; of two values this is the usual one.

    Args:
        scores: by value [shape=(records, values)]; ``truth``: the values [shape=(records,)].
    """
    from sklearn.metrics import roc_auc_score

    found = [value for value in np.unique(truth) if (truth != value).any()]
    areas = [float(roc_auc_score(truth == value, scores[:, value])) for value in found]
    return float(np.average(areas, weights=[(truth == value).sum() for value in found]))


def _propensity(real: Codes, synthetic: Codes, trees: Any) -> float:
    """How well trees tell synthetic records from real ones: trained on half of both, tried on the others."""
    from sklearn.metrics import roc_auc_score

    count = min(real.shape[1], synthetic.shape[1])
    records = np.concatenate([real[:, :count], synthetic[:, :count]], axis=1).T
    made = np.arange(2 * count) >= count
    half = np.arange(2 * count) % 2 == 0
    scores = trees.fit(records[half], made[half]).predict_proba(records[~half])[:, 1]
    return float(roc_auc_score(made[~half], scores))

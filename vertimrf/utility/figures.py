"""All figures on the utility of a synthetic table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..arrays import Codes, Fields
from ..columns.column import Attribute
from ..errors import SchemaError, TableError
from .trees import learner, predict, propensity

# Largest number of values of a label, and of records that trees are trained or tested on.
MAX_CLASSES = 50
MAX_ROWS = 100_000
# Smallest number of records of either table: fewer leave too few test records.
MIN_ROWS = 100


def _place_of(label: str, attributes: Sequence[Attribute], real: Codes, synthetic: Codes) -> int:
    """The label's place among the attributes; refuses what trees cannot be compared on."""
    names = [attribute.name for attribute in attributes]
    if label not in names:
        raise SchemaError(
            f"There is no attribute {label!r} to be a label; the attributes are {', '.join(names)}."
        )
    if len(names) == 1:
        raise SchemaError(f"{label!r} is the only attribute: there is nothing to tell it from.")
    place = names.index(label)
    if not 2 <= attributes[place].size <= MAX_CLASSES:
        raise SchemaError(
            f"{label!r} has {attributes[place].size} values; a label has 2 to {MAX_CLASSES}: name another attribute."
        )
    if min(real.shape[1], synthetic.shape[1]) < MIN_ROWS:
        raise TableError(
            f"There are {real.shape[1]:,} real and {synthetic.shape[1]:,} synthetic records; utility needs {MIN_ROWS} of each."
        )
    return place


def utility(
    real: Codes,
    synthetic: Codes,
    attributes: Sequence[Attribute],
    label: str,
    seed: int = 0,
) -> Fields:
    """Measure the utility of a synthetic table.

    Trees are trained on synthetic records, and on as many real ones, and tested on other real
    records. Further trees distinguish synthetic from real records. The synthetic table was made from
    all real records, including the test records. The run's epsilon bounds this effect, which is
    small.

    Args:
        real, synthetic: codes [each shape=(attributes, records), uint16].
        attributes: domains of the codes.
        label: the attribute that trees predict from the others.
        seed: seed of the split and of the trees.

    Returns:
        - ``"label"`` as given, and numbers of ``"trained"`` and ``"tried"`` (test) records;
        - ``"trees"``: by training records ("synthetic", "real"), ``"auc"`` and ``"accuracy"`` of
          :func:`vertimrf.utility.trees.predict`;
        - ``"majority"``: the accuracy of always predicting the most frequent value;
        - ``"propensity"``: AUC of trees that distinguish synthetic from real records.

    Raises:
        SchemaError: the label is unknown, has one value or very many, or is the only attribute.
        TableError: there are too few records, or the label does not vary in the real ones.
        PlanError: scikit-learn is not installed.
    """
    trees = learner()
    place = _place_of(label, attributes, real, synthetic)
    rng = np.random.default_rng(seed)
    order = rng.permutation(real.shape[1])
    tried, kept = real[:, order[: len(order) // 2][:MAX_ROWS]], real[:, order[len(order) // 2 :]]
    count = min(kept.shape[1], synthetic.shape[1], MAX_ROWS)
    made = synthetic[:, rng.permutation(synthetic.shape[1])]
    truth = tried[place]
    if len(np.unique(truth)) < 2:
        raise TableError(
            f"All real records have the same {label!r}: there is nothing to tell; name another attribute."
        )
    return {
        "label": label,
        "trained": count,
        "tried": tried.shape[1],
        "trees": {
            source: predict(trees, codes[:, :count], tried, attributes, place, seed)
            for source, codes in (("synthetic", made), ("real", kept))
        },
        "majority": float(np.bincount(truth).max() / len(truth)),
        "propensity": propensity(trees, real[:, order[:MAX_ROWS]], made, attributes, seed),
    }

"""What synthetic rows are good for: the figures of `vertimrf evaluate --utility`, and how far correlations are off."""

import numpy as np

from vertimrf.columns.column import Attribute
from vertimrf.utility.distances import tvd
from vertimrf.utility.figures import utility
from vertimrf.utility.values import pair_trends

from .svm import labels_of

# Attributes that have an order, and correlations; the rest are categories. Of data sets that are not listed, all have one.
ORDERED = {
    "adult": ("age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week")
}
# Heads of the table, each with its figure's name and digits.
COLUMNS = {
    "AUC, scikit-learn": ("scikit-learn auc", 4),
    "accuracy, scikit-learn": ("scikit-learn accuracy", 4),
    "propensity": ("propensity", 3),
    "3-way TVD": ("tvd3", 4),
    "correlations off by": ("correlations", 4),
}


def judged(data, rows, seed):
    """Figures of synthetic rows; under "real " before their names, those of other real rows and of as many drawn from them.

    The synthesis takes all codes as ordered. Trees take them for what they are.

    Args:
        data: the real table, which has a label (``svm.LABELS``).
        rows: synthetic rows [shape=(d, rows), uint16].
        seed: of which real rows are tried.
    """
    attributes = [
        Attribute.integer(name, size)
        if name in ORDERED.get(data.name, data.names)
        else Attribute.categorical(name, [str(code) for code in range(size)])
        for name, size in zip(data.names, data.sizes, strict=True)
    ]
    figures = utility(data.codes, rows, attributes, data.names[labels_of(data)[0]], seed)
    drawn = data.codes[:, np.random.default_rng(seed).integers(data.records, size=data.records)]

    def columns(codes):
        return {
            a.name: row.astype(np.float64)
            for a, row in zip(attributes, codes, strict=True)
            if a.ordered
        }

    out = {"propensity": figures["propensity"]}
    for head, trained, given in (("", "synthetic", rows), ("real ", "real", drawn)):
        for measure, value in figures["trees"][trained].items():
            out[f"{head}scikit-learn {measure}"] = value
        out[f"{head}tvd3"] = tvd(data.codes, given, data.sizes, [3], 300, seed)[3]
        pairs = pair_trends(columns(data.codes), columns(given))
        out[f"{head}correlations"] = float(
            np.mean([abs(pair["real"] - pair["synthetic"]) for pair in pairs])
        )
    return out

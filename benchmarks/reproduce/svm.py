"""Misclassification of a linear SVM that is trained on synthetic rows and tested on real ones (VertiMRF, section 6)."""

import numpy as np

FOLDS = 5
# What the classifier predicts; the paper takes each attribute of NLTCS in turn (None).
LABELS = {
    "nltcs": None,
    "adult": "income",
    "br2000": "a00",
    "fire": "priority",
    "generated": "x0",
}


def labels_of(data):
    """Attributes that a classifier is to predict."""
    label = LABELS[data.name]
    return tuple(range(len(data.names))) if label is None else (data.names.index(label),)


def majority(values):
    """The most frequent code; labels of more than two values become "this one or another"."""
    return int(np.bincount(values).argmax())


def folds(records, seed):
    """Rows to synthesise from (80 %) and rows to test on, once per fold; every row is tested on once."""
    order = np.random.default_rng([seed, 5]).permutation(records)
    parts = np.array_split(order, FOLDS)
    return [
        (np.sort(np.concatenate(parts[:i] + parts[i + 1 :])), np.sort(parts[i]))
        for i in range(FOLDS)
    ]


def one_hot(codes, sizes, label):
    """Indicators of all attributes but the label [sparse CSR, shape=(n, sum of sizes)]."""
    from scipy import sparse

    used = [i for i in range(len(sizes)) if i != label]
    starts = np.concatenate([[0], np.cumsum([sizes[i] for i in used])])
    n = codes.shape[1]
    columns = (codes[used].astype(np.int64) + starts[:-1, None]).T.ravel()
    rows = np.arange(0, n * len(used) + 1, len(used))
    return sparse.csr_matrix((np.ones(len(columns)), columns, rows), shape=(n, int(starts[-1])))


def misclassification(
    train,
    test,
    sizes,
    labels,
    positive=None,
):
    """Mean share of wrong predictions over labels.

    A label of more than two values is predicted as "its most frequent value, or another", as the literature on private synthesis
    makes binary tasks of attributes; the value is taken from the test rows unless ``positive`` names one per label.

    Args:
        train, test: rows [shape=(d, n), uint16].
        sizes: codes per attribute.
        labels: attributes to predict, each from all others.
    """
    from sklearn.svm import LinearSVC

    wrong = []
    for i, label in enumerate(labels):
        target = (
            positive[i]
            if positive is not None
            else (1 if sizes[label] == 2 else majority(test[label]))
        )
        known, truth = train[label] == target, test[label] == target
        if known.all() or not known.any():  # nothing to separate
            wrong.append(float(np.mean(truth != known[0])))
            continue
        machine = LinearSVC(dual=False, random_state=0).fit(one_hot(train, sizes, label), known)
        wrong.append(float(np.mean(machine.predict(one_hot(test, sizes, label)) != truth)))
    return float(np.mean(wrong))

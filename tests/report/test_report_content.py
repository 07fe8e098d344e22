"""The numbers of a report, against direct counts of the same things."""

import numpy as np
import pytest

from vertimrf.columns.column import Attribute
from vertimrf.report.content import MAX_BARS, MAX_CLASSES, MAX_LYING, classes_of, content


@pytest.fixture(scope="module")
def shown(made):
    return content(made.run, dict(enumerate(made.codes)))


def test_shares_of_single_attributes(made, shown):
    schema, records = made.run.model.schema, made.codes.shape[1]
    assert shown.real == records
    for a, column in enumerate(shown.columns):
        assert column.model.sum() == pytest.approx(1.0)
        assert column.truth.sum() == pytest.approx(1.0)
        real = np.bincount(made.codes[a], minlength=schema.sizes[a]) / records
        model = made.run.model.field.marginal((a,)) / made.run.model.field.total
        assert column.off == pytest.approx(0.5 * np.abs(real - model).sum())
        # At epsilon 8 all of them agree to a few standard errors of the noise.
        for series in column.released:
            assert np.abs(series.shares - column.truth).max() < 6 * series.errors.max() + 1e-9
            assert series.distance < 3 * series.noise + 0.01
    # Bars of values without an order: the most frequent first; what has no room is one bar.
    first = shown.columns[0]
    assert len(first.labels) == MAX_LYING - 1
    assert first.labels[-1] == f"{30 - MAX_LYING + 2} others"
    assert (np.diff(first.model[:-1]) <= 1e-12).all()
    numeric = shown.columns[1]
    assert len(numeric.labels) == MAX_BARS
    assert numeric.labels[0] == "0"
    assert numeric.labels[-1] == "missing"


def test_dependence_of_pairs(made, shown):
    dependence, codes = shown.dependence, made.codes
    d, records = codes.shape
    assert np.isnan(np.diag(dependence.model)).all()
    assert (
        dependence.model[~np.eye(d, dtype=bool)] == dependence.model.T[~np.eye(d, dtype=bool)]
    ).all()
    joint = np.zeros((3, 4))
    np.add.at(joint, (codes[2], codes[4]), 1 / records)
    truth = 0.5 * np.abs(joint - np.outer(joint.sum(1), joint.sum(0))).sum()
    assert dependence.truth[2, 4] == pytest.approx(truth)
    # A strong pair across parties is seen, in the estimates and by the model; one that is not there is not.
    assert dependence.across[2, 4]
    assert not dependence.across[0, 2]
    assert dependence.model[2, 4] == pytest.approx(truth, abs=0.1)
    assert dependence.estimate[2, 4] == pytest.approx(truth, abs=0.1)
    assert dependence.estimate[3, 4] < 0.1
    assert 0 < dependence.resampled < 0.2
    assert np.nanmax(dependence.off) <= 1
    assert (2, 4) in shown.edges
    assert shown.edges[0] in {(2, 4), (2, 5), (1, 2)}
    assert shown.coarse


def test_without_the_truth_pairs_are_taken_from_the_runs_figures(made):
    alone = content(made.run)
    assert alone.real is None
    assert alone.dependence.truth is None
    evidence = made.run.model.evidence
    estimates = alone.dependence.model[evidence.first, evidence.second]
    np.testing.assert_array_equal(estimates, evidence.model_dependence)
    # An attribute with one value depends on nothing.
    assert np.nanmax(alone.dependence.model[6]) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("size", [1, 23, 24, 25, 400])
def test_classes_leave_no_value_out(size, ordered, missing):
    attribute = Attribute.categorical(
        "a", [str(i) for i in range(size)], missing=missing, ordered=ordered
    )
    counts = np.random.default_rng(size).random(attribute.size)
    classes = classes_of(attribute, counts)
    if attribute.size <= MAX_CLASSES:
        assert classes is None
        return
    assert sorted(set(classes.tolist())) == list(range(MAX_CLASSES))
    if ordered:
        assert (np.diff(classes) >= 0).all()
        assert not missing or (classes == classes[-1]).sum() == 1
    else:
        # All but the last class have one value, none rarer than those merged.
        merged = classes == MAX_CLASSES - 1
        assert counts[~merged].min() >= counts[merged].max()

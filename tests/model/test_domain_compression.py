"""Classes of values: the model of classes is the model of values, wherever no larger measurement tells values apart."""

import itertools

import numpy as np
import pytest
from oracles import marginal_of

from vertimrf.errors import ModelError
from vertimrf.model.domain_compression import Compression, compress, compression_maps, value_counts
from vertimrf.model.fit import FitOptions, fit
from vertimrf.model.markov_random_field import MarkovRandomField
from vertimrf.model.measurement import Measurement, bin_table
from vertimrf.model.sample import sample

SIZES = (7, 3, 6, 2)
CLASSES = {0: np.array([0, 1, 1, 0, 2, 2, 2]), 2: np.array([0, 0, 1, 2, 2, 2])}
N = 10_000.0


def joint(seed=0):
    """A distribution of classes, with values within them by shares that have nothing to do with the rest."""
    rng = np.random.default_rng(seed)
    inner = rng.dirichlet(np.full(3 * 3 * 3 * 2, 0.7)).reshape(3, 3, 3, 2)
    values = {}
    for a, classes in CLASSES.items():
        weights = rng.uniform(0.5, 3, len(classes))
        values[a] = Compression(classes, weights / np.bincount(classes, weights=weights)[classes])
        inner = values[a].spread(inner, a)
    return inner * N


def measured(table, attributes, bins=None, sigma=1e-3):
    maps = bins or (None,) * len(attributes)
    counts = marginal_of(table, attributes)
    shape = [n if m is None else int(m.max()) + 1 for n, m in zip(counts.shape, maps, strict=True)]
    return Measurement(attributes, maps, bin_table(counts, maps, shape), sigma)


def measurements(table):
    out = [measured(table, (a,)) for a in range(4)]
    pairs = ((0, 1), (1, 2), (0, 2), (2, 3))
    return out + [
        measured(table, attributes, tuple(CLASSES.get(a) for a in attributes))
        for attributes in pairs
    ]


@pytest.fixture(scope="module")
def fitted():
    table = joint()
    return table, fit(
        SIZES, measurements(table), N, classes=CLASSES, options=FitOptions(min_improvement=0.0)
    )


def test_the_model_of_classes_is_that_of_values(fitted):
    table, model = fitted
    whole = fit(SIZES, measurements(table), N, options=FitOptions(min_improvement=0.0))
    assert model.tree.cells < whole.tree.cells
    assert model.sizes == whole.sizes == SIZES
    # Shares are those of values whose noise is next to nothing; half a record of 10,000 is the fits' own tolerance.
    for attributes in [(0,), (2,), (0, 1), (2, 0), (3, 0), (0, 1, 2), (3, 2, 1, 0)]:
        np.testing.assert_allclose(model.marginal(attributes), whole.marginal(attributes), atol=0.5)


def test_marginals_in_any_bins_are_those_of_values(fitted):
    _, model = fitted
    halves = {0: np.array([0, 0, 0, 0, 1, 1, 1]), 2: np.array([0, 1, 0, 1, 0, 1])}
    coarse = {0: np.array([0, 1, 1, 0, 1, 1, 1]), 2: None}
    wanted = [attributes for k in (1, 2, 3) for attributes in itertools.permutations(range(4), k)]
    for maps in ({}, CLASSES, halves, coarse):
        bins = [tuple(maps.get(a) for a in attributes) for attributes in wanted]
        for attributes, own_bins, marginal in zip(
            wanted, bins, model.marginals(wanted, bins), strict=True
        ):
            full = model.marginal(attributes)
            shape = [
                n if m is None else int(m.max()) + 1
                for n, m in zip(full.shape, own_bins, strict=True)
            ]
            np.testing.assert_allclose(marginal, bin_table(full, own_bins, shape), atol=1e-6)


def test_tables_of_values_are_held_to_their_limit(fitted):
    _, model = fitted
    with pytest.raises(ModelError, match="cells, more than 20"):
        model.marginals([(0, 2)], max_cells=20)
    assert model.marginals([(0, 2)], [(CLASSES[0], CLASSES[2])], max_cells=20)[0].shape == (3, 3)


@pytest.mark.parametrize("given", [{0: [4, 1, 2]}, {0: [3], 2: [5, 0]}, {2: [4], 3: [1]}])
def test_conditions_are_about_values(fitted, given):
    _, model = fitted
    whole = model.marginal((0, 1, 2, 3))
    for a, values in given.items():
        whole = whole.take(values, axis=a)
    # A share of each value's records.
    parts = {a: 0.5 ** np.arange(len(values)) for a, values in given.items()}
    shared = whole
    for a, shares in parts.items():
        shared = shared * np.expand_dims(shares, tuple(i for i in range(4) if i != a))
    for part, expected in (
        (model.restricted(given), whole),
        (model.restricted(given, parts), shared),
    ):
        assert part.total == pytest.approx(expected.sum(), rel=1e-9)
        np.testing.assert_allclose(part.marginal((0, 1, 2, 3)), expected, atol=1e-6)
    rows = sample(model, 500, np.random.default_rng(0), given)
    assert all(set(rows[a]) <= set(values) for a, values in given.items())


def test_rows_follow_the_values(fitted):
    _, model = fitted
    rows = sample(model, 200_000, np.random.default_rng(1))
    for attributes in [(0,), (2,), (0, 1), (0, 2)]:
        expected = model.marginal(attributes) * 20
        counts = np.bincount(
            np.ravel_multi_index(rows[list(attributes)], expected.shape), minlength=expected.size
        )
        assert (np.abs(counts - expected.ravel()) < 5 * np.sqrt(expected.ravel()) + 5).all()


def test_a_file_holds_classes_and_is_read_with_mistrust(fitted):
    _, model = fitted
    header, arrays = model.parts()
    arrays = {name: np.array(array) for name, array in arrays.items()}
    back = MarkovRandomField.of_parts(header, arrays)
    assert back.sizes == SIZES
    np.testing.assert_allclose(back.marginal((0, 2)), model.marginal((0, 2)), atol=1e-6)
    shares = arrays["shares0"]
    for name, bad in (
        ("classes0", arrays["classes0"][:-1]),
        ("classes0", np.zeros(7, np.uint16)),
        ("classes0", arrays["classes0"].astype(np.int64)),
        ("shares0", 2 * shares),
        ("shares0", shares - shares.max()),
        ("shares0", np.where(np.arange(7) == 3, np.nan, shares)),
    ):
        with pytest.raises(ModelError, match=r"class(es)? of values"):
            MarkovRandomField.of_parts(header, {**arrays, name: bad})
    with pytest.raises(ModelError, match=r"class(es)? of values"):
        MarkovRandomField.of_parts(
            {**header, "classes": [9]},
            {**arrays, "classes9": arrays["classes0"], "shares9": shares},
        )


def test_what_tells_values_apart_parts_them():
    table = joint()
    maps = compression_maps(measurements(table))
    assert sorted(maps) == [0, 2]
    for a, classes in CLASSES.items():
        np.testing.assert_array_equal(maps[a], classes)
    assert 0 not in compression_maps(measurements(table), except_for=[0])
    assert 0 not in compression_maps([*measurements(table), measured(table, (0, 3))])
    # Two coarse maps together, and a bin that nothing falls into.
    other = np.array([0, 1, 1, 0, 3, 4, 4])
    both = compression_maps(
        [*measurements(table), Measurement((0, 3), (other, None), np.zeros((5, 2)), 1.0)]
    )
    np.testing.assert_array_equal(both[0], [0, 1, 1, 0, 2, 3, 3])


def test_a_measurement_of_values_is_added_up_with_its_noise_and_one_that_parts_classes_refused():
    table = joint()
    pair = measured(table, (0, 1), sigma=2.0)
    merged = compress(pair, CLASSES)
    np.testing.assert_allclose(merged.counts, bin_table(pair.counts, (CLASSES[0], None), (3, 3)))
    np.testing.assert_allclose(np.asarray(merged.sigma)[:, 0], 2 * np.sqrt([2, 2, 3]))
    with pytest.raises(ModelError, match="one class"):
        compress(measured(table, (0, 1), (np.array([0, 1, 0, 0, 1, 1, 1]), None)), CLASSES)


def test_values_are_moved_to_their_average_as_far_as_noise_would_move_them_apart():
    rng, sigma = np.random.default_rng(0), 10.0
    # All alike: nothing but noise is left out. As far apart as noise: half of the noise's variance is.
    for truth, left in ((np.full(2000, 20.0), 0.0), (rng.normal(40, 10, 2000), 0.5)):
        found = value_counts(truth + rng.normal(0, sigma, 2000), sigma, truth.sum())
        assert np.square(found - truth).mean() == pytest.approx(left * sigma**2, abs=7.5)


def test_values_far_above_all_others_stay_there():
    """Of 255 values six hold most records, as towns and diagnoses do. Means of 20 runs have a standard error of 5 records."""
    rng, sigma = np.random.default_rng(0), 20.0
    truth = np.append([400.0, 300, 250, 200, 150, 120], np.full(249, 4.0))
    found = [value_counts(truth + rng.normal(0, sigma, 255), sigma, truth.sum()) for _ in range(20)]
    np.testing.assert_allclose(np.mean(found, axis=0)[:6], truth[:6], atol=25)


def test_counts_beyond_the_levels_stay_as_they_are():
    counts = np.arange(400.0) * 100
    np.testing.assert_allclose(value_counts(counts, 100.0, counts.sum())[300:], counts[300:], 0.01)


def test_a_class_of_values_whose_counts_are_large_has_no_more_records_by_that():
    """Halves of 200 like values by their noisy counts: raw sums are 0.8 standard errors off at each value, 1,600 records. Sums of
    what is estimated have half of them, within 100 (a spread of no more than 20, by runs)."""
    rng, sigma = np.random.default_rng(0), 20.0
    counts = 20 + rng.normal(0, sigma, 200)
    half = (counts > np.median(counts)).astype(np.int64)
    alone = Measurement((0,), (None,), counts, sigma)
    model = fit((200,), [alone], 4000.0, classes={0: half})
    assert counts[half == 1].sum() > 3500
    assert model.marginal((0,))[half == 1].sum() == pytest.approx(2000, abs=100)


def test_an_ordered_attribute_alone_keeps_its_values():
    alone = [Measurement((a,), (None,), np.full(4, 250.0), 9.0) for a in (0, 1)]
    maps = compression_maps(alone, ordered=[1])
    assert list(maps) == [0]
    assert not maps[0].any()


def test_no_value_is_without_records():
    counts = value_counts(np.array([-500.0, 0.0, 2.0]), 1.0, 10.0)
    assert counts.sum() == pytest.approx(10.0)
    assert (counts > 0).all()
    alone = Measurement((0,), (None,), np.array([-500.0, 1000.0, 1000.0]), 100.0)
    model = fit((3,), [alone], 1500.0, classes={0: np.zeros(3, np.int64)})
    assert 0 < model.restricted({0: [0]}).total < 1

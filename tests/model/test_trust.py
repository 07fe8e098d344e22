"""Standard errors of a model's marginals: as small as what was measured, and covering the truth."""

import collections
import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from builders import named_model, schema_of
from commands import good, refused

from vertimrf.cli.inspect import describe
from vertimrf.errors import MessageError, ModelError
from vertimrf.model import trust
from vertimrf.model.fit import fit
from vertimrf.model.junction_tree import junction_tree
from vertimrf.model.measurement import Measurement
from vertimrf.model.trust import ACROSS, FITTED, IMPLIED, MEASURED, UNKNOWN, Evidence
from vertimrf.named_model import Model
from vertimrf.plan.defaults import default_delta
from vertimrf.server.parts import PartModel
from vertimrf.server.released_figures import dropped_pairs, known_pairs, of_links

SIZES = (4, 3, 5, 2)
CHAIN = ((0, 1), (1, 2), (2, 3))
RECORDS = 20_000
SIGMA = 40.0


def chain(rng):
    """Codes of four attributes, each of which depends on the one before [shape=(4, RECORDS)]."""
    codes = [rng.choice(SIZES[0], RECORDS, p=rng.dirichlet(np.full(SIZES[0], 2.0)))]
    for size, before in zip(SIZES[1:], SIZES, strict=False):
        share = np.cumsum(rng.dirichlet(np.full(size, 1.5), before), axis=1)
        codes.append((rng.random((RECORDS, 1)) > share[codes[-1], :-1]).sum(axis=1))
    return np.array(codes)


def counts_of(codes, attributes):
    out = np.zeros([SIZES[a] for a in attributes])
    np.add.at(out, tuple(codes[list(attributes)]), 1)
    return out


def noisy(codes, marginals, rng, sigma=SIGMA):
    out = []
    for attributes in marginals:
        exact = counts_of(codes, attributes)
        noise = sigma * rng.standard_normal(exact.shape)
        out.append(Measurement(attributes, (None,) * exact.ndim, exact + noise, sigma))
    return out


def fitted(measurements, cliques):
    return fit(SIZES, measurements, RECORDS, tree=junction_tree(SIZES, cliques))


def singles(codes, rng):
    return noisy(codes, [(a,) for a in range(4)], rng, SIGMA)


def test_the_error_of_a_cell_by_hand():
    """A pair of 4 x 3 cells: 2 records of noise a cell; of single attributes, 1. Interactions have (1 - 1/4)(1 - 1/3) of the
    variance 4. The counts of a value have the noise of the pair's sums too: variances 12 and 16 beside 1."""
    pair = Measurement((0, 1), (None, None), np.full((4, 3), 100.0), 2.0)
    alone = [
        Measurement((a,), (None,), np.full(size, 1200.0 / size), 1.0)
        for a, size in ((0, 4), (1, 3))
    ]
    model = fit((4, 3), [pair, *alone], 1200.0, tree=junction_tree((4, 3), [(0, 1)]))
    evidence = Evidence.of(model, [pair, *alone], [])
    first, second = 1 / (1 + 1 / 12), 1 / (1 + 1 / 16)
    np.testing.assert_allclose(evidence.one_way, np.sqrt([first, second]))
    row, column = (v / n * 4 / (v / n + 4) for v, n in ((first, 3), (second, 4)))
    by_hand = 0.75 * (2 / 3) * 4 + 0.75 * row / 3 + (2 / 3) * column / 4
    assert evidence.spread[0] == pytest.approx(FITTED * math.sqrt(by_hand), rel=1e-3)


# Estimates across parties have larger errors than they state.
@pytest.mark.parametrize("across", [pytest.param(1.0, marks=pytest.mark.slow), ACROSS])
def test_bands_of_95_percent_hold_the_truth(across):
    """40 draws of the chain's table and noise, with one seed: 32 cells of pairs each, and 14 of columns."""
    rng = np.random.default_rng(5)
    hits = collections.defaultdict(list)
    for _ in range(40):
        codes = chain(rng)
        alone, pairs = singles(codes, rng), noisy(codes, CHAIN, rng, across * SIGMA)
        stated = [replace(m, sigma=SIGMA) for m in pairs]
        model = fitted([*alone, *stated], CHAIN)
        local, crossing = (alone, stated) if across > 1 else ([*alone, *stated], [])
        evidence = Evidence.of(model, local, crossing)
        for ways in (1, 2, 3):
            for attributes in itertools.combinations(range(4), ways):
                counts = model.marginal(attributes)
                errors = evidence.errors(model, attributes, counts)
                near = np.abs(counts - counts_of(codes, attributes)) <= 1.96 * errors
                kind = evidence.kind(attributes)
                hits[kind if kind == IMPLIED else ways] += near.ravel().tolist()
    # Pairs across parties are taken to add nothing to what is known of columns; these do.
    most = 0.97 if across == 1 else 0.99
    assert all(0.93 <= np.mean(hits[ways]) <= most for ways in (1, 2))
    assert np.mean(hits[IMPLIED]) >= 0.9


def of_pairs(pairs):
    """A model of measured columns and pairs, and its evidence."""
    rng = np.random.default_rng(0)
    codes = chain(rng)
    measurements = [*singles(codes, rng), *noisy(codes, pairs, rng)]
    model = fitted(measurements, pairs)
    return model, Evidence.of(model, measurements, [])


def test_what_was_not_measured_is_implied_where_pairs_connect_it_and_else_unknown():
    model, evidence = of_pairs([(0, 1), (1, 2)])
    kinds = {some: evidence.kind(some) for some in ((3,), (0, 1), (0, 2), (0, 1, 2), (2, 3))}
    assert list(kinds.values()) == [MEASURED, MEASURED, IMPLIED, IMPLIED, UNKNOWN]
    assert np.isinf(evidence.errors(model, (2, 3), model.marginal((2, 3)))).all()
    measured, implied = (
        evidence.errors(model, some, model.marginal(some)).mean() / model.marginal(some).mean()
        for some in ((0, 1), (0, 2))
    )
    assert measured < implied < np.inf


def test_the_order_of_columns_is_that_of_the_axes():
    model, evidence = of_pairs(CHAIN)
    for some in ((0, 1), (0, 1, 2)):
        counts = model.marginal(some)
        forth = evidence.errors(model, some, counts)
        back = evidence.errors(model, some[::-1], counts.T)
        np.testing.assert_allclose(back, forth.T)


def test_a_contrast_is_compared_with_the_models_contrast():
    """Of contrasts nothing is known of the columns. A model that fits is as far as noise, not as far as all records."""
    exact = np.array([[400.0, 200], [100, 300]])
    # (400 - 200 - 100 + 300) / 4 in every cell.
    difference = np.array([[100.0, -100], [-100, 100]])
    contrast = Measurement((0, 1), (None, None), difference, 2.0, contrasts=(0, 1))
    alone = [Measurement((a,), (None,), exact.sum(axis=1 - a), 1.0) for a in (0, 1)]
    model = fit((2, 2), [*alone, contrast], 1000.0, tree=junction_tree((2, 2), [(0, 1)]))
    evidence = Evidence.of(model, [*alone, contrast], [])
    assert evidence.distance[0] < 0.01
    assert evidence.model_dependence[0] == pytest.approx(0.2, abs=0.01)


def test_margins_that_were_added_to_a_contrast_are_no_dependence():
    """The margins were taken from another model, in which half of the records have the first value of the first column."""
    exact = np.outer([800.0, 200], [0.5, 0.5])
    alone = [Measurement((a,), (None,), exact.sum(axis=1 - a), 1.0) for a in (0, 1)]
    added = 250.0 + np.array([[10.0, -10], [-10, 10]])
    contrast = Measurement((0, 1), (None, None), added, 40.0, contrasts=(0, 1), completed=True)
    model = fit((2, 2), alone, 1000.0)
    evidence = Evidence.of(model, alone, [contrast])
    assert evidence.distance[0] == pytest.approx(0.02)
    assert evidence.dropped == []


def figures(**columns):
    """Evidence of the pairs of 20 columns in order, the first ones from ``columns``."""
    count = len(columns["dependence"])
    pairs = list(itertools.islice(itertools.combinations(range(20), 2), count))
    some = {"cells": 4, "error": 20.0, "noise": 0.03, "distance": 0.0, "spread": 20.0}
    some |= {"dependence_error": 0.01, "chance": 0.5, "model_dependence": 0.0}
    usual = {name: [figure] * count for name, figure in some.items()}
    ends = {"first": [pair[0] for pair in pairs], "second": [pair[1] for pair in pairs]}
    return Evidence.of_columns({"one_way": [9.0] * 20, **ends, **usual, **columns})


def test_a_dependence_beyond_five_of_its_errors_is_dropped_if_more_than_a_fifth_is_gone():
    evidence = figures(
        dependence=[0.06, 0.06, 0.04, 0.3], model_dependence=[0.047, 0.049, 0.0, 0.1]
    )
    assert evidence.dropped == [(0, 4), (0, 1)]


def test_pairs_are_known_at_a_rate_of_false_discoveries_among_all_pairs_if_the_model_keeps_them():
    """Of 190 pairs, the third smallest p-value is taken up to 0.05 * 3 / 190 = 0.00079."""
    evidence = figures(
        dependence=[0.1, 0.2, 0.1, 0.3],
        chance=[5.2e-4, 1e-4, 2e-3, 1e-4],
        model_dependence=[0.1, 0.2, 0.1, 0.2],
    )
    # The smallest three are taken, of which the model has lost one.
    assert evidence.known == [(0, 2), (0, 1)]
    assert evidence.dropped == [(0, 4)]
    assert figures(dependence=[0.1], chance=[5.2e-4], model_dependence=[0.1]).known == []


def pair_of(correlation, records, sigma, rng, shares=(0.5, 0.5)):
    """A pair of columns of two values with a correlation, measured, and the fitted model's evidence."""
    one, other = (np.array([1 - share, share]) for share in shares)
    spread = correlation * math.sqrt(np.prod(one) * np.prod(other))
    exact = records * (np.outer(one, other) + spread * np.array([[1, -1], [-1, 1]]))
    measured = [Measurement((a,), (None,), exact.sum(axis=1 - a), sigma / 10) for a in (0, 1)] + [
        Measurement((0, 1), (None, None), exact + sigma * rng.standard_normal((2, 2)), sigma)
    ]
    model = fit((2, 2), measured, records, tree=junction_tree((2, 2), [(0, 1)]))
    return Evidence.of(model, measured, [])


def test_independent_columns_are_rarely_known():
    """Of 100 measured pairs, five in a hundred would be known at most; more than 15 have a chance below 1e-5."""
    rng = np.random.default_rng(2)
    known = [bool(pair_of(0.0, 10_000, 50.0, rng).known) for _ in range(100)]
    assert sum(known) <= 15
    known = [bool(pair_of(0.2, 10_000, 50.0, rng).known) for _ in range(20)]
    assert all(known)


@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.02, 0.3)])
def test_a_negligible_dependence_is_not_known_however_little_the_noise(shares):
    """At a correlation of 0.05 five pairs in a hundred are called known; at 0.1 all are, at 0.04 none."""
    rng = np.random.default_rng(3)
    for correlation, known in ((0.04, False), (0.1, True)):
        assert bool(pair_of(correlation, 1e7, 50.0, rng, shares).known) == known


def test_the_chance_of_noise_is_that_of_a_non_central_chi_square():
    """Simulated: 200,000 draws, of which one in a hundred is beyond; three standard errors are 7 %. The stated
    approximations are within a tenth."""
    rng = np.random.default_rng(4)
    for cells, directions, shift in ((4, 1, 0.0), (9, 4, 0.0), (9, 4, 1.5)):
        draws = rng.standard_normal((200_000, directions))
        draws[:, 0] += math.sqrt(directions * shift)
        limit = np.quantile(np.square(draws).sum(axis=1), 0.99)
        beyond = np.full(cells, math.sqrt(limit / directions))
        assert trust._chance(beyond, directions, shift) == pytest.approx(0.01, rel=0.2)


def dropping():
    """A model of independent attributes beside a measured dependence."""
    rng = np.random.default_rng(3)
    codes = chain(rng)
    codes[3] = (codes[0] > 1).astype(int)
    (lost,) = noisy(codes, [(0, 3)], rng)
    measurements = [*singles(codes, rng), *noisy(codes, [(1, 2)], rng)]
    model = fitted(measurements, [(1, 2)])
    return model, Evidence.of(model, [*measurements, lost], [])


def test_a_measured_dependence_that_the_model_drops_is_reported_and_widens_its_errors():
    model, evidence = dropping()
    assert evidence.dropped == [(0, 3)]
    schema = schema_of(one=SIZES)
    (sentence,) = dropped_pairs(schema, evidence)
    assert "one0 and one3 depend on each other" in sentence
    assert "workload='one0,one3' (--workload)" in sentence
    kept = model.marginal((1, 2))
    off = model.marginal((0, 3))
    assert (evidence.errors(model, (0, 3), off) / off).mean() > 3 * (
        evidence.errors(model, (1, 2), kept) / kept
    ).mean()


def named(model, evidence):
    delta = default_delta(RECORDS)
    return named_model(schema_of(one=SIZES), model, SIGMA, delta, evidence=evidence)


def test_a_released_model_has_its_errors_with_it(tmp_path):
    model = named(*dropping())
    model.save(tmp_path / "a.model")
    back = Model.load(tmp_path / "a.model")
    for some in (["one0"], ["one1", "one2"], ["one2", "one1"], ["one0", "one3"]):
        for one, other in zip(
            model.marginal(some, errors=True), back.marginal(some, errors=True), strict=True
        ):
            # A fit's propagation has other axes than that of a file: sums differ in their last bits.
            np.testing.assert_allclose(one, other, rtol=1e-12)
        assert str(model.trust(some)) == str(back.trust(some))
    measured, unknown = back.trust(["one2", "one1"]), back.trust(["one0", "one1"])
    assert (measured.known, measured.columns) == (MEASURED, ("one2", "one1"))
    assert 0 < measured.wrong < 0.1
    assert "one0 × one1: unknown." in str(unknown)
    assert "depend on each other for" in back.summary()
    assert "pairs of columns, 1 are known" in back.summary()


def test_a_result_names_what_is_known_and_warns_if_that_is_little():
    schema = schema_of(one=(2,) * 20)
    one = figures(dependence=[0.2], chance=[1e-9], model_dependence=[0.2])
    assert known_pairs(schema, one).endswith("independent ones: one0 × one1 20.0 % ± 1.0 %.")
    (warning,) = of_links(schema, one)
    assert warning.startswith("Only 2 of 20 columns have a known relation to another column")
    none = figures(dependence=[0.2])
    assert "none is known" in known_pairs(schema, none)
    every = figures(dependence=[0.2] * 19, chance=[1e-9] * 19, model_dependence=[0.2] * 19)
    assert of_links(schema, every) == ()


def test_a_description_counts_all_people_of_the_outer_population(tmp_path):
    inner = named(dropping()[0], None)
    replace(inner, others=(PartModel(("one",), inner.field),)).save(tmp_path / "a.model")
    assert f"{2 * inner.field.total:,.0f} records" in describe(tmp_path / "a.model")


def test_a_model_without_measurements_knows_nothing_of_its_errors():
    bare = named(dropping()[0], None)
    assert bare.trust("one0").known == UNKNOWN
    assert np.isinf(bare.marginal("one0", errors=True)[1]).all()


def test_a_column_of_one_value_leaves_others_as_well_known_as_without_it():
    rng = np.random.default_rng(11)
    one_way = [
        Measurement((a,), (None,), 500.0 + SIGMA * rng.standard_normal(3), SIGMA) for a in (0, 2)
    ]
    model = fit((3, 1, 3), one_way, 1500, tree=junction_tree((3, 1, 3), []))
    evidence = Evidence.of(model, one_way, [])
    assert [evidence.kind(some) for some in ((0, 1), (1, 0), (0, 2))] == [MEASURED] * 2 + [UNKNOWN]
    alone = model.marginal((0,))
    errors = evidence.errors(model, (0,), alone)
    assert (errors > 0).all()
    beside = evidence.errors(model, (1, 0), alone[None])
    np.testing.assert_array_equal(beside, errors[None])
    assert evidence.errors(model, (1,), np.full(1, 1500.0)) == 0


def test_a_file_with_wrong_figures_is_refused(tmp_path):
    model = named(*dropping())
    columns = model.evidence.to_columns()
    for change in ({"noise": [1.0]}, {"spread": [math.nan] * 2}, {"second": [9] * 2}):
        with pytest.raises(ModelError):
            Evidence.of_columns(columns | change)
    object.__setattr__(model.evidence, "first", model.evidence.second)
    model.save(tmp_path / "a.model")
    with pytest.raises(MessageError, match="malformed"):
        Model.load(tmp_path / "a.model")


def test_the_command_writes_a_table_of_trust_with_a_label(tmp_path):
    saved, rows, trust = (tmp_path / name for name in ("a.model", "rows.csv", "trust.csv"))
    named(*dropping()).save(saved)
    good("sample", saved, "--rows 5 --out", rows, "--trust", trust)
    lines = trust.read_text().splitlines()
    assert lines[0].startswith('"columns","known","wrong","cell"')
    assert len(lines) == 1 + 4 + 6
    assert (tmp_path / "trust.csv.label.json").exists()
    assert "Two results" in refused("sample", saved, "--out", rows, "--trust", rows)

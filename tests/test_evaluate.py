"""Evaluation: distances against a slow count in dictionaries, and the choice of marginals."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from vertimrf import evaluate as module
from vertimrf.errors import PlanError, SchemaError, TableError
from vertimrf.evaluate import evaluate, random_marginals, tvd
from vertimrf.plan.attribute import Attribute
from vertimrf.plan.schema import Schema
from vertimrf.server.rows import decode
from vertimrf.tables.arrow import read_arrow, write_table


def draw(rng: np.random.Generator, sizes: tuple[int, ...], n: int) -> np.ndarray:
    return np.stack([rng.integers(size, size=n) for size in sizes]).astype(np.uint16)


def slow_distance(real: np.ndarray, synthetic: np.ndarray, attributes: tuple[int, ...]) -> float:
    p, q = (Counter(zip(*codes[list(attributes)].tolist(), strict=True)) for codes in (real, synthetic))
    n, m = real.shape[1], synthetic.shape[1]
    return sum(abs(p[cell] / n - q[cell] / m) for cell in p.keys() | q.keys()) / 2


# The last two are beyond int64 when multiplied out: 60,000^4 is about 2^63.5.
@pytest.mark.parametrize("sizes", [(2, 3, 4), (50, 60, 70), (5000, 1, 3), (60_000,) * 4, (65_535,) * 6])
def test_distances_agree_with_a_slow_count(sizes: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    real, synthetic = draw(rng, sizes, 300), draw(rng, sizes, 450)
    # Some common cells also where the domain is huge.
    synthetic[:, :200] = real[:, rng.integers(300, size=200)]
    for way in range(1, len(sizes) + 1):
        for attributes in itertools.combinations(range(len(sizes)), way):
            expected = slow_distance(real, synthetic, attributes)
            assert module.distance(real, synthetic, sizes, attributes) == pytest.approx(expected, abs=1e-12)


def test_both_ways_of_counting_agree() -> None:
    rng = np.random.default_rng(2)
    sizes = (7, 11, 13)
    real, synthetic = draw(rng, sizes, 500), draw(rng, sizes, 400)
    dense = module.distance(real, synthetic, sizes, (0, 1, 2))
    p, q = module.occupied_counts(real, synthetic, sizes, (0, 1, 2))
    assert (p.sum(), q.sum()) == (500, 400)
    assert 0.5 * np.abs(p / 500 - q / 400).sum() == pytest.approx(dense, abs=1e-12)


def test_the_ends_of_the_scale() -> None:
    rng = np.random.default_rng(3)
    real = draw(rng, (4, 4, 4, 4), 1000)
    shuffled = real[:, rng.permutation(1000)]
    assert tvd(real, shuffled, (4,) * 4, (1, 2, 3)) == {1: 0.0, 2: 0.0, 3: 0.0}
    assert tvd(np.zeros_like(real), np.ones_like(real), (4,) * 4, (1, 4)) == {1: 1.0, 4: 1.0}


def test_the_mean_is_over_all_marginals_if_they_are_few() -> None:
    rng = np.random.default_rng(4)
    sizes = (2, 3, 4, 5)
    real, synthetic = draw(rng, sizes, 60), draw(rng, sizes, 70)
    expected = [slow_distance(real, synthetic, pair) for pair in itertools.combinations(range(4), 2)]
    assert tvd(real, synthetic, sizes, (2,))[2] == pytest.approx(np.mean(expected), abs=1e-12)


def test_the_draw_is_distinct_fixed_and_independent_of_other_ways() -> None:
    drawn = random_marginals(15, 4, 300)
    assert len(set(drawn)) == 300
    assert all(list(subset) == sorted(set(subset)) and len(subset) == 4 for subset in drawn)
    assert drawn == random_marginals(15, 4, 300)
    assert drawn != random_marginals(15, 4, 300, seed=1)
    # Frozen, so that figures of different versions compare.
    assert (drawn[0], drawn[150], drawn[299]) == ((0, 1, 2, 5), (2, 4, 5, 14), (11, 12, 13, 14))
    rng = np.random.default_rng(5)
    real, synthetic = draw(rng, (3,) * 15, 50), draw(rng, (3,) * 15, 50)
    assert tvd(real, synthetic, (3,) * 15, (3, 4, 5))[4] == tvd(real, synthetic, (3,) * 15, (4,))[4]


@pytest.mark.parametrize("attributes", [12, 60])
def test_subsets_are_equally_likely(attributes: int) -> None:
    # 60 attributes have 487,635 4-way subsets, too many to list: the other branch.
    seeds, each = 60, 50
    counts = np.zeros(attributes)
    for seed in range(seeds):
        for subset in random_marginals(attributes, 4, each, seed):
            counts[list(subset)] += 1
    total = seeds * each
    share = 4 / attributes
    # An attribute is in a subset with probability share; drawing without replacement only shrinks the standard error.
    assert np.abs(counts / total - share).max() < 5 * math.sqrt(share * (1 - share) / total)


def test_marginals_across_parties() -> None:
    parties = [0, 0, 0, 1, 1, 2]
    spanning = random_marginals(6, 2, 300, parties=parties)
    expected = [(a, b) for a, b in itertools.combinations(range(6), 2) if parties[a] != parties[b]]
    assert spanning == expected
    triples = list(itertools.combinations(range(6), 3))
    assert random_marginals(6, 3, 300, parties=parties) == [triple for triple in triples if triple != (0, 1, 2)]
    some = random_marginals(100, 5, 40, parties=[0] * 99 + [1])
    assert len(some) == 40
    assert all(99 in subset for subset in some)
    rng = np.random.default_rng(6)
    real, synthetic = draw(rng, (3,) * 6, 80), draw(rng, (3,) * 6, 90)
    means = [slow_distance(real, synthetic, pair) for pair in expected]
    assert tvd(real, synthetic, (3,) * 6, (2,), parties=parties)[2] == pytest.approx(np.mean(means), abs=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((2, 3), "no 3-way marginals of 2 attributes"),
        ((2, 0), "no 0-way marginals"),
        ((2, 2, 0), "at least 1, not 0"),
        ((3, 2, 300, 0, [0, 0, 0]), "no 2-way marginals that span parties"),
        ((3, 1, 300, 0, [0, 0, 1]), "no 1-way marginals that span parties"),
    ],
)
def test_no_marginals_to_choose(arguments: tuple, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        random_marginals(*arguments)


SCHEMA = Schema.of(
    {
        "a": [Attribute.categorical("x", ["u", "v"], missing=True), Attribute.numeric("y", [0, 1, 2], integral=True)],
        "b": [Attribute.integer("z", 4)],
    }
)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Real tables of two parties in different record orders, all columns in one, and a synthetic table."""
    rng = np.random.default_rng(7)
    ids = pa.array([f"r{i}" for i in range(200)])
    real = decode(draw(rng, SCHEMA.sizes, 200), SCHEMA.attributes, rng).append_column("id", ids)
    tables = {
        "all": real,
        "a": real.select(["y", "id", "x"]),
        "b": real.select(["z", "id"]).take(rng.permutation(200)),
        "synthetic": decode(draw(rng, SCHEMA.sizes, 150), SCHEMA.attributes, rng).select(["z", "y", "x"]),
    }
    paths = {name: tmp_path / f"{name}.csv" for name in tables}
    for name, table in tables.items():
        write_table(table, paths[name])
    return paths


def test_tables_are_joined_and_compared(files: dict[str, Path]) -> None:
    one = evaluate([files["all"]], files["synthetic"], "id", SCHEMA, ways=(1, 2, 3))
    assert list(one["tvd"]) == ["1", "2", "3"]
    assert list(one["tvd_across_parties"]) == ["2", "3"]
    assert one["records"] == {"real": 200, "synthetic": 150}
    assert 0 < one["tvd"]["1"] < one["tvd"]["2"] < one["tvd"]["3"] < 0.5
    for order in (["a", "b"], ["b", "a"]):
        assert evaluate([files[name] for name in order], files["synthetic"], "id", SCHEMA, ways=(1, 2, 3)) == one
    same = evaluate([files["b"], files["a"]], files["all"], "id", SCHEMA, ways=(3,))
    assert same["tvd"] == {"3": 0.0}
    single = Schema.of({"p": SCHEMA.attributes})
    assert "tvd_across_parties" not in evaluate([files["all"]], files["all"], "id", single, ways=(2,))


def test_distances_stand_beside_what_to_judge_them_by() -> None:
    """y follows x at party a; z is on its own; the synthetic table has y of its own and z a third too often 0."""
    rng = np.random.default_rng(8)
    n = 3000
    x, z = rng.integers(0, 2, n), rng.integers(0, 4, n)
    y = np.where(x == 1, 1.5, 0.5)
    real = pa.table({"id": range(n), "x": np.where(x == 1, "u", "v"), "y": y.astype(int), "z": z})
    made = real.drop_columns(["id"]).set_column(1, "y", [rng.permutation(real["y"].to_numpy())])
    made = made.set_column(2, "z", [np.where(rng.random(n) < 1 / 3, 0, z)])
    out = evaluate([real], made, "id", SCHEMA, ways=(1, 2))
    assert out["tvd_resampled"]["2"] < 0.03
    assert out["tvd_independent"]["1"] == 0
    columns = {tuple(marginal["columns"]): marginal["tvd"] for marginal in out["columns"]}
    assert out["columns"][0]["columns"] == ["z"]
    # A third of the three quarters that were not 0; standard error below 0.01.
    assert abs(columns["z",] - 0.25) < 0.05
    assert (columns["x",], columns["y",]) == (0, 0)
    assert out["pairs"][0]["columns"] == ["x", "y"]
    assert abs(out["pairs"][0]["tvd"] - 0.5) < 0.05
    assert list(out["numbers"]) == ["y"]
    assert out["numbers"]["y"]["real"] == out["numbers"]["y"]["synthetic"]
    own = evaluate([real.select(["id", "x", "y"])], made, "id", SCHEMA, party="a")
    assert list(own["tvd"]) == ["2"]
    assert [marginal["columns"] for marginal in own["columns"]] == [["x"], ["y"]]
    with pytest.raises(SchemaError, match="no party 'c'"):
        evaluate([real], made, "id", SCHEMA, party="c")


def test_numbers_are_compared_as_they_were() -> None:
    schema = Schema.of({
        "a": [
            Attribute.numeric("cost", [0, 10, 100], missing=True),
            Attribute.temporal("day", "date", ["2020-01-01", "2020-01-11", "2020-02-01"]),
            Attribute.categorical("grade", [1, 2, 3]),
            Attribute.categorical("text", ["a"]),
        ]
    })  # fmt: skip
    n = 1000
    rng = np.random.default_rng(9)
    days = rng.integers(0, 31, n)
    cost = 3.0 * days + 1
    real = pa.table({
        "id": range(n),
        "cost": pa.array(cost, mask=days == 0),
        "day": pa.array((18262 + days).astype(np.int32)).cast(pa.date32()),
        "grade": 1 + days % 3,
        "text": ["a"] * n,
    })  # fmt: skip
    made = real.drop_columns(["id"]).set_column(0, "cost", [rng.permutation(cost)])
    out = evaluate([real], made, "id", schema)
    held = cost[days > 0]
    found = out["numbers"]["cost"]["real"]
    assert found["mean"] == pytest.approx(held.mean())
    assert found["deviation"] == pytest.approx(held.std())
    assert found["quantiles"]["0.95"] == pytest.approx(np.quantile(held, 0.95))
    assert out["numbers"]["day"]["real"]["mean"] == pytest.approx(18262 + days.mean())
    assert list(out["numbers"]) == ["cost", "day", "grade"]
    worst = out["correlations"][0]
    assert worst["columns"] == ["cost", "day"]
    assert worst["real"] == pytest.approx(1)
    # No correlation is left but by chance: five standard errors of 1 / sqrt(n).
    assert abs(worst["synthetic"]) < 5 / np.sqrt(n)


def test_bad_input_of_an_evaluation(files: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="No real table has the column 'z'"):
        evaluate([files["a"]], files["synthetic"], "id", SCHEMA)
    with pytest.raises(SchemaError, match="Two real tables have the column 'z'"):
        evaluate([files["all"], files["b"]], files["synthetic"], "id", SCHEMA)
    with pytest.raises(SchemaError, match=r"b\.csv lacks the column 'x', 'y'"):
        evaluate([files["all"]], files["b"], "id", SCHEMA)
    with pytest.raises(TableError, match="no id column 'who'"):
        evaluate([files["all"]], files["synthetic"], "who", SCHEMA)
    empty = tmp_path / "empty.csv"
    empty.write_text("x,y,z\n")
    with pytest.raises(TableError, match=r"empty\.csv has no records"):
        evaluate([files["all"]], empty, "id", SCHEMA)
    with pytest.raises(PlanError, match="no 4-way marginals"):
        evaluate([files["all"]], files["synthetic"], "id", SCHEMA, ways=(4,))
    real, other = tmp_path / "real.csv", tmp_path / "other.csv"
    real.write_text("id,x,y\n1,u,0\n")
    other.write_text("id,z\n2,0\n")
    with pytest.raises(TableError, match=r"real\.csv and .*other\.csv have no id in common"):
        evaluate([real, other], files["synthetic"], "id", SCHEMA)


@pytest.mark.data
def test_independent_attributes_on_the_papers_data(paper_data: Path) -> None:
    # Shuffling every column keeps the one-way marginals and nothing else. Known figure for NLTCS: 0.25.
    from vertimrf.tables.table import encode_table

    schema = Schema.load(paper_data / "nltcs-domain.json")
    codes = encode_table(paper_data / "nltcs.csv.gz", "record_id", schema.attributes).codes
    rng = np.random.default_rng(8)
    shuffled = np.stack([rng.permutation(row) for row in codes])
    distances = tvd(codes, shuffled, schema.sizes, (1, 3))
    assert distances[1] == 0
    assert 0.2 < distances[3] < 0.3


def test_tables_of_different_people(files: dict[str, Path]) -> None:
    """Those that all tables have are compared, or those that any has, what is not held being missing."""
    rng = np.random.default_rng(9)
    whole = read_arrow(files["all"])
    left = whole.select(["id", "x", "y"]).slice(0, 150)
    right = whole.select(["id", "z"]).slice(50).take(rng.permutation(150))
    both = whole.slice(50, 100)
    out = evaluate([left, right], both, "id", SCHEMA, ways=(1, 3))
    assert out["records"] == {"real": 100, "synthetic": 100, "tables": [150, 150]}
    assert out["tvd"] == {"1": 0.0, "3": 0.0}
    there = np.arange(200)
    outer = pa.table({
        "x": pc.if_else(pa.array(there < 150), whole["x"], None),
        "y": pc.if_else(pa.array(there < 150), whole["y"], None),
        "z": pc.if_else(pa.array(there >= 50), whole["z"], None),
        "held_by": pa.array(["a+b"] * 200),
    })
    out = evaluate([left, right], outer, "id", SCHEMA, ways=(1, 3), population="outer")
    assert out["records"] == {"real": 200, "synthetic": 200, "tables": [150, 150]}
    assert out["tvd"] == {"1": 0.0, "3": 0.0}
    assert evaluate([left, right], both, "id", SCHEMA, ways=(1,), population="outer")["tvd"]["1"] > 0.2
    with pytest.raises(TableError, match="no id in common"):
        evaluate([left.slice(0, 50), right], both, "id", SCHEMA)
    with pytest.raises(PlanError, match="inner or outer"):
        evaluate([left, right], both, "id", SCHEMA, population="left")

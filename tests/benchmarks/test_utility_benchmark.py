"""The table of what rows are good for: what it reads, resumes, shows and is held to."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import datasets, utility
from benchmarks.utility import CENTRAL, REAL, TWO, judged, markdown, measure, read_rows, verdicts
from benchmarks.verdict import FULL, held

DATA = datasets.load("generated")


def written(path: Path, codes: np.ndarray, names: tuple[str, ...] = DATA.names) -> Path:
    lines = [",".join(names), *(",".join(map(str, row)) for row in codes.T.tolist())]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_rows_are_read_by_name_and_refused_where_they_are_of_another_table(tmp_path: Path) -> None:
    codes = DATA.codes[:, :50]
    turned = written(tmp_path / "turned.csv", codes[::-1], DATA.names[::-1])
    np.testing.assert_array_equal(read_rows(turned, DATA), codes)
    with pytest.raises(ValueError, match="no column x7"):
        read_rows(written(tmp_path / "few.csv", codes[:-1], DATA.names[:-1]), DATA)
    with pytest.raises(ValueError, match="column x0 has other values than the codes 0 to 1"):
        read_rows(written(tmp_path / "other.csv", codes + 1), DATA)


def test_figures_of_the_real_rows_themselves() -> None:
    pytest.importorskip("sklearn")
    own, real = judged(DATA, DATA.codes, "x0", 0)
    assert own["k-marginal 2"] == own["k-marginal 3"] == 1000
    assert own["correlations"] == 0
    assert 0 < real["correlations"] < 0.05
    assert 900 < real["k-marginal 3"] < 1000
    # The trees of the real rows do not know the rows that they are tried on; those of all rows know them all.
    assert own["scikit-learn auc"] > real["scikit-learn auc"]
    assert "propensity" not in real


def test_the_table_its_bars_and_what_is_not_measured_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    aucs = {TWO: 0.88, CENTRAL: 0.9, "AIM of somebody": 0.885}
    made = {name: lambda seed, name=name: asked.append((name, seed)) or name for name in aucs}
    monkeypatch.setattr(
        utility, "judged",
        lambda data, name, label, seed: (
            {"scikit-learn auc": aucs[name] + seed / 100, "propensity": 0.6}, {"scikit-learn auc": 0.91}
        ),
    )  # fmt: skip
    store = tmp_path / "figures"
    found = dict(measure(DATA, "x0", 0.8, made, 1, store))
    found = dict(measure(DATA, "x0", 0.8, made, 2, store))
    assert sorted(asked) == sorted((name, seed) for name in aucs for seed in range(2))
    assert len([json.loads(line) for line in store.read_text().splitlines()]) == 6
    assert list(found) == [TWO, CENTRAL, "AIM of somebody", REAL]
    text = markdown(found)
    assert "| two parties | 0.8850 ± 0.0071 | 0.600 ± 0.000 |" in text
    assert "| real rows | 0.9100 ± 0.0000 | – |" in text
    assert "CatBoost" not in text
    judged_lines = [held(line, "utility", FULL) for line in verdicts(found, "adult: ")]
    assert [(line.holds, round(line.value, 3)) for line in judged_lines] == [(False, -0.02), (True, -0.005)]

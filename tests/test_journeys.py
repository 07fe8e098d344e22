"""The journeys run from the first command to the last, and what they measure is right as far as noise allows.

Noise comes of the operating system, so that every bound is far beyond five of the standard deviations seen over redraws.
"""

import importlib
from pathlib import Path

import pytest

import vertimrf

FOLDER = Path(vertimrf.__file__).parents[1] / "examples" / "journeys"

pytestmark = pytest.mark.slow


def journey(name, monkeypatch):
    if not FOLDER.is_dir():
        pytest.skip("installed without its examples")
    pytest.importorskip("pandas")
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module(name)


def test_a_diabetes_registry_from_two_csv_files_to_trees(tmp_path, monkeypatch, capsys):
    pytest.importorskip("sklearn")
    # A command with another exit code than due ends it.
    figures = journey("diabetes_registry", monkeypatch).main(tmp_path, epsilon=4.0)
    said = capsys.readouterr().out
    assert "unpad" in said
    assert "'sex' counts as one column that hospital and insurer hold" in said
    for column, (mean, deviation, made, spread) in figures["moments"].items():
        assert abs(made - mean) < 0.1 * deviation, column
        # Over redraws the ratio's deviation is 0.01 or less; 0.04 and 0.02 in the two longest tails.
        assert spread == pytest.approx(
            deviation, rel=0.25 if column in ("hba1c", "cost") else 0.1
        ), column
    assert figures["dates"][0] >= "2021-01-01"
    assert figures["dates"][1] <= "2023-12-31"
    # 1,200 of 20,000 patients, known with a standard error of 50.
    assert figures["rate"][1] == pytest.approx(figures["rate"][0], abs=0.02)
    assert figures["sampled"] == {"yes"}
    # Across parties: who has the outcome has a higher HbA1c, by more than one; all patients' mean is 6.8.
    assert figures["hba1c_of_ill"][1] > 7.2
    auc = figures["auc"]
    assert auc["real"] > 0.75
    assert auc["plain"] > 0.6
    assert auc["wanted"] > 0.65


def test_a_clinic_and_a_pharmacy_that_know_different_people(tmp_path, monkeypatch, capsys):
    figures = journey("clinic", monkeypatch).main(tmp_path, records=10_000)
    assert "impossible, and so in no row" in capsys.readouterr().out
    for population, values in figures.items():
        assert values["people"] == (6_000 if population == "inner" else 14_000)
        assert abs(values["estimated"] - values["people"]) < 5 * values["error"]
        # 87 and 100 records over redraws: far less than the thousands of people that one party alone holds.
        assert values["error"] < 300
        assert abs(values["rows"] - values["estimated"]) < 3 + values["error"]
        assert values["impossible"] == 0
        assert values["three_way"]["tvd"] < 0.9 * values["three_way"]["tvd_independent"]
        assert values["diagnoses"] > 5
    assert figures["inner"]["held_by"] == {}
    assert set(figures["outer"]["held_by"]) == {"clinic", "pharmacy", "clinic+pharmacy"}

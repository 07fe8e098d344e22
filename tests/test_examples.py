"""The examples run, and show what they say they show."""

from __future__ import annotations

import runpy
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_a_deployment_in_python(capsys):
    result = runpy.run_path(str(EXAMPLES / "roles.py"))["main"]()
    assert result.ledger.standing.private
    assert result.warnings == ()
    rows = result.table.to_pandas()
    assert list(rows) == ["age", "smoker", "claims"]
    # Who claims twice or more smokes: known at different parties, and 3,500 to 1,500 records against noise of a hundred.
    assert rows.loc[rows["claims"] >= 2, "smoker"].mean() > 0.8
    assert rows.loc[rows["claims"] < 2, "smoker"].mean() < 0.2
    assert "fingerprint" in capsys.readouterr().out

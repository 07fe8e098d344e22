"""A clinic and a pharmacy that know different people: impossible combinations, a private domain, and an overlap of people.

The tables are generated. A cancelled visit has no waiting time, and every other visit has one. Nobody knows which of many
diagnoses are frequent, so the clinic finds this out with noise. Six in ten of either's people are also at the other. The
results are two tables: of the people whom both know, and of everybody.

    python examples/journeys/clinic.py [FOLDER]

It needs `pip install 'vertimrf[experiments]'`.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from shown import exchanged, released, step, type_in

# What is public about each party's columns. Which diagnoses are frequent is not: `values = "private"`.
PARTS = {
    "clinic": """
[[party]]
name = "clinic"

[[party.attribute]]
name = "age"
bounds = [0, 110]
bins = 11
integral = true
clamp = true

[[party.attribute]]
name = "diagnosis"
values = "private"
most = 30

[[party.attribute]]
name = "cancelled"
values = [false, true]

[[party.attribute]]
name = "waited"
edges = [0, 5, 10, 20, 30, 45, 60, 90, 120, 300]
integral = true
clamp = true
missing = true

[[party.impossible]]
cancelled = true
waited = {missing = false}

[[party.impossible]]
cancelled = false
waited = "missing"
""",
    "pharmacy": """
[[party]]
name = "pharmacy"

[[party.attribute]]
name = "medicines"
codes = 10

[[party.attribute]]
name = "insured"
values = ["public", "private", "none"]

[[party.attribute]]
name = "spent"
edges = [0, 10, 25, 50, 75, 100, 150, 200, 300, 500]
resolution = 0.01
clamp = true
""",
}
COMMON = 0.6  # of either party's people


def people(records: int, seed: int) -> dict[str, pd.DataFrame]:
    """The parties' tables, each of so many people. Some people are in both, older ones more often."""
    rng = np.random.default_rng(seed)
    everybody = round(records * (2 - COMMON))
    age = rng.integers(0, 100, everybody)
    cancelled = rng.random(everybody) < 0.12
    waited = np.minimum(np.round(rng.gamma(1.6, 20, everybody)), 299)
    medicines = np.minimum(rng.poisson(0.3 + age / 30), 9)
    diagnosis = np.minimum(rng.zipf(1.5, everybody) + 3 * (age > 60), 400)
    table = pd.DataFrame(
        {
            "person": [f"p{person}" for person in rng.permutation(everybody)],
            "age": age,
            "diagnosis": [f"D{code:03d}" for code in diagnosis],
            "cancelled": cancelled,
            "waited": pd.array(np.where(cancelled, -1, waited).astype(int), dtype="Int64"),
            "medicines": medicines,
            "insured": rng.choice(["public", "private", "none"], everybody, p=[0.7, 0.25, 0.05]),
            "spent": np.round(np.exp(rng.normal(2.6 + 0.25 * medicines, 0.8, everybody)), 2),
        }
    )
    table.loc[cancelled, "waited"] = pd.NA
    # Older people are more often at both, because the order in which people are dealt depends on age.
    table = table.iloc[np.argsort(age / 100 + rng.normal(0, 1, everybody))[::-1]]
    both = round(records * COMMON)
    alone = records - both
    rest = table.iloc[both:].sample(frac=1, random_state=seed)
    held = {
        "clinic": pd.concat([table.iloc[:both], rest.iloc[:alone]]),
        "pharmacy": pd.concat([table.iloc[:both], rest.iloc[alone:]]),
    }
    columns = {
        "clinic": ["age", "diagnosis", "cancelled", "waited"],
        "pharmacy": ["medicines", "insured", "spent"],
    }
    return {
        name: rows[["person", *columns[name]]].sample(frac=1, random_state=seed)
        for name, rows in held.items()
    }


def impossible(rows: pd.DataFrame) -> int:
    """Number of rows with an impossible visit."""
    cancelled = rows["cancelled"].astype("boolean")
    return int(
        (cancelled & rows["waited"].notna()).sum() + (~cancelled & rows["waited"].isna()).sum()
    )


def protocol(folder: Path, population: str, agreed: str) -> tuple[pd.DataFrame, dict[str, Any]]:
    """One plan, carried out; returns the synthetic table and the report."""
    base = folder / population
    exchanged(
        folder, base, f"{agreed} --population {population}", dict.fromkeys(PARTS, "--id person")
    )
    result = released(base, PARTS)
    real = " ".join(f"--real {folder}/{name}.csv" for name in PARTS)
    step("Here the tables are in one place, so that the result can be compared with the truth.")
    evaluating = f"--synthetic {result}/synthetic.parquet --id person --schema {folder}/schema.toml --population {population}"
    type_in(f"evaluate {real} {evaluating} --marginals 50 --json {base}.quality.json", most=30)
    report = json.loads((result / "report.json").read_text())
    report["quality"] = json.loads(Path(f"{base}.quality.json").read_text())
    return pd.read_parquet(result / "synthetic.parquet"), report


def main(
    folder: Path | None = None,
    records: int = 15_000,
    epsilon: float = 2.0,
    megabytes: float = 1.0,
    seed: int = 0,
) -> dict[str, Any]:
    """The whole journey; returns the figures that it prints at the end."""
    if folder is None:
        with tempfile.TemporaryDirectory() as made:
            return main(Path(made), records, epsilon, megabytes, seed)
    held = people(records, seed)
    for name, rows in held.items():
        rows.to_csv(folder / f"{name}.csv", index=False)
        (folder / f"{name}.toml").write_text(PARTS[name])

    step(
        "The clinic finds out which diagnoses are frequent, for a quarter of the budget. The file that it writes has the cost."
    )
    finding = (
        f"--schema {folder}/clinic.toml --epsilon {epsilon / 4} --out {folder}/clinic.found.toml"
    )
    type_in(f"schema domains {folder}/clinic.csv --id person {finding}")
    type_in(
        f"schema merge {folder}/clinic.found.toml {folder}/pharmacy.toml --out {folder}/schema.toml"
    )

    agreed = f"--epsilon {epsilon} --expected-records {records} --message-mb {megabytes}"
    type_in(f"plan --schema {folder}/schema.toml {agreed}", most=40)
    figures: dict[str, Any] = {}
    truth = {"inner": round(records * COMMON), "outer": round(records * (2 - COMMON))}
    for population, of in (("inner", "the people whom both know"), ("outer", "everybody")):
        step(f"A table of {of}.")
        made, report = protocol(folder, population, agreed)
        told = report["overlap"][population]
        three = {
            what: float(report["quality"][what]["3"])
            for what in ("tvd", "tvd_resampled", "tvd_independent")
        }
        figures[population] = {
            "people": truth[population],
            "estimated": told["records"],
            "error": told["error"],
            "rows": len(made),
            "impossible": impossible(made),
            "three_way": three,
            "diagnoses": int(made["diagnosis"].nunique()),
            "held_by": made["held_by"].value_counts().to_dict() if "held_by" in made else {},
        }
    step("What was measured:")
    for population, found in figures.items():
        print(
            f"  {population}: {found['people']:,} people, estimated {found['estimated']:,.0f} ± {found['error']:,.0f}; "
            f"{found['impossible']} of {found['rows']:,} rows are impossible; {found['diagnoses']} diagnoses;"
        )
        print(
            "    three-way distance {tvd:.3f} (records drawn from the truth {tvd_resampled:.3f}, independent columns "
            "{tvd_independent:.3f})".format(**found["three_way"])
        )
    return figures


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)

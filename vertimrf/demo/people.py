"""Small tables of made-up people for the tutorials: a hospital's and an insurer's, and their schema."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from ..errors import PlanError
from ..files.results import save
from ..tables.write import write_table

PEOPLE = 4000
SCHEMA = """\
# What everybody may know: every column, its holder, and the values that it may have.
ids = "9"  # an id is a whole number, written without leading zeros

[[party]]
name = "hospital"

[[party.attribute]]
name = "age"
bounds = [0, 100]
bins = 10
integral = true

[[party.attribute]]
name = "smoker"
values = ["no", "yes"]

[[party]]
name = "insurer"

[[party.attribute]]
name = "claims"
codes = 5
"""


def people() -> dict[str, pa.Table]:
    """The tables of both parties, the same ones every time; ``claims`` grow with ``age``.

    Returns:
        ``{"hospital": table, "insurer": table}`` of 4,000 people each. Both have the column
        ``person_id``, in different orders.
    """
    rng = np.random.default_rng(0)
    age = rng.integers(0, 100, PEOPLE)
    smoker = np.where(rng.random(PEOPLE) < 0.9 - age / 125, "yes", "no")
    claims = np.minimum(rng.poisson(age / 25), 4)
    person, order = 100_000 + rng.permutation(PEOPLE), rng.permutation(PEOPLE)
    return {
        "hospital": pa.table({"person_id": person, "age": age, "smoker": smoker}),
        "insurer": pa.table({"person_id": person[order], "claims": claims[order]}),
    }


def write_people(folder: Path) -> list[Path]:
    """Write ``hospital.csv``, ``insurer.csv`` and ``schema.toml`` into a folder.

    Args:
        folder: the folder. It is made if it is missing.

    Returns:
        The files.

    Raises:
        PlanError: one of the files is there already.
    """
    tables = {folder / f"{name}.csv": table for name, table in people().items()}
    schema = folder / "schema.toml"
    there = [path for path in (*tables, schema) if path.exists()]
    if there:
        raise PlanError(
            f"{there[0]} is there already, and is not overwritten: name another folder."
        )
    folder.mkdir(parents=True, exist_ok=True)
    for path, table in tables.items():
        write_table(table, path)
    save(schema, SCHEMA)
    return [*tables, schema]

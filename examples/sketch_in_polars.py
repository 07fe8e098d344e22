"""Sketches of ids as an expression of polars: one of each ward, then how many people two wards share.

pip install vertimrf polars && python examples/sketch_in_polars.py
"""

from __future__ import annotations

import secrets

import numpy as np
import polars as pl

from vertimrf import Sketch


def sketched(column: str, key: bytes, keys: int = 4096) -> pl.Expr:
    """The bytes of the sketch of a column of ids."""
    return pl.col(column).map_batches(
        lambda ids: Sketch.encode(ids, key, keys).to_bytes(),
        return_dtype=pl.Binary,
        returns_scalar=True,
    )


def main() -> tuple[float, float]:
    """Patients of two wards whom both saw: 2,000 of 10,000."""
    frame = pl.DataFrame(
        {
            "ward": np.repeat(["north", "south"], 6_000),
            "patient": np.r_[0:6_000, 4_000:10_000],
        }
    )
    wards = frame.group_by("ward").agg(sketched("patient", secrets.token_bytes(32)))
    north, south = (Sketch.from_bytes(data) for data in wards["patient"])
    shared, error = north.intersection(south)
    print(f"{north}\n{shared:,.0f} ± {error:,.0f} patients of both wards")
    return shared, error


if __name__ == "__main__":
    main()

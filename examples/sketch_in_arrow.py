"""Sketches of ids as an aggregate function of Arrow: one of each ward, then how many people two wards share.

pip install vertimrf && python examples/sketch_in_arrow.py
"""

from __future__ import annotations

import secrets

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vertimrf import Sketch


def register(key: bytes, keys: int = 4096) -> None:
    """Register ``sketch``, which turns a column of text into the bytes of its sketch."""

    def sketch(context: pc.UdfContext, ids: pa.Array) -> pa.Scalar:
        return pa.scalar(Sketch.encode(ids, key, keys).to_bytes(), pa.binary())

    about = {"summary": "Sketch a set of ids", "description": "The bytes of a vertimrf.Sketch."}
    pc.register_aggregate_function(sketch, "sketch", about, {"ids": pa.string()}, pa.binary())


def main() -> tuple[float, float]:
    """Patients of two wards whom both saw: 2,000 of 10,000."""
    register(secrets.token_bytes(32))
    patients = np.r_[0:6_000, 4_000:10_000]
    wards = np.repeat(["north", "south"], 6_000)
    table = pa.table({"ward": wards, "patient": pa.array(patients).cast(pa.string())})
    made = table.group_by("ward").aggregate([("patient", "sketch")])["patient_sketch"]
    north, south = (Sketch.from_bytes(data.as_py()) for data in made)
    shared, error = north.intersection(south)
    print(f"{north}\n{shared:,.0f} ± {error:,.0f} patients of both wards")
    return shared, error


if __name__ == "__main__":
    main()

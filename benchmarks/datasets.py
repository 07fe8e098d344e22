"""The paper's data sets, and tables made up for machines without them."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.uint16]

NAMES = ("nltcs", "adult", "br2000", "fire", "pisa")
# Beside the checkout; every script takes another by --data.
FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data"
ADULT_SIZES = (16, 7, 16, 16, 16, 7, 14, 6, 5, 2, 8, 15, 16, 41, 2)
ADULT_RECORDS = 45_222
GENERATED_RECORDS = 5000


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table of integer codes.

    Attributes:
        name: of the data set.
        names: attribute names [length d].
        sizes: codes per attribute [length d].
        codes: the records [shape=(d, n), uint16].
    """

    name: str
    names: tuple[str, ...]
    sizes: tuple[int, ...]
    codes: Codes

    @property
    def records(self):
        """Number of records."""
        return int(self.codes.shape[1])

    def part(self, rows):
        """Some of the records."""
        return Dataset(self.name, self.names, self.sizes, np.ascontiguousarray(self.codes[:, rows]))


def files(name, folder=FOLDER):
    """A data set's table (record_id, then integer codes) and its domain ({attribute: size})."""
    return folder / f"{name}.csv.gz", folder / f"{name}-domain.json"


def write(data, folder):
    """A table as the files that :func:`files` names."""
    import pyarrow as pa
    import pyarrow.csv

    table, domain = files(data.name, folder)
    columns = {
        "record_id": np.arange(data.records),
        **dict(zip(data.names, data.codes, strict=True)),
    }
    with pa.CompressedOutputStream(str(table), "gzip") as out:
        pyarrow.csv.write_csv(pa.table(columns), out)
    domain.write_text(json.dumps(dict(zip(data.names, data.sizes, strict=True))))


def present(name, folder=FOLDER):
    """Whether a folder has a data set, or it needs none: see :func:`load`."""
    return name == "generated" or all(path.is_file() for path in files(name, folder))


@functools.lru_cache(maxsize=4)
def load(name, folder=FOLDER):
    """Read a data set; "generated" needs no file.

    Raises:
        FileNotFoundError: the folder lacks it.
    """
    if name == "generated":
        return generated()
    if not present(name, folder):
        raise FileNotFoundError(
            f"{folder} has no {name}.csv.gz with {name}-domain.json; give their folder with --data."
        )
    import pyarrow.csv

    table_file, domain_file = files(name, folder)
    domain = json.loads(domain_file.read_text())
    table = pyarrow.csv.read_csv(table_file)
    codes = np.stack([table[column].to_numpy().astype(np.uint16) for column in domain])
    return Dataset(name, tuple(domain), tuple(domain.values()), codes)


def generated(records=GENERATED_RECORDS, seed=0):
    """Eight attributes that copy a hidden type with some error."""
    rng = np.random.default_rng(seed)
    sizes = (2, 3, 2, 4, 2, 3, 2, 4)
    hidden = rng.integers(0, 4, records)
    rows = []
    for size in sizes:
        noise = rng.random(records) < 0.35
        rows.append(np.where(noise, rng.integers(0, size, records), hidden % size))
    codes = np.ascontiguousarray(np.stack(rows).astype(np.uint16))
    return Dataset("generated", tuple(f"x{i}" for i in range(len(sizes))), sizes, codes)


def adult(folder=FOLDER):
    """Adult, or where it is not a table of its shape."""
    return load("adult", folder) if present("adult", folder) else adult_like()


def adult_like():
    """A table of Adult's shape, for timings: noisy copies of one hidden number, their values skewed."""
    rng = np.random.default_rng(0)
    codes = np.zeros((len(ADULT_SIZES), ADULT_RECORDS), np.uint16)
    hidden = rng.random(ADULT_RECORDS)
    for i, size in enumerate(ADULT_SIZES):
        mixed = np.where(rng.random(ADULT_RECORDS) < 0.7, hidden, rng.random(ADULT_RECORDS))
        codes[i] = np.minimum((mixed**2 * size).astype(np.uint16), size - 1)
    return Dataset(
        "adult-like", tuple(f"x{i}" for i in range(len(ADULT_SIZES))), ADULT_SIZES, codes
    )

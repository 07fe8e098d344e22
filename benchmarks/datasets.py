"""The paper's data sets, and tables made up for machines without them."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

__all__ = ["FOLDER", "GENERATED", "NAMES", "Codes", "Dataset", "adult_like", "files", "load", "present"]

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
    def records(self) -> int:
        """Number of records."""
        return int(self.codes.shape[1])

    def part(self, rows: npt.NDArray[np.intp]) -> Dataset:
        """Some of the records."""
        return Dataset(self.name, self.names, self.sizes, np.ascontiguousarray(self.codes[:, rows]))


def files(name: str, folder: Path = FOLDER) -> tuple[Path, Path]:
    """A data set's table (record_id, then integer codes) and its domain ({attribute: size})."""
    return folder / f"{name}.csv.gz", folder / f"{name}-domain.json"


def present(name: str, folder: Path = FOLDER) -> bool:
    """Whether a folder has a data set."""
    return all(path.is_file() for path in files(name, folder))


@functools.lru_cache(maxsize=4)
def load(name: str, folder: Path = FOLDER) -> Dataset:
    """Read a data set; those of ``GENERATED`` need no file.

    Raises:
        FileNotFoundError: the folder lacks it.
    """
    if name in GENERATED:
        return GENERATED[name]()
    if not present(name, folder):
        raise FileNotFoundError(f"{folder} has no {name}.csv.gz with {name}-domain.json; give their folder with --data.")
    import pyarrow.csv

    table_file, domain_file = files(name, folder)
    domain = json.loads(domain_file.read_text())
    table = pyarrow.csv.read_csv(table_file)
    codes = np.stack([table[column].to_numpy().astype(np.uint16) for column in domain])
    return Dataset(name, tuple(domain), tuple(domain.values()), codes)


def generated(records: int = GENERATED_RECORDS, seed: int = 0) -> Dataset:
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


def adult_like() -> Dataset:
    """A table of Adult's shape, for timings: noisy copies of one hidden number, their values skewed."""
    rng = np.random.default_rng(0)
    codes = np.zeros((len(ADULT_SIZES), ADULT_RECORDS), np.uint16)
    hidden = rng.random(ADULT_RECORDS)
    for i, size in enumerate(ADULT_SIZES):
        mixed = np.where(rng.random(ADULT_RECORDS) < 0.7, hidden, rng.random(ADULT_RECORDS))
        codes[i] = np.minimum((mixed**2 * size).astype(np.uint16), size - 1)
    return Dataset("adult-like", tuple(f"x{i}" for i in range(len(ADULT_SIZES))), ADULT_SIZES, codes)


def payroll(records: int = 136_000, seed: int = 1) -> Dataset:
    """A city's payroll in the likeness of published ones: amounts in 101 bins, many of them zero, one of them a sum of others;
    501 job titles of which few have most people, and which nearly tell the department and much of the pay.
    """
    rng = np.random.default_rng(seed)
    departments, titles = 76, 501
    weights = 1 / np.arange(1, titles + 1) ** 1.05
    title = rng.choice(titles, records, p=weights / weights.sum())
    usual = np.minimum((rng.pareto(0.9, titles) * 4).astype(int), departments - 1)
    elsewhere = np.minimum((rng.pareto(0.8, records) * 3).astype(int), departments - 1)
    department = np.where(rng.random(records) < 0.9, usual[title], elsewhere)
    status, year = rng.choice(3, records, p=[0.75, 0.2, 0.05]), rng.integers(0, 3, records)
    worked = np.select([status == 0, status == 1], [1 - 0.05 * rng.random(records), 0.8 * rng.random(records)], 0.1)
    scale = np.exp(rng.normal(10.9, 0.5, titles))
    base = scale[title] * worked * (1 + 0.03 * year) * np.exp(rng.normal(0, 0.06, records))
    paid = (rng.random(titles) < 0.35)[title] & (rng.random(records) < 0.8)
    overtime = np.where(paid, base * rng.gamma(0.7, 0.25, records), 0)
    other = np.where(rng.random(records) < 0.55, base * rng.gamma(0.5, 0.1, records), 0)
    benefits = np.where(status == 2, 0, base * 0.28 + 6000 * worked + rng.normal(0, 700, records)).clip(0)
    most = {"base": 250_000, "overtime": 100_000, "other": 60_000, "benefits": 80_000, "total": 330_000}
    amounts = zip((base, overtime, other, benefits, base + overtime + other), most.values(), strict=True)
    binned = [np.minimum((amount / top * 100).astype(int), 100) for amount, top in amounts]
    codes = np.array([*binned, department, title, status, year], np.uint16)
    return Dataset("payroll", (*most, "department", "title", "status", "year"), (101,) * 5 + (departments, titles, 3, 3), codes)


def dense(records: int = 50_000, seed: int = 2) -> Dataset:
    """Twenty attributes of 2 to 12 values, all of which follow three hidden numbers."""
    rng = np.random.default_rng(seed)
    sizes = tuple(int(size) for size in rng.integers(2, 13, 20))
    hidden = rng.normal(size=(3, records))
    ranks = [np.argsort(np.argsort(rng.normal(size=3) @ hidden + 0.7 * rng.normal(size=records))) / records for _ in sizes]
    codes = np.array([(rank ** rng.uniform(0.5, 2) * size).astype(np.uint16) for rank, size in zip(ranks, sizes, strict=True)])
    return Dataset("dense", tuple(f"x{i}" for i in range(len(sizes))), sizes, codes)


def high_order(records: int = 50_000, seed: int = 3) -> Dataset:
    """Sixteen attributes of 2 to 6 values; every third is a noisy sum, modulo its size, of the two before it:
    of that no pair tells.
    """
    rng = np.random.default_rng(seed)
    sizes = tuple(int(size) for size in rng.integers(2, 7, 16))
    rows: list[Codes] = []
    for i, size in enumerate(sizes):
        own = rng.choice(size, records, p=rng.dirichlet(np.full(size, 2.0)))
        if i % 3 == 2:
            own = np.where(rng.random(records) < 0.85, (rows[-1].astype(int) + rows[-2]) % size, own)
        rows.append(own.astype(np.uint16))
    return Dataset("high-order", tuple(f"x{i}" for i in range(len(sizes))), sizes, np.array(rows))


# Tables that are made, none of which the planner's and the fit's constants were chosen on before this line.
GENERATED = {"generated": generated, "payroll": payroll, "dense": dense, "high-order": high_order}

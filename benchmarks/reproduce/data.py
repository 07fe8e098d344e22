"""The data sets: integer codes, and how their attributes are dealt to parties."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.uint16]

# The paper's two-party splits (VertiMRF, Table 1): so many attributes each, in the order of the columns. Its BR2000 has 13
# attributes, the file that the field passes around has 14.
PAPER_SPLITS = {"nltcs": (8, 8), "adult": (8, 7), "br2000": (7, 7), "fire": (8, 7), "generated": (4, 4)}
# What the classifier predicts; the paper takes each attribute of NLTCS in turn (None).
LABELS: dict[str, str | None] = {"nltcs": None, "adult": "income", "br2000": "a00", "fire": "priority", "generated": "x0"}
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
        return self.codes.shape[1]

    def part(self, rows: npt.NDArray[np.intp]) -> Dataset:
        """Some of the records."""
        return Dataset(self.name, self.names, self.sizes, np.ascontiguousarray(self.codes[:, rows]))

    @property
    def labels(self) -> tuple[int, ...]:
        """Attributes that a classifier is to predict."""
        label = LABELS[self.name]
        return tuple(range(len(self.names))) if label is None else (self.names.index(label),)


@functools.lru_cache(maxsize=4)
def load(name: str, folder: Path) -> Dataset:
    """Read NAME.csv.gz (record_id, then integer codes) and NAME-domain.json; "generated" needs no file.

    Raises:
        FileNotFoundError: the folder lacks the data set.
    """
    if name == "generated":
        return generated()
    import pyarrow.csv

    domain = json.loads((folder / f"{name}-domain.json").read_text())
    table = pyarrow.csv.read_csv(folder / f"{name}.csv.gz")
    codes = np.stack([table[column].to_numpy().astype(np.uint16) for column in domain])
    return Dataset(name, tuple(domain), tuple(domain.values()), codes)


def generated(records: int = GENERATED_RECORDS, seed: int = 0) -> Dataset:
    """Eight attributes that copy a hidden type with some error, for machines without the paper's data."""
    rng = np.random.default_rng(seed)
    sizes = (2, 3, 2, 4, 2, 3, 2, 4)
    hidden = rng.integers(0, 4, records)
    rows = []
    for size in sizes:
        noise = rng.random(records) < 0.35
        rows.append(np.where(noise, rng.integers(0, size, records), hidden % size))
    codes = np.ascontiguousarray(np.stack(rows).astype(np.uint16))
    return Dataset("generated", tuple(f"x{i}" for i in range(len(sizes))), sizes, codes)


def even_counts(attributes: int, parties: int) -> tuple[int, ...]:
    """Attributes per party, as equal as can be, larger ones first."""
    least, more = divmod(attributes, parties)
    return (least + 1,) * more + (least,) * (parties - more)


def deal(counts: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Attributes of each party, dealt in order."""
    ends = np.cumsum(counts)
    return tuple(tuple(range(int(end) - count, int(end))) for end, count in zip(ends, counts, strict=True))


def majority(values: npt.NDArray[np.uint16]) -> int:
    """The most frequent code; labels of more than two values become "this one or another"."""
    return int(np.bincount(values).argmax())

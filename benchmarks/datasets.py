"""The paper's data sets, and tables made up for machines without them."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

__all__ = [
    "FOLDER",
    "GENERATED",
    "NAMES",
    "Codes",
    "Dataset",
    "adult_like",
    "files",
    "load",
    "present",
    "write",
]

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
    return (
        name in GENERATED
        or name == "flights"
        or all(path.is_file() for path in files(name, folder))
    )


@functools.lru_cache(maxsize=4)
def load(name, folder=FOLDER):
    """Read a data set; those of ``GENERATED`` need no file, and "flights" are the demo's.

    Raises:
        FileNotFoundError: the folder lacks it.
        TableError: the demo's data are not installed.
    """
    if name in GENERATED:
        return GENERATED[name]()
    if name == "flights":
        return flights()
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


def flights():
    """The demo's flights, one row of all three parties' columns each."""
    # Not for who needs the other tables alone.
    from vertimrf.demo import flights as demo
    from vertimrf.tables.ids import IdKeys
    from vertimrf.tables.table import encode_table

    tables, schema = demo.flights()
    # The parties' tables have the same flights in the same order.
    parts = [schema.part(party) for party, _ in schema.parties]
    keys = IdKeys.drawn()
    codes = [
        encode_table(columns, demo.FLIGHT_ID, part, keys=keys).codes
        for columns, part in zip(tables, parts, strict=True)
    ]
    return Dataset("flights", schema.names, schema.sizes, np.concatenate(codes))


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


def payroll(records=136_000, seed=1):
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
    worked = np.select(
        [status == 0, status == 1], [1 - 0.05 * rng.random(records), 0.8 * rng.random(records)], 0.1
    )
    scale = np.exp(rng.normal(10.9, 0.5, titles))
    base = scale[title] * worked * (1 + 0.03 * year) * np.exp(rng.normal(0, 0.06, records))
    paid = (rng.random(titles) < 0.35)[title] & (rng.random(records) < 0.8)
    overtime = np.where(paid, base * rng.gamma(0.7, 0.25, records), 0)
    other = np.where(rng.random(records) < 0.55, base * rng.gamma(0.5, 0.1, records), 0)
    benefits = np.where(
        status == 2, 0, base * 0.28 + 6000 * worked + rng.normal(0, 700, records)
    ).clip(0)
    most = {
        "base": 250_000,
        "overtime": 100_000,
        "other": 60_000,
        "benefits": 80_000,
        "total": 330_000,
    }
    amounts = zip(
        (base, overtime, other, benefits, base + overtime + other), most.values(), strict=True
    )
    binned = [np.minimum((amount / top * 100).astype(int), 100) for amount, top in amounts]
    codes = np.array([*binned, department, title, status, year], np.uint16)
    return Dataset(
        "payroll",
        (*most, "department", "title", "status", "year"),
        (101,) * 5 + (departments, titles, 3, 3),
        codes,
    )


def dense(records=50_000, seed=2):
    """Twenty attributes of 2 to 12 values, all of which follow three hidden numbers."""
    rng = np.random.default_rng(seed)
    sizes = tuple(int(size) for size in rng.integers(2, 13, 20))
    hidden = rng.normal(size=(3, records))
    ranks = [
        np.argsort(np.argsort(rng.normal(size=3) @ hidden + 0.7 * rng.normal(size=records)))
        / records
        for _ in sizes
    ]
    codes = np.array(
        [
            (rank ** rng.uniform(0.5, 2) * size).astype(np.uint16)
            for rank, size in zip(ranks, sizes, strict=True)
        ]
    )
    return Dataset("dense", tuple(f"x{i}" for i in range(len(sizes))), sizes, codes)


def high_order(records=50_000, seed=3):
    """Sixteen attributes of 2 to 6 values; every third is a noisy sum, modulo its size, of the two before it:
    of that no pair tells.
    """
    rng = np.random.default_rng(seed)
    sizes = tuple(int(size) for size in rng.integers(2, 7, 16))
    rows = []
    for i, size in enumerate(sizes):
        column = rng.choice(size, records, p=rng.dirichlet(np.full(size, 2.0)))
        if i % 3 == 2:
            column = np.where(
                rng.random(records) < 0.85, (rows[-1].astype(int) + rows[-2]) % size, column
            )
        rows.append(column.astype(np.uint16))
    return Dataset("high-order", tuple(f"x{i}" for i in range(len(sizes))), sizes, np.array(rows))


def loan_book(records=43_000, seed=4):
    """A lender's book in the likeness of published ones: 30 columns, of up to 1,001 values; job titles and postcodes of which few
    have most borrowers; amounts in 101 bins, several of them zero for nearly everybody; and columns that follow exactly from
    others (state from postcode, grade from subgrade, rate from subgrade and month, instalment from amount, rate and term).
    """
    rng = np.random.default_rng(seed)

    def often(size, power):
        weights = 1 / np.arange(1, size + 1) ** power
        return rng.permutation(size)[rng.choice(size, records, p=weights / weights.sum())]

    def binned(amount, most, bins=101):
        return np.clip(amount / most * (bins - 1), 0, bins - 1).astype(int)

    def seldom(share, amount):
        return np.where(rng.random(records) < share, amount, 0.0)

    title, postcode = often(1001, 0.9), often(901, 0.7)
    pay, cost = rng.normal(size=1001), rng.normal(size=901)
    state = rng.integers(0, 51, 901)[postcode]
    income = np.exp(
        11.0 + 0.35 * pay[title] + 0.2 * cost[postcode] + 0.35 * rng.normal(size=records)
    )
    length = np.where(rng.random(records) < 0.3, 10, rng.integers(0, 12, records))
    home = np.where(rng.random(records) < 0.85, rng.choice(2, records), rng.choice(5, records))
    purpose = often(14, 1.6)
    risk = 0.7 * rng.normal(size=records) - 0.5 * np.log(income / 60_000) + 0.3 * (purpose % 3)
    subgrade = np.clip(
        np.argsort(np.argsort(risk)) / records * 30 + rng.exponential(1.2, records), 0, 34
    ).astype(int)
    month, term = (
        rng.integers(0, 60, records),
        (rng.random(records) < 0.15 + 0.012 * subgrade).astype(int),
    )
    rate = 180 + 20 * subgrade + month // 6 * 10
    wished = np.minimum(income * rng.uniform(0.1, 0.5, records), 40_000)
    amount = np.where(
        rng.random(records) < 0.6, np.round(wished / 5000) * 5000, np.round(wished / 400) * 400
    ).clip(1000)
    funded = np.where(rng.random(records) < 0.95, amount, amount * rng.random(records))
    instalment = funded * (1 / (36 + 24 * term) + rate / 12_000 * 0.6)
    debt = 100 * rng.beta(2, 4, records)
    balance = income * rng.gamma(0.9, 0.25, records)
    used = 100 * rng.beta(2 + 0.05 * subgrade, 2, records)
    accounts = rng.poisson(11, records) + rng.poisson(3, records) * home
    age = (60 - month) / (36 + 24 * term)
    bad = rng.random(records) < 0.02 + 0.008 * subgrade
    done = (age >= 1) | (rng.random(records) < 0.3)
    status = np.select([bad & done, bad, done], [2, 3 + (rng.random(records) < 0.4), 1], 0)
    paid = funded * np.where(
        bad, np.minimum(age, 1) * rng.random(records), np.where(done, 1.15, np.minimum(age, 1))
    )
    owed = np.where(status == 0, funded * (1 - np.minimum(age, 1)), 0)
    last = np.where(done & ~bad, funded * rng.beta(1, 3, records), instalment)
    columns = {
        "amount": (101, binned(amount, 40_000)),
        "funded": (101, binned(funded, 40_000)),
        "term": (2, term),
        "rate": (1001, rate),
        "instalment": (101, binned(instalment, 2200)),
        "grade": (7, subgrade // 5),
        "subgrade": (35, subgrade),
        "title": (1001, title),
        "length": (12, length),
        "home": (5, home),
        "income": (501, binned(income, 400_000, 501)),
        "verified": (3, rng.choice(3, records, p=[0.4, 0.35, 0.25])),
        "month": (60, month),
        "status": (5, status),
        "purpose": (14, purpose),
        "postcode": (901, postcode),
        "state": (51, state),
        "debt": (101, binned(debt, 60)),
        "late": (31, np.minimum(seldom(0.2, rng.geometric(0.5, records)), 30).astype(int)),
        "inquiries": (12, np.minimum(rng.poisson(0.03 * subgrade), 11)),
        "accounts": (61, np.minimum(accounts, 60)),
        "records": (11, np.minimum(seldom(0.1, rng.geometric(0.7, records)), 10).astype(int)),
        "balance": (501, binned(balance, 120_000, 501)),
        "used": (101, binned(used, 120)),
        "owed": (101, binned(owed, 40_000)),
        "paid": (101, binned(paid, 50_000)),
        "fees": (101, binned(seldom(0.04 + 0.3 * bad, rng.exponential(30, records)), 300)),
        "recovered": (
            101,
            binned(np.where(status == 2, seldom(0.6, funded * rng.beta(1, 6, records)), 0), 10_000),
        ),
        "last": (101, binned(last, 30_000)),
        "joint": (2, (rng.random(records) < 0.05).astype(int)),
    }
    sizes, rows = zip(*columns.values(), strict=True)
    return Dataset("loan-book", tuple(columns), sizes, np.array(rows, np.uint16))


# Tables that are made, none of which the planner's and the fit's constants were chosen on before this line.
GENERATED = {
    "generated": generated,
    "payroll": payroll,
    "dense": dense,
    "high-order": high_order,
    "loan-book": loan_book,
}

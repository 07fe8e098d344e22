"""Columns that seem to name people of whom a table has several rows, for drafts.

Example: a column patient_id with 79 values in 600 rows. A row is then no person, and epsilon would protect a row.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

# Words of a column's name that are a person, and that are a number of one.
PERSON = frozenset(
    [
        "patient",
        "person",
        "subject",
        "participant",
        "customer",
        "client",
        "member",
        "user",
        "student",
        "pupil",
        "employee",
        "insured",
        "insuree",
        "guest",
        "respondent",
        "citizen",
        "beneficiary",
        "household",
        "resident",
        "donor",
        "panelist",
        "worker",
        "account",
        "holder",
        "proband",
        "versicherter",
        "kunde",
    ]
)
NUMBER = frozenset(
    ["id", "ids", "no", "nr", "num", "number", "key", "code", "uuid", "guid", "pseudonym"]
)
ALONE = frozenset({"id", "pid", "mrn", "uid", "ssn"})
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
JOINED = re.compile(rf"({'|'.join(sorted(PERSON))})s?({'|'.join(sorted(NUMBER))})?")
# Fewest values of such a column, and fewest rows a value on average.
LEAST_VALUES, LEAST_ROWS = 20, 1.05


@dataclass(frozen=True)
class People:
    """Ids that seem to be of people with several rows.

    Attributes:
        people: number of distinct ids.
        rows: number of rows that have one.
        most: most rows of one.
    """

    people: int
    rows: int
    most: int

    @property
    def found(self) -> str:
        """What a draft says of the column."""
        return f"has {self.people:,} values in {self.rows:,} records, as ids of people who have several"

    def remedy(self, column: str) -> str:
        """What to write so that epsilon protects a person."""
        return f"give --person {column} and --records-per-person, up to {self.most}, so that epsilon protects a person and not a record"

    def as_id(self, column: str) -> str:
        """What to write if the column is that of record ids."""
        return f"one row of each counts; for more, name as --id a column that tells rows apart, and {self.remedy(column)}"


def names_people(name: str) -> bool:
    """Whether a column's name says that it has numbers of people."""
    words = [word.lower() for word in WORD.findall(name)]
    if len(words) == 1 and words[0] in ALONE:
        return True
    persons = [word for word in words if word.removesuffix("s") in PERSON or JOINED.fullmatch(word)]
    return bool(persons) and all(
        word in persons or word in NUMBER or word.isdigit() for word in words
    )


def people_of(name: str, column: pa.ChunkedArray) -> People | None:
    """The people that a column seems to name, of whom some have several rows; None if it does not.

    Args:
        name: name of the column.
        column: its cells.
    """
    return several_rows(column) if names_people(name) else None


def several_rows(column: pa.ChunkedArray) -> People | None:
    """Ids of which some have several rows; None of a column that has few values, or about one row of each."""
    try:
        texts = column.cast(pa.string()).drop_null()
    except pa.ArrowException:
        return None
    if not len(texts) or not pc.all(pc.match_substring_regex(texts, r"\d")).as_py():
        return None
    counts = texts.value_counts().field("counts")
    if len(counts) < LEAST_VALUES or len(texts) < LEAST_ROWS * len(counts):
        return None
    return People(len(counts), len(texts), pc.max(counts).as_py())

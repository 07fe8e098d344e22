"""The columns that each tool writes: few values each, as ISO texts, of which a tool makes its own types.

Each value occurs equally often. An empty text is a missing value.
"""

import csv
import random
from dataclasses import dataclass

CYCLE, RECORDS = 12, 240
SUMS = ("part", "rest", "total")
LONG = "A sentence of a discharge letter that says more than a column of codes would, "


@dataclass(frozen=True)
class Column:
    """A column.

    Attributes:
        name: its name, of at most eight characters, which all formats have room for.
        kind: whole, decimal, float, date, moment, zoned, clock, span (of hours), truth, text, or labelled (whole numbers with labels).
        values: the values, as ISO texts; spans as hours.
        about: what is special about it.
        labels: of a labelled column, what each code means.
        absent: codes that are declared to be missing.
    """

    name: str
    kind: str
    values: tuple[str, ...]
    about: str
    labels: tuple[tuple[int, str], ...] = ()
    absent: tuple[int, ...] = ()

    @property
    def cells(self):
        """The cell of each record. Columns are shuffled, except those that add up."""
        cells = [self.values[i % len(self.values)] for i in range(RECORDS)]
        if self.name not in SUMS:
            random.Random(self.name).shuffle(cells)
        return cells

    @property
    def right(self):
        """The values that a reader should find, without missing ones."""
        labels = {str(code): label for code, label in self.labels}
        gone = {"", *map(str, self.absent)}
        return {labels.get(value, value) for value in self.values if value not in gone}


def _column(name, kind, about, *values, **more):
    assert CYCLE % len(values) == 0, name
    return Column(name, kind, tuple(map(str, values)), about, **more)


COLUMNS = (
    _column("tiny", "whole", "8 bits", -128, -1, 0, 127),
    _column("small", "whole", "16 bits", -32768, 0, 1, 32767),
    _column("whole", "whole", "32 bits", -(2**31), -1, 0, 2**31 - 1),
    _column("large", "whole", "64 bits", -(2**63), 0, 5, 2**63 - 1),
    _column("odd", "whole", "beyond 2^53", *(2**53 + i for i in range(-1, 5))),
    _column("unsigned", "whole", "64 bits, no sign", 0, 7, 2**63, 2**64 - 1),
    _column("cents", "decimal", "two decimals", "0.10", "19.99", "-5.05", "1234567.89"),
    _column("digits", "decimal", "20 digits", *(f"1234567890123456.78{i}1" for i in range(4))),
    _column("ratio", "float", "floating point", 0.1, 0.30000000000000004, -1e-9, 1e15),
    _column("gaps", "whole", "whole numbers and missing values", 1, "", 3, 4),
    _column("born", "date", "before 1900", "1850-01-01", "1899-12-30", "1900-02-28", "1900-03-01"),
    _column("day", "date", "usual dates", "2019-12-31", "2020-02-29", "2020-03-01"),
    _column("until", "date", "after 2262", "2262-04-12", "2300-06-30", "9999-12-31"),
    _column("moment", "moment", "seconds", "2020-03-01 07:46:09", "2021-12-31 23:59:59"),
    _column("fine", "moment", "microseconds", "2020-03-01 07:46:09.123456", "2020-03-01 07:46:09.5"),
    _column("ends", "moment", "after 2262", "2300-06-30 12:00:00", "9999-12-31 23:59:59"),
    _column("zoned", "zoned", "with a zone", "2020-03-29 00:59:59Z", "2020-10-25 01:30:00Z"),
    _column("clock", "clock", "times of day", "00:00:00", "08:15:00", "23:59:59"),
    _column("stay", "span", "hours, more than a day", 1, 35, 199),
    _column("level", "ordered", "ordered", "low", "mid", "high"),
    _column("colour", "factor", "categories", "red", "green", "blue"),
    _column("answer", "labelled", "two codes, one label", 1, 2, 3, labels=((1, "yes"), (2, "no"), (3, "yes"))),
    _column(
        "rating", "labelled", "declared missing codes", 1, 2, 8, 9,
        labels=((1, "good"), (2, "bad"), (8, "refused"), (9, "unknown")), absent=(8, 9),
    ),
    _column("pay", "extended", "kinds of missing", 1000, 2500, ".a", ".b"),
    _column("flag", "whole", "0 and 1", 0, 1),
    _column("truth", "truth", "truth values", "true", "false"),
    _column("letter", "text", "300 characters", *((LONG * 4)[:298] + f"{i:02}" for i in range(3))),
    _column("zip", "text", "leading zeros", "00501", "01067", "99950"),
    _column("city", "text", "accents and scripts", "Łódź", "Zürich", "São Paulo", "北京"),
    _column("land", "text", "NA is Namibia", "NA", "DE", "FR"),
    _column("part", "decimal", "a summand", "1.25", "2.50"),
    _column("rest", "decimal", "a summand", "10.00", "20.00", "30.00"),
    _column("total", "decimal", "the sum of both", *(["11.25", "22.50", "31.25", "12.50", "21.25", "32.50"])),
)  # fmt: skip
IDS = "id"


def by_name(name):
    """The column of a name."""
    return next(column for column in COLUMNS if column.name == name)


def ids():
    """The ids of the records."""
    return [f"{7 * i + 100:06}" for i in range(RECORDS)]


def write_base(path):
    """A CSV file of the columns as texts, for tools to convert; missing cells are empty, and texts quoted."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        out = csv.writer(file, quoting=csv.QUOTE_ALL)
        out.writerow([IDS, *(column.name for column in COLUMNS)])
        out.writerows(zip(ids(), *(column.cells for column in COLUMNS), strict=True))

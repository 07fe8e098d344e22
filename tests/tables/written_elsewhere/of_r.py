"""R with its own functions, readr, haven and foreign."""

import csv

from .columns import COLUMNS, by_name
from .tool import CODES, LARGE, SECONDS, WHOLE_SECONDS, Format, Tool, called, program, rounded


def _write(folder):
    with open(folder / "kinds.csv", "w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["name", "kind"])
        out.writerows((column.name, column.kind) for column in COLUMNS)
    for file in folder.glob("haven*"):
        file.unlink()
    called(folder, "Rscript", "--vanilla", __file__.replace("of_r.py", "write.R"))


DOUBLE = rounded(*LARGE)
HOURS = {"stay": {hours: hours for hours in by_name("stay").values}}
TEXT = CODES | DOUBLE | HOURS | WHOLE_SECONDS
# Stata has no times of day, and SAS no factors.
STATA = (
    CODES
    | DOUBLE
    | SECONDS
    | {
        "answer": {},
        "rating": {"8": "refused", "9": "unknown"},
    }
)
SAS = (
    CODES
    | DOUBLE
    | SECONDS
    | {
        "level": {"low": "1", "mid": "2", "high": "3"},
        "colour": {"red": "1", "green": "2", "blue": "3"},
        "letter": {v: v[:200] for v in by_name("letter").values},
    }
)
R = Tool(
    "R",
    program("Rscript", "--version"),
    _write,
    (
        Format("write.csv", "base.R.csv", holds=TEXT | rounded("ratio", digits=15)),
        Format("write.csv2", "base.R.csv2", holds=TEXT | rounded("ratio", digits=15)),
        Format("readr CSV", "readr.csv", holds=TEXT),
        Format("readr TSV", "readr.tsv", holds=TEXT),
        Format("RDS", "table.rds"),
        Format("RData", "table.RData"),
        Format("dput", "table.R"),
        Format("haven SAV", "haven.sav", holds=DOUBLE | SECONDS),
        Format("haven ZSAV", "haven.zsav", holds=DOUBLE | SECONDS),
        Format("haven DTA 14", "haven.dta", holds=STATA),
        Format("haven DTA 15", "haven15.dta", holds=STATA),
        Format("haven XPT 5", "haven5.xpt", holds=SAS),
        Format("haven XPT 8", "haven8.xpt", holds=SAS),
        Format("foreign DTA", "foreign.dta", holds=CODES),
    ),
)
TOOLS = (R,)

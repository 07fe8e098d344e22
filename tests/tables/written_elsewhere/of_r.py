"""R with its own functions, readr, haven and foreign."""

import csv

from .columns import COLUMNS
from .tool import Format, Tool, called, program

CODES = {
    "answer": {"1": "1", "2": "2", "3": "3"},
    "rating": {"1": "1", "2": "2", "8": "8", "9": "9"},
}


def _write(folder):
    with open(folder / "kinds.csv", "w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["name", "kind"])
        out.writerows((column.name, column.kind) for column in COLUMNS)
    for file in folder.glob("haven*"):
        file.unlink()
    called(folder, "Rscript", "--vanilla", __file__.replace("of_r.py", "write.R"))


R = Tool(
    "R",
    program("Rscript", "--version"),
    _write,
    (
        Format("write.csv", "base.R.csv", holds=CODES),
        Format("write.csv2", "base.R.csv2", holds=CODES),
        Format("readr CSV", "readr.csv", holds=CODES),
        Format("readr TSV", "readr.tsv", holds=CODES),
        Format("RDS", "table.rds"),
        Format("RData", "table.RData"),
        Format("dput", "table.R"),
        Format("haven SAV", "haven.sav"),
        Format("haven ZSAV", "haven.zsav"),
        Format("haven DTA 14", "haven.dta"),
        Format("haven DTA 15", "haven15.dta"),
        Format("haven XPT 5", "haven5.xpt", holds=CODES),
        Format("haven XPT 8", "haven8.xpt", holds=CODES),
        Format("foreign DTA", "foreign.dta", holds=CODES),
    ),
)
TOOLS = (R,)

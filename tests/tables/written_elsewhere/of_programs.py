"""PSPP, gretl and LibreOffice Calc, through scripts of their own."""

import csv

from .columns import COLUMNS, IDS, by_name, ids
from .tool import CODES, LARGE, SECONDS, Format, Tool, called, program, rounded, without

# Formats of PSPP by kind; texts have their length in bytes.
FORMS = {
    "whole": "F20.0",
    "decimal": "F20.4",
    "float": "E24.16",
    "date": "SDATE10",
    "moment": "YMDHMS26.6",
    "zoned": "YMDHMS26.6",
    "clock": "TIME8",
    "span": "DTIME12",
    "labelled": "F2.0",
    "extended": "F8.0",
    "truth": "F1.0",
}


def _for_pspp(column, cell):
    """A cell as PSPP reads it, of which nothing is missing but an empty one."""
    if column.kind == "date":
        return cell.replace("-", "/")
    if column.kind in ("moment", "zoned"):
        return cell.replace("Z", "")
    if column.kind == "span":
        return f"{int(cell) // 24} {int(cell) % 24:02}:00:00"
    if column.kind == "truth":
        return str(int(cell == "true"))
    return "" if column.kind == "extended" and cell[:1] == "." else cell


def _pspp(folder):
    names = []
    for column in COLUMNS:
        length = max(len(value.encode()) for value in column.values)
        names.append(f"{column.name} {FORMS.get(column.kind, f'A{length}')}")
    with open(folder / "pspp.txt", "w", newline="", encoding="utf-8") as file:
        out = csv.writer(file, delimiter="|", lineterminator="\n")
        cells = ([_for_pspp(column, cell) for cell in column.cells] for column in COLUMNS)
        out.writerows(zip(ids(), *cells, strict=True))
    labels = []
    for column in COLUMNS:
        if column.labels:
            pairs = " ".join(f"{code} '{label}'" for code, label in column.labels)
            labels.append(f"VALUE LABELS {column.name} {pairs}.")
        if column.absent:
            labels.append(f"MISSING VALUES {column.name} ({', '.join(map(str, column.absent))}).")
    script = f"""SET LOCALE='UTF-8'.
GET DATA /TYPE=TXT /FILE='pspp.txt' /ENCODING='UTF-8' /DELIMITERS='|' /QUALIFIER='"' /VARIABLES={IDS} A6 {" ".join(names)}.
{chr(10).join(labels)}
VARIABLE LEVEL level (ORDINAL).
VARIABLE LABELS answer 'What they said'.
SAVE /OUTFILE='table.sav'.
SAVE /OUTFILE='table.zsav' /ZCOMPRESSED.
EXPORT /OUTFILE='table.por'.
SAVE TRANSLATE /OUTFILE='table.csv' /TYPE=CSV /FIELDNAMES /REPLACE.
SAVE TRANSLATE /OUTFILE='labels.csv' /TYPE=CSV /FIELDNAMES /CELLS=LABELS /REPLACE.
"""
    (folder / "write.sps").write_text(script)
    called(folder, "pspp", "-o", "log.txt", "write.sps")


def _gretl(folder):
    kept = [column for column in COLUMNS if column.kind in NUMBERS]
    with open(folder / "gretl.csv", "w", newline="") as file:
        out = csv.writer(file)
        out.writerow([IDS, *(column.name for column in kept)])
        cells = ([_for_pspp(column, cell) for cell in column.cells] for column in kept)
        out.writerows(zip((int(id) for id in ids()), *cells, strict=True))
    script = "open gretl.csv\n" + "".join(
        f'store "{folder}/table.{end}"\n' for end in ("csv", "gdt", "gdtb", "dta")
    )
    (folder / "write.inp").write_text(script.replace("gretl.csv", f'"{folder}/gretl.csv"'))
    called(folder, "env", f"HOME={folder}", "gretlcli", "-b", "write.inp")


def _libreoffice(folder):
    (folder / "table.csv").write_bytes((folder / "base.csv").read_bytes())
    # Comma, quotes, UTF-8, first line; texts in quotes are numbers or dates if they look so.
    read = "--infilter=CSV:44,34,76,1,,0,false,true,false"
    profile = f"-env:UserInstallation=file://{folder}/profile"
    for end in ("xlsx", "ods", "fods", "xls", "html"):
        called(folder, "soffice", profile, "--headless", read, "--convert-to", end, "table.csv")


DOUBLE = rounded(*LARGE)
FIFTEEN = rounded(*LARGE, "ratio", digits=15)
# gretl has numbers, and texts as codes of them.
NUMBERS = ("whole", "decimal", "float", "labelled", "extended", "truth", "ordered", "factor")
ABSENT = [column.name for column in COLUMNS if column.kind not in NUMBERS]
# Calc took these cells of a text file for numbers.
CALC = (
    CODES
    | FIFTEEN
    | {
        "zip": {v: str(int(v)) for v in by_name("zip").values},
        "stay": {v: v for v in by_name("stay").values},
        "pay": {v: v for v in by_name("pay").values},
    }
)
# Calc writes 2^53 - 1 to ODS with all digits, and larger numbers with fifteen.
ODD = FIFTEEN["odd"] | {str(2**53 - 1): str(2**53 - 1)}
PSPP = Tool(
    "PSPP",
    program("pspp", "--version"),
    _pspp,
    (
        Format("SAV", "table.sav", holds=DOUBLE | SECONDS),
        Format("ZSAV", "table.zsav", holds=DOUBLE | SECONDS),
        Format("portable", "table.por"),
        Format("CSV", "table.csv", holds=CODES | DOUBLE),
        Format(
            "CSV of labels",
            "labels.csv",
            holds=DOUBLE
            | {
                "answer": {"1": "yes", "2": "no", "3": "yes"},
                "rating": {"8": "refused", "9": "unknown"},
            },
        ),
    ),
)
GRETL = Tool(
    "gretl",
    program("gretlcli", "--version"),
    _gretl,
    (
        Format("CSV", "table.csv", holds=CODES | FIFTEEN | without(*ABSENT)),
        Format("DTA", "table.dta", holds=CODES | DOUBLE | without(*ABSENT)),
        Format("GDT", "table.gdt"),
        Format("GDTB", "table.gdtb"),
    ),
)
LIBREOFFICE = Tool(
    "LibreOffice Calc",
    program("soffice", "--version"),
    _libreoffice,
    (
        Format("XLSX", "table.xlsx", holds=CALC),
        Format("ODS", "table.ods", holds=CALC | {"odd": ODD}),
        Format("flat ODS", "table.fods"),
        Format("XLS", "table.xls"),
        Format("HTML", "table.html"),
    ),
)
TOOLS = (PSPP, GRETL, LIBREOFFICE)

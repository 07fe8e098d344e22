"""Write docs/written-elsewhere.md: what is read of each tool's files.

    python tests/tables/written_elsewhere/page.py            # every tool that is here: half an hour
    python tests/tables/written_elsewhere/page.py R SQLite   # only their parts

A part of the page is one tool's; those of tools that are not here stay.
"""

import argparse
import collections
import re
import sys
import tempfile
from pathlib import Path

if __name__ == "__main__":
    HERE = Path(__file__).resolve().parent
    sys.path[:0] = [str(HERE.parents[2]), str(HERE.parents[1]), str(HERE.parent)]

from written_elsewhere.columns import COLUMNS, write_base
from written_elsewhere.judge import NONE, RIGHT, SAID, WRONG, read
from written_elsewhere.register import TOOLS

PAGE = Path(__file__).resolve().parents[3] / "docs" / "written-elsewhere.md"
BEGIN, END = "<!-- tool: {} -->", "<!-- end: {} -->"
COUNTS = re.compile(
    r"^\| (?!format)[^|]+ \| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (\d*) \|", re.MULTILINE
)


def readings(tool):
    """What becomes of each file of a tool, by format."""
    with tempfile.TemporaryDirectory() as place:
        folder, results = Path(place, "tool"), Path(place, "results")
        folder.mkdir()
        results.mkdir()
        write_base(folder / "base.csv")
        tool.write(folder)
        found = {}
        for format in tool.formats:
            found[format] = read(format.within(folder), results, format.words, format.holds)
            print(f"{tool.name}, {format.name}: read", file=sys.stderr)
        return {format: _elsewhere(reading, place) for format, reading in found.items()}


def _elsewhere(reading, place):
    """A reading whose sentences name no folder of this machine."""
    refused = re.sub(rf"\S*{re.escape(place)}/tool/", "", reading.refused)
    return type(reading)(refused, reading.cells, reading.fault.replace(f"{place}/", ""))


def part(tool, found):
    """A tool's part of the page."""
    lines = [
        f"Version: {tool.version()}.",
        "",
        "| format | right | said | wrong | not written | refused |",
        "|---|---|---|---|---|---|",
    ]
    for format, reading in found.items():
        count = collections.Counter(cell.verdict for cell in reading.cells.values())
        numbers = " | ".join(str(count[verdict]) for verdict in (RIGHT, SAID, WRONG, NONE))
        lines.append(f"| {format.name} | {numbers} | {'1' * bool(reading.refused)} |")
    lines += ["", *(f"- {f.name}: “{r.refused}”" for f, r in found.items() if r.refused), ""]
    whole = {format: reading for format, reading in found.items() if reading.cells}
    if not whole:
        return "\n".join(lines).rstrip()
    lines += [
        f"| column | {' | '.join(format.name for format in whole)} |",
        f"|---|{'---|' * len(whole)}",
    ]
    sentences = {}
    for column in COLUMNS:
        cells = [_shown(column.name, reading, sentences) for reading in whole.values()]
        lines.append(f"| {column.name} | {' | '.join(cells)} |")
    lines += ["", *(f"{number}. {sentence}" for sentence, number in sentences.items())]
    return "\n".join(lines).rstrip()


def _shown(name, reading, sentences):
    """A cell of a table; its sentence goes below the table, with a number."""
    cell = reading.cells[name]
    if cell.verdict in (RIGHT, NONE):
        return cell.read or "–"
    about = f"`{name}`: {cell.read}".replace("|", "\\|")
    number = sentences.setdefault(about, len(sentences) + 1)
    return f"{'**wrong**' if cell.verdict == WRONG else 'said'}, {number}"


def put(text, name, content):
    """The page with another part of a tool."""
    begin, end = BEGIN.format(name), END.format(name)
    made = f"{begin}\n{content}\n{end}"
    if begin not in text:
        return f"{text.rstrip()}\n\n## {name}\n\n{made}\n"
    head, rest = text.split(begin)
    return head + made + rest.split(end)[1]


def totals(text):
    """The page with the sums of all parts."""
    rows = [tuple(int(n or 0) for n in row) for row in COUNTS.findall(text)]
    right, said, wrong, none, refused = map(sum, zip(*rows, strict=True))
    tools = text.count("<!-- tool: ")
    content = (
        f"{tools} tools, {len(rows)} formats, of which {refused} are refused in one sentence, {len(COLUMNS)} columns. Of "
        f"{right + said + wrong:,} columns in files that are read, {right:,} are right, {said} are named by a sentence, {wrong} are wrong. "
        f"{none} were not written."
    )
    begin, end = "<!-- totals -->", "<!-- end: totals -->"
    head, rest = text.split(begin)
    return f"{head}{begin}\n{content}\n{end}{rest.split(end)[1]}"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tools", nargs="*", metavar="TOOL", help=", ".join(TOOLS))
    chosen = parser.parse_args().tools or [*TOOLS]
    faults = 0
    for tool in (TOOLS[name] for name in chosen):
        if tool.version() is None:
            print(f"{tool.name} is not here.", file=sys.stderr)
            continue
        found = readings(tool)
        for format, reading in found.items():
            if reading.fault:
                faults += 1
                print(f"{tool.name}, {format.name}: {reading.fault}", file=sys.stderr)
        text = put(PAGE.read_text(), tool.name, part(tool, found))
        PAGE.write_text(totals(text))
    raise SystemExit(1 if faults else 0)


if __name__ == "__main__":
    main()

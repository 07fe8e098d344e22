"""Read a file as a user does (draft, check, synthesize), and compare each cell with what was written."""

import contextlib
import datetime
import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

import pyarrow.parquet
from builders import KEYS
from commands import run

from vertimrf.plan.schema import Schema
from vertimrf.tables.codebook import told_apart
from vertimrf.tables.columns import Columns
from vertimrf.tables.derived import as_stated, party_table
from vertimrf.tables.read_options import ReadOptions

from .columns import COLUMNS, IDS, RECORDS, by_name, ids

FEW = f"--epsilon 1000 --rows {RECORDS} --seed 1 --threads 1 --tau 10000"
RIGHT, SAID, WRONG, NONE = "right", "said", "wrong", "not written"
TRUTHS = {"true": "1", "false": "0", "t": "1", "f": "0", "y": "1", "n": "0"}
SPAN = re.compile(r"(?:(\d+) days?,? )?(\d+):(\d\d):(\d\d)(?:\.0*)?")


@dataclass(frozen=True)
class Cell:
    """What became of a column of a file.

    Attributes:
        verdict: RIGHT, SAID (left out or changed, in a sentence), WRONG, or NONE.
        read: the kind of column that was read, or the sentence.
    """

    verdict: str
    read: str


@dataclass(frozen=True)
class Reading:
    """What became of a file.

    Attributes:
        refused: the sentence with which it is refused; empty if it is read.
        cells: what became of each column; empty of a refused file.
        fault: what `check` or `synthesize` did wrong; empty if nothing.
    """

    refused: str
    cells: dict[str, Cell]
    fault: str


def canonical(value):
    """A value as a text that does not depend on notation: 1 for 1.0 and true, seconds for spans."""
    text = str(value).strip()
    if text.lower() in TRUTHS:
        return TRUTHS[text.lower()]
    with contextlib.suppress(InvalidOperation):
        number = Decimal(text)
        if "e" in text.lower() and number.is_finite() and abs(number) >= 2**53:
            # So only a floating-point number is written.
            number = Decimal(int(float(text)))
        if number.is_finite() and number == int(number):
            return str(int(number))
        return str(number.normalize()) if number.is_finite() else text
    with contextlib.suppress(ValueError):
        moment = datetime.datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            moment = moment.astimezone(datetime.UTC).replace(tzinfo=None)
        return moment.isoformat()
    return text


def seconds(value):
    """A span as a text of its seconds."""
    found = SPAN.fullmatch(str(value))
    if found is None:
        return canonical(value)
    days, hours, minutes, rest = (int(part or 0) for part in found.groups())
    return canonical(((days * 24 + hours) * 60 + minutes) * 60 + rest)


def written(column, holds):
    """Per record, what a reader should find; ``holds`` maps values that the tool or format changes."""
    labels = {str(code): label for code, label in told_apart(dict(column.labels)).items()}
    gone = {
        "",
        *map(str, column.absent),
        *(v for v in column.values if v[:1] == "." and column.kind == "extended"),
    }
    out = []
    for value in column.cells:
        if value in holds:
            found = holds[value]
        elif value in gone:
            found = None
        elif column.kind == "span":
            found = str(int(value) * 3600)
        else:
            found = labels.get(value, value)
        out.append(None if found is None else _of_kind(column, found))
    return out


def _of_kind(column, value):
    if isinstance(value, datetime.timedelta):
        return seconds(value)
    if column.kind == "text":
        return str(value)
    return seconds(value) if column.kind == "span" else canonical(value)


def read(source, folder, words=(), holds=None):
    """Draft, check and synthesize a file.

    Args:
        source: the file, or the address of a database.
        folder: where results go.
        words: options of all commands, a name and a value in turn.
        holds: by column, what the file holds instead of some values.
    """
    schema, made = folder / "schema.toml", folder / "made.parquet"
    for path in folder.glob("*"):
        path.unlink()
    source, options = str(source), [*words, "--id", IDS]
    drafted = run("schema draft", [source], options, "--out", schema)
    if drafted.exit_code:
        return _refusal(drafted, "schema draft")
    found = Schema.load(schema)
    cells = _cells(found, source, words, drafted.output, holds or {})
    faults = []
    checked = run("check", [source], options, "--schema", schema)
    if checked.exit_code or "is ready for" not in checked.output:
        faults.append(f"check: {checked.output.strip() or checked.exception!r}")
    done = run("synthesize", [source], options, "--schema", schema, FEW, "--out", made)
    if done.exit_code:
        faults.append(f"synthesize: {done.output.strip().splitlines()[-1:] or done.exception!r}")
    else:
        faults += _strangers(found, pyarrow.parquet.read_table(made), cells, holds or {})
    return Reading("", cells, "; ".join(faults))


def _refusal(done, command):
    """A file that a command refuses, in one sentence or by a fault."""
    *_, sentence = done.output.strip().splitlines() or [""]
    if done.exit_code != 2 or not sentence.startswith("Error: "):
        return Reading("", {}, f"{command}: exit code {done.exit_code}, {done.exception!r}")
    return Reading(sentence.removeprefix("Error: "), {}, "")


def _cells(schema, source, words, output, holds):
    """What became of each column."""
    options = {name[2:]: value for name, value in zip(words[::2], words[1::2], strict=True)}
    stated = as_stated(ReadOptions(**options), schema, schema.party_names[0])
    columns = Columns(IDS, schema.attributes, source, KEYS, stated)
    rows = {attribute.name: {} for attribute in schema.attributes}

    def watch(piece, codes):
        names = piece[IDS].to_pylist()
        for attribute, its in zip(schema.attributes, codes, strict=True):
            texts = [attribute.label(code) if code >= 0 else "no code" for code in its]
            rows[attribute.name].update(zip(map(canonical, names), texts, strict=True))

    columns.encode(party_table(source, stated, IDS, rows), watch)
    said = _said(output)
    by_attribute = {attribute.name: attribute for attribute in schema.attributes}
    return {
        column.name: _cell(
            column,
            by_attribute.get(column.name),
            rows.get(column.name),
            said.get(column.name, ""),
            holds.get(column.name, {}),
        )
        for column in COLUMNS
    }


def _said(output):
    """What a draft says of columns, by name, besides likely rules."""
    found = {}
    for line in output.splitlines():
        match = re.match(r"  party1: column '([^']*)' (.*)", line)
        if match and "rules = [" not in match[2] and "--rules" not in match[2]:
            found[match[1]] = f"{found.get(match[1], '')} {match[2]}".strip()
    return found


def _cell(column, attribute, rows, said, holds):
    """What became of a column, of which ``rows`` has the texts by id."""
    if holds is None:
        return Cell(NONE, "")
    if attribute is None:
        return Cell(SAID, said) if said else Cell(WRONG, "left out without a word")
    kind = kind_of(attribute)
    truth = written(column, holds)
    read = [rows.get(canonical(id), "no row") for id in ids()]
    read = [None if text == "missing" else _of_kind(column, text) for text in read]
    if read == truth:
        return Cell(RIGHT, kind)
    differ = {(t or "missing", r or "missing") for t, r in zip(truth, read, strict=True) if t != r}
    example = " is ".join(min(differ))
    return Cell(SAID, said) if said else Cell(WRONG, f"{kind}: {example}")


def kind_of(attribute):
    """The kind of an attribute, in words."""
    if attribute.instants is not None:
        calendar, zone = attribute.instants
        name = {"date": "dates", "time": "times of day", "timestamp": "timestamps"}[calendar]
        return f"{name} in {zone}" if zone else name
    if (attribute.type or "").startswith("duration"):
        return "durations"
    listed = getattr(attribute, "listed", None)
    if not listed:
        return "numbers"
    kinds = {type(value) for value in listed}
    if kinds == {str}:
        return "ordered texts" if attribute.ordered else "texts"
    return {bool: "truth values", int: "whole numbers"}.get(*kinds, "numbers")


def _strangers(schema, made, cells, holds):
    """Listed columns that were read right, and whose synthetic rows have a value that no record has."""
    for attribute in schema.attributes:
        column = by_name(attribute.name)
        if not hasattr(attribute, "listed") or cells[column.name].verdict != RIGHT:
            continue
        real = set(written(column, holds.get(column.name, {})))
        cells_made = made[column.name].unique().to_pylist()
        synthetic = {None if v is None else _of_kind(column, v) for v in cells_made}
        if strange := synthetic - real:
            yield f"synthesize: {column.name} has {strange}"

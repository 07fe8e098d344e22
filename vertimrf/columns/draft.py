"""Draft an attribute from the values of a column."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..arrays import Fields, Floats, Integers, Texts
from ..errors import SchemaError
from .calendar import CALENDARS, DAY, Calendar, calendar_of, to_number
from .cell_types import DICTIONARY, SINGLES, TEXT, as_decimals, type_name
from .column import Attribute
from .counted import LISTED_TEXTS, Counted, counted
from .dates import FINEST, MILLI, Dates
from .excluded import Excluded
from .listed import Listed
from .notations import epoch
from .notations.moment_text import iso_pattern
from .notations.notation import DateOrder, Recognised
from .notations.number_pattern import Pattern
from .notations.plain import as_numbers, summed
from .notations.register import of_moments, recognised
from .numbers import Numbers, listed_numbers
from .read import read_attribute
from .recognise import LISTED, MOMENTS, Shape, recognise, written_dates
from .rhythm import lost_rhythm
from .text import EXACT, MISSING_TEXT, UNDECODED, folded, parse

OTHER = "other"
# With more values than are listed, text is prose if longer than this on average, and names records
# if its values are more than this part of the records.
PROSE = 40
UNIQUE = 0.5
# Whole numbers name records if there are more than this part of the records, and they have more
# than LONG_NUMBER digits, or are more than COUNTED and leave few gaps.
UNIQUE_NUMBERS, LONG_NUMBER, COUNTED = 0.9, 6, 500
# Most different texts among numbers that the draft names.
FEW_TEXTS = 5
# A text such as NA may be a value if at least this part of the records have it, or if the column has codes of a few letters.
OFTEN, CODE = 0.01, re.compile(r"[A-Z]{1,3}")
# Numbers without a zero before the mark, as Stata and SAS write them.
BARE = re.compile(r"-?\.")
# Numbers of so many signs are all different in double precision.
PRECISE = 15
# A date of zeros, as MySQL and SAP write where there is none.
NO_DATE = re.compile(r"0+([-./: ]0+){2,5}")
# Told of a doubt: the column, and what it is.
Flag = Callable[[str, str], None]
# Numbers, and how many records have each.
Counts = dict[float, int]
ISO = {
    "date": re.compile(r"\d{4}-\d{2}-\d{2}"),
    "time": re.compile(r"\d{2}:\d{2}(:\d{2}([.,]\d{1,9})?)?"),
    "timestamp": re.compile(
        r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}(:\d{2}([.,]\d{1,9})?)?(Z|[-+]\d{2}:?\d{2})?"
    ),
}


def draft_attribute(
    name: str,
    column: pa.ChunkedArray,
    flag: Flag,
    dates: DateOrder | None,
    typed: bool,
) -> Attribute:
    """Draft an attribute from a column; ``flag`` receives each problem and its solution.

    Args:
        name: name of the column.
        column: its cells.
        flag: called with a problem, and what the draft does about it.
        dates: which of day and month comes first, where dates leave it open.
        typed: whether the type of the column was chosen, so that texts are texts. Those of a CSV
            file may be numbers or dates, or stand for a missing value.

    Raises:
        Excluded: the column has no domain.
    """
    if not name:
        raise Excluded("has no name", "a column without a name", "name it in the table")
    found = counted(column, typed)
    try:
        if found.declared:
            attribute = declared_values(name, found, flag)
        else:
            attribute = _drafted(name, column, found, flag, dates, typed)
    except SchemaError as error:
        raise Excluded(
            f"has no domain that a schema may have ({str(error).rstrip('.')})",
            texts=found.values,
        ) from None
    if found.absent and not attribute.holds_numbers:
        absent, often = max(found.absent.items(), key=lambda pair: pair[1])
        codes = all(CODE.fullmatch(str(value)) for value in found.values)
        records = sum(found.values.values()) + sum(found.absent.values())
        if often >= OFTEN * records or (codes and CODE.fullmatch(absent)):
            flag(
                f"has the text {absent!r} in {often:,} of {records:,} cells",
                "taken for a missing value; if it is a value, list it among the values, or say missing_text = []",
            )
    return _with_type(attribute, column.type, typed, flag)


def _with_type(attribute: Attribute, kind: pa.DataType, typed: bool, flag: Flag) -> Attribute:
    """The attribute, with the type of its column as far as it is not the usual one."""
    type = type_name(kind)
    if type == DICTIONARY and not isinstance(attribute, Listed):
        type = type_name(kind.value_type)
    if type is None or not typed:
        return attribute
    try:
        return replace(attribute, type=type)
    except SchemaError:
        flag(f"has cells of the type {type}", "synthetic ones have a wider type")
        return attribute


def _drafted(
    name: str,
    column: pa.ChunkedArray,
    found: Counted,
    flag: Flag,
    dates: DateOrder | None,
    typed: bool,
) -> Attribute:
    """See :func:`draft_attribute`."""
    counts, missing, infinite = found.values, found.missing, found.infinite
    if not counts:
        raise Excluded(
            "has no values at all" if not infinite else "has no finite values",
            "nothing",
            "state its domain, if other tables have values",
        )
    if infinite:
        flag(f"has {infinite:,} infinite values", "each is replaced by the nearest bound")
    if len(counts) == 1 and not missing:
        flag("has the same value in every record", "kept; it costs no budget")
    if {type(value) for value in counts} == {bool}:
        return Attribute.categorical(name, [False, True], missing=missing)
    texts = {*map(type, counts)} == {str}
    chosen = typed and texts
    if chosen and len(counts) <= LISTED_TEXTS:
        return drafted_text(name, counts, missing, flag)
    numbers = as_numbers(counts.items())
    instants = None if numbers is not None else as_instants(counts, column.type, flag)
    written: Recognised | None = None
    if numbers is None and instants is None and texts:
        try:
            written = _written(counts, dates, chosen)
        except SchemaError:
            return drafted_text(name, counts, missing, flag)
    format = None
    if written is not None:
        flag(written.problem, written.done)
        format, calendar = written.notation.format, written.notation.calendar
        if calendar is None:
            numbers = written.numbers
        else:
            instants = calendar, written.notation.zone, written.numbers
    if numbers is not None and written is None and texts and any(map(BARE.match, counts)):
        format = str(Pattern.seen(counts, "."))
    if instants is not None:
        if texts and format is None:
            format = iso_pattern(instants[0], counts, instants[1])
        attribute = drafted_instants(name, *instants, missing, format)
        if (lost := lost_rhythm(attribute, instants[2])) is not None:
            flag(
                f"has far more records at some {lost} than at others",
                "in synthetic rows they are alike; if that matters, add a column of them to the table",
            )
        return replace(attribute, type=TEXT) if chosen else attribute
    if chosen and (written is None or numbers is None):
        return drafted_text(name, counts, missing, flag)
    if numbers is not None:
        _check_numbers(found, numbers, written, flag)
        return drafted_numbers(name, numbers, missing, bool(infinite), format, flag)
    if infinite:
        raise Excluded("has infinite values among text", texts=counts)
    if texts and (among := _among(name, column, found, flag, dates)) is not None:
        return among
    odd = {text: n for text, n in counts.items() if texts and math.isnan(parse(text))}
    if len(counts) > LISTED and 0 < len(odd) <= FEW_TEXTS:
        flag(
            f"has numbers, and the text {max(odd, key=odd.__getitem__)!r} in some cells",
            "taken for text, without order; leave such cells empty to have numbers",
        )
    return drafted_text(name, counts, missing, flag)


def _written(counts: Mapping[str, int], dates: DateOrder | None, chosen: bool) -> Recognised | None:
    """The notation of texts; ``chosen`` if they are texts by their type.

    Raises:
        Excluded: they may be several things.
        SchemaError: so it is, and they may stay texts.
    """
    try:
        return recognised(counts, dates, chosen)
    except SchemaError as error:
        if chosen:
            raise
        why, keep = re.split("[:;] ", str(error), maxsplit=1)
        raise Excluded(f"{why}: {keep}", "text that may be several things", keep, counts) from None


def _check_numbers(found: Counted, numbers: Counts, written: Recognised | None, flag: Flag) -> None:
    """Say what drafts cannot do with numbers.

    Raises:
        Excluded: they seem to name records.
    """
    counts = found.values
    if len(numbers) < len(counts) and _merged(counts, numbers, written):
        flag(
            "has numbers with more digits than double precision tells apart",
            "those that are one number there count as one; list them as text, or leave the column out",
        )
    named = written is None or written.notation.may_identify
    if (
        not found.infinite
        and named
        and identify(numbers)
        and written_dates(*_sorted(numbers)) is None
    ):
        raise Excluded(
            "has another whole number in nearly every record, as ids and telephone numbers have",
            "ids or telephone numbers",
            "state edges, if they are quantities",
            counts,
        )


def _merged(counts: Mapping[Any, int], numbers: Counts, written: Recognised | None) -> bool:
    """Whether values that differ have become one number, unlike 1 and 1.0, which are one."""
    values: Iterable[Any] = counts
    if written is not None:
        texts = pa.chunked_array([pa.array(list(counts), pa.large_string())])
        values = written.notation.plain(texts).to_pylist()
    if not any(isinstance(value, int) or len(str(value)) > PRECISE for value in values):
        return False
    try:
        exact = {value if isinstance(value, float) else Decimal(value) for value in values}
    except InvalidOperation:
        # Texts of durations, of which 1:00 and 01:00 are one.
        return False
    return len(numbers) < len(exact)


def _among(
    name: str, column: pa.ChunkedArray, found: Counted, flag: Flag, dates: DateOrder | None
) -> Attribute | None:
    """Numbers, dates or times, among which few texts without a digit stand for a missing value; None if the column has none."""
    odd = {
        text: n
        for text, n in found.values.items()
        if not any(map(str.isdigit, text)) or NO_DATE.fullmatch(text)
    }
    records = sum(found.values.values())
    rest = {text: n for text, n in found.values.items() if text not in odd}
    if not 0 < len(odd) <= FEW_TEXTS or sum(odd.values()) > records / 2 or len(rest) < 2:
        return None
    said: list[tuple[str, str]] = []
    told = replace(found, values=rest, missing=True)
    attribute = _drafted(name, column, told, lambda *one: said.append(one), dates, False)
    # Among few numbers, one capital letter or three are mostly a code: grades 1 to 12, and K.
    coded = isinstance(attribute, Listed) and any(map(CODE.fullmatch, odd))
    if not attribute.holds_numbers or coded:
        return None
    for one in said:
        flag(*one)
    flag(
        f"has {'numbers' if attribute.instants is None else 'dates or times'}, and the text {max(odd, key=odd.__getitem__)!r} "
        f"in {sum(odd.values()):,} of {records:,} cells",
        f"read as missing, as missing_text says ({', '.join(map(repr, odd))}); to keep such texts, list all values",
    )
    parts: Fields = {"missing_text": (*found.absent, *odd)}
    return replace(attribute, **parts)


def declared_values(name: str, found: Counted, flag: Flag) -> Attribute:
    """A categorical attribute of the values that a column may have."""
    if found.ordered:
        return Attribute.categorical(name, found.declared, missing=found.missing, ordered=True)
    counts = dict.fromkeys(found.declared, 0) | found.values
    return drafted_text(name, counts, found.missing, flag)


def identify(numbers: Counts) -> bool:
    """Whether numbers seem to name records: nearly all differ, and they count up or have the
    length of telephone numbers.
    """
    records = sum(numbers.values())
    if len(numbers) <= max(LISTED, UNIQUE_NUMBERS * records):
        return False
    low, high = min(numbers), max(numbers)
    whole = all(number % 1 == 0 for number in numbers)
    counting = len(numbers) > COUNTED and high - low < 1.5 * len(numbers)
    return whole and (counting or low >= 10**LONG_NUMBER)


def as_instants(
    counts: Mapping[Any, int], kind: pa.DataType, flag: Flag
) -> tuple[Calendar, str | None, Counts] | None:
    """The kind of calendar, the time zone, and the counts by date or time as a number.

    None if a value is neither a date nor a time.
    """
    zone: str | None = getattr(kind, "tz", None)
    calendar = calendar_of(next(iter(counts)))
    if calendar is None:
        if {*map(type, counts)} != {str}:
            return None
        first = next(iter(counts))
        calendar = next((k for k in CALENDARS if ISO[k].fullmatch(first)), None)
        if calendar is None:
            return None
        texts = pa.array(list(counts), pa.large_string())
        if not pc.all(pc.match_substring_regex(texts, f"^({ISO[calendar].pattern})$")).as_py():
            return None
        if calendar == "timestamp":
            zone = _offset(texts, flag)
        numbers = of_moments(calendar, zone, None).parsed(pa.chunked_array([texts]))
        if np.isnan(numbers).any():
            return None
        return calendar, zone, summed(numbers, counts.values())
    moments: Counts = {}
    for value, count in counts.items():
        try:
            at = to_number(calendar, value, zone)
        except (ValueError, OverflowError):
            return None
        moments[at] = moments.get(at, 0) + count
    return calendar, zone, moments


def _offset(texts: pa.Array, flag: Flag) -> str | None:
    """The time zone of texts of timestamps: their offset, or UTC if they have several."""
    ends = pc.extract_regex(pc.utf8_slice_codeunits(texts, 11), r"(?P<at>Z|[-+]\d{2}:?\d{2})$")
    found = [*filter(None, pc.struct_field(ends, [0]).unique().to_pylist())]
    found = [offset.replace("Z", "+00:00") for offset in found]
    offsets = sorted({offset[:3] + ":" + offset[-2:] for offset in found})
    if len(offsets) > 1:
        flag(
            f"has times with the offsets {offsets[0]} and {offsets[-1]}",
            "synthetic ones are in UTC; give the name of the zone as timezone for another",
        )
    if not offsets:
        return None
    return "UTC" if len(offsets) > 1 or offsets[0] == "+00:00" else offsets[0]


def drafted_instants(
    name: str,
    calendar: Calendar,
    zone: str | None,
    moments: Counts,
    missing: bool,
    format: str | None,
) -> Dates:
    """Dates or times, in bins or listed."""
    values, counts = _sorted(moments)
    day = {"date": 1, "timestamp": DAY, "time": 0}[calendar]
    each = 1 if calendar == "date" else _ticks(values)
    if each > 1:
        # Whole numbers of parts of a second.
        values, places = np.unique(np.rint(values * each).astype(np.int64), return_inverse=True)
        counts = np.bincount(places, counts).astype(np.int64)
    parts = _domain(recognise(values, counts, day=day * each))
    if parts.pop("integral", False):
        parts["resolution"] = 1
    for key in ("edges", "points", "grid"):
        parts[key] = tuple(tick / each for tick in parts.get(key, ()))
    for key in {"resolution", "offset"} & parts.keys():
        parts[key] /= each
    if parts.get("resolution") == 1 and not parts.get("offset"):
        del parts["resolution"]
    return Dates(name, missing=missing, calendar=calendar, timezone=zone, format=format, **parts)


def _ticks(seconds: Floats | Integers) -> int:
    """Ticks of a second, of which times are whole numbers: 1, or up to a million where double precision has so many."""
    farthest = float(np.abs(seconds[[0, -1]]).max())
    most = next(each for each in (10**FINEST, 10**MILLI, 1) if farthest * each < EXACT / 4)
    common = int(np.gcd.reduce(np.rint(seconds * float(most)).astype(np.int64)))
    return most // math.gcd(most, common)


def drafted_numbers(
    name: str,
    numbers: Counts,
    missing: bool,
    clamp: bool,
    format: str | None,
    flag: Flag,
) -> Attribute:
    """A numeric attribute, or a categorical one if there are few numbers."""
    if len(numbers) <= LISTED and format is None and not clamp:
        return _listed(name, numbers, missing)
    values, counts = _sorted(numbers)
    shape = recognise(values, counts, clamp=clamp)
    if shape.single and format is None:
        decimals = dict(
            zip(as_decimals(values.astype(float)).tolist(), counts.tolist(), strict=True)
        )
        attribute = drafted_numbers(name, decimals, missing, clamp, format, flag)
        return replace(attribute, type=SINGLES)
    if (
        format is None
        and not clamp
        and (written := written_dates(values, counts))
        and ("%d" in written or not shape.grid)
    ):
        return _written_numbers(name, numbers, missing, written, flag)
    if shape.codes and not shape.grid:
        flag(
            "has whole numbers that leave gaps, as codes do",
            "kept as numbers in bins, so most synthetic ones are no codes; list the values, or leave it out",
        )
    if shape.clamp and not clamp:
        flag("has values that are far beyond all others", "each is replaced by the nearest bound")
    if values.dtype.kind == "i":
        cells = (*shape.edges, *shape.points, *shape.grid)
        if max(cells) - min(cells) < EXACT - 1:
            parts = _domain(shape, int)
            return read_attribute({"name": name, "missing": missing, "format": format, **parts})
        if shape.grid and not shape.clamp:
            return _listed(name, shape.grid, missing)
        values, places = np.unique(values.astype(float), return_inverse=True)
        shape = recognise(values, np.bincount(places, counts).astype(np.int64), clamp=clamp)
        flag(
            "has whole numbers beyond 2**53 that lie far apart",
            "only their first 15 digits are kept; list the values, or leave it out",
        )
    return Numbers(name, missing=missing, format=format, **_domain(shape))


def _listed(name: str, numbers: Iterable[float], missing: bool) -> Attribute:
    """A categorical attribute of numbers, which have no decimals if they are whole."""
    least, most = min(numbers), max(numbers)
    whole = all(number % 1 == 0 for number in numbers)
    # Larger ones are no whole numbers of Arrow's.
    whole = whole and least >= -(1 << 63) and most < (1 << (64 if least >= 0 else 63))
    if not whole and len({*map(float, numbers)}) < len({*numbers}):
        raise Excluded("has whole numbers of more than 64 bits that no decimal tells apart")
    listed = tuple(sorted({int(number) if whole else float(number) for number in numbers}))
    # No other type holds numbers so large.
    type = "uint64" if whole and listed[-1] >= 1 << 63 else None
    return Listed(name, listed, missing=missing, ordered=True, type=type)


def _written_numbers(
    name: str,
    numbers: Counts,
    missing: bool,
    format: str,
    flag: Flag,
) -> Attribute:
    """Dates or times that are written as whole numbers."""
    since = format in epoch.PER_SECOND
    exact = since or format in MOMENTS
    calendar: Calendar = "timestamp" if exact else "time" if format == "%H%M" else "date"
    zone = "UTC" if since else None
    notation = of_moments(calendar, zone, format)
    moments: Counts = {}
    for number, count in numbers.items():
        at = notation.number(f"{number:0{notation.width}.0f}")
        if not math.isnan(at):
            moments[at] = moments.get(at, 0) + count
    how = f"{epoch.PER_SECOND[format]:,} a second since 1970" if since else f"{format}"
    flag(
        f"has {calendar}s as numbers, such as {max(numbers):.0f}",
        f"read as {how}; delete calendar and format, and give edges as numbers, if they are quantities",
    )
    # The few numbers that are no dates count as the nearest ones.
    return replace(drafted_instants(name, calendar, zone, moments, missing, format), type="int64")


def _sorted(numbers: Counts) -> tuple[Floats | Integers, Integers]:
    """Values, increasing, and the records of each; whole numbers beyond 2**53 exactly."""
    if {*map(type, numbers)} == {float}:
        values = np.fromiter(numbers, float, len(numbers))
        order = np.argsort(values)
        return values[order], np.fromiter(numbers.values(), np.int64, len(numbers))[order]
    ordered = sorted(numbers)
    counts = np.array([numbers[value] for value in ordered], np.int64)
    exact = any(isinstance(value, int) for value in ordered)
    if exact and all(value % 1 == 0 and abs(value) < 2**63 for value in ordered):
        return np.array([*map(int, ordered)], np.int64), counts
    return np.array(ordered, float), counts


def _domain(shape: Shape, number: type[float] = float) -> Fields:
    """The parts of an attribute whose numbers have a shape, as numbers of one type."""
    grid = tuple(map(number, shape.grid or (() if shape.edges else shape.points)))
    parts: Fields = {"clamp": shape.clamp or shape.strays > 0}
    if grid and (shape.listed or not shape.edges):
        return parts | listed_numbers(grid)
    parts |= {"edges": tuple(map(number, shape.edges)), "points": tuple(map(number, shape.points))}
    if grid:
        return parts | {"grid": grid}
    step = shape.step or number is int
    if step == 1 and not shape.offset:
        return parts | {"integral": True}
    if step:
        # The points between bins may lie off the step.
        parts |= {"resolution": number(step), "offset": number(shape.offset)}
    return parts


def drafted_text(name: str, counts: Mapping[Any, int], missing: bool, flag: Flag) -> Attribute:
    """A categorical attribute of the most frequent texts."""
    records = sum(counts.values())
    texts: dict[str, int] = {}
    for value, count in counts.items():
        texts[str(value)] = texts.get(str(value), 0) + count
    spelled: dict[str, str] = {}
    merged: Texts = ()
    for text in sorted(texts, key=lambda text: (-texts[text], text)):
        if (usual := spelled.setdefault(folded(text), text)) != text:
            texts[usual] += texts.pop(text)
            merged = merged or (usual, text)
    many = len(texts) > LISTED_TEXTS
    if many and len(texts) > UNIQUE * records:
        raise Excluded(
            f"has {len(texts):,} distinct values in {records:,} records, as names and numbers of people have",
            "names",
            texts=texts,
        )
    if many and sum(map(len, texts)) > PROSE * len(texts):
        raise Excluded(
            f"has {len(texts):,} distinct values of {PROSE} letters and more, as free text has",
            "free text",
            texts=texts,
        )
    if odd := [text for text in texts if re.search(UNDECODED, text)]:
        flag(
            f"has texts such as {odd[0]!r}, with bytes of another encoding",
            "kept as they are; give the file's encoding (--encoding), perhaps cp1252",
        )
    if merged:
        flag(
            f"has the values {merged[0]!r} and {merged[1]!r}",
            "values that differ by case and spaces alone count as one; list both if they are two",
        )
    if not many:
        return Attribute.categorical(name, sorted(texts), missing=missing)
    kept = sorted(texts, key=lambda text: (-texts[text], text))[: LISTED_TEXTS - 1]
    other = OTHER
    while other in texts:
        other = f"({other})"
    share = 1 - sum(texts[text] for text in kept) / records
    flag(
        f"has {len(texts):,} distinct values",
        f"the {len(kept)} most frequent are listed, the rest, {100 * share:.1f} % of its records, is {other!r}",
    )
    # The texts that are not listed are values, whatever they say.
    none = () if set(texts) & set(MISSING_TEXT) else None
    return Listed(name, tuple(sorted(kept)), other=other, missing=missing, missing_text=none)

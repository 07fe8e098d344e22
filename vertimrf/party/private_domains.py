"""Finding domains that nobody knows beforehand, with noise: every figure that is read off the data is an event of the ledger."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..errors import PrivacyError, SchemaError
from ..plan.attribute import MISSING_TEXT, Attribute
from ..plan.open_schema import OpenSchema, PrivateDomain
from ..plan.schema import Schema
from ..privacy.events import Event, GeometricEvent, ThresholdEvent
from ..privacy.ledger import Kind, LedgerEntry
from ..privacy.noise import Noise, SystemNoise
from ..tables.ids import shown
from ..tables.table import by_dictionary, canonical, cell_values, column_numbers, in_records, some
from .number_range import find_edges

__all__ = ["Finding", "check_columns_of", "close", "find_domains", "none_found", "unfit"]


@dataclass(frozen=True)
class Finding:
    """What looking for one domain has given, and cost.

    Attributes:
        domain: what was looked for.
        attribute: with the domain found; None if nothing stood out of the noise, which costs the same.
        entries: of the ledger.
    """

    domain: PrivateDomain
    attribute: Attribute | None
    entries: tuple[LedgerEntry, ...]


def find_domains(
    wanted: Sequence[PrivateDomain],
    column: Callable[[str], pa.Table],
    epsilon: float,
    delta: float,
    party: Callable[[str], str],
    *,
    records_per_person: int = 1,
    noise: Noise | None = None,
) -> tuple[Finding, ...]:
    """Look for domains, at an equal part of epsilon each; delta is for those of values alone.

    Args:
        wanted: what to look for.
        column: the table that has an attribute's column, whose every row counts.
        epsilon: for all together.
        delta: for all together: the probability that a value is listed that one person alone has.
        party: who has an attribute.
        records_per_person: how many rows a person has at most; whoever calls has seen to that.
        noise: noise source; default the operating system's.

    Raises:
        PrivacyError: no epsilon above 0, or no delta although values are looked for.
        SchemaError: a column that is missing, or of a type that what is known of it rules out; nothing has been spent then.
    """
    if not wanted:
        return ()
    categorical = sum(not domain.numeric for domain in wanted)
    if not (epsilon > 0 and 0 < delta < 1):
        raise PrivacyError(
            f"Domains are found at an epsilon above 0 and a delta between 0 and 1, not {epsilon} and {delta}."
        )
    source = noise if noise is not None else SystemNoise()
    # Everything that can go wrong does so before any noise is drawn.
    read = [_cells(domain, column(domain.name))[0] for domain in wanted]
    out = []
    for domain, cells in zip(wanted, read, strict=True):
        part = epsilon / len(wanted)
        if isinstance(cells, dict):
            attribute, events = _find_values(
                domain, cells, part, delta / categorical, records_per_person, source
            )
        else:
            attribute, events = _find_edges(domain, cells, part, records_per_person, source)
        # Named by the noise, so that the same search again has the same name, and is counted once.
        release = source.stream(b"name of a release")(8).hex()
        what = f"{'bounds and bins' if domain.numeric else 'frequent values'} of {domain.name!r}"
        kind = Kind.EDGES if domain.numeric else Kind.VALUES
        entries = tuple(
            LedgerEntry(
                event, party(domain.name), what, _in_words(event), f"{release}-{i}", kind=kind
            )
            for i, event in enumerate(events)
        )
        out.append(Finding(domain, attribute, entries))
    return tuple(out)


def close(schema: OpenSchema, findings: Sequence[Finding], public: bool = True) -> Schema:
    """The schema with all domains found, and with what they cost.

    Raises:
        SchemaError: some were not; the sentence names them.
    """
    if nothing := none_found(schema, findings):
        raise SchemaError(nothing)
    attributes = {f.domain.name: f.attribute for f in findings if f.attribute is not None}
    return schema.closed(
        attributes, tuple(entry for finding in findings for entry in finding.entries), public
    )


def none_found(schema: OpenSchema, findings: Sequence[Finding]) -> str | None:
    """Which domains were looked for in vain, in a sentence."""
    lost = [f for f in findings if f.attribute is None and f.domain.name in schema.wanted]
    if not lost:
        return None
    spent = sum(
        sum(getattr(entry.event, "pure_epsilon", 0.0) for entry in f.entries) for f in lost
    ) / len(lost)
    several = len(lost) > 1
    return (
        f"The private domain{'s' * several} of {some([f.domain.name for f in lost])} found nothing: at epsilon {spent:.3g}"
        f"{' each' * several} no number or value stands out of the noise; what was spent stays spent. "
        "Give public bounds or values, or leave "
        f"{'them' if several else 'it'} out."
    )


def check_columns_of(wanted: Mapping[str, PrivateDomain], table: pa.Table, where: str) -> None:
    """A table must have the columns whose domains are to be found.

    Raises:
        SchemaError: it has not.
    """
    if absent := [name for name in wanted if name not in table.column_names]:
        raise SchemaError(
            f"{where} lacks the column {some(absent)} of the schema; add it, or change the schema."
        )


def unfit(wanted: Sequence[PrivateDomain], column: Callable[[str], pa.Table]) -> tuple[str, ...]:
    """Sentences on the cells that domains are found without, for the holder's eyes; arguments as for :func:`find_domains`."""
    return tuple(
        itertools.chain.from_iterable(_cells(domain, column(domain.name))[1] for domain in wanted)
    )


def _cells(
    domain: PrivateDomain, table: pa.Table
) -> tuple[npt.NDArray[np.float64] | dict[str, int], list[str]]:
    """A column's numbers, or how many records have each text, and sentences on the cells that do not fit, which are left out:
    each by itself, so that whether a domain is found hangs on no single record.
    """
    where = f"Column {domain.name!r}"
    cells, missing, wrong = (
        _numbers(domain, table, where) if domain.numeric else _texts(domain, table, where)
    )
    sentences = []
    if missing.any() and not domain.known.missing:
        sentences.append(
            f"{where} has {_records(missing)} without a value, left out here; set missing = true for it in the schema, or remove "
            "them."
        )
    if wrong.any():
        what = "within the public bounds" if domain.bounded else domain.known.calendar or "a number"
        value = shown(table[domain.name][int(np.argmax(wrong))])
        sentences.append(
            f"{where} holds {value}, which is not {what}, in {_records(wrong)}, left out here; correct it, or change the schema."
        )
    return cells, sentences


def _numbers(
    domain: PrivateDomain, table: pa.Table, where: str
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """A column's numbers where there are any, which cells are missing, and which are no such numbers."""
    known = domain.known
    numbers, missing = column_numbers(known, table[domain.name], where)
    wrong = np.isnan(numbers) & ~missing
    low, high = known.edges[0], known.edges[-1]
    if domain.bounded and not known.clamp:
        wrong |= ~missing & ((numbers < low) | (numbers > high))
    present = numbers[~missing & ~wrong]
    return (np.clip(present, low, high) if domain.bounded else present), missing, wrong


def _texts(
    domain: PrivateDomain, table: pa.Table, where: str
) -> tuple[dict[str, int], npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """How many records have each text, `other` aside, which needs no listing; which cells are missing; none are wrong."""
    distinct, indices = by_dictionary(table[domain.name], where)
    texts = cell_values(distinct)
    absent = np.array(
        [value is None or value != value or value in MISSING_TEXT for value in texts] + [True]
    )
    missing = absent[indices]
    counts = np.bincount(indices[~missing], minlength=len(texts)).tolist()
    out: dict[str, int] = {}
    for value, count in zip(texts, counts, strict=True):
        text = canonical(value, "")
        if count and text != domain.known.other:
            out[text] = out.get(text, 0) + count
    return out, missing, np.zeros(len(missing), bool)


def _records(marked: npt.NDArray[np.bool_]) -> str:
    return in_records(int(marked.sum()), f"row {int(np.argmax(marked)) + 1}")


def _find_edges(
    domain: PrivateDomain,
    numbers: npt.NDArray[np.float64],
    epsilon: float,
    sensitivity: int,
    noise: Noise,
) -> tuple[Attribute | None, list[Event]]:
    """Bins of a numeric attribute: purely private."""
    events: list[Event] = []

    def histogram(
        edges: npt.NDArray[np.float64], part: float
    ) -> tuple[npt.NDArray[np.int64], float]:
        scale = sensitivity / (part * epsilon)
        events.append(GeometricEvent(scale, sensitivity))
        # Numbers beyond the ends are in the cells there.
        cells = np.clip(np.searchsorted(edges, numbers, side="right") - 1, 0, len(edges) - 2)
        return noise.geometrics(np.bincount(cells, minlength=len(edges) - 1), scale), scale

    bounds = (domain.known.edges[0], domain.known.edges[-1]) if domain.bounded else None
    edges = find_edges(histogram, domain.most, domain.known.step, bounds)
    # What was not asked is not spent.
    return (None if edges is None else domain.binned(edges)), events


def _find_values(
    domain: PrivateDomain,
    counts: dict[str, int],
    epsilon: float,
    delta: float,
    sensitivity: int,
    noise: Noise,
) -> tuple[Attribute | None, list[Event]]:
    """Frequent values of a categorical attribute: those whose noisy counts no single person explains."""
    scale = sensitivity / epsilon
    event = ThresholdEvent(
        scale, ThresholdEvent.least_threshold(scale, delta, sensitivity), sensitivity
    )
    texts = sorted(counts)
    noisy = noise.geometrics(np.array([counts[text] for text in texts], np.int64), scale).tolist()
    kept = [
        (-count, text) for count, text in zip(noisy, texts, strict=True) if count >= event.threshold
    ]
    values = sorted(text for _, text in itertools.islice(sorted(kept), domain.most))
    return (domain.listed(tuple(values)) if values else None), [event]


def _in_words(event: Event) -> str:
    match event:
        case ThresholdEvent(scale=scale, threshold=threshold):
            return f"two-sided geometric, scale {scale:.1f}; counts from {threshold:,}"
        case GeometricEvent(scale=scale):
            return f"two-sided geometric, scale {scale:.1f}, in each cell"
    raise PrivacyError(f"A {type(event).__name__} finds no domain.")

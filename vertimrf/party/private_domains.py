"""Find private domains with noise (:mod:`vertimrf.columns.private`), and their price.

Every figure that is read from the data is an event of the ledger.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from ..arrays import Texts
from ..columns.column import Attribute
from ..columns.private import OTHER, PrivateDomain, Search
from ..errors import PrivacyError, SchemaError, some
from ..plan.open_schema import OpenSchema
from ..plan.options import check_persons
from ..plan.schema import Schema
from ..privacy.accountant import check_delta
from ..privacy.events import Event, GeometricEvent, ThresholdEvent
from ..privacy.ledger import LedgerEntry
from ..privacy.noise import KeyedNoise, SystemNoise
from ..tables.dropped import Tally
from ..tables.ids import shown

LOG = logging.getLogger(__name__)
# Epsilons that domains are found at. Their noise can be drawn, and protects somebody.
MIN_EPSILON, MAX_EPSILON = 1e-9, 1e3


@dataclass(frozen=True)
class Finding:
    """The result and the cost of one search.

    Attributes:
        domain: the private domain.
        attribute: the attribute with its domain; None if nothing was significant, which costs the
            same.
        entries: entries of the ledger.
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
    noise: KeyedNoise | None = None,
) -> tuple[Finding, ...]:
    """Find domains, with an equal part of epsilon and delta for each.

    Args:
        wanted: the private domains.
        column: returns the table with an attribute's column; all its rows count.
        epsilon: budget of all domains together.
        delta: probability, for all domains together, that a value of one person alone is listed.
        party: returns the party of an attribute.
        records_per_person: most rows of a person; the caller has limited them.
        noise: noise source; default the operating system's.

    Returns:
        One finding per domain.

    Raises:
        PrivacyError: epsilon or delta out of range.
        SchemaError: a column is missing; nothing has been spent then.
    """
    if not wanted:
        return ()
    check_budget(epsilon, delta, records_per_person)
    source = noise if noise is not None else SystemNoise()
    # All errors occur before any noise is drawn.
    read = [_cells(domain, column(domain.name))[0] for domain in wanted]
    out = []
    for domain, cells in zip(wanted, read, strict=True):
        search = Search(epsilon / len(wanted), delta / len(wanted), records_per_person, source)
        attribute, events = domain.find(cells, search)
        # A repeated search has the same name and counts once.
        release = source.name()
        what = f"{domain.looked_for} of {domain.name!r}"
        entries = tuple(
            LedgerEntry(
                event,
                party(domain.name),
                what,
                _in_words(event),
                f"{release}-{i}",
                kind=domain.kind,
            )
            for i, event in enumerate(events)
        )
        out.append(Finding(domain, attribute, entries))
    return tuple(out)


def check_budget(epsilon: float, delta: float, records_per_person: int) -> None:
    """Check before the work what a search for domains may spend.

    Args:
        epsilon, delta, records_per_person: as for :func:`find_domains`.

    Raises:
        PrivacyError: epsilon or delta is out of range.
        PlanError: there is no price for so many records of a person.
    """
    if not MIN_EPSILON <= epsilon <= MAX_EPSILON:
        raise PrivacyError(
            f"Domains are found at an epsilon between {MIN_EPSILON:g} and {MAX_EPSILON:g}, not {epsilon}."
        )
    check_delta(delta)
    check_persons(records_per_person)


def close(schema: OpenSchema, findings: Sequence[Finding]) -> Schema:
    """Complete a schema with the domains and their cost.

    An attribute whose search was without result has only missing and ``other`` values. The log
    names it, and combinations and rules with it rule nothing out.

    Args:
        schema: schema with private domains.
        findings: a finding for every private domain.
    """
    lost = [f for f in findings if f.attribute is None and f.domain.name in schema.wanted]
    if lost:
        LOG.warning("%s", _without_result(lost))
    names = {f.domain.name for f in lost}
    kept = [
        combination
        for combination in schema.impossible
        if names.isdisjoint(condition.attribute for condition in combination.conditions)
    ]
    rules = tuple(rule for rule in schema.rules if names.isdisjoint(rule.columns))
    return replace(schema, impossible=tuple(kept), rules=rules).closed(
        {f.domain.name: f.attribute or f.domain.unknown for f in findings},
        tuple(entry for finding in findings for entry in finding.entries),
    )


def _without_result(lost: Sequence[Finding]) -> str:
    """A sentence about searches without result."""
    spent = sum(
        sum(getattr(entry.event, "pure_epsilon", 0.0) for entry in f.entries) for f in lost
    ) / len(lost)
    several = len(lost) > 1
    return (
        f"The private domain{'s' * several} of {some([f.domain.name for f in lost])} found nothing: at epsilon {spent:.3g}"
        f"{' each' * several} no number or value exceeds the noise, and the budget is spent. All values count as "
        f"{OTHER!r} there; for more, give public bounds or values."
    )


def unfit(wanted: Sequence[PrivateDomain], column: Callable[[str], pa.Table]) -> Texts:
    """Messages about cells that the search leaves out; only the party may see them.

    Args:
        wanted, column: as for :func:`find_domains`.
    """
    return tuple(
        itertools.chain.from_iterable(_cells(domain, column(domain.name))[1] for domain in wanted)
    )


def _cells(domain: PrivateDomain, table: pa.Table) -> tuple[Any, list[str]]:
    """What a search reads of a column, and messages about cells that do not fit.

    Such cells are left out one by one, so that whether a domain is found depends on no single
    record.
    """
    where = f"Column {domain.name!r}"
    column, sentences = table[domain.name], []
    try:
        cells, missing, wrong = domain.cells(column, where)
    except SchemaError as error:
        # Of a type that has no such cells, as if each was a missing one.
        sentences.append(f"{error} Left out here.")
        cells, missing, wrong = domain.cells(pa.chunked_array([pa.nulls(len(column))]), where)
    if missing.any() and not domain.known.missing:
        sentences.append(
            f"{where} has {Tally.of(missing).records} without a value, left out here; set missing = true for it in the schema, or remove "
            "them."
        )
    if wrong.any():
        value = shown(table[domain.name][int(np.argmax(wrong))])
        sentences.append(
            f"{where} holds {value}, which is not {domain.wanted}, in {Tally.of(wrong).records}, left out here; correct it, or change the schema."
        )
    return cells, sentences


def _in_words(event: Event) -> str:
    match event:
        case ThresholdEvent(scale=scale, threshold=threshold):
            return f"two-sided geometric, scale {scale:.1f}; counts from {threshold:,}"
        case GeometricEvent(scale=scale):
            return f"two-sided geometric, scale {scale:.1f}, in each cell"
    raise PrivacyError(f"A {type(event).__name__} finds no domain.")

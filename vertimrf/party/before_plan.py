"""Noise of what one machine reads from tables before there is a plan.

A run without a public number of records, or with private domains, draws noisy figures first, and
its plan may then be refused. Fresh noise in every attempt would let whoever repeats the command
average it away. So this noise is a function of a key of this machine, of the table and of what is
asked: the same question about the same table has the same answer, which is paid for once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import pyarrow as pa

from ..columns.private import PrivateDomain
from ..errors import PrivacyError, VertiMRFError
from ..files.state import STATE, machine_key, state_folder
from ..kernels.multiset import record_sum
from ..keys import hkdf
from ..plan.open_schema import OpenSchema
from ..plan.plan import Plan
from ..plan.schema import Schema
from ..privacy.ledger import Ledger, LedgerEntry, spent_beforehand
from ..privacy.noise import KeyedNoise
from ..tables.table import Table
from .domain_record import cells_digest


def count_noise(table: Table) -> KeyedNoise:
    """Noise of the number of a table's records.

    It depends on the records' codes, but not on their order.

    Raises:
        PrivacyError: the key of this machine cannot be kept or read.
    """
    key = own_key("count")
    codes = np.ascontiguousarray(table.codes)
    total = record_sum(key, np.zeros(table.records, np.uint64), codes)
    return KeyedNoise(hkdf(key, b"", repr((codes.shape, total)).encode()))


def domains_noise(wanted: Sequence[PrivateDomain], cells: Sequence[pa.ChunkedArray]) -> KeyedNoise:
    """Noise of a search for domains.

    Args:
        wanted: the private domains.
        cells: for each, the cells that are searched.

    Raises:
        PrivacyError: the key of this machine cannot be kept or read.
    """
    asked = [
        [dict(domain.asked), cells_digest(column)]
        for domain, column in zip(wanted, cells, strict=True)
    ]
    return KeyedNoise(hkdf(own_key("domains"), b"", json.dumps(asked, default=str).encode()))


def own_key(purpose: str) -> bytes:
    """A key of this machine's user for one purpose, the same in every process [32 bytes].

    Raises:
        PrivacyError: the key cannot be kept or read.
    """
    folder = state_folder() / "before"
    try:
        key = machine_key(folder)
    except OSError as error:
        raise PrivacyError(
            f"No key can be kept in {folder} ({error.strerror}), so no noisy figure is drawn to plan with: make that folder "
            f"writable, name another one by {STATE}, or give public domains and expected_records (--expected-records)."
        ) from None
    return hkdf(key, b"", purpose.encode())


def drawn_before(plan: Plan, schema: Schema | OpenSchema | None) -> tuple[LedgerEntry, ...]:
    """Ledger entries of the figures that were drawn to make a plan, in a process that holds the data.

    Args:
        plan: the plan.
        schema: what it was given; entries of this one were spent earlier.
    """
    given = schema.schema if isinstance(schema, OpenSchema) else schema
    before = 0 if given is None else len(given.spent)
    return (*plan.schema.spent[before:], *plan.prior)


@contextmanager
def saying_spent(entries: Sequence[LedgerEntry]) -> Iterator[None]:
    """Add to an error what was spent before it.

    Args:
        entries: the ledger entries of the figures that were drawn; none adds nothing.

    Raises:
        VertiMRFError: the error of the block, with a sentence and ``spent``.
    """

    def sentence() -> str:
        epsilon, _ = spent_beforehand(entries)
        what = ", ".join(dict.fromkeys(entry.released for entry in entries))
        what = what if len(what) <= 100 else what[:97] + "..."
        return (
            f"Noisy figures were drawn before this and count: epsilon {epsilon:.3g} ({what}). The same table, schema and epsilon give "
            "the same figures again; with public domains and expected_records (--expected-records) none are drawn."
        )

    with _saying(entries, sentence):
        yield


@contextmanager
def saying_run_spent(ledger: Ledger) -> Iterator[None]:
    """Add to an error that the run's figures were drawn before it.

    Args:
        ledger: the ledger of the run.

    Raises:
        VertiMRFError: the error of the block, with a sentence and ``spent``.
    """

    def sentence() -> str:
        return (
            f"The run's noisy figures were drawn before this and count, epsilon {ledger.epsilon:.3g}: another run draws new "
            "ones and spends again."
        )

    with _saying(ledger.entries, sentence):
        yield


@contextmanager
def _saying(entries: Sequence[LedgerEntry], sentence: Callable[[], str]) -> Iterator[None]:
    """Add a sentence and ``spent`` to an error that does not say what was spent. The sentence is made then:
    the price of a run takes time.
    """
    try:
        yield
    except VertiMRFError as error:
        if not entries or error.spent:
            raise
        told = type(error)(f"{error} {sentence()}")
        told.spent = tuple(entries)
        raise told from None

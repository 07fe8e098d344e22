"""Mistakes that the audit has to find, each planted in the code that a party runs.

They are of kinds that audits found in other libraries: less noise than stated, a larger change than
stated, a figure without noise, the same noise twice, a decision by exact figures, a release that is
not in the ledger.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from unittest import mock

import numpy as np
from msgspec import structs

import vertimrf.party.party as party
from vertimrf.errors import TableError
from vertimrf.party import local_model
from vertimrf.party.party import Party
from vertimrf.releases.count_sketches import encoding

from . import cases

Planted = Callable[[], AbstractContextManager]


def _local(**changed) -> Planted:
    """The local model is released with another plan than the ledger's, by factors."""

    def release(marginals, sizes, plan, *rest):
        other = structs.replace(
            plan,
            **{
                name: type(getattr(plan, name))(getattr(plan, name) * by)
                for name, by in changed.items()
            },
        )
        return local_model.release_local_model(marginals, sizes, other, *rest)

    return lambda: mock.patch.object(party, "release_local_model", release)


def _counted(change: Callable) -> Planted:
    """Counts of marginals are others than the table's."""

    def release(marginals, *rest):
        return local_model.release_local_model(functools.partial(change, marginals), *rest)

    return lambda: mock.patch.object(party, "release_local_model", release)


def _twice(marginals, wanted, merged):
    for counts in marginals(wanted, merged):
        yield 2 * counts


def _fewer_units_if_odd() -> AbstractContextManager:
    """How much is measured depends on whether the number of records is even."""

    def release(marginals, sizes, plan, *rest):
        (counts,) = marginals([(0,)], {})
        units = plan.units // 2 if counts.sum() % 2 else plan.units
        return local_model.release_local_model(
            marginals, sizes, structs.replace(plan, units=units), *rest
        )

    return mock.patch.object(party, "release_local_model", release)


def _with_party(name: str, method: Callable) -> Planted:
    original = getattr(Party, name)
    return lambda: mock.patch.object(Party, name, functools.partialmethod(method, original))


def _exact_count(self, original, records, steps, noise):
    return records.count if not self._index else None


def _count_of_less_noise(self, original, records, steps, noise):
    counted = np.array([records.count], np.int64)
    return int(noise.gaussian(counted, self._plan.count_sigma / 2)[0])


def _same_noise_twice(self, original, records, noise):
    """The noise of the first one-way marginal is added to a count of missing values as well."""
    released = original(self, records, noise)
    first = released.marginals[0]
    (exact,) = records.marginals([(0,)], {})
    leaked = first.counts + (first.counts - exact)
    return replace(released, marginals=(replace(first, counts=leaked), *released.marginals[1:]))


def _bins_of_exact_counts(self, original, records, noise):
    released = original(self, records, noise)
    (exact,) = records.marginals([(0,)], {})
    bins = list(released.bins)
    if exact.sum() % 2:
        bins[0] = tuple(None if some is None else some[::-1].copy() for some in bins[0])
        bins[0] = bins[0] if any(some is not None for some in bins[0]) else (np.arange(2),)
    return replace(released, bins=tuple(bins))


def _steps_of_exact_counts(self, original, records, noise):
    """Sketches are published in steps that follow from exact counts."""
    released = original(self, records, noise)
    (exact,) = records.marginals([(0,)], {})
    counted = {a: counts + exact.sum() for a, counts in released.one_way.items()}
    return replace(released, one_way=counted)


def _separator_of_the_first_record(self, original, source, *rest):
    """The separator of all records is what the first one has most often."""
    first = source.read_text().splitlines()[1]
    most = max(",;|", key=first.count)
    if first.count(",") != source.read_text().splitlines()[0].count(","):
        most = ";"
    return original(self, source, rest[0], replace(rest[1], delimiter=most))


def _in_order_of_appearance(self, original, source, *rest):
    """Values of a column are numbered in the order in which they appear in the file."""
    table = original(self, source, *rest)
    codes = table.codes.copy()
    order = list(dict.fromkeys(codes[0].tolist()))
    order += [code for code in range(int(codes[0].max()) + 1) if code not in order]
    codes[0] = np.argsort(order)[codes[0]]
    return replace(table, codes=codes)


def _one_more_release(self, original, records, noise):
    noise.gaussian(np.array([records.count], np.int64), 1000.0)
    return original(self, records, noise)


def _once_more(self, original, records, noise):
    original(self, records, noise)
    return original(self, records, noise)


def _refusing(self, original, source, *rest):
    table = original(self, source, *rest)
    if table.dropped.reasons:
        raise TableError("Records do not fit: correct them.")
    return table


def _shorter_streams(self, original, records, local, noise):
    """Noise of sketches is left out for an odd number of records."""
    if records.count % 2:
        noise.gaussian(np.zeros(1, np.int64), self._plan.count_sigma)
    return original(self, records, local, noise)


def _sketch(change: Callable) -> Planted:
    original = encoding.add_records

    def add(k0, k1, digests, codes, layout, log_buckets, state, advance):
        change(original, k0, k1, digests, codes, layout, log_buckets, state, advance)

    return lambda: mock.patch.object(encoding, "add_records", add)


def _added_twice(add, *args):
    add(*args)
    add(*args)


def _a_value_beside(add, k0, k1, digests, codes, layout, log_buckets, state, advance):
    """Each record is added with its neighbour's values as well."""
    add(k0, k1, digests, codes, layout, log_buckets, state, advance)
    add(k0, k1, digests, np.roll(codes, 1, axis=1).copy(), layout, log_buckets, state, advance)


def _other_buckets(add, k0, k1, digests, codes, layout, log_buckets, state, advance):
    """The last group has buckets of its own: a record moves two buckets in each repetition."""
    last = len(codes) - 1
    add(k0, k1, digests, codes[:last], layout[:last], log_buckets, state, advance)
    moved = layout[last:]
    add(k0 + np.uint64(1), k1, digests, codes[last:], moved, log_buckets, state, advance)


@contextmanager
def _ledger_without(kind: str) -> Iterator[None]:
    original = cases.entries_of

    def some(ledger, name):
        return [entry for entry in original(ledger, name) if entry.kind != kind]

    with mock.patch.object(cases, "entries_of", some):
        yield


FAULTS: dict[str, Planted] = {
    "one-way marginals have half of their noise": _local(one_way_sigma=0.5),
    "one-way marginals have nine tenths of their noise": _local(one_way_sigma=0.9),
    "R-scores have half of their noise": _local(score_sigma=0.5),
    "larger marginals have half of their noise": _local(unit_sigma=0.5),
    "choices have half of their scale": _local(choice_scale=0.5),
    "choices are not in the ledger": lambda: _ledger_without("choices"),
    "more units than the ledger has": _local(units=2),
    "each record counts twice in marginals": _counted(_twice),
    "how much is measured depends on an exact count": _fewer_units_if_odd,
    "the record count has no noise": _with_party("_count", _exact_count),
    "the record count has half of its noise": _with_party("_count", _count_of_less_noise),
    "the same noise hides two counts": _with_party("_local", _same_noise_twice),
    "bins follow from exact counts": _with_party("_local", _bins_of_exact_counts),
    "steps of sketches follow from exact counts": _with_party("_local", _steps_of_exact_counts),
    "the first record decides on the separator": _with_party(
        "encode", _separator_of_the_first_record
    ),
    "values are numbered as they appear in the file": _with_party(
        "encode", _in_order_of_appearance
    ),
    "a count is released that is not in the ledger": _with_party("_local", _one_more_release),
    "the local model is released twice": _with_party("_local", _once_more),
    "a table with records that do not fit is refused": _with_party("encode", _refusing),
    "an odd number of records has one more draw": _with_party("_sketches", _shorter_streams),
    "sketches count each record twice": _sketch(_added_twice),
    "sketches count the values of the record before": _sketch(_a_value_beside),
    "groups of a record lie in different buckets": _sketch(_other_buckets),
    "one-way marginals are not in the ledger": lambda: _ledger_without("one-way marginals"),
    "larger marginals are not in the ledger": lambda: _ledger_without("larger marginals"),
    "the record count is not in the ledger": lambda: _ledger_without("record count"),
    "R-scores are not in the ledger": lambda: _ledger_without("R-scores"),
}


def found(name: str, folder, some=None) -> tuple[str, ...]:
    """What the audit says while a mistake is planted; the first case that finds it."""
    for case in cases.CASES if some is None else some:
        with FAULTS[name]():
            faults = cases.audited(case, folder).faults
        if faults:
            return faults
    return ()

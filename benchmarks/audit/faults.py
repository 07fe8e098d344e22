"""Mistakes that the audit has to find, each planted in the code that a party runs.

They are of kinds that audits found in other libraries: less noise than stated, a larger change than
stated, a figure without noise, the same noise twice, a decision by exact figures, a release that is
not in the ledger, a key that is used under two plans.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from unittest import mock

import numpy as np
from msgspec import structs

import vertimrf.party.party as party
from vertimrf import trial
from vertimrf.columns.private import PrivateNumbers, PrivateValues
from vertimrf.errors import TableError
from vertimrf.keys import PrivateKey
from vertimrf.party import local_model, private_domains
from vertimrf.party.party import Party
from vertimrf.privacy import noise as privacy_noise
from vertimrf.privacy.noise import KeyedNoise
from vertimrf.releases.count_sketches import encoding
from vertimrf.releases.encrypted_counts import encoding as encrypted
from vertimrf.releases.randomised_responses import encoding as responses
from vertimrf.releases.scheduled_pairs.encoding import SketchEncoder

from . import before_plan, cases, register

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


def _with(owner, name: str, method: Callable) -> Planted:
    """A method or function is another one, which is given the original first."""
    original = getattr(owner, name)

    def replaced(*given, **named):
        return method(original, *given, **named)

    return lambda: mock.patch.object(owner, name, replaced)


def _fine_of_less_noise(self, original, records, noise):
    rows = range(len(self._attributes), len(records.attributes))
    sigma = self._plan.local[self._index].fine_sigma / 2
    return tuple(noise.gaussian(n, sigma) for n in records.marginals([(r,) for r in rows], {}))


def _agreement_of_exact_counts(self, original, records, one_way, noise):
    """Agreement sketches are published in steps that follow from exact counts."""
    return original(
        self, records, {a: counts + records.count for a, counts in one_way.items()}, noise
    )


def _two_sketches(original, self, digests, codes, progress):
    """Each record is added with its neighbour's values as well."""
    original(self, digests, codes, progress)
    original(self, digests, np.roll(codes, 1, axis=1).copy(), progress)


def _levels_by_place(original, self, digests, codes, progress):
    """Levels are drawn by the place of a record in the table, and not by its id."""
    original(self, np.arange(digests.size, dtype=np.uint64)[np.argsort(codes[0])], codes, progress)


def _responses_of_the_row_before(original, plan, attributes, digests, codes, key, entropy):
    mixed = codes + np.roll(codes, 1, axis=1)
    sizes = np.array([plan.sizes[a] for a in attributes], codes.dtype)
    mixed %= sizes[:, None]
    return original(plan, attributes, digests, mixed, key, entropy)


def _responses_in_order_of_values(original, plan, attributes, digests, codes, key, entropy):
    order = np.lexsort(codes)
    return original(plan, attributes, digests, codes[:, order], key, entropy)


def _responses_of_records_that_fit(original, plan, attributes, digests, codes, key, entropy):
    fits = (codes >= 0).all(axis=0)
    return original(plan, attributes, digests[fits], codes[:, fits], key, entropy)


def _tables_of_less_noise(original, self, answers, noise):
    return original(self, answers, lambda exact: _HalfNoise(noise(exact)))


class _HalfNoise:
    """Noise of half of the scale that is asked for."""

    def __init__(self, noise):
        self._noise = noise

    def __getattr__(self, name):
        return getattr(self._noise, name)

    def gaussian(self, values, sigma):
        return self._noise.gaussian(values, sigma / 2)

    def geometrics(self, values, scale):
        return self._noise.geometrics(values, scale / 2)


def _files_as_long_as_the_table(original, self, *given):
    return original(self, *given) | {"more": "x" * len(self.digests)}


def _counted_exactly(original, plan, derive, records):
    return records


def _answer_noise_of_values(original, self, party, rows, noise):
    """How much noise an answer has depends on how many values occur."""
    noise(b"").gaussian(np.zeros(int(self.codes.max(axis=1).sum() + (self.codes >= 0).sum())), 1.0)
    return original(self, party, rows, noise)


def _tables_twice(original, self, answers, noise):
    original(self, answers, noise)
    return original(self, answers, noise)


def _listed_exactly(original, self, cells, search):
    _, events = original(self, cells, search)
    return self.listed(tuple(sorted(cells)[-5:])), events


def _bounds_of_exact_numbers(original, self, cells, search):
    found, events = original(self, cells, search)
    if cells.size and found is not None and not self.bounded:
        found = replace(self.known, edges=(float(cells.min()), float(cells.max()) + 1.0), type=None)
    return found, events


def _half_the_noise(original, epsilon, delta, sensitivity, noise):
    return original(epsilon, delta, sensitivity, _HalfNoise(noise))


def _planned_exactly(original, schema, table, epsilon, planning, spent=()):
    return original(
        schema, table, epsilon, replace(planning, expected_records=table.records), spent
    )


@contextmanager
def _noise_of_the_plan() -> Iterator[None]:
    original = KeyedNoise._draw

    def draw(self, law, parameter, exact):
        return original(self, law, parameter, np.zeros_like(exact))

    with (
        mock.patch.object(party, "table_digest", return_value=bytes(32)),
        mock.patch.object(KeyedNoise, "_draw", draw),
    ):
        yield


@contextmanager
def _prior_without(kind: str) -> Iterator[None]:
    original = before_plan.prior_entries
    some = lambda plan: [entry for entry in original(plan) if entry.kind != kind]  # noqa: E731
    with mock.patch.object(before_plan, "prior_entries", some):
        yield


@dataclass(frozen=True)
class About:
    """A mistake that only some kinds of release can show.

    Attributes:
        case: the beginning of their names.
        planted: plants it.
    """

    case: str
    planted: Planted

    def __call__(self) -> AbstractContextManager:
        return self.planted()


def _about(case: str, faults: Mapping[str, Planted]) -> dict[str, About]:
    """Mistakes by name that only some kinds of release can show."""
    return {name: About(case, planted) for name, planted in faults.items()}


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
    "fine marginals have half of their noise": _with_party("_fine", _fine_of_less_noise),
    "agreement sketches have noise from the exact count": About(
        "agreement", _with_party("_agreement", _agreement_of_exact_counts)
    ),
    **_about(
        "scheduled",
        {
            "a record enters two sketches under a key": _with(
                SketchEncoder, "_encode", _two_sketches
            ),
            "levels follow from the place of a record": _with(
                SketchEncoder, "_encode", _levels_by_place
            ),
        },
    ),
    **_about(
        "randomised",
        {
            "responses depend on the record before": _with(
                responses, "respond", _responses_of_the_row_before
            ),
            "rows of responses are in the order of values": _with(
                responses, "respond", _responses_in_order_of_values
            ),
            "records that do not fit have no responses": _with(
                responses, "respond", _responses_of_records_that_fit
            ),
        },
    ),
    **_about(
        "encrypted",
        {
            "tables of encrypted counts have half of their noise": _with(
                encrypted.Steps, "tables", _tables_of_less_noise
            ),
            "encrypted counts are not in the ledger": lambda: _ledger_without("encrypted counts"),
            "tables of encrypted counts are released twice": _with(
                encrypted.Steps, "tables", _tables_twice
            ),
            "the record count of encrypted counts has no noise": _with(
                encrypted, "noisy_count", _counted_exactly
            ),
            "files between parties are as long as the table": _with(
                encrypted.Steps, "_header", _files_as_long_as_the_table
            ),
            "draws of an answer depend on its values": _with(
                encrypted.Steps, "answer", _answer_noise_of_values
            ),
        },
    ),
    **_about(
        "private",
        {
            "values are listed that no noise hides": _with(PrivateValues, "find", _listed_exactly),
            "bounds follow from the numbers": _with(
                PrivateNumbers, "find", _bounds_of_exact_numbers
            ),
            "a search has half of its noise": _with(private_domains, "Search", _half_the_noise),
            "a search of values is not in the ledger": lambda: _prior_without("values"),
        },
    ),
    "a plan is made for the exact number of records": About(
        "the number of", _with(trial, "plan_for", _planned_exactly)
    ),
    "the number to plan with is not in the ledger": About(
        "the number of", lambda: _prior_without("planning count")
    ),
    **_about(
        "keys",
        {
            "noise keys are the same under all plans": _with(
                PrivateKey,
                "derive",
                lambda derive, key, plan, purpose: derive(key, b"", purpose.split(",")[0]),
            ),
            "hash keys are the same under all plans": _with(
                party,
                "derive",
                lambda derive, secret, plan, purpose: derive(secret, b"", purpose=purpose),
            ),
            "noise follows from the plan alone": _noise_of_the_plan,
            "every draw of a message has the same noise": _with(
                KeyedNoise,
                "_draw",
                lambda draw, self, *given: privacy_noise.Stream(self._key + bytes(32)),
            ),
        },
    ),
}


def found(name: str, folder, some=None) -> tuple[str, ...]:
    """What the audit says while a mistake is planted; the first case that finds it."""
    planted = FAULTS[name]
    about = planted.case if isinstance(planted, About) else ""
    for case in register.CASES if some is None else some:
        if not case.name.startswith(about):
            continue
        with planted():
            faults = case.audit(folder).faults
        if faults:
            return faults
    return ()

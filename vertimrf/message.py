"""The message of a party to the server: noisy marginals and sketches.

Versioned, checksummed, no pickle.

A message file is sealed for the server (:mod:`vertimrf.keys`). The noise protects records only from
readers who do not know the parties' secret. The other parties know it, and could read each record's
values from a sketch.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .arguments import DATA, PATH, TEXT, instance, takes
from .arrays import Arrays, Bytes, Fields, Floats, Integers, Ints
from .errors import MALFORMED, MessageError
from .files import container, sealed
from .files.atomic import read_bytes
from .files.bits import pack_bits, packed_size, unpack_bits
from .files.results import save
from .keys import PrivateKey, called, open_sealed, seal
from .model.local_marginal import (
    LocalMarginal,
    average,
    first_one_way,
    one_way_counts,
    record_figures,
)
from .model.measurement import BinMap, bin_table, binned_sizes
from .plan.groups import BinMaps, cut_groups
from .plan.local_bins import cuttings
from .plan.local_plan import LocalPlan
from .plan.merging import merged_values, merging
from .plan.plan import Plan
from .plan.workload import Workload
from .privacy.label import PrivacyLabel
from .releases.release import CrossPartyRelease

KIND = "party message"
# Limits on a message's size: bytes of all, and of each marginal's header; and rows as a multiple of
# the plan's expected records.
OVERHEAD = 1 << 20
MARGINAL_HEADER = 512
RECORDS_OVER_EXPECTED = 100
# Noise never exceeds this many standard deviations. Sums of counts are compared more strictly, so
# that a fit (CONTRADICTION of model/fit.py) meets no contradiction within one message.
NOISE_REACHES, SUMS_REACH = 40.0, 20.0


@dataclass(frozen=True, eq=False)
class Message:
    """The release of a party to the server.

    With encrypted counts, sealed files of :mod:`vertimrf.releases.encrypted_counts` go to other parties
    before it.

    Attributes:
        plan_digest: digest of the plan that it was made for [32 bytes].
        party: index of the party in the plan.
        private: False if the noise was fixed (tests only), or if the privacy label differs from the
            plan's. The run is then marked as not private.
        count: noisy record count. Only the first party sends it.
        marginals: measured marginals of LocMRF. Attributes are indices in the global schema.
        bins: per group of this party, in plan order, and per attribute of the group, the map code
            -> bin [shape=(size,), int64].
        sketches: one array per scheduled pair or group of this party, in plan order [uint8].
            Scheduled pairs and shared keys: levels [shape=(bins, keys)]. Count sketches: codes of
            counters [shape=(values, counters)]. Randomised responses: [shape=(1, records)].
        tables: encrypted counts, with noise, in the order of ``plan.counted_pairs``
            [shape=(counters of the other's group, counters of the own group), int64].
        agreement: per attribute of this party that others hold too, where the plan asks for it,
            codes of counters [shape=(1, counters), uint8] (:mod:`vertimrf.releases.count_sketches.agreement`).
        fine: fine marginals, in the order of ``plan.fine_of``: counts with noise [each
            shape=(cells,), int64].
    """

    plan_digest: bytes
    party: int
    private: bool
    count: int | None
    marginals: tuple[LocalMarginal, ...]
    bins: tuple[BinMaps, ...]
    sketches: tuple[Bytes, ...]
    agreement: tuple[Bytes, ...] = ()
    tables: tuple[Integers, ...] = ()
    fine: tuple[Integers, ...] = ()

    def __repr__(self) -> str:
        return f"<Message of party {self.party}: {len(self.marginals)} marginals>"

    @takes(MessageError, plan=instance("Plan"))
    def to_bytes(self, plan: Plan) -> bytes:
        """The message before sealing.

        Sketch levels are packed as offsets above the plan's floor.
        """
        fixed = plan.label.because("a party fixed its noise")
        label = plan.label if self.private else fixed
        header: Fields = {
            "plan": self.plan_digest.hex(),
            "party": self.party,
            "label": label.to_json(),
            "count": self.count,
            "marginals": [
                {"attributes": list(m.attributes), "sigma": m.sigma, "units": m.units}
                | ({"parts": list(m.parts)} if m.parts else {})
                for m in self.marginals
            ],
        }
        if plan.sketch.publishes_rows and self.sketches:
            header["rows"] = self.sketches[0].size
        arrays: Arrays = {f"marginal{i}": m.counts for i, m in enumerate(self.marginals)}
        arrays |= {
            f"bins{i}": bins.astype(np.uint16) for i, bins in enumerate(itertools.chain(*self.bins))
        }
        arrays |= _packed("sketch", 0, self.sketches, plan.sketch)
        arrays |= {f"table{i}": table for i, table in enumerate(self.tables)}
        arrays |= {f"fine{i}": counts for i, counts in enumerate(self.fine)}
        for i, (codes, sketch) in enumerate(
            zip(self.agreement, plan.agreement_of(self.party).values(), strict=True)
        ):
            arrays |= _packed("agreement", i, [codes], sketch)
        return container.pack(KIND, header, arrays)

    @takes(MessageError, plan=instance("Plan"), key=instance("PrivateKey"))
    def seal(self, plan: Plan, key: PrivateKey) -> bytes:
        """The message as sent: only the server can open it, and it is provably from this party.

        Args:
            plan: the agreed plan, with everyone's public keys.
            key: this party's private key.

        Raises:
            MessageError: the key belongs to another party.
            PlanError: the plan has no keys, or another key for this party.
        """
        _check_owner(plan, self.party, key.party, "The message")
        return seal(self.to_bytes(plan), KIND, plan.digest(), plan.sealing_keys(), key, None)

    def save(self, path: str | Path, plan: Plan, key: PrivateKey) -> int:
        """Write the sealed message.

        Args:
            path: the file.
            plan: the agreed plan, with everyone's public keys.
            key: this party's private key.

        Returns:
            Size of the file in bytes.

        Raises:
            MessageError, PlanError: as :meth:`seal`.
            OutputError, OSError: the file cannot be written.
        """
        data = self.seal(plan, key)
        save(path, data)
        return len(data)

    @classmethod
    @takes(MessageError, path=PATH, plan=instance("Plan"), key=instance("PrivateKey"))
    def load(cls, path: str | Path, plan: Plan, key: PrivateKey) -> Message:
        """Read, open and validate a message file.

        Args:
            path: the file.
            plan: the agreed plan, with everyone's public keys.
            key: the server's private key.

        Raises:
            MessageError: missing, truncated, altered, of another plan or party than it says, or not
                what the plan asks for.
            PlanError: the plan has no keys, or another key for the server.
        """
        data = read_bytes(path, "message", MessageError, sealed.most_bytes(largest_message(plan)))
        return cls.unseal(data, plan, key, str(path))

    @classmethod
    @takes(MessageError, data=DATA, plan=instance("Plan"), key=instance("PrivateKey"), where=TEXT)
    def unseal(cls, data: bytes, plan: Plan, key: PrivateKey, where: str = "message") -> Message:
        """Open and validate a message that :meth:`seal` made.

        Args:
            data: bytes of the file.
            plan: the agreed plan, with everyone's public keys.
            key: the server's private key.
            where: name of the file, for errors.

        Raises:
            MessageError, PlanError: as :meth:`load`.
        """
        sender, contents = open_sealed(data, KIND, plan.digest(), plan.sealing_keys(), key, where)
        message = cls.from_bytes(contents, plan, where)
        _check_owner(plan, message.party, sender, where)
        return message

    @classmethod
    @takes(MessageError, data=DATA, plan=instance("Plan"), where=TEXT)
    def from_bytes(cls, data: bytes, plan: Plan, where: str = "message") -> Message:
        """Read a message and check every field against the plan. Nothing in it is trusted.

        Args:
            data: the message before sealing.
            plan: the agreed plan.
            where: name of the file, for errors.

        Raises:
            MessageError: the message is truncated or altered, of another plan, or not what the plan
                asks for.
        """
        header, arrays = container.unpack(data, KIND, where)
        if header.get("plan") != plan.digest().hex():
            raise MessageError(f"{where} was made for another plan; make it again with this plan.")
        try:
            return _validated(header, arrays, plan)
        except MALFORMED as error:
            if isinstance(error, MessageError):
                raise MessageError(f"{where}: {error}") from None
            raise MessageError(
                f"{where} does not follow its plan ({error}); make it again."
            ) from None


def largest_message(plan: Plan) -> int:
    """Largest size of any party's message under a plan, before sealing, bytes."""
    most = 0
    for party, local in enumerate(plan.local):
        sizes = [plan.schema.sizes[a] for a in plan.schema.varying(plan.party_names[party])]
        larger = min(local.units, 2 ** len(sizes))
        fine = [plan.schema.fine[a].size for a in plan.fine_of(party)]
        cells = sum(sizes + fine) + larger * min(math.prod(sizes), local.largest_clique)
        bins = sum(
            plan.schema.sizes[a]
            for group in plan.groups_of(party)
            for a in plan.groups[group].attributes
        )
        sketches = plan.message_size(party, RECORDS_OVER_EXPECTED * plan.expected_records)
        tables = len(sizes) + len(fine) + larger + len(plan.counted_pairs(party))
        headers = MARGINAL_HEADER * tables
        most = max(most, 8 * cells + 2 * bins + sketches + headers)
    return most + OVERHEAD


def _check_owner(plan: Plan, party: int, sealed_by: str | None, where: str) -> None:
    """Refuse a message that is sealed with another party's key."""
    if plan.party_names[party] != sealed_by:
        raise MessageError(
            f"{where} holds what {plan.party_names[party]!r} releases, under the key of {called(sealed_by)}: each seals its "
            "own, with its own key."
        )


def _unpacked(
    arrays: Arrays,
    name: str,
    first: int,
    sketch: CrossPartyRelease,
    groups: Sequence[int],
    rows: int = 0,
) -> list[Bytes]:
    """The tables that :func:`_packed` packed, each checked against the plan."""
    out = []
    expected = zip(sketch.shapes(groups, rows), sketch.highest(groups), strict=True)
    for number, (shape, most) in enumerate(expected, first):
        count = shape[0] * shape[1]
        packed = _array(arrays, f"{name}{number}", np.uint8, (packed_size(count, sketch.bits),))
        levels = unpack_bits(packed, count, sketch.bits)
        levels += np.uint8(sketch.floor)
        if levels.max(initial=0) > most:
            raise MessageError(
                f"{name} {number} holds {levels.max()}, above its highest level {most}."
            )
        out.append(levels.reshape(shape))
    return out


def _tables(arrays: Arrays, plan: Plan, party: int) -> tuple[Integers, ...]:
    """Tables of encrypted counts, each checked against the plan."""
    out = []
    for number, (other, mine) in enumerate(plan.counted_pairs(party)):
        shape = plan.sketch.rows(other), plan.sketch.rows(mine)
        table = _array(arrays, f"table{number}", np.int64, shape)
        noise, signed = plan.sketch.count_noise, bool(plan.sketch.contrasts)
        _check_counts(f"table {number}", table, plan.expected_records, noise, signed)
        out.append(table)
    return tuple(out)


def _validated(header: Fields, arrays: Arrays, plan: Plan) -> Message:
    party = header["party"]
    if not isinstance(party, int) or not 0 <= party < len(plan.local):
        raise MessageError(f"party {party!r} is not one of the plan's {len(plan.local)}.")
    marginals = _marginals(header["marginals"], arrays, plan, party)
    groups = plan.groups_of(party)
    bins = bins_of(plan, party, one_way_counts(marginals))
    stated = itertools.count()
    for index, maps in zip(groups, bins, strict=True):
        for attribute, bin_of in zip(plan.groups[index].attributes, maps, strict=True):
            sent = _array(arrays, f"bins{next(stated)}", np.uint16, bin_of.shape)
            if not np.array_equal(sent, bin_of):
                raise MessageError(
                    f"its bins of {plan.schema.names[attribute]!r} are not those that follow from its one-way marginal: "
                    "have it made again."
                )
    rows = int(header["rows"]) if plan.sketch.publishes_rows and groups else 0
    sketches = _unpacked(arrays, "sketch", 0, plan.sketch, groups, rows)
    tables = _tables(arrays, plan, party)
    agreement: list[Bytes] = []
    for i, sketch in enumerate(plan.agreement_of(party).values()):
        agreement += _unpacked(arrays, "agreement", i, sketch, (0,))
    count = header["count"]
    if (count is None) != (party != 0) or not (
        count is None or (type(count) is int and abs(count) < 1 << 62)
    ):
        raise MessageError("the first party, and it alone, states a record count.")
    if count is not None:
        _check_counts("the record count", count, plan.expected_records, plan.count_sigma)
    fine = _fine(arrays, plan, party)
    _check_sums(plan, marginals, count, fine, plan.local[party].fine_sigma)
    expected = len(marginals) + sum(len(maps) for maps in bins) + len(sketches) + len(agreement)
    expected += len(tables) + len(fine)
    if len(arrays) != expected:
        raise MessageError(f"it holds {len(arrays)} arrays where the plan asks for {expected}.")
    return Message(
        plan_digest=bytes.fromhex(header["plan"]),
        party=party,
        # Any other label than that of the plan makes the whole run not private.
        private=PrivacyLabel.from_json(header.get("label")) == plan.label,
        count=count,
        marginals=tuple(marginals),
        bins=bins,
        sketches=tuple(sketches),
        agreement=tuple(agreement),
        tables=tables,
        fine=fine,
    )


def _fine(arrays: Arrays, plan: Plan, party: int) -> tuple[Integers, ...]:
    """Fine marginals, each checked against the plan."""
    out = []
    for number, a in enumerate(plan.fine_of(party)):
        counts = _array(arrays, f"fine{number}", np.int64, (plan.schema.fine[a].size,))
        sigma = plan.local[party].fine_sigma
        _check_counts(f"fine marginal {number}", counts, plan.expected_records, sigma)
        out.append(counts)
    return tuple(out)


def _marginals(
    entries: Sequence[Fields], arrays: Arrays, plan: Plan, party: int
) -> list[LocalMarginal]:
    """Local marginals, each checked against the plan.

    The one-way marginals determine which values the larger ones merge: all in the same way or, where
    the party chose its pairs, into the numbers of bins that it states. A party measures no set of
    attributes twice among these, in the same bins, and none that its cliques cannot hold.
    """
    sizes, name, local = plan.schema.sizes, plan.party_names[party], plan.local[party]
    varying = plan.schema.varying(name)
    marginals: list[LocalMarginal] = []
    merged: dict[int, BinMap] = {}
    alone: dict[int, Floats] = {}
    cuts = dict(zip(varying, cuttings(plan.schema, varying), strict=True))
    others: set[tuple[Ints, Ints]] = set()
    for i, entry in enumerate(entries):
        attributes = tuple(int(a) for a in entry["attributes"])
        if list(attributes) != sorted(set(attributes) & set(varying)):
            raise MessageError(
                f"marginal {i} is of attributes that are not the party's own, or not in order."
            )
        if i == len(varying) and [m.attributes for m in marginals] == [(a,) for a in varying]:
            alone = one_way_counts(marginals)
            merged = _merged(plan, party, alone)
        parts = tuple(int(k) for k in entry.get("parts", ()))
        if bool(parts) != bool(local.choices and i >= len(varying)) or (
            parts and (len(parts) != len(attributes) or min(parts) < 2)
        ):
            raise MessageError(f"marginal {i} states bins that the plan does not ask for.")
        if parts:
            bins = tuple(
                cuts[a].bins(alone[a], local.one_way_sigma, k)
                for a, k in zip(attributes, parts, strict=True)
            )
        else:
            bins = tuple(merged.get(a) for a in attributes)
        shape = binned_sizes([sizes[a] for a in attributes], bins)
        contrasts = local.contrasted(shape)
        sigma, units = float(entry["sigma"]), entry["units"]
        if not (math.isfinite(sigma) and sigma > 0 and isinstance(units, int) and units > 0):
            raise MessageError(f"marginal {i} states a noise of {sigma} in {units} units.")
        kept = tuple(1 if axis in contrasts else count for axis, count in enumerate(shape))
        counts = _array(arrays, f"marginal{i}", np.int64, kept)
        merging_bins = bins if any(m is not None for m in bins) else ()
        marginals.append(
            LocalMarginal(attributes, counts, sigma, units, merging_bins, contrasts, parts)
        )
        large = len(shape) > 1 and math.prod(shape) > local.largest_clique
        if large or (attributes, parts) in others:
            raise MessageError(
                f"marginal {i} repeats another, or has more cells than the plan allows: have it made again."
            )
        if i >= len(varying):
            others.add((attributes, parts))
    _check_marginals(marginals, local, varying, plan.expected_records)
    if local.choices:
        _check_chosen(marginals[len(varying) :], local, plan.workload.part(varying), varying)
    return marginals


def _check_chosen(
    others: Sequence[LocalMarginal], local: LocalPlan, wanted: Workload, varying: Sequence[int]
) -> None:
    """Refuse more pairs than the ledger has choices of one, and more tables of a pair than a party makes.

    Which pairs these are follows from the data: every one beyond the choices would be unpaid.
    """
    asked = {tuple(varying[place] for place in marginal) for marginal in wanted.in_order()}
    tables = Counter(m.attributes for m in others)
    chosen = tables.keys() - asked
    if len(chosen) > local.choices or any(len(attributes) != 2 for attributes in chosen):
        raise MessageError(
            f"it has {len(chosen)} marginals that the plan does not ask for, and the plan's ledger has {local.choices} choices of a pair: "
            "have it made again."
        )
    # In few bins and in more, and what is asked for beforehand.
    if any(count > 2 + (attributes in asked) for attributes, count in tables.items()):
        raise MessageError("it has more tables of one pair than a party makes: have it made again.")


def _check_marginals(
    marginals: list[LocalMarginal], local: LocalPlan, varying: Sequence[int], expected: int
) -> None:
    """Refuse impossible counts, and measurements beyond those in the ledger.

    More measurements, or more accurate ones, would void the guarantee.
    """
    first, others = marginals[: len(varying)], marginals[len(varying) :]
    if [m.attributes for m in first] != [(a,) for a in varying] or not all(
        m.attributes for m in others
    ):
        raise MessageError(
            "its marginals are not those that the plan asks for: one-way marginals first, then others."
        )
    stated = [m.units == 1 and math.isclose(m.sigma, local.one_way_sigma) for m in first]
    stated += [math.isclose(m.sigma, math.sqrt(m.units) * local.unit_sigma) for m in others]
    if not all(stated) or sum(m.units for m in others) > local.units:
        raise MessageError("its marginals are not those of the plan's ledger.")
    for i, m in enumerate(marginals):
        _check_counts(f"marginal {i}", m.counts, m.units * expected, m.sigma, bool(m.contrasts))


def _check_counts(
    what: str, counts: Integers | int, expected: float, sigma: float, signed: bool = False
) -> None:
    """Refuse counts that are too far below 0 or above the expected records for noise.

    Contrasts are signed: their absolute values must not be too large.
    """
    least, most = float(np.min(counts)), float(np.max(counts))
    if signed:
        least, most = 0.0, max(-least, most)
    if (
        least < -NOISE_REACHES * sigma
        or most > RECORDS_OVER_EXPECTED * expected + NOISE_REACHES * sigma
    ):
        raise MessageError(
            f"{what} has counts from {least:.6g} to {most:.6g}, which no table that fits the plan has."
        )


def _check_sums(
    plan: Plan,
    marginals: Sequence[LocalMarginal],
    count: int | None,
    fine: Sequence[Integers],
    fine_sigma: float,
) -> None:
    """Refuse counts that sum to different numbers of records, to fewer than none or to far too many.

    All figures are of the same records, but for the record count of encrypted counts: it includes
    records that do not fit.
    """
    figures = record_figures(plan.count_sigma, marginals, None if plan.sketch.exchanges else count)
    if not figures:
        return
    records, error = average(figures)
    inside = [
        (float(counts.sum(dtype=np.float64)), fine_sigma * math.sqrt(counts.size))
        for counts in fine
    ]
    for value, sigma in (*figures, *inside):
        if abs(value - records) > SUMS_REACH * sigma:
            raise MessageError(
                f"its counts contradict each other: some sum to {value:,.0f} records, all together to {records:,.0f}. "
                "No table has both: have it made again."
            )
    _check_margins(plan, marginals, max(records, 0.0), error)
    most = RECORDS_OVER_EXPECTED * plan.expected_records
    if not -SUMS_REACH * error <= records <= most + SUMS_REACH * error:
        raise MessageError(
            f"it has about {records:,.0f} records, but the plan expects {plan.expected_records:,}: correct the message or "
            "the plan."
        )


def _check_margins(
    plan: Plan, marginals: Sequence[LocalMarginal], records: float, error: float
) -> None:
    """Refuse marginals that contradict those of single attributes, and contrasts of more records
    than there are.

    Args:
        plan: the agreed plan.
        marginals: all of a party.
        records: its number of records.
        error: standard error of ``records``.
    """
    one_way = first_one_way(marginals)
    for m in marginals:
        counts = m.counts / m.units
        beyond = np.abs(counts) - records
        wrong = bool((beyond > SUMS_REACH * math.hypot(m.error, error)).any())
        if not m.contrasts:
            wrong = False
            bins = m.bins or (None,) * len(m.attributes)
            for axis, (a, bin_of) in enumerate(zip(m.attributes, bins, strict=True)):
                others = tuple(k for k in range(counts.ndim) if k != axis)
                alone, shape = one_way[a], counts.shape[axis : axis + 1]
                variance = bin_table(np.full(alone.counts.size, alone.error**2), [bin_of], shape)
                variance += m.error**2 * counts.size / shape[0]
                gap = counts.sum(axis=others) - bin_table(alone.counts / 1, [bin_of], shape)
                wrong |= bool((np.abs(gap) > SUMS_REACH * np.sqrt(variance)).any())
        if wrong:
            names = " × ".join(plan.schema.names[a] for a in m.attributes)
            raise MessageError(
                f"its marginal of {names} contradicts those of single attributes: no table has both. Have it made again."
            )


def bins_of(plan: Plan, party: int, one_way: Mapping[int, Floats]) -> tuple[BinMaps, ...]:
    """Bin maps of a party's groups. They follow from its one-way marginals.

    Args:
        plan: the agreed plan.
        party: position of the party.
        one_way: from :func:`one_way_counts`.

    Returns:
        Per group, in plan order, and attribute of it, the map code -> bin [shape=(size,), int64].
    """
    groups = [plan.groups[g] for g in plan.groups_of(party)]
    return cut_groups(plan.schema, groups, one_way, _merged(plan, party, one_way), plan.halved)


def _merged(plan: Plan, party: int, one_way: Mapping[int, Floats]) -> dict[int, Integers]:
    """Maps code -> merged value of a party's long domains and halved attributes."""
    long = merging(plan.schema, plan.party_names[party])
    return merged_values(one_way, plan.local[party].one_way_sigma, long)


def _array(arrays: Arrays, name: str, dtype: type, shape: Ints) -> npt.NDArray[Any]:
    if name not in arrays:
        raise MessageError(f"it lacks {name}, which the plan asks for.")
    array = arrays[name]
    if array.dtype != dtype or array.shape != shape:
        raise MessageError(
            f"{name} has shape {array.shape} of {array.dtype}, not {shape} of {np.dtype(dtype)}."
        )
    return array


def _packed(name: str, first: int, tables: Sequence[Bytes], sketch: CrossPartyRelease) -> Arrays:
    """Tables as they are sent: levels above the floor, packed into the plan's bits."""
    floor = np.uint8(sketch.floor)
    return {
        f"{name}{i}": pack_bits(levels - floor if floor else levels, sketch.bits)
        for i, levels in enumerate(tables, first)
    }

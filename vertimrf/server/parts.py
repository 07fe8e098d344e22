"""Convert measurements to the people of one part, if parties have different people.

A part is the people at certain parties and at no other. A party's marginal counts all its people,
and a cross-party marginal those of both parties, but a model is fitted to the counts of one part.

1. The margins of cross-party tables say how many records of each value the other party also has.
   They give each attribute's one-way marginal in every part.
2. A larger marginal is multiplied by factors of its attributes' values that give it the part's
   one-way marginals (raking; Deming and Stephan, 1940). If presence at parties is independent of
   the attributes, this is one factor.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ..arrays import Codes, Flags, Floats, Pair, Texts
from ..errors import NoMassError
from ..model.markov_random_field import MarkovRandomField
from ..model.measurement import Measurement, bin_table, padded
from ..model.sample import expected_records, sample
from ..plan.schema import Schema
from ..releases.received import one_axis
from .population import Overlap, proportional

# Rounds of raking; the remaining error is far below the noise.
RAKING = 30
# Least factor of a count's standard deviation.
MIN_SIGMA = 0.02


@dataclass(frozen=True, eq=False)
class Parts:
    """One-way marginals and measurements of all parts; make them with :meth:`of`.

    Attributes:
        schema: attributes and parties.
        overlap: how the parties' people overlap; a part is the index of one of its patterns.
        initial: a model of the local marginals, scaled to the same number of records.
        local: the local marginals, of each party's people.
        crossing: measurements from sketches, of the common people of their parties.
        margins: per attribute, records of its values in each part [each shape=(patterns, size),
            float64].
    """

    schema: Schema
    overlap: Overlap
    initial: MarkovRandomField
    local: tuple[Measurement, ...]
    crossing: tuple[Measurement, ...]
    margins: tuple[Floats, ...]

    @classmethod
    def of(
        cls,
        schema: Schema,
        overlap: Overlap,
        initial: MarkovRandomField,
        local: Sequence[Measurement],
        crossing: Sequence[Measurement],
        shared: Mapping[Pair, Measurement],
    ) -> Parts:
        """Estimate the margins of every attribute, from ``shared`` of
        :class:`~.cross_party.CrossParty`.

        Without ``shared``, the margins of cross-party tables are used. The arguments are the
        class's attributes.
        """
        counts_of: dict[Pair, list[Measurement]] = {holds: [m] for holds, m in shared.items()}
        for m in () if shared else crossing:
            parties = _parties(schema, m)
            if len(parties) == 2:
                for axis, a in enumerate(m.attributes):
                    (other,) = parties - {schema.party_of(a)}
                    counts_of.setdefault((a, other), []).append(one_axis(m, axis))
        margins = []
        for a in range(len(schema.sizes)):
            party = schema.party_of(a)
            sizes = initial.marginal((a,)) * (overlap.party_counts[party].records / initial.total)
            holds = _with(overlap, party)
            counts = np.where(holds, overlap.counts, 0.0)[:, None] * (
                sizes / max(overlap.counts[holds].sum(), 1.0)
            )
            others = [
                q
                for q in range(len(overlap.names))
                if q != party and not _with(overlap, q)[holds].all()
            ]
            shares = {
                q: _shares(counts_of.get((a, q), []), sizes, overlap.share(party, q))
                for q in others
            }
            both = [(holds & _with(overlap, q), sizes * share) for q, share in shares.items()]
            alone = [
                (holds & ~_with(overlap, q), sizes * (1 - share)) for q, share in shares.items()
            ]
            margins.append(proportional(counts, [*both, *alone]))
        return cls(schema, overlap, initial, tuple(local), tuple(crossing), tuple(margins))

    @property
    def all(self) -> int:
        """The part of the people at all parties: the last one."""
        return len(self.overlap.patterns) - 1

    def measurements(self, measurements: Sequence[Measurement], part: int) -> list[Measurement]:
        """Convert the measurements whose parties have the part's people.

        Args:
            measurements: measurements of all people of their parties.
            part: index of a pattern.

        Returns:
            Measurements of the part's people.
        """
        pattern = set(self.overlap.patterns[part])
        # Shared columns are measured by the first party that has them.
        first = [{self.schema.party_of(a) for a in m.attributes} for m in measurements]
        return [
            self._cut(m, part)
            for m, owners in zip(measurements, first, strict=True)
            if owners | _parties(self.schema, m) <= pattern
        ]

    def _cut(self, m: Measurement, part: int) -> Measurement:
        """Convert a measurement to a part of its people."""
        parties = sorted(_parties(self.schema, m))
        counted = self.overlap.holding(parties)
        if counted == [part]:
            return m
        wanted, there = [], []
        for a, bins, count in zip(m.attributes, m.bins, m.counts.shape, strict=True):
            margins = self.margins[a]
            wanted.append(bin_table(margins[part], (bins,), (count,)))
            there.append(bin_table(margins[counted].sum(axis=0), (bins,), (count,)))
        if len(parties) == 1:
            scale = self.overlap.party_counts[parties[0]].records / self.initial.total
            (expected,) = self.initial.marginals([m.attributes], [m.bins])
            table = padded(expected, m.counts.shape) * scale
        else:
            # Without a model across parties, the attributes are assumed to be independent.
            table = np.full(m.counts.shape, float(there[0].sum()))
            for axis, margin in enumerate(there):
                table *= _along(margin / max(margin.sum(), 1e-300), axis, m.counts.ndim)
        factors = _raking(table, wanted)
        return replace(
            m,
            counts=m.counts * factors,
            sigma=np.asarray(m.sigma) * np.maximum(factors, MIN_SIGMA),
        )


@dataclass(frozen=True, eq=False)
class PartModel:
    """A model of the people at certain parties and at no other.

    Attributes:
        parties: names of the parties.
        field: the model; values of attributes of other parties have no meaning.
    """

    parties: Texts
    field: MarkovRandomField

    def holds(self, schema: Schema, attributes: Iterable[int]) -> bool:
        """Whether these parties have some attributes."""
        return all(schema.parties[schema.party_of(a)][0] in self.parties for a in attributes)


def sample_parts(
    schema: Schema,
    parts: Sequence[PartModel],
    rows: int | None,
    rng: np.random.Generator,
    given: Mapping[int, npt.ArrayLike] | None = None,
    progress: Callable[[int, int], None] | None = None,
    shares: Mapping[int, npt.ArrayLike] | None = None,
) -> tuple[Codes, Codes]:
    """Draw rows of all people from models of parts, in random order.

    Args:
        schema: attributes and parties.
        parts: models of the parts.
        rows: number of rows; None for the expected number of people.
        rng, given, progress, shares: as for :func:`~vertimrf.model.sample.sample`. People without a column
            of ``given`` do not fulfil it.

    Returns:
        Codes, 0 where no party has a value [shape=(d, rows), uint16], and the index of each row's
        part [shape=(rows,), uint16].

    Raises:
        NoMassError: no record fulfils the condition.
        ModelError: as for :func:`~vertimrf.model.sample.sample`.
    """
    conditions = given or {}
    totals = np.zeros(len(parts))
    for i, part in enumerate(parts):
        if part.holds(schema, conditions):
            with contextlib.suppress(NoMassError):
                totals[i] = expected_records(part.field, conditions, shares)
    if not totals.any():
        raise NoMassError(
            "The model has no records that fulfil the condition; ask for other values."
        )
    wanted = max(round(totals.sum()), 1) if rows is None else rows
    # Rounding cumulative sums gives the wanted number of rows in all.
    ends = np.rint(np.cumsum(totals) / totals.sum() * wanted).astype(int)
    codes, part_of_row = [], []
    for i, (part, count) in enumerate(zip(parts, np.diff(ends, prepend=0).tolist(), strict=True)):
        if count:
            drawn = sample(part.field, count, rng, conditions, progress, shares)
            drawn[[a for a in range(len(drawn)) if not part.holds(schema, [a])]] = 0
            codes.append(drawn)
            part_of_row.append(np.full(count, i, np.uint16))
    order = rng.permutation(wanted)
    return np.ascontiguousarray(np.concatenate(codes, axis=1)[:, order]), np.concatenate(
        part_of_row
    )[order]


def _raking(table: Floats, wanted: Sequence[Floats]) -> Floats:
    """Factors, products of one per value of each axis, that give a table some margins; at most 1
    [shape of ``table``].
    """
    factors = [np.ones(len(margin)) for margin in wanted]
    now = table.copy()
    for _ in range(RAKING):
        for axis, margin in enumerate(wanted):
            sums = now.sum(axis=tuple(k for k in range(now.ndim) if k != axis))
            step = np.divide(margin, sums, out=np.zeros_like(margin), where=sums > 0)
            factors[axis] *= step
            now *= _along(step, axis, now.ndim)
    out = np.ones(table.shape)
    for axis, factor in enumerate(factors):
        out *= _along(factor, axis, table.ndim)
    return np.minimum(out, 1.0)


def _along(values: Floats, axis: int, axes: int) -> Floats:
    return values.reshape([-1 if k == axis else 1 for k in range(axes)])


def _with(overlap: Overlap, party: int) -> Flags:
    """Whether a party is in each pattern [shape=(patterns,), bool]."""
    return np.array([party in pattern for pattern in overlap.patterns])


def _parties(schema: Schema, measurement: Measurement) -> set[int]:
    """Parties whose common people a measurement is of."""
    together = schema.holder(measurement.attributes)
    return {schema.party_of(a) for a in measurement.attributes} if together is None else {together}


def of_common_people(schema: Schema, crossing: Sequence[Measurement]) -> list[Measurement]:
    """Remove measurements of attributes that one party has together, because sketches count only
    part of its people.
    """
    return [
        m
        for m in crossing
        if not schema.at_one_party(m.attributes)
        or len({schema.party_of(a) for a in m.attributes}) == 1
    ]


def _shares(measurements: Sequence[Measurement], sizes: Floats, share: float) -> Floats:
    """Estimate the share of each value's records that another party also has.

    Each value's share is shrunk towards that of all records, by the ratio of the noise to the
    spread of the values (empirical Bayes; Efron and Morris, 1973).

    Args:
        measurements: noisy numbers of these records, each with its bins.
        sizes: records of each value [shape=(size,), float64].
        share: share of all records.

    Returns:
        The shares [shape=(size,), float64].
    """
    out = np.full(len(sizes), share)
    by_bins: dict[bytes, list[Measurement]] = {}
    for m in measurements:
        by_bins.setdefault(b"" if m.bins[0] is None else m.bins[0].tobytes(), []).append(m)
    # Coarse bins come first, as their factor applies to all values within.
    for rows in sorted(by_bins.values(), key=lambda rows: len(rows[0].counts)):
        bins, shape = rows[0].bins[0], rows[0].counts.shape
        precision = np.array([np.broadcast_to(np.asarray(m.sigma) ** -2, shape) for m in rows])
        counts = np.average([m.counts for m in rows], axis=0, weights=precision)
        noise = 1 / precision.sum(axis=0)
        records, expected = bin_table(sizes, (bins,), shape), bin_table(sizes * out, (bins,), shape)
        gap = counts - expected
        # Weighted least squares for the variance of shares: E[gap^2] = noise + variance *
        # records^2.
        weight = np.square(records / noise)
        variance = max(
            float(
                (weight * (np.square(gap) - noise)).sum()
                / max((weight * np.square(records)).sum(), 1e-300)
            ),
            0.0,
        )
        spread = variance * np.square(records)
        shared = np.clip(expected + spread / (spread + noise) * gap, 0.0, records)
        factor = np.divide(shared, expected, out=np.ones(shape), where=expected > 0)
        out = np.minimum(out * (factor if bins is None else factor[bins]), 1.0)
    return out

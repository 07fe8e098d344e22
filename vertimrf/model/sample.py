"""Draw synthetic rows from a Markov random field (VertiMRF, phase 6).

1. Draw several times as many rows as wanted from the junction tree, by systematic sampling at each
clique (:func:`propose`). 2. Weight the rows by the off-tree factors, rake the weights so that the
tree's own counts hold, and resample the rows by these weights. 3. Pick one of several candidates
for each row, so that the counts of low-order marginals stay close to the expected ones.

A model without off-tree factors skips step 2.
"""

from __future__ import annotations

import functools
import itertools
import math
import threading
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ..arguments import shown
from ..arrays import Codes, Floats, Integers, Ints, memory
from ..errors import ModelError
from ..kernels import rows as kernels
from ..kernels import sample as draw
from ..kernels.jit import for_each, in_slices, threads
from .couple import codes_of, couple
from .domain_compression import Compression
from .markov_random_field import MarkovRandomField
from .measurement import BinMap, Measurement, binned_sizes
from .passes import axis_map
from .picking import BLOCKS, Balance, balanced_marginals
from .row_tables import RowTables, lookups

# Attributes and probabilities of marginals.
Known = Sequence[tuple[Ints, Floats]]

# Most and least rows of a batch, and most rows of which each is picked from several candidates: from
# CANDIDATES, of more than MANY rows from half as many. At least MIN_WEIGHED rows are weighted, because
# resampling from fewer is inaccurate.
BATCH, MIN_BATCH, MAX_PICKED, MIN_WEIGHED = 1 << 18, 1 << 8, 1 << 19, 1 << 12
CANDIDATES, MANY = 10, 1 << 16
# Most rows of a batch that are not picked, and from which independent ones are drawn.
MAX_PROPOSED = 1 << 20
# Least rows of a slice, which one thread draws.
SLICE = 1 << 14
# Rows from which a marginal is computed.
MARGINAL_ROWS = 1 << 18
# Raking: least expected rows of a cell, and most lookups of pairs in a batch.
RAKED_ROWS, RAKED_LOOKUPS = 8.0, 6e7


def sample(
    model: MarkovRandomField,
    rows: int,
    rng: np.random.Generator,
    given: Mapping[int, npt.ArrayLike] | None = None,
    progress: Callable[[int, int], None] | None = None,
    shares: Mapping[int, npt.ArrayLike] | None = None,
) -> Codes:
    """Draw synthetic rows.

    Several times as many rows as wanted are drawn from the junction tree (:func:`propose`). With
    off-tree factors, systematic sampling repeats them by their weights, each to within one of its
    expected number. They are the candidates, some for each wanted row. One after the other, the
    candidate is taken that brings the counts of single attributes, pairs and triples closest to
    those of all weighted rows (:class:`~.picking.Balance`). So counts are much closer to the model's than those of
    independent draws. Of very many rows each has one candidate, because their counts are close.

    Args:
        model: the fitted model.
        rows: number of rows, 1 or more.
        rng: random generator; only for sampling, never for privacy noise.
        given: by attribute, the codes that it may have; the rows then follow the model's
            conditional.
        progress: called with the number of rows done and of all rows.
        shares: as for :meth:`~.markov_random_field.MarkovRandomField.restricted`.

    Returns:
        Codes [shape=(d, rows), uint16], rows in random order.

    Raises:
        ModelError: ``rows`` is less than 1 or too many for one draw, or a condition is unknown.
        NoMassError: a condition has no mass.
    """
    if not given:
        return _sample(model, rows, rng, True, progress)
    codes = _sample(model.restricted(given, shares), rows, rng, False, progress)
    for attribute, allowed in given.items():
        codes[attribute] = np.asarray(allowed, np.uint16)[codes[attribute]]
    return codes


def _sample(
    model: MarkovRandomField,
    rows: int,
    rng: np.random.Generator,
    raked: bool,
    progress: Callable[[int, int], None] | None,
) -> Codes:
    """Draw rows as :func:`sample`; a conditional model's weights are not raked, because its tree
    has other counts.
    """
    _check(rows, len(model.sizes))
    picked = rows <= MAX_PICKED
    # A clique's counts are rounded once a batch.
    batches = math.ceil(rows / (BATCH if picked else MAX_PROPOSED))
    ends = [rows * i // batches for i in range(batches + 1)]
    seeds = rng.integers(1 << 63, size=batches)
    candidates = 1 if not picked else CANDIDATES if rows <= MANY else CANDIDATES // 2
    codes = np.empty((len(model.sizes), rows), np.uint16)
    balance = None
    if picked:
        marginals = balanced_marginals(model.sizes, rows, batches, candidates)
        balance = Balance(model.sizes, marginals, ends[1] * candidates)
    done, lock = [0], threading.Lock()
    _ = model.beliefs  # Cached before threads use it.
    known = known_of(model, max(ends[1] * candidates, MIN_WEIGHED)) if raked else ()

    def draw_batch(batch: int) -> None:
        begin, end = ends[batch], ends[batch + 1]
        batch_rng = np.random.default_rng(seeds[batch])
        # Of a few rows the first ones would be no fair sample.
        size = max(end - begin, MIN_BATCH)
        proposed, weights, places = _candidates(model, size * candidates, batch_rng, known)
        if balance is not None:
            expected = size * balance.shares(proposed, weights)
            if model.off_tree:
                proposed, drawn = np.empty((len(proposed), places.size), np.uint16), proposed
                _gather(drawn, places, proposed)
            places = balance.pick(proposed, size, expected, BLOCKS // batches)
        # Proposals that are neither picked nor weighed are in random order already.
        if balance is not None or model.off_tree:
            places = places[batch_rng.permutation(size)[: end - begin]]
        _gather(proposed, places, codes[:, begin:end])
        with lock:
            done[0] += end - begin
            if progress is not None:
                progress(done[0], rows)

    # A few rows are drawn before another thread wakes.
    with threads(1 if rows * candidates <= SLICE else None):
        for_each(batches, draw_batch)
    return codes


def draw_people(model: MarkovRandomField, rows: int, rng: np.random.Generator) -> Codes:
    """Draw independent rows, with the counts that a sample of people has: multinomial ones.

    Args:
        model: the fitted model, with off-tree factors.
        rows: number of rows.
        rng: random generator; only for sampling, never for privacy noise.

    Returns:
        Codes [shape=(d, rows), uint16].

    Raises:
        ModelError: ``rows`` is less than 1 or too many for one draw.
    """
    _check(rows, len(model.sizes))
    codes = propose(model, min(max(rows, MIN_WEIGHED), MAX_PROPOSED), rng)
    weights = _weights(model, codes, known_of(model, codes.shape[1])) if model.off_tree else None
    return np.ascontiguousarray(codes[:, rng.choice(codes.shape[1], rows, p=weights)])


def marginals_of_rows(
    model: MarkovRandomField,
    wanted: Sequence[Sequence[int]],
    bins: Sequence[Sequence[BinMap | None]] | None = None,
) -> list[Floats]:
    """Estimate marginals from weighted rows, which include off-tree factors.

    Args:
        model: the fitted model.
        wanted, bins: as for :meth:`~.markov_random_field.MarkovRandomField.marginals`.

    Returns:
        Expected counts [one axis per attribute, float64], each summing to the model's total; the
        same for the same arguments.
    """
    blanks = []
    for i, attributes in enumerate(wanted):
        maps = dict(zip(attributes, bins[i] if bins else [None] * len(attributes), strict=True))
        model.check(tuple(attributes))
        names = tuple(sorted(maps))
        kept = tuple(map(maps.get, names))
        shape = binned_sizes((model.sizes[a] for a in names), kept)
        model.check(names, math.prod(shape))
        blanks.append(Measurement(names, kept, np.zeros(shape), 1.0))
    codes = _rows_of(model)
    weights = _weights(model, codes, known_of(model, codes.shape[1]))
    tables = RowTables(blanks).marginals(codes, weights * model.total)
    return [
        table.transpose(np.argsort(np.argsort(attributes)))
        for table, attributes in zip(tables, wanted, strict=True)
    ]


def expected_marginals(
    model: MarkovRandomField,
    wanted: Sequence[Sequence[int]],
    bins: Sequence[Sequence[BinMap | None]] | None = None,
) -> list[Floats]:
    """Expected counts of many marginals, with off-tree factors.

    Marginals outside the cliques of a model with off-tree factors come from
    :func:`marginals_of_rows`, others from the tree. Arguments, result and errors are those of
    :meth:`~.markov_random_field.MarkovRandomField.marginals`.
    """
    tables: dict[int, Floats] = {}
    outside = {
        i
        for i, attributes in enumerate(wanted)
        if model.off_tree and model.tree.covering(tuple(attributes)) < 0
    }
    inside = set(range(len(wanted))) - outside
    for some, method in (
        (inside, MarkovRandomField.marginals),
        (outside, marginals_of_rows),
    ):
        if some:
            maps = None if bins is None else [bins[i] for i in some]
            tables |= zip(some, method(model, [wanted[i] for i in some], maps), strict=True)
    return [tables[i] for i in range(len(wanted))]


def expected_records(
    model: MarkovRandomField,
    given: Mapping[int, npt.ArrayLike],
    shares: Mapping[int, npt.ArrayLike] | None = None,
) -> float:
    """Expected number of records that fulfil a condition, with off-tree factors.

    Args:
        model: the fitted model.
        given: by attribute, the codes that it may have.
        shares: as for :meth:`~.markov_random_field.MarkovRandomField.restricted`.

    Returns:
        Number of records, the same for the same arguments. It is exact without off-tree factors,
        and otherwise estimated from weighted rows.

    Raises:
        ModelError: an unknown attribute or code.
        NoMassError: no record fulfils the condition.
    """
    restricted = model.restricted(given, shares)
    if not model.off_tree or not given:
        return restricted.total
    logs = [_logs(field, _rows_of(field)) for field in (restricted, model)]
    masses = [float(x.max()) + math.log(np.exp(x - x.max()).mean()) for x in logs]
    return model.total * math.exp(
        min(math.log(restricted.total / model.total) + masses[0] - masses[1], 0.0)
    )


def _logs(model: MarkovRandomField, codes: Codes) -> Floats:
    """Log of the product of the off-tree factors at each row [shape=(n,), float64]."""
    logs = np.zeros(codes.shape[1])
    if model.off_tree:
        tables, terms = lookups((f.attributes, f.logs.shape) for f in model.off_tree)
        cell_logs = np.concatenate([f.logs.ravel() for f in model.off_tree])
        in_slices(
            logs.size,
            SLICE,
            lambda begin, end: kernels.add_logs(codes, tables, terms, cell_logs, begin, end, logs),
        )
    return logs


def _rows_of(model: MarkovRandomField) -> Codes:
    """The rows from which all marginals of a model are computed [shape=(d, n), uint16]."""
    return propose(model, MARGINAL_ROWS, np.random.default_rng(0))


def known_of(model: MarkovRandomField, rows: int) -> Known:
    """Probabilities that the tree was fitted to, and that weights by off-tree factors keep.

    Args:
        model: the fitted model.
        rows: number of weighed rows. Pairs with too many cells for them are left out.

    Returns:
        Attributes and table of every attribute, of pairs in cliques, and of every attribute again;
        nothing without off-tree factors.
    """
    if not model.off_tree:
        return ()
    alone = [(a,) for a in range(len(model.sizes))]
    inside = {pair for clique in model.tree.cliques for pair in itertools.combinations(clique, 2)}
    pairs = [
        p for p in sorted(inside) if model.sizes[p[0]] * model.sizes[p[1]] <= rows / RAKED_ROWS
    ]
    wanted = [*alone, *pairs[: int(RAKED_LOOKUPS / rows)], *alone]
    tables = [table / model.total for table in model.marginals(wanted)]
    for factor in model.off_tree:
        if (together := codes_of(factor)) is not None:
            # Two estimates of one share.
            cells = list(zip(factor.attributes, together, strict=True))
            mean = sum(float(tables[a][code]) for a, code in cells) / 2
            for a, code in cells:
                tables[a] *= (1 - mean) / (1 - tables[a][code])
                tables[a][code] = mean
    tables[-len(alone) :] = tables[: len(alone)]
    return tuple(zip(wanted, tables, strict=True))


def _weights(model: MarkovRandomField, codes: Codes, known: Known) -> Floats:
    """Weights of rows by the off-tree factors, raked to what is known, which sum to 1
    [shape=(n,), float64].
    """
    logs = _logs(model, codes)
    weights: Floats = np.exp(logs - logs.max())
    weights *= 1 / weights.sum()
    if known:
        _rake(codes, known, weights)
        weights *= 1 / weights.sum()
    return weights


def _rake(codes: Codes, known: Known, weights: Floats) -> None:
    """Scale weights so that their sums in one known table after the other are the known ones. A
    factor is four at most; cells of too few rows are left alone.
    """
    tables, terms = lookups((attributes, table.shape) for attributes, table in known)
    # The same sums on any number of threads.
    cuts = range(0, weights.size, SLICE)
    sums = np.empty((len(cuts), max(table.size for _, table in known)))
    cells, factors = np.empty(weights.size, np.uint32), np.empty(0)

    def step(k: int, factors: Floats, i: int) -> None:
        sums[i] = 0.0
        last = min(cuts[i] + SLICE, weights.size)
        kernels.rake(codes, tables, terms, k, factors, weights, cuts[i], last, cells, sums[i])

    for k in range(len(known) + 1):
        for_each(len(cuts), functools.partial(step, k, factors))
        if k < len(known):
            want = known[k][1].ravel()
            found = sums[:, : want.size].sum(axis=0)
            kept = (want < RAKED_ROWS / weights.size) | (found <= 0)
            factors = np.where(kept, 1.0, np.clip(want / np.where(kept, 1.0, found), 0.25, 4.0))


def _candidates(
    model: MarkovRandomField, rows: int, rng: np.random.Generator, known: Known
) -> tuple[Codes, Floats | None, Integers]:
    """Candidates for rows of the model: proposals [shape=(d, n), uint16], their weights, which sum to
    1, or None if they are equal, and which of them.
    """
    if not model.off_tree:
        return propose(model, rows, rng), None, np.arange(rows)
    codes = propose(model, max(rows, MIN_WEIGHED), rng)
    weights = _weights(model, codes, known)
    heap = np.cumsum(weights)
    # The proposals are in random order. Without the last sum, rounding cannot lead beyond the last
    # row.
    places = np.searchsorted(
        heap[:-1], heap[-1] * (rng.random() + np.arange(rows)) / rows, side="right"
    )
    return codes, weights, places


def _gather(codes: Codes, places: Integers, out: Codes) -> None:
    """Write the rows at some places into ``out`` [both shape=(d, n), uint16]."""

    def gather(begin: int, end: int) -> None:
        for column, to in zip(codes, out, strict=True):
            # To check the places would take a copy.
            np.take(column, places[begin:end], out=to[begin:end], mode="clip")

    in_slices(places.size, SLICE, gather)


def _check(rows: int, columns: int) -> None:
    what = f"The number of rows, num_rows (--rows), is {shown(rows)}"
    if type(rows) is bool or not isinstance(rows, int | np.integer):
        whole = f" such as {int(rows):,}" if isinstance(rows, float) and 1 <= rows < 1 << 32 else ""
        raise ModelError(f"{what}; give a whole number{whole.replace(',', '')}.")
    if rows < 1:
        raise ModelError(
            f"{what}; give at least 1, or leave it out for as many as the noisy count says."
        )
    if rows >= 1 << 32:
        raise ModelError(f"{what}, and {(1 << 32) - 1:,} are the most; draw several times.")
    # The codes alone.
    if (needed := 2 * rows * columns) > memory():
        raise ModelError(
            f"{rows:,} rows need {needed / 1e9:,.1f} GB of memory, and this machine has {memory() / 1e9:,.1f} GB; draw several times."
        )


def propose(model: MarkovRandomField, rows: int, rng: np.random.Generator) -> Codes:
    """Draw rows from the junction tree alone, with counts in each clique close to the expected
    ones. Columns that are missing together are coupled (:func:`~.couple.couple`).

    The tree is walked from its roots. Systematic sampling distributes the rows of each separator
    cell over the clique's cells: a cell that is expected e times gets floor(e) or ceil(e) rows.
    Rows get cells in random order, so that attributes are independent given the separator, as in
    the model.

    Let dev be the difference between the sample's count and ``rows`` times the model's probability.
    Every clique cell obeys

        |dev(cell)| < 1 + p(cell | separator) * |dev(separator)|,

    with dev(separator) = 0 at a root.

    Args:
        model: the fitted model.
        rows: number of rows, 1 or more.
        rng: random generator; only for sampling, never for privacy noise.

    Returns:
        Codes [shape=(d, rows), uint16], rows in random order.

    Raises:
        ModelError: ``rows`` is less than 1 or too many for one draw.
    """
    _check(rows, len(model.sizes))
    tree, beliefs = model.tree, model.beliefs
    codes = np.zeros((len(tree.sizes), rows), np.uint16)
    seeds = rng.integers(1 << 64, size=len(tree.cliques), dtype=np.uint64)

    def extend(cliques: Sequence[int], i: int) -> None:
        c = cliques[i]
        _extend(codes, tree.cliques[c], tree.separators[c], beliefs[c], seeds[c])

    for level in tree.levels:
        for_each(len(level), functools.partial(extend, level))
    for a, classes in model.classes.items():
        codes[a] = _values(codes[a], classes, rng)
    for factor in model.off_tree:
        couple(codes, tree, factor)
    return codes


def _extend(
    codes: Codes, clique: Sequence[int], separator: Sequence[int], belief: Floats, seed: np.uint64
) -> None:
    """Draw a clique's attributes outside its separator. The slices change no result."""
    rows = codes.shape[1]
    sizes = dict(zip(clique, belief.shape, strict=True))
    stride = {a: math.prod(belief.shape[i + 1 :]) for i, a in enumerate(clique)}
    new = [a for a in clique if a not in separator]
    widths = [sizes[a] for a in new]
    shape = [sizes[a] for a in separator]
    shared = np.array(separator, np.int64)
    weights = np.array([math.prod(shape[i + 1 :]) for i in range(len(shape))], np.int64)
    numbers, cells = np.empty(rows, np.uint32), np.empty(rows, np.uint32)
    groups = math.prod(shape)
    least = max(SLICE, 4 * groups)
    counted = in_slices(
        rows,
        least,
        lambda begin, end: (
            begin,
            draw.number_groups(codes, shared, weights, groups, begin, end, numbers),
        ),
    )
    counts = np.array([of_slice for _, of_slice in counted])
    starts = np.concatenate([[0], np.cumsum(counts.sum(axis=0))])
    table = (
        belief.ravel(),
        axis_map(shape, [stride[a] for a in separator]),
        axis_map(widths, [stride[a] for a in new]) if separator else np.zeros(0, np.int64),
        math.prod(widths),
        starts,
    )
    in_slices(
        rows,
        least,
        lambda begin, end: draw.share_out(
            *table, *np.searchsorted(starts[:-1], (begin, end)), seed, cells
        ),
    )
    # A group's rows get its cells in their order, and so the earlier slices' rows come first.
    places = starts[:-1] + np.cumsum(counts, axis=0) - counts
    of_slice = dict(zip((begin for begin, _ in counted), places, strict=True))
    axes = np.array(new, np.int64), np.array(widths, np.int64)
    in_slices(
        rows,
        least,
        lambda begin, end: draw.assign(codes, numbers, cells, of_slice[begin], *axes, begin, end),
    )


def _values(codes: Codes, classes: Compression, rng: np.random.Generator) -> Codes:
    """Draw values given classes, by systematic sampling within each class."""
    order = np.argsort(classes.classes, kind="stable")
    width = np.bincount(classes.classes)
    out = np.empty_like(codes)
    rows = np.split(
        np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes, minlength=len(width)))[:-1]
    )
    for places, values in zip(rows, np.split(order, np.cumsum(width)[:-1]), strict=True):
        ends = np.cumsum(classes.shares[values]) * len(places)
        # A value that is expected e times gets floor(e) or ceil(e) rows.
        chosen = np.searchsorted(ends, np.arange(len(places)) + rng.random(), side="right")
        out[places] = values[np.minimum(rng.permutation(chosen), len(values) - 1)]
    return out

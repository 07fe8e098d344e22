"""Synthetic rows from a Markov random field (VertiMRF, phase 6): rows of its junction tree, weighed and picked."""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ..errors import ModelError
from ..kernels import rows as kernels
from ..kernels import sample as draw
from ..kernels.jit import for_each, in_slices
from .markov_random_field import MarkovRandomField
from .measurement import BinMap
from .propagation import axis_map
from .value_classes import ValueClasses

__all__ = [
    "add_counts",
    "expected_marginals",
    "expected_records",
    "lookups",
    "marginals_of_rows",
    "propose",
    "sample",
    "stems_of",
]

Codes = npt.NDArray[np.uint16]
Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Unsigned = npt.NDArray[np.uint64]

# Rows that are drawn together at most. Of rows up to MANY 2^HALVINGS times as many are drawn and halved, of more 2^FEWER times;
# and at least so many are weighed, for what is picked from fewer follows their weights less.
BATCH, HALVINGS, MANY, FEWER, MIN_WEIGHED = 1 << 17, 3, 1 << 16, 2, 1 << 12
# Rows that stand for a marginal.
MARGINAL_ROWS = 1 << 18
# Counts that rows are to meet: of the marginals of one to three attributes with at most so many cells a row, so many cells and
# lookups (a second or two), and none where there are more of an order; how often pairs of rows are gone through again at the last
# halving.
CELLS_PER_ROW, MAX_CELLS, MAX_LOOKUPS, LISTED = 0.5, 1 << 22, 4e8, 50_000
AGAIN = 1


def sample(
    model: MarkovRandomField,
    rows: int,
    rng: np.random.Generator,
    given: Mapping[int, npt.ArrayLike] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Codes:
    """Draw synthetic rows.

    Several times as many rows as wanted are drawn from the junction tree (:func:`propose`). By the model's factors beyond it, if
    it has any, they are weighed and picked by systematic sampling, each as often as its weight says, to less than one. Then they
    are halved until as many are left as wanted: of each two one is taken, by fair coins that are turned where that brings the
    counts of single attributes, pairs and triples closer to half. So counts are far closer to the model's than independent draws
    would have them, and yet no row's chances change: a value expected once in ten draws comes once in ten draws.

    Args:
        model: the fitted model.
        rows: number of rows, 1 or more.
        rng: random generator; only for sampling, never for privacy noise.
        given: by attribute, the codes that it may have; the rows then follow the model's conditional.
        progress: told how many rows are done, and of how many.

    Returns:
        Codes [shape=(d, rows), uint16], rows in random order.

    Raises:
        ModelError: ``rows`` is less than 1 or too many for one draw, or a condition is unknown.
        NoMassError: a condition has no mass.
    """
    if given:
        codes = sample(model.restricted(given), rows, rng, progress=progress)
        for attribute, own in given.items():
            codes[attribute] = np.asarray(own, np.uint16)[codes[attribute]]
        return codes
    _check(rows)
    batches = math.ceil(rows / BATCH)
    ends = [rows * i // batches for i in range(batches + 1)]
    seeds = rng.integers(1 << 63, size=batches)
    halvings = HALVINGS if rows <= MANY else FEWER
    codes = np.empty((len(model.sizes), rows), np.uint16)
    evened = _evened(model.sizes, rows, batches, halvings)
    done, lock = [0], threading.Lock()
    # Computed once, before threads ask for it.
    _ = model.beliefs

    def draw_batch(batch: int) -> None:
        begin, end = ends[batch], ends[batch + 1]
        own = np.random.default_rng(seeds[batch])
        pool = _pool(model, (end - begin) << halvings, own)
        halved = _halved(pool, model.sizes, evened, halvings, own, alone=batches == 1)
        codes[:, begin:end] = halved[:, own.permutation(end - begin)]
        with lock:
            done[0] += end - begin
            if progress is not None:
                progress(done[0], rows)

    for_each(batches, draw_batch)
    return codes


def marginals_of_rows(
    model: MarkovRandomField,
    wanted: Sequence[Sequence[int]],
    bins: Sequence[Sequence[BinMap | None]] | None = None,
) -> list[Array]:
    """Expected counts of marginals as the model's weighed rows have them: of those that no clique holds, where the model has
    factors beyond its tree, nearer than :meth:`~.markov_random_field.MarkovRandomField.marginals`.

    Args:
        model: the fitted model.
        wanted, bins: as there.

    Returns:
        Counts [one axis per attribute, float64], each summing to the model's total; a function of the arguments alone.
    """
    codes = propose(model, MARGINAL_ROWS, np.random.default_rng(0))
    weights = _weights(model, codes)
    out = []
    for i, own in enumerate(wanted):
        maps = [None] * len(own) if bins is None else bins[i]
        shape = [
            model.sizes[a] if m is None else int(m.max()) + 1
            for a, m in zip(own, maps, strict=True)
        ]
        rows = [
            (codes[a] if m is None else m[codes[a]]).astype(np.int64)
            for a, m in zip(own, maps, strict=True)
        ]
        cells = np.ravel_multi_index(rows, shape)
        counts: Array = np.bincount(cells, weights=weights, minlength=math.prod(shape)).astype(
            np.float64
        )
        out.append(counts.reshape(shape) * model.total)
    return out


def expected_marginals(
    model: MarkovRandomField,
    wanted: Sequence[Sequence[int]],
    bins: Sequence[Sequence[BinMap | None]] | None = None,
) -> list[Array]:
    """Expected counts of many marginals: by the tree, or as :func:`marginals_of_rows` has those that no clique holds, where the
    model has factors beyond its tree.

    Args, returns and raises: as for :meth:`~.markov_random_field.MarkovRandomField.marginals`.
    """
    found = model.marginals(wanted, bins)
    outside = (
        [i for i, own in enumerate(wanted) if model.tree.covering(tuple(own)) < 0]
        if model.beyond
        else []
    )
    if outside:
        by_rows = marginals_of_rows(
            model,
            [wanted[i] for i in outside],
            None if bins is None else [bins[i] for i in outside],
        )
        for i, table in zip(outside, by_rows, strict=True):
            found[i] = table
    return found


def expected_records(model: MarkovRandomField, given: Mapping[int, npt.ArrayLike]) -> float:
    """How many records are expected to fulfil a condition, factors beyond the tree among what says so.

    Args:
        model: the fitted model.
        given: by attribute, the codes that it may have.

    Returns:
        Records, a function of the arguments alone; as exact as :meth:`~.markov_random_field.MarkovRandomField.restricted` has it
        where the model has no factors beyond its tree, and otherwise as :func:`marginals_of_rows` has it.

    Raises:
        ModelError: an unknown attribute or code.
        NoMassError: no record fulfils the condition.
    """
    left = model.restricted(given)
    if not model.beyond or not given:
        return left.total
    logs = [
        _logs(own, propose(own, MARGINAL_ROWS, np.random.default_rng(0))) for own in (left, model)
    ]
    masses = [float(own.max()) + math.log(np.exp(own - own.max()).mean()) for own in logs]
    return model.total * math.exp(
        min(math.log(left.total / model.total) + masses[0] - masses[1], 0.0)
    )


def _logs(model: MarkovRandomField, codes: Codes) -> Array:
    """Logs of what the factors beyond the tree say of its rows [shape=(n,), float64]."""
    logs = np.zeros(codes.shape[1])
    if model.beyond:
        tables, terms = _of_values(model.sizes, (f.attributes for f in model.beyond))
        cell_logs = np.concatenate([f.logs.ravel() for f in model.beyond])
        kernels.add_logs(codes, tables, terms, cell_logs, 0, logs.size, logs)
    return logs


def _weights(model: MarkovRandomField, codes: Codes) -> Array:
    """Weights of rows of the tree by the factors beyond it, summing to 1 [shape=(n,), float64]."""
    logs = _logs(model, codes)
    weights: Array = np.exp(logs - logs.max())
    weights *= 1 / weights.sum()
    return weights


def _pool(model: MarkovRandomField, rows: int, rng: np.random.Generator) -> Codes:
    """Rows of the model, no two of them drawn independently and none of them evened out yet [shape=(d, rows)]."""
    if not model.beyond:
        return propose(model, rows, rng)
    codes = propose(model, max(rows, MIN_WEIGHED), rng)
    heap = np.cumsum(_weights(model, codes))
    # The proposals are in random order. The last of them ends the heap, whatever rounding did.
    places = np.searchsorted(
        heap[:-1], heap[-1] * (rng.random() + np.arange(rows)) / rows, side="right"
    )
    return np.ascontiguousarray(codes[:, places])


def _halved(
    pool: Codes,
    sizes: Sequence[int],
    evened: Sequence[tuple[int, ...]],
    halvings: int,
    rng: np.random.Generator,
    alone: bool,
) -> Codes:
    """Rows of which so many times one of two is taken, with counts close to half; counted on several threads where no other
    batch has them.
    """
    rows = np.ascontiguousarray(pool.T)
    stems, lasts, cells = stems_of(sizes, evened)
    counts = np.zeros(cells)
    in_slices(
        len(stems),
        1 if alone else len(stems),
        lambda begin, end: kernels.count_rows(rows, stems, lasts, begin, end, counts),
    )
    for halving in range(1, halvings + 1):
        second = rng.integers(2, size=len(rows) // 2, dtype=np.uint8)
        counts *= 0.5
        gaps = np.stack([np.zeros_like(counts), 1 / (counts + 1)], axis=1).astype(np.float32)
        kernels.even_out(
            rows, stems, lasts, second, gaps, np.int64(AGAIN if halving == halvings else 0)
        )
        counts += gaps[:, 0]
        rows = rows[2 * np.arange(second.size) + second]
    return np.ascontiguousarray(rows.T)


def stems_of(
    sizes: Sequence[int], evened: Sequence[tuple[int, ...]]
) -> tuple[Unsigned, Unsigned, int]:
    """Stems and last attributes of marginals of one to three attributes, as the kernels want them
    (:func:`vertimrf.kernels.rows.even_out`), and how many cells there are.
    """
    after: dict[tuple[int, ...], list[int]] = {}
    for own in evened:
        after.setdefault(own[:-1], []).append(own[-1])
    stems: list[tuple[int, ...]] = []
    lasts: list[tuple[int, int]] = []
    cells = 0
    for first, ends in after.items():
        starts = [0, *itertools.accumulate(sizes[a] for a in ends)]
        strides = [
            math.prod(sizes[a] for a in first[i + 1 :]) * starts[-1] for i in range(len(first))
        ]
        columns = itertools.chain(*zip((*first, 0, 0), (*strides, 0, 0), strict=True))
        stems.append((*itertools.islice(columns, 4), cells, len(lasts), len(lasts) + len(ends)))
        lasts += zip(ends, starts, strict=False)
        cells += math.prod(sizes[a] for a in first) * starts[-1]
    return (
        np.array(stems, np.uint64).reshape(-1, 7),
        np.array(lasts, np.uint64).reshape(-1, 2),
        cells,
    )


def add_counts(
    columns: Codes, tables: Integers, terms: Integers, weights: Array, counts: Array
) -> None:
    """Add the weights of rows to the cells that they fall into, on several threads.

    Args:
        columns: codes of the rows [shape=(columns, n)].
        tables, terms: as :func:`lookups` has them.
        weights: of the rows [shape=(n,)].
        counts: flat over the cells of all marginals; added to.
    """
    in_slices(
        len(tables),
        1,
        lambda begin, end: kernels.weighed_counts(
            columns, tables, terms, weights, begin, end, counts
        ),
    )


def _evened(sizes: Sequence[int], rows: int, batches: int, halvings: int) -> list[tuple[int, ...]]:
    """Marginals whose counts rows are to meet: those of one attribute, of two and of three, smallest first."""
    varying = [a for a, size in enumerate(sizes) if size > 1]
    out: list[tuple[int, ...]] = []
    cells = lookups = 0
    for way in (1, 2, 3):
        if math.comb(len(varying), way) > LISTED:
            break
        for own in sorted(
            itertools.combinations(varying, way), key=lambda own: math.prod(sizes[a] for a in own)
        ):
            more = math.prod(sizes[a] for a in own)
            cells += more
            lookups += rows * ((1 << halvings) - 1 + AGAIN)
            if more > CELLS_PER_ROW * rows / batches or cells > MAX_CELLS or lookups > MAX_LOOKUPS:
                break
            out.append(own)
    return out


def lookups(wanted: Iterable[tuple[Sequence[int], Sequence[int]]]) -> tuple[Integers, Integers]:
    """Tables and terms of marginals, as the kernels want them (:func:`vertimrf.kernels.rows.add_logs`).

    Args:
        wanted: of each marginal the columns of its attributes, and its cells along each.
    """
    tables: list[tuple[int, int, int]] = []
    terms: list[tuple[int, int]] = []
    offset = 0
    for columns, shape in wanted:
        tables.append((len(terms), len(terms) + len(columns), offset))
        terms += [(column, math.prod(shape[i + 1 :])) for i, column in enumerate(columns)]
        offset += math.prod(shape)
    return np.array(tables, np.int64).reshape(-1, 3), np.array(terms, np.int64).reshape(-1, 2)


def _of_values(
    sizes: Sequence[int], wanted: Iterable[tuple[int, ...]]
) -> tuple[Integers, Integers]:
    """Tables and terms of marginals of values, whose columns are attributes."""
    return lookups((own, [sizes[a] for a in own]) for own in wanted)


def _check(rows: int) -> None:
    if not 1 <= rows < 1 << 32:
        raise ModelError(
            f"The number of synthetic rows must be 1 .. 2^32 - 1, not {rows}; draw several times."
        )


def propose(model: MarkovRandomField, rows: int, rng: np.random.Generator) -> Codes:
    """Draw rows of the junction tree alone, whose clique marginals follow the model's with rounded counts.

    Walks the junction tree from its roots. The rows that agree on a clique's separator are shared out over its cells by
    systematic sampling: a cell expected e times among them is given floor(e) or ceil(e) times. Which row gets which cell is
    random, so that attributes are independent given the separator, as in the model.

    With dev the difference between the sample's count and ``rows`` times the model's probability, every clique cell obeys

        |dev(cell)| < 1 + p(cell | separator) * |dev(separator)|,

    dev(separator) being 0 at a root: a root clique is exact to less than one row per cell, and a separator's error is handed
    down in proportion, never amplified.

    Args:
        model: the fitted model.
        rows: number of rows, 1 or more.
        rng: random generator; only for sampling, never for privacy noise.

    Returns:
        Codes [shape=(d, rows), uint16], rows in random order.

    Raises:
        ModelError: ``rows`` is less than 1 or too many for one draw.
    """
    _check(rows)
    sizes = model.tree.sizes
    codes = np.zeros((len(sizes), rows), np.uint16)
    walk = zip(model.tree.cliques, model.tree.separators, model.beliefs, strict=True)
    for clique, separator, belief in walk:
        new = tuple(a for a in clique if a not in separator)
        stride = {a: math.prod(belief.shape[i + 1 :]) for i, a in enumerate(clique)}
        shape = tuple(sizes[a] for a in separator)
        weights = np.array([math.prod(shape[i + 1 :]) for i in range(len(shape))], np.int64)
        order, counts = draw.group_rows(
            codes, np.array(separator, np.int64), weights, math.prod(shape)
        )
        offsets = axis_map(shape, [stride[a] for a in separator])
        columns = (
            axis_map([sizes[a] for a in new], [stride[a] for a in new])
            if separator
            else np.zeros(0, np.int64)
        )
        seed = rng.integers(1 << 64, dtype=np.uint64)
        cells = draw.share_out(
            belief.ravel(), offsets, columns, math.prod(sizes[a] for a in new), counts, seed
        )
        draw.assign(
            codes,
            order,
            cells,
            np.array(new, np.int64),
            np.array([sizes[a] for a in new], np.int64),
        )
    for a, classes in model.classes.items():
        codes[a] = _values(codes[a], classes, rng)
    return codes


def _values(codes: Codes, classes: ValueClasses, rng: np.random.Generator) -> Codes:
    """Values of rows whose classes are known: those of one class are shared out as the rows of a separator's cell are."""
    order = np.argsort(classes.classes, kind="stable")
    width = np.bincount(classes.classes)
    out = np.empty_like(codes)
    rows = np.split(
        np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes, minlength=len(width)))[:-1]
    )
    for own, values in zip(rows, np.split(order, np.cumsum(width)[:-1]), strict=True):
        ends = np.cumsum(classes.shares[values]) * len(own)
        # Systematic sampling: of a value expected e times, floor(e) or ceil(e).
        chosen = np.searchsorted(ends, np.arange(len(own)) + rng.random(), side="right")
        out[own] = values[np.minimum(rng.permutation(chosen), len(values) - 1)]
    return out

"""Compute the marginals of many pairs of attributes from one calibrated junction tree.

P(x | separator) is propagated outward from the last clique that contains x, from separator to
separator. At each clique it is summed onto the new attributes y, which gives the pairs (x, y).
Values of many attributes x are the columns of one matrix, so a pair costs a part of a matrix
product instead of a variable elimination. A tile of columns is propagated at a time, which bounds
the memory; tiles run in parallel.

A pair within a clique is summed from the clique's table.
"""

from __future__ import annotations

import collections
import itertools
import math
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numba
import numpy as np

from ..arrays import Floats, Integers, Ints, Pair
from ..kernels import carry as kernels
from ..kernels.jit import for_each, in_order
from .junction_tree import JunctionTree, bits
from .measurement import by_class
from .passes import axis_map, merged_axes, strides_of

Link = Pair

# Columns of a tile. Every tile sums the tables of the cliques anew: where cliques are small, that is
# most of the work.
COLUMNS = 256
# Most cells of a tile's matrix. Large separators have narrower tiles.
CARRIED_CELLS = 1 << 22


@dataclass(frozen=True)
class _Source:
    """Some classes of an attribute: columns of a tile."""

    attribute: int
    first: int
    last: int

    @property
    def width(self) -> int:
        return self.last - self.first


@dataclass(frozen=True, eq=False)
class _Carried:
    """P(class | cell of the separator) at a link of the tree [shape=(cells, columns)], columns by
    source.
    """

    sources: tuple[_Source, ...]
    given: Floats

    def columns(self, chosen: Iterable[_Source]) -> list[Pair]:
        """First and last column of the chosen sources, with adjacent ones joined."""
        begin = dict(
            zip(
                self.sources,
                itertools.accumulate((s.width for s in self.sources), initial=0),
                strict=False,
            )
        )
        runs: list[Pair] = []
        for source in chosen:
            first = begin[source]
            if runs and runs[-1][1] == first:
                runs[-1] = (runs[-1][0], first + source.width)
            else:
                runs.append((first, first + source.width))
        return runs


def merge_maps(maps: Iterable[Integers | None]) -> Integers | None:
    """The common refinement of an attribute's bin maps: values that no map distinguishes are in one
    class.

    Args:
        maps: maps value -> bin [each shape=(size,), int64], or None for values.

    Returns:
        The map value -> class [shape=(size,), int64], or None if every value is a class.
    """
    different: dict[bytes, Integers] = {}
    for bins in maps:
        if bins is None:
            return None
        different.setdefault(bins.tobytes(), bins)
    if len(different) == 1:
        (bins,) = different.values()
        # Bins without values remain.
        return np.asarray(bins, np.int64)
    _, classes = np.unique(np.stack(list(different.values())), axis=1, return_inverse=True)
    return classes.reshape(-1).astype(np.int64)


def class_bins(classes: Integers | None, bins: Integers | None) -> Integers | None:
    """Convert one of the maps that were merged to a map class -> bin; None if classes are its bins.

    Args:
        classes: from :func:`merge_maps`.
        bins: the map.
    """
    if bins is None:
        return None
    out = bins if classes is None else by_class(classes, bins)
    return None if (out == np.arange(out.size)).all() and out.size == int(bins.max()) + 1 else out


def pair_marginals(
    tree: JunctionTree,
    beliefs: Sequence[Floats],
    pairs: Iterable[Pair],
    classes: Mapping[int, Integers | None],
) -> dict[Pair, Floats]:
    """Probabilities of pairs of attributes, with values summed into classes.

    Args:
        tree: the junction tree.
        beliefs: probabilities of every clique [axes as its attributes, float64].
        pairs: pairs of different attributes, in any order; repeats are allowed.
        classes: per attribute the map value -> class (0 .. number of classes - 1), or None if every
            value is a class.

    Returns:
        Per pair (a, b), a < b, its probabilities [shape=(classes of a, classes of b), float64].
    """
    wanted = sorted({(min(p), max(p)) for p in pairs})
    counts = {
        a: tree.sizes[a] if (class_map := classes.get(a)) is None else int(class_map.max()) + 1
        for p in wanted
        for a in p
    }
    pass_ = _Pass(tree, beliefs, classes, counts)
    inside: dict[int, list[Pair]] = collections.defaultdict(list)
    across = []
    for pair in wanted:
        home = tree.covering(pair)
        if home >= 0:
            inside[home].append(pair)
        else:
            across.append(pair)
    out: dict[Pair, Floats] = {}
    cliques = list(inside.items())
    for tables in for_each(len(cliques), lambda i: pass_.inside(*cliques[i])):
        out.update(tables)
    apart = [p for p in across if not pass_.connected(*p)]
    alone = sorted({a for p in apart for a in p})
    singles = dict(zip(alone, for_each(len(alone), lambda i: pass_.single(alone[i])), strict=True))
    out.update({(a, b): np.multiply.outer(singles[a], singles[b]) for a, b in apart})
    # The attribute with fewer classes is propagated to the other.
    partners: dict[int, int] = collections.defaultdict(int)
    for a, b in across:
        if pass_.connected(a, b):
            source, target = sorted((a, b), key=lambda x: (counts[x], pass_.depth_first[x]))
            partners[source] |= 1 << target
            out[a, b] = np.empty((counts[a], counts[b]))
    tiles = pass_.tiles(partners)
    for_each(len(tiles), lambda i: pass_.carry(tiles[i], partners, out))
    return out


def summed(table: Floats, attributes: Sequence[int], wanted: Sequence[int]) -> Floats:
    """Sum a table over ``attributes`` onto those ``wanted``, in their order."""
    sizes = dict(zip(attributes, table.shape, strict=True))
    shape = [sizes[a] for a in wanted]
    strides = strides_of(wanted, sizes)
    out = np.zeros(math.prod(shape))
    kernels.sum_onto(
        table.reshape(-1), *merged_axes(table.shape, [strides.get(a, 0) for a in attributes]), out
    )
    return out.reshape(shape)


def joined(
    table: Floats,
    attributes: Sequence[int],
    other: Floats,
    of_other: Sequence[int],
    wanted: Sequence[int],
) -> Floats:
    """Multiply two tables and sum the product onto the attributes ``wanted``: those of ``table``
    first, and then those of ``other`` alone.

    Matrix products of BLAS would start threads, and sum in an order that depends on them.
    """
    sizes = dict(zip((*attributes, *of_other), table.shape + other.shape, strict=True))
    kept = [a for a in wanted if a in attributes]
    common = [a for a in of_other if a in attributes]
    gone = [a for a in common if a not in kept]
    new = [a for a in wanted if a not in attributes]
    rows, steps = _places(common, (kept, gone), sizes)
    given = summed(other, of_other, (*common, *new)).reshape(-1, math.prod(sizes[a] for a in new))
    joint = summed(table, attributes, (*kept, *gone)).reshape(len(rows), -1)
    out = np.empty((len(rows), given.shape[1]))
    kernels.carry(given, 0, rows, steps, joint, np.ones(len(rows)), out, 0, given.shape[1])
    return out.reshape([sizes[a] for a in wanted])


def _places(
    attributes: Sequence[int],
    parts: Iterable[Sequence[int]],
    sizes: Sequence[int] | Mapping[int, int],
) -> list[Integers]:
    """Where the cells over some attributes are in a table over others, for each part of these."""
    strides = strides_of(attributes, sizes)
    return [axis_map([sizes[a] for a in p], [strides.get(a, 0) for a in p]) for p in parts]


class _Pass:
    """Directed links of the tree, and the pairs to compute."""

    def __init__(
        self,
        tree: JunctionTree,
        beliefs: Sequence[Floats],
        classes: Mapping[int, Integers | None],
        counts: Mapping[int, int],
    ) -> None:
        self.tree, self.beliefs, self.classes, self.counts = tree, beliefs, classes, counts
        cliques = [sum(1 << a for a in c) for c in tree.cliques]
        below = list(cliques)
        for c in range(len(cliques) - 1, -1, -1):
            if tree.parents[c] >= 0:
                below[tree.parents[c]] |= below[c]
        self.roots = list(range(len(cliques)))
        above = [0] * len(cliques)
        for c, parent in enumerate(tree.parents):
            if parent >= 0:
                self.roots[c] = self.roots[parent]
                above[c] = above[parent] | cliques[parent]
                for sibling in tree.children[parent]:
                    if sibling != c:
                        above[c] |= below[sibling]
        self.cliques = cliques
        self.neighbours = [
            (*((parent,) if parent >= 0 else ()), *children)
            for parent, children in zip(tree.parents, tree.children, strict=True)
        ]
        # Attributes beyond a link that its first clique does not contain, as a bit mask.
        self.beyond: dict[Link, int] = {}
        self.separator: dict[Link, Ints] = {}
        for c, parent in enumerate(tree.parents):
            if parent >= 0:
                self.separator[parent, c] = self.separator[c, parent] = tree.separators[c]
                separator = sum(1 << a for a in tree.separators[c])
                self.beyond[parent, c] = below[c] & ~separator
                self.beyond[c, parent] = above[c] & ~separator
        self.home: dict[int, int] = {}
        for c, clique in enumerate(tree.cliques):
            for a in clique:
                self.home.setdefault(a, c)
        # Positions of attributes in a depth-first walk: adjacent ones are close in the tree.
        self.depth_first: dict[int, int] = {}
        waiting = [c for c in range(len(cliques) - 1, -1, -1) if tree.parents[c] < 0]
        while waiting:
            c = waiting.pop()
            for a in tree.cliques[c]:
                self.depth_first.setdefault(a, len(self.depth_first))
            waiting += reversed(tree.children[c])

    def connected(self, a: int, b: int) -> bool:
        return self.roots[self.home[a]] == self.roots[self.home[b]]

    def single(self, a: int) -> Floats:
        clique = self.tree.covering((a,))
        return _binned(
            summed(self.beliefs[clique], self.tree.cliques[clique], (a,)),
            self.classes.get(a),
            self.counts[a],
        )

    def inside(self, clique: int, pairs: Sequence[Pair]) -> dict[Pair, Floats]:
        """Pairs within a clique."""
        out = {}
        for a, b in pairs:
            table = summed(self.beliefs[clique], self.tree.cliques[clique], (a, b))
            table = _binned(table, self.classes.get(a), self.counts[a])
            out[a, b] = np.ascontiguousarray(
                _binned(table.T, self.classes.get(b), self.counts[b]).T
            )
        return out

    def tiles(self, partners: Mapping[int, int]) -> list[list[_Source]]:
        """Group sources for joint propagation; sources of a group are close in the tree."""
        largest = max(
            (math.prod(self.tree.sizes[a] for a in s) for s in self.separator.values()), default=1
        )
        room = max(min(COLUMNS, CARRIED_CELLS // largest), 8)
        tiles: list[list[_Source]] = []
        left = 0
        for a in sorted(partners, key=self.depth_first.__getitem__):
            first = 0
            while first < self.counts[a]:
                # An attribute is split only if it is wider than a tile.
                if left < min(self.counts[a] - first, room):
                    tiles.append([])
                    left = room
                last = min(first + left, self.counts[a])
                tiles[-1].append(_Source(a, first, last))
                left -= last - first
                first = last
        return tiles

    def carry(
        self, tile: Sequence[_Source], partners: Mapping[int, int], out: dict[Pair, Floats]
    ) -> None:
        """Propagate a tile to all its partners."""
        # Sources cross a link if they are behind it and have partners beyond it.
        crossing: dict[Link, tuple[_Source, ...]] = {}
        for (c, d), beyond in self.beyond.items():
            behind = self.beyond[d, c]
            some = tuple(
                s for s in tile if behind >> s.attribute & 1 and partners[s.attribute] & beyond
            )
            if some:
                crossing[c, d] = some
        # A link waits for the links that feed it: those towards the root, then those away from it. Of
        # the ready ones the last goes first, so that few matrices are alive.
        links = sorted(crossing, key=lambda link: -link[0] if link[0] > link[1] else link[1])
        feeding: dict[Link, list[Link]] = {}
        uses: collections.Counter[Link] = collections.Counter()
        for c, d in links:
            brought = {s for s in crossing[c, d] if not self.cliques[c] >> s.attribute & 1}
            feeding[c, d] = [
                (b, c)
                for b in self.neighbours[c]
                if b != d and brought.intersection(crossing.get((b, c), ()))
            ]
            uses.update(feeding[c, d])
        alive: dict[Link, _Carried] = {}
        place, lock = {link: i for i, link in enumerate(links)}, threading.Lock()

        def cross(i: int, _: int) -> None:
            feeds = [(feed, alive[feed]) for feed in feeding[links[i]]]
            carried = self._cross(links[i], crossing[links[i]], feeds)
            self._arrive(links[i], carried, partners, out)
            with lock:
                if uses[links[i]]:
                    alive[links[i]] = carried
                for feed in feeding[links[i]]:
                    uses[feed] -= 1
                    if not uses[feed]:
                        del alive[feed]

        needs = [[place[feed] for feed in feeding[link]] for link in links]
        in_order(needs, range(len(links)), numba.get_num_threads(), cross)

    def _cross(
        self, link: Link, sources: tuple[_Source, ...], feeds: Sequence[tuple[Link, _Carried]]
    ) -> _Carried:
        """P(class | cell) at a link's separator, for sources that start at its first clique or
        arrive there.
        """
        c, _ = link
        clique, belief, separator = self.tree.cliques[c], self.beliefs[c], self.separator[link]
        sizes = self.tree.sizes
        cells = math.prod(sizes[a] for a in separator)
        out = np.empty((cells, sum(s.width for s in sources)))
        mass = summed(belief, clique, separator).ravel()
        arriving = {s: feed for feed, carried in feeds for s in carried.sources}
        begin = 0
        for feed, run in itertools.groupby(sources, arriving.get):
            some = list(run)
            width = sum(s.width for s in some)
            if feed is None:
                self._start(c, separator, mass, some, out[:, begin : begin + width])
            else:
                came = self.separator[feed]
                left = [a for a in came if a not in separator]
                joint = summed(belief, clique, (*separator, *left)).reshape(cells, -1)
                rows, steps = _places(came, (separator, left), sizes)
                carried = next(carried for other, carried in feeds if other == feed)
                place = begin
                for first, last in carried.columns(some):
                    kernels.carry(
                        carried.given, first, rows, steps, joint, mass, out, place, last - first
                    )
                    place += last - first
            begin += width
        return _Carried(sources, out)

    def _start(
        self,
        c: int,
        separator: Sequence[int],
        mass: Floats,
        sources: Sequence[_Source],
        out: Floats,
    ) -> None:
        """P(class | cell) for attributes of the clique itself."""
        begin = 0
        for source in sources:
            a = source.attribute
            table = summed(self.beliefs[c], self.tree.cliques[c], (a, *separator)).reshape(
                self.tree.sizes[a], -1
            )
            table = _binned(table, self.classes.get(a), self.counts[a])[source.first : source.last]
            np.divide(table, mass, out=out[:, begin : begin + source.width].T, where=mass > 0)
            out[mass <= 0, begin : begin + source.width] = 0.0
            begin += source.width

    def _arrive(
        self, link: Link, carried: _Carried, partners: Mapping[int, int], out: dict[Pair, Floats]
    ) -> None:
        """Sum a link's matrix onto the attributes that only its second clique contains."""
        _, d = link
        separator = self.separator[link]
        new = self.cliques[d] & ~sum(1 << a for a in separator)
        for b in bits(new):
            some = [s for s in carried.sources if partners[s.attribute] >> b & 1]
            if not some:
                continue
            joint = summed(self.beliefs[d], self.tree.cliques[d], (b, *separator)).reshape(
                self.tree.sizes[b], -1
            )
            joint = _binned(joint, self.classes.get(b), self.counts[b])
            tables = []
            for first, last in carried.columns(some):
                table = np.empty((len(joint), last - first))
                kernels.collect(carried.given, first, joint, table)
                tables.append(table)
            table = np.concatenate(tables, axis=1)
            begin = 0
            for s in some:
                part = table[:, begin : begin + s.width]
                begin += s.width
                if s.attribute < b:
                    out[s.attribute, b][s.first : s.last] = part.T
                else:
                    out[b, s.attribute][:, s.first : s.last] = part


def _binned(table: Floats, classes: Integers | None, count: int) -> Floats:
    """Sum the rows of a table by class."""
    if classes is None:
        return table
    out = np.zeros((count, *table.shape[1:]))
    # Sorting rows by class and summing runs is several times as fast as np.add.at.
    ordered = np.sort(classes)
    first = np.flatnonzero(np.diff(ordered, prepend=-1))
    rows = table if (ordered == classes).all() else table[np.argsort(classes, kind="stable")]
    out[ordered[first]] = np.add.reduceat(rows, first, axis=0)
    return out

"""Compute the marginals of many pairs of attributes from one calibrated junction tree.

A pair within a clique is summed from the clique's table. Other pairs come from one walk over the
tree, depth first. Every attribute is new at one clique, which is visited before all others that
contain it. P(x | separator) is propagated from the clique where x is new to all cliques that are
visited later. There it is summed onto each new attribute y, which gives the pair (x, y).

Values of many attributes x are the columns of one matrix, so a pair costs a part of a matrix product
instead of a variable elimination. A tile of columns is propagated at a time, which bounds the
memory; tiles run in parallel.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..kernels import carry as kernels
from ..kernels.jit import for_each
from .junction_tree import JunctionTree
from .measurement import BinMap, bin_table
from .propagation import axis_map, merged_axes

__all__ = ["pair_marginals", "summed"]

Array = npt.NDArray[np.float64]
Attributes = tuple[int, ...]
Pair = tuple[int, int]

# Columns of a tile: a row of the matrix is then a few cache lines.
COLUMNS = 64
# Most cells of a tile's matrices at all separators. Large separators have narrower tiles.
CARRIED_CELLS = 1 << 24


def pair_marginals(
    tree: JunctionTree,
    beliefs: Sequence[Array],
    pairs: Iterable[Pair],
    classes: Mapping[int, BinMap | None],
) -> dict[Pair, Array]:
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
    walk = _Walk(tree, beliefs, classes)
    wanted = sorted({(min(p), max(p)) for p in pairs})
    out = dict(zip(wanted, for_each(len(wanted), lambda i: walk.inside(wanted[i])), strict=True))
    # Per attribute, its partners in other cliques that are new at a later clique.
    partners: dict[int, set[int]] = {}
    for pair in wanted:
        if tree.covering(pair) < 0:
            source, target = sorted(pair, key=walk.places.__getitem__)
            partners.setdefault(source, set()).add(target)
    tiles = walk.tiles(partners)
    for_each(len(tiles), lambda i: walk.carry(tiles[i], partners, out))
    return out


def summed(table: Array, attributes: Sequence[int], wanted: Sequence[int]) -> Array:
    """Sum a table over ``attributes`` onto those ``wanted``, in their order."""
    sizes = dict(zip(attributes, table.shape, strict=True))
    shape = [sizes[a] for a in wanted]
    strides = {a: math.prod(shape[i + 1 :]) for i, a in enumerate(wanted)}
    out = np.zeros(math.prod(shape))
    kernels.sum_onto(
        table.reshape(-1), *merged_axes(table.shape, [strides.get(a, 0) for a in attributes]), out
    )
    return out.reshape(shape)


@dataclass(frozen=True)
class _Columns:
    """Columns ``begin`` to ``end`` of a tile: classes of an attribute from ``first`` on."""

    attribute: int
    first: int
    begin: int
    end: int


class _Walk:
    """A depth-first walk over the cliques, and the tables that it carries.

    Roots are visited as children of an empty clique, whose index is -1.

    Attributes:
        places: position of every attribute in the order in which attributes are new.
    """

    def __init__(
        self, tree: JunctionTree, beliefs: Sequence[Array], classes: Mapping[int, BinMap | None]
    ) -> None:
        self._tree, self._classes = tree, classes
        self._masses: dict[tuple[int, Attributes], Array] = {}
        self._cliques = (*tree.cliques, ())
        self._beliefs = (*beliefs, np.ones(()))
        self._children = (*tree.children, tuple(c for c, p in enumerate(tree.parents) if p < 0))
        self.places: dict[int, int] = {}
        self._order: list[int] = []
        self._new: dict[int, list[int]] = {}
        # Place of the first attribute that is new at a clique or below it, and one past the last.
        self._begin: dict[int, int] = {}
        self._end: dict[int, int] = {}
        waiting = [-1]
        while waiting:
            c = waiting.pop()
            self._order.append(c)
            self._begin[c] = len(self.places)
            self._new[c] = [a for a in self._cliques[c] if a not in self.places]
            for a in self._new[c]:
                self.places[a] = len(self.places)
            self._end[c] = len(self.places)
            waiting += reversed(self._children[c])
        for c in reversed(self._order):
            self._end[c] = max([self._end[c], *(self._end[k] for k in self._children[c])])

    def inside(self, pair: Pair) -> Array:
        """The marginal of a pair within a clique; space for that of another pair."""
        clique = self._tree.covering(pair)
        if clique < 0:
            return np.empty([self._count(a) for a in pair])
        table = summed(self._beliefs[clique], self._cliques[clique], pair)
        return bin_table(table, [self._classes.get(a) for a in pair])

    def tiles(self, sources: Iterable[int]) -> list[list[_Columns]]:
        """Group the classes of sources for joint propagation, in the order of the walk."""
        cells = sum(self._cells(separator) for separator in self._tree.separators)
        room = max(min(COLUMNS, CARRIED_CELLS // (2 * cells)), 8)
        tiles: list[list[_Columns]] = []
        end = room
        for a in sorted(sources, key=self.places.__getitem__):
            first, count = 0, self._count(a)
            while first < count:
                # An attribute is split only if it is wider than a tile.
                if room - end < min(count - first, room):
                    tiles.append([])
                    end = 0
                width = min(count - first, room - end)
                tiles[-1].append(_Columns(a, first, end, end + width))
                first += width
                end += width
        return tiles

    def carry(
        self,
        tile: Sequence[_Columns],
        partners: Mapping[int, set[int]],
        out: Mapping[Pair, Array],
    ) -> None:
        """Propagate a tile to all its partners, and write their marginals."""
        places = [self.places[columns.attribute] for columns in tile]
        begins = [*(columns.begin for columns in tile), tile[-1].end]
        targets = sorted({self.places[b] for columns in tile for b in partners[columns.attribute]})

        def before(place: int) -> int:
            """Number of columns of attributes before a place."""
            return begins[bisect.bisect_left(places, place)]

        # P(class | cell of the separator to the parent) of attributes new at a clique or below it.
        below: dict[int, Array] = {}
        for c in reversed(self._order[1:]):
            begin = before(self._begin[c])
            width = before(self._end[c]) - begin
            if width:
                separator = self._tree.separators[c]
                given = np.zeros((self._cells(separator), width))
                for k in self._children[c]:
                    if k in below:
                        at = before(self._begin[k]) - begin
                        self._cross(c, self._tree.separators[k], below[k], separator, given, at)
                new = [columns for columns in tile if columns.attribute in self._new[c]]
                self._start(c, separator, new, given, begin)
                below[c] = given
        # The same of attributes new at earlier cliques, in order.
        above: dict[int, Array] = {}
        for c in self._order[1:]:
            width = before(self._begin[c])
            first, last = (bisect.bisect_left(targets, end[c]) for end in (self._begin, self._end))
            if not width or first == last:
                continue
            parent, separator = self._tree.parents[c], self._tree.separators[c]
            given = np.zeros((self._cells(separator), width))
            if parent in above:
                came = self._tree.separators[parent]
                self._cross(parent, came, above[parent], separator, given, 0)
            for k in self._children[parent]:
                if k in below and self._begin[k] < self._begin[c]:
                    at = before(self._begin[k])
                    self._cross(parent, self._tree.separators[k], below[k], separator, given, at)
            left = set(self._cliques[parent]).difference(separator)
            self._start(parent, separator, [s for s in tile if s.attribute in left], given, 0)
            above[c] = given
            self._arrive(c, [s for s in tile if s.end <= width], partners, given, out)

    def _cross(
        self, c: int, came: Attributes, carried: Array, separator: Attributes, out: Array, at: int
    ) -> None:
        """Carry columns from one separator of a clique to another, to column ``at`` of ``out``."""
        sizes = self._tree.sizes
        left = [a for a in came if a not in separator]
        joint = summed(self._beliefs[c], self._cliques[c], (*separator, *left))
        joint = joint.reshape(len(out), -1)
        strides = {a: self._cells(came[i + 1 :]) for i, a in enumerate(came)}
        rows = axis_map([sizes[a] for a in separator], [strides.get(a, 0) for a in separator])
        steps = axis_map([sizes[a] for a in left], [strides[a] for a in left])
        kernels.carry(carried, rows, steps, joint, self._mass(c, separator), out, at)

    def _start(
        self, c: int, separator: Attributes, new: Sequence[_Columns], out: Array, begin: int
    ) -> None:
        """P(class | cell) for attributes of the clique itself; ``out`` has columns from ``begin``."""
        mass = self._mass(c, separator)
        for columns in new:
            table = self._beside(c, columns.attribute, separator)[columns.first :]
            place = slice(columns.begin - begin, columns.end - begin)
            table = table[: columns.end - columns.begin]
            np.divide(table, mass, out=out[:, place].T, where=mass > 0)
            out[mass <= 0, place] = 0.0

    def _arrive(
        self,
        c: int,
        tile: Sequence[_Columns],
        partners: Mapping[int, set[int]],
        given: Array,
        out: Mapping[Pair, Array],
    ) -> None:
        """Sum a matrix onto the attributes that are new at a clique."""
        for b in self._new[c]:
            some = [columns for columns in tile if b in partners[columns.attribute]]
            if not some:
                continue
            joint = self._beside(c, b, self._tree.separators[c])
            table = np.empty((len(joint), given.shape[1]))
            kernels.collect(given, joint, table)
            for columns in some:
                part = table[:, columns.begin : columns.end]
                last = columns.first + part.shape[1]
                if columns.attribute < b:
                    out[columns.attribute, b][columns.first : last] = part.T
                else:
                    out[b, columns.attribute][:, columns.first : last] = part

    def _beside(self, c: int, attribute: int, separator: Attributes) -> Array:
        """P(class, cell of a separator) within a clique [shape=(classes, cells), float64]."""
        table = summed(self._beliefs[c], self._cliques[c], (attribute, *separator))
        table = table.reshape(len(table), -1)
        return bin_table(table, (self._classes.get(attribute), None))

    def _mass(self, c: int, separator: Attributes) -> Array:
        """Probabilities of a separator within a clique [shape=(cells,), float64]."""
        if (c, separator) not in self._masses:
            mass = summed(self._beliefs[c], self._cliques[c], separator).ravel()
            self._masses[c, separator] = mass
        return self._masses[c, separator]

    def _cells(self, attributes: Attributes) -> int:
        return math.prod(self._tree.sizes[a] for a in attributes)

    def _count(self, a: int) -> int:
        classes = self._classes.get(a)
        return self._tree.sizes[a] if classes is None else int(classes.max()) + 1

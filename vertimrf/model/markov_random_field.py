"""The fitted Markov random field: factors, beliefs, marginals and conditionals."""

from __future__ import annotations

import collections
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arrays import Arrays, Fields, Floats, Integers, Ints
from ..errors import ModelError, NoMassError
from .domain_compression import Compression
from .junction_tree import JunctionTree, checked_tree
from .measurement import BinMap, bin_table, binned_sizes
from .pair_marginals import class_bins, joined, merge_maps, pair_marginals, summed
from .propagation import Propagation
from .proximal_step import NO_PROBABILITY, Dual, LogFactors

# Most cells of one table: half a gibibyte.
MAX_CELLS = 1 << 26
# Bounds on a file's cells of all cliques, records and logs of cells. No fitted model reaches them.
MAX_TREE_CELLS, MAX_RECORDS, MAX_LOG = 1 << 29, 1e15, 1e9


@dataclass(frozen=True, eq=False)
class Factor:
    """One factor of a model.

    Attributes:
        attributes: strictly increasing attribute indices.
        logs: log of every cell, up to a constant [one axis per attribute, float64].
    """

    attributes: Ints
    logs: Floats


class MarkovRandomField:
    """A distribution over the joint domain, a product of factors on a junction tree, scaled to a
    record count.

    Args:
        tree: the junction tree.
        total: record count, above zero.
        factors: their product is the distribution; each fits in some clique.
        loss: weighted squared error of the fit, sum of (expected - measured)^2 / (2 sigma^2).
        engine: belief propagation that a fit has just calibrated on these factors; by default they
            are calibrated on demand.
        classes: domain compression by attribute (:mod:`.domain_compression`). The tree and the
            factors have classes of values; arguments and results of methods have values.
        off_tree: off-tree factors, which need not fit in a clique. Rows of the tree are weighted by
            them (:mod:`.sample`). They change neither marginals nor :attr:`beliefs`.
    """

    def __init__(
        self,
        tree: JunctionTree,
        total: float,
        factors: Sequence[Factor],
        loss: float = 0.0,
        engine: Propagation | None = None,
        classes: Mapping[int, Compression] | None = None,
        off_tree: Sequence[Factor] = (),
    ) -> None:
        self.tree = tree
        self.total = float(total)
        self.factors = tuple(factors)
        self.loss = float(loss)
        self.classes = dict(classes or {})
        self.off_tree = tuple(off_tree)
        self._engine = engine

    @cached_property
    def sizes(self) -> Ints:
        """Domain size of every attribute, in values."""
        return tuple(
            len(self.classes[a].shares) if a in self.classes else size
            for a, size in enumerate(self.tree.sizes)
        )

    @property
    def class_maps(self) -> dict[int, BinMap]:
        """The map value -> class of every compressed attribute."""
        return {a: compression.classes for a, compression in self.classes.items()}

    def marginal(self, attributes: Sequence[int], max_cells: int = MAX_CELLS) -> Floats:
        """Expected counts of a marginal.

        Args:
            attributes: distinct attribute indices, in the order of the result's axes.
            max_cells: refuse work on tables of more cells.

        Returns:
            Counts [one axis per attribute, float64], summing to ``total``.

        Raises:
            ModelError: attributes repeat or are unknown, or a table would exceed ``max_cells``.
        """
        attributes = tuple(int(a) for a in attributes)
        self.check(attributes)
        self.check(attributes, math.prod(self.sizes[a] for a in attributes), max_cells)
        table = self._of_classes(attributes, max_cells)
        for axis, a in enumerate(attributes):
            if a in self.classes:
                table = self.classes[a].spread(table, axis)
        return table

    def _of_classes(self, attributes: Ints, max_cells: int) -> Floats:
        """As :meth:`marginal`, but of classes where attributes are compressed."""
        if not attributes:
            return np.array(self.total)
        home = self.tree.covering(attributes)
        if home >= 0:
            return summed(self.beliefs[home], self.tree.cliques[home], attributes) * self.total
        return self._across(attributes, max_cells) * self.total

    def marginals(
        self,
        wanted: Sequence[Sequence[int]],
        bins: Sequence[Sequence[BinMap | None]] | None = None,
        max_cells: int = MAX_CELLS,
    ) -> list[Floats]:
        """Expected counts of many marginals: pairs in one pass over the tree, others one by one.

        Args:
            wanted: attributes of each, as for :meth:`marginal`.
            bins: per marginal and attribute the map value -> bin (0 .. number of bins - 1), or None
                for values. The cost of a pair depends on its bins, not on its values.
            max_cells: most cells of a table; of a pair it bounds the bins.

        Returns:
            Counts [one axis per attribute, float64], each summing to ``total``.

        Raises:
            ModelError: as for :meth:`marginal`.
        """
        value_maps = [(None,) * len(attributes) for attributes in wanted] if bins is None else bins
        # Marginals of compressed attributes are computed over classes, and then spread over values.
        maps = [
            tuple(
                self.classes[a].merged(bin_map) if a in self.classes else bin_map
                for a, bin_map in zip(attributes, given, strict=True)
            )
            for attributes, given in zip(wanted, value_maps, strict=True)
        ]
        classes: dict[int, BinMap | None] = {}
        pairs = [i for i, names in enumerate(wanted) if len(names) == 2 and names[0] != names[1]]
        of_attribute: dict[int, list[BinMap | None]] = collections.defaultdict(list)
        for i in pairs:
            for a, bin_map in zip(wanted[i], maps[i], strict=True):
                of_attribute[a].append(bin_map)
        for a, bin_maps in of_attribute.items():
            self.check((a,))
            classes[a] = merge_maps(bin_maps)
        counts = {a: binned_sizes(self.tree.sizes[a : a + 1], (classes[a],))[0] for a in classes}
        for a, b in (wanted[i] for i in pairs):
            self.check((a, b), counts[a] * counts[b], max_cells)
        tables = pair_marginals(
            self.tree, self.beliefs, [(wanted[i][0], wanted[i][1]) for i in pairs], classes
        )
        known: dict[tuple[int, bytes | None], BinMap | None] = {}  # Many marginals share maps.

        def left_of(a: int, bin_map: BinMap | None) -> BinMap | None:
            key = a, None if bin_map is None else bin_map.tobytes()
            if key not in known:
                known[key] = class_bins(classes[a], bin_map)
            return known[key]

        out = []
        for attributes, attribute_maps, given in zip(wanted, maps, value_maps, strict=True):
            if len(attributes) == 2 and attributes[0] != attributes[1]:
                a, b = attributes
                table = (tables[a, b] if a < b else tables[b, a].T) * self.total
                left = [*map(left_of, attributes, attribute_maps)]
            else:
                names = tuple(int(a) for a in attributes)
                self.check(names)
                self.check(names, math.prod(self.tree.sizes[a] for a in names), max_cells)
                table, left = self._of_classes(names, max_cells), list(attribute_maps)
            if any(bin_map is not None for bin_map in left):
                table = bin_table(table, left, binned_sizes(table.shape, left))
            table = np.ascontiguousarray(table)
            for axis, (a, done, bin_map) in enumerate(
                zip(attributes, attribute_maps, given, strict=True)
            ):
                if a in self.classes and done is None:
                    cells = table.size // table.shape[axis] * self.sizes[a]
                    self.check(tuple(attributes), cells, max_cells)
                    table = self.classes[a].spread(table, axis, bin_map)
            out.append(table)
        return out

    @cached_property
    def beliefs(self) -> tuple[Floats, ...]:
        """Probabilities of every clique [per clique one axis per attribute, float64]; computed
        once.

        Raises:
            ModelError: the factors leave no probability, or leave the range of double precision.
        """
        engine, self._engine = self._engine, None
        if engine is None:
            factors = LogFactors(self.tree, [f.attributes for f in self.factors])
            for f in self.factors:
                factors.add(f.attributes, f.logs)
            Dual(factors, [], 1.0).calibrate_at_factors()
            engine = factors.engine
        beliefs = engine.beliefs()
        if beliefs is None:
            raise ModelError(NO_PROBABILITY)
        return beliefs

    def weighed(self, off_tree: Sequence[Factor]) -> MarkovRandomField:
        """The same model with these off-tree factors instead of its present ones."""
        model = MarkovRandomField(
            self.tree, self.total, self.factors, self.loss, classes=self.classes, off_tree=off_tree
        )
        model.__dict__["beliefs"] = self.beliefs
        return model

    def parts(self) -> tuple[Fields, Arrays]:
        """The model as parts of a file: a header for JSON, and named arrays."""
        header = {
            "sizes": list(self.tree.sizes),
            "cliques": [list(c) for c in self.tree.cliques],
            "parents": list(self.tree.parents),
            "total": self.total,
            "loss": self.loss,
            "factors": [list(f.attributes) for f in self.factors],
            "beyond": [list(f.attributes) for f in self.off_tree],
        }
        arrays: Arrays = {f"logs{i}": f.logs for i, f in enumerate(self.factors)}
        arrays |= {f"beyond{i}": f.logs for i, f in enumerate(self.off_tree)}
        if self.classes:
            header["classes"] = list(self.classes)
            arrays |= {
                f"classes{a}": compression.classes.astype(np.uint16)
                for a, compression in self.classes.items()
            }
            arrays |= {f"shares{a}": compression.shares for a, compression in self.classes.items()}
        return header, arrays

    @classmethod
    def of_parts(cls, header: Fields, arrays: Mapping[str, npt.NDArray[Any]]) -> MarkovRandomField:
        """The model from what :meth:`parts` returns.

        Raises:
            ModelError, KeyError, TypeError, ValueError: the parts are not those of a model.
        """
        tree = checked_tree(header["sizes"], header["cliques"], header["parents"])
        if tree.largest > MAX_CELLS or tree.cells > MAX_TREE_CELLS:
            raise ModelError(
                f"The model has {tree.cells:,} cells, up to {tree.largest:,} in a clique: above the limits."
            )
        try:
            total, loss = float(header["total"]), float(header["loss"])
        except OverflowError:
            raise ModelError(
                "The model's number of records or its loss exceeds double precision."
            ) from None
        if not (0 < total < MAX_RECORDS and math.isfinite(loss)):
            raise ModelError(
                f"The model has {total:g} records and a loss of {loss:g}, which are out of range."
            )
        classes = _classes_of_parts(tree, header.get("classes", []), arrays)
        factors = [
            Factor(tuple(names), arrays[f"logs{i}"]) for i, names in enumerate(header["factors"])
        ]
        if not all(_fits(f, tree.sizes) and tree.covering(f.attributes) >= 0 for f in factors):
            raise ModelError(
                "A factor of the model does not fit its cliques, or has an invalid logarithm."
            )
        off_tree = [
            Factor(tuple(names), arrays[f"beyond{i}"])
            for i, names in enumerate(header.get("beyond", []))
        ]
        model = cls(tree, total, factors, loss, classes=classes, off_tree=off_tree)
        if not all(_fits(f, model.sizes) and bool((f.logs > -MAX_LOG).all()) for f in off_tree):
            raise ModelError(
                "An off-tree factor does not fit the model's attributes, or has an invalid logarithm."
            )
        return model

    def restricted(
        self,
        codes: Mapping[int, npt.ArrayLike],
        shares: Mapping[int, npt.ArrayLike] | None = None,
    ) -> MarkovRandomField:
        """The exact conditional model given that some attributes take some of their values.

        The conditional of a product of factors is the product of their slices at the allowed
        values, on the same tree.

        Args:
            codes: by attribute, the distinct codes that it may have; code i of the result is the
                i-th of them.
            shares: by attribute, the share of the records of each of these codes that fulfils the
                condition, above 0; default all.

        Returns:
            A model of the allowed values. Its total is the tree's expected number of records that
            fulfil the condition; for off-tree factors see
            :func:`~vertimrf.model.sample.expected_records`.

        Raises:
            ModelError: an unknown attribute or code.
            NoMassError: no record fulfils the condition.
        """
        model = self
        for attribute, allowed in codes.items():
            kept = np.asarray(allowed, np.int64)
            model.check((attribute,))
            if (
                not kept.size
                or np.unique(kept).size < kept.size
                or kept.min() < 0
                or kept.max() >= model.sizes[attribute]
            ):
                raise ModelError(
                    f"Attribute {attribute} is given the codes {kept.tolist()}: name different ones in 0 .. "
                    f"{model.sizes[attribute] - 1}."
                )
            part = np.ones(kept.size)
            if shares is not None and attribute in shares:
                part = np.asarray(shares[attribute], np.float64)
            # One attribute after the other, so that only one-way marginals are needed.
            total = float(model.marginal((attribute,))[kept] @ part)
            if not total > 0:
                raise NoMassError(
                    f"The model has no records whose attribute {attribute} has one of the codes {kept.tolist()}, given the "
                    "conditions before it; ask for other values."
                )
            off_tree = [_taking(f, attribute, kept) for f in model.off_tree]
            classes = dict(model.classes)
            if attribute in classes:
                kept, part, classes[attribute] = classes[attribute].restricted(kept, part)
            added = [Factor((attribute,), np.log(part))] if (part != 1).any() else []
            sizes = tuple(
                kept.size if a == attribute else size for a, size in enumerate(model.tree.sizes)
            )
            factors = added + [_taking(f, attribute, kept) for f in model.factors]
            tree = JunctionTree(sizes, model.tree.cliques, model.tree.parents)
            model = MarkovRandomField(
                tree, total, factors, self.loss, classes=classes, off_tree=off_tree
            )
        return model

    def check(self, attributes: Ints, cells: int = 0, max_cells: int = MAX_CELLS) -> None:
        """Refuse attributes that repeat or are unknown, and tables of too many cells."""
        if len(set(attributes)) != len(attributes) or not all(
            0 <= a < len(self.sizes) for a in attributes
        ):
            raise ModelError(
                f"Marginal of attributes {attributes}: name different ones among 0 .. {len(self.sizes) - 1}."
            )
        if cells > max_cells:
            raise ModelError(
                f"The marginal of attributes {attributes} has {cells:,} cells, more than {max_cells:,}."
            )

    def _across(self, attributes: Ints, max_cells: int) -> Floats:
        """Probabilities by variable elimination over the subtree that spans the attributes."""
        tree = self.tree
        wanted = set(attributes)
        kept = set(range(len(tree.cliques)))
        # Remove leaves whose wanted attributes all lie in the separator to their neighbour.
        changed = True
        while changed:
            changed = False
            for c in sorted(kept, reverse=True):
                links = [tree.separators[k] for k in kept if tree.parents[k] == c]
                links += [tree.separators[c]] * (tree.parents[c] in kept)
                alone = wanted.intersection(tree.cliques[c]).difference(*links)
                if len(links) < 2 and not alone and len(kept) > 1:
                    kept.remove(c)
                    changed = True
        table, names = np.array(1.0), Ints()
        for root in sorted(kept):
            if tree.parents[root] not in kept:
                more, part = self._upward(root, kept, wanted, (), max_cells)
                table, names = np.multiply.outer(table, part), (*names, *more)
        return summed(table, names, attributes)

    def _upward(
        self, c: int, kept: set[int], wanted: set[int], separator: Ints, max_cells: int
    ) -> tuple[Ints, Floats]:
        """Probabilities of the wanted attributes below c, given the separator to its parent."""
        tree = self.tree
        children = [k for k in sorted(kept) if tree.parents[k] == c]
        links = [set(tree.separators[k]) for k in children]
        keep = set(separator) | wanted
        clique = tree.cliques[c]
        needed = tuple(a for a in clique if a in keep.union(*links))
        table = summed(self.beliefs[c], clique, needed)
        if separator:
            mass = table.sum(
                axis=tuple(i for i, a in enumerate(needed) if a not in separator), keepdims=True
            )
            table = np.divide(table, mass, out=np.zeros_like(table), where=mass > 0)
        names = needed
        for i, k in enumerate(children):
            below, part = self._upward(k, kept, wanted, tree.separators[k], max_cells)
            later = keep.union(*links[i + 1 :])
            out = tuple(a for a in dict.fromkeys(names + below) if a in later)
            cells = max(math.prod(tree.sizes[a] for a in out), table.size, part.size)
            if cells > max_cells:
                raise ModelError(
                    f"The marginal of attributes {tuple(sorted(wanted))} needs an intermediate table of {cells:,} cells, "
                    f"more than {max_cells:,}; ask for fewer attributes."
                )
            table, names = joined(table, names, part, below, out), out
        left = tuple(a for a in names if a in keep)
        return left, summed(table, names, left)


def _classes_of_parts(
    tree: JunctionTree, attributes: Sequence[int], arrays: Mapping[str, npt.NDArray[Any]]
) -> dict[int, Compression]:
    """Read the domain compression from a file.

    Raises:
        ModelError: the classes do not fit the tree, or their shares are no probabilities.
    """
    out = {}
    for a in attributes:
        classes, shares = arrays[f"classes{a}"], arrays[f"shares{a}"]
        fits = (
            type(a) is int
            and 0 <= a < len(tree.sizes)
            and classes.ndim == 1
            and classes.shape == shares.shape
        )
        fits = fits and classes.dtype == np.uint16 and shares.dtype == np.float64
        if (
            not fits
            or not np.array_equal(np.unique(classes), np.arange(tree.sizes[a]))
            or not (shares > 0).all()
        ):
            raise ModelError(
                "The model's classes of values do not fit its cliques, or a share is not above 0."
            )
        if not np.allclose(np.bincount(classes, weights=shares), 1.0):
            raise ModelError("The shares of a class of values in the model do not sum to 1.")
        out[a] = Compression(classes.astype(np.int64), shares)
    return out


def _fits(factor: Factor, sizes: Sequence[int]) -> bool:
    """Whether a factor from a file fits attributes of these sizes."""
    attributes, logs = factor.attributes, factor.logs
    if (
        not attributes
        or list(attributes) != sorted(set(attributes))
        or not all(type(a) is int and 0 <= a < len(sizes) for a in attributes)
    ):
        return False
    right = logs.shape == tuple(sizes[a] for a in attributes) and logs.dtype == np.float64
    return right and bool((logs < MAX_LOG).all())


def _taking(factor: Factor, attribute: int, codes: Integers) -> Factor:
    """The slice of a factor at some values of an attribute."""
    if attribute not in factor.attributes:
        return factor
    return Factor(
        factor.attributes, np.take(factor.logs, codes, axis=factor.attributes.index(attribute))
    )

"""Common parts of the mbi adapters: linear measurements, the fit, and a model with mbi's interface.

It imports no peer.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

import numpy as np

from ..arrays import Floats, Ints
from ..errors import ModelError
from ..model.fit import FitOptions, fit
from ..model.junction_tree import junction_tree
from ..model.markov_random_field import Factor, MarkovRandomField
from ..model.measurement import UNMEASURED, Measurement
from ..model.sample import sample

# Largest ratio of standard deviations that our fit can handle. It would raise the smallest of them.
SIGMA_RANGE = 1e3
# Most cells of a marginal with a query of unknown form. Each is a call of the query; mbi's own fit
# makes a thousand.
MAX_PROBES = 2048
# Records a cell in the tables that a query's linearity is tried on, and the relative error allowed:
# mbi may answer in single precision.
TRIED, TOLERANCE = (0.0, 1.0, 1e3, 1e6), 1e-4


class NotOurs(Exception):
    """The engine cannot do this; the peer's estimator has to."""


def fell_back(reason: object) -> None:
    """Warn that the peer's estimator does the work, and why."""
    warnings.warn(
        f"vertimrf: {reason}; mbi's own estimator is used instead, at its own speed.",
        RuntimeWarning,
        stacklevel=3,
    )


# Options with which the fit ends below the loss of 1,000 iterations of mbi's mirror descent
# (``benchmarks/accuracy/front_ends.py``). The defaults of the protocol stop earlier.
FRONT_END = FitOptions(proximal_weight=10.0, min_improvement=1e-3)


@dataclass(frozen=True, eq=False)
class Observation:
    """A measurement of a marginal, as mbi's ``LinearMeasurement`` states it.

    Attributes:
        attributes: positions in the domain, in the order of the axes.
        values: the noisy answers of the cells that ``weights`` does not leave out [flat, float64].
        sigma: standard deviation of each answer.
        weights: factor of every cell [flat, one per cell]. 0 leaves a cell out.
    """

    attributes: Ints
    values: Floats
    sigma: float
    weights: Floats

    @classmethod
    def of(cls, domain: Any, measurement: Any, weights: Floats, values: Any = None) -> Observation:
        """The observation of mbi's measurement, given mbi's domain and the factor of every cell.

        ``values`` are the measurement's own by default.
        """
        values = measurement.noisy_measurement if values is None else values
        return cls(
            tuple(domain.attributes.index(a) for a in measurement.clique),
            np.asarray(values, np.float64).ravel(),
            float(measurement.stddev),
            weights,
        )

    def measurement(self, sizes: Sequence[int], total: float) -> Measurement:
        """The same measurement as counts with standard errors."""
        seen = self.weights != 0
        if self.values.size not in (seen.sum(), self.weights.size):
            raise NotOurs(
                f"a measurement has {self.values.size} values for {self.weights.size} cells"
            )
        values = self.values if self.values.size == seen.sum() else self.values[seen]
        counts = np.empty(self.weights.size)
        sigma = np.full(self.weights.size, UNMEASURED * total)
        counts[seen] = values / self.weights[seen]
        sigma[seen] = self.sigma / np.abs(self.weights[seen])
        counts[~seen] = max(total - counts[seen].sum(), 0.0) / max((~seen).sum(), 1)
        shape = [sizes[a] for a in self.attributes]
        order = np.argsort(self.attributes)
        attributes = tuple(int(a) for a in np.sort(self.attributes))
        tables = [
            np.ascontiguousarray(flat.reshape(shape).transpose(order)) for flat in (counts, sigma)
        ]
        return Measurement(attributes, (None,) * len(attributes), tables[0], tables[1])


def probed(mbi: Any, domain: Any, measurement: Any) -> Observation:
    """The observation of a measurement whose query is an unknown function of the marginal.

    The query is asked for each cell alone, which gives the columns of its matrix, and for random
    tables, which show whether it has one. Least squares ask for the matrix's square alone. If that
    is diagonal, as of weighted, permuted, left out or repeated cells, it weights cells.

    Args:
        mbi: the module.
        domain, measurement: as mbi has them.

    Raises:
        NotOurs: the query is not linear, its columns are not orthogonal, or there are too many.
    """
    import jax.numpy as jnp

    of, query = domain.project(measurement.clique), measurement.query
    cells = of.size()
    if cells > MAX_PROBES:
        raise NotOurs(f"the query {query!r} is of {cells:,} cells, more than {MAX_PROBES:,}")

    def answer(table: Floats) -> Floats:
        factor = mbi.Factor(of, jnp.asarray(table.reshape(of.shape)))
        out = np.asarray(query(factor), np.float64).ravel()
        if out.size != noisy.size:
            raise NotOurs(f"the query {query!r} has {out.size} answers for {noisy.size} values")
        return out

    noisy = np.asarray(measurement.noisy_measurement, np.float64).ravel()
    tables = np.random.default_rng(0).uniform(1, 2, (len(TRIED), cells))
    tables *= np.array(TRIED)[:, None]
    answers = np.stack([answer(table) for table in tables])
    summed, absolute = np.zeros_like(answers), np.zeros_like(answers)
    returned, weights, values = np.zeros_like(tables), np.zeros(cells), np.zeros(cells)
    for cell in range(cells):
        column = answer(np.eye(1, cells, cell)[0])
        weights[cell], values[cell] = np.linalg.norm(column), column @ noisy
        summed += tables[:, cell, None] * column
        absolute += tables[:, cell, None] * np.abs(column)
        returned[:, cell] = answers @ column
    if not (np.abs(summed - answers) <= TOLERANCE * absolute).all():
        raise NotOurs(f"the query {query!r} is not linear")
    squares = tables * np.square(weights)
    if not (np.abs(returned - squares) <= TOLERANCE * squares).all():
        raise NotOurs(f"the query {query!r} mixes cells")
    seen = weights != 0
    return Observation.of(domain, measurement, weights, values[seen] / weights[seen])


def fitted(
    sizes: Sequence[int],
    observed: Sequence[Observation],
    total: float,
    warm: MarkovRandomField | None = None,
    zeros: Sequence[Factor] = (),
) -> MarkovRandomField:
    """Fit a model to linear measurements of marginals by least squares.

    Args:
        sizes: number of values of every attribute.
        observed: measurements. Those of no attribute are ignored: they only give the total, which
            is known here.
        total: record count.
        warm: model to start from.
        zeros: see :mod:`vertimrf.model.structural_zeros`.

    Returns:
        The model.

    Raises:
        NotOurs: the engine cannot do it. The message says why.
    """
    spread = [o.sigma for o in observed if o.attributes]
    if not all(math.isfinite(s) and s > 0 for s in spread) or (
        spread and max(spread) > SIGMA_RANGE * min(spread)
    ):
        raise NotOurs(
            f"standard deviations from {min(spread):g} to {max(spread):g} are too far apart"
        )
    try:
        measured = [o.measurement(sizes, total) for o in observed if o.attributes]
        model = fit(sizes, measured, total, warm=warm, zeros=zeros, options=FRONT_END)
    except ModelError as error:
        raise NotOurs(str(error).rstrip(".")) from None
    for f in zeros:
        marginal = model.marginal(f.attributes)
        if not np.isfinite(marginal).all() or marginal[f.logs < 0].any():
            raise NotOurs("the fit did not keep the structural zeros")
    return model


def warm_model(domain: Any, potentials: Any) -> MarkovRandomField | None:
    """A peer's potentials as a model to start from.

    It is None if there are none for this domain, or if they are all zero or not finite.

    Args:
        domain: mbi's domain.
        potentials: mbi's potentials, or None.
    """
    if potentials is None or potentials.domain != domain:
        return None
    factors = []
    for clique in potentials.cliques:
        attributes = [domain.attributes.index(a) for a in clique]
        logs = np.asarray(potentials[clique].values, np.float64)
        if attributes and np.any(logs):
            table = np.ascontiguousarray(logs.transpose(np.argsort(attributes)))
            factors.append(Factor(tuple(int(a) for a in np.sort(attributes)), table))
    if not factors or not all(np.isfinite(f.logs).all() for f in factors):
        return None
    return product(domain.shape, factors)


def product(sizes: Sequence[int], factors: Sequence[Factor]) -> MarkovRandomField:
    """A model of some factors."""
    edges = {pair for f in factors for pair in itertools.combinations(f.attributes, 2)}
    return MarkovRandomField(junction_tree(sizes, edges), 1.0, factors)


class EngineModel:
    """Our model with the interface of mbi's.

    Subclasses inherit from it first, and then from mbi's ``MarkovRandomField``.

    Marginals and rows come from our engine, in double precision for every setting of JAX.
    Potentials and clique marginals are converted on demand.

    Args:
        field: the fitted model.
        domain: mbi's domain, with the attributes in the order of the model.
        mbi: the module.
        constraints: constraints of the fit, in the form of mbi.
    """

    def __init__(
        self, field: MarkovRandomField, domain: Any, mbi: Any, constraints: tuple[Any, ...] = ()
    ) -> None:
        # mbi's class is a frozen dataclass. Its fields are properties here.
        for name, value in {
            "field": field,
            "_domain": domain,
            "_mbi": mbi,
            "_constraints": constraints,
        }.items():
            object.__setattr__(self, name, value)

    field: MarkovRandomField
    _domain: Any
    _mbi: Any
    _constraints: tuple[Any, ...]

    @property
    def domain(self) -> Any:
        """The attributes and their sizes."""
        return self._domain

    @property
    def total(self) -> float:
        """Record count."""
        return self.field.total

    @property
    def constraints(self) -> tuple[Any, ...]:
        """Structural zeros of the model."""
        return self._constraints

    @property
    def cliques(self) -> list[tuple[Any, ...]]:
        """Attribute sets of the factors."""
        return [self._named(f.attributes) for f in self.field.factors]

    @property
    def potentials(self) -> Any:
        """The factors' logs, as mbi holds them."""
        tables = {
            clique: self._factor(clique, f.logs)
            for clique, f in zip(self.cliques, self.field.factors, strict=True)
        }
        return self._mbi.CliqueVector(self._domain, list(tables), tables)

    @property
    def marginals(self) -> Any:
        """Expected counts over the factors' attributes, as mbi holds them."""
        tables = {clique: self.project(clique) for clique in self.cliques}
        return self._mbi.CliqueVector(self._domain, list(tables), tables)

    def supports(self, attrs: Any) -> bool:
        """Whether the domain has the attributes."""
        return set(self._tuple(attrs)) <= set(self._domain.attributes)

    def project(self, attrs: Any) -> Any:
        """Expected counts of a marginal, axes in the order of ``attrs``."""
        wanted = self._tuple(attrs)
        if not self.supports(wanted):
            raise ValueError(f"Cannot project {self._domain} onto {wanted}.")
        return self._factor(wanted, self.field.marginal([self._index[a] for a in wanted]))

    def synthetic_data(self, rows: int | None = None, method: str = "round") -> Any:
        """Rows whose marginals follow the model's by rounded counts.

        ``method="sample"`` draws independent rows by mbi.
        """
        if method != "round":
            # mbi's class draws from potentials and marginals.
            return super().synthetic_data(rows, method)  # type: ignore[misc]
        # mbi draws from NumPy's global state. So do we: a seed there gives the same rows again.
        seed = np.random.randint(0, 1 << 32, 4, np.uint64)  # noqa: NPY002
        codes = sample(self.field, max(1, int(rows or self.total)), np.random.default_rng(seed))
        return self._mbi.Dataset(
            dict(zip(self._domain.attributes, codes.astype(np.int64), strict=True)), self._domain
        )

    def __repr__(self) -> str:
        return (
            f"<model of {len(self.cliques)} factors over {self._domain}, total {self.total:,.0f}>"
        )

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"A fitted model does not change; {name} cannot be set.")

    @cached_property
    def _index(self) -> dict[Any, int]:
        return {name: i for i, name in enumerate(self._domain.attributes)}

    @staticmethod
    def _tuple(attrs: Any) -> tuple[Any, ...]:
        return (attrs,) if isinstance(attrs, str | int) else tuple(attrs)

    def _named(self, attributes: Sequence[int]) -> tuple[Any, ...]:
        return tuple(self._domain.attributes[a] for a in attributes)

    def _factor(self, clique: tuple[Any, ...], values: Floats) -> Any:
        return self._mbi.Factor(self._domain.project(clique), values)

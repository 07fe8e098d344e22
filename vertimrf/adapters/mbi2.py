"""An estimator of mbi 2: ``Estimator()`` in place of ``mbi.estimation.MirrorDescent()``.

Losses of squares over linear measurements of marginals are fitted by the engine, structural zeros
included. Whatever else is asked for goes to ``fallback``, with a warning.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import mbi
import numpy as np

from ..model.markov_random_field import Factor
from ..model.structural_zeros import allowing
from .linear import (
    EngineModel,
    NotOurs,
    Observation,
    fell_back,
    fitted,
    probed,
    warm_model,
)

if not hasattr(mbi.estimation, "MirrorDescent"):
    raise ImportError(
        "vertimrf.adapters.mbi2 is for mbi 2; here is mbi 1: use vertimrf.adapters.mbi1."
    )


class Model(EngineModel, mbi.MarkovRandomField):
    """An ``mbi.MarkovRandomField`` with marginals and rows of the engine (:class:`Estimator`)."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Estimator(mbi.Estimator):
    """See the module.

    Attributes:
        fallback: mbi's estimator for losses that the engine cannot fit.
    """

    fallback: mbi.Estimator = dataclasses.field(default_factory=mbi.estimation.MirrorDescent)

    def estimate(
        self,
        domain: mbi.Domain,
        loss_fn: mbi.MarginalLossFn | list[mbi.LinearMeasurement],
        known_total: float | None = None,
        constraints: Sequence[mbi.Constraint] = (),
        iters: int = 1000,
        callback_fn: Callable | None = None,
        warm_start: Any = None,
        tol: float | None = None,
        patience: int = 2,
    ) -> mbi.Model:
        """Estimate a model from noisy marginals.

        Args:
            domain: the attributes.
            loss_fn: measurements, or a loss made of them by
                ``mbi.marginal_loss.from_linear_measurements``.
            known_total: record count; default mbi's minimum-variance estimate.
            constraints: structural zeros.
            iters, tol, patience: options of the fallback.
            callback_fn: called with the clique marginals. The engine calls it once, at the end.
            warm_start: a model or potentials to start from.
        """
        try:
            measurements = linear_measurements(loss_fn)
            if known_total is None and isinstance(loss_fn, list):
                known_total = mbi.estimation.minimum_variance_unbiased_total(loss_fn)
            field = fitted(
                domain.shape,
                [observation(domain, m) for m in measurements],
                1.0 if known_total is None else float(known_total),
                warm_of(domain, warm_start),
                [zeros_of(domain, c) for c in constraints],
            )
        except NotOurs as reason:
            fell_back(reason)
            return self.fallback.estimate(
                domain,
                loss_fn,
                known_total,
                constraints,
                iters,
                callback_fn,
                warm_start,
                tol,
                patience,
            )
        model = Model(field, domain, mbi, tuple(constraints))
        if callback_fn is not None:
            callback_fn(model.marginals)
        return model

    def precompile(
        self,
        domain: mbi.Domain,
        measurements: list[mbi.LinearMeasurement] | None = None,
        **options: Any,
    ) -> concurrent.futures.Future:
        """Nothing is compiled for a domain: done at once."""
        done: concurrent.futures.Future = concurrent.futures.Future()
        done.set_result(None)
        return done

    # Steps of mbi's loop, which the engine does not have.
    def _init(self, *arguments: Any, **options: Any) -> Any:
        return self.fallback._init(*arguments, **options)

    def _step(self, *arguments: Any, **options: Any) -> Any:
        return self.fallback._step(*arguments, **options)

    def _finalize(self, *arguments: Any, **options: Any) -> Any:
        return self.fallback._finalize(*arguments, **options)


def linear_measurements(loss_fn: Any) -> list[mbi.LinearMeasurement]:
    """The measurements of a loss of weighted squares.

    Raises:
        NotOurs: it is another loss.
    """
    if isinstance(loss_fn, list | tuple):
        return list(loss_fn)
    squares = mbi.marginal_loss.from_linear_measurements([], mbi.Domain([], [])).loss_fn
    if loss_fn.loss_fn is squares and all(
        isinstance(m, mbi.LinearMeasurement) for m in loss_fn.data
    ):
        return list(loss_fn.data)
    raise NotOurs("the loss is not one of squares over linear measurements")


def observation(domain: mbi.Domain, measurement: mbi.LinearMeasurement) -> Observation:
    """A measurement as the engine takes it.

    Raises:
        NotOurs: its query is none that the engine can fit.
    """
    cells = domain.size(measurement.clique)
    query = measurement.query
    if isinstance(query, mbi.DatavectorQuery) or query == mbi.Factor.datavector:
        weights = np.ones(cells)
    elif isinstance(query, mbi.WeightedQuery):
        weights = np.broadcast_to(np.asarray(query.weights, np.float64).ravel(), cells)
    elif isinstance(query, mbi.SlicedQuery):
        weights = np.where(np.arange(cells) < range(cells)[query.start :].start, 0.0, 1.0)
    else:
        return probed(mbi, domain, measurement)
    return Observation.of(domain, measurement, weights)


def warm_of(domain: mbi.Domain, warm_start: Any) -> Any:
    """A model to start from."""
    if warm_start is None:
        return None
    if isinstance(warm_start, Model) and warm_start.domain == domain:
        return warm_start.field
    potentials = (
        warm_start
        if isinstance(warm_start, mbi.CliqueVector)
        else getattr(warm_start, "potentials", None)
    )
    return warm_model(domain, potentials)


def zeros_of(domain: mbi.Domain, constraint: mbi.Constraint) -> Factor:
    """The structural zeros of a constraint."""
    attributes = [domain.attributes.index(a) for a in constraint.domain.attributes]
    return allowing(attributes, np.asarray(constraint.potential.values) == 0)

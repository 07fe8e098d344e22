"""An estimator of mbi 1.1: ``estimate`` in place of ``mbi.estimation.mirror_descent``.

Lists of linear measurements of marginals are fitted by the engine. A ``MarginalLossFn`` does not
say what it is made of, and goes to ``mbi.estimation.mirror_descent``, with a warning; so do queries
that are not linear or mix cells.
"""

from __future__ import annotations

from typing import Any

import mbi
import numpy as np

from .linear import (
    EngineModel,
    NotOurs,
    Observation,
    fell_back,
    fitted,
    probed,
    warm_model,
)

if not hasattr(mbi.estimation, "mirror_descent"):
    raise ImportError(
        "vertimrf.adapters.mbi1 is for mbi 1.1, and here is mbi 2: use vertimrf.adapters.mbi2."
    )


class Model(EngineModel, mbi.MarkovRandomField):
    """An ``mbi.MarkovRandomField`` with marginals and rows of the engine (:func:`estimate`)."""


def estimate(
    domain: mbi.Domain,
    loss_fn: Any,
    *,
    known_total: float | None = None,
    potentials: Any = None,
    **options: Any,
) -> mbi.MarkovRandomField:
    """Estimate a model from noisy marginals, as ``mbi.estimation.mirror_descent`` does.

    Args:
        domain: the attributes.
        loss_fn: a list of ``LinearMeasurement``.
        known_total: record count. Default: mbi's minimum-variance estimate.
        potentials: potentials to start from.
        options: options of ``mirror_descent``, if it does the work. ``callback_fn`` is called once
            with the engine's marginals.
    """
    try:
        if not isinstance(loss_fn, list | tuple):
            raise NotOurs("a loss function of mbi 1 does not say which measurements it is made of")
        total = (
            mbi.estimation.minimum_variance_unbiased_total(list(loss_fn))
            if known_total is None
            else known_total
        )
        observed = [observation(domain, m) for m in loss_fn]
        field = fitted(domain.shape, observed, float(total), warm_model(domain, potentials))
    except NotOurs as reason:
        fell_back(reason)
        return mbi.estimation.mirror_descent(
            domain, loss_fn, known_total=known_total, potentials=potentials, **options
        )
    model = Model(field, domain, mbi)
    if "callback_fn" in options:
        options["callback_fn"](model.marginals)
    return model


def observation(domain: mbi.Domain, measurement: mbi.LinearMeasurement) -> Observation:
    """A measurement as the engine takes it: of all cells, of OpenDP's first ones, or as probed.

    Raises:
        NotOurs: its query is none that the engine can fit.
    """
    cells = domain.size(measurement.clique)
    query = measurement.query
    seen = cells
    if query != mbi.Factor.datavector:
        if (
            type(query).__module__ != "opendp.extras.mbi._utilities"
            or type(query).__name__ != "SelectPrefixQuery"
        ):
            return probed(mbi, domain, measurement)
        seen = query.length
    return Observation.of(domain, measurement, np.where(np.arange(cells) < seen, 1.0, 0.0))

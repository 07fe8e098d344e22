"""Figures of a report: released one-way marginals, and errors and distances of measured pairs.

All figures follow from the messages. A pair has single figures and no table: a party knows the
hashes, so tables of sketched counts would reveal more to it than the fitted model does. Only the
ledger's epsilon of a colluding party covers that (docs/threat-model.md).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..message import LocalMarginal, Message
from ..model.markov_random_field import MarkovRandomField
from ..model.measurement import BinMap, Measurement, padded
from ..model.sample import expected_marginals
from ..plan.plan import Plan
from .cross_party import predicted_marginals

__all__ = ["ReleasedFigures", "released_by", "size_beneath_noise"]

Array = npt.NDArray[np.float64]
# Mean absolute value of Gaussian noise of standard deviation 1.
MEAN_ABSOLUTE = math.sqrt(2 / math.pi)


@dataclass(frozen=True, eq=False)
class ReleasedFigures:
    """One-way marginals and measurements of a run.

    Attributes:
        released: every released one-way marginal, with its party's position.
        estimates: all measurements, whether or not the model was fitted to them.
    """

    released: tuple[tuple[int, LocalMarginal], ...]
    estimates: tuple[Measurement, ...]

    def to_json(self, plan: Plan, model: MarkovRandomField) -> dict[str, Any]:
        """Compute the figures, in values that JSON can represent.

        Args:
            plan: the plan of the run.
            model: the fitted model.

        Returns:
            - ``"records"``: the model's number of records.
            - ``"one_way"``: per released marginal its ``"attribute"``, its ``"party"``, the
              standard deviation ``"error"`` of a count, and the noisy ``"counts"`` by code.
            - ``"pairs"``: columns with an entry for every measured pair that is not noise alone.
              ``"first"`` and ``"second"`` are positions of the attributes. ``"cells"`` is the
              number of cells. ``"predicted"`` and ``"error"`` are the standard error of a cell in
              records, by the plan (null without a prediction) and by the estimate. The others are
              shares of the records. ``"distance"`` is half the sum of absolute differences between
              estimate and model, and ``"noise"`` its expectation under noise alone.
              ``"dependence"`` and ``"model_dependence"`` are distances from independence, by the
              estimate after subtraction of its noise (it may be negative), and by the model.
        """
        names = plan.schema.names
        one_way = [
            {
                "attribute": names[m.attributes[0]],
                "party": plan.party_names[party],
                "error": _short(m.error),
                "counts": m.counts.tolist()
                if m.units == 1
                else [_short(x) for x in m.counts / m.units],
            }
            for party, m in self.released
        ]
        return {
            "records": round(model.total, 1),
            "one_way": one_way,
            "pairs": self._pairs(plan, model),
        }

    def _pairs(self, plan: Plan, model: MarkovRandomField) -> dict[str, list[Any]]:
        total = model.total
        best: dict[tuple[int, int], tuple[float, Measurement, Array, Array]] = {}
        for m in self.estimates:
            sigma = m.errors
            for axes in itertools.combinations(range(len(m.attributes)), 2):
                rest = tuple(axis for axis in range(len(m.attributes)) if axis not in axes)
                error = np.sqrt(np.square(sigma).sum(axis=rest))
                noise = 0.5 * MEAN_ABSOLUTE * float(error.sum()) / total
                pair = m.attributes[axes[0]], m.attributes[axes[1]]
                if noise < 1 and (pair not in best or noise < best[pair][0]):
                    best[pair] = noise, m, m.counts.sum(axis=rest), error
        pairs = sorted(best)
        bins: list[tuple[BinMap | None, ...]] = []
        for pair in pairs:
            m = best[pair][1]
            bins.append(tuple(m.bins[m.attributes.index(a)] for a in pair))
        predicted = _predicted(plan)
        out: dict[str, list[Any]] = {
            name: []
            for name in (
                "first",
                "second",
                "cells",
                "predicted",
                "error",
                "noise",
                "distance",
                "dependence",
                "model_dependence",
            )
        }
        for pair, expected in zip(pairs, expected_marginals(model, pairs, bins), strict=True):
            noise, _, counts, error = best[pair]
            expected = padded(expected, counts.shape)
            apart = np.outer(expected.sum(axis=1), expected.sum(axis=0)) / total
            variance = predicted.get(pair)
            figures = {
                "first": pair[0],
                "second": pair[1],
                "cells": counts.size,
                "predicted": None
                if variance is None
                else _short(math.sqrt(variance / counts.size)),
                "error": _short(float(np.sqrt(np.square(error).mean()))),
                "noise": _short(noise),
                "distance": _short(0.5 * float(np.abs(counts - expected).sum()) / total),
                "dependence": _short(
                    0.5 * float(size_beneath_noise(counts - apart, error).sum()) / total
                ),
                "model_dependence": _short(0.5 * float(np.abs(expected - apart).sum()) / total),
            }
            for name, figure in figures.items():
                out[name].append(figure)
        return out


def released_by(messages: Sequence[Message]) -> tuple[tuple[int, LocalMarginal], ...]:
    """The one-way marginals of some messages, each with its party's position."""
    return tuple(
        (message.party, m)
        for message in messages
        for m in message.marginals
        if len(m.attributes) == 1
    )


def size_beneath_noise(values: Array, sigma: Array) -> Array:
    """Estimate the absolute values of numbers with Gaussian noise; results may be negative.

    The estimate is unbiased for numbers that are zero or much larger than the noise. Otherwise it
    is too low, by at most half of sigma.

    Args:
        values: numbers with noise [any shape, float64].
        sigma: standard deviations of the noise [shape of ``values``, float64].

    Returns:
        Estimates [shape of ``values``, float64].
    """
    # The mean of exp(-z^2 / 2) for a standard Gaussian z is 1 / sqrt(2).
    return np.abs(values) - math.sqrt(2) * MEAN_ABSOLUTE * sigma * np.exp(
        -0.5 * np.square(values / sigma)
    )


def _predicted(plan: Plan) -> dict[tuple[int, int], float]:
    """Predicted variance of all cells of a pair together, where the plan predicts any."""
    return {
        (min(p.attributes), max(p.attributes)): p.cells * p.error**2
        for p in predicted_marginals(plan)
    }


def _short(figure: float) -> float:
    return float(f"{figure:.4g}")

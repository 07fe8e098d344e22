"""Kernels between the parameters of measurements and the factors of a model."""

from __future__ import annotations

import math

from .jit import callee, kernel


@kernel
def potentials(logs, theta, weights, factors, terms, maps, memory, means):  # type: ignore[no-untyped-def]
    """Factors in linear space, from their logs and the parameters of measurements.

    Each factor is scaled to a mean log of 0.

    Args:
        logs: logs of the factors [flat, float64].
        theta: parameters over the cells of the measurements [flat, float64].
        weights: probabilities for the means; a mean is 0 if all are 0 [as ``logs``].
        factors: first cell (in ``logs`` and ``memory``), cells, first and last term [shape=(f, 4),
            int64].
        terms: offset in ``theta`` and in ``maps`` of each measurement read by a factor [shape=(t,
            2), int64].
        maps: the measurement's cell for every cell of a factor [int32].
        memory: factors, written [float64].
        means: what was subtracted from each factor's logs, written [shape=(f,), float64].
    """
    for f in range(factors.shape[0]):
        begin, n = factors[f, 0], factors[f, 1]
        table = memory[begin : begin + n]
        for i in range(n):
            table[i] = logs[begin + i]
        _add_terms(table, theta, terms, maps, factors[f, 2], factors[f, 3])
        mean = 0.0
        mass = 0.0
        for i in range(n):
            mean += weights[begin + i] * table[i]
            mass += weights[begin + i]
        mean = mean / mass if mass > 0.0 else 0.0
        for i in range(n):
            table[i] = math.exp(table[i] - mean)
        means[f] = mean


@kernel
def absorb(logs, theta, factors, terms, maps):  # type: ignore[no-untyped-def]
    """Add the measurements' parameters to the factors' logs; arguments as :func:`potentials`."""
    for f in range(factors.shape[0]):
        table = logs[factors[f, 0] : factors[f, 0] + factors[f, 1]]
        _add_terms(table, theta, terms, maps, factors[f, 2], factors[f, 3])


@callee
def _add_terms(table, theta, terms, maps, first, last):  # type: ignore[no-untyped-def]
    for t in range(first, last):
        part = theta[terms[t, 0] :]
        cells = maps[terms[t, 1] : terms[t, 1] + table.size]
        for i in range(table.size):
            table[i] += part[cells[i]]


@kernel
def expected_counts(factors, terms, maps, memory, marginals, total, counts):  # type: ignore[no-untyped-def]
    """Sum marginals times ``total`` onto the measurements' cells: transpose of :func:`potentials`.

    Args:
        factors, terms, maps: as for :func:`potentials`.
        memory: contains the marginals of the factors, in their order, from ``marginals`` on
            [float64].
        marginals: where they begin.
        total: number of records.
        counts: counts over the cells of the measurements, added to [flat, float64].
    """
    for f in range(factors.shape[0]):
        n = factors[f, 1]
        table = memory[marginals + factors[f, 0] : marginals + factors[f, 0] + n]
        for t in range(factors[f, 2], factors[f, 3]):
            part = counts[terms[t, 0] :]
            cells = maps[terms[t, 1] : terms[t, 1] + n]
            for i in range(n):
                part[cells[i]] += total * table[i]

"""What zero-concentrated privacy a target of epsilon and delta buys, for peers that are told rho."""

import numpy as np

HALVINGS = 60


def delta_of(rho, epsilon):
    """The delta at which rho-zCDP is (epsilon, delta)-DP (Canonne, Kamath, Steinke, 2020, corollary 13).

    Any order alpha gives a valid bound; the best of a grid is taken.
    """
    above = np.geomspace(1e-4, 1e6, 20_000)
    alpha = 1 + above
    logs = above * (alpha * rho - epsilon) + alpha * np.log1p(-1 / alpha) - np.log(above)
    return float(np.exp(min(logs.min(), 0.0)))


def rho_of(epsilon, delta):
    """The largest rho for which rho-zCDP is (epsilon, delta)-DP."""
    low, high = 0.0, epsilon + 1
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if delta_of(middle, epsilon) <= delta:
            low = middle
        else:
            high = middle
    return low

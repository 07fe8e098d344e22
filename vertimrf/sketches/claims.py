"""What the VertiMRF paper claims for sketches whose keys all attributes share, for reproduction; the claim does not hold.

Theorem 4 composes the d sketches that a record touches under one key as if they told apart. They share the record's level,
while phantoms are drawn for each sketch by itself, so that one level seen d times gives the record away: the exact value is
that of :class:`~vertimrf.privacy.events.SketchEvent` with d attributes per key.
"""

from __future__ import annotations

import math

from ..errors import PrivacyError

__all__ = ["claimed_floor", "claimed_phantoms"]


def claimed_phantoms(epsilon: float, delta: float, keys: int, attributes: int) -> int:
    """Phantoms per sketch for which the paper claims (epsilon, delta): k_p = ceil(1 / (e^eps' - 1)) (Lemma 1, Theorem 4).

    Algorithm 1 prints 1 / e^(eps' - 1); Lemma 1 needs what is used here.

    Raises:
        PrivacyError: a claim that is no (epsilon, delta).
    """
    return math.ceil(1 / math.expm1(_each(epsilon, delta, keys, attributes)))


def claimed_floor(epsilon: float, delta: float, keys: int, attributes: int) -> int:
    """Lowest level published, alpha_min = ceil(log2(1 / (1 - e^-eps'))) at gamma = 1 (Algorithm 1).

    Raises:
        PrivacyError: a claim that is no (epsilon, delta).
    """
    return math.ceil(-math.log2(-math.expm1(-_each(epsilon, delta, keys, attributes))))


def _each(epsilon: float, delta: float, keys: int, attributes: int) -> float:
    """Eps' of one sketch (Algorithm 3, line 2)."""
    if not (math.isfinite(epsilon) and epsilon > 0 and 0 < delta < 1):
        raise PrivacyError(
            f"The paper's claim needs an epsilon above 0 and a delta within 0 and 1, not {epsilon} and {delta}."
        )
    return epsilon / (4 * math.sqrt(keys * attributes * math.log(1 / delta)))

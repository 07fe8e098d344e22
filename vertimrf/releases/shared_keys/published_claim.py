"""The privacy claim of the VertiMRF paper for sketches under shared keys, which does not hold.

It is here for reproduction. Theorem 4 composes the d sketches that a record enters under one key as
if they were independent. They share the record's level, while each sketch has phantoms of its own,
so that the same level in d sketches reveals the record. The exact value is that of
:class:`~vertimrf.privacy.events.SketchEvent` with d attributes per key.
"""

from __future__ import annotations

import math

from ...errors import PrivacyError


def claimed_phantoms(epsilon: float, delta: float, keys: int, attributes: int) -> int:
    """Number of phantoms of a sketch for which the paper claims (epsilon, delta).

    It is k_p = ceil(1 / (e^eps' - 1)) (Lemma 1, Theorem 4). Algorithm 1 prints 1 / e^(eps' - 1),
    but Lemma 1 needs what is used here.

    Args:
        epsilon: the claim; ``delta``: likewise.
        keys: number of hash keys.
        attributes: number of attributes under each key.

    Raises:
        PrivacyError: an epsilon or delta out of range.
    """
    return math.ceil(1 / math.expm1(_each(epsilon, delta, keys, attributes)))


def claimed_floor(epsilon: float, delta: float, keys: int, attributes: int) -> int:
    """Lowest level published, alpha_min = ceil(log2(1 / (1 - e^-eps'))) at gamma = 1 (Algorithm 1).

    Args:
        epsilon: the claim; ``delta``: likewise.
        keys: number of hash keys.
        attributes: number of attributes under each key.

    Raises:
        PrivacyError: an epsilon or delta out of range.
    """
    return math.ceil(-math.log2(-math.expm1(-_each(epsilon, delta, keys, attributes))))


def _each(epsilon: float, delta: float, keys: int, attributes: int) -> float:
    """Eps' of one sketch (Algorithm 3, line 2); arguments as :func:`claimed_phantoms`."""
    if not (math.isfinite(epsilon) and epsilon > 0 and 0 < delta < 1):
        raise PrivacyError(
            f"The paper's claim needs an epsilon above 0 and a delta within 0 and 1, not {epsilon} and {delta}."
        )
    return epsilon / (4 * math.sqrt(keys * attributes * math.log(1 / delta)))

"""Public parameters of what a plan lets parties publish about values across parties: sketches and randomised responses."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..errors import PlanError
from ..privacy.events import GRREvent

__all__ = ["ResponsePlan", "ScheduledPair", "SharedKeyPlan", "SketchPlan"]

HIGHEST_CEILING = 40


@dataclass(frozen=True)
class ScheduledPair:
    """Keys under which one group of each of two parties is sketched.

    Attributes:
        left, right: the groups (attributes), at two different parties, numbered as the plan numbers them.
        keys: hash keys of this pair.
        left_bins, right_bins: values published per key on either side.
    """

    left: int
    right: int
    keys: int
    left_bins: int
    right_bins: int


@dataclass(frozen=True)
class SketchPlan:
    """Public parameters of the scheduled-pair sketches; the hash's parameter gamma is 1.

    Attributes:
        phantoms: phantom draws joined into each sketch (k_p).
        floor, ceiling: published levels lie within; level 1 is the lowest a draw can have.
        pairs: the key schedule, in publishing order.

    Raises:
        PlanError: parameters that no sketch can have.
    """

    phantoms: int
    floor: int
    ceiling: int
    pairs: tuple[ScheduledPair, ...]

    def __post_init__(self) -> None:
        _check_levels(self.phantoms, self.floor, self.ceiling)
        sizes: dict[int, int] = {}
        for number, pair in enumerate(self.pairs):
            where = f"Scheduled pair {number} (groups {pair.left} and {pair.right})"
            if pair.left == pair.right:
                raise PlanError(f"{where} needs two different groups.")
            _check_keys(where, pair.keys)
            for group, bins in ((pair.left, pair.left_bins), (pair.right, pair.right_bins)):
                _check_size(f"{where}, group {group}", bins)
                if sizes.setdefault(group, bins) != bins:
                    raise PlanError(
                        f"{where} has {bins} values of group {group}, an earlier pair {sizes[group]}; make them equal."
                    )


@dataclass(frozen=True)
class SharedKeyPlan:
    """Public parameters of the published encoder's sketches.

    Attributes:
        phantoms, floor, ceiling: as in :class:`SketchPlan`.
        keys: hash keys (t), shared by all attributes.
        sizes: number of values of every attribute, of all parties.

    Raises:
        PlanError: parameters that no sketch can have.
    """

    phantoms: int
    floor: int
    ceiling: int
    keys: int
    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        _check_levels(self.phantoms, self.floor, self.ceiling)
        _check_keys("The plan", self.keys)
        for attribute, size in enumerate(self.sizes):
            _check_size(f"Attribute {attribute}", size)


def _check_levels(phantoms: int, floor: int, ceiling: int) -> None:
    if phantoms < 1:
        raise PlanError(f"Sketches need at least 1 phantom, not {phantoms}; without phantoms they are not private.")
    if not 0 <= floor < ceiling <= HIGHEST_CEILING:
        raise PlanError(
            f"Levels need 0 <= floor < ceiling <= {HIGHEST_CEILING}, not floor {floor} and ceiling {ceiling}."
        )


def _check_keys(where: str, keys: int) -> None:
    if not 1 <= keys <= 1 << 31:
        raise PlanError(f"{where} has {keys} keys; it needs at least 1 and at most 2^31.")


def _check_size(where: str, size: int) -> None:
    if not 1 <= size <= 1 << 16:
        raise PlanError(f"{where} has {size} values; sketches take 1 to 65,536.")


@dataclass(frozen=True)
class ResponsePlan:
    """Public parameters of the randomised responses.

    Attributes:
        epsilon: local epsilon of each attribute.
        sizes: number of values of each attribute, of all parties; at most 16.

    Raises:
        PlanError: parameters that no response can have.
    """

    epsilon: float
    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        if not (math.isfinite(self.epsilon) and self.epsilon > 0):
            raise PlanError(f"Randomised responses need an epsilon above 0, not {self.epsilon}.")
        for attribute, size in enumerate(self.sizes):
            if not 1 <= size <= 16:
                raise PlanError(f"Attribute {attribute} has {size} values; randomised responses take 1 to 16.")

    @property
    def event(self) -> GRREvent:
        """The privacy event of all responses of one record."""
        return GRREvent(self.epsilon, self.sizes)

    def kept(self, size: int) -> float:
        """Probability that a value out of ``size`` is reported as it is: e^eps / (e^eps + size - 1)."""
        return 1 / (1 + (size - 1) * math.exp(-self.epsilon))

    def claimed_epsilon(self, delta: float) -> float:
        """What the paper states for d attributes: the smaller of d eps / 2 and 2 eps sqrt(2 d log(1 / delta)) (Theorem 3).

        Its halves come from taking a replacement for two steps although the number of rows is published: the exact value of
        :attr:`event` at delta = 0 is d eps.
        """
        d = len(self.sizes)
        return min(d * self.epsilon / 2, 2 * self.epsilon * math.sqrt(2 * d * math.log(1 / delta)))

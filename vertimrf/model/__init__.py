"""The Markov random field: fit it to measurements, compute its marginals, draw rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import lazy_exports

if TYPE_CHECKING:
    from .junction_tree import JunctionTree
    from .markov_random_field import MarkovRandomField
    from .measurement import Measurement

__all__ = [
    "JunctionTree",
    "MarkovRandomField",
    "Measurement",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "JunctionTree": "junction_tree",
        "MarkovRandomField": "markov_random_field",
        "Measurement": "measurement",
    },
)

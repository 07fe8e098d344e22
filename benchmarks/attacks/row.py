"""What an attack comes to."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Row"]


@dataclass(frozen=True)
class Row:
    """One figure of an attack, and what it is held to.

    Attributes:
        name: what was played and counted.
        value: what came of it.
        bar: what it is held to, in words and figures.
        holds: whether it does.
    """

    name: str
    value: float
    bar: str
    holds: bool

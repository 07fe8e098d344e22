"""What the machine can do, for comparison: scattered additions."""

from __future__ import annotations

from typing import Any

from .jit import kernel


@kernel
def scatter_add(places: Any, table: Any, times: Any) -> None:
    """Add 1 to a table's entries at some places, again and again.

    Args:
        places: entries [shape=(n,), uint32].
        table: updated [shape=(m,), int32].
        times: number of rounds.
    """
    for _ in range(times):
        for place in places:
            table[place] += 1

"""Defaults that the planner and the command line share; the planner's other constants stand with the planner."""

from __future__ import annotations

__all__ = ["MESSAGE_BYTES", "TAU"]

# Cells of a clique of the global model. The paper takes 10^5 to 5 * 10^6; ten times as many gained little on any data set.
TAU = 500_000
# Budget for the sketches in any party's messages: beyond it, accuracy grows with less than the fourth root of the bytes.
MESSAGE_BYTES = 64_000_000

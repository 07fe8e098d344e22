"""Defaults that the planner and the command line share; the planner's other constants stand with the planner."""

from __future__ import annotations

__all__ = [
    "DELTA_HELP",
    "DOMAIN_DELTA",
    "DOMAIN_SHARE",
    "ENCODER",
    "ENCODERS",
    "HOLDERS_COLUMN",
    "INNER",
    "MAX_DELTA",
    "MAX_MESSAGE",
    "MAX_RECORDS",
    "MAX_TAU",
    "MESSAGE_BYTES",
    "OUTER",
    "PAIRS_BYTES",
    "POPULATIONS",
    "PUBLISHED",
    "SHARES",
    "TAU",
    "UNCOUNTED_DELTA",
    "default_delta",
]

# Cells of a clique of the global model. The paper takes 10^5 to 5 * 10^6; ten times as many gained little on any data set.
TAU = 500_000
# At equal size count sketches are more accurate than scheduled pairs on every data set measured (benchmarks/results/message-size.md), and far
# faster to make.
ENCODER = "count-sketch"
# The others are compared with it: grr and published as the paper has them.
PUBLISHED = "published"
ENCODERS = (ENCODER, "scheduled-pairs", "grr", PUBLISHED)
# Parts of the budget: the noisy record count, local models, sketches across parties.
SHARES = (0.01, 0.49, 0.50)
# Budget for the sketches in any party's messages, with count sketches and with scheduled pairs: so much of either is about as
# accurate (benchmarks/results/message-size.md), and more gains little. Local marginals come on top: up to 1 MB on 81 attributes.
MESSAGE_BYTES = 15_000_000
PAIRS_BYTES = 64_000_000
# The default delta is never more, however few records there are.
MAX_DEFAULT_DELTA = 1e-6
# A plan that is made from a noisy count must not take its delta from it: this is 1 / n^2 for 100,000 records.
UNCOUNTED_DELTA = 1e-10
# Where domains are found apart from a run: below the default delta of any run of up to a million records.
DOMAIN_DELTA = 1e-13
# Part of a run's epsilon and delta that domains are found with, where one process holds the data.
DOMAIN_SHARE = 0.05
# Beyond it a delta is refused: publishing one record in a hundred outright would meet it, at epsilon 0.
MAX_DELTA = 0.01
# Bounds that no plan is made beyond, whoever sends it: cells of a clique, half a gibibyte of them; records; and bytes of the
# sketches in a party's message.
MAX_TAU = 1 << 26
MAX_RECORDS = 10**12
MAX_MESSAGE = 1 << 32
# Whom a synthetic table is of, where parties hold different people: those that all hold, or everybody that any holds.
INNER, OUTER = "inner", "outer"
POPULATIONS = (INNER, OUTER)
# The column that then says who holds somebody.
HOLDERS_COLUMN = "held_by"
DELTA_HELP = "Privacy target; default 1 / expected records squared, at most 1e-6."


def default_delta(expected_records: int) -> float:
    """The delta of a run that does not ask for one.

    Publishing every record outright with a chance of delta meets (0, delta): the chance that anybody at all is exposed is n
    times that. The habit of 1 / n would allow one person in every run; 1 / n^2 allows at most one run in n.
    """
    return min(1 / expected_records**2, MAX_DEFAULT_DELTA)

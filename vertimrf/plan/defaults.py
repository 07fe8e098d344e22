"""Defaults that the planner and the command line share."""

from __future__ import annotations

# Largest clique of the global model, in cells. The paper takes 10^5 to 5 * 10^6. Ten times as many
# cells gain little (benchmarks/results/constants.md).
TAU = 500_000
# Count sketches are more accurate than scheduled pairs of the same size, and much faster
# (benchmarks/results/message-size.md).
ENCODER = "count-sketch"
# The default of plans: encrypted counts where they are proposed, else this one
# (vertimrf/releases/auto.py).
AUTO = "auto"
# Shares of the budget: the noisy record count, local models, sketches across parties.
SHARES = (0.01, 0.49, 0.50)
# Budget for the sketches in any party's message, for count sketches and for scheduled pairs. Both
# are about equally accurate at these sizes, and larger ones gain little
# (benchmarks/results/message-size.md). Local marginals add up to 1 MB on 81 attributes.
MESSAGE_BYTES = 15_000_000
PAIRS_BYTES = 64_000_000
# Upper bound of the default delta.
MAX_DEFAULT_DELTA = 1e-6
# The delta of a plan that is made from a noisy count, which must not determine it: 1 / n^2 for
# 100,000 records.
UNCOUNTED_DELTA = 1e-10
# Delta of a search for domains outside of a run. It is below the default delta of any run of up to
# a million records.
DOMAIN_DELTA = 1e-13
# Share of epsilon and delta for the search for domains, if one process holds all data.
DOMAIN_SHARE = 0.1
# Largest delta. Publishing one record in a hundred would meet it, with epsilon 0.
MAX_DELTA = 0.01
# Limits of any plan, whoever sends it: cells of a clique (half a gibibyte), records, and bytes of
# the sketches in a party's message.
MAX_TAU = 1 << 26
MAX_RECORDS = 10**12
MAX_MESSAGE = 1 << 32
# Most rows that are drawn at once.
MAX_ROWS = (1 << 32) - 1
# The people of a synthetic table, if parties hold different people: those that all parties hold, or
# those that any party holds.
INNER, OUTER = "inner", "outer"
POPULATIONS = (INNER, OUTER)
# The column of the outer population with the parties that hold a person.
HOLDERS_COLUMN = "held_by"
# Size of a value in a text table, bytes. Most values take less.
BYTES_PER_VALUE = 12
# Ending of the file beside a synthetic table that holds its schema.
SCHEMA_FILE = ".schema.toml"
PLAIN_HELP = "Write plain numbers and ISO dates, not as the schema's formats say."
OUT_HELP = "Synthetic table: .csv, .csv.gz, .parquet or .arrow, or .sav (SPSS), .dta (Stata), .xpt (SAS) or .xlsx."
CSV_SAFE_HELP = (
    "In CSV, put an apostrophe before texts and names that a spreadsheet would run as formulas."
)
DELTA_HELP = "Privacy target; default 1 / expected records squared, at most 1e-6."


def default_delta(expected_records: int) -> float:
    """The default delta of a run: 1 / n^2, at most 1e-6.

    Publishing every record with probability delta meets (0, delta). The expected number of exposed
    people is then n times delta. The common 1 / n would allow one exposed person in every run; 1 /
    n^2 allows at most one in n runs.

    Args:
        expected_records: n, the number of records.
    """
    return min(1 / expected_records**2, MAX_DEFAULT_DELTA)

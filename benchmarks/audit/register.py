"""The register of the audit: every kind of release. A new one is a line of ``CASES``."""

from __future__ import annotations

from .before_plan import DOMAINS, PLANNING_COUNT
from .cases import Audit, Case
from .exchange import Exchange
from .keys import Keys

# Kinds of the ledger's entries that no case is about, and why.
NOT_AUDITED = {
    "other": "bounds that another library finds, and prices itself",
    "shared-key sketches": "the paper's encoder, whose label says that it is not private",
}

CASES: tuple[Audit, ...] = (
    Case("record count, one-way and larger marginals, count sketches"),
    Case("R-scores and a limited graph", {"tau": 40, "epsilon": 8.0}, wide=6),
    Case("pairs chosen one by one", {"tau": 2000}, wide=6, alone=True),
    Case(
        "pairs chosen beside analyses",
        {"tau": 5000, "workload": ["age ~ ward"]},
        wide=24,
        alone=True,
    ),
    Case("pairs chosen beside count sketches", {"tau": 400}, wide=16),
    Case("many columns, each too long for pairs", wide=24, bins=25),
    Case("agreement on a shared column", shared=True),
    Case("several records of a person", {"records_per_person": 2}, person=2),
    Case("analyses asked for", {"workload": ["age ~ smoker + ward"]}, wide=3),
    Case("independent columns", {"local_models": False}),
    Case("more budget", {"epsilon": 20.0}),
    Case("scheduled pairs", {"encoder": "scheduled-pairs", "keys": 2000}),
    Case(
        "randomised responses, to replacing a record",
        {"encoder": "grr", "epsilon": 8.0},
        replaced=True,
    ),
    Exchange("encrypted counts, at both parties"),
    DOMAINS,
    PLANNING_COUNT,
    Keys("keys over plans and tables"),
)

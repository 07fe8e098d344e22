"""Privacy: events, exact accountants, the ledger, and noise."""

"""The privacy room: events, exact accountants, the ledger, and noise."""

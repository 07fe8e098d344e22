"""Attackers, each played against the real thing; `python benchmarks/adversary.py` runs them all."""

"""Attackers, each played against the real thing; `python -m benchmarks.attacks` runs them all."""

"""Benchmarks; a package of its own because dependencies of a baseline install one of the same name."""

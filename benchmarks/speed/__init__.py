"""Speed of every hot path, by pytest-benchmark: ``pytest benchmarks/speed --benchmark-only``."""

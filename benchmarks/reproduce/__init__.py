"""The paper's experiments by one command: `python -m benchmarks.reproduce --help`."""

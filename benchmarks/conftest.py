"""Benchmarks run when they are asked for by path, although the test suite skips them: ``pytest benchmarks/bench_encode.py``."""

from __future__ import annotations

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    config.option.benchmark_skip = False

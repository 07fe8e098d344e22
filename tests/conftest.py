"""Shared fixtures."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from benchmarks import datasets

# The first example may compile kernels, and a busy machine is slow at any: time is no reason to fail an example.
settings.register_profile("vertimrf", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("vertimrf")


@pytest.fixture(scope="session")
def paper_data() -> Path:
    """The folder with the paper's data sets, beside the checkout; tests that need it skip elsewhere."""
    if not datasets.FOLDER.is_dir():
        pytest.skip("the paper's data sets are not beside this checkout")
    return datasets.FOLDER

"""Shared fixtures."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import datasets


@pytest.fixture(scope="session")
def paper_data() -> Path:
    """The folder with the paper's data sets, beside the checkout; tests that need it skip elsewhere."""
    if not datasets.FOLDER.is_dir():
        pytest.skip("the paper's data sets are not beside this checkout")
    return datasets.FOLDER

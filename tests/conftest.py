"""Shared fixtures."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def paper_data() -> Path:
    """The folder with the paper's data sets, beside the checkout; tests that need it skip elsewhere."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the paper's data sets are not beside this checkout")
    return folder

"""Shared fixtures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from benchmarks import datasets
from vertimrf.files.state import STATE

# The first example may compile kernels, and a busy machine is slow at any: time is no reason to fail an example.
settings.register_profile("vertimrf", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("vertimrf")


@pytest.fixture(autouse=True, scope="session")
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of this machine's records of releases, which are found by keys that every test draws anew."""
    folder = tmp_path_factory.mktemp("state")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(STATE, str(folder))
        yield folder


@pytest.fixture(scope="session")
def paper_data() -> Path:
    """The folder with the paper's data sets, beside the checkout; tests that need it skip elsewhere."""
    if not datasets.FOLDER.is_dir():
        pytest.skip("the paper's data sets are not beside this checkout")
    return datasets.FOLDER

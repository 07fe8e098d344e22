"""Small tables, and fits that do not wait for each other's threads."""

import pytest
import sklearn.ensemble  # noqa: F401  (so that the limit below finds its threads)
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True)
def one_thread():
    """Small fits on a busy machine spend their time waiting for each other's threads."""
    with threadpool_limits(1):
        yield

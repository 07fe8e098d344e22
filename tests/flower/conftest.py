"""What several test files of runs over Flower start from."""

import pytest
from folders import make_folders


@pytest.fixture
def folders(tmp_path):
    """Run folders as they stand before anybody is connected."""
    return make_folders(tmp_path)


@pytest.fixture
def within_a_run(monkeypatch):
    """Flower makes messages only in a process of one of its tasks; here the test's."""
    from flwr.supercore.task_identity import TaskIdentity

    for name in ("_run_id", "_node_id", "_task_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)

"""Fixtures that tests of runs share."""

import os

import pytest
from runs.conversation import SCHEMA, write_tables


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Tables, a schema and a place between roles."""
    monkeypatch.chdir(tmp_path)
    write_tables(tmp_path)
    SCHEMA.save("schema.toml")
    os.mkdir("x")
    return tmp_path

"""Disk space, as roles are told of it before the work."""

import shutil
from collections import namedtuple

from vertimrf.files.atomic import check_space

Usage = namedtuple("Usage", "total used free")


def test_too_little_space_is_said_in_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: Usage(10**9, 9 * 10**8, 10**8))
    assert check_space(tmp_path, 99e6) is None
    assert check_space(tmp_path, 128e6) == (
        f"{tmp_path} has 100 MB left, and 128 MB are needed; make room or name another folder."
    )


def test_a_folder_that_is_not_there(tmp_path):
    assert "cannot be used (No such file" in check_space(tmp_path / "nowhere", 1)

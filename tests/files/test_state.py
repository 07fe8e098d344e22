"""The key of a machine's user, which nobody else can put in place or read."""

import os
import stat

import pytest

from vertimrf.errors import PrivacyError
from vertimrf.files.state import STATE, machine_key


@pytest.fixture
def folder(tmp_path):
    """A folder with a key."""
    machine_key(tmp_path / "state")
    return tmp_path / "state"


def refused(folder, words):
    with pytest.raises(PrivacyError, match=words) as refusal:
        machine_key(folder)
    assert STATE in str(refusal.value)
    return str(refusal.value)


def test_a_key_is_its_owners_alone_and_stays(folder):
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "key").stat().st_mode) == 0o600
    assert machine_key(folder) == machine_key(folder)


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o1777, 0o720])
def test_a_folder_that_others_can_write_to_is_refused_with_or_without_a_key(mode, folder):
    folder.chmod(mode)
    assert f"chmod go-w {folder}" in refused(folder, "others can read or write it")
    (folder / "key").unlink()
    refused(folder, "others can read or write it")
    assert not (folder / "key").exists()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602])
def test_a_key_that_others_can_read_or_write_is_refused(mode, folder):
    (folder / "key").chmod(mode)
    assert str(folder / "key") in refused(folder, "delete it")


@pytest.mark.parametrize("name", ["key", "."])
def test_a_folder_or_key_of_another_user_is_refused(name, folder, somebody_else):
    somebody_else(folder / name)
    refused(folder, "belongs to another user")


def test_a_folder_and_key_of_the_system_are_taken(folder, monkeypatch):
    """As an administrator made them."""
    key = machine_key(folder)
    if os.geteuid():
        pytest.skip("only root's files are the system's")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert machine_key(folder) == key


def test_a_key_of_another_size_is_damaged(folder):
    (folder / "key").write_bytes(b"short")
    with pytest.raises(PrivacyError, match=r"key is damaged.*from a backup"):
        machine_key(folder)


def test_a_key_elsewhere_is_not_followed_to(folder):
    (folder / "key").rename(folder / "other")
    (folder / "key").symlink_to("other")
    with pytest.raises(OSError, match="symbolic link"):
        machine_key(folder)


def test_a_folder_in_one_that_everybody_can_change_is_refused(tmp_path):
    above = tmp_path / "above"
    above.mkdir()
    folder = above / "state"
    above.chmod(0o777)
    assert str(above) in refused(folder, "everybody can write to it")
    above.chmod(0o1777)  # as /tmp
    machine_key(folder)

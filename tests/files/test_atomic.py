"""Files whole or not there, private ones private at once, and none read beyond its size."""

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from vertimrf.errors import MessageError
from vertimrf.files import atomic
from vertimrf.files.atomic import (
    check_space,
    open_regular,
    read_bytes,
    read_json,
    replacing,
    write_text,
)


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")
@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_a_private_file_is_private_from_the_moment_it_exists(tmp_path, monkeypatch, umask):
    """Whatever the umask: nothing may widen or narrow the mode after the file was opened."""
    opened = []

    def watched(path, flags, mode=0o777, **more):
        descriptor = open_file(path, flags, mode, **more)
        opened.append((flags, stat.S_IMODE(os.fstat(descriptor).st_mode)))
        return descriptor

    open_file = os.open
    monkeypatch.setattr(os, "open", watched)
    for name in ("chmod", "fchmod"):
        monkeypatch.setattr(
            os, name, lambda *_, **__: pytest.fail("the mode was changed afterwards")
        )
    before = os.umask(umask)
    try:
        write_text(tmp_path / "key", "x", private=True)
    finally:
        os.umask(before)
    ((flags, mode),) = opened
    assert flags & os.O_EXCL
    assert flags & os.O_CREAT
    assert mode == stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600


def test_what_fails_leaves_nothing(tmp_path):
    write_text(tmp_path / "file", "before")

    def fail():
        with replacing(tmp_path / "file") as draft:
            draft.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "before"


def test_a_file_that_is_made_once_stays(tmp_path):
    """Even if somebody else makes it while this one is written."""
    with replacing(tmp_path / "file", once=True, synced=True) as draft:
        draft.write(b"second")
        write_text(tmp_path / "file", "first")
    with replacing(tmp_path / "file", once=True) as draft:
        draft.write(b"third")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "first"


def test_no_file_is_read_beyond_its_size(tmp_path):
    (tmp_path / "file").write_bytes(bytes(100))
    assert read_bytes(tmp_path / "file", "message", MessageError, 100) == bytes(100)
    with pytest.raises(MessageError, match="more than 99 bytes, the limit for a message"):
        read_bytes(tmp_path / "file", "message", MessageError, 99)
    (tmp_path / "plan").write_text("[" + " " * 200 + "1]")
    assert read_json(tmp_path / "plan", "plan", MessageError, 300) == [1]
    with pytest.raises(MessageError, match="the limit for a plan"):
        read_json(tmp_path / "plan", "plan", MessageError, 100)
    # Larger than any: refused by its size alone, without reading it.
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(atomic.MAX_JSON + (1 << 40))
    with pytest.raises(MessageError, match="the limit for a plan"):
        read_json(tmp_path / "huge", "plan", MessageError)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of POSIX")
@pytest.mark.parametrize("what", ["a named pipe", "a folder", "a device", "a link to a pipe"])
def test_what_is_no_file_is_neither_read_nor_waited_for(tmp_path, what):
    """In a process of its own: an open that waits for a writer would never return."""
    path = Path("/dev/zero") if what == "a device" else tmp_path / "plan"
    if what == "a folder":
        path.mkdir()
    elif what == "a named pipe":
        os.mkfifo(path)
    elif what == "a link to a pipe":
        os.mkfifo(tmp_path / "pipe")
        path.symlink_to("pipe")
    code = "import sys; from vertimrf.files.atomic import read_bytes; from vertimrf.errors import MessageError\n"
    code += "try: read_bytes(sys.argv[1], 'plan', MessageError, 100)\nexcept MessageError as error: print(error)"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code, path],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    kind = "a named pipe" if "link" in what else what
    assert done.stdout == f"Cannot read the plan {path}: it is {kind}, not a file.\n"


def test_a_link_is_opened_where_links_may_be_and_nowhere_else(tmp_path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to("file")
    with open_regular(tmp_path / "link") as file:
        assert file.read() == b"x"
    with pytest.raises(OSError, match="symbolic links"):
        open_regular(tmp_path / "link", links=False)


def test_too_little_space_is_said_in_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=10**8))
    assert check_space(tmp_path, 99e6) is None
    assert check_space(tmp_path, 128e6) == (
        f"{tmp_path} has 100 MB left, and 128 MB are needed; make room or name another folder."
    )
    monkeypatch.undo()
    assert "cannot be used (No such file" in check_space(tmp_path / "nowhere", 1)

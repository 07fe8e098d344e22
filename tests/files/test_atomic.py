"""Files whole or not there, private ones private at once, and none read beyond its size."""

from __future__ import annotations

import os
import stat
import sys

import pytest

from vertimrf.errors import MessageError
from vertimrf.files import atomic
from vertimrf.files.atomic import read_bytes, read_json, replacing, write_text


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
        monkeypatch.setattr(os, name, lambda *_, **__: pytest.fail("the mode was changed afterwards"))
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
            draft.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "before"


def test_no_file_is_read_beyond_its_size(tmp_path):
    (tmp_path / "file").write_bytes(bytes(100))
    assert read_bytes(tmp_path / "file", "message", MessageError, 100) == bytes(100)
    with pytest.raises(MessageError, match="more than 99 bytes, more than any message"):
        read_bytes(tmp_path / "file", "message", MessageError, 99)
    (tmp_path / "plan").write_text("[" + " " * 200 + "1]")
    assert read_json(tmp_path / "plan", "plan", MessageError, 300) == [1]
    with pytest.raises(MessageError, match="more than any plan"):
        read_json(tmp_path / "plan", "plan", MessageError, 100)
    # Larger than any: refused by its size alone, without reading it.
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(atomic.MOST_JSON + (1 << 40))
    with pytest.raises(MessageError, match="more than any plan"):
        read_json(tmp_path / "huge", "plan", MessageError)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of POSIX")
def test_a_pipe_is_read_up_to_the_size_and_no_further(tmp_path):
    import threading

    for size, fits in ((100, True), (101, False)):
        os.mkfifo(tmp_path / f"pipe{size}")
        writer = threading.Thread(target=(tmp_path / f"pipe{size}").write_bytes, args=(bytes(size),))
        writer.start()
        if fits:
            assert len(read_bytes(tmp_path / f"pipe{size}", "message", MessageError, 100)) == size
        else:
            with pytest.raises(MessageError, match="more than 100 bytes"):
                read_bytes(tmp_path / f"pipe{size}", "message", MessageError, 100)
        writer.join()

"""The folder of a run on disk: settings, received files, refusals and a lock.

Every file is written whole or not at all. A file that others will learn of is synced to the disk
before. No file says how far the run has come: the files that are there say it.
"""

from __future__ import annotations

import copy
import errno
import fcntl
import functools
import logging
import os
import shutil
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import tomli_w

from ..arrays import Fields, Texts
from ..errors import MessageError, RunError, VertiMRFError
from ..files.atomic import (
    DRAFT,
    MAX_KEY,
    AnyPath,
    open_regular,
    read_bytes,
    sync,
    write_bytes,
    write_text,
)
from ..files.canonical import canonical
from ..files.convert import from_json, to_json
from ..files.state import make_folder
from ..keys import PrivateKey
from .waiting import Waiting

LOG = logging.getLogger("vertimrf")
T = TypeVar("T")

SETTINGS, KEY, LOCK, STOPPED, WAITING = "run.toml", "key", ".lock", "stopped", "waiting"
# The settings with which the run began.
FIRST_SETTINGS = "run.toml.first"
RECEIVED, REFUSED = "received", "refused"
# Name of refusals that belong to no file of a party. File names of parties have no dots
# (file_name).
OTHERS = "of.others"


class RunFolder:
    """The run folder of one role.

    Args:
        path: the folder.
        role: "party" or "server".

    Raises:
        RunError: the folder is not a run folder of that role.
    """

    def __init__(self, path: AnyPath, role: str) -> None:
        self.path = Path(path).absolute()
        self._locks = 0
        self._key: tuple[bytes | None, PrivateKey] | None = None
        self.settings = read_settings(self.path)
        if (stated := stated_role(self.settings, self.path / SETTINGS)) != role:
            raise RunError(
                f"{self.path} is the run of a {stated}, not of a {role}; name the other folder."
            )

    @property
    def key(self) -> PrivateKey:
        """The private key of this role."""
        data = self.read(KEY)
        if self._key is None or self._key[0] != data:
            self._key = data, PrivateKey.load(self.path / KEY)
        return self._key[1]

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Lock the folder against other processes.

        Half-written files of killed processes are removed.

        Raises:
            RunError: another process works in the folder.
        """
        if self._locks:
            yield
            return
        with locked(self.path):
            self._locks += 1
            try:
                self._tidy()
                yield
            finally:
                self._locks -= 1

    def read(self, *place: str) -> bytes | None:
        """The content of a file. None if there is no file.

        Raises:
            RunError: it is not a file, or cannot be read.
        """
        path = self.path.joinpath(*place)
        try:
            with open_regular(path) as file:
                return file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise unreadable(path, error) from None

    def has(self, *place: str) -> bool:
        """Whether a file or folder exists.

        Raises:
            RunError: one of its parents is not a folder, or cannot be read.
        """
        path = self.path.joinpath(*place)
        try:
            path.stat()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise unreadable(path, error) from None
        return True

    def write(self, data: bytes, *place: str, private: bool = False) -> None:
        """Write a file, and sync it to the disk."""
        path = self.path.joinpath(*place)
        with _unobstructed():
            make_folder(path.parent)
            write_bytes(path, data, private=private, synced=True)

    def drop_drafts(self, *place: str) -> None:
        """Remove half-written files of killed processes from a folder that needs no lock."""
        folder = self.path.joinpath(*place)
        for path in folder.iterdir() if folder.is_dir() else ():
            if DRAFT.fullmatch(path.name):
                path.unlink(missing_ok=True)

    def take(
        self, data: bytes, max_bytes: int, check: Callable[[bytes], object], *place: str
    ) -> None:
        """Check a received file, and keep it. The first valid file stays.

        Args:
            data: content of the file.
            max_bytes: largest size, bytes.
            check: raises a typed error if the content is wrong.
            place: the file's place in ``received``: the sender's folder, if any, and the name.

        Raises:
            VertiMRFError: the file is too large or wrong, or differs from the one that came before.
        """
        path = self.path.joinpath(RECEIVED, *place)
        what = f"The {place[-1]}" + "".join(f" of {owner!r}" for owner in place[:-1])
        refusal = self.path.joinpath(REFUSED, *place)
        first = self.read(RECEIVED, *place)
        if first is not None:
            if first != data:
                raise MessageError(
                    f"{what} came again and is another one: the first stays, and this one is ignored. If the first was not "
                    f"from the sender, delete {path}."
                )
            refusal.unlink(missing_ok=True)
            return
        if len(data) > max_bytes:
            raise MessageError(
                f"{what} has {len(data):,} bytes; at most {max_bytes:,} are possible. It is ignored."
            )
        check(data)
        self.write(data, RECEIVED, *place)
        refusal.unlink(missing_ok=True)

    @contextmanager
    def refusing(self, *place: str) -> Iterator[None]:
        """Record why a file is refused, and go on.

        A received file never stops a run. Each place keeps one refusal.
        """
        try:
            yield
        except VertiMRFError as error:
            refusal = str(error).encode()
            if self.read(REFUSED, *place) != refusal:
                LOG.warning("%s", error)
                path = self.path.joinpath(REFUSED, *place)
                with _unobstructed():
                    make_folder(path.parent)
                    write_bytes(path, refusal)

    def waiting(self) -> Waiting:
        """What the role waits for, and what is in the way, as it was noticed last."""
        return Waiting.read(self.read(WAITING))

    def note_waiting(self, before: Waiting, now: Waiting) -> None:
        """Record what the role waits for, and what is in the way, if it has changed."""
        if now != before:
            with _unobstructed():
                write_bytes(self.path / WAITING, canonical(to_json(now)))

    @contextmanager
    def working(self) -> Iterator[None]:
        """Record why this role's work fails, for the state of the run, until it succeeds."""
        try:
            yield
        except VertiMRFError as error:
            with _unobstructed():
                write_text(self.path / STOPPED, str(error))
            raise
        with _unobstructed():
            (self.path / STOPPED).unlink(missing_ok=True)

    def refusals(self) -> Texts:
        """Why files were refused, in sentences."""
        files = sorted(
            path
            for path in (self.path / REFUSED).rglob("*")
            if path.is_file() and not DRAFT.fullmatch(path.name)
        )
        # Another process may have removed one since.
        texts = ((self.read(str(path)) or b"").decode(errors="replace") for path in files)
        return tuple(sentence for text in texts for sentence in text.splitlines())

    def edits(self) -> Texts:
        """How the settings differ from those with which the run began, in sentences."""
        if not self.has(FIRST_SETTINGS):
            return ()
        first, now = read_settings(self.path, FIRST_SETTINGS), read_settings(self.path)
        return tuple(
            f"{SETTINGS} has {name} = {now.get(name, 'nothing')!r}; the run began with {first.get(name, 'nothing')!r}."
            for name in _differing(first, now)
        )

    def stopped(self) -> str | None:
        """Why this role's work failed the last time. None if it did not."""
        data = self.read(STOPPED)
        return None if data is None else data.decode(errors="replace")

    def _tidy(self) -> None:
        """Remove half-written files of killed processes.

        Nothing used them: a finished file has its final name.
        """
        # Not those of accepted plans. They are written without the lock, perhaps at this moment.
        inside = [path for name in (RECEIVED, REFUSED) for path in (self.path / name).rglob("*")]
        for path in [*self.path.iterdir(), *inside]:
            if not DRAFT.fullmatch(path.name):
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)


def create(
    path: AnyPath,
    settings: Mapping[str, Any],
    owner: str | None,
    files: Mapping[str, bytes],
) -> bool:
    """Make a run folder. A folder with the same settings stays as it is.

    Args:
        path: the folder. Its parent must exist.
        settings: written as TOML, after all other files: without settings it is not a run folder.
        owner: name of the party; None for the server.
        files: other files of the run, by name.

    Returns:
        Whether it was made now.

    Raises:
        RunError: the folder belongs to another run, or has other files.
    """
    folder = Path(path).absolute()
    # As it will be read: tuples become lists.
    text = tomli_w.dumps({name: value for name, value in settings.items() if value is not None})
    wanted = tomllib.loads(text)
    if not folder.parent.is_dir():
        raise RunError(f"{folder} cannot be made: its parent folder does not exist.")
    if folder.exists() and not folder.is_dir():
        raise RunError(f"{folder} is a file; name a folder for the run.")
    folder.mkdir(mode=0o700, exist_ok=True)
    with locked(folder):
        if (folder / SETTINGS).exists():
            present = read_settings(folder)
            other = _differing(present, wanted)
            other += sorted(
                name for name, data in files.items() if (folder / name).read_bytes() != data
            )
            if other:
                raise RunError(
                    f"{folder} is a run with another {', '.join(other)}: to continue it, leave the options out or edit "
                    f"{folder / SETTINGS}; for a new run, name a new folder."
                )
            return False
        here = [
            p
            for p in folder.iterdir()
            if p.name not in (LOCK, KEY, FIRST_SETTINGS, *files) and not DRAFT.fullmatch(p.name)
        ]
        if here:
            raise RunError(
                f"{folder} is no run folder and has other files ({here[0].name}); name a new folder."
            )
        if not (folder / KEY).exists():
            PrivateKey.new(owner).save(folder / KEY)
        for name, data in files.items():
            write_bytes(folder / name, data, synced=True)
        for name in (FIRST_SETTINGS, SETTINGS):
            write_text(folder / name, text, synced=True)
        sync(folder.parent)
    return True


def _differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Names of the settings that differ."""
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


def read_settings(folder: Path, name: str = SETTINGS) -> Fields:
    """Read the settings of a run folder.

    Raises:
        RunError: the folder has none, or they are not TOML.
    """
    if not (folder / name).is_file():
        raise RunError(
            f"{folder} is no run folder: it has no {name}. `vertimrf run party` and `vertimrf run server` make one from "
            "their options."
        )
    data = read_bytes(folder / name, "run's settings", RunError, MAX_KEY)
    try:
        return copy.deepcopy(_toml(data))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RunError(f"{folder / name} cannot be read ({error}); correct it.") from None


@functools.lru_cache(maxsize=16)
def _toml(data: bytes) -> Fields:
    """A file's settings: every step of a run asks for them, and few were edited since it last did."""
    return tomllib.loads(data.decode())


def stated_role(settings: Mapping[str, Any], path: Path) -> str:
    """The role of a run's settings, "party" or "server".

    Raises:
        RunError: they state none.
    """
    role = settings.get("role")
    if role not in ("party", "server"):
        raise RunError(
            f'{path} does not say role = "party" or role = "server"; correct it, or copy {FIRST_SETTINGS} over it.'
        )
    return str(role)


def settings_as(kind: type[T], settings: Mapping[str, Any], folder: Path) -> T:
    """Check the settings of a run against the dataclass of its role.

    Args:
        kind: the dataclass.
        settings: settings as read from TOML.
        folder: the run folder, for errors.

    Returns:
        The dataclass with these settings.

    Raises:
        RunError: a setting is missing, unknown, or of another type.
    """
    given = {name: value for name, value in settings.items() if name != "role"}
    where = str(folder / SETTINGS)
    return from_json(given, kind, where, "correct it", RunError, known_only=True)


def unreadable(path: Path, error: OSError) -> RunError:
    """The error for a file of the run that cannot be read."""
    return RunError(f"{path} cannot be read ({error.strerror}): it is no file of a run; move it.")


@contextmanager
def _unobstructed() -> Iterator[None]:
    """Turn errors about a file or folder in the place of another into a sentence."""
    try:
        yield
    except (FileExistsError, IsADirectoryError, NotADirectoryError) as error:
        where = error.filename2 or error.filename
        raise RunError(
            f"{where} is in the place of a file of the run ({error.strerror}): move it."
        ) from None


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder.

    The operating system releases it when the process ends, in whatever way.

    Raises:
        RunError: another process holds the lock.
    """
    try:
        handle = os.open(
            folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600
        )
    except OSError as error:
        if error.errno not in (errno.EISDIR, errno.ELOOP, errno.ENXIO):
            raise
        raise RunError(f"{folder / LOCK} is no lock ({error.strerror}): move it.") from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunError(
                f"Another process is at work in {folder}: wait for it, or end it. `vertimrf status {folder}` shows the progress."
            ) from None
        yield
    finally:
        os.close(handle)

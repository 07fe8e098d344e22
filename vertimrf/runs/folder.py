"""A run's folder on disk: settings, what came, what was refused, and that one process at a time works on it.

Everything in it is written whole or not at all, and what others are told of is synced before they are. There is no file that
says how far the run has come: that follows from which files are there.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import shutil
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import tomli_w

from ..errors import MessageError, RunError, VertiMRFError
from ..files.atomic import DRAFT, MAX_KEY, open_regular, read_bytes, sync, write_bytes, write_text
from ..keys import PrivateKey

__all__ = ["RunFolder", "create", "read_settings", "settings_as"]

LOG = logging.getLogger("vertimrf")
T = TypeVar("T")

SETTINGS, KEY, LOCK, STOPPED = "run.toml", "key", ".lock", "stopped"
RECEIVED, REFUSED = "received", "refused"
# Refusals that are of no party's file; no party's files are so called, for names of parties are kept without dots.
IN_EXCHANGE, OTHERS = "in.exchange", "of.others"


class RunFolder:
    """A folder that a role's run lives in.

    Args:
        path: where it is.
        role: "party" or "server".

    Raises:
        RunError: it is no run folder of that role.
    """

    def __init__(self, path: str | os.PathLike[str], role: str) -> None:
        self.path = Path(path).absolute()
        self._held = 0
        self.settings = read_settings(self.path)
        if self.settings.get("role") != role:
            raise RunError(
                f"{self.path} is the run of a {self.settings.get('role')}, not of a {role}; name the other folder."
            )

    @property
    def key(self) -> PrivateKey:
        """The private key of whose run this is."""
        return PrivateKey.load(self.path / KEY)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep every other process off the folder; what one that was killed left half-written is gone then.

        Raises:
            RunError: another process is at work in it.
        """
        if self._held:
            yield
            return
        with locked(self.path):
            self._held += 1
            try:
                self._tidy()
                yield
            finally:
                self._held -= 1

    def read(self, *place: str) -> bytes | None:
        """A file's bytes; None if it is not there.

        Raises:
            RunError: there is something else, such as a folder, or it cannot be read.
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
        """Whether a file or folder is there.

        Raises:
            RunError: a folder on the way to it cannot be read, or is not a folder.
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
        """Write a file of this role's own, synced."""
        path = self.path.joinpath(*place)
        with _unobstructed():
            self._make(path.parent)
            write_bytes(path, data, private=private, synced=True)

    def drop_drafts(self, *place: str) -> None:
        """Remove what killed processes left in a folder that is written to without the lock."""
        folder = self.path.joinpath(*place)
        for path in folder.iterdir() if folder.is_dir() else ():
            if DRAFT.fullmatch(path.name):
                path.unlink(missing_ok=True)

    def take(self, data: bytes, most: int, check: Callable[[bytes], object], *place: str) -> None:
        """Put what came into the folder, once it is found to be what it ought to be. What is there stays.

        Args:
            data: what came.
            most: bytes that it may have.
            check: raises a typed error where it is not what it ought to be.
            place: what it is, behind whose it is.

        Raises:
            VertiMRFError: it is too large, is not that, or is not what came before.
        """
        path = self.path.joinpath(RECEIVED, *place)
        what = f"The {place[-1]}" + "".join(f" of {owner!r}" for owner in place[:-1])
        refusal = self.path.joinpath(REFUSED, *place)
        came = self.read(RECEIVED, *place)
        if came is not None:
            if came != data:
                raise MessageError(
                    f"{what} came again and is another one: the first stays, and this one is not looked at. If the first was not "
                    f"the sender's own, delete {path}."
                )
            refusal.unlink(missing_ok=True)
            return
        if len(data) > most:
            raise MessageError(
                f"{what} has {len(data):,} bytes, more than the {most:,} that one can have; it is not looked at."
            )
        check(data)
        self.write(data, RECEIVED, *place)
        refusal.unlink(missing_ok=True)

    @contextmanager
    def refusing(self, *place: str) -> Iterator[None]:
        """Record why a file is not taken, one refusal for every place, and go on: no file from outside stops a run."""
        try:
            yield
        except VertiMRFError as error:
            refusal = str(error).encode()
            if self.read(REFUSED, *place) != refusal:
                LOG.warning("%s", error)
                self._note(refusal, *place)

    def note_exchange(self, sentences: Sequence[str]) -> None:
        """Put down what is in the way where files are exchanged, for whoever asks for the state; nothing, once nothing is."""
        told = "\n".join(sentences).encode()
        if not told:
            self.path.joinpath(REFUSED, IN_EXCHANGE).unlink(missing_ok=True)
        elif self.read(REFUSED, IN_EXCHANGE) != told:
            self._note(told, IN_EXCHANGE)

    @contextmanager
    def working(self) -> Iterator[None]:
        """Put down why this role's own work fails, for whoever asks for the state, until it does not fail."""
        try:
            yield
        except VertiMRFError as error:
            with _unobstructed():
                write_text(self.path / STOPPED, str(error))
            raise
        with _unobstructed():
            (self.path / STOPPED).unlink(missing_ok=True)

    def refusals(self) -> tuple[str, ...]:
        """Sentences about what was not taken."""
        files = sorted(
            path
            for path in (self.path / REFUSED).rglob("*")
            if path.is_file() and not DRAFT.fullmatch(path.name)
        )
        return tuple(
            sentence for path in files for sentence in path.read_text(errors="replace").splitlines()
        )

    def stopped(self) -> str | None:
        """Why this role's own work failed when last tried."""
        data = self.read(STOPPED)
        return None if data is None else data.decode(errors="replace")

    def _note(self, told: bytes, *place: str) -> None:
        with _unobstructed():
            self._make(self.path.joinpath(REFUSED, *place).parent)
            write_bytes(self.path.joinpath(REFUSED, *place), told)

    def _make(self, folder: Path) -> None:
        """A folder within the run's, which is there from now on."""
        if not folder.is_dir():
            self._make(folder.parent)
            folder.mkdir(mode=0o700, exist_ok=True)
            sync(folder.parent)

    def _tidy(self) -> None:
        """Remove what killed processes left. Nothing of it was ever used: it would have its own name."""
        # Not where accepted plans are put down: that is done without the lock, while others may hold it.
        inside = [path for name in (RECEIVED, REFUSED) for path in (self.path / name).rglob("*")]
        for path in [*self.path.iterdir(), *inside]:
            if not DRAFT.fullmatch(path.name):
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)


def create(
    path: str | os.PathLike[str],
    settings: Mapping[str, Any],
    owner: str | None,
    files: Mapping[str, bytes],
) -> None:
    """Make a run folder; one that is there with the same settings stays as it is.

    Args:
        path: where to; its parent must exist.
        settings: written as TOML, last of all: without them it is no run folder.
        owner: the party whose key pair is made; None for the server's.
        files: other files of the run, by name.

    Raises:
        RunError: the folder is of another run, or has other files.
    """
    folder = Path(path).absolute()
    # As it will be read back, with lists for tuples.
    text = tomli_w.dumps({name: value for name, value in settings.items() if value is not None})
    wanted = tomllib.loads(text)
    if not folder.parent.is_dir():
        raise RunError(f"{folder} cannot be made: its parent folder does not exist.")
    if folder.exists() and not folder.is_dir():
        raise RunError(f"{folder} is a file; name a folder for the run.")
    folder.mkdir(mode=0o700, exist_ok=True)
    with locked(folder):
        if (folder / SETTINGS).exists():
            found = read_settings(folder)
            other = sorted(
                name for name in found.keys() | wanted.keys() if found.get(name) != wanted.get(name)
            )
            other += sorted(
                name for name, data in files.items() if (folder / name).read_bytes() != data
            )
            if other:
                raise RunError(
                    f"{folder} is a run with another {', '.join(other)}: leave the options out to go on with it, edit "
                    f"{folder / SETTINGS}, or name a new folder."
                )
            return
        here = [
            p
            for p in folder.iterdir()
            if p.name not in (LOCK, KEY, *files) and not DRAFT.fullmatch(p.name)
        ]
        if here:
            raise RunError(
                f"{folder} is no run folder and has other files ({here[0].name}); name a new one."
            )
        if not (folder / KEY).exists():
            PrivateKey.new(owner).save(folder / KEY)
        for name, data in files.items():
            write_bytes(folder / name, data, synced=True)
        write_text(folder / SETTINGS, text, synced=True)
        sync(folder.parent)


def read_settings(folder: Path) -> dict[str, Any]:
    """A run folder's settings.

    Raises:
        RunError: it has none.
    """
    if not (folder / SETTINGS).is_file():
        raise RunError(
            f"{folder} is no run folder: it has no {SETTINGS}; `vertimrf run party` or `vertimrf run server` with its options "
            "makes one."
        )
    try:
        return tomllib.loads(
            read_bytes(folder / SETTINGS, "run's settings", RunError, MAX_KEY).decode()
        )
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RunError(f"{folder / SETTINGS} cannot be read ({error}); mend it.") from None


def settings_as(kind: type[T], settings: Mapping[str, Any], folder: Path) -> T:
    """A run's settings as the dataclass of its role, every field of its type.

    Raises:
        RunError: one is missing, unknown, or of another type.
    """
    where = folder / SETTINGS
    given = {name: value for name, value in settings.items() if name != "role"}
    hints = get_type_hints(kind)
    if unknown := sorted(given.keys() - hints.keys()):
        raise RunError(
            f"{where} has a setting {unknown[0]!r}, which no run has; its settings are {', '.join(hints)}."
        )
    for name, value in given.items():
        if not _fits(value, hints[name]):
            raise RunError(f"{where}: {name} cannot be {value!r}; mend it.")
    try:
        return kind(**{name: _frozen(value) for name, value in given.items()})
    except TypeError:
        raise RunError(
            f"{where} lacks a setting that every such run has; its settings are {', '.join(hints)}."
        ) from None


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value out of TOML is of a type such as ``str``, ``int | None`` or ``tuple[str, ...]``."""
    if get_origin(hint) is UnionType:
        return any(_fits(value, one) for one in get_args(hint))
    if get_origin(hint) is tuple:
        return isinstance(value, list) and all(_fits(one, get_args(hint)[0]) for one in value)
    if hint is float:
        return type(value) in (int, float)
    return type(value) is hint


def _frozen(value: Any) -> Any:
    return tuple(_frozen(one) for one in value) if isinstance(value, list) else value


def unreadable(path: Path, error: OSError) -> RunError:
    """The error of a file of the run that cannot be read."""
    return RunError(
        f"{path} cannot be read ({error.strerror}): it is no file of a run; move it away."
    )


@contextmanager
def _unobstructed() -> Iterator[None]:
    """Say in words what is where a file or folder of the run belongs, and is not one."""
    try:
        yield
    except (FileExistsError, IsADirectoryError, NotADirectoryError) as error:
        where = error.filename2 or error.filename
        raise RunError(
            f"{where} is in the way of a file of the run ({error.strerror}): move it away."
        ) from None


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a folder's lock, which the kernel lets go of when its holder ends, however it ends.

    Raises:
        RunError: another process holds it.
    """
    try:
        handle = os.open(
            folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600
        )
    except OSError as error:
        if error.errno not in (errno.EISDIR, errno.ELOOP, errno.ENXIO):
            raise
        raise RunError(f"{folder / LOCK} is no lock ({error.strerror}): move it away.") from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunError(
                f"Another process is at work in {folder}: let it end, or end it; `vertimrf status {folder}` tells how far it is."
            ) from None
        yield
    finally:
        os.close(handle)

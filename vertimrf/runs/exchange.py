"""A folder or object store that all roles can reach, as the way between them: named bytes, each put by one role.

Under ``parties/NAME/`` lies what a party gives to the server, under ``server/NAME/`` what the server gives to that party. The
last 32 bytes of a file are the SHA-256 of those before them: an upload that was cut off is not there yet, and is made again by
whose it is. Nothing in an exchange is trusted. Links in it are not followed and nothing but regular files is read; what else lies
at the name of a run's file is named and passed over, and the files of all others go on. Who may write to an exchange can hold a
run up, and no more.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ..errors import ExchangeError, ObstacleError, RunError, VertiMRFError
from ..files.shared_folder import SharedFolder
from .files import file_name

if TYPE_CHECKING:
    from .party_run import PartyRun
    from .server_run import ServerRun

__all__ = ["Exchange", "by_hand", "check_apart", "party_turn", "server_turn"]

LOG = logging.getLogger("vertimrf")
DIGEST = 32


class Store(Protocol):
    """Where an exchange keeps its bytes; names have slashes. See :class:`vertimrf.files.shared_folder.SharedFolder`."""

    def read(self, name: str, most: int) -> bytes | None:
        """A file's bytes, of a larger one ``most`` and one more; None if it is not there."""

    def write(self, name: str, data: bytes) -> None:
        """Put a file, over what is there."""

    def stamp(self, name: str) -> object:
        """Something that is equal as long as a file has not been changed; None if there is none."""


class RemoteStore:
    """Whatever file system or object store pyarrow can open.

    Args:
        system: a ``pyarrow.fs.FileSystem``.
        root: the place in it.
    """

    def __init__(self, system: Any, root: str) -> None:
        self._fs, self._root = system, root

    def read(self, name: str, most: int) -> bytes | None:
        """See :class:`Store`."""
        info = self._info(name)
        if info is None:
            return None
        if not info.is_file:
            raise ObstacleError(
                f"{self._root}/{name} is not a file; it is ignored until you remove it."
            )
        with self._fs.open_input_stream(f"{self._root}/{name}") as file:
            data: bytes = file.read(min(info.size, most) + 1)
            return data

    def write(self, name: str, data: bytes) -> None:
        """See :class:`Store`."""
        path = f"{self._root}/{name}"
        self._fs.create_dir(path.rpartition("/")[0], recursive=True)
        with self._fs.open_output_stream(path) as file:
            file.write(data)

    def stamp(self, name: str) -> object:
        """See :class:`Store`."""
        info = self._info(name)
        return None if info is None or not info.is_file else (info.size, info.mtime_ns)

    def _info(self, name: str) -> Any:
        """What the file system says of a name; None if there is nothing."""
        from pyarrow import fs

        info = self._fs.get_file_info(f"{self._root}/{name}")
        return None if info.type == fs.FileType.NotFound else info


class Exchange:
    """The place.

    Args:
        place: a folder, or a URI that ``pyarrow.fs.FileSystem.from_uri`` takes, such as ``s3://bucket/run``.

    Attributes:
        folder: the place, if it is a folder on this machine.

    Raises:
        ExchangeError: there is no such place, or it cannot be reached.
    """

    def __init__(self, place: str | os.PathLike[str]) -> None:
        self.place = str(place)
        # By path, the digest of what was put there and found there later, and the stamp of the file that had it.
        self._put: dict[str, tuple[bytes, object]] = {}
        self.folder: Path | None = None
        system: Any = None
        if "://" in self.place:
            from pyarrow import fs

            try:
                system, root = fs.FileSystem.from_uri(self.place.rstrip("/"))
            except (OSError, ValueError) as error:
                raise self._unreachable(error) from None
            if isinstance(system, fs.LocalFileSystem):
                self.folder = Path(root)
        else:
            self.folder = Path(place)
        if self.folder is None:
            self._store: Store = RemoteStore(system, root)
        elif self.folder.is_dir():
            self._store = SharedFolder(self.folder)
        else:
            raise ExchangeError(
                f"There is no folder {self.place} to exchange files by; make it, or mount it."
            )

    def put(self, sender: str | None, party: str, name: str, data: bytes) -> str | None:
        """Put a file; one that is there, whole and the same, stays. Another one is replaced: nobody else writes that name.

        Args:
            sender: the party that it is from; None for the server.
            party: that party, or for the server's files the one that they are for.
            name: what it is.
            data: its bytes.

        Returns:
            A sentence about another file that was there and was replaced; None if there was none.

        Raises:
            ObstacleError: a folder is there, or a link or file on the way to it.
            ExchangeError: the place cannot be reached.
        """
        path = _path(sender, party, name)
        digest = hashlib.sha256(data).digest()
        other = False
        try:
            stamp = self._store.stamp(path)
            if stamp is not None and self._put.get(path) == (digest, stamp):
                return None
            try:
                found = self._store.read(path, len(data) + DIGEST)
            except ObstacleError:
                # What cannot be replaced either is named by the attempt to.
                other = True
            else:
                if found == data + digest:
                    self._put[path] = digest, stamp
                    return None
                other = found is not None and (
                    len(found) > len(data) + DIGEST or _whole(found) is not None
                )
            self._store.write(path, data + digest)
        except OSError as error:
            raise self._unreachable(error) from None
        if not other:
            return None
        return (
            f"{self.place} had something else at {path} than this run's {name}, and it was replaced: somebody else writes there, "
            "or another run does; give each run a place of its own."
        )

    def get(self, sender: str | None, party: str, name: str, most: int) -> bytes | None:
        """A file's bytes; None if it is not there, or not whole yet. One that is larger is given up to one byte more.

        Args:
            sender, party, name: as in :meth:`put`.
            most: bytes that it may have.

        Raises:
            ObstacleError: something is there that is no file, or is on the way to it and no folder.
            ExchangeError: the place cannot be reached.
        """
        try:
            found = self._store.read(_path(sender, party, name), most + DIGEST)
        except OSError as error:
            raise self._unreachable(error) from None
        if found is None or len(found) > most + DIGEST:
            return None if found is None else found[: most + 1]
        return _whole(found)

    def _unreachable(self, error: Exception) -> ExchangeError:
        return ExchangeError(
            f"{self.place}, where files are exchanged, cannot be used: {str(error).splitlines()[0]}."
        )


def check_apart(folder: Path, place: Path) -> None:
    """Refuse a run folder within the place where files are exchanged, and that place within a run folder.

    Args:
        folder: the run's.
        place: the exchange's.

    Raises:
        RunError: one lies within the other, whatever links lead there.
    """
    for inner, outer in ((folder, place), (place, folder)):
        real, other = Path(os.path.realpath(inner)), Path(os.path.realpath(outer))
        if any(
            path == other or (path.exists() and other.exists() and path.samefile(other))
            for path in (real, *real.parents)
        ):
            raise RunError(
                f"{inner} lies within {outer}: a run folder is its owner's alone, and a place where files are exchanged is not; "
                "name a place beside it."
            )


def by_hand(run: PartyRun | ServerRun) -> tuple[list[str], list[str]]:
    """Where files lie in an exchange: those that a role has for others, and those that it waits for."""
    from .party_run import PartyRun

    if isinstance(run, PartyRun):
        return _paths(run.name, run.name, run.outgoing()), _paths(None, run.name, run.wants())
    gives = [path for party, files in run.outgoing().items() for path in _paths(None, party, files)]
    return gives, [
        path for party, files in run.wants().items() for path in _paths(party, party, files)
    ]


def party_turn(run: PartyRun, exchange: Exchange, release: bool = True) -> None:
    """Get what is there for a party, take it as far as it goes, and put what it has for the server.

    Args:
        run: the party's.
        exchange: the place.
        release: as for :meth:`PartyRun.advance`.

    Raises:
        VertiMRFError: as :meth:`PartyRun.advance`; what there is all the same was put.
        ObstacleError: something is in the way of a file; all others were got and put.
        ExchangeError: the place cannot be reached.
        RunError: the run folder lies within the place, or the place within it.
    """
    turn = _Turn(run, exchange)
    came = turn.get_all(None, run.name, run.wants(again=True))
    try:
        sent: Mapping[str, bytes] = run.advance(came, release)
    except VertiMRFError:
        turn.put_all(run.name, {run.name: run.outgoing()})
        raise
    turn.put_all(run.name, {run.name: sent})
    turn.end()


def server_turn(run: ServerRun, exchange: Exchange) -> None:
    """Get what is there for the server, take it as far as it goes, and put what it has for every party.

    Raises:
        VertiMRFError: as :meth:`ServerRun.advance`; what there is all the same was put.
        ObstacleError: something is in the way of a file; all others were got and put.
        ExchangeError: the place cannot be reached.
        RunError: the run folder lies within the place, or the place within it.
    """
    turn = _Turn(run, exchange)
    wanted = run.wants(again=True)
    came = {party: turn.get_all(party, party, names) for party, names in wanted.items()}
    try:
        sent = run.advance(came)
    except VertiMRFError:
        turn.put_all(None, run.outgoing())
        raise
    turn.put_all(None, sent)
    turn.end()


class _Turn:
    """One turn's way through an exchange: it goes on past what is in the way, and puts that down in the run's folder."""

    def __init__(self, run: PartyRun | ServerRun, exchange: Exchange) -> None:
        if exchange.folder is not None:
            check_apart(run.folder, exchange.folder)
        self._run, self._exchange = run, exchange
        self._obstacles: dict[str, None] = {}
        self._replaced: list[str] = []

    def get_all(self, sender: str | None, party: str, wants: Mapping[str, int]) -> dict[str, bytes]:
        """Those files that are there."""
        out: dict[str, bytes] = {}
        for name, most in wants.items():
            try:
                data = self._exchange.get(sender, party, name, most)
            except ObstacleError as error:
                self._obstacles[str(error)] = None
            else:
                out |= {} if data is None else {name: data}
        return out

    def put_all(self, sender: str | None, sent: Mapping[str, Mapping[str, bytes]]) -> None:
        """All files, by whom they are of or for; then puts down what was in the way in this turn."""
        for party, files in sent.items():
            for name, data in files.items():
                try:
                    other = self._exchange.put(sender, party, name, data)
                except ObstacleError as error:
                    self._obstacles[str(error)] = None
                    continue
                if other is not None:
                    LOG.warning("%s", other)
                    self._replaced.append(other)
        self._run.note_exchange([*self._obstacles, *self._replaced])

    def end(self) -> None:
        """Fail if something was in the way."""
        if self._obstacles:
            raise ObstacleError(" ".join(self._obstacles))


def _paths(sender: str | None, party: str, names: Iterable[str]) -> list[str]:
    return [_path(sender, party, name) for name in names]


def _path(sender: str | None, party: str, name: str) -> str:
    if not name or "/" in name or name.startswith("."):
        raise ExchangeError(f"No run has a file {name[:50]!r}.")
    return f"{'server' if sender is None else 'parties'}/{file_name(party)}/{name}"


def _whole(found: bytes) -> bytes | None:
    """The bytes before the digest, if it is theirs."""
    data = found[:-DIGEST]
    return (
        data if len(found) >= DIGEST and hashlib.sha256(data).digest() == found[-DIGEST:] else None
    )

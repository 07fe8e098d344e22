"""A folder or object store that all roles can reach, as the way between them: named bytes, each put once, whole or not at all.

Under ``parties/NAME/`` lies what a party gives to the server, under ``server/NAME/`` what the server gives to that party. The
last 32 bytes of a file are the SHA-256 of those before them: an upload that was cut off is not there yet, and is made again by
whose it is. Nothing in an exchange is trusted; who may write to it can hold a run up, and no more.
"""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ..errors import ExchangeError, VertiMRFError
from ..files.atomic import replacing
from .files import file_name

if TYPE_CHECKING:
    from .party_run import PartyRun
    from .server_run import ServerRun

__all__ = ["Exchange", "party_turn", "server_turn"]

DIGEST = 32


class Store(Protocol):
    """Where an exchange keeps its bytes; names have slashes."""

    def read(self, name: str, most: int) -> bytes | None:
        """Up to so many bytes of a file; None if it is not there."""

    def write(self, name: str, data: bytes) -> None:
        """Put a file, over what is there."""


class FolderStore:
    """A folder, on this machine or mounted: files are written beside their place and renamed."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def read(self, name: str, most: int) -> bytes | None:
        """See :class:`Store`."""
        self._check()
        try:
            with open(self._root / name, "rb") as file:
                return file.read(min(os.fstat(file.fileno()).st_size, most) + 1)
        except FileNotFoundError:
            return None

    def write(self, name: str, data: bytes) -> None:
        """See :class:`Store`."""
        self._check()
        path = self._root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        # Drafts of a process that was killed: a file has one writer, and that one works alone on its run.
        for left in path.parent.glob(f".*.{path.name}"):
            left.unlink(missing_ok=True)
        with replacing(path, synced=True) as draft:
            draft.write_bytes(data)


    def _check(self) -> None:
        """A share that is gone has no files, and is not made anew."""
        if not self._root.is_dir():
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), str(self._root))


class RemoteStore:
    """Whatever file system or object store pyarrow can open."""

    def __init__(self, uri: str) -> None:
        from pyarrow import fs

        self._fs: Any
        self._fs, self._root = fs.FileSystem.from_uri(uri)
        self._missing = fs.FileType.NotFound

    def read(self, name: str, most: int) -> bytes | None:
        """See :class:`Store`."""
        path = f"{self._root}/{name}"
        if self._fs.get_file_info(path).type == self._missing:
            return None
        with self._fs.open_input_stream(path) as file:
            data: bytes = file.read(most + 1)
            return data

    def write(self, name: str, data: bytes) -> None:
        """See :class:`Store`."""
        path = f"{self._root}/{name}"
        self._fs.create_dir(path.rpartition("/")[0], recursive=True)
        with self._fs.open_output_stream(path) as file:
            file.write(data)


class Exchange:
    """The place.

    Args:
        place: a folder, or a URI that ``pyarrow.fs.FileSystem.from_uri`` takes, such as ``s3://bucket/run``.

    Raises:
        ExchangeError: there is no such place, or it cannot be reached.
    """

    def __init__(self, place: str | os.PathLike[str]) -> None:
        self.place = str(place)
        self._put: dict[str, bytes] = {}
        if "://" in self.place:
            try:
                self._store: Store = RemoteStore(self.place.rstrip("/"))
            except (OSError, ValueError) as error:
                raise self._unreachable(error) from None
        elif Path(place).is_dir():
            self._store = FolderStore(Path(place))
        else:
            raise ExchangeError(f"There is no folder {self.place} to exchange files by; make it, or mount it.")

    def put(self, sender: str | None, party: str, name: str, data: bytes) -> None:
        """Put a file; one that is there, whole and the same, stays.

        Args:
            sender: the party that it is from; None for the server.
            party: that party, or for the server's files the one that they are for.
            name: what it is.
            data: its bytes.

        Raises:
            ExchangeError: the place cannot be reached, or has another file there.
        """
        path = _path(sender, party, name)
        digest = hashlib.sha256(data).digest()
        if self._put.get(path) == digest:
            return
        try:
            found = self._store.read(path, len(data) + DIGEST)
            longer = found is not None and len(found) > len(data) + DIGEST
            whole = None if found is None else _whole(found)
            if whole is None and not longer:
                self._store.write(path, data + digest)
            elif whole != data:
                raise ExchangeError(
                    f"{self.place} has another {name} at {path} than this run's: it is of another run, or somebody put it there; "
                    "name a new place for this run, or have that file removed."
                )
        except OSError as error:
            raise self._unreachable(error) from None
        self._put[path] = digest

    def get(self, sender: str | None, party: str, name: str, most: int) -> bytes | None:
        """A file's bytes; None if it is not there, or not whole yet. One that is larger is given up to one byte more.

        Args:
            sender, party, name: as in :meth:`put`.
            most: bytes that it may have.

        Raises:
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
        return ExchangeError(f"{self.place}, where files are exchanged, cannot be used: {str(error).splitlines()[0]}.")


def party_turn(run: PartyRun, exchange: Exchange) -> None:
    """Get what is there for a party, take it as far as it goes, and put what it has for the server.

    Raises:
        VertiMRFError: as :meth:`PartyRun.advance`; what there is all the same was put.
        ExchangeError: the place cannot be reached.
    """
    came = {name: exchange.get(None, run.name, name, most) for name, most in run.wants().items()}
    try:
        sent: Mapping[str, bytes] = run.advance({name: data for name, data in came.items() if data is not None})
    except VertiMRFError:
        _put_all(exchange, run.name, {run.name: run.outgoing()})
        raise
    _put_all(exchange, run.name, {run.name: sent})


def server_turn(run: ServerRun, exchange: Exchange) -> None:
    """Get what is there for the server, take it as far as it goes, and put what it has for every party.

    Raises:
        VertiMRFError: as :meth:`ServerRun.advance`; what there is all the same was put.
        ExchangeError: the place cannot be reached.
    """
    came: dict[str, dict[str, bytes]] = {}
    for party, wanted in run.wants().items():
        files = {name: exchange.get(party, party, name, most) for name, most in wanted.items()}
        came[party] = {name: data for name, data in files.items() if data is not None}
    try:
        sent = run.advance(came)
    except VertiMRFError:
        _put_all(exchange, None, run.outgoing())
        raise
    _put_all(exchange, None, sent)


def _put_all(exchange: Exchange, sender: str | None, sent: Mapping[str, Mapping[str, bytes]]) -> None:
    for party, files in sent.items():
        for name, data in files.items():
            exchange.put(sender, party, name, data)


def _path(sender: str | None, party: str, name: str) -> str:
    return f"{'server' if sender is None else 'parties'}/{file_name(party)}/{name}"


def _whole(found: bytes) -> bytes | None:
    """The bytes before the digest, if it is theirs."""
    data = found[:-DIGEST]
    return data if len(found) >= DIGEST and hashlib.sha256(data).digest() == found[-DIGEST:] else None

"""An exchange: a folder or object store through which all roles send their files.

``parties/NAME/`` holds the files from a party to the server, ``server/NAME/`` those from the server
to that party. The last 32 bytes of a file are the SHA-256 of the bytes before them. So an upload
that was cut off is recognised, and its sender writes it again.

A storage may keep its callers waiting for any time. So a thread works with it, and who waits for
the thread waits for a limited time.

Nothing in an exchange is trusted. Links are not followed, and only regular files are read. Anything
else in the place of a run's file is reported and skipped, and all other files are exchanged.
Whoever can write to an exchange can delay a run, and forge what the server says of the ids, which
is not sealed; no more.
"""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote, unquote_to_bytes, urlsplit

from ..errors import (
    CutError,
    ExchangeError,
    ObstacleError,
    PlaceError,
    RunError,
    VertiMRFError,
    some,
)
from ..files.atomic import MAX_JSON, AnyPath
from ..files.canonical import canonical, json_of
from ..files.shared_folder import SharedFolder
from .files import SERVER, file_name
from .folder import create

if TYPE_CHECKING:
    from .party_table import PartySettings
    from .server_run import ServerSettings
    from .steps import Run

LOG = logging.getLogger("vertimrf")
T = TypeVar("T")
DIGEST = 32
# Seconds within which a storage must answer, and the slowest transfer of a file, bytes a second.
ANSWER, SLOWEST = 8.0, 50_000
# Name of the threads that work with a storage.
THREAD = "vertimrf exchange"
# Errors of a storage that stay until somebody changes the address or this account's rights. Arrow
# tells those of S3 by their text alone.
LASTING = {errno.EACCES, errno.EINVAL, errno.EPERM, errno.EROFS}
LASTING_TEXT = re.compile(
    r"AWS Error (ACCESS_DENIED|NO_SUCH_BUCKET|REQUEST_TIME_TOO_SKEWED|\w*(ACCESS_KEY|CLIENT|SIGNATURE|TOKEN)\w*"
    r"|UNKNOWN \(HTTP status (?!408|409|425|429)[34]\d\d\))|^Bucket '.*' not found|libjvm"
)
# The server's list of parties. No party's file name has a dot.
ROSTER = "server/of.parties"
# An address of a storage: what it may have besides options, and options that are no secrets. It is
# kept with a run, so all else is refused.
AUTHORITY = re.compile(r"(?:[\w.~-]+@)?[^@/:?#]*(?::\d{0,5})?")
STORAGE = (
    *("allow_bucket_creation", "allow_bucket_deletion", "buffer_size", "default_block_size"),
    *("enable_tls", "endpoint_override", "force_virtual_addressing", "project_id", "region"),
    *("replication", "retry_limit_seconds", "scheme", "tls_ca_file_path", "user"),
)
# Names of no party that are reported.
MAX_STRANGERS = 5


class RemoteStore:
    """Storage in a file system or object store that pyarrow can open, with the operations of
    :class:`~vertimrf.files.shared_folder.SharedFolder`.

    Args:
        system: a ``pyarrow.fs.FileSystem``.
        root: path within it.
    """

    def __init__(self, system: Any, root: str) -> None:
        self._fs, self._root = system, root

    def read(self, name: str, max_bytes: int) -> bytes | None:
        """See :class:`.SharedFolder`."""
        info = self._info(name)
        if info is None:
            return None
        if not info.is_file:
            raise ObstacleError(
                f"{self._root}/{name} is not a file; it is ignored until you remove it."
            )
        with self._fs.open_input_stream(f"{self._root}/{name}") as file:
            data: bytes = file.read(min(info.size, max_bytes) + 1)
            return data

    def write(self, name: str, data: bytes) -> None:
        """See :class:`.SharedFolder`."""
        path = f"{self._root}/{name}"
        self._fs.create_dir(path.rpartition("/")[0], recursive=True)
        with self._fs.open_output_stream(path) as file:
            file.write(data)

    def stamp(self, name: str) -> object:
        """See :class:`.SharedFolder`."""
        info = self._info(name)
        return None if info is None or not info.is_file else (info.size, info.mtime_ns)

    def names(self, name: str) -> list[str]:
        """See :class:`.SharedFolder`."""
        from pyarrow import fs

        inside = fs.FileSelector(f"{self._root}/{name}", allow_not_found=True)
        return sorted(info.base_name for info in self._fs.get_file_info(inside))

    def _info(self, name: str) -> Any:
        """What the file system says about a name. None if there is nothing."""
        from pyarrow import fs

        info = self._fs.get_file_info(f"{self._root}/{name}")
        return None if info.type == fs.FileType.NotFound else info


class Exchange:
    """An exchange. The first use opens it.

    Args:
        place: a folder, or a URI for ``pyarrow.fs.FileSystem.from_uri``, such as
            ``s3://bucket/run``.

    Raises:
        PlaceError: the address has what may be a secret.

    Attributes:
        place: the folder or URI as text.
        folder: the folder, if the place is one on this machine.
    """

    def __init__(self, place: AnyPath) -> None:
        self.place = str(place)
        check_address(self.place)
        # By path, the digest of the file that was put, and the stamp of that file.
        self._put: dict[str, tuple[bytes, object]] = {}
        self.folder = folder_of(self.place)
        self._work: Future[Any] | None = None
        if self.folder is None:
            # To load it is no part of the storage's answer.
            import pyarrow.fs  # noqa: F401

    def reach(self) -> None:
        """Open the place if this was not done, and see whether it answers.

        Raises:
            PlaceError: no exchange can be there, or it refuses this account.
            ExchangeError: it cannot be reached.
        """
        with suppress(ObstacleError):
            self._ask(lambda store: store.stamp(ROSTER))

    def _ask(self, work: Callable[[RemoteStore | SharedFolder], T], most: int = 0) -> T:
        """Have a thread work with the storage, and wait for it within limits.

        Args:
            work: the work, given the storage.
            most: the most bytes that it transfers.
        """
        limit = ANSWER + most / SLOWEST
        if self._work is not None:
            # Work that did not end in time before must end first.
            self._wait_for(self._work, limit)
        done = self._work = Future()

        def run() -> None:
            try:
                with _arrow_errors() if self.folder is None else nullcontext():
                    done.set_result(work(self._store))
            except BaseException as error:
                done.set_exception(error)

        threading.Thread(target=run, name=THREAD, daemon=True).start()
        self._wait_for(done, limit)
        try:
            out: T = done.result()
        except OSError as error:
            raise self._unusable(error) from None
        return out

    def _wait_for(self, work: Future[Any], limit: float) -> None:
        if not wait([work], limit).done:
            raise ExchangeError(
                f"{self.place}, where files are exchanged, cannot be used: it does not answer within {limit:,.0f} seconds. See to "
                "the address, the network, and where this machine looks for credentials."
            )

    @cached_property
    def _store(self) -> RemoteStore | SharedFolder:
        return self._open()

    def _open(self) -> RemoteStore | SharedFolder:
        if self.folder is None:
            from pyarrow import fs

            system, root = fs.FileSystem.from_uri(self.place)
            if not root.strip("/"):
                raise OSError(errno.EINVAL, "it names no bucket or folder")
            return RemoteStore(system, root.rstrip("/"))
        if not self.folder.is_dir():
            raise PlaceError(
                f"There is no folder {self.place} to exchange files by; make it, or mount it."
            )
        return SharedFolder(self.folder)

    def put(self, sender: str | None, party: str, name: str, data: bytes) -> str | None:
        """Put a file into the exchange. The same file stays, and another one is replaced.

        Args:
            sender: the party that sends the file; None for the server.
            party: the party that sends or, from the server, receives the file.
            name: name of the file.
            data: content of the file.

        Returns:
            A sentence about another file that was replaced. None if there was none.

        Raises:
            ObstacleError: a folder has this name, or a link or file is on the path.
            ExchangeError: the place cannot be reached.
        """
        return self._put_at(_path(sender, party, name), data)

    def _put_at(self, path: str, data: bytes) -> str | None:
        digest = hashlib.sha256(data).digest()
        other = False
        stamp = self._ask(lambda store: store.stamp(path))
        if stamp is not None and self._put.get(path) == (digest, stamp):
            return None
        size = len(data) + DIGEST
        try:
            present = self._ask(lambda store: store.read(path, size), size)
        except ObstacleError:
            # If it cannot be replaced, writing raises the error.
            other = True
        else:
            if present == data + digest:
                self._put[path] = digest, stamp
                return None
            other = present is not None and (len(present) > size or _content(present) is not None)
        self._ask(lambda store: store.write(path, data + digest), size)
        if not other:
            return None
        return (
            f"{self.place} had something else at {path} than this run's {path.rpartition('/')[2]}, and it was replaced: somebody else writes there, "
            "or another run does. Give each run its own folder."
        )

    def get(self, sender: str | None, party: str, name: str, max_bytes: int) -> bytes | None:
        """The content of a file in the exchange.

        Args:
            sender, party, name: as in :meth:`put`.
            max_bytes: largest size, bytes.

        Returns:
            The content. None if there is no file. A larger file is cut after ``max_bytes`` + 1
            bytes.

        Raises:
            CutError: the file is not whole.
            ObstacleError: there is something else than a file, or a parent is not a folder.
            ExchangeError: the place cannot be reached.
        """
        path, most = _path(sender, party, name), max_bytes + DIGEST
        data = self._ask(lambda store: store.read(path, most), most)
        if data is None or len(data) > most:
            return None if data is None else data[: max_bytes + 1]
        content = _content(data)
        if content is None:
            who = SERVER if sender is None else repr(sender)
            raise CutError(
                f"{self.place}/{path}, the {name} of {who}, is not whole ({len(data):,} bytes came): it is still being written, or "
                f"was cut on its way. `vertimrf run` of {who} writes it again; if you carry files, copy it again."
            )
        return content

    def announce(self, parties: Iterable[str]) -> None:
        """Put the list of the run's parties, which are public. The server does so.

        Raises:
            ObstacleError, ExchangeError: as :meth:`put`.
        """
        self._put_at(ROSTER, canonical(sorted(parties)))

    def check_name(self, name: str) -> None:
        """Refuse a party's name that the server's list of parties does not have. Without a list, any
        name may be one.

        Raises:
            RunError: the list does not have it.
            ObstacleError, ExchangeError: as :meth:`get`.
        """
        file = self._ask(lambda store: store.read(ROSTER, MAX_JSON), MAX_JSON)
        data, parties = _content(file or b""), None
        with suppress(ValueError):
            parties = None if data is None else json_of(data)
        if isinstance(parties, list) and name not in parties:
            raise RunError(
                f"{name!r} is no party of this run, whose parties are {some(parties)}: start in a new folder with the "
                "party's name, or have the schema corrected."
            )

    def strangers(self, parties: Iterable[str]) -> dict[str, str]:
        """By path, sentences about files of parties that a run does not have.

        Raises:
            ExchangeError: the place cannot be reached.
        """
        try:
            names = self._ask(lambda store: store.names("parties"))
        except ObstacleError:
            return {}
        known = list(parties)
        # Party's file names have no dot; those of other programs often do.
        strange = sorted({n for n in names if "." not in n} - {file_name(party) for party in known})
        return {
            f"parties/{name[:200]}": f"{self.place}/parties/{name[:200]} is of no party of this run, whose parties are {some(known)}: that party has to "
            "start with its name, or the schema to be corrected."
            for name in strange[:MAX_STRANGERS]
        }

    def _unusable(self, error: OSError) -> ExchangeError:
        """The error of a storage in a sentence. Its class says whether to try again helps."""
        where = f" of {error.filename}" if error.filename and error.filename != self.place else ""
        text = str(error)
        why = (error.strerror or text).splitlines()[0].partition(" error_info=")[0].rstrip(". ")
        what = f"{self.place}, where files are exchanged, cannot be used: {why}{where}."
        if error.errno in LASTING or LASTING_TEXT.search(text):
            return PlaceError(
                f"{what} Correct the address or this account's rights there, and call again."
            )
        return ExchangeError(what)


@contextmanager
def _arrow_errors() -> Iterator[None]:
    """Make all errors of Arrow errors of the system. Most are about an address."""
    from pyarrow import ArrowException

    try:
        yield
    except OSError:
        raise
    except ArrowException as error:
        lasting = isinstance(error, (ValueError, LookupError, TypeError, NotImplementedError))
        raise (OSError(errno.EINVAL, str(error)) if lasting else OSError(str(error))) from None


def check_apart(folder: Path, place: Path) -> None:
    """Refuse a run folder within an exchange, and an exchange within a run folder.

    Args:
        folder: the run folder.
        place: the folder of the exchange.

    Raises:
        RunError: one lies within the other, directly or through links.
    """
    for inner, outer in ((folder, place), (place, folder)):
        real, other = Path(os.path.realpath(inner)), Path(os.path.realpath(outer))
        if any(
            path == other or (path.exists() and other.exists() and path.samefile(other))
            for path in (real, *real.parents)
        ):
            raise RunError(
                f"{inner} lies within {outer}: only its owner may read a run folder, but others read an exchange. "
                "Name a folder outside of it."
            )


def check_address(place: str | None) -> None:
    """Refuse an address that may have a secret, because a run keeps its address in a file.

    Args:
        place: a folder or a URI; None is none.

    Raises:
        PlaceError: a URI has a password, or another part than those that are known to be no
            secrets. The message does not repeat it.
    """
    if place is None or "://" not in place or place.startswith("file:///"):
        return
    rest, _, options = place.partition("://")[2].partition("?")
    authority, _, path = rest.partition("/")
    pairs = [pair.partition("=") for pair in options.split("&") if pair]
    parts = [path, *(value for _, _, value in pairs)]
    if (
        not AUTHORITY.fullmatch(authority)
        or any(set(unquote(part)) & set("@?#") for part in parts)
        or any(name not in STORAGE for name, _, _ in pairs)
    ):
        raise PlaceError(
            "An address to exchange files by has no key or password, which would be kept with the run: write SCHEME://BUCKET/FOLDER, with "
            f"no options but {', '.join(STORAGE)}, and give keys as the storage's programs do, for S3 by AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY."
        )


def folder_of(place: str | None) -> Path | None:
    """The folder on this machine that a path or a ``file://`` URI names. None if it is elsewhere."""
    if place is None or "://" not in place:
        return None if place is None else Path(place)
    if not place.startswith("file:///"):
        return None
    path = unquote_to_bytes(os.fsencode(urlsplit(place).path))
    # No folder has such a name, and pyarrow says so.
    return None if b"\0" in path else Path(os.fsdecode(path))


def begin(
    folder: AnyPath,
    settings: PartySettings | ServerSettings,
    owner: str | None,
    files: Mapping[str, bytes],
) -> None:
    """Make a run folder and, with it, the folder of its exchange, if that is one on this machine.

    Args:
        folder, owner, files: as for :func:`.folder.create`.
        settings: the settings of the run.

    Raises:
        RunError: one folder lies within the other; or as for :func:`.folder.create`.
        PlaceError: the address of the exchange may have a secret.
    """
    check_address(settings.exchange)
    place = folder_of(settings.exchange)
    if place is not None:
        check_apart(Path(folder), place)
    role = "server" if owner is None else "party"
    if create(folder, {"role": role} | asdict(settings), owner, files) and place is not None:
        with suppress(OSError):
            place.mkdir(exist_ok=True)


def by_hand(run: Run) -> tuple[list[str], list[str]]:
    """Paths in an exchange of a role's files for others, and of the files that it waits for."""
    given, wanted, server = run.given(), run.wants(), run.role == SERVER
    return (
        [_path(None if server else name, name, file) for name in given for file in given[name]],
        [_path(name if server else None, name, file) for name in wanted for file in wanted[name]],
    )


def take_turn(run: Run, exchange: Exchange, release: bool = True) -> None:
    """Get the files for a role, advance its run, and put its files for others.

    What is in the way is on record in the run's state until a turn without it.

    Args:
        run: the role's run.
        exchange: the exchange.
        release: as in :meth:`Run.take`.

    Raises:
        VertiMRFError: the role's work failed. The files that there are have been put.
        PlaceError: no exchange can be there, or it refuses this account. All files that it does not
            refuse were exchanged.
        ObstacleError: there is an obstacle to a file. All other files were exchanged.
        ExchangeError: the place cannot be reached.
        RunError: the run folder lies within the exchange, or the exchange within it; or the server
            says that there is no party of this name.
    """
    try:
        exchange.reach()
        if exchange.folder is not None:
            check_apart(run.folder, exchange.folder)
        obstacles = _exchange_files(run, exchange, release)
    except ExchangeError as error:
        run.note({exchange.place: str(error)})
        raise
    if obstacles:
        kinds = {type(error) for error in obstacles}
        kind = PlaceError if PlaceError in kinds else ObstacleError
        raise kind(" ".join(dict.fromkeys(map(str, obstacles))))


def _exchange_files(run: Run, exchange: Exchange, release: bool) -> list[ExchangeError]:
    """Take a turn in a place that can be reached. Returns why some files were not exchanged."""
    server, obstacles, troubles = run.role == SERVER, list[ExchangeError](), dict[str, str]()

    @contextmanager
    def passing_over(path: str) -> Iterator[None]:
        """Note what is in the way of one file, and go on."""
        try:
            yield
        except (ObstacleError, PlaceError) as error:
            obstacles.append(error)
            troubles[path] = str(error)
        except CutError as error:
            troubles[path] = str(error)

    def put_all(given: Mapping[str, Mapping[str, bytes]]) -> None:
        for party, files in given.items():
            for name, data in files.items():
                sender = None if server else party
                with passing_over(path := _path(sender, party, name)):
                    if other := exchange.put(sender, party, name, data):
                        LOG.warning("%s", other)
                        troubles[path] = other
        run.note(troubles)

    with passing_over(ROSTER):
        _introduce(run, exchange, troubles)
    wanted = run.wants(again=True)
    received: dict[str, dict[str, bytes]] = {party: {} for party in wanted}
    for party, names in wanted.items():
        for name, max_bytes in names.items():
            sender = party if server else None
            with passing_over(_path(sender, party, name)):
                data = exchange.get(sender, party, name, max_bytes)
                received[party] |= {} if data is None else {name: data}
    try:
        given = run.take(received, release)
    except VertiMRFError:
        put_all(run.given())
        raise
    put_all(given)
    return obstacles


def _introduce(run: Run, exchange: Exchange, troubles: dict[str, str]) -> None:
    """Tell who the parties are, or see whether this role is one of them.

    Sentences about files of other parties are added to ``troubles``.
    """
    if run.role == SERVER:
        parties = run.wants()
        exchange.announce(parties)
        # Once there is a plan, nobody else can take part.
        troubles |= exchange.strangers(parties) if run.plan is None else {}
    elif run.plan is None:
        try:
            exchange.check_name(run.role)
        except RunError as error:
            run.note({ROSTER: str(error)})
            raise


def _path(sender: str | None, party: str, name: str) -> str:
    if not name or "/" in name or name.startswith("."):
        raise ExchangeError(f"No run has a file {name[:50]!r}.")
    return f"{'server' if sender is None else 'parties'}/{file_name(party)}/{name}"


def _content(file: bytes) -> bytes | None:
    """The content of a file in an exchange. None if its digest does not fit."""
    data = file[:-DIGEST]
    return data if len(file) >= DIGEST and hashlib.sha256(data).digest() == file[-DIGEST:] else None

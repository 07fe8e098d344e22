"""Records of releases on this machine: a plan is never released for twice with different noise.

1. A party makes the bytes of its release.
2. It writes them to a record and syncs it to disk, *before* anybody sees them.
3. It gives the recorded bytes, also whenever it is asked again. After a crash there is either no
   record, and nothing was sent, or a record with the same bytes.

The hashes of a plan are the same in every release for it. Someone who sees two releases with
different phantoms sees which levels the phantoms do not explain. This costs far more than two plans.

Records are in the user's state folder (:mod:`vertimrf.files.state`), by the party's public key and
the plan. So there is one record, from whatever folder or copy of its files the party runs. If that
folder is lost, the same table still gives the same bytes, because the noise is a function of the
private key, the plan and the table. A release from another table is then no longer refused.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..errors import MessageError, PrivacyError
from ..files import container
from ..files.atomic import AnyPath, replacing
from ..files.state import STATE, own_folder, read_own, state_folder
from ..keys import PrivateKey
from .records import Records

KIND = "release record"
MESSAGE = "message"
REMEDY = (
    "From two different releases for one plan a reader could average the noise away. For a new release make a new plan; both "
    "epsilons add up (`vertimrf plan PLAN PLAN`)."
)
# The same for files by which ids are compared. Their names begin with this.
COMPARED = "ids"
IDS_REMEDY = "By two comparisons under one plan others could try out who is in the table. Make a new plan; so far nothing of this one is spent."


@dataclass(frozen=True)
class Release:
    """A release, and what it was made from.

    Attributes:
        plan: digest of the plan [32 bytes].
        party: index of the party in the plan.
        table: keyed digest of the secret and of the records of the release (:func:`table_digest`).
        file: name of the released file.
    """

    plan: bytes
    party: int
    table: bytes
    file: str = MESSAGE

    @property
    def name(self) -> str:
        """File name of the record. There is one per plan, party and file, whatever the table."""
        return record_name(self.plan, self.party, self.file)


def record_name(plan: bytes, party: int, file: str = MESSAGE) -> str:
    """File name of the record of a release.

    Args:
        plan: digest of the plan [32 bytes].
        party: index of the party in the plan.
        file: name of the released file.
    """
    return f"{file}-{party}-{plan.hex()}.release"


class Releases:
    """A folder of records, one per plan, party and file.

    Args:
        folder: where the records are. It is made with the first record. :meth:`of` has a party's.
    """

    def __init__(self, folder: AnyPath) -> None:
        self.folder = Path(folder)

    @classmethod
    def of(cls, key: PrivateKey) -> Releases:
        """The records on this machine of the party with a key."""
        return cls(state_folder() / "releases" / key.offer.identity)

    def once(self, release: Release, make: Callable[[], bytes]) -> bytes:
        """The bytes of a release: those on record, or new ones, which are recorded first.

        If several processes do this at once, one of them records its bytes. The others drop theirs
        and give the recorded ones.

        Args:
            release: the release and its source.
            make: makes the bytes; called only if there is no record.

        Returns:
            The recorded bytes.

        Raises:
            PrivacyError: a different release is on record, or the record is damaged, can be
                written by others, or cannot be written. Nothing new is released then.
        """
        path = self.folder / release.name
        self.prepare()
        if not os.path.lexists(path):
            self._record(path, release, make)
        released = self._recorded(path, release)
        self._tidy(path)
        return released

    def made(self, plan: bytes, party: int, file: str = MESSAGE) -> bool:
        """Whether a release of a file for a plan and party is on record."""
        return os.path.lexists(self.folder / record_name(plan, party, file))

    def given(self, plan: bytes, party: int, file: str = MESSAGE) -> bytes:
        """The bytes of a release on record, to be given again without the table.

        Args:
            plan: digest of the plan [32 bytes].
            party: index of the party in the plan.
            file: name of the released file.

        Raises:
            PrivacyError: the record is missing or damaged, or others can write it.
        """
        path = self.folder / record_name(plan, party, file)
        released = self._read(path, path.name)[1]
        self._tidy(path)
        return released

    def _tidy(self, path: Path) -> None:
        """Remove drafts of killed processes. They hold releases that nobody has seen."""
        for left in self.folder.glob(f".*.{path.name}"):
            left.unlink(missing_ok=True)

    def prepare(self) -> None:
        """Make the folder before any release is made.

        Raises:
            PrivacyError: the folder cannot be made or written to, or others can write to it.
        """
        try:
            own_folder(self.folder)
            if not os.access(self.folder, os.W_OK | os.X_OK):
                raise PermissionError(0, "Permission denied")
        except OSError as error:
            raise self._unwritable(error) from None

    def _record(self, path: Path, release: Release, make: Callable[[], bytes]) -> None:
        """Record new bytes, unless another process did so first."""
        header = {
            "plan": release.plan.hex(),
            "party": release.party,
            "table": release.table.hex(),
            "file": release.file,
        }
        released = make()
        header["sha256"] = hashlib.sha256(released).hexdigest()
        content = container.pack(KIND, header, {"released": np.frombuffer(released, np.uint8)})
        try:
            # A process that finds a record has sent nothing yet, and gives the recorded bytes.
            with replacing(path, private=True, synced=True, once=True) as file:
                file.write(content)
        except OSError as error:
            raise self._unwritable(error) from None

    def _recorded(self, path: Path, release: Release) -> bytes:
        """The bytes on record; refuse them if they are of another release."""
        record, released = self._read(path, release.name)
        if record.table != release.table:
            remedy = IDS_REMEDY if release.file.startswith(COMPARED) else REMEDY
            raise PrivacyError(
                f"This plan's {release.file} was released already, from another table or under another secret: only the same records "
                f"give the same {release.file} again. {remedy}"
            )
        return released

    def _read(self, path: Path, name: str) -> tuple[Release, bytes]:
        """The release that a record is about, and its bytes."""
        what = f"The record of the {name.partition('-')[0]} released for this plan, {path},"
        try:
            data = read_own(path)
        except OSError as error:
            raise PrivacyError(
                f"{what} cannot be read ({error.strerror}), so nothing is released. {REMEDY}"
            ) from None
        record = None
        try:
            header, arrays = container.unpack(data, KIND, str(path))
            released = arrays["released"].tobytes()
            intact = header["sha256"] == hashlib.sha256(released).hexdigest()
            record = Release(
                bytes.fromhex(header["plan"]),
                int(header["party"]),
                bytes.fromhex(header["table"]),
                str(header["file"]),
            )
        except (MessageError, KeyError, TypeError, ValueError, OverflowError):
            intact = False
        if not intact or record is None or record.name != name:
            raise PrivacyError(
                f"{what} is damaged: nobody can tell what was sent, so nothing is released. Restore it from a backup. "
                f"{REMEDY}"
            )
        return record, released

    def _unwritable(self, error: OSError) -> PrivacyError:
        return PrivacyError(
            f"No record of a release can be kept in {self.folder} ({error.strerror}), so nothing is released: make that folder "
            f"writable, on a file system with hard links, or name another one by {STATE}."
        )


def table_digest(records: Records, key: PrivateKey, plan_digest: bytes) -> bytes:
    """A keyed digest of a table's records that does not depend on their order [32 bytes].

    Records are added modulo 2^128 under a key that is derived from the private key. Two different
    tables have one digest with a probability of 2^-128, even if they were chosen by someone who
    knows the secret and chooses ids, but not the private key.

    Args:
        records: ids (as digests) and codes.
        key: the party's private key.
        plan_digest: digest of the plan that the table was encoded for [32 bytes].
    """
    total = records.keyed_sum(key.derive(plan_digest, "records of a table"))
    digest = hashlib.blake2b(key=key.derive(plan_digest, "table"), digest_size=32)
    digest.update(repr((len(records.attributes), records.count, total)).encode())
    return digest.digest()

"""What a party has released, on record on this machine: no plan is ever released for twice with other noise.

The hashes of a plan are the same in every release made for it. Whoever saw two releases with different phantoms would see which
levels the phantoms do not explain, at a price far above that of two plans (``vertimrf.plan.price``). So the bytes of a release
are recorded here, and synced, *before* anybody sees them: after a crash there is either no record, and nothing was sent, or a
record, and the same bytes are given again.

Records are in the state folder of the user (``vertimrf.files.state``), by the party's public key and the plan: one, from
whatever folder or copy of its files the party is run. Where that folder is lost, the same table still gives the same bytes,
since noise is a function of the private key, the plan and the table. What is lost then is the refusal of another table.
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
from ..files.atomic import replacing
from ..files.state import STATE, make_folder, state_folder
from ..keys import PrivateKey
from .records import Records

__all__ = ["Release", "Releases", "table_digest"]

KIND = "release record"


@dataclass(frozen=True)
class Release:
    """Which release a record is about, and what it was made from.

    Attributes:
        plan: the plan's digest [32 bytes].
        party: index of the party in the plan.
        table: keyed digest of the records that it is made from and of the secret, see :func:`table_digest`.
    """

    plan: bytes
    party: int
    table: bytes

    @property
    def name(self) -> str:
        """The record's file: one for each plan and party, whatever the release was made from."""
        return record_name(self.plan, self.party)


def record_name(plan: bytes, party: int) -> str:
    """The file that a release is recorded in, from its plan's digest and the party's index."""
    return f"message-{party}-{plan.hex()}.release"


class Releases:
    """A folder of records, one per plan and party.

    Args:
        folder: where they are kept; made when the first is. A party's is :meth:`of` its key.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    @classmethod
    def of(cls, key: PrivateKey) -> Releases:
        """The records of a party, known by its key, on this machine."""
        return cls(state_folder() / "releases" / key.offer.identity)

    def once(self, release: Release, make: Callable[[], bytes], price: Callable[[], str]) -> bytes:
        """The bytes of a release: those on record, or new ones that are on record before this returns.

        Of several processes at once one alone puts its bytes on record; the others drop theirs and give the same.

        Args:
            release: which, and what from.
            make: makes the bytes; called only when there is no record.
            price: says what a second release would cost, for the refusal.

        Raises:
            PrivacyError: something else was released already, the record is damaged, or none can be written; nothing new is
                released then.
        """
        path = self.folder / release.name
        self.prepare()
        if not os.path.lexists(path):
            self._record(path, release, make)
        released = self._recorded(path, release, price)
        self._tidy(path)
        return released

    def made(self, plan: bytes, party: int) -> bool:
        """Whether such a release is on record."""
        return os.path.lexists(self.folder / record_name(plan, party))

    def given(self, plan: bytes, party: int, price: Callable[[], str]) -> bytes:
        """The bytes of a release that is on record, to be given again without the table.

        Args:
            plan: its plan's digest [32 bytes].
            party: index of the party in the plan.
            price: as for :meth:`once`.

        Raises:
            PrivacyError: the record is missing or damaged.
        """
        path = self.folder / record_name(plan, party)
        released = self._read(path, path.name, price)[1]
        self._tidy(path)
        return released

    def _tidy(self, path: Path) -> None:
        """Remove drafts of processes that were killed: nobody has seen them, and nobody should."""
        for left in self.folder.glob(f".*.{path.name}"):
            left.unlink(missing_ok=True)

    def prepare(self) -> None:
        """Make the folder, before anything is made for it.

        Raises:
            PrivacyError: it cannot be made, or written to.
        """
        try:
            make_folder(self.folder)
            if not os.access(self.folder, os.W_OK | os.X_OK):
                raise PermissionError(0, "Permission denied")
        except OSError as error:
            raise self._unwritable(error) from None

    def _record(self, path: Path, release: Release, make: Callable[[], bytes]) -> None:
        """Put new bytes on record, unless another process has done so meanwhile."""
        header = {
            "plan": release.plan.hex(),
            "party": release.party,
            "table": release.table.hex(),
        }
        released = make()
        header["sha256"] = hashlib.sha256(released).hexdigest()
        content = container.pack(KIND, header, {"released": np.frombuffer(released, np.uint8)})
        try:
            # Who comes second to a record has sent nothing yet, and gives what is on it.
            with replacing(path, private=True, synced=True, once=True) as file:
                file.write(content)
        except OSError as error:
            raise self._unwritable(error) from None

    def _recorded(self, path: Path, release: Release, price: Callable[[], str]) -> bytes:
        """The bytes on record, if they are this release's."""
        record, released = self._read(path, release.name, price)
        if record.table != release.table:
            raise PrivacyError(
                "This plan's message was released already, from another table or under another secret: only the same records "
                f"give the same message again. {_remedy(price)}"
            )
        return released

    def _read(self, path: Path, name: str, price: Callable[[], str]) -> tuple[Release, bytes]:
        """What a record says, and the bytes in it."""
        what = f"The record of the message released for this plan, {path},"
        record = None
        try:
            header, arrays = container.unpack(path.read_bytes(), KIND, str(path))
            released = arrays["released"].tobytes()
            intact = header["sha256"] == hashlib.sha256(released).hexdigest()
            record = Release(
                bytes.fromhex(header["plan"]), int(header["party"]), bytes.fromhex(header["table"])
            )
        except OSError as error:
            raise PrivacyError(
                f"{what} cannot be read ({error.strerror}), so nothing is released. {_remedy(price)}"
            ) from None
        except (MessageError, KeyError, TypeError, ValueError, OverflowError):
            intact = False
        if not intact or record is None or record.name != name:
            raise PrivacyError(
                f"{what} is damaged: nobody can tell what was sent, so nothing is released. Restore it from a backup. "
                f"{_remedy(price)}"
            )
        return record, released

    def _unwritable(self, error: OSError) -> PrivacyError:
        return PrivacyError(
            f"No record of a release can be kept in {self.folder} ({error.strerror}), so nothing is released: make that folder "
            f"writable, on a file system with hard links, or name another one by {STATE}."
        )


def _remedy(price: Callable[[], str]) -> str:
    return f"{price()} For a new release make a new plan; both epsilons add up (`vertimrf plan PLAN PLAN`)."


def table_digest(records: Records, key: PrivateKey, plan_digest: bytes) -> bytes:
    """Tells whether two tables hold the same records, in whatever order, to who has the party's private key [32 bytes].

    Records are added up modulo 2^128 under a key that the private key gives. To whom that key is unknown, other parties
    included, who know the secret and may choose ids, two different tables have one digest with a probability of 2^-128.

    Args:
        records: ids (as digests) and codes.
        key: the party's.
        plan_digest: of the plan that the table was encoded for.
    """
    total = records.keyed_sum(key.derive(plan_digest, "records of a table"))
    digest = hashlib.blake2b(key=key.derive(plan_digest, "table"), digest_size=32)
    digest.update(repr((len(records.attributes), records.count, total)).encode())
    return digest.digest()

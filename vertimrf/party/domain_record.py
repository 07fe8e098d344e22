"""The record of domains that were found on this machine, so that none is searched for twice.

1. A search for domains takes a lock, so that one search runs at a time.
2. Domains on record are not searched for again. Their recorded results are given, whatever the
   table is by then.
3. Every new result, including "nothing found", is recorded and synced to disk before anybody sees
   it.

A second search would spend epsilon again, because the first result cannot be taken back. A domain
on record is recognised by its attribute's name together with any of the path of the schema part,
the path of the table, and a keyed digest of the column's cells. So a copy of the part or of the
table does not cause a new search.

Noise is a function of a key, of the columns' cells and of the request
(:mod:`vertimrf.privacy.noise`). If only the record is lost, the same search gives the same edges.
The key is drawn once and kept beside the record, because domains are found before there is a key
pair.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..arrays import Fields
from ..columns.cells import written_out
from ..columns.private import PrivateDomain
from ..columns.read import read_attribute
from ..errors import PrivacyError, VertiMRFError
from ..files.atomic import MAX_JSON, AnyPath, parse_json, write_text
from ..files.state import STATE, machine_key, own_folder, read_own, state_folder
from ..plan.open_schema import OpenSchema
from ..privacy.ledger import LedgerEntry
from .private_domains import Finding

KIND = "domains"


@dataclass(frozen=True)
class Searched:
    """Where domains are searched for.

    Attributes:
        part: the schema part.
        part_path, table_path: paths of the files.
        table: the table as it was read, with all rows.
    """

    part: OpenSchema
    part_path: AnyPath
    table_path: AnyPath
    table: pa.Table


# Searches for domains; the second argument makes 32 secret bytes for a purpose.
Find = Callable[[Sequence[PrivateDomain], Callable[[str], bytes]], Sequence[Finding]]


@dataclass(frozen=True)
class _Kept:
    """A finding, and the keyed digests by which its attribute is recognised."""

    finding: Finding
    places: frozenset[str]


class DomainRecord:
    """The record of a user on a machine.

    Args:
        folder: where it is; by default in the state folder.
    """

    def __init__(self, folder: AnyPath | None = None) -> None:
        self._folder = Path(folder) if folder is not None else state_folder() / "domains"
        self.path = self._folder / "found.json"

    def once(
        self,
        search: Searched,
        find: Find,
    ) -> tuple[tuple[Finding, ...], frozenset[str]]:
        """All findings of a schema part. New ones are recorded first.

        Recorded findings include those of attributes whose domains are public by now, because their
        budget is spent.

        Args:
            search: the schema part and the table.
            find: searches for the given domains. Its second argument makes 32 secret bytes for a
                purpose, which are the same for the same search.

        Returns:
            The findings, and the attribute names of those that were on record before.

        Raises:
            PrivacyError: the record cannot be read or written, others can write to it or to its
                folder, or it has an attribute of the part with a different request. Nothing new
                is searched for then.
        """
        try:
            own_folder(self._folder)
            lock = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX)
                return self._once(search, find)
            finally:
                os.close(lock)
        except OSError as error:
            raise PrivacyError(
                f"No record of the domains can be kept at {self.path} ({error.strerror}), so none are found: make its folder "
                f"writable, or name another one by {STATE}."
            ) from None

    def _once(
        self,
        search: Searched,
        find: Find,
    ) -> tuple[tuple[Finding, ...], frozenset[str]]:
        kept, key = self._read(), machine_key(self._folder)
        wanted = search.part.wanted
        cells = {name: cells_digest(search.table[name]) for name in wanted}
        paths = {"part": search.part_path, "table": search.table_path}
        files = [_keyed(key, what, os.path.realpath(path)) for what, path in paths.items()]
        places = {name: {*files, _keyed(key, "cells", cells[name])} for name in wanted}
        named = {attribute.name for attribute in search.part.schema.attributes}
        before: list[_Kept] = []
        for i, entry in enumerate(kept):
            name = entry.finding.domain.name
            if files[0] in entry.places or (
                name in named and places.get(name, {files[1]}) & entry.places
            ):
                _check_asked(entry.finding.domain, wanted.get(name), self.path)
                # The new places are added, so that a copy of a copy is recognised as well.
                kept[i] = replace(entry, places=entry.places | places.get(name, set(files)))
                before.append(kept[i])
        on_record = frozenset(entry.finding.domain.name for entry in before)
        missing = [domain for name, domain in wanted.items() if name not in on_record]
        asked = json.dumps([[_plain(domain.asked), cells[domain.name]] for domain in missing])
        findings = (
            find(missing, lambda purpose: bytes.fromhex(_keyed(key, purpose, asked)))
            if missing
            else ()
        )
        kept += [_Kept(finding, frozenset(places[finding.domain.name])) for finding in findings]
        self._write(kept)
        return (*(entry.finding for entry in before), *findings), on_record

    def _read(self) -> list[_Kept]:
        if not os.path.lexists(self.path):
            return []
        try:
            data = read_own(self.path, most=MAX_JSON)
        except OSError as error:
            raise self._unusable(str(error.strerror)) from None
        try:
            content = parse_json(data, str(self.path), "record of domains", PrivacyError)
            if content["kind"] != KIND:
                raise KeyError("kind")
            return [_from_json(item) for item in content["found"]]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            why = str(error) if isinstance(error, VertiMRFError) else "it is damaged"
            raise self._unusable(why) from None

    def _unusable(self, why: str) -> PrivacyError:
        return PrivacyError(
            f"The record of domains found before, {self.path}, cannot be used ({why}): restore it from a backup, for looking "
            "for them again spends what they cost again."
        )

    def _write(self, kept: Sequence[_Kept]) -> None:
        text = (
            json.dumps({"kind": KIND, "found": [_to_json(entry) for entry in kept]}, indent=1)
            + "\n"
        )
        write_text(self.path, text, private=True, synced=True)


def _keyed(key: bytes, what: str, text: str) -> str:
    """A keyed digest of a text for one purpose, in hexadecimal."""
    return hmac.digest(key, f"vertimrf domains {len(what)} {what} {text}".encode(), "sha256").hex()


def cells_digest(column: pa.ChunkedArray) -> str:
    """Digest of a column's cells as a multiset, in hexadecimal.

    It does not depend on the order of the cells or on the chunks of the column.
    """
    column = written_out(column)
    try:
        counts = pc.value_counts(column)
        values, times = pc.cast(counts.field(0), pa.string()), counts.field(1)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        counts = pc.value_counts(
            pa.array([str(value) for value in column.to_pylist()], pa.string())
        )
        values, times = counts.field(0), counts.field(1)
    order = pc.sort_indices(values)
    rows = list(zip(values.take(order).to_pylist(), times.take(order).to_pylist(), strict=True))
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


def _check_asked(before: PrivateDomain, now: PrivateDomain | None, path: Path) -> None:
    if now is not None and _plain(now.asked) != _plain(before.asked):
        raise PrivacyError(
            f"The domain of {now.name!r} was looked for before, in another way ({_words(before.asked)}), and "
            "looking again spends again: write it that way, or take another name for the attribute. The record is "
            f"{path}."
        )


def _from_json(item: Any) -> _Kept:
    domain = None if item["attribute"] is None else read_attribute(item["attribute"])
    entries = tuple(LedgerEntry.from_json(entry) for entry in item["entries"])
    if not all(isinstance(place, str) for place in item["places"]):
        raise TypeError("places")
    return _Kept(
        Finding(PrivateDomain.from_json(item["asked"]), domain, entries), frozenset(item["places"])
    )


def _to_json(kept: _Kept) -> Fields:
    finding = kept.finding
    return {
        "asked": _plain(finding.domain.asked),
        "attribute": None if finding.attribute is None else finding.attribute.to_json(),
        "entries": [entry.to_json() for entry in finding.entries],
        "places": sorted(kept.places),
    }


def _plain(asked: Mapping[str, Any]) -> Any:
    """The request of a schema file as JSON has it, with dates as text."""
    return json.loads(json.dumps(dict(asked), default=str))


def _words(asked: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} = {value}" for key, value in asked.items() if key != "name")

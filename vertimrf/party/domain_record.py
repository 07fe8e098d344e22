"""Which domains a party has found, kept beside its part of the schema: no domain is looked for twice by mistake.

Looking again for the same domain spends its epsilon again, and nothing of the first time can be taken back. So what was found, or
not found, is on record and synced before anybody sees it; asked again, it is given again, whatever the table is by then.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import PrivacyError, VertiMRFError
from ..files.atomic import read_json
from ..plan.attribute import Attribute
from ..plan.open_schema import OpenSchema, PrivateDomain
from ..privacy.ledger import LedgerEntry
from .private_domains import Finding

__all__ = ["DomainRecord"]

KIND = "domains"


class DomainRecord:
    """The record of one schema part.

    Args:
        path: the file.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    @classmethod
    def beside(cls, part: str | os.PathLike[str]) -> DomainRecord:
        """The record that belongs to a schema part, whatever links lead to it."""
        return cls(f"{Path(part).resolve()}.domains")

    def found(self, schema: OpenSchema) -> tuple[Finding, ...]:
        """What was found before, also of attributes that the schema has public domains for by now: it is spent.

        Raises:
            PrivacyError: the record cannot be read, or has an attribute of the schema that was asked for in another way.
        """
        if not os.path.lexists(self.path):
            return ()
        try:
            content = read_json(self.path, "record of domains", PrivacyError)
            if content["kind"] != KIND:
                raise KeyError("kind")
            findings = [self._read(item) for item in content["found"]]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            why = str(error) if isinstance(error, VertiMRFError) else "it is damaged"
            raise PrivacyError(
                f"The record of domains found before, {self.path}, cannot be used ({why}): restore it from a backup, for looking "
                "for them again spends what they cost again."
            ) from None
        for finding in findings:
            now = schema.wanted.get(finding.domain.name)
            if now is not None and _plain(now.asked) != _plain(finding.domain.asked):
                raise PrivacyError(
                    f"The domain of {now.name!r} was looked for before, in another way ({_words(finding.domain.asked)}), and "
                    "looking again spends again: write it that way, or take another name for the attribute. The record is "
                    f"{self.path}."
                )
        return tuple(findings)

    def keep(self, findings: Sequence[Finding]) -> None:
        """Write the record, and sync it to the disk.

        Raises:
            PrivacyError: it cannot be written; then nothing that was found may be shown.
        """
        content = {"kind": KIND, "found": [_write(finding) for finding in findings]}
        draft = self.path.with_name(f".{os.getpid()}.{self.path.name}")
        try:
            with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(json.dumps(content, indent=1) + "\n")
                file.flush()
                os.fsync(file.fileno())
            draft.replace(self.path)
            folder = os.open(self.path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            draft.unlink(missing_ok=True)
            raise PrivacyError(
                f"No record of the domains can be kept at {self.path} ({error.strerror}), so none are found: make its folder "
                "writable."
            ) from None

    @staticmethod
    def _read(item: Any) -> Finding:
        found = None if item["attribute"] is None else Attribute.from_json(item["attribute"])
        return Finding(
            PrivateDomain.from_json(item["asked"]), found, tuple(LedgerEntry.from_json(entry) for entry in item["entries"])
        )


def _write(finding: Finding) -> dict[str, Any]:
    return {
        "asked": _plain(finding.domain.asked),
        "attribute": None if finding.attribute is None else finding.attribute.to_json(),
        "entries": [entry.to_json() for entry in finding.entries],
    }


def _plain(asked: Any) -> Any:
    """What a schema file says, as JSON says it: dates as text."""
    return json.loads(json.dumps(dict(asked), default=str))


def _words(asked: Any) -> str:
    return ", ".join(f"{key} = {value}" for key, value in asked.items() if key != "name")

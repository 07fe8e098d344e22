"""The privacy label of a release: its (epsilon, delta) and neighbours, or why it is not private.

Every file that leaves a role carries its label, and every command that reads or writes one shows
it. A file without a label, or with a contradictory one, is treated as not private.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Annotated, Any

import msgspec

from ..arrays import Fields, Texts
from ..errors import PrivacyError
from ..files.convert import from_json, to_json

ADD_OR_REMOVE = "add or remove one record"
PERSON = "add or remove one person with up to {} records"
REPLACE = "replace one record"
# Larger integers have no decimal form.
LARGEST = 1e300
Spent = Annotated[float, msgspec.Meta(ge=0, lt=LARGEST)]


@dataclass(frozen=True)
class PrivacyLabel:
    """Privacy label of a release.

    Attributes:
        epsilon, delta: upper bounds on what the whole run spends; None if no mechanism protects the
            release.
        neighbours: the change of the tables to which they apply: from :func:`neighbours_of`, or
            :data:`REPLACE`.
        reasons: why the release is not private, whatever epsilon says; empty if it is private.
        notes: further remarks for readers.
    """

    epsilon: Spent | None
    delta: Spent | None
    neighbours: str = ADD_OR_REMOVE
    reasons: Texts = ()
    notes: Texts = ()

    def __post_init__(self) -> None:
        if not self.reasons and not (
            self.epsilon is not None
            and self.delta is not None
            and not isinstance(self.epsilon, bool)
            and 0 <= self.epsilon < LARGEST
            and 0 <= self.delta < 1
            and (
                self.neighbours in (ADD_OR_REMOVE, REPLACE)
                or PERSON_TEXT.fullmatch(self.neighbours)
            )
        ):
            object.__setattr__(self, "reasons", (NOT_STATED,))

    @property
    def private(self) -> bool:
        """Whether epsilon and delta are a guarantee."""
        return not self.reasons

    def because(self, *reasons: str) -> PrivacyLabel:
        """The label with further reasons why the release is not private, without repetitions."""
        return replace(
            self,
            reasons=(*self.reasons, *(r for r in dict.fromkeys(reasons) if r not in self.reasons)),
        )

    def noting(self, *notes: str) -> PrivacyLabel:
        """The same label with further notes."""
        return replace(self, notes=(*self.notes, *notes))

    def __str__(self) -> str:
        """One line, plus one line per note."""
        if self.private:
            line = f"Private ({self.neighbours}): epsilon {self.epsilon:.4g} at delta {self.delta:.3g}, for the whole run."
        else:
            line = f"NOT PRIVATE: {'; '.join(self.reasons)}."
        return "\n".join([line, *(f"Note: {note}." for note in self.notes)])

    def to_json(self) -> Fields:
        """JSON-able form."""
        return {"private": self.private, "neighbours": self.neighbours} | to_json(self)

    @classmethod
    def from_json(cls, data: Any) -> PrivacyLabel:
        """Read a label from JSON.

        A missing, incomplete or contradictory label means not private.
        """
        if not isinstance(data, dict) or data.keys() != EXACT.to_json().keys():
            return UNSTATED
        try:
            label = from_json(data, cls, "The label", "", PrivacyError)
        except PrivacyError:
            return UNSTATED
        return label if label.private is data["private"] else UNSTATED


def neighbours_of(records: int) -> str:
    """The change of the tables covered by a guarantee for people with up to this many records."""
    return ADD_OR_REMOVE if records == 1 else PERSON.format(records)


PERSON_TEXT = re.compile(PERSON.format(r"[1-9][0-9]*"))
NOT_STATED = "it has no valid privacy label"
UNSTATED = PrivacyLabel(None, None, reasons=(NOT_STATED,))
EXACT = PrivacyLabel(None, None, reasons=("exact statistics of the real tables, do not publish",))

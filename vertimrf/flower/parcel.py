"""What travels in a Flower message: files of a run by name, of whom they are, and what the server still lacks.

Flower cuts an array into pieces of 5 MB, each a request of its own, so that a message of any size passes its limits; a file
therefore goes as an array of bytes. Nothing of Flower's decodes it: what is in a file, its own format says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

from ..errors import MessageError

__all__ = ["Parcel"]

NOTE, FILES = "vertimrf", "files"
KIND = "vertimrf.file"
NAME = re.compile(r"[a-z][a-z-]{0,39}")
# A run has a handful of files; nobody needs to look at more of what a stranger sends.
MOST_FILES = 16


@dataclass(frozen=True)
class Parcel:
    """One side's part of an exchange.

    Attributes:
        party: whom a node speaks for, as it says; from the server, whom it takes the node for, empty where it does not know.
        word: one word on how the party is getting on: the name of a step of its run, "done" or "failed"; empty from the server.
        wants: by name the files that the server lacks of that party, with the most bytes that each may have; empty from a party.
        files: by name, what comes along.

    Raises:
        MessageError: names that no file of a run has, or too many.
    """

    party: str
    word: str = ""
    wants: Mapping[str, int] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = [*self.wants, *self.files, *([self.word] if self.word else [])]
        if len(names) > MOST_FILES or not all(NAME.fullmatch(name) for name in names):
            raise MessageError("A Flower message has files that no run has; is another app, or another version, at work there?")

    def to_records(self) -> RecordDict:
        """As a Flower message's content."""
        names, most = list(self.wants), list(self.wants.values())
        note = ConfigRecord({"party": self.party, "word": self.word, "wants": names, "most": most})
        arrays = {name: Array("bytes", (len(data),), KIND, bytes(data)) for name, data in self.files.items()}
        return RecordDict({NOTE: note, FILES: ArrayRecord(arrays)})

    @classmethod
    def from_records(cls, content: RecordDict) -> Parcel:
        """Read a Flower message's content.

        Raises:
            MessageError: it is no parcel.
        """
        try:
            note, arrays = content[NOTE], content[FILES]
            party, word, names, most = (note[key] for key in ("party", "word", "wants", "most"))
            wants = {name: int(size) for name, size in zip(names, most, strict=True)}
            files = {name: array.data for name, array in arrays.items()}
        except (KeyError, TypeError, ValueError, AttributeError):
            raise MessageError("A Flower message is no parcel of a run; is another app at work there?") from None
        if not all(isinstance(text, str) for text in (party, word, *wants)):
            raise MessageError("A Flower message is no parcel of a run; is another app at work there?")
        return cls(party, word, wants, files)

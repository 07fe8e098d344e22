"""The content of a Flower message: files of a party, and what the server still lacks.

A file is sent as an array of bytes, because Flower sends arrays in pieces of 5 MB. So a file of any
size passes Flower's limits. Flower does not decode the bytes: the format of a file describes its
content.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

from ..errors import MessageError

NOTE, FILES = "vertimrf", "files"
KIND = "vertimrf.file"
# Words of a node that failed, whatever the reason, which stays on its machine; and of one that carried all files between network
# and exchange.
FAILED, CARRIED = "failed", "carried"
# Files are called by words and numbers, and steps by words.
NAME = re.compile(r"[a-z][a-z0-9 -]{0,39}")
# Largest number of files in a message. Eight parties that count 2^24 rows under encryption have as many pieces of rows.
MAX_FILES = 1 << 12


@dataclass(frozen=True)
class Parcel:
    """The content of one message.

    Attributes:
        party: the party of the node. From a node, as it says; from the server, as it knows, and
            empty if it does not.
        word: progress of the party in one word: the name of a step of its run, "done", "carried" or
            "failed". Empty from the server.
        wants: names and largest sizes in bytes of the party's files that the server lacks. Empty
            from a party.
        files: files by name.

    Raises:
        MessageError: no file of a run has such a name, or there are too many.
    """

    party: str
    word: str = ""
    wants: Mapping[str, int] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = [*self.wants, *self.files, *([self.word] if self.word else [])]
        if len(names) > MAX_FILES or not all(NAME.fullmatch(name) for name in names):
            raise MessageError(
                "A Flower message has files that no run has; is another app, or another version, at work there?"
            )

    def to_records(self) -> RecordDict:
        """The parcel as the content of a Flower message."""
        names, most = list(self.wants), list(self.wants.values())
        note = ConfigRecord({"party": self.party, "word": self.word, "wants": names, "most": most})
        arrays = {
            name: Array("bytes", (len(data),), KIND, bytes(data))
            for name, data in self.files.items()
        }
        return RecordDict({NOTE: note, FILES: ArrayRecord(arrays)})

    @classmethod
    def from_records(cls, content: RecordDict) -> Parcel:
        """Read a Flower message's content.

        Raises:
            MessageError: the content is not a parcel.
        """
        try:
            note, arrays = content[NOTE], content[FILES]
            party, word, names, most = (note[key] for key in ("party", "word", "wants", "most"))
            wants = {name: int(size) for name, size in zip(names, most, strict=True)}
            files = {name: array.data for name, array in arrays.items()}
            if not all(isinstance(text, str) for text in (party, word, *wants)):
                raise TypeError
        except (KeyError, TypeError, ValueError, AttributeError):
            raise MessageError(
                "A Flower message is no parcel of a run; is another app at work there?"
            ) from None
        return cls(party, word, wants, files)

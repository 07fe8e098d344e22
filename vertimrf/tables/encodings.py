"""Decoders of text files of which a character that is damaged costs its own cell, and no other record.

In encodings of one byte a character, and in UTF-8, no damaged character takes a line end or a separator with it. Decoders of encodings of several
bytes may, and shift states may last beyond a line. So there the bytes are cut first, at bytes that are part of no longer
character, and each piece is decoded on its own. UTF-16 and UTF-32 have no such bytes: see
``docs/privacy-engineer.md``.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, field
from typing import Protocol

from .dropped import LONGEST_ROW

ESCAPED = "backslashreplace"
# No trail byte of EUC, Shift-JIS, Big5, GBK, GB18030 or Johab is below the digit 0. In UTF-7 neither the letters of
# base 64 nor its last sign end a piece. Escape sequences of ISO 2022 and HZ end with the line.
BETWEEN = {"": rb"([\x00-\x2f]+)", "utf-7": rb"([\x00-\x2a,.]+)", "iso2022": rb"([\r\n]+)"}
BETWEEN["hz"] = BETWEEN["iso2022"]
# ISO-2022-KR says once in a file, before all lines, which characters a shift leads to.
KOREAN = b"\x1b$)C"
# A piece without a line end is decoded at this size. So long a row is left out, whatever it says: no
# character has fewer than a quarter of its bytes in UTF-8.
LONGEST_PIECE = 4 * LONGEST_ROW


class Decoder(Protocol):
    """What reads the text of a file, block by block."""

    def decode(self, data: bytes, final: bool = False) -> str:
        """The text of the next bytes; some may be kept for the next ones."""


def decoder_of(charset: str) -> Decoder:
    r"""A decoder of an encoding. Bytes that are invalid in it are written as ``\\xNN``.

    Args:
        charset: Python's name of it.
    """
    name = codecs.lookup(charset).name.replace("_", "-")
    shifting = next((kind for kind in BETWEEN if kind and name.startswith(kind)), "")
    if not shifting and (name.startswith("utf-") or _has_one_byte(charset)):
        return codecs.getincrementaldecoder(charset)(ESCAPED)
    before = KOREAN * (name == "iso2022-kr")
    return _Pieces(charset, re.compile(BETWEEN[shifting]), bool(shifting), before)


def _has_one_byte(charset: str) -> bool:
    """Whether each byte is a character."""
    return len(bytes(range(256)).decode(charset, "replace")) == 256


@dataclass
class _Pieces:
    """A decoder of pieces.

    Attributes:
        charset: the encoding.
        between: what stands between pieces, of ASCII alone.
        shifting: whether what a byte means depends on those before it, so that valid text is cut too.
        before: what is put before each piece.
    """

    charset: str
    between: re.Pattern[bytes]
    shifting: bool
    before: bytes
    _left: bytes = field(default=b"", init=False)

    def decode(self, data: bytes, final: bool = False) -> str:
        """See :class:`Decoder`: whole lines, but for the last one of the file."""
        data = self._left + data
        end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        if final or len(data) - end > LONGEST_PIECE:
            end = len(data)
        self._left = data[end:]
        return self._text(data[:end])

    def _text(self, data: bytes) -> str:
        if not self.shifting:
            try:
                return data.decode(self.charset)
            except UnicodeDecodeError:
                pass
        parts = self.between.split(data)
        parts[::2] = [self._piece(part).encode("utf-8", ESCAPED) for part in parts[::2]]
        return b"".join(parts).decode()

    def _piece(self, part: bytes) -> str:
        return (self.before + part).decode(self.charset, ESCAPED)

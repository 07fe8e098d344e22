"""Canonical JSON, its digests, and fingerprints that people can compare by phone."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

from ..errors import MessageError

# Crockford's base 32 has no I, L, O or U, which are misread most often.
ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
GROUP, GROUPS = 4, 7
BITS = 5 * GROUP * GROUPS
# Characters that people may write instead, and separators of groups.
READ_AS = str.maketrans(
    {"I": "1", "L": "1", "O": "0", "-": "", "\u2010": "", "\u2011": "", "\u2013": ""}
)

# Deepest nesting of objects and lists; files of this library need a tenth of it.
MAX_DEPTH = 64


def json_of(text: bytes | str, pairs: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """Parse JSON from an untrusted source.

    Args:
        text: the JSON.
        pairs: builds another object than a ``dict`` from the pairs of a JSON object.

    Raises:
        ValueError: the text is not JSON, not UTF-8, holds half a character, or nests too deeply.
    """
    text = text.decode() if isinstance(text, bytes) else text
    try:
        content = json.loads(text, object_pairs_hook=pairs)
    except RecursionError:
        raise ValueError("it nests too deeply") from None
    if "\\u" in text:
        # JSON can escape halves of characters, which no file or terminal can hold.
        json.dumps(check_depth(content), ensure_ascii=False).encode()
    return check_depth(content)


def check_depth(content: Any) -> Any:
    """Return the content if its objects and lists do not nest too deeply.

    Raises:
        ValueError: they nest too deeply.
    """
    level = [content]
    for _ in range(MAX_DEPTH):
        inside = (
            at.values() if isinstance(at, dict) else at
            for at in level
            if isinstance(at, dict | list)
        )
        level = [value for values in inside for value in values if isinstance(value, dict | list)]
        if not level:
            return content
    raise ValueError("it nests too deeply")


def canonical(content: Any) -> bytes:
    """The unique JSON text of a content: ASCII, sorted keys, no spaces."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


def json_digest(content: Any) -> bytes:
    """SHA-256 of the canonical JSON [32 bytes]."""
    return hashlib.sha256(canonical(content)).digest()


def fingerprint(value: bytes) -> str:
    """The first 140 bits of a digest as seven groups of four letters and digits.

    An attacker who makes both of two files needs a collision: 2^70 digests for 140 bits, against
    2^32 for the usual 64 bits.
    """
    number = int.from_bytes(value, "big") >> (8 * len(value) - BITS)
    letters = "".join(ALPHABET[number >> shift & 31] for shift in range(BITS - 5, -1, -5))
    return "-".join(letters[i : i + GROUP] for i in range(0, len(letters), GROUP))


def same_fingerprint(given: str, expected: str) -> bool:
    """Whether a fingerprint that a person typed equals another in full.

    Case, dashes and spaces do not matter.

    Args:
        given: what the person typed.
        expected: the fingerprint to compare with.

    Raises:
        MessageError: ``given`` is only a part of a fingerprint, or none.
    """
    read = "".join(given.upper().translate(READ_AS).split())
    if len(read) != GROUP * GROUPS or set(read) - set(ALPHABET):
        raise MessageError(
            f"{given!r} is not a whole fingerprint; enter {GROUPS} groups of {GROUP} letters and digits, like {expected[:9]}-…."
        )
    return read == expected.replace("-", "")

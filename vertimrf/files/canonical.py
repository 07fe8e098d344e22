"""JSON in one form for one content, its digest, and digests in a form that people compare by phone."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

from ..errors import MessageError

__all__ = ["canonical", "check_depth", "fingerprint", "json_digest", "json_of", "same_fingerprint"]

# Crockford's base 32: no I, L, O or U, so that nothing read aloud or retyped is taken for something else.
ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
GROUP, GROUPS = 4, 7
BITS = 5 * GROUP * GROUPS
# How people write what the alphabet lacks, and what stands between groups.
READ_AS = str.maketrans({"I": "1", "L": "1", "O": "0", "-": "", "\u2010": "", "\u2011": "", "\u2013": ""})

# Objects and lists within each other: files of this library have a tenth of it.
MAX_DEPTH = 64


def json_of(text: bytes | str, pairs: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """What JSON text from anybody says; ``pairs`` makes something else than a ``dict`` of an object.

    Raises:
        ValueError: it is not JSON, not UTF-8, holds half a character, or nests too deeply.
    """
    text = text.decode() if isinstance(text, bytes) else text
    try:
        content = json.loads(text, object_pairs_hook=pairs)
    except RecursionError:
        raise ValueError("it nests too deeply") from None
    if "\\u" in text:
        # Halves of characters, which JSON can escape, and no file or terminal takes.
        json.dumps(check_depth(content), ensure_ascii=False).encode()
    return check_depth(content)


def check_depth(content: Any) -> Any:
    """Content as it is, if its objects and lists do not nest too deeply.

    Raises:
        ValueError: they do.
    """
    level = [content]
    for _ in range(MAX_DEPTH):
        inside = (at.values() if isinstance(at, dict) else at for at in level if isinstance(at, dict | list))
        level = [value for values in inside for value in values if isinstance(value, dict | list)]
        if not level:
            return content
    raise ValueError("it nests too deeply")


def canonical(content: Any) -> bytes:
    """The one JSON text of a content: ASCII, keys sorted, nothing between tokens."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


def json_digest(content: Any) -> bytes:
    """SHA-256 of the canonical JSON [32 bytes]."""
    return hashlib.sha256(canonical(content)).digest()


def fingerprint(value: bytes) -> str:
    """The first 140 bits of a digest as seven groups of four letters and digits.

    Whoever writes both files that people are to take for one needs a collision: 2^70 digests for 140 bits, where the 64 bits
    that are usual in such places need 2^32.
    """
    number = int.from_bytes(value, "big") >> (8 * len(value) - BITS)
    letters = "".join(ALPHABET[number >> shift & 31] for shift in range(BITS - 5, -1, -5))
    return "-".join(letters[i : i + GROUP] for i in range(0, len(letters), GROUP))


def same_fingerprint(given: str, expected: str) -> bool:
    """Whether a fingerprint as people write it, in any case, with or without dashes and spaces, is this one, in full.

    Raises:
        MessageError: a part of a fingerprint, or something else.
    """
    read = "".join(given.upper().translate(READ_AS).split())
    if len(read) != GROUP * GROUPS or set(read) - set(ALPHABET):
        raise MessageError(
            f"{given!r} is no whole fingerprint: one has {GROUPS} groups of {GROUP} letters and digits, like {expected[:9]}-…; "
            "compare all of it."
        )
    return read == expected.replace("-", "")

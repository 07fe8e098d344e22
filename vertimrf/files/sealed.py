"""Sealed files: a header that anybody may read, and contents for whoever has the key; bytes in, bytes out.

Layout, little-endian: magic "VMRS", format version (uint16), the header as JSON with its length (uint32), and the contents in
chunks of CHUNK bytes, each as ChaCha20-Poly1305 ciphertext with its 16-byte tag; the last chunk is what remains, if only
nothing. A chunk's nonce is its number (11 bytes, big-endian) and a byte that is 1 for the last chunk alone: the STREAM
construction (Hoang, Reyhanitabar, Rogaway and Vizar, CRYPTO 2015), by which a file that was cut, reordered or added to does not
open. All bytes before the first chunk are associated data of every chunk. A key must be used for one file only: nonces start
at 0 in each.
"""

from __future__ import annotations

import json
import struct
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from ..errors import MessageError
from .canonical import json_of

__all__ = ["MAGIC", "most_bytes", "open_chunks", "pack_head", "peek", "seal_chunks"]

MAGIC = b"VMRS"
VERSION = 1
PREFIX = struct.Struct("<4sHI")
TAG = 16
CHUNK = 1 << 16
# A header holds names, digests and a public key.
MAX_HEAD = 1 << 16


def pack_head(header: dict[str, Any]) -> bytes:
    """The beginning of a sealed file: all that can be read without the key."""
    text = json.dumps(header, separators=(",", ":")).encode()
    return PREFIX.pack(MAGIC, VERSION, len(text)) + text


def seal_chunks(head: bytes, key: bytes, contents: bytes) -> bytes:
    """A sealed file.

    Args:
        head: what :func:`pack_head` gave.
        key: of this file alone [32 bytes].
        contents: what is to be hidden.
    """
    cipher = ChaCha20Poly1305(key)
    view = memoryview(contents)
    parts = [head]
    last = max(len(contents) - 1, 0) // CHUNK
    for number in range(last + 1):
        chunk = view[number * CHUNK : (number + 1) * CHUNK]
        parts.append(cipher.encrypt(_nonce(number, number == last), chunk, head))
    return b"".join(parts)


def peek(data: bytes, where: str) -> tuple[dict[str, Any], bytes]:
    """A sealed file's header, which nothing vouches for until the file is opened, and the beginning that holds it.

    Raises:
        MessageError: not such a file, or of another version.
    """
    if len(data) < PREFIX.size + TAG or data[:4] != MAGIC:
        raise MessageError(f"{where} is no sealed file of this library, or it is truncated.")
    _, version, length = PREFIX.unpack_from(data)
    if version != VERSION:
        raise MessageError(f"{where} is a sealed file of version {version}; this release reads version {VERSION}.")
    if length > MAX_HEAD or PREFIX.size + length + TAG > len(data):
        raise MessageError(f"{where} is truncated or altered: its header does not fit; have it sent again.")
    beginning = bytes(data[: PREFIX.size + length])
    try:
        header = json_of(beginning[PREFIX.size :])
    except ValueError:
        header = None
    if not isinstance(header, dict):
        raise MessageError(f"{where} is altered: its header cannot be read; have it sent again.")
    return header, beginning


def open_chunks(head: bytes, key: bytes, data: bytes) -> bytes | None:
    """The contents of a sealed file; None if the key does not open it, or any byte of it is not as it was sealed."""
    cipher = ChaCha20Poly1305(key)
    view = memoryview(data)[len(head) :]
    if len(view) < TAG:
        return None
    parts = []
    last = (len(view) - 1) // (CHUNK + TAG)
    try:
        for number in range(last + 1):
            chunk = view[number * (CHUNK + TAG) : (number + 1) * (CHUNK + TAG)]
            parts.append(cipher.decrypt(_nonce(number, number == last), chunk, head))
    except InvalidTag:
        return None
    return b"".join(parts)


def most_bytes(contents: int) -> int:
    """The most bytes that a sealed file of so many bytes of contents has."""
    return PREFIX.size + MAX_HEAD + contents + TAG * (contents // CHUNK + 1)


def _nonce(number: int, last: bool) -> bytes:
    return number.to_bytes(11, "big") + bytes([last])

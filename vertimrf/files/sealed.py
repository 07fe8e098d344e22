"""Encoding of sealed files: a header that anyone can read, and contents for the owner of the key.

Layout, little-endian: magic "VMRS"; format version (uint16); length (uint32) and text of a JSON
header; the contents in chunks of CHUNK bytes, each as ChaCha20-Poly1305 ciphertext with a tag of 16
bytes. The last chunk is the remainder and may be empty.

The nonce of a chunk is its number (11 bytes, big-endian) and a byte that is 1 for the last chunk
only. This is the STREAM construction (Hoang, Reyhanitabar, Rogaway and Vizar, CRYPTO 2015): a file
that was cut, reordered or extended does not open. All bytes before the first chunk are associated
data of every chunk. A key must be used for one file only, because nonces start at 0 in each file.
"""

from __future__ import annotations

import json
import struct

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from ..arrays import Fields
from ..errors import MessageError
from .canonical import json_of

MAGIC = b"VMRS"
VERSION = 1
PREFIX = struct.Struct("<4sHI")
TAG = 16
CHUNK = 1 << 16
# A header holds names, digests and a public key.
MAX_HEAD = 1 << 16


def pack_head(header: Fields) -> bytes:
    """The beginning of a sealed file, which can be read without the key."""
    text = json.dumps(header, separators=(",", ":")).encode()
    return PREFIX.pack(MAGIC, VERSION, len(text)) + text


def seal_chunks(head: bytes, key: bytes, contents: bytes) -> bytes:
    """Encrypt a sealed file.

    Args:
        head: from :func:`pack_head`.
        key: key of this file only [32 bytes].
        contents: what to encrypt.

    Returns:
        The bytes of the file.
    """
    cipher = ChaCha20Poly1305(key)
    view = memoryview(contents)
    parts = [head]
    last = max(len(contents) - 1, 0) // CHUNK
    for number in range(last + 1):
        chunk = view[number * CHUNK : (number + 1) * CHUNK]
        parts.append(cipher.encrypt(_nonce(number, number == last), chunk, head))
    return b"".join(parts)


def peek(data: bytes, where: str) -> tuple[Fields, bytes]:
    """Header of a sealed file, and the bytes that hold it.

    The header is not authenticated until the file is opened.

    Raises:
        MessageError: the data is no sealed file, or of another version.
    """
    if len(data) < PREFIX.size + TAG or data[:4] != MAGIC:
        raise MessageError(
            f"{where} is not a sealed file of this library, or it is truncated; have it sent again."
        )
    _, version, length = PREFIX.unpack_from(data)
    if version != VERSION:
        raise MessageError(
            f"{where} is a sealed file of version {version}; this release reads version {VERSION}."
        )
    if length > MAX_HEAD or PREFIX.size + length + TAG > len(data):
        raise MessageError(
            f"{where} is truncated or altered: its header does not fit; have it sent again."
        )
    beginning = bytes(data[: PREFIX.size + length])
    try:
        header = json_of(beginning[PREFIX.size :])
    except ValueError:
        header = None
    if not isinstance(header, dict):
        raise MessageError(f"{where} is altered: its header cannot be read; have it sent again.")
    return header, beginning


def open_chunks(head: bytes, key: bytes, data: bytes) -> bytes | None:
    """Decrypt a sealed file.

    Args:
        head: the bytes before the first chunk.
        key: key of the file [32 bytes].
        data: the whole file.

    Returns:
        The contents; None if the key is wrong or any byte was altered.
    """
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
    """Largest size of a sealed file with this many bytes of contents."""
    return PREFIX.size + MAX_HEAD + contents + TAG * (contents // CHUNK + 1)


def _nonce(number: int, last: bool) -> bytes:
    return number.to_bytes(11, "big") + bytes([last])

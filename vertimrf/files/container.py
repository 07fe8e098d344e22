"""The binary file format of this library: a JSON header, plain arrays and SHA-256, without pickle.

Layout, little-endian: magic "VMRF"; format version (uint16); length (uint32) and text of a JSON
object with kind, header and a list of arrays; the bytes of the arrays in that order; SHA-256 of
everything before it [32 bytes].
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np

from ..arrays import Arrays, Fields
from ..errors import MessageError
from .atomic import read_bytes
from .canonical import json_of

MAGIC = b"VMRF"
VERSION = 1
DIGEST = 32
PREFIX = struct.Struct("<4sHI")
# Size limit, set by models. Messages have a limit of their own by their plan.
MAX_BYTES = 1 << 32
DTYPES = {"uint8", "uint16", "int64", "float64"}


def pack(kind: str, header: Fields, arrays: Arrays) -> bytes:
    """Serialise a header and named arrays.

    Args:
        kind: kind of file.
        header: JSON fields.
        arrays: arrays of uint8, uint16, int64 or float64, by name.

    Returns:
        The bytes of the file.
    """
    listing = [[name, array.dtype.name, list(array.shape)] for name, array in arrays.items()]
    text = json.dumps(
        {"kind": kind, "header": header, "arrays": listing}, separators=(",", ":")
    ).encode()
    parts: list[Any] = [PREFIX.pack(MAGIC, VERSION, len(text)) + text]
    digest = hashlib.sha256(parts[0])
    for array in arrays.values():
        parts.append(np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).data)
        digest.update(parts[-1])
    return b"".join([*parts, digest.digest()])


def unpack(data: bytes, kind: str, where: str) -> tuple[Fields, Arrays]:
    """Read a container of one kind.

    Args:
        data: bytes of the file.
        kind: kind that it must have.
        where: name of the file, for errors.

    Returns:
        The header and the arrays by name.

    Raises:
        MessageError: the data is no container, of another version or kind, truncated or altered.
    """
    actual, header, arrays = peek(data, where)
    if actual != kind:
        raise MessageError(f"{where} is a {actual}, not a {kind}.")
    return header, arrays


def peek(data: bytes, where: str) -> tuple[str, Fields, Arrays]:
    """Read a container of any kind.

    Args:
        data: bytes of the file.
        where: name of the file, for errors.

    Returns:
        Kind, header and arrays by name.

    Raises:
        MessageError: the data is no container, of another version, truncated or altered.
    """
    if len(data) < PREFIX.size + DIGEST or data[:4] != MAGIC:
        raise MessageError(
            f"{where} is not a VertiMRF file, or it is truncated; have it sent again."
        )
    _, version, length = PREFIX.unpack_from(data)
    if version != VERSION:
        raise MessageError(
            f"{where} has format version {version}; this release reads version {VERSION}."
        )
    if hashlib.sha256(memoryview(data)[:-DIGEST]).digest() != data[-DIGEST:]:
        raise MessageError(
            f"{where} is truncated or altered (its checksum does not match); have it sent again."
        )
    try:
        description = json_of(data[PREFIX.size : PREFIX.size + length])
        kind, header = str(description["kind"]), description["header"]
        arrays: Arrays = {}
        offset = PREFIX.size + length
        for name, dtype, shape in description["arrays"]:
            if dtype not in DTYPES or any(not isinstance(s, int) or s < 0 for s in shape):
                raise ValueError(f"array {name}")
            count = math.prod(shape)
            item = np.dtype(dtype).newbyteorder("<")
            end = offset + count * item.itemsize
            if end > len(data) - DIGEST:
                raise ValueError(f"array {name} is cut off")
            arrays[name] = np.frombuffer(data, item, count, offset).astype(dtype).reshape(shape)
            offset = end
        if offset != len(data) - DIGEST or not isinstance(header, dict):
            raise ValueError("its length does not match its header")
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise MessageError(f"{where} is malformed ({error}).") from None
    return kind, header, arrays


def read(path: str | Path) -> bytes:
    """Read the bytes of a container file.

    Raises:
        MessageError: the file cannot be read, or is too large.
    """
    return read_bytes(path, "file", MessageError, MAX_BYTES)

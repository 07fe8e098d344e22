"""The encoding and the separator of a CSV file, from its first bytes."""

from __future__ import annotations

import codecs
import re

DELIMITERS = ",;\t|"


def header_delimiter(header: str) -> str:
    """The separator that a CSV file's header has most often; a comma if it has none."""
    return max(DELIMITERS, key=re.sub('"[^"]*"', "", header).count)


def encoding_of(head: bytes) -> str:
    """Encoding of a text by its first bytes: UTF-8, UTF-16 with a mark, or else cp1252."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
        return "utf-8"
    except UnicodeDecodeError:
        return "cp1252"

"""Digests in a form that people compare by phone."""

from __future__ import annotations

__all__ = ["fingerprint"]


def fingerprint(digest: bytes) -> str:
    """The first 64 bits of a digest as four groups of four hexadecimal digits."""
    digits = digest.hex()[:16]
    return "-".join(digits[i : i + 4] for i in range(0, 16, 4))

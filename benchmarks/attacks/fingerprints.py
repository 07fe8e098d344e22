"""Who writes both files that people are to take for one needs two with one fingerprint."""

import hashlib

from vertimrf.files.canonical import fingerprint

from ..verdict import at_least


def rows():
    """How many bits of a digest people read out, counted by flipping each."""
    digest = hashlib.sha256(b"a plan").digest()
    shown = sum(
        fingerprint(
            bytes(
                byte ^ (128 >> bit % 8) * (place == bit // 8) for place, byte in enumerate(digest)
            )
        )
        != fingerprint(digest)
        for bit in range(8 * len(digest))
    )
    yield at_least("fingerprints: bits read out", shown, 128)

"""Encrypted counts without the encryption: the same counts and the same noise, in seconds instead of minutes.

The accuracy of encrypted counts depends on what is decrypted alone, which is the exact counts and the noise of both parties. Here
the rows go from party to party as they are. So this is for measurements of accuracy on one machine, and for nothing else.
"""

import contextlib

import numpy as np

from vertimrf.releases.encrypted_counts import encoding as encrypted_counts
from vertimrf.releases.encrypted_counts.packing import counters_of


def _moved(codes, sizes, contrasts):
    """What every row adds to every counter [shape=(rows, counters), float32]."""
    out = []
    for group, (row, size) in enumerate(zip(codes, sizes, strict=True)):
        each = (row[:, None] == np.arange(size)).astype(np.float32)
        out.append(each[:, :1] - each[:, 1:] if group in contrasts else each)
    return np.concatenate(out, axis=1)


def _encrypt(private, codes, layout, progress=None):
    assert codes.shape == (len(layout.sizes), layout.capacity)
    return np.ascontiguousarray(codes, "<i4").view(np.uint8)


def _sum(
    public,
    rows,
    codes,
    sizes,
    noise,
    layout,
    progress=None,
    contrasts=(),
):
    packed = np.ascontiguousarray(rows).view("<i4").reshape(len(layout.sizes), layout.capacity)
    # Sums of at most 2^18 ones are exact in float32.
    sums = _moved(codes, sizes, contrasts).T @ _moved(packed, layout.sizes, layout.contrasts)
    counted = np.rint(sums).astype(np.int64) + noise
    assert noise.shape == (sum(counters_of(sizes, contrasts)), layout.counters)
    return counted.astype("<i8").view(np.uint8)


def _open(private, answers, rows, layout, progress=None):
    counted = np.ascontiguousarray(answers).view("<i8").reshape(sum(rows), layout.counters)
    return layout.tables(counted.astype(np.int64), rows)


@contextlib.contextmanager
def without_encryption():
    """While this holds, parties exchange rows and sums as they are."""
    replaced = {
        "check_ciphertexts": lambda *_: None,
        "encrypt_rows": _encrypt,
        "sum_rows": _sum,
        "open_sums": _open,
    }
    kept = {name: getattr(encrypted_counts, name) for name in replaced}
    for name, function in replaced.items():
        setattr(encrypted_counts, name, function)
    try:
        yield
    finally:
        for name, function in kept.items():
            setattr(encrypted_counts, name, function)

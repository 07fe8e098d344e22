"""SipHash-2-4 against the reference's published vectors and a plain implementation."""

import numpy as np
import pytest
from oracles import siphash

from vertimrf.kernels.jit import kernel, threads
from vertimrf.kernels.prf import fill_words, tail


@kernel
def make_tail(block, counter):
    return tail(block, counter)


def words(key, digests, block, counter):
    k0, k1 = np.frombuffer(key, "<u8").astype(np.uint64)
    out = np.empty(len(digests), np.uint64)
    fill_words(k0, k1, digests, len(digests), np.uint64(make_tail(block, counter)), out)
    return out


def test_kernel_equals_the_plain_implementation():
    rng = np.random.default_rng(1)
    digests = np.concatenate(
        [rng.integers(0, 2**64, 30, dtype=np.uint64), np.array([0, 1, 2**63, 2**64 - 1], np.uint64)]
    )
    for block, counter in [(0, 0), (1, 2), (2**31, 2**23), (2**32 - 1, 2**24 - 1)]:
        for key in (bytes(16), b"\xff" * 16, rng.bytes(16)):
            tails = block.to_bytes(4, "little") + counter.to_bytes(3, "little")
            expected = [
                siphash(key, int(digest).to_bytes(8, "little") + tails) for digest in digests
            ]
            assert words(key, digests, block, counter).tolist() == expected


def test_threads_are_restored_and_checked():
    import numba

    before = numba.get_num_threads()
    with threads(1):
        assert numba.get_num_threads() == 1
        with threads(10_000):
            assert numba.get_num_threads() == numba.config.NUMBA_NUM_THREADS
        with threads(None):
            assert numba.get_num_threads() == 1
    assert numba.get_num_threads() == before
    with pytest.raises(RuntimeError, match="inside"), threads(1):
        raise RuntimeError("inside")
    assert numba.get_num_threads() == before
    with pytest.raises(ValueError, match="at least 1"), threads(0):
        pass


def test_kernels_run_uncached_where_no_cache_can_be_written(
    monkeypatch,
):
    import numba

    real = numba.njit

    def refuse(*args, cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function 'f': no locator available for file 'f.py'")
        return real(*args, **options)

    monkeypatch.setattr(numba, "njit", refuse)

    @kernel
    def twice(x):
        return 2 * x

    assert twice(3) == 6

"""Compiled kernels: plain arrays in, plain arrays out, no state; only NumPy and Numba are imported.

Kernels compile on first use and are cached on disk. :func:`warmup` compiles them beforehand.
"""

from __future__ import annotations

from .warm import warmup

__all__ = ["warmup"]

"""Compiled kernels: functions of plain arrays without state. They import NumPy, Numba and platformdirs only.

Kernels compile on first use and are cached on disk. :func:`warmup` compiles them beforehand.
"""

from __future__ import annotations

from .warm import warmup

__all__ = ["warmup"]

"""A cache of compiled kernels that can be read and not written, as in a container's image.

Numba takes no notice of a cache folder that it cannot write to, and would compile in every process anew. What stands in such a
folder, compiled while the image was built, is loaded here; what does not is compiled, and stays in memory.
"""

from __future__ import annotations

import os
from typing import Any

from numba.core import config
from numba.core.caching import CompileResultCacheImpl, FunctionCache

__all__ = ["ReadOnlyCache", "read_only_folder"]

# The first place that Numba looks in: the folder that NUMBA_CACHE_DIR names. (Its class has gone by two names.)
_Given: Any = CompileResultCacheImpl._locator_classes[0]


class _Locator(_Given):  # type: ignore[misc]
    """Finds the folder, and does not ask whether it can be written to."""

    def ensure_cache_path(self) -> None:
        pass


class _Reading(CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = [_Locator]  # noqa: RUF012 (Numba's own attribute)


class ReadOnlyCache(FunctionCache):  # type: ignore[misc]
    """A kernel's cache that loads and never saves. Its path is None: there is nothing to fill (:func:`warm.missing`)."""

    _impl_class = _Reading
    cache_path = None

    def save_overload(self, sig: Any, data: Any) -> None:
        pass


def read_only_folder() -> bool:
    """Whether NUMBA_CACHE_DIR names a folder that is there and cannot be written to."""
    folder = config.CACHE_DIR
    return bool(folder) and os.path.isdir(folder) and not os.access(folder, os.W_OK)

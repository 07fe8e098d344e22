"""A read-only cache of compiled kernels, as in a container image.

Numba ignores a cache folder that is not writable and would compile in every process. Here, kernels
compiled while the image was built are loaded from such a folder. Other kernels are compiled and
stay in memory.
"""

from __future__ import annotations

import os
from typing import Any

from numba.core import config
from numba.core.caching import CompileResultCacheImpl, FunctionCache

# Numba looks first in the folder that NUMBA_CACHE_DIR names. (Its class has had two names.)
_Given: Any = CompileResultCacheImpl._locator_classes[0]


class _Locator(_Given):  # type: ignore[misc]
    """Finds the folder without checking that it is writable."""

    def ensure_cache_path(self) -> None:
        pass


class _Reading(CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = [_Locator]  # noqa: RUF012 (Numba's own attribute)


class ReadOnlyCache(FunctionCache):  # type: ignore[misc]
    """A kernel's cache that loads and never saves. Its path is None, because nothing can be filled
    (:func:`warm.missing`).
    """

    _impl_class = _Reading
    cache_path = None

    @property
    def folder(self) -> str:
        """Folder of the kernel's files."""
        return str(self._impl.locator.get_cache_path())

    def save_overload(self, sig: Any, data: Any) -> None:
        pass


def read_only_folder() -> bool:
    """Whether NUMBA_CACHE_DIR names an existing folder that is not writable."""
    folder = config.CACHE_DIR
    return bool(folder) and os.path.isdir(folder) and not os.access(folder, os.W_OK)

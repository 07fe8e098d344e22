"""Where compiled kernels are kept: in NUMBA_CACHE_DIR if it is set, else in the user's cache folder.

Numba would keep them beside the source, where they outlive the package, and would not notice that a
callee in another file changed. Here, each content of all kernels' sources and each version of Numba
has a folder of its own. If it cannot be written to, as in a container image, kernels are loaded
from it, and what it lacks is compiled and stays in memory.
"""

from __future__ import annotations

import functools
import hashlib
import os
import tempfile
from pathlib import Path
from typing import Any

import numba
import platformdirs
from numba.core import config
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.environment import Environment
from numba.core.runtime import rtsys

# Numba looks first in the folder that NUMBA_CACHE_DIR names. (Its class has had two names.)
_Given: Any = CompileResultCacheImpl._locator_classes[0]


@functools.cache
def _digest(source: str) -> bytes:
    return hashlib.sha256(Path(source).read_bytes()).digest()


@functools.cache
def folder() -> Path:
    """The folder of these sources and this version of Numba, which may not exist."""
    sources = b"".join(_digest(str(path)) for path in sorted(Path(__file__).parent.glob("*.py")))
    name = hashlib.sha256(numba.__version__.encode() + sources).hexdigest()[:16]
    parent = config.CACHE_DIR or platformdirs.user_cache_path("vertimrf")
    return Path(parent) / f"kernels-{name}"


def is_off() -> bool:
    """Whether VERTIMRF_JIT_CACHE turns the cache off."""
    return os.environ.get("VERTIMRF_JIT_CACHE") == "0"


@functools.cache
def is_writable() -> bool:
    """Whether the folder takes files. It is made if it is missing."""
    try:
        folder().mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder()).close()
    except OSError:
        return False
    return True


def is_there() -> bool:
    """Whether kernels can be loaded from the folder."""
    return is_writable() or os.access(folder(), os.R_OK | os.X_OK)


class _Locator(_Given):  # type: ignore[misc]
    @classmethod
    def from_function(cls, function: Any, file: str) -> _Locator:
        locator = cls(function, file)
        locator._cache_path = str(folder())
        return locator

    # By content: an installer gives the same file another time.
    def get_source_stamp(self) -> bytes:
        return _digest(self._py_file)


class _Content(CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = [_Locator]  # noqa: RUF012 (Numba's own attribute)

    def reduce(self, data: Any) -> Any:
        *rest, environments = super().reduce(data)
        return (*rest, tuple(map(_light, environments)))


def _light(environment: Environment) -> Environment:
    """An environment of a function of Numba's, which does not import that function's module.

    Compiled code reads an environment's constants alone. The modules of NumPy's functions would take
    a third of the time in which all kernels load.
    """
    if not environment.globals["__name__"].startswith("numba."):
        return environment
    light = Environment(numba.__dict__)
    light.consts[:] = environment.consts
    light.env_name = environment.env_name
    return light


class KernelCache(FunctionCache):  # type: ignore[misc]
    """A kernel's compiled code in the folder."""

    _impl_class = _Content

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self.index = Path(self._cache_file._index_path)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        # Numba would first import what compiling alone needs; its compiler does so itself. Loaded code
        # needs the runtime.
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)

    def save_overload(self, sig: Any, data: Any) -> None:
        if is_writable():
            super().save_overload(sig, data)

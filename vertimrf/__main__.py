"""The command ``vertimrf``, also as ``python -m vertimrf``."""

import gc
import os
import sys
import threading
from contextlib import suppress
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec

from .cli import main


class Without(MetaPathFinder):
    """Keeps out of a process what no command uses.

    PyArrow would import pandas at its first conversion, in 0.2 s, and SciPy NumPy's translator of Fortran
    with all else of NumPy, in 0.1 s. PyArrow can do without; SciPy finds an empty module.
    """

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """See :class:`MetaPathFinder`."""
        if name == "pandas":
            raise ModuleNotFoundError("No command uses pandas.", name=name)
        return ModuleSpec(name, None, is_package=True) if name == "numpy.f2py" else None


def run() -> None:
    """Run the command of this process."""
    sys.meta_path.insert(0, Without())
    # Modules make 200,000 objects that last; to look for cycles among them would take 0.1 s.
    gc.set_threshold(10_000)
    try:
        main(prog_name="vertimrf")
    except SystemExit as end:
        _leave_behind(end.code)
        raise
    finally:
        gc.freeze()  # To look for cycles when the process ends would take 0.3 s.


def _leave_behind(code: object) -> None:
    """End the process at once if a storage that does not answer still keeps a thread.

    Arrow would wait for it, which takes minutes.
    """
    if threading.active_count() == 1:
        return
    from .runs.exchange import THREAD

    if any(thread.name == THREAD for thread in threading.enumerate()):
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code if isinstance(code, int) else code is not None)


if __name__ == "__main__":
    run()

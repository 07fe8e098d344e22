"""The command ``vertimrf``, also as ``python -m vertimrf``."""

import gc
import sys
from importlib.abc import MetaPathFinder

from .cli import main


class WithoutPandas(MetaPathFinder):
    """Keeps pandas out of a process: pyarrow would import it at its first conversion, in 0.2 s."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """See :class:`MetaPathFinder`."""
        if name == "pandas":
            raise ModuleNotFoundError("No command uses pandas.", name=name)


def run() -> None:
    """Run the command of this process."""
    sys.meta_path.insert(0, WithoutPandas())
    try:
        main(prog_name="vertimrf")
    finally:
        gc.freeze()  # To look for cycles when the process ends would take 0.3 s.


if __name__ == "__main__":
    run()

"""Names for types that many modules use, arrays by the type of their numbers first; and the memory that there is.

Every module writes these types by their names, but for those that a command loads before it begins: they
load no NumPy. Shapes and units are in docstrings.
"""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np
import numpy.typing as npt

Flags = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
Codes = npt.NDArray[np.uint16]
Words = npt.NDArray[np.uint64]
Int32s = npt.NDArray[np.int32]
Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Integral = npt.NDArray[np.integer]
# Whole numbers that are no array: sizes, or positions of attributes.
Ints = tuple[int, ...]
Pair = tuple[int, int]
# Names of columns, parties or files, or sentences.
Texts = tuple[str, ...]
# Values by the names of their fields, as JSON and TOML have them.
Fields = dict[str, Any]
# Arrays by name, as a file has them.
Arrays = dict[str, npt.NDArray[Any]]


def memory() -> float:
    """Memory of this machine, bytes; infinite where the system does not say."""
    if not hasattr(os, "sysconf"):
        return math.inf
    return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))

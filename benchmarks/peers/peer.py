"""Mechanisms of others: their packages, and a function from a table to synthetic rows."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from ..datasets import Codes, Dataset
from .environment import Environment
from .on_mbi import MBI
from .on_mbi import release as on_mbi
from .on_opendp import OPENDP
from .on_opendp import release as on_opendp
from .on_smartnoise import SMARTNOISE
from .on_smartnoise import release as on_smartnoise

ROOT = Path(__file__).resolve().parents[2]
# Names the folder of environments. Where it is set, experiments run the peers.
FOLDER = "VERTIMRF_PEERS"


def default_folder():
    """Where environments lie: the folder that ``FOLDER`` names, or the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get(FOLDER) or Path(cache) / "vertimrf" / "peers")


@dataclass(frozen=True)
class Peer:
    """A mechanism that has the whole table.

    Attributes:
        name: key in ``PEERS`` and in the results.
        title: what tables call it.
        environment: what it runs in.
        synthesize: gives as many synthetic rows [shape=(d, n), uint16] of a table, for (table, epsilon, delta, seed).
    """

    name: str
    title: str
    environment: Environment
    synthesize: Callable[[Dataset, float, float, int], Codes]


def write_rows(path, names, codes):
    """Rows of integer codes as CSV, compressed: a header of names, then a row a line.

    Args:
        path: ends in ``.csv.gz``.
        names: attributes [length d].
        codes: rows [shape=(d, n)].
    """
    with gzip.open(path, "wt", compresslevel=5) as file:
        np.savetxt(file, codes.T, fmt="%d", delimiter=",", header=",".join(names), comments="")


def read_rows(path, names, sizes):
    """Rows that :func:`write_rows` wrote [shape=(d, n), uint16].

    Raises:
        ValueError: other columns than the table's, or a code outside its domain.
    """
    with gzip.open(path, "rt") as file:
        header = file.readline().strip().split(",")
        codes = np.loadtxt(file, dtype=np.int64, delimiter=",", ndmin=2).T
    if header != list(names):
        raise ValueError(f"{path} has the columns {', '.join(header)}, not those of the table.")
    for name, size, column in zip(names, sizes, codes, strict=True):
        if column.size and not 0 <= column.min() <= column.max() < size:
            raise ValueError(f"{path}: column {name} has codes outside 0 to {size - 1}.")
    return codes.astype(np.uint16)


def surroundings():
    """Variables under which this checkout's modules are found from any interpreter and folder."""
    return {**os.environ, "PYTHONPATH": str(ROOT)}


PEERS = {
    peer.name: peer
    for peer in (
        Peer(
            "mbi_aim_ours",
            "AIM (mbi 2), fits and rows by our engine",
            MBI,
            partial(on_mbi, "annealed AIM", "ours"),
        ),
        Peer("mbi_aim", "AIM (mbi 2)", MBI, partial(on_mbi, "AIM", "mbi")),
        Peer("opendp_aim", "AIM (OpenDP)", OPENDP, partial(on_opendp, "AIM")),
        Peer(
            "smartnoise_aim",
            "AIM (SmartNoise)",
            SMARTNOISE,
            partial(on_smartnoise, "aim", degree=3),
        ),
        Peer("mbi_mst", "MST (mbi 2)", MBI, partial(on_mbi, "MST", "mbi")),
        Peer("opendp_mst", "MST (OpenDP)", OPENDP, partial(on_opendp, "MST")),
        Peer("smartnoise_mst", "MST (SmartNoise)", SMARTNOISE, partial(on_smartnoise, "mst")),
    )
}

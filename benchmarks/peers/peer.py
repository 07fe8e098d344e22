"""What a script for a peer is made of: its packages, and a function from a table to synthetic rows."""

from __future__ import annotations

import argparse
import gzip
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .. import datasets
from ..datasets import Codes, Dataset
from .environment import Environment, NotInstalledError, default_folder

__all__ = ["Peer", "main", "read_rows", "surroundings", "write_rows"]

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Peer:
    """A mechanism that has the whole table, or ours.

    Attributes:
        name: of its module in this package, and in files' names.
        title: what tables call it.
        environment: what it runs in; None is the environment that runs the benchmark.
        synthesize: gives as many synthetic rows [shape=(d, n), uint16] of a table, for (table, epsilon, delta, seed).
    """

    name: str
    title: str
    environment: Environment | None
    synthesize: Callable[[Dataset, float, float, int], Codes]

    def command(self, data: str, folder: Path, epsilon: float, delta: float, seed: int, out: Path, kept: Path) -> list[str]:
        """What runs it in its environment, which is made where it is not there yet.

        Args:
            data: name of the table.
            folder: where the table lies.
            epsilon, delta: privacy target.
            seed: of whatever the peer draws that can be seeded.
            out: synthetic rows.
            kept: folder of environments.

        Raises:
            NotInstalledError: pip did not install it.
        """
        python = sys.executable if self.environment is None else str(self.environment.python(kept))
        # -P keeps the folder that it is called in off the path, where a module may have the name of a package of the peer's.
        return [python, "-P", "-m", f"{__package__}.{self.name}", data, "--data", str(folder), "--epsilon", repr(epsilon),
                "--delta", repr(delta), "--seed", str(seed), "--out", str(out), "--environments", str(kept)]  # fmt: skip


def write_rows(path: Path, names: Sequence[str], codes: Codes) -> None:
    """Rows of integer codes as CSV, compressed: a header of names, then a row a line.

    Args:
        path: ends in ``.csv.gz``.
        names: attributes [length d].
        codes: rows [shape=(d, n)].
    """
    with gzip.open(path, "wt", compresslevel=5) as file:
        np.savetxt(file, codes.T, fmt="%d", delimiter=",", header=",".join(names), comments="")


def read_rows(path: Path, names: Sequence[str], sizes: Sequence[int]) -> Codes:
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


def rerun(python: Path, name: str, words: Sequence[str]) -> int:
    """The same script in another environment; its exit code."""
    return subprocess.run([str(python), "-P", "-m", f"{__package__}.{name}", *words], env=surroundings()).returncode


def surroundings() -> dict[str, str]:
    """Variables under which this checkout's modules are found from any interpreter and folder."""
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def main(peer: Peer, words: Sequence[str] | None = None) -> int:
    """Run a peer on a table, in its own environment; the exit code."""
    words = sys.argv[1:] if words is None else list(words)
    parser = argparse.ArgumentParser(prog=f"python -m {__package__}.{peer.name}", description=peer.title)
    parser.add_argument("name", help="name of a table: NAME.csv.gz with NAME-domain.json")
    parser.add_argument("--data", type=Path, default=datasets.FOLDER, help="folder of the tables")
    parser.add_argument("--epsilon", type=float, required=True)
    parser.add_argument("--delta", type=float, help="1/n by default")
    parser.add_argument("--seed", type=int, default=0, help="of what the peer draws that can be seeded")
    parser.add_argument("--out", type=Path, required=True, help="synthetic rows, .csv.gz")
    parser.add_argument("--environments", type=Path, default=default_folder(), help="folder of environments of Python")
    options = parser.parse_args(words)
    if not (options.epsilon > 0 and (options.delta is None or 0 < options.delta < 1)):
        parser.error("epsilon must be positive, and delta between 0 and 1.")
    if not options.out.parent.is_dir():
        parser.error(f"there is no folder {options.out.parent} for the rows.")
    if not datasets.present(options.name, options.data):
        parser.error(f"{options.data} has no {options.name}.csv.gz; give the folder of the tables with --data.")
    if peer.environment is not None and not peer.environment.active(options.environments):
        try:
            python = peer.environment.python(options.environments)
        except NotInstalledError as error:
            print(error, file=sys.stderr)
            return 1
        return rerun(python, peer.name, words)
    table = datasets.load(options.name, options.data)
    delta = 1 / table.records if options.delta is None else options.delta
    codes = peer.synthesize(table, options.epsilon, delta, options.seed)
    part = options.out.with_name(f"{options.out.name}.part")
    write_rows(part, table.names, codes)
    part.replace(options.out)
    return 0

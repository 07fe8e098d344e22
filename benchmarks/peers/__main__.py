"""Central mechanisms of others beside ours, on the same tables: benchmarks/results/peers.md comes from here.

    python -m benchmarks.peers adult nltcs --epsilon 0.8 [--only mbi_aim ...] [--limit 900] [--rows FOLDER]
        [--page benchmarks/results/peers.md]

Each peer runs in an environment of its own, which is made at its first run. Rows and what was measured are kept in --rows: what
is there is not done again, and the page shows all of it.
"""

from __future__ import annotations

import argparse
import importlib
import math
import sys
from collections.abc import Sequence
from pathlib import Path

from .. import datasets
from ..results import put_between
from .environment import NotInstalledError, default_folder, why_not_installed
from .measure import DONE, found, kept, measure, rows_file
from .peer import Peer
from .report import MARK, cell, markdown

NAMES = (
    "centralized", "two_parties", "mbi_aim_ours", "mbi_aim", "opendp_aim", "smartnoise_aim", "mbi_mst", "opendp_mst",
    "smartnoise_mst",
)  # fmt: skip
# Packages that people ask for and that have no script, because there is nothing to install.
ASKED_FOR = ("dpsynth", "margnet", "private-pgm")


def peers(names: Sequence[str] = NAMES) -> list[Peer]:
    """Of the modules of this package, by name."""
    return [importlib.import_module(f"{__package__}.{name}").PEER for name in names]


def main(words: Sequence[str] | None = None) -> int:
    """Run what is asked for and not there yet; the exit code, 2 for what cannot be asked."""
    parser = argparse.ArgumentParser(
        prog=f"python -m {__package__}", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="+", metavar="DATA", help="tables: NAME.csv.gz with NAME-domain.json")
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.8])
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES, metavar="PEER", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--data", type=Path, default=datasets.FOLDER, help="folder of the tables")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=900, help="seconds that a run may take")
    parser.add_argument("--rows", type=Path, default=Path("peer-rows"), help="folder of runs")
    parser.add_argument("--environments", type=Path, default=default_folder(), help="folder of environments of Python")
    parser.add_argument("--page", type=Path, help="write the tables between this file's markers")
    options = parser.parse_args(words)
    for name in options.names:
        if not datasets.present(name, options.data):
            parser.error(f"{options.data} has no {name}.csv.gz; give the folder of the tables with --data.")
    if not all(math.isfinite(epsilon) and epsilon > 0 for epsilon in options.epsilon):
        parser.error("every epsilon must be a positive number.")
    if options.page is not None and not options.page.is_file():
        parser.error(f"there is no page {options.page} to write the tables to.")
    options.rows.mkdir(parents=True, exist_ok=True)
    refused = run_all(options)
    if options.page is not None:
        refused |= {name: why_not_installed(name) for name in ASKED_FOR}
        put_between(options.page, MARK, markdown(found(options.rows), peers(), refused))
    return 0


def run_all(options: argparse.Namespace) -> dict[str, str | None]:
    """Runs that are not there yet, a line each; what does not install."""
    refused: dict[str, str | None] = {}
    for epsilon in options.epsilon:
        for name in options.names:
            table = datasets.load(name, options.data)
            delta = 1 / table.records
            for peer in peers(options.only):
                run = kept(options.rows, name, peer.name, epsilon, options.seed, options.limit)
                if run is None:
                    out = rows_file(options.rows, name, peer.name, epsilon)
                    try:
                        command = peer.command(name, options.data, epsilon, delta, options.seed, out, options.environments)
                    except NotInstalledError as error:
                        refused[peer.title] = str(error)
                        print(f"{name:8} {epsilon:<4g} {peer.name:15} {error}", flush=True)
                        continue
                    run = measure(options.rows, command, table, peer.name, epsilon, delta, options.seed, options.limit)
                told = cell(run) if run.outcome == DONE else f"{run.outcome} {run.message}"
                print(f"{name:8} {epsilon:<4g} {peer.name:15} {told}", flush=True)
    return refused


if __name__ == "__main__":
    sys.exit(main())

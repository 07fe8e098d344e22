"""Rows of a mechanism of others, in its environment, which is made at the first run.

python -m benchmarks.peers opendp_mst nltcs --epsilon 0.8 --out rows.csv.gz
"""

import argparse
import subprocess
import sys
from pathlib import Path

from .. import datasets
from .environment import NotInstalledError
from .peer import PEERS, default_folder, surroundings, write_rows


def main(words=None):
    """Run a peer on a table, in its own environment; the exit code."""
    words = sys.argv[1:] if words is None else list(words)
    parser = argparse.ArgumentParser(
        prog=f"python -m {__package__}",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("peer", choices=PEERS, metavar="PEER", help=f"of {', '.join(PEERS)}")
    parser.add_argument(
        "name", metavar="DATA", help="name of a table: NAME.csv.gz with NAME-domain.json"
    )
    parser.add_argument("--data", type=Path, default=datasets.FOLDER, help="folder of the tables")
    parser.add_argument("--epsilon", type=float, required=True)
    parser.add_argument("--delta", type=float, help="1/n by default")
    parser.add_argument(
        "--seed", type=int, default=0, help="of what the peer draws that can be seeded"
    )
    parser.add_argument("--out", type=Path, required=True, help="synthetic rows, .csv.gz")
    parser.add_argument(
        "--environments",
        type=Path,
        default=default_folder(),
        help="folder of environments of Python",
    )
    options = parser.parse_args(words)
    if not (options.epsilon > 0 and (options.delta is None or 0 < options.delta < 1)):
        parser.error("epsilon must be positive, and delta between 0 and 1.")
    if not options.out.parent.is_dir():
        parser.error(f"there is no folder {options.out.parent} for the rows.")
    if not datasets.present(options.name, options.data):
        parser.error(
            f"{options.data} has no {options.name}.csv.gz; give the folder of the tables with --data."
        )
    peer = PEERS[options.peer]
    if not peer.environment.active(options.environments):
        try:
            python = peer.environment.python(options.environments)
        except NotInstalledError as error:
            print(error, file=sys.stderr)
            return 1
        return subprocess.run(
            [str(python), "-P", "-m", __package__, *words], env=surroundings()
        ).returncode
    table = datasets.load(options.name, options.data)
    delta = 1 / table.records if options.delta is None else options.delta
    codes = peer.synthesize(table, options.epsilon, delta, options.seed)
    part = options.out.with_name(f"{options.out.name}.part")
    write_rows(part, table.names, codes)
    part.replace(options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())

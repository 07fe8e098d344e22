"""Our own synthesizer on the joined table: ``python -m benchmarks.peers.centralized DATA --epsilon E --out rows.csv.gz``."""

import sys

from ..datasets import Codes, Dataset
from .peer import Peer, main


def release(table: Dataset, epsilon: float, delta: float, seed: int) -> Codes:
    """Rows of ``Synthesizer``."""
    from ..reproduce.methods import METHODS

    return METHODS["centralized"].synthesize(table.codes, table.sizes, [range(len(table.sizes))], epsilon, delta, seed).codes


PEER = Peer("centralized", "**ours**, one holder (`Synthesizer`)", None, release)

if __name__ == "__main__":
    sys.exit(main(PEER))

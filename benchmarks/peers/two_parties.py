"""The protocol between two parties: ``python -m benchmarks.peers.two_parties DATA --epsilon E --out rows.csv.gz``."""

import sys

from ..datasets import Codes, Dataset
from .peer import Peer, main


def release(table: Dataset, epsilon: float, delta: float, seed: int) -> Codes:
    """Rows of the default encoder; the columns are dealt as in the paper, half of them each elsewhere."""
    from ..reproduce.methods import METHODS
    from ..reproduce.splits import deal, even_counts

    split = deal(even_counts(len(table.sizes), 2))
    return METHODS["count-sketches"].synthesize(table.codes, table.sizes, split, epsilon, delta, seed).codes


PEER = Peer("two_parties", "**ours**, columns split between two parties", None, release)

if __name__ == "__main__":
    sys.exit(main(PEER))

"""AIM on mbi 2, on our engine: ``python -m benchmarks.peers.mbi_aim_ours DATA --epsilon E --out rows.csv.gz``."""

import functools
import sys

from .on_mbi import MBI, release
from .peer import Peer, main

PEER = Peer("mbi_aim_ours", "AIM (mbi 2), fits and rows by our engine", MBI, functools.partial(release, "annealed AIM", "ours"))

if __name__ == "__main__":
    sys.exit(main(PEER))

"""AIM on mbi 2: ``python -m benchmarks.peers.mbi_aim DATA --epsilon E --out rows.csv.gz``."""

import functools
import sys

from .on_mbi import MBI, release
from .peer import Peer, main

PEER = Peer("mbi_aim", "AIM (mbi 2)", MBI, functools.partial(release, "AIM", "mbi"))

if __name__ == "__main__":
    sys.exit(main(PEER))

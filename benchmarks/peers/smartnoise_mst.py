"""MST of SmartNoise: ``python -m benchmarks.peers.smartnoise_mst DATA --epsilon E --out rows.csv.gz``."""

import functools
import sys

from .on_smartnoise import SMARTNOISE, release
from .peer import Peer, main

PEER = Peer("smartnoise_mst", "MST (SmartNoise)", SMARTNOISE, functools.partial(release, "mst"))

if __name__ == "__main__":
    sys.exit(main(PEER))

"""AIM of SmartNoise: ``python -m benchmarks.peers.smartnoise_aim DATA --epsilon E --out rows.csv.gz``."""

import functools
import sys

from .on_smartnoise import SMARTNOISE, release
from .peer import Peer, main

# Its workload is what is measured: all three-way marginals.
PEER = Peer("smartnoise_aim", "AIM (SmartNoise)", SMARTNOISE, functools.partial(release, "aim", degree=3))

if __name__ == "__main__":
    sys.exit(main(PEER))

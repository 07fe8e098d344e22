"""MST of OpenDP: ``python -m benchmarks.peers.opendp_mst DATA --epsilon E --out rows.csv.gz``."""

import functools
import sys

from .on_opendp import OPENDP, release
from .peer import Peer, main

PEER = Peer("opendp_mst", "MST (OpenDP)", OPENDP, functools.partial(release, "MST"))

if __name__ == "__main__":
    sys.exit(main(PEER))

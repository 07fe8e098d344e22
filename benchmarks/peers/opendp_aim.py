"""AIM of OpenDP: ``python -m benchmarks.peers.opendp_aim DATA --epsilon E --out rows.csv.gz``."""

import functools
import sys

from .on_opendp import OPENDP, release
from .peer import Peer, main

PEER = Peer("opendp_aim", "AIM (OpenDP)", OPENDP, functools.partial(release, "AIM"))

if __name__ == "__main__":
    sys.exit(main(PEER))

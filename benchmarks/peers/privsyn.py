"""PrivSyn (Zhang et al., 2021): ``python -m benchmarks.peers.privsyn DATA --epsilon E --out rows.csv.gz``."""

import sys
import tempfile

import numpy as np

from ..datasets import Codes, Dataset
from .environment import Environment
from .peer import Peer, main

PRIVSYN = Environment("privsyn", ("privsyn-core==0.1.1", "numpy==2.4.6", "pandas==3.1.1", "networkx==3.6.1", "pyarrow==26.0.1"))


def release(table: Dataset, epsilon: float, delta: float, seed: int) -> Codes:
    """Rows of the package's model as it is set up by default; it seeds all that it draws."""
    import pandas as pd
    from privsyn import PrivSynModel

    frame = pd.DataFrame(dict(zip(table.names, table.codes.astype(np.int64), strict=True)))
    # Exact counts are kept between runs in a folder: one that goes with the run.
    with tempfile.TemporaryDirectory() as folder:
        model = PrivSynModel(epsilon=epsilon, delta=delta, random_state=seed, artifact_root=folder)
        model.fit(frame, dict(zip(table.names, table.sizes, strict=True)))
        made = model.sample(table.records)
    return made[list(table.names)].to_numpy().T.astype(np.uint16)


PEER = Peer("privsyn", "PrivSyn (privsyn-core)", PRIVSYN, release)

if __name__ == "__main__":
    sys.exit(main(PEER))

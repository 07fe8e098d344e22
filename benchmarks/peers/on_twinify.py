"""NAPSU-MQ (Räisä, Jälkö, Kaski and Honkela, 2023) as its authors published it, in ``twinify``.

    python -m benchmarks.peers.on_twinify TABLES.npy DRAWS.npy --epsilon E --draws M

TABLES.npy has tables of binary columns [shape=(tables, d, n), uint16]. DRAWS.npy gets as many draws of each
[shape=(tables, draws, d, n), uint16]. All columns are measured together, at delta = 1 / n^2, as in the paper.
"""

import argparse
import sys

import numpy as np

from .environment import Environment

# twinify 2.0 calls what later releases of these do not have.
TWINIFY = Environment(
    "twinify",
    (
        "twinify==2.0.0",
        "d3p==0.2.0",
        "fourier-accountant==0.12.11",
        "jax==0.4.23",
        "jaxlib==0.4.23",
        "jax-chacha-prng==1.4.3",
        "numpyro==0.10.1",
        "arviz==0.16.1",
        "matplotlib==3.8.4",
        "networkx==2.8.8",
        "numpy==1.26.4",
        "pandas==1.5.3",
        "scipy==1.11.4",
    ),
)


def draws(codes, epsilon, count, seed):
    """Synthetic tables of one table [shape=(count, d, n), uint16], each from a draw of the posterior."""
    import d3p.random
    import pandas as pd
    from twinify.napsu_mq.napsu_mq import NapsuMQModel

    names = [f"x{a}" for a in range(len(codes))]
    frame = pd.DataFrame(
        {
            name: pd.Categorical(row, categories=(0, 1))
            for name, row in zip(names, codes, strict=True)
        }
    )
    fitting, drawing = d3p.random.split(d3p.random.PRNGKey(seed), 2)
    n = codes.shape[1]
    fitted = NapsuMQModel([]).fit(frame, fitting, epsilon, n**-2.0, query_sets=[tuple(names)])
    tables = fitted.generate(drawing, count, n, single_dataframe=False)
    return np.array([[table[name].astype(int) for name in names] for table in tables], np.uint16)


def main(words=None):
    """Write the draws of all tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables")
    parser.add_argument("out")
    parser.add_argument("--epsilon", type=float, required=True)
    parser.add_argument("--draws", type=int, required=True)
    options = parser.parse_args(words)
    import jax

    jax.config.update("jax_enable_x64", True)
    tables = np.load(options.tables, allow_pickle=False)
    made = [draws(codes, options.epsilon, options.draws, seed) for seed, codes in enumerate(tables)]
    np.save(options.out, np.array(made, np.uint16))


if __name__ == "__main__":
    sys.exit(main())

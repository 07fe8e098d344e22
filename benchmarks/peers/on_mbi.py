"""Mechanisms written out in ``benchmarks/peers/mechanisms.py``, on mbi 2: the package has none itself."""

import tomllib
from pathlib import Path

import numpy as np

from .environment import Environment
from .zcdp import rho_of

# The mechanisms take exact tables and the size of a junction tree from this library.
PROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"
DEPENDENCIES = tomllib.loads(PROJECT.read_text())["project"]["dependencies"]
MBI = Environment(
    "mbi",
    (
        "mbi==2.0.0",
        "jax==0.10.2",
        "jaxlib==0.10.2",
        "networkx==3.6.1",
        "optax==0.2.8",
        "chex==0.1.92",
        *DEPENDENCIES,
    ),
)


def release(name, estimator, table, epsilon, delta, seed):
    """Rows of MST, or of AIM with all three-way marginals for a workload. All that is drawn is seeded.

    Args:
        name: MST, AIM or annealed AIM.
        estimator: whose fits, mbi or ours; rows are by the same.
        table: the data.
        epsilon, delta: privacy target.
        seed: of noise, selections and rows.
    """
    from . import mechanisms as here

    mechanisms = {
        "MST": here.MST,
        "AIM": here.AIM,
        "annealed AIM": here.AnnealedAIM,
    }
    mbi = here.Mbi()
    # Both estimators' models draw rows from NumPy's global state.
    np.random.seed(seed)  # noqa: NPY002
    return (
        mechanisms[name](
            table, mbi, mbi.estimators()[estimator], None, rho_of(epsilon, delta), seed
        )
        .run()
        .codes
    )

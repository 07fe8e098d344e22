"""Mechanisms of OpenDP: ``opendp.extras.mbi``, on mbi 1.1."""

import tempfile
from pathlib import Path

import numpy as np

from .environment import Environment
from .zcdp import rho_of

# Of MST; by a simulation of its sums, one in three to six is let through at 14 to 16 columns.
ATTEMPTS = 20

OPENDP = Environment(
    "opendp",
    (
        "opendp[mbi]==0.16.0",
        "mbi==1.1.0",
        "jax==0.10.2",
        "jaxlib==0.10.2",
        "numpy==2.4.6",
        "scipy==1.17.1",
        "polars==1.36.1",
        "pyarrow==26.0.1",
        "pandas==3.1.1",
        "networkx==3.6.1",
        "optax==0.2.8",
        "chex==0.1.92",
        "scikit-learn==1.9.1",
        "randomgen==2.5.1",
    ),
)


def release(name, table, epsilon, delta, seed):
    """Rows of a contingency table that an algorithm of ``dp.mbi`` releases, as it is set up by default.

    OpenDP draws its noise from the system's entropy; the seed is for nulls alone.
    """
    import jax

    jax.config.update("jax_enable_x64", True)
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    # OpenDP serialises its query some thousand times while it looks for noise scales: a file's name, not its content.
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "table.parquet"
        pl.DataFrame(
            dict(zip(table.names, table.codes.astype(np.int64), strict=True))
        ).write_parquet(file)
        keys = {a: list(range(size)) for a, size in zip(table.names, table.sizes, strict=True)}
        algorithm = getattr(dp.mbi, name)()
        released = within_budget(pl.scan_parquet(file), keys, algorithm, rho_of(epsilon, delta))
    # Not its default, rounded counts: mbi 1.1 deals those to the records of a group always in the same order (on_smartnoise.py).
    made = released.synthesize(rows=table.records, method="sample")
    rng = np.random.default_rng(seed)
    return np.stack([without_nulls(made[a].to_list(), rng) for a in table.names])


def within_budget(frame, keys, algorithm, rho):
    """A contingency table released at rho, or at a billionth less for each time that OpenDP refuses it.

    Its parts can add up to the last digit more than it gives itself, and it then stops before anybody sees anything:
    "insufficient budget for query: 0.0012226854401645602 > 0.00122268544016456".
    """
    import opendp.prelude as dp

    for attempt in range(ATTEMPTS):
        spent = rho * (1 - attempt * 1e-9)
        context = dp.Context.compositor(
            data=frame, privacy_unit=dp.unit_of(contributions=1), privacy_loss=dp.loss_of(rho=spent)
        )
        try:
            return (
                context.query(rho=spent).contingency_table(keys=keys, algorithm=algorithm).release()
            )
        except dp.OpenDPException as error:
            if "insufficient budget" not in str(error):
                raise
    raise RuntimeError(f"OpenDP found its own budget insufficient {ATTEMPTS} times.")


def without_nulls(column, rng):
    """OpenDP adds a key for nulls, which no record has and noise may fill: they become values of other rows."""
    values = np.array([-1 if value is None else value for value in column], np.int64)
    null = values < 0
    values[null] = rng.choice(values[~null], int(null.sum()))
    return values.astype(np.uint16)

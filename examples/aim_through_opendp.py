"""OpenDP's AIM, fitted by this library's engine instead of mbi's: one argument differs.

    pip install 'vertimrf[opendp]' && python examples/aim_through_opendp.py [--rows 2000] [--rho 0.5] [--estimator mbi]

OpenDP counts, draws the noise and accounts for it; the engine fits the model to what has been released. The table is made up.
"""

from __future__ import annotations

import argparse

import numpy as np
import opendp.prelude as dp
import polars as pl

from vertimrf.adapters.opendp import estimator


def made_up(rows: int) -> pl.LazyFrame:
    """A table whose columns follow a hidden type."""
    rng = np.random.default_rng(0)
    hidden = rng.random(rows)
    sizes = {"age": 6, "job": 4, "income": 4, "home": 3}
    mixed = {name: np.where(rng.random(rows) < 0.7, hidden, rng.random(rows)) for name in sizes}
    return pl.LazyFrame({name: (x * sizes[name]).astype(np.int64) for name, x in mixed.items()})


def main(arguments: list[str] | None = None) -> None:
    """Release a contingency table and print a marginal and some rows of it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--rho", type=float, default=0.5)
    parser.add_argument("--estimator", choices=("vertimrf", "mbi"), default="vertimrf")
    options = parser.parse_args(arguments)
    dp.enable_features("contrib")

    # The one line: leave `estimator` out for mbi's own.
    algorithm = (
        dp.mbi.AIM(queries=2)
        if options.estimator == "mbi"
        else dp.mbi.AIM(queries=2, estimator=estimator)
    )

    context = dp.Context.compositor(
        data=made_up(options.rows),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(rho=options.rho),
    )
    keys = {
        "age": list(range(6)),
        "job": list(range(4)),
        "income": list(range(4)),
        "home": list(range(3)),
    }
    table = (
        context.query(rho=options.rho).contingency_table(keys=keys, algorithm=algorithm).release()
    )
    print(np.asarray(table.project(("income", "home"))).round(1))
    print(table.synthesize(rows=5))
    print(
        f"{len(table.marginals.flatten())} noisy marginals fitted by {type(table.model).__module__}"
    )


if __name__ == "__main__":
    main()

"""Mechanisms of SmartNoise: ``smartnoise-synth``, on mbi 1.1."""

import numpy as np

from .environment import Environment

SMARTNOISE = Environment(
    "smartnoise",
    (
        "smartnoise-synth==1.0.8",
        "smartnoise-sql==1.0.10",
        "opendp==0.14.2",
        "mbi==1.1.0",
        "jax==0.10.2",
        "jaxlib==0.10.2",
        "numpy==2.4.6",
        "scipy==1.17.1",
        "pandas==2.3.3",
        "pyarrow==26.0.1",
        "networkx==3.6.1",
        "optax==0.2.8",
        "chex==0.1.92",
        "opacus==0.14.0",
        "torch==2.13.0",
    ),
)


class Independent:
    """A model whose rows are drawn independently.

    What SmartNoise asks for are rounded counts; mbi 1.1 deals those to the records of a group always in the same order, so that
    columns which have a parent in common rise together, whatever the model says.
    """

    def __init__(self, model):
        self.model = model

    def synthetic_data(self, rows):
        """As mbi's, of independent rows."""
        return self.model.synthetic_data(rows, method="sample")


def release(name, table, epsilon, delta, seed, **options):
    """Rows of a synthesizer, its transformer fitted to the public domain. SmartNoise draws from NumPy's global generator."""
    import pandas as pd
    from snsynth import Synthesizer
    from snsynth.transform import LabelTransformer, TableTransformer

    np.random.seed(seed)  # noqa: NPY002
    every = range(max(table.sizes))
    domain = pd.DataFrame(
        {a: np.minimum(every, size - 1) for a, size in zip(table.names, table.sizes, strict=True)}
    )
    transformer = TableTransformer([LabelTransformer(nullable=False) for _ in table.names])
    transformer.fit(domain)
    frame = pd.DataFrame(dict(zip(table.names, table.codes.astype(np.int64), strict=True)))
    mechanism = Synthesizer.create(name, epsilon=epsilon, delta=delta, **options)
    mechanism.fit(frame, transformer=transformer, preprocessor_eps=0.0)
    mechanism.synthesizer = Independent(mechanism.synthesizer)
    made = mechanism.sample(table.records)
    return np.asarray(made[list(table.names)], np.uint16).T

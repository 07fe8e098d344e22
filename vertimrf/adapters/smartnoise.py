"""The central synthesizer behind SmartNoise's interface.

:class:`VertiMRFSynthesizer` takes the place of its MST or AIM.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import snsynth

from ..columns.column import Attribute
from ..errors import ModelError, PlanError
from ..plan.options import PlanOptions
from ..plan.schema import Schema
from ..synthesizer import Synthesizer


class VertiMRFSynthesizer(snsynth.Synthesizer):
    """A SmartNoise synthesizer of categorical and ordinal columns (:class:`vertimrf.Synthesizer`).

    SmartNoise's transformer gives the columns their domains. The guarantee does not cover what it
    reads from the data without a budget (the values that occur), as with SmartNoise's synthesizers.
    If that matters, give it constraints, or codes.

    Args:
        epsilon: privacy target, add/remove one record. What the transformer spends is subtracted.
        delta: privacy target. Default: that of :class:`vertimrf.Synthesizer`.
        expected_records: public order of magnitude of the number of records. None: a noisy count is
            used.
    """

    def __init__(
        self, epsilon: float = 1.0, delta: float | None = None, expected_records: int | None = None
    ) -> None:
        self.epsilon = float(epsilon)
        self.delta = delta
        self.expected_records = expected_records
        self.synthesizer: Synthesizer | None = None

    def fit(
        self,
        data: Any,
        *ignore: Any,
        transformer: Any = None,
        categorical_columns: Any = (),
        ordinal_columns: Any = (),
        continuous_columns: Any = (),
        preprocessor_eps: float = 0.0,
        nullable: bool = False,
    ) -> None:
        """Measure the data with noise and fit the model; arguments as in SmartNoise.

        Raises:
            PlanError: the transformer leaves a column continuous.
        """
        coded = self._get_train_data(
            data,
            style="cube",
            transformer=transformer,
            categorical_columns=list(categorical_columns),
            ordinal_columns=list(ordinal_columns),
            continuous_columns=list(continuous_columns),
            nullable=nullable,
            preprocessor_eps=preprocessor_eps,
        )
        sizes = self._transformer.cardinality
        if any(size is None for size in sizes):
            raise PlanError(
                "The transformer leaves some columns continuous: have them binned, or name them as categorical."
            )
        names = [f"column{i}" for i in range(len(sizes))]
        schema = Schema.of(
            {
                "holder": [
                    Attribute.integer(name, int(size))
                    for name, size in zip(names, sizes, strict=True)
                ]
            }
        )
        table = pa.table(dict(zip(names, np.array(coded, np.int64).T, strict=True)))
        made = Synthesizer(
            schema, planning=PlanOptions(expected_records=self.expected_records, delta=self.delta)
        )
        self.synthesizer = made.fit(table, epsilon=self.epsilon)

    def sample(self, n_rows: int | None = None) -> Any:
        """Draw rows in the form of the fitted data; by default as many as the noisy record count.

        Raises:
            ModelError: nothing was fitted.
        """
        if self.synthesizer is None:
            raise ModelError("The synthesizer has not been fitted: call fit(data).")
        rows = self.synthesizer.sample(n_rows)
        return self._transformer.inverse_transform(
            list(zip(*(column.to_pylist() for column in rows.columns), strict=True))
        )

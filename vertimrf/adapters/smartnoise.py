"""The central synthesizer behind SmartNoise's interface.

:class:`VertiMRFSynthesizer` takes the place of its MST or AIM.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
import pyarrow as pa
import snsynth
from snsynth.transform import BinTransformer, ChainTransformer, DropTransformer, LabelTransformer
from snsynth.transform.anonymization import AnonymizationTransformer
from snsynth.transform.table import TableTransformer

from ..columns.column import Attribute
from ..errors import ModelError, PlanError, VertiMRFError
from ..plan.options import PlanOptions
from ..plan.schema import Schema
from ..privacy.events import GeometricEvent
from ..privacy.ledger import LedgerEntry
from ..synthesizer import Synthesizer

REMEDY = (
    "give transformer={column: ListedTransformer(values)}, BinTransformer(lower=, upper=) for numbers, or a TableTransformer that was "
    "fitted to public data"
)


class ListedTransformer(LabelTransformer):  # type: ignore[misc]
    """A categorical column whose values are public: it learns nothing from data.

    Args:
        values: the values, distinct. Records with others are left out.
        nullable: whether missing values are one value more.

    Raises:
        PlanError: there are no values, or some are equal.

    Example:
        >>> VertiMRFSynthesizer(1.0).fit(  # doctest: +SKIP
        ...     frame, transformer={"smoker": ListedTransformer(["no", "yes"])}
        ... )
    """

    def __init__(self, values: Sequence[Any], nullable: bool = False) -> None:
        self.values = [*values, *([None] if nullable else [])]
        if not values or len(set(self.values)) < len(self.values):
            raise PlanError(
                f"A listed column needs distinct values, not {len(values)} with repeats."
            )
        super().__init__(nullable)

    def _fit(self, val: Any) -> None:
        """Values of the data are not looked at."""

    def _fit_finish(self) -> None:
        """There is nothing to finish."""

    def _clear_fit(self) -> None:
        self.categories = list(self.values)
        self.labels = {value: code for code, value in enumerate(self.values)}
        self.category, self.output_width, self._fit_complete = len(self.values), 1, True


class VertiMRFSynthesizer(snsynth.Synthesizer):  # type: ignore[misc]
    """A SmartNoise synthesizer of categorical and ordinal columns (:class:`vertimrf.Synthesizer`).

    SmartNoise's transformer gives the columns their domains. Where it reads these from the data
    without a budget, as it does for categorical columns without constraints, the ledger and the
    model say *not private*. A domain is public if the caller gives it: by
    :class:`ListedTransformer`, by bounds of a ``BinTransformer``, or by a ``TableTransformer`` that
    is fitted already. What the transformer has spent is an entry of the ledger, and part of epsilon.

    Args:
        epsilon: privacy target, add/remove one record, with what the transformer spends.
        delta: privacy target. Default: that of :class:`vertimrf.Synthesizer`.
        expected_records: public order of magnitude of the number of records. None: a noisy count is
            used.

    Attributes:
        dropped: number of records that the last fit left out because the transformer cannot read
            them. It is exact: keep it private.
    """

    def __init__(
        self, epsilon: float = 1.0, delta: float | None = None, expected_records: int | None = None
    ) -> None:
        self.epsilon = float(epsilon)
        self.delta = delta
        self.expected_records = expected_records
        self.synthesizer: Synthesizer | None = None
        self.dropped = 0

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

        Records that the transformer cannot read are left out one by one.

        Raises:
            PlanError: the transformer leaves a column continuous, needs a budget that is not given,
                or finds no bounds with it.
        """
        lists = [list(categorical_columns), list(ordinal_columns), list(continuous_columns)]
        made = _transformer(data, transformer, lists, nullable)
        public = _known(made, transformer, lists, data)
        _fit(made, data, preprocessor_eps)
        self._transformer = made
        sizes = made.cardinality
        if any(size is None for size in sizes):
            raise PlanError(
                "The transformer leaves some columns continuous: have them binned, or name them as categorical."
            )
        coded = _coded(made, data)
        self.dropped = len(data) - len(coded)
        names = [f"column{i}" for i in range(len(sizes))]
        columns = [
            Attribute.integer(name, int(size)) for name, size in zip(names, sizes, strict=True)
        ]
        spent = _spent(made)
        schema = replace(Schema.of({"holder": columns}, public=public), spent=spent)
        codes = np.array(coded, np.int64).reshape(-1, len(names))
        table = pa.table(dict(zip(names, codes.T, strict=True)))
        planning = PlanOptions(expected_records=self.expected_records, delta=self.delta)
        try:
            self.synthesizer = Synthesizer(schema, planning=planning).fit(
                table, epsilon=self.epsilon
            )
        except VertiMRFError as error:
            if not spent:
                raise
            raise type(error)(
                f"{error} The transformer spent epsilon {made.odometer.spent[0]:.4g} on bounds before this, which counts; to fit it "
                "again spends again."
            ) from None

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


def _transformer(data: Any, given: Any, lists: Sequence[list[Any]], nullable: bool) -> Any:
    """The transformer of a table, not fitted unless it was given so."""
    if isinstance(given, TableTransformer):
        return given
    if not isinstance(given, dict | None):
        raise PlanError(
            f"transformer is a {type(given).__name__}; give a TableTransformer, or constraints by column."
        )
    categorical, ordinal, continuous = lists
    return TableTransformer.create(
        data,
        style="cube",
        nullable=nullable,
        categorical_columns=categorical,
        ordinal_columns=ordinal,
        continuous_columns=continuous,
        constraints=given,
    )


def _known(made: Any, given: Any, lists: Sequence[list[Any]], data: Any) -> bool:
    """Whether nothing is read from the data without a budget: neither kinds of columns nor values."""
    if isinstance(given, TableTransformer):
        return given.fit_complete or all(map(_asks_nothing, made.transformers))
    columns = list(data.columns) if hasattr(data, "columns") else range(len(made.transformers))
    named = {*(given or {}), *(name for names in lists for name in names)}
    return {*columns} <= named and all(map(_asks_nothing, made.transformers))


def _asks_nothing(transformer: Any) -> bool:
    """Whether a column's domain is given, or is paid for: bins without bounds need a budget."""
    if isinstance(transformer, ChainTransformer):
        return all(map(_asks_nothing, transformer.transformers))
    kinds = (ListedTransformer, BinTransformer, DropTransformer, AnonymizationTransformer)
    return isinstance(transformer, kinds)


def _fit(made: Any, data: Any, epsilon: float) -> None:
    """Fit a transformer that is not fitted."""
    if made.fit_complete:
        return
    if made.needs_epsilon and not epsilon:
        raise PlanError(
            f"The transformer needs a budget to find bounds: give preprocessor_eps, or {REMEDY}."
        )
    bounded = [i for i, one in enumerate(made.transformers) if one.needs_epsilon]
    rows = [row for row in map(tuple, _rows(data)) if all(_number(row[i]) for i in bounded)]
    try:
        made.fit(rows, epsilon=epsilon)
    except (ValueError, TypeError, ArithmeticError) as error:
        # What it says may quote cells.
        raise PlanError(
            f"SmartNoise's transformer cannot be fitted ({type(error).__name__}); what it spent counts, at most epsilon {epsilon:g}: {REMEDY}."
        ) from None


def _coded(made: Any, data: Any) -> list[tuple[Any, ...]]:
    """The records as codes, without those that the transformer cannot read."""
    # It takes names of columns and the type from data without records.
    made.transform(data[:0])
    out = []
    for row in _rows(data):
        try:
            out.append(made._transform(tuple(row)))
        except (LookupError, TypeError, ValueError, ArithmeticError):
            continue
    return out


def _rows(data: Any) -> Iterator[Any]:
    """The rows of a data frame, an array or a list of tuples."""
    return iter(data.itertuples(index=False) if hasattr(data, "itertuples") else data)


def _number(cell: Any) -> bool:
    """Whether a search for bounds can use a cell: a finite number, or none."""
    return cell is None or (isinstance(cell, Real) and not math.isinf(cell))


def _spent(made: Any) -> tuple[LedgerEntry, ...]:
    """The ledger entry of what a transformer has spent on bounds."""
    epsilon = float(made.odometer.spent[0])
    if epsilon <= 0:
        return ()
    event = GeometricEvent(1 / epsilon, 1)
    what, noise = "bounds, by SmartNoise's transformer", f"SmartNoise's, epsilon {epsilon:.4g}"
    return (LedgerEntry(event, "holder", what, noise),)

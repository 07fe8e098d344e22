"""The central synthesizer: one table at one holder, with the same local model, fit and sampling as the protocol's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .clock import Clock
from .errors import MessageError, ModelError, NoMassError, SchemaError, VertiMRFError
from .files import container
from .kernels.jit import threads
from .model.markov_random_field import MarkovRandomField
from .model.sample import sample
from .options import RunOptions
from .party.party import Party
from .party.secret import Secret
from .plan.defaults import TAU
from .plan.plan import check_target
from .plan.schema import Attribute, Schema
from .privacy.ledger import Ledger
from .progress import Progress, Silent
from .server.rows import decode
from .server.server import Server
from .tables.arrow import Source, read_arrow
from .tables.infer import infer_schema
from .tables.table import encode_columns, encode_table
from .trial import Planning, plan_for

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Synthesizer"]

KIND = "synthesizer"


@dataclass(frozen=True, eq=False)
class Fitted:
    """What a fit releases, and nothing else: all of it follows from the ledger's events.

    Attributes:
        schema: the domains.
        model: of the table's noisy marginals.
        ledger: every event of the fit, and the composed (epsilon, delta).
        seconds: wall time per phase; it follows the data, and is not saved.
    """

    schema: Schema
    model: MarkovRandomField
    ledger: Ledger
    seconds: Mapping[str, float]


class Synthesizer:
    """Synthetic rows of one table that one holder has, with (epsilon, delta) differential privacy.

    Marginals are measured with noise under a plan of one party, a Markov random field is fitted to them, and rows are drawn from
    it. Every fit is a release: fits to the same people's records add up (``Ledger.together``).

    Args:
        schema: public domains of the columns, whoever holds them; inferred from the data when None, and the ledger then says
            that the result is not private.
        id: the column of record ids, which is left out; without one every row is a record of its own.
        expected_records: public order of magnitude; when None a noisy count, itself an event of the ledger, takes its place,
            and delta is 1e-10 unless it is given.
        tau: limit on the cells of a clique of the model.
        workload: marginals that matter most, each a list of columns, all alike or with a weight each (see
            :func:`vertimrf.make_plan`); None has all alike.
        num_threads: threads for the kernels; None leaves the setting as it is. Results do not depend on it.
        progress: told of each step as it starts.

    Example:
        >>> import pandas as pd
        >>> from vertimrf import Attribute, Schema, Synthesizer
        >>> schema = Schema.of({"all": [Attribute.integer("age", 3), Attribute.categorical("smoker", ["no", "yes"])]})
        >>> table = pd.DataFrame({"age": [0, 1, 2, 1] * 500, "smoker": ["no", "yes", "no", "yes"] * 500})
        >>> synthesizer = Synthesizer(schema).fit(table, epsilon=1.0)
        >>> synthesizer.ledger.epsilon <= 1.0
        True
        >>> synthesizer.sample(3, given={"smoker": "yes"})["smoker"].to_pylist()
        ['yes', 'yes', 'yes']
    """

    def __init__(
        self,
        schema: Schema | None = None,
        *,
        id: str | None = None,
        expected_records: int | None = None,
        tau: int = TAU,
        workload: Mapping[Sequence[str], float] | Sequence[Sequence[str]] | None = None,
        num_threads: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        self._params: dict[str, Any] = {
            "schema": schema,
            "id": id,
            "expected_records": expected_records,
            "tau": tau,
            "workload": workload,
            "num_threads": num_threads,
            "progress": progress,
        }
        self._fitted: Fitted | None = None

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """What the synthesizer was made with, as scikit-learn asks for it (``deep`` changes nothing)."""
        return dict(self._params)

    def fit(self, table: Source, *, epsilon: float, delta: float | None = None) -> Synthesizer:
        """Measure a table with noise, and fit the model.

        Args:
            table: a file (CSV, Parquet, Arrow), or a pandas or polars frame, Arrow table, or the like.
            epsilon: privacy target of the whole fit, add/remove one record.
            delta: target; default 1 / expected_records squared, at most 1e-6.

        Returns:
            The synthesizer itself.

        Raises:
            TableError, SchemaError: a table that cannot be read, or does not fit the schema.
            PlanError, PrivacyError: a target that cannot be met.
        """
        check_target(epsilon, delta)
        params = self._params
        options = RunOptions(num_threads=params["num_threads"], progress=params["progress"] or Silent())
        clock = Clock()
        options.progress.step("reading")
        with clock("reading"):
            read = read_arrow(table)
            schema = pooled(params["schema"] or infer_schema([read], params["id"]))
            name = str(table) if isinstance(table, str | Path) else "The table"
            records = encode_table(read, params["id"], schema.attributes, name)
        options.progress.step("planning")
        with clock("planning"):
            planning: Planning = {"delta": delta, "tau": params["tau"], "workload": params["workload"]}
            plan = plan_for(schema, records.records, epsilon, params["expected_records"], **planning)
        options.progress.step("measuring")
        # With one party there are no sketches, and so nothing that a secret would key.
        message = Party(plan, plan.party_names[0], Secret.new(), clock=clock, options=options).run(records)
        first = Server(plan, options).read([message])
        self._fitted = Fitted(schema, first.initial, plan.ledger(), {**clock.seconds, **first.seconds})
        return self

    @property
    def schema(self) -> Schema:
        """The domains that the fit went by."""
        return self._fit().schema

    @property
    def model(self) -> MarkovRandomField:
        """The fitted Markov random field, attributes by their position in the schema."""
        return self._fit().model

    @property
    def ledger(self) -> Ledger:
        """Every event of the fit, and the composed (epsilon, delta)."""
        return self._fit().ledger

    @property
    def seconds(self) -> Mapping[str, float]:
        """Wall time of the fit per phase; empty after loading. It follows the data, and no noise covers it: keep it."""
        return self._fit().seconds

    def sample(self, rows: int | None = None, *, given: Mapping[str, Any] | None = None, seed: int | None = None) -> pa.Table:
        """Draw synthetic rows, in the schema's original values.

        Args:
            rows: how many; default the noisy record count, or under ``given`` about as many of the records as it holds for.
            given: a value by column, or a list of values of which any will do; all rows have them. Numbers stand for the bin
                that they lie in.
            seed: of this draw; None means fresh entropy. Privacy does not depend on it.

        Raises:
            SchemaError: a column or a value that the schema does not have.
            ModelError: fewer than 1 row.
            NoMassError: the model has no records that fulfil the condition.
        """
        fitted = self._fit()
        rng = np.random.default_rng(seed)
        kept = {fitted.schema.index(name): self._codes(name, value) for name, value in (given or {}).items()}
        with threads(self._params["num_threads"]):
            try:
                wanted = max(round(fitted.model.restricted(kept).total), 1) if rows is None else rows
                codes = sample(fitted.model, wanted, rng, kept)
            except NoMassError:
                asked = " and ".join(f"{name} = {value!r}" for name, value in (given or {}).items())
                raise NoMassError(f"The model has no records with {asked}; ask for other values.") from None
        return decode(codes, fitted.schema.attributes, rng)

    def marginal(self, columns: str | Sequence[str]) -> npt.NDArray[np.float64]:
        """Expected counts of the values of some columns.

        Args:
            columns: distinct column names, or one.

        Returns:
            Counts [one axis per column in the order given, along it the codes of its attribute in the schema; float64].

        Raises:
            SchemaError: a column that the schema does not have.
            ModelError: columns repeat, or the table would be too large.
        """
        names = [columns] if isinstance(columns, str) else list(columns)
        with threads(self._params["num_threads"]):
            return self._fit().model.marginal([self._fit().schema.index(name) for name in names])

    def to_json(self) -> dict[str, Any]:
        """Privacy spent and model size, JSON-able; no timings."""
        fitted = self._fit()
        names = fitted.schema.names
        return {
            "epsilon": fitted.ledger.epsilon,
            "delta": fitted.ledger.delta,
            "private": fitted.ledger.private,
            "standing": fitted.ledger.standing.to_json(),
            "ledger": fitted.ledger.to_json()["entries"],
            "cliques": [[names[i] for i in clique] for clique in fitted.model.tree.cliques],
            "junction_tree_cells": int(fitted.model.tree.cells),
        }

    def save(self, path: str | Path) -> None:
        """Write what was fitted, with its schema and ledger (versioned, checksummed, no pickle)."""
        fitted = self._fit()
        model, arrays = fitted.model.parts()
        kept = {name: self._params[name] for name in ("id", "expected_records", "tau")}
        header = {
            "standing": fitted.ledger.standing.to_json(),
            "params": kept,
            "schema": fitted.schema.to_json(),
            "ledger": fitted.ledger.to_json(),
            "model": model,
        }
        container.write(path, container.pack(KIND, header, arrays))

    @classmethod
    def load(cls, path: str | Path) -> Synthesizer:
        """Read a saved synthesizer back.

        Raises:
            MessageError: the file cannot be read, is truncated or altered, or is no synthesizer.
        """
        header, arrays = container.unpack(container.read(path), KIND, str(path))
        try:
            schema = Schema.from_json(header["schema"])
            model = MarkovRandomField.of_parts(header["model"], arrays)
            if model.sizes != schema.sizes:
                raise SchemaError("its model and its schema differ")
            made = cls(schema, **header["params"])
            made._fitted = Fitted(schema, model, Ledger.from_json(header["ledger"]), {})
        except (KeyError, TypeError, ValueError, IndexError) as error:
            detail = str(error).rstrip(".") if isinstance(error, VertiMRFError) else error
            raise MessageError(f"{path} is malformed ({detail}).") from None
        return made

    def _fit(self) -> Fitted:
        if self._fitted is None:
            raise ModelError("The synthesizer has not been fitted: call fit(table, epsilon=...), or load a saved one.")
        return self._fitted

    def _codes(self, name: str, value: Any) -> npt.NDArray[np.uint16]:
        """Codes of a value, or of a list of values, of a column."""
        import pyarrow as pa

        attribute: Attribute = self._fit().schema.attributes[self._fit().schema.index(name)]
        values = list(value) if isinstance(value, list | tuple | set | frozenset | range) else [value]
        if not values:
            raise SchemaError(f"Column {name!r} is given no value; name at least one.")
        try:
            column = pa.table({name: pa.array([v.item() if isinstance(v, np.generic) else v for v in values])})
        except pa.ArrowException:
            raise SchemaError(f"Column {name!r} is given {value!r}, which are not values of one kind.") from None
        return np.unique(encode_columns(column, [attribute], "The condition")[0])


def pooled(schema: Schema) -> Schema:
    """The same domains at one holder."""
    return schema if len(schema.parties) == 1 else replace(schema, parties=(("holder", schema.names),))

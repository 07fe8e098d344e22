"""The central synthesizer for one table at one holder.

It uses the local model, fit and sampling of the protocol.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import __version__
from .arguments import TEXT, instance, maybe, takes
from .arrays import Fields, Floats
from .errors import ModelError, PlanError, SchemaError
from .files.notebook import as_html
from .kernels.jit import threads
from .named_model import Model
from .options import RunOptions
from .party.before_plan import drawn_before, saying_run_spent, saying_spent
from .party.party import Party
from .party.secret import Secret
from .plan.open_schema import OpenSchema
from .plan.options import DEFAULT as PLANNING
from .plan.options import PlanOptions, flag
from .plan.schema import Schema
from .plan.verdict import stated
from .privacy.ledger import Ledger
from .progress import Clock
from .server.fine import shapes_inside
from .server.parts import PartModel
from .server.released_figures import known_pairs, of_links
from .server.server import Server
from .tables.dropped import NONE, Dropped
from .tables.read_options import DEFAULT, ReadOptions
from .tables.sources import Source
from .trial import read_and_plan

if TYPE_CHECKING:
    import pyarrow as pa

# Options of a plan that only matter with several parties.
ACROSS = (
    "encoder",
    "claim_as_published",
    "keys",
    "message_bytes",
    "collusion_epsilon",
    "population",
)


def check_alone(planning: PlanOptions) -> None:
    """Refuse options that have no meaning for one holder.

    Raises:
        PlanError: such an option is given.
    """
    if not isinstance(planning, PlanOptions):
        raise PlanError(f"planning is a {type(planning).__name__}; give a PlanOptions.")
    for option in fields(planning):
        if option.name in ACROSS and getattr(planning, option.name) != option.default:
            # Options without help are not on the command line.
            name = option.name + (f" ({flag(option.name)})" if option.metadata else "")
            raise PlanError(
                f"{name} has no meaning for one holder of all columns: leave it out, or name the parties in the schema."
            )


class Synthesizer:
    """Synthesizer of one table at one holder, with (epsilon, delta) differential privacy.

    A fit measures marginals with noise under a plan of one party, and fits a Markov random field to
    them. Rows are drawn from this model. Every fit is a release: several fits to the same people's
    records add up (``Ledger.together``).

    Args:
        schema: public domains of the columns, or domains to be found with noise (``OpenSchema``).
            None infers them from the data; the ledger then says that the result is not private. The
            parties of a schema do not matter.
        id: column of record ids, which is left out of the result. Without one every row is its own
            record.
        planning: options of the plan. Options of messages, sketches and populations have no meaning
            here and are refused. Without ``expected_records`` a noisy count is used, which is an
            event of the ledger.
        read: how the table is read.
        options: threads and progress. Rows and seed are arguments of :meth:`sample`.

    Example:
        >>> import pandas as pd
        >>> from vertimrf import Attribute, Schema, Synthesizer
        >>> smoker = Attribute.categorical("smoker", ["no", "yes"])
        >>> schema = Schema.of({"all": [Attribute.integer("age", 3), smoker]})
        >>> rows = {"age": [0, 1, 2, 1] * 500, "smoker": ["no", "yes", "no", "yes"] * 500}
        >>> table = pd.DataFrame(rows)
        >>> synthesizer = Synthesizer(schema).fit(table, epsilon=1.0)
        >>> synthesizer.ledger.epsilon <= 1.0
        True
        >>> synthesizer.sample(3, given={"smoker": "yes"})["smoker"].to_pylist()
        ['yes', 'yes', 'yes']
    """

    @takes(
        PlanError,
        id=maybe(TEXT),
        read=instance("ReadOptions"),
        options=maybe(instance("RunOptions")),
    )
    def __init__(
        self,
        schema: Schema | OpenSchema | None = None,
        *,
        id: str | None = None,
        planning: PlanOptions = PLANNING,
        read: ReadOptions = DEFAULT,
        options: RunOptions | None = None,
    ) -> None:
        check_alone(planning)
        if not isinstance(schema, Schema | OpenSchema | None):
            raise SchemaError(
                f"The schema is a {type(schema).__name__}; give a Schema, as Schema.load reads it."
            )
        self._params: Fields = {
            "schema": schema,
            "id": id,
            "planning": planning,
            "read": read,
            "options": options,
        }
        self._fitted: Model | None = None
        self._figures: Fields = {}
        self._seconds: Mapping[str, float] = {}
        self._dropped = NONE

    def __repr__(self) -> str:
        return f"<Synthesizer of {self._fitted or 'a table: call fit(table, epsilon=...)'}>"

    def _repr_html_(self) -> str:
        return as_html(self, self._fitted.summary() if self._fitted else "")

    def get_params(self, deep: bool = True) -> Fields:
        """The arguments of the constructor, for scikit-learn. ``deep`` has no effect."""
        return dict(self._params)

    @property
    def _options(self) -> RunOptions:
        options: RunOptions | None = self._params["options"]
        return options or RunOptions()

    def fit(self, table: Source, *, epsilon: float) -> Synthesizer:
        """Measure a table with noise, and fit the model.

        Records that do not fit the schema are left out one by one, and :attr:`dropped` counts them,
        for the holder only. If none fits, there is an error: show nobody else whether a fit
        succeeds.

        Args:
            table: a file (CSV, Parquet, Arrow), a pandas or polars frame, an Arrow table, or the
                like.
            epsilon: privacy target of the whole fit, add/remove one record.

        Returns:
            The synthesizer itself.

        Raises:
            TableError, SchemaError: the table cannot be read, lacks a column of the schema, or has
                no record that fits.
            PlanError, PrivacyError: the target cannot be met.
        """
        params = self._params
        planning: PlanOptions = params["planning"]
        read, options = params["read"], self._options
        clock = Clock()
        plan, (records,) = read_and_plan(
            [table], params["id"], epsilon, pooled(params["schema"]), planning, read, options, clock
        )
        schema = plan.schema
        options.progress.step("measuring")
        # One party publishes no sketches, so the secret has no use.
        with saying_spent(drawn_before(plan, params["schema"])):
            party = Party(plan, plan.party_names[0], Secret.new(), clock=clock, options=options)
            message = party.run(records)
        server = Server(plan, options)
        with saying_run_spent(plan.ledger()):
            first = server.read([message])
            fitted, figures = server.fit(first, clock)
        evidence, noise = figures.evidence, figures.noise
        shapes = shapes_inside(plan, [message], [PartModel(plan.party_names, fitted)])
        self._fitted = Model(schema, fitted, plan.ledger(), (), evidence, noise, shapes)
        self._figures = {
            "version": __version__,
            "date": date.today().isoformat(),
            "expected_records": plan.expected_records,
            **stated(plan),
            "workload": list(plan.workload.in_words(schema)),
            "parties": {plan.party_names[0]: list(schema.names)},
            "warnings": list(of_links(schema, evidence)),
            "known": known_pairs(schema, evidence),
            "found": figures.to_json(plan, fitted.total),
        }
        self._seconds = {**clock.seconds, **first.seconds}
        self._dropped = records.dropped
        return self

    @property
    def schema(self) -> Schema:
        """The domains of the fit."""
        return self._fit().schema

    @property
    def model(self) -> Model:
        """The fitted model, with the schema and the ledger."""
        return self._fit()

    @property
    def ledger(self) -> Ledger:
        """Every event of the fit, and the composed (epsilon, delta)."""
        return self._fit().ledger

    @property
    def seconds(self) -> Mapping[str, float]:
        """Wall time of the fit by phase, seconds.

        Empty after loading. It depends on the data without noise: keep it private.
        """
        return self._seconds

    @property
    def dropped(self) -> Dropped:
        """Records that do not fit, which the fit left out.

        None after loading. The counts are exact: keep them private.
        """
        return self._dropped

    def sample(
        self,
        num_rows: int | None = None,
        *,
        given: Mapping[str, Any] | None = None,
        seed: int | None = None,
        plain: bool = False,
    ) -> pa.Table:
        """Draw synthetic rows, as :meth:`vertimrf.Model.sample` does.

        Args:
            num_rows: number of rows. Default: the expected number of records.
            given: condition that all rows fulfil, by column: a value, a list of values, or limits.
            seed: seed of this draw. None means fresh entropy.
            plain: give plain numbers, and dates and times as these. By default cells of a column
                with a format, such as "31/12/2019", are texts in it.

        Returns:
            The rows.
        """
        with threads(self._options.num_threads):
            return self._fit().sample(num_rows, given=given, seed=seed, plain=plain)

    def marginal(self, columns: str | Sequence[str]) -> Floats:
        """Expected counts of values of some columns, as from :meth:`vertimrf.Model.marginal`."""
        with threads(self._options.num_threads):
            return self._fit().marginal(columns)

    def to_json(self) -> Fields:
        """The privacy spent, the size of the model and, after a fit, what was measured.

        JSON-able, without timings.
        """
        return self._fit().to_json() | self._figures

    def save(self, path: str | Path) -> None:
        """Write the fitted model to a file, which :meth:`vertimrf.Model.load` reads too."""
        self._fit().save(path)

    @classmethod
    def load(cls, path: str | Path) -> Synthesizer:
        """A fitted synthesizer from a saved model.

        Its parameters are the defaults, except for the schema.

        Raises:
            MessageError: the file cannot be read, is truncated or altered, or is not a model.
        """
        model = Model.load(path)
        made = cls(model.schema)
        made._fitted = model
        return made

    def _fit(self) -> Model:
        if self._fitted is None:
            raise ModelError(
                "The synthesizer has not been fitted: call fit(table, epsilon=...), or load a saved one."
            )
        return self._fitted


def pooled(schema: Schema | OpenSchema | None) -> Schema | OpenSchema | None:
    """The same domains at one holder."""
    if isinstance(schema, OpenSchema):
        return replace(schema, schema=at_one_holder(schema.schema))
    return None if schema is None else at_one_holder(schema)


def at_one_holder(schema: Schema) -> Schema:
    """The same domains at one holder."""
    return (
        schema if len(schema.parties) == 1 else replace(schema, parties=(("holder", schema.names),))
    )

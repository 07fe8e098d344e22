"""A released model: a Markov random field with named attributes and values, and its ledger."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .conditions import allowed
from .errors import MessageError, ModelError, NoMassError, SchemaError, VertiMRFError
from .files import container
from .model.markov_random_field import MarkovRandomField
from .model.sample import expected_marginals, expected_records, sample
from .plan.defaults import HOLDERS_COLUMN
from .plan.impossible import contradiction
from .plan.schema import Schema
from .privacy.ledger import Ledger
from .server.parts import PartModel, sample_parts
from .server.rows import decode_rows, shares_inside

if TYPE_CHECKING:
    import pyarrow as pa

    from .server.server import Result

__all__ = ["Model"]

KIND = "model"


@dataclass(frozen=True, eq=False, repr=False)
class Model:
    """The released model of a synthesis. All of it follows from the events of the ledger.

    Attributes:
        schema: the domains.
        field: the Markov random field. Its attributes are positions in the schema.
        ledger: every event, and the composed (epsilon, delta).
        others: for the outer population, models of the people that only some parties hold. Rows
            then have a last column "held_by", and nulls for values that no party holds.

    Example:
        >>> model = Model.load("clinic.model")  # doctest: +SKIP
        >>> model.sample(1000, given={"smoker": "yes"}).to_pandas()  # doctest: +SKIP
        >>> model.marginal(["smoker", "ward"])  # doctest: +SKIP
    """

    schema: Schema
    field: MarkovRandomField
    ledger: Ledger
    others: tuple[PartModel, ...] = ()

    def __post_init__(self) -> None:
        if any(part.field.sizes != self.schema.sizes for part in self._parts):
            raise SchemaError("The model and its schema differ in their domains.")
        if not {party for part in self.others for party in part.parties} <= set(
            self.schema.party_names
        ):
            raise SchemaError("The model and its schema differ in their parties.")

    @classmethod
    def of(cls, result: Result) -> Model:
        """The model of a server's result."""
        return cls(result.plan.schema, result.model, result.ledger, result.others)

    def __repr__(self) -> str:
        return (
            f"<Model of {len(self.schema.attributes)} attributes, {self._total:,.0f} records; "
            f"epsilon {self.ledger.epsilon:.4g}{'' if self.ledger.private else ', NOT PRIVATE'}>"
        )

    def sample(
        self,
        num_rows: int | None = None,
        *,
        given: Mapping[str, Any] | None = None,
        seed: int | None = None,
    ) -> pa.Table:
        """Draw synthetic rows, in the schema's original values.

        Args:
            num_rows: number of rows. Default: the noisy record count; under ``given`` the expected
                number of records that fulfil it.
            given: condition that all rows fulfil, by column: a value, a list of allowed values, or
                limits as in a schema, such as {"from": 100, "below": 200}. A value that is a number
                stands for its bin. A limit cuts the bin that it lies in: the row is drawn from the
                part within, at the share of the bin's records that the part has. A value of
                "held_by" is names of parties joined by "+".
            seed: seed of this draw. None means fresh entropy. Privacy does not depend on it.

        Returns:
            The rows.

        Raises:
            SchemaError: the schema does not have a column or a value.
            ModelError: ``num_rows`` is below 1.
            NoMassError: no record of the model fulfils the condition.
        """
        import pyarrow as pa

        return pa.concat_tables(self.pieces(num_rows, given=given, seed=seed))

    def pieces(
        self,
        num_rows: int | None = None,
        *,
        given: Mapping[str, Any] | None = None,
        seed: int | None = None,
    ) -> Iterator[pa.Table]:
        """Draw the rows of :meth:`sample` piece by piece, in less memory.

        Values take several times the memory of codes.

        Args:
            num_rows: number of rows. Default: the expected number of records.
            given: as for :meth:`sample`.
            seed: seed of this draw. None means fresh entropy.

        Yields:
            Tables of rows.

        Raises:
            SchemaError, ModelError, NoMassError: as :meth:`sample`.
        """
        if not isinstance(given, Mapping | None):
            raise SchemaError(f"The condition is {given!r}; write values by column.")
        if seed is not None and not (isinstance(seed, int | np.integer) and seed >= 0):
            raise ModelError(f"A seed is a whole number of at least 0, not {seed!r}.")
        rng = np.random.default_rng(seed)
        conditions = dict(given or {})
        parts = (
            self._parts_of(conditions.pop(HOLDERS_COLUMN))
            if self.others and HOLDERS_COLUMN in conditions
            else self._parts
        )
        kept, spans = {}, {}
        for name, value in conditions.items():
            place = self.schema.index(name)
            kept[place], span = allowed(
                self.schema.attributes[place], value, functools.partial(self.marginal, name)
            )
            if span is not None:
                spans[place] = span
        shares = {
            place: shares_inside(self.schema.attributes[place], span)[kept[place]]
            for place, span in spans.items()
        }
        asked = " and ".join(f"{name} = {value!r}" for name, value in (given or {}).items())
        if kept and (together := contradiction(self.schema.combinations, self.schema.sizes, kept)):
            rules = self.schema.named(together, start=False)
            raise NoMassError(f"No record has {asked}: the schema rules it out by {rules}.")
        part_of = None
        try:
            if self.others:
                codes, part_of = sample_parts(
                    self.schema, parts, num_rows, rng, kept, shares=shares
                )
            else:
                if num_rows is None:
                    num_rows = max(round(expected_records(self.field, kept, shares)), 1)
                codes = sample(self.field, num_rows, rng, kept, shares=shares)
        except NoMassError:
            raise NoMassError(
                f"The model has no records with {asked}; ask for other values."
            ) from None
        return decode_rows(
            codes, self.schema, rng, [part.parties for part in parts], part_of, spans
        )

    def marginal(self, columns: str | Sequence[str]) -> npt.NDArray[np.float64]:
        """Expected counts of the values of some columns.

        In the outer population only people count whose parties hold all these columns.

        Args:
            columns: distinct column names, or one name.

        Returns:
            Counts [one axis per column in the given order, indexed by the codes of its attribute;
            float64].

        Raises:
            SchemaError: the schema does not have a column.
            ModelError: columns repeat, or the table would be too large.
        """
        names = [columns] if isinstance(columns, str) else list(columns)
        wanted = [self.schema.index(name) for name in names]
        return functools.reduce(
            np.add,
            (
                expected_marginals(part.field, [wanted])[0]
                for part in self._parts
                if part.holds(self.schema, wanted)
            ),
        )

    def summary(self) -> str:
        """A description for people: attributes, cliques, size and standing."""
        names = self.schema.names
        size = self.field.summarize()
        lines = [
            f"{len(names)} attributes, {self._total:,.0f} records; {size.cliques} cliques of up to {size.treewidth + 1} "
            f"attributes, {size.cells:,} cells."
        ]
        lines += [f"  {', '.join(names[a] for a in clique)}" for clique in self.field.tree.cliques]
        if self.others:
            counts = ", ".join(
                f"{'+'.join(part.parties)} {part.field.total:,.0f}" for part in self._parts
            )
            lines.append(
                f"Not every party holds everybody: {counts}. The cliques are those of the last."
            )
        return "\n".join([*lines, str(self.ledger.standing)])

    def to_json(self) -> dict[str, Any]:
        """The privacy spent and the size of the model, JSON-able."""
        names = self.schema.names
        return {
            "kind": "report",
            **self.ledger.report_json(),
            "cliques": [[names[i] for i in clique] for clique in self.field.tree.cliques],
            "junction_tree_cells": int(self.field.tree.cells),
        }

    def save(self, path: str | Path) -> None:
        """Write the model with its schema and ledger (versioned, checksummed, no pickle)."""
        field, arrays = self.field.parts()
        header: dict[str, Any] = {
            "standing": self.ledger.standing.to_json(),
            "schema": self.schema.to_json(),
            "ledger": self.ledger.to_json(),
            "field": field,
        }
        if self.others:
            header["others"] = []
            for i, part in enumerate(self.others):
                field, more = part.field.parts()
                header["others"].append({"parties": part.parties, "field": field})
                arrays |= {f"part{i}.{name}": array for name, array in more.items()}
        container.write(path, container.pack(KIND, header, arrays))

    @classmethod
    def load(cls, path: str | Path) -> Model:
        """Read a saved model back.

        Raises:
            MessageError: the file cannot be read, is truncated or altered, or is not a model.
        """
        header, arrays = container.unpack(container.read(path), KIND, str(path))
        try:
            field = MarkovRandomField.of_parts(header["field"], arrays)
            others = []
            for i, part in enumerate(header.get("others", [])):
                mark = f"part{i}."
                tables = {
                    name.removeprefix(mark): array
                    for name, array in arrays.items()
                    if name.startswith(mark)
                }
                parties = tuple(str(party) for party in part["parties"])
                others.append(PartModel(parties, MarkovRandomField.of_parts(part["field"], tables)))
            return cls(
                Schema.from_json(header["schema"]),
                field,
                Ledger.from_json(header["ledger"]),
                tuple(others),
            )
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            detail = str(error).rstrip(".") if isinstance(error, VertiMRFError) else error
            raise MessageError(f"{path} is malformed ({detail}).") from None

    @property
    def _parts(self) -> tuple[PartModel, ...]:
        """Models of all people. The model of the people that all parties hold comes last."""
        return (*self.others, PartModel(self.schema.party_names, self.field))

    @property
    def _total(self) -> float:
        return sum(part.field.total for part in self._parts)

    def _parts_of(self, value: Any) -> tuple[PartModel, ...]:
        """The parts that fulfil a condition on "held_by"."""
        named = {"+".join(part.parties): part for part in self._parts}
        asked = [value] if isinstance(value, str) else list(value)
        if unknown := [name for name in asked if name not in named]:
            raise SchemaError(f"{HOLDERS_COLUMN} is {', '.join(named)}, not {unknown[0]!r}.")
        return tuple(named[name] for name in dict.fromkeys(asked))

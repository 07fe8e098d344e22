"""A released model that people can use: a Markov random field with the names and values of its attributes, and its ledger."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .errors import MessageError, NoMassError, SchemaError, VertiMRFError
from .files import container
from .model.markov_random_field import MarkovRandomField
from .model.sample import sample
from .plan.defaults import HELD_BY
from .plan.schema import Schema
from .privacy.ledger import Ledger
from .server.rows import decode, with_holders
from .tables.table import encode_columns

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Model"]

KIND = "model"


@dataclass(frozen=True, eq=False, repr=False)
class Model:
    """What a synthesis releases, and nothing else: all of it follows from the ledger's events.

    Attributes:
        schema: the domains.
        field: the Markov random field, attributes by their position in the schema; last, with ``holders``, who holds somebody.
        ledger: every event, and the composed (epsilon, delta).
        holders: of a model of people that not every party holds, the sets of parties that hold somebody, by name. Rows then have
            a last column "held_by", and nulls where no party holds a value.

    Example:
        >>> model = Model.load("clinic.model")                                              # doctest: +SKIP
        >>> model.sample(1000, given={"smoker": "yes"}).to_pandas()                         # doctest: +SKIP
        >>> model.marginal(["smoker", "ward"])                                              # doctest: +SKIP
    """

    schema: Schema
    field: MarkovRandomField
    ledger: Ledger
    holders: tuple[tuple[str, ...], ...] = ()

    def __post_init__(self) -> None:
        beside = (len(self.holders),) if self.holders else ()
        if self.field.sizes != (*self.schema.sizes, *beside):
            raise SchemaError("The model and its schema differ in their domains.")
        if not {party for own in self.holders for party in own} <= {name for name, _ in self.schema.parties}:
            raise SchemaError("The model and its schema differ in their parties.")

    def __repr__(self) -> str:
        return (
            f"<Model of {len(self.schema.attributes)} attributes, {self.field.total:,.0f} records; "
            f"epsilon {self.ledger.epsilon:.4g}{'' if self.ledger.private else ', NOT PRIVATE'}>"
        )

    def sample(
        self, rows: int | None = None, *, given: Mapping[str, Any] | None = None, seed: int | None = None
    ) -> pa.Table:
        """Draw synthetic rows, in the schema's original values.

        Args:
            rows: how many; default the noisy record count, or under ``given`` about as many of the records as it holds for.
            given: a value by column, or a list of values of which any will do; all rows have them. Numbers stand for the bin
                that they lie in. Of "held_by", the names of parties with "+" between them.
            seed: of this draw; None means fresh entropy. Privacy does not depend on it.

        Raises:
            SchemaError: a column or a value that the schema does not have.
            ModelError: fewer than 1 row.
            NoMassError: the model has no records that fulfil the condition.
        """
        rng = np.random.default_rng(seed)
        kept = self._condition(given or {})
        try:
            wanted = max(round(self.field.restricted(kept).total), 1) if rows is None else rows
            codes = sample(self.field, wanted, rng, kept)
        except NoMassError:
            asked = " and ".join(f"{name} = {value!r}" for name, value in (given or {}).items())
            raise NoMassError(f"The model has no records with {asked}; ask for other values.") from None
        table = decode(codes[: len(self.schema.attributes)], self.schema.attributes, rng)
        return with_holders(table, self.schema, self.holders, codes[-1]) if self.holders else table

    def marginal(self, columns: str | Sequence[str]) -> npt.NDArray[np.float64]:
        """Expected counts of the values of some columns, among those of whom all of them are held.

        Args:
            columns: distinct column names, or one.

        Returns:
            Counts [one axis per column in the order given, along it the codes of its attribute in the schema; float64].

        Raises:
            SchemaError: a column that the schema does not have.
            ModelError: columns repeat, or the table would be too large.
        """
        names = [columns] if isinstance(columns, str) else list(columns)
        wanted = [self.schema.index(name) for name in names]
        if not self.holders:
            return self.field.marginal(wanted)
        table = self.field.marginal([*wanted, len(self.schema.attributes)])
        counts: npt.NDArray[np.float64] = table[..., self._holding(wanted)].sum(axis=-1)
        return counts

    def summary(self) -> str:
        """Attributes, what depends on what, size and standing, for people."""
        names = self.schema.names
        size = self.field.summarize()
        lines = [
            f"{len(names)} attributes, {self.field.total:,.0f} records; {size.cliques} cliques of up to {size.treewidth + 1} "
            f"attributes, {size.cells:,} cells."
        ]
        lines += [f"  {', '.join(clique)}" for clique in self._cliques()]
        if self.holders:
            counts = self.field.marginal([len(names)])
            own = ", ".join(f"{'+'.join(who)} {count:,.0f}" for who, count in zip(self.holders, counts, strict=True))
            lines.append(f"Not every party holds everybody; held by: {own}.")
        return "\n".join([*lines, str(self.ledger.standing)])

    def to_json(self) -> dict[str, Any]:
        """Privacy spent and model size, JSON-able."""
        return {
            "epsilon": self.ledger.epsilon,
            "delta": self.ledger.delta,
            "private": self.ledger.private,
            "standing": self.ledger.standing.to_json(),
            "ledger": self.ledger.to_json()["entries"],
            "cliques": self._cliques(),
            "junction_tree_cells": int(self.field.tree.cells),
        }

    def save(self, path: str | Path) -> None:
        """Write the model with its schema and ledger (versioned, checksummed, no pickle)."""
        field, arrays = self.field.parts()
        header = {
            "standing": self.ledger.standing.to_json(),
            "schema": self.schema.to_json(),
            "ledger": self.ledger.to_json(),
            "field": field,
            **({"holders": self.holders} if self.holders else {}),
        }
        container.write(path, container.pack(KIND, header, arrays))

    @classmethod
    def load(cls, path: str | Path) -> Model:
        """Read a saved model back.

        Raises:
            MessageError: the file cannot be read, is truncated or altered, or is no model.
        """
        header, arrays = container.unpack(container.read(path), KIND, str(path))
        try:
            field = MarkovRandomField.of_parts(header["field"], arrays)
            holders = tuple(tuple(str(party) for party in own) for own in header.get("holders", ()))
            return cls(Schema.from_json(header["schema"]), field, Ledger.from_json(header["ledger"]), holders)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            detail = str(error).rstrip(".") if isinstance(error, VertiMRFError) else error
            raise MessageError(f"{path} is malformed ({detail}).") from None

    def _cliques(self) -> list[list[str]]:
        """Columns of every clique."""
        names = (*self.schema.names, HELD_BY)
        return [[names[i] for i in clique] for clique in self.field.tree.cliques]

    def _holding(self, attributes: Iterable[int]) -> npt.NDArray[np.intp]:
        """The sets of parties that hold all of some attributes, by number."""
        needed = {self.schema.parties[self.schema.party_of(a)][0] for a in attributes}
        return np.flatnonzero([needed <= set(own) for own in self.holders])

    def _condition(self, given: Mapping[str, Any]) -> dict[int, npt.NDArray[Any]]:
        """Codes that attributes may have under a condition: a value that is given is held."""
        kept: dict[int, npt.NDArray[Any]] = {
            self.schema.index(name): self._codes(name, value)
            for name, value in given.items()
            if not (self.holders and name == HELD_BY)
        }
        if not self.holders:
            return kept
        holding = self._holding(kept)
        if HELD_BY in given:
            named = {"+".join(own): i for i, own in enumerate(self.holders)}
            asked = [given[HELD_BY]] if isinstance(given[HELD_BY], str) else list(given[HELD_BY])
            if unknown := [value for value in asked if value not in named]:
                raise SchemaError(f"{HELD_BY} is {', '.join(named)}, not {unknown[0]!r}.")
            holding = np.intersect1d(holding, [named[value] for value in asked])
            if not holding.size:
                raise NoMassError("Those who are held by the parties asked for lack a column of the condition; ask for others.")
        if holding.size < len(self.holders):
            kept[len(self.schema.attributes)] = holding
        return kept

    def _codes(self, name: str, value: Any) -> npt.NDArray[np.uint16]:
        """Codes of a value, or of a list of values, of a column."""
        import pyarrow as pa

        attribute = self.schema.attributes[self.schema.index(name)]
        values = list(value) if isinstance(value, list | tuple | set | frozenset | range) else [value]
        if not values:
            raise SchemaError(f"Column {name!r} is given no value; name at least one.")
        try:
            column = pa.table({name: pa.array([v.item() if isinstance(v, np.generic) else v for v in values])})
        except pa.ArrowException:
            raise SchemaError(f"Column {name!r} is given {value!r}, which are not values of one kind.") from None
        return np.unique(encode_columns(column, [attribute], "The condition")[0])

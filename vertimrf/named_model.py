"""A released model: a Markov random field with named attributes and values, and its ledger."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as with_default
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from .arguments import FLAG, MANY, NAMES, check, instance, maybe, shown, takes
from .arrays import Fields, Floats, Texts
from .errors import MessageError, ModelError, NoMassError, SchemaError, VertiMRFError, first
from .files import container
from .files.notebook import as_html
from .files.results import save
from .model.markov_random_field import MarkovRandomField
from .model.redraw import Noise
from .model.sample import expected_marginals, expected_records, marginals_of_rows, sample
from .model.structural_zeros import ruling_out
from .model.trust import MEAN_ABSOLUTE, UNKNOWN, Evidence
from .plan.defaults import HOLDERS_COLUMN
from .plan.impossible import contradiction
from .plan.schema import Schema
from .privacy.ledger import Kind, Ledger
from .server.parts import PartModel, sample_parts
from .server.released_figures import known_pairs, of_links
from .server.rows import decode_rows
from .tables.conditions import allowed

if TYPE_CHECKING:
    import pyarrow as pa

    from .server.result import Result
    from .tables.sources import Source

KIND = "model"
# A Gaussian is within so many standard deviations in 95 % of cases.
NORMAL_95 = 1.96
# Groups of columns that a description lists.
MAX_LISTED = 40
# Most tables of one call of draws; a hundred measure their spread to 7 %.
MAX_DRAWS = 10_000
# Most records inside a bin that a file may state.
MAX_SHAPE = 1e18


@dataclass(frozen=True)
class Trust:
    """How far a marginal of a model can be trusted.

    Attributes:
        columns: names of its columns.
        known: "measured"; "implied", if it follows from measured pairs by the model's conditional
            independence; or "unknown".
        wrong: expected share of the records that the marginal has in wrong bins; None if unknown.
        cell: largest 95 % error of a cell, records; None if unknown.
        dependence, model_dependence: of a measured pair, its distance from independence by the
            measurement, less the expected noise, and by the model.
    """

    columns: Texts
    known: str
    wrong: float | None = None
    cell: float | None = None
    dependence: float | None = None
    model_dependence: float | None = None

    def __str__(self) -> str:
        out = f"{' × '.join(self.columns)}: {self.known}"
        if self.wrong is not None:
            out += f", wrong for about {self.wrong:.1%} of the records, a cell by up to ±{self.cell:,.0f}"
        if self.dependence is not None:
            out += f"; dependence {self.dependence:.1%} measured, {self.model_dependence:.1%} in the model"
        return f"{out}."


@dataclass(frozen=True, eq=False, repr=False)
class Model:
    """The released model of a synthesis. All of it follows from the events of the ledger.

    Attributes:
        schema: the domains.
        field: the Markov random field. Its attributes are positions in the schema.
        ledger: every event, and the composed (epsilon, delta).
        others: for the outer population, models of the people that only some parties hold. Rows
            then have a last column "held_by", and nulls for values that no party holds.
        evidence: what was measured, for standard errors. It is of the people at all parties.
        noise: noise of what was measured, for :meth:`draws`. It is of the people at all parties.
        shapes: by position in the schema, the records of each finer cell of a column of numbers, if
            these were measured (:meth:`.Attribute.shape`).

    Example:
        >>> model = Model.load("clinic.model")  # doctest: +SKIP
        >>> model.sample(1000, given={"smoker": "yes"}).to_pandas()  # doctest: +SKIP
        >>> model.marginal(["smoker", "ward"])  # doctest: +SKIP
    """

    schema: Schema
    field: MarkovRandomField
    ledger: Ledger
    others: tuple[PartModel, ...] = ()
    evidence: Evidence | None = None
    noise: Noise | None = None
    shapes: Mapping[int, Floats] = with_default(default_factory=dict)

    def __post_init__(self) -> None:
        for place, shape in self.shapes.items():
            fine = self.schema.fine[place]
            if shape.shape != (fine.present,) or not ((shape >= 0) & (shape <= MAX_SHAPE)).all():
                raise SchemaError(
                    f"The model's records inside bins of {fine.name!r} are no counts."
                )
        if self.evidence is not None and len(self.evidence.one_way) != len(self.schema.sizes):
            raise SchemaError("What was measured and the schema differ in their attributes.")
        if any(part.field.sizes != self.schema.sizes for part in self._parts):
            raise SchemaError("The model and its schema differ in their domains.")
        if not {party for part in self.others for party in part.parties} <= set(
            self.schema.party_names
        ):
            raise SchemaError("The model and its schema differ in their parties.")

    @classmethod
    @takes(ModelError, result=instance("Result"))
    def of(cls, result: Result) -> Model:
        """The released model of a server's result."""
        figures = result.figures
        known = figures.evidence, figures.noise
        schema, shapes = result.plan.schema, result.shapes
        return cls(schema, result.model, result.ledger, result.others, *known, shapes)

    def __repr__(self) -> str:
        return (
            f"<Model of {len(self.schema.attributes)} attributes, {self.records:,.0f} records; "
            f"epsilon {self.ledger.epsilon:.4g}{'' if self.ledger.private else ', NOT PRIVATE'}>"
        )

    def _repr_html_(self) -> str:
        return as_html(self, self.summary())

    def sample(
        self,
        num_rows: int | None = None,
        *,
        given: Mapping[str, Any] | None = None,
        seed: int | None = None,
        plain: bool = False,
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
            plain: give plain numbers, and dates and times as these. By default cells of a column
                with a format are texts in it.

        Returns:
            The rows.

        Raises:
            SchemaError: the schema does not have a column or a value.
            ModelError: ``num_rows`` is below 1.
            NoMassError: no record of the model fulfils the condition.
        """
        import pyarrow as pa

        return pa.concat_tables(self.pieces(num_rows, given=given, seed=seed, plain=plain))

    def pieces(
        self,
        num_rows: int | None = None,
        *,
        given: Mapping[str, Any] | None = None,
        seed: int | None = None,
        plain: bool = False,
    ) -> Iterator[pa.Table]:
        """Draw the rows of :meth:`sample` piece by piece, in less memory.

        Values take several times the memory of codes.

        Args:
            num_rows: number of rows. Default: the expected number of records.
            given: as for :meth:`sample`.
            seed: seed of this draw. None means fresh entropy.
            plain: as for :meth:`sample`.

        Yields:
            Tables of rows.

        Raises:
            SchemaError, ModelError, NoMassError: as :meth:`sample`.
        """
        if not isinstance(given, Mapping | None):
            raise SchemaError(f"The condition is {shown(given)}; write values by column.")
        _check_seed(seed)
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
                spans[place] = replace(span, shape=self.shapes.get(place))
        shares = {
            place: self.schema.attributes[place].shares(span)[kept[place]]
            for place, span in spans.items()
        }
        ruled = set().union(*(rule.columns for rule in self.schema.orders))
        for place, share in shares.items():
            if self.schema.names[place] in ruled and (share < 1).any():
                raise SchemaError(
                    f"A rule of the schema names {self.schema.names[place]!r}, so a condition on it holds for whole bins: "
                    "put its limits at edges."
                )
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
        parties = [part.parties for part in parts]
        schema = self.schema.as_plain() if plain else self.schema
        return decode_rows(codes, schema, rng, parties, part_of, spans, self.shapes)

    def draws(
        self,
        m: int = 20,
        rows: int | None = None,
        *,
        seed: int | None = None,
        plain: bool = False,
    ) -> Iterator[pa.Table]:
        """Draw synthetic tables whose spread is the uncertainty of the model.

        Each table is of a model of its own: fitted again to other people, drawn from this model, and
        other noise (:mod:`~.model.redraw`). So estimates from these tables spread by both the sampling
        of people from a population and the noise of the measurements; :func:`vertimrf.combine` makes
        intervals of them. This has no privacy cost. What the model itself has wrong, such as
        dependences that were not measured, is in no interval: see :meth:`trust`. Records are drawn
        one by one: where a person has several, sampling spreads more than these tables.

        Args:
            m: number of tables, 2 to 10,000.
            rows: rows of each. Default: the noisy record count.
            seed: seed of the draws. None means fresh entropy.
            plain: as for :meth:`sample`.

        Returns:
            The tables, each made when it is asked for.

        Raises:
            ModelError: a number is out of range; or the model is of different people at each party,
                or was saved without its noise.
        """
        if not (isinstance(m, int | np.integer) and 2 <= m <= MAX_DRAWS):
            raise ModelError(
                f"The number of draws is a whole number from 2 to {MAX_DRAWS:,}, not {shown(m)}."
            )
        _check_seed(seed)
        if self.noise is None or self.others:
            why = (
                "its parties have different people" if self.others else "it has no noise to redraw"
            )
            raise ModelError(f"This model gives no draws, because {why}.")
        return map(
            functools.partial(self._draw, self.noise, rows, plain),
            np.random.default_rng(seed).spawn(m),
        )

    def _draw(
        self, noise: Noise, rows: int | None, plain: bool, rng: np.random.Generator
    ) -> pa.Table:
        """Rows of a model of other people and other noise."""
        zeros = ruling_out(self.schema.sizes, self.schema.combinations)
        numbers = [attribute.in_order for attribute in self.schema.attributes]
        redrawn = noise.redrawn(self.field, zeros, numbers, rng)
        again = Model(self.schema, redrawn, self.ledger, shapes=self.shapes)
        return again.sample(rows, seed=int(rng.integers(1 << 63)), plain=plain)

    @overload
    def marginal(
        self, columns: str | Sequence[str], *, errors: Literal[False] = False
    ) -> Floats: ...

    @overload
    def marginal(
        self, columns: str | Sequence[str], *, errors: Literal[True]
    ) -> tuple[Floats, Floats]: ...

    @takes(ModelError, errors=FLAG)
    def marginal(
        self, columns: str | Sequence[str], *, errors: bool = False
    ) -> Floats | tuple[Floats, Floats]:
        """Expected counts of the values of some columns.

        In the outer population only people count whose parties hold all these columns.

        Args:
            columns: distinct column names, or one name.
            errors: also return standard errors.

        Returns:
            Counts [one axis per column in the given order, indexed by the codes of its attribute;
            float64]. With ``errors`` also their standard errors [same shape], infinite where
            nothing is known: the truth is within 1.96 of them in about 95 % of the cells.

        Raises:
            SchemaError: the schema does not have a column.
            ModelError: columns repeat, or the table would be too large.
        """
        names = _named(columns)
        wanted = [self.schema.index(name) for name in names]
        counts: Floats = functools.reduce(
            np.add,
            (
                expected_marginals(part.field, [wanted])[0]
                for part in self._parts
                if part.holds(self.schema, wanted)
            ),
        )
        if not errors:
            return counts
        return counts, self._errors(wanted, counts)

    def labels(self, columns: str | Sequence[str]) -> list[Texts]:
        """Short texts of the values on each axis of :meth:`marginal`; of bins, their lower edges.

        Args:
            columns: as for :meth:`marginal`.

        Returns:
            By column, the text of each code.

        Raises:
            SchemaError: the schema does not have a column.
        """
        asked = [self.schema.attributes[self.schema.index(name)] for name in _named(columns)]
        return [tuple(map(each.label, range(each.size))) for each in asked]

    def plot(self, columns: str | Sequence[str], *, real: Source | None = None) -> Any:
        """Draw the marginal of one column or of two. Needs the extra "plot".

        Bars have marks of 95 % where errors are known. With ``real`` the figure has exact counts of
        the true table: it is not private.

        Args:
            columns: a column name, or two.
            real: a true table with these columns, to draw beside the model.

        Returns:
            A figure of matplotlib, which a notebook shows and ``savefig`` writes.

        Raises:
            SchemaError: the schema does not have a column, or a record of ``real`` does not fit it.
            ModelError: there are not one or two columns, or matplotlib is not installed.
        """
        from .tables.columns import check_present
        from .tables.sources import read_arrow
        from .tables.table import encode_columns
        from .utility.plot import draw

        names = _named(columns)
        counts, errors = self.marginal(names, errors=True)
        true: Floats | None = None
        if real is not None:
            asked = [self.schema.attributes[self.schema.index(name)] for name in names]
            table, where = read_arrow(real), "The real table"
            check_present(names, table.column_names, where)
            codes = encode_columns(table, asked, where)
            true = np.zeros(counts.shape)
            np.add.at(true, tuple(codes), 1.0)
        return draw(tuple(names), self.labels(names), counts, NORMAL_95 * errors, true)

    def trust(self, columns: str | Sequence[str]) -> Trust:
        """How far a marginal of the model can be trusted.

        Args:
            columns: distinct column names, or one name.

        Returns:
            Whether it was measured, is implied by what was measured, or is unknown; and its errors.

        Raises:
            SchemaError, ModelError: as for :meth:`marginal`.
        """
        return self.trusts([tuple(_named(columns))])[0]

    @takes(ModelError, wanted=maybe(MANY), by_rows=FLAG)
    def trusts(
        self, wanted: Sequence[Texts] | None = None, *, by_rows: bool = False
    ) -> list[Trust]:
        """As :meth:`trust`, of many marginals.

        Args:
            wanted: the columns of each; by default every column and every pair.
            by_rows: estimate the marginals from rows of the model. Exact ones of three columns may
                take long, or more memory than is allowed.
        """
        names = self.schema.names
        if wanted is None:
            wanted = [(name,) for name in names] + list(itertools.combinations(names, 2))
        places = [[self.schema.index(name) for name in _named(some)] for some in wanted]
        marginals = marginals_of_rows if by_rows else expected_marginals
        tables = marginals(self.field, places)
        return [self._trust(at, table) for at, table in zip(places, tables, strict=True)]

    def _errors(self, wanted: Sequence[int], counts: Floats) -> Floats:
        """Standard errors of a marginal's counts."""
        if self.evidence is None or self.others:
            return np.full(counts.shape, np.inf)
        return self.evidence.errors(self.field, wanted, counts)

    def _trust(self, wanted: Sequence[int], counts: Floats) -> Trust:
        names = tuple(self.schema.names[a] for a in wanted)
        errors, evidence = self._errors(wanted, counts), self.evidence
        if evidence is None or not np.isfinite(errors).all():
            return Trust(names, UNKNOWN)
        pair = evidence.places.get((min(wanted), max(wanted))) if len(wanted) == 2 else None
        known = () if pair is None else (evidence.dependence[pair], evidence.model_dependence[pair])
        # Half of the mean absolute error of a Gaussian in every cell.
        wrong = 0.5 * MEAN_ABSOLUTE * float(errors.sum()) / self.field.total
        largest = NORMAL_95 * float(errors.max())
        return Trust(names, evidence.kind(wanted), min(wrong, 1.0), largest, *map(float, known))

    def summary(self) -> str:
        """A description for people: columns, releases, cliques, size and privacy label."""
        names, ledger = self.schema.names, self.ledger
        tree = self.field.tree
        kinds = dict.fromkeys(
            entry.released if entry.kind == Kind.OTHER else entry.kind for entry in ledger.entries
        )
        lines = [
            f"A model of {len(names):,} columns and {self.records:,.0f} records, as noisy figures tell.",
            *self.schema.lines(),
            f"Made of {len(ledger.entries)} noisy releases ({', '.join(kinds)}), epsilon {ledger.epsilon:.4g} in all.",
            f"It keeps {len(tree.cliques)} groups of up to {tree.treewidth + 1} columns together, {tree.cells:,} cells.",
        ]
        groups = [", ".join(names[a] for a in clique) for clique in tree.cliques]
        lines += [f"  {group}" for group in first(groups, MAX_LISTED)]
        if self.others:
            counts = ", ".join(
                f"{'+'.join(part.parties)} {part.field.total:,.0f}" for part in self._parts
            )
            lines.append(
                f"Not every party holds everybody: {counts}. The cliques are those of the last."
            )
        if self.evidence is not None:
            lines += filter(None, [known_pairs(self.schema, self.evidence)])
            lines += of_links(self.schema, self.evidence)
        return "\n".join([*lines, str(self.ledger.label)])

    def to_json(self) -> Fields:
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
        header: Fields = {
            "label": self.ledger.label.to_json(),
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
        if self.evidence is not None:
            header["measured"] = self.evidence.to_columns()
        if self.noise is not None:
            arrays |= self.noise.parts()
        arrays |= {f"shape{place}": shape for place, shape in self.shapes.items()}
        save(path, container.pack(KIND, header, arrays))

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
            schema = Schema.from_json(header["schema"])
            shapes = {a: f"shape{a}" for a in schema.fine if f"shape{a}" in arrays}
            return cls(
                schema,
                field,
                Ledger.from_json(header["ledger"]),
                tuple(others),
                Evidence.of_columns(header["measured"]) if "measured" in header else None,
                Noise.of_parts(field, arrays) if "noise" in arrays else None,
                {a: arrays[name].astype(np.float64) for a, name in shapes.items()},
            )
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            detail = str(error).rstrip(".") if isinstance(error, VertiMRFError) else error
            raise MessageError(f"{path} is malformed ({detail}).") from None

    @property
    def _parts(self) -> tuple[PartModel, ...]:
        """Models of all people. The model of the people that all parties hold comes last."""
        return (*self.others, PartModel(self.schema.party_names, self.field))

    @property
    def records(self) -> float:
        """The noisy number of records, in the outer population of all people."""
        return sum(part.field.total for part in self._parts)

    def _parts_of(self, value: Any) -> tuple[PartModel, ...]:
        """The parts that fulfil a condition on "held_by"."""
        named = {"+".join(part.parties): part for part in self._parts}
        asked = [value] if isinstance(value, str) else list(value)
        if unknown := [name for name in asked if name not in named]:
            raise SchemaError(f"{HOLDERS_COLUMN} is {', '.join(named)}, not {unknown[0]!r}.")
        return tuple(named[name] for name in dict.fromkeys(asked))


def _named(columns: str | Sequence[str]) -> list[str]:
    """Names of columns as a list."""
    check(ModelError, {"columns": columns}, columns=NAMES)
    return [columns] if isinstance(columns, str) else list(columns)


def _check_seed(seed: Any) -> None:
    if seed is not None and not (isinstance(seed, int | np.integer) and seed >= 0):
        raise ModelError(f"A seed is a whole number of at least 0, not {shown(seed)}.")

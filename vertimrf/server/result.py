"""What the server gives: rows, model, ledger and figures of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

import numpy as np

from .. import __version__
from ..arrays import Codes, Fields, Floats, Ints, Texts
from ..files.notebook import as_html
from ..model.markov_random_field import MarkovRandomField
from ..plan.plan import Plan
from ..plan.schema import Schema
from ..plan.verdict import stated
from ..privacy.ledger import Ledger
from .parts import PartModel
from .population import (
    Overlap,
)
from .released_figures import ReleasedFigures, known_pairs
from .shared_columns import Disagreement

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, eq=False)
class Result:
    """The result of a run.

    Attributes:
        plan: the plan of the run.
        codes: synthetic rows [shape=(attributes, rows), uint16].
        model: the global Markov random field, of the people at all parties.
        initial: the model of the local marginals alone.
        ledger: every event and the composed (epsilon, delta).
        crossing: attributes of the cross-party marginals that the model was fitted to, in its
            cliques or as off-tree factors.
        figures: figures of the messages, for a report.
        disagreements: how far parties contradict each other on shared columns.
        seconds: wall time per phase.
        warnings: sentences about what the run could not do.
        seed: seed of the sampling; None means fresh entropy.
        overlap: how the parties' people overlap; None if all have the same.
        others: models of the people who are not at all parties, if the rows are of all people;
            otherwise empty.
        holders: with ``others``, the index in ``others`` of each row's model, or their number for
            people at all parties [shape=(rows,), uint16]; otherwise None.
        plain: rows have plain values, not texts in the formats of the schema.
        shapes: by position, how values are spread inside bins (:mod:`.fine`).
    """

    plan: Plan
    codes: Codes
    model: MarkovRandomField
    initial: MarkovRandomField
    ledger: Ledger
    crossing: tuple[Ints, ...]
    figures: ReleasedFigures
    disagreements: tuple[Disagreement, ...]
    seconds: dict[str, float]
    warnings: Texts
    seed: int | None
    overlap: Overlap | None
    others: tuple[PartModel, ...]
    holders: Codes | None
    shapes: Mapping[int, Floats]
    plain: bool = False

    def __repr__(self) -> str:
        return f"<Result: {self.codes.shape[1]:,} rows of {self.plan}>"

    def _repr_html_(self) -> str:
        return as_html(self, "\n".join([str(self.ledger.label), *self.warnings]))

    @property
    def schema(self) -> Schema:
        """The domains of the rows as they are written."""
        schema = self.plan.schema
        return schema.as_plain() if self.plain else schema

    @property
    def table(self) -> pa.Table:
        """The synthetic rows in the schema's values, and in its formats unless they are plain.

        If not everybody is at all parties, values without a party are null, and a last column names
        each row's parties.
        """
        import pyarrow as pa

        return pa.concat_tables(self.pieces())

    def pieces(self) -> Iterator[pa.Table]:
        """The rows of :attr:`table` in pieces. Values take several times the memory of codes."""
        from .rows import decode_rows

        party_sets = [*(part.parties for part in self.others), self.plan.party_names]
        rng, schema = np.random.default_rng(self.seed), self.schema
        return decode_rows(self.codes, schema, rng, party_sets, self.holders, shapes=self.shapes)

    def to_json(self) -> Fields:
        """The run's report in values that JSON can represent: plan, privacy, timings, model size
        and figures.
        """
        names = self.plan.schema.names
        return {
            "kind": "report",
            "version": __version__,
            "date": date.today().isoformat(),
            "plan": self.plan.fingerprint,
            "encoder": self.plan.encoder,
            "expected_records": self.plan.expected_records,
            "parties": {party: list(columns) for party, columns in self.plan.schema.parties},
            **self.ledger.report_json(),
            "seconds": {phase: round(seconds, 4) for phase, seconds in self.seconds.items()},
            "rows": int(self.codes.shape[1]),
            "cliques": [[names[i] for i in clique] for clique in self.model.tree.cliques],
            "junction_tree_cells": int(self.model.tree.cells),
            "cross_party_marginals": [
                [names[a] for a in attributes] for attributes in self.crossing
            ],
            "shared_columns": [
                disagreement.to_json(self.plan) for disagreement in self.disagreements
            ],
            "warnings": list(self.warnings),
            "known": known_pairs(self.plan.schema, self.figures.evidence),
            **stated(self.plan),
            "workload": list(self.plan.workload.in_words(self.plan.schema)),
            **(
                {}
                if self.overlap is None
                else {"population": self.plan.population, "overlap": self.overlap.to_json()}
            ),
            "found": self.figures.to_json(self.plan, self.model.total),
        }

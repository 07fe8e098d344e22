"""The paper's own treatments of cross-party marginals, in place of a fit to what was measured.

The library fits its model to marginals as they were measured, in bins and not consistent with each other. The paper makes
them consistent first and spreads each bin's count over its values. Here the same messages are read and the last steps of
the server are done again with these treatments.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vertimrf.model.fit import fit
from vertimrf.model.off_tree import fit_off_tree
from vertimrf.model.sample import sample
from vertimrf.releases.count_sketches.parameters import CountSketches
from vertimrf.releases.scheduled_pairs.parameters import ScheduledPairs
from vertimrf.server.global_graph import combine_graphs
from vertimrf.server.server import Server

from .consistency import enforce
from .reduction import hisrec, unisam

REDUCTIONS = ("fit", "hisrec", "unisam")


@dataclass(frozen=True)
class Treatment:
    """What is done to cross-party marginals before the global model is fitted to them.

    Attributes:
        reduction: "fit" leaves bins as they are; "hisrec" spreads the count of a bin over its values in proportion to one-way
            counts, "unisam" evenly.
        consistency: whether they are made consistent with the one-way counts and each other first.

    Raises:
        ValueError: an unknown reduction.
    """

    reduction: str = "fit"
    consistency: bool = False

    def __post_init__(self):
        if self.reduction not in REDUCTIONS:
            raise ValueError(
                f"Unknown reduction {self.reduction!r}; use one of {', '.join(REDUCTIONS)}."
            )

    def apply(self, crossing, initial, total):
        """Treat cross-party marginals.

        Args:
            crossing: as they were measured.
            initial: a model of the parties' own marginals, for one-way counts.
            total: record count.
        """
        out = list(crossing)
        margins = {a: initial.marginal((a,)) for m in out for a in m.attributes}
        if out and self.consistency:
            out = enforce(out, margins, total)
        match self.reduction:
            case "hisrec":
                return [hisrec(m, margins) for m in out]
            case "unisam":
                return [unisam(m) for m in out]
        return out


def treated(plan, messages, treatment, rows, seed):
    """The global model and rows of it, from the messages of parties that hold the same people.

    Args:
        plan: a plan without impossible combinations.
        messages: one per party.
        treatment: of the cross-party marginals.
        rows: how many.
        seed: of the sampling.

    Returns:
        The model, and rows [shape=(attributes, rows), uint16].
    """
    first = Server(plan).read(messages)
    graph = combine_graphs(plan, first.local, first.crossing, first.total)
    model = first.initial
    if graph.kept:
        crossing = treatment.apply(graph.kept, first.initial, first.total)
        used = [m for m in (*first.local, *crossing) if graph.tree.covering(m.attributes) >= 0]
        model = fit(
            plan.schema.sizes,
            used,
            first.total,
            tree=graph.tree,
            warm=graph.start,
            classes=graph.classes,
        )
    if treatment.reduction == "fit" and isinstance(
        plan.sketch, ScheduledPairs | CountSketches | None
    ):
        model, _ = fit_off_tree(model, [*first.local, *first.crossing])
    return model, sample(model, rows, np.random.default_rng(seed))

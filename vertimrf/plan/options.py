"""``PlanOptions``: the options of a plan, besides its schema and epsilon."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..arguments import check_fields
from ..errors import PlanError
from ..releases.register import KINDS, kind_of
from .defaults import (
    AUTO,
    DELTA_HELP,
    DOMAIN_SHARE,
    ENCODER,
    INNER,
    MAX_MESSAGE,
    MESSAGE_BYTES,
    PAIRS_BYTES,
    POPULATIONS,
    TAU,
)

# One analysis as text; or analyses, or marginals as lists of columns, with weights or all of weight 1.
Wanted = str | Mapping[str | tuple[str, ...], float] | Sequence[str | Sequence[str]] | None

# Smaller messages hold no useful sketches.
MIN_MESSAGE_BYTES = 1000
# No message has more.
MAX_KEYS = MAX_MESSAGE


# Command-line options whose name differs from their attribute's.
FLAGS = {
    "label": "--utility",
    "message_bytes": "--message-mb",
    "num_threads": "--threads",
    "party": "--name",
}


def flag(name: str) -> str:
    """The command-line option of an attribute of an options class, such as ``PlanOptions``."""
    return FLAGS.get(name, "--" + name.replace("_", "-"))


def check_population(population: str) -> None:
    """Check that a population is known.

    Raises:
        PlanError: it is not.
    """
    if population not in POPULATIONS:
        raise PlanError(f"A population is {' or '.join(POPULATIONS)}, not {population!r}.")


def check_persons(records: int) -> None:
    """Check that a person may have so many records.

    Raises:
        PlanError: there is no price for them.
    """
    # Imported here because events import scipy, which slows the start of the command line.
    from ..privacy.events import MAX_PERSON_RECORDS

    if not 1 <= records <= MAX_PERSON_RECORDS:
        raise PlanError(f"A person has 1 to {MAX_PERSON_RECORDS} records in a plan, not {records}.")


def described(default: Any, text: str) -> Any:
    """An attribute with the help of its command-line option."""
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True)
class PlanOptions:
    """The options of a plan, besides its schema and epsilon.

    Attributes:
        expected_records: public order of magnitude of the number of records. A plan needs it. A
            trial on one machine without it counts the records with noise, and its delta is then
            1e-10 by default.
        delta: privacy target; default 1 / expected_records squared, at most 1e-6
            (:func:`~.defaults.default_delta`).
        tau: largest clique of the global model, in cells (VertiMRF, phase 3: 10^5 to 5*10^6).
        encoder: "auto", which takes "encrypted" for two parties that state the same people and
            count sketches otherwise (:mod:`vertimrf.releases.auto`); "count-sketch"; "encrypted", whose epsilon holds if parties collude with the
            server, for parties with the same people; "scheduled-pairs", which needs larger
            messages; "grr", the paper's baseline of randomised responses, whose target is about
            replacing one record; or "published", the paper's encoder, whose privacy claim does not
            hold.
        claim_as_published: must be True for the published encoder.
        keys: number of hash keys over all scheduled marginals; default by message size, or 2000
            shared ones. For count sketches, the approximate number of counters of a value.
        message_bytes: budget for the sketches in any party's message; default 15 MB, with scheduled
            pairs 64 MB. Local marginals come on top.
        collusion_epsilon: cap on epsilon if a party colludes with the server
            (``plan.ledger().colluding_epsilon``). Messages are as large as it allows. It excludes
            ``keys`` and ``message_bytes``.
        shares: shares of the budget for the noisy record count, for all parties' local models
            together, and for the sketches across parties. They sum to 1. Without sketches the
            parties are synthesised as independent. None: those that a forecast of the error
            prefers (:mod:`.shares`).
        local_models: False leaves only the one-way marginals in each party's local model, for
            comparison.
        workload: the analyses that the result is for, as text ("pay ~ age + C(sex)", "mean(pay) by
            sex", "pay vs sex, age"), or marginals that matter most as lists of columns; all of one
            weight or with a weight each. They have a part of the budget and cliques first. None: all
            marginals have the same weight.
        records_per_person: largest number of records of one person that take part. Above 1 it needs
            count sketches. Epsilon then protects a person, and the noise is that many times larger.
        population: the people of the result, if parties hold different people: "inner", those that
            all parties hold, or "outer", those that any party holds.
        domain_share: share of epsilon and delta with which a trial on one machine finds private
            domains.
        even_if_useless: make a plan even if its result is predicted to be useless
            (:mod:`.verdict`).

    Raises:
        PlanError: an option is out of range.
    """

    expected_records: int | None = described(None, "Public order of magnitude of the table.")
    delta: float | None = described(None, DELTA_HELP)
    tau: int = described(TAU, "Largest clique of the global model, in cells.")
    encoder: str = described(
        AUTO,
        "; ".join(
            [
                "auto (encrypted if two parties state the same people, else count-sketch)",
                *(name + words for name, (_, _, words) in KINDS.items()),
            ]
        )
        + ".",
    )
    claim_as_published: bool = described(
        False, "Needed for the published encoder: its claim does not hold."
    )
    keys: int | None = None
    message_bytes: int | None = described(
        None,
        f"Budget for a party's sketches in MB, besides local marginals; default {MESSAGE_BYTES / 1e6:g}, with scheduled pairs "
        f"{PAIRS_BYTES / 1e6:g}.",
    )
    collusion_epsilon: float | None = described(
        None,
        "Cap on epsilon if a party colludes with the server: messages are as large as it allows. In place of --message-mb.",
    )
    shares: tuple[float, float, float] | None = None
    local_models: bool = True
    workload: Wanted = described(  # noqa: RUF009
        None,
        "What the result is for: 'pay ~ age + sex', 'mean(pay) by sex, year', 'pay vs sex, age', or columns "
        "together, 'pay,sex,age'; repeat for more.",
    )
    records_per_person: int = described(
        1, "Most records of one person; parties leave out further ones."
    )
    population: str = described(
        INNER,
        "People of the table, if parties hold different people: those that all hold (inner), or everybody (outer).",
    )
    domain_share: float = described(DOMAIN_SHARE, "Share of epsilon for finding private domains.")
    even_if_useless: bool = described(False, "Plan even if the result is predicted to be useless.")

    def __post_init__(self) -> None:
        check_fields(self, PlanError)
        if self.expected_records is not None and self.expected_records < 1:
            raise PlanError(f"expected_records must be at least 1, not {self.expected_records}.")
        if self.encoder not in (AUTO, *KINDS):
            raise PlanError(
                f"Unknown encoder {self.encoder!r}; use 'auto', 'count-sketch', 'encrypted' or 'scheduled-pairs', or 'grr' or 'published' to compare."
            )
        if (
            self.message_bytes is not None
            and not MIN_MESSAGE_BYTES <= self.message_bytes <= MAX_MESSAGE
        ):
            raise PlanError(
                f"message_bytes must lie between {MIN_MESSAGE_BYTES:,} and {MAX_MESSAGE:,}, not {self.message_bytes}."
            )
        if self.keys is not None and not 1 <= self.keys <= MAX_KEYS:
            raise PlanError(f"keys must lie between 1 and {MAX_KEYS:,}, not {self.keys}.")
        if self.tau < 2:
            raise PlanError(f"tau must be at least 2 cells, not {self.tau}.")
        # The default refuses nothing, and is not loaded as the command line starts.
        refused = None if self.encoder in (AUTO, ENCODER) else kind_of(self.encoder).refused(self)
        if refused is not None:
            raise PlanError(refused)
        if self.records_per_person != 1:
            check_persons(self.records_per_person)
        if self.shares is not None and not (
            min(self.shares[:2]) > 0
            and self.shares[2] >= 0
            and math.isclose(sum(self.shares), 1.0, abs_tol=1e-9)
        ):
            raise PlanError(
                f"Budget shares {self.shares} must be non-negative and sum to 1, with count and local above zero."
            )
        check_population(self.population)
        if not 0 < self.domain_share < 1:
            raise PlanError(
                f"The share of epsilon that domains are found with must lie between 0 and 1, not {self.domain_share}."
            )
        if self.collusion_epsilon is not None:
            if not (math.isfinite(self.collusion_epsilon) and self.collusion_epsilon > 0):
                raise PlanError(
                    f"The cap on epsilon if a party colludes must be a number above 0, not {self.collusion_epsilon}."
                )
            if (self.keys, self.message_bytes) != (None, None):
                raise PlanError(
                    "The cap on epsilon if a party colludes chooses the message size: give the cap or a size, not both."
                )


DEFAULT = PlanOptions()

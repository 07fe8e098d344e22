"""A ledger and its guarantee in words, for readers who know nothing of privacy accounting."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..arrays import Texts
from ..errors import first
from ..model.trust import IMPLIED, MEASURED, UNKNOWN
from ..plan.local_plan import SCORE_GRID
from ..plan.target import WEAK_EPSILON
from ..plan.verdict import percent
from ..privacy.choice import ChoiceEvent
from ..privacy.events import (
    CountSketchEvent,
    GaussianEvent,
    GeometricEvent,
    ThresholdEvent,
)
from ..privacy.label import REPLACE, PrivacyLabel
from ..privacy.ledger import Kind, Ledger, LedgerEntry
from ..releases.register import sentence_of

# What is known of pairs across parties, and how many of a kind are named.
LOST, HIDDEN, MAX_LINKS = "lost", "hidden", 20
LINKS = {
    MEASURED: "are known to depend on each other, and do so in the rows (in parts of the records, ± one standard error)",
    HIDDEN: "were measured, and may be independent: noise alone can look like what was measured",
    IMPLIED: "were not measured, and follow from other pairs",
    LOST: "were measured, and the model has lost them: do not read their relation from the result",
    UNKNOWN: "are not known: do not read their relation from the result",
}
# Errors of a result, in the order of a table.
ERRORS = {
    "column": "single columns",
    "within": "pairs of columns at one party",
    "across": "pairs of columns across parties",
    "three": "three columns together",
    "correlation": "correlations across parties, typical error",
}

# Judgements of an epsilon: (largest epsilon, sentence). They agree with ``plan.target_in_words``.
JUDGED = (
    (1.0, "Usual are targets like this one, ε of 1 and below."),
    (3.0, "Usual are ε of 1 and below; this is more."),
    (WEAK_EPSILON, "Usual are ε of 1 and below, and seldom above 3: this protects little."),
    (math.inf, "Usual are ε of 1 and below, and seldom above 3: this is hardly any protection."),
)


@dataclass(frozen=True)
class Step:
    """One line of a ledger.

    Attributes:
        entry: the line.
        sentence: what was released and what protects it.
        share: the line's part of the run's cost, 0 to 1.
        epsilon: epsilon spent up to and including this line.
    """

    entry: LedgerEntry
    sentence: str
    share: float
    epsilon: float


def errors_in_words(
    predicted: Mapping[str, float], true: Mapping[str, float]
) -> list[tuple[str, str, str]]:
    """Errors of a result: what of, as predicted, and in truth; a dash where one is not known.

    Args:
        predicted, true: figures by the names of :class:`~vertimrf.plan.verdict.Errors`.
    """

    def text(name: str, figures: Mapping[str, float]) -> str:
        if name not in figures:
            return "–"
        size = figures[name]
        return f"± {size:.2g}" if name == "correlation" else percent(size)

    return [
        (what, text(name, predicted), text(name, true))
        for name, what in ERRORS.items()
        if name in predicted or name in true
    ]


def steps(ledger: Ledger) -> tuple[Step, ...]:
    """Every line of a ledger in words, in order."""
    return tuple(
        Step(entry, in_words(entry), share, spent.epsilon)
        for entry, share, spent in zip(ledger.entries, ledger.shares, ledger.spent, strict=True)
    )


def in_words(entry: LedgerEntry) -> str:
    """One line of a ledger as a sentence.

    A kind without a sentence of its own is described by the entry's own words.

    Args:
        entry: the line. Its kind selects the sentence, its event fills in the numbers.

    Returns:
        The sentence.
    """
    event, released = entry.event, entry.released
    who = {"all parties": "All parties", "coordinator": "The coordinator"}.get(
        entry.party, entry.party
    )
    match entry.kind, event:
        case Kind.RECORD_COUNT, GaussianEvent(sigma=sigma):
            return f"{who} said how many records it has, with random noise: typically {sigma:,.0f} too many or too few."
        case Kind.PLANNING_COUNT, GeometricEvent(scale=scale):
            typical = math.sqrt(2) * scale
            return f"{who} counted the records, to plan with, with random noise: typically {typical:,.0f} too many or too few."
        case Kind.EDGES, GeometricEvent(scale=scale):
            typical = math.sqrt(2) * scale
            return f"{who} found the {released} from counts with random noise of typically {typical:,.0f} records in each."
        case Kind.VALUES, ThresholdEvent(threshold=threshold):
            return f"{who} found the {released}: those that, counted with random noise, {threshold:,} records or more have."
        case Kind.ONE_WAY_MARGINALS, GaussianEvent(sigma=sigma, count=count):
            each = (
                "for its attribute" if count == 1 else f"for each of {count} attributes by itself"
            )
            return (
                f"{who} counted, {each}, the records that have each value, and added random noise to every count: typically "
                f"{sigma:,.0f} records up or down."
            )
        case Kind.FINE_MARGINALS, GaussianEvent(sigma=sigma, count=count):
            each = "its column of numbers" if count == 1 else f"each of {count} columns of numbers"
            return (
                f"{who} counted, for {each}, the records in many narrow ranges, and added random noise to every count: typically "
                f"{sigma:,.0f} records up or down."
            )
        case Kind.R_SCORES, GaussianEvent(sigma=sigma, count=count):
            return (
                f"{who} scored how strongly any two of its attributes depend on each other ({count} scores, in records), with "
                f"random noise of typically {sigma / SCORE_GRID:,.0f}."
            )
        case Kind.CHOICES, ChoiceEvent(scale=scale, count=count):
            return (
                f"{who} chose pairs of its attributes that depend on each other, {count} times one of several, by a draw that "
                f"favours strong pairs: one stronger by {scale:,.0f} records is about three times as likely."
            )
        case Kind.LARGER_MARGINALS, GaussianEvent(count=units):
            return (
                f"{who} counted records by combinations of several of its attributes, with random noise in every count. The "
                f"noisy releases above decided which combinations. They may use {units:,} units of measurement."
            )
        case Kind.AGREEMENT, CountSketchEvent(variance=variance):
            return (
                f"{who} published coded counters. Together they tell for about how many records the parties agree on "
                f"{entry.column}. A record moves a counter by 1; random noise of typically {math.sqrt(variance):,.1f} was added."
            )
    return sentence_of(entry, who) or f"{who} released {released}; protected by {entry.noise}."


def odds(epsilon: float, delta: float) -> float:
    """Largest probability of guessing correctly which of two neighbouring tables was used.

    Both tables are equally likely.

    The total variation of two distributions that are (epsilon, delta)-close in both directions is
    at most (e^epsilon - 1 + 2 delta) / (e^epsilon + 1) (Kairouz, Oh and Viswanath, 2015).
    """
    return min(1.0, (1.0 + delta * math.exp(-epsilon)) / (1.0 + math.exp(-epsilon)))


def one_in(probability: float) -> str:
    """A small probability as "1 in N"."""
    if probability <= 0:
        return "never"
    times = 1 / probability
    # Round to two significant digits.
    scale = 10.0 ** max(math.floor(math.log10(times)) - 1, 0)
    return f"1 in {round(times / scale) * scale:,.0f}"


def guarantee(label: PrivacyLabel, several: bool, records: int = 1) -> Texts:
    """What a privacy label means.

    Args:
        label: the claim.
        several: whether several parties took part. They share a secret then.
        records: how many records a person has at most.
    """
    if not label.private:
        return (
            "No privacy guarantee covers this run.",
            f"Why: {'; '.join(label.reasons)}. Protect what it made as you protect the real tables.",
        )
    epsilon, delta = float(label.epsilon or 0.0), float(label.delta or 0.0)
    if label.neighbours == REPLACE:
        what = "which of two possible records somebody has in the tables"
        whom = "one record."
    elif records > 1:
        what = f"whether somebody, with all of up to {records} records, is in the tables"
        whom = f"a person, with up to {records} records. Further records of a person were left out."
    else:
        what = "whether somebody's record is in the tables"
        where = (
            ", at every party. A person with several records, under several ids,"
            if several
            else ". A person with several"
        )
        whom = f"one record{where} is protected less."
    right = odds(epsilon, delta)
    secret = ", but for the parties' secret" if several else ""
    judgement = next(sentence for largest, sentence in JUDGED if epsilon <= largest)
    return (
        f"Somebody sees all that was released, and anything made of it, and has to guess {what}. Before, both seemed equally "
        f"likely. The guess will be right at most {100 * right:.3g} times out of 100. Without having seen anything it would be "
        f"right 50 times. This holds for every person, and whatever else the guesser knows{secret}. It is proved, not "
        f"measured. {judgement}",
        f"In the terms of the field: (ε, δ)-differential privacy with ε = {epsilon:.4g} and δ = {delta:.3g} ({one_in(delta)}), "
        f"neighbours: {label.neighbours}.",
        f"What is protected: {whom}",
    )


def rests_on(several: bool, private: bool, colluding: float | None = None) -> Texts:
    """Conditions of a guarantee, and what it does not say.

    Args:
        several: whether several parties took part.
        private: whether there is a guarantee.
        colluding: epsilon if a party colludes with the server. Infinite if no epsilon holds, None
            if none is known.
    """
    if not private:
        return ()
    kept = "The parties keep their common secret from the server and from everybody else."
    if colluding is None or math.isinf(colluding):
        together = (
            f"{kept} A party that hands it to the server discloses what the others' sketches hold.",
            "A party knows the secret. What it can learn about the others' people from the result is not covered by the proof.",
        )
    else:
        right = 100 * odds(colluding, 0.0)
        times = "nearly always" if right > 99 else f"up to {right:.3g} times out of 100"
        together = (
            f"{kept} If a party hands it to the server, what the other parties hold is protected with ε = {colluding:.4g} at the "
            f"same δ, and no better: the guess described above may be right {times}.",
            "The same ε holds for what a party can learn about the others' people from the result, since it knows the secret.",
        )
    return (
        *(together if several else ()),
        "Every further release about the same people adds to what is spent; the command “vertimrf plan PLAN PLAN” adds plans up.",
        "It says nothing of what is true of people in general: that smokers fall ill more often can be learned from the result, "
        "and may concern people whether or not they took part.",
    )


def links(pairs: Mapping[str, Sequence[str]]) -> list[str]:
    """Sentences on what is known of pairs of columns.

    Args:
        pairs: their names, by a key of ``LINKS``.
    """
    count = sum(map(len, pairs.values()))
    return [
        f"{len(pairs[what]):,} of {count:,} {sentence}: {', '.join(first(pairs[what], MAX_LINKS))}."
        for what, sentence in LINKS.items()
        if what in pairs
    ]

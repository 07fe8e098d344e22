"""A ledger and its guarantee in words that somebody reads who knows nothing of privacy accounting, a lawyer say."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from ..plan.plan import SCORE_GRID, WEAK_EPSILON
from ..privacy.events import CountSketchEvent, GaussianEvent, GeometricEvent, GRREvent, SketchEvent, ThresholdEvent
from ..privacy.ledger import Ledger, LedgerEntry
from ..privacy.standing import REPLACE, Standing

__all__ = ["PHASES", "Step", "guarantee", "odds", "one_in", "rests_on", "steps"]

# What is said of an epsilon up to so much, in keeping with what planning one says (``plan.target_in_words``).
JUDGED = (
    (1.0, "Usual are targets like this one, ε of 1 and below."),
    (3.0, "Usual are ε of 1 and below; this is more."),
    (WEAK_EPSILON, "Usual are ε of 1 and below, and seldom above 3: this protects little."),
    (math.inf, "Usual are ε of 1 and below, and seldom above 3: this is hardly any protection."),
)
# What the phases of a run's times are.
PHASES = {
    "LocMRF": "parties: counts of their own attributes",
    "LocEnc": "parties: sketches",
    "InitMRF": "server: model of the parties' own counts",
    "CarEst": "server: estimates across parties",
    "GraphCom": "server: which attributes belong together",
    "OptMRF": "server: the model",
    "sampling": "server: synthetic rows",
}


@dataclass(frozen=True)
class Step:
    """One line of a ledger.

    Attributes:
        entry: the line.
        sentence: what was released and what protects it.
        share: its part of the run's cost, 0 to 1.
        epsilon: spent so far.
    """

    entry: LedgerEntry
    sentence: str
    share: float
    epsilon: float


def steps(ledger: Ledger) -> tuple[Step, ...]:
    """Every line of a ledger in words, in order."""
    return tuple(
        Step(entry, in_words(entry), share, spent.epsilon)
        for entry, share, spent in zip(ledger.entries, ledger.shares, ledger.spent, strict=True)
    )


def in_words(entry: LedgerEntry) -> str:
    """One line of a ledger as a sentence; of a kind that has none, its own words."""
    event, released = entry.event, entry.released
    # A party's name stays as it is written.
    who = {"all parties": "All parties", "coordinator": "The coordinator"}.get(entry.party, entry.party)
    found = re.match(r"(\d[\d,]*) ", released)
    number = found[1] if found else ""
    match event:
        case GaussianEvent(sigma=sigma) if released == "record count":
            return f"{who} said how many records it has, with random noise: typically {sigma:,.0f} too many or too few."
        case GaussianEvent(sigma=sigma) if released.endswith("one-way marginals"):
            each = "for its attribute" if number == "1" else f"for each of {number} attributes by itself"
            return (
                f"{who} counted, {each}, the records that have each value, and added random noise to every count: typically "
                f"{sigma:,.0f} records up or down."
            )
        case GaussianEvent(sigma=sigma) if released.endswith("R-scores"):
            return (
                f"{who} scored how much any two of its attributes have to do with each other ({number} scores, in records), with "
                f"random noise of typically {sigma / SCORE_GRID:,.0f}."
            )
        case GaussianEvent(count=units) if released.startswith("larger marginals"):
            return (
                f"{who} counted records by combinations of several of its attributes, with random noise in every count. Which "
                f"combinations was decided from what stands above; {units:,} units of measurement are what it may spend on them."
            )
        case CountSketchEvent(variance=variance) if "agree on" in released:
            column = released.split("agree on ", 1)[1]
            return (
                f"{who} published coded counters that tell for about how many records they agree on {column}. A record moves a "
                f"counter by 1; random noise of typically {math.sqrt(variance):,.1f} was added."
            )
        case CountSketchEvent(variance=variance, groups=groups, repetitions=repetitions, buckets=buckets):
            record, step, noise = f"a record is in {groups} of them", "1", f"{math.sqrt(variance):,.1f}"
            if weighed := re.search(r"moves it \((\d+) to (\d+)\)", entry.noise):
                record = f"a record is in some of every attribute, and moves them by {groups} in all"
                least, most = (int(weight) for weight in weighed.groups())
                step = f"{least} to {most}"
                noise = f"{math.sqrt(least * variance):,.1f} to {math.sqrt(most * variance):,.1f}"
            return (
                f"{who} mixed their records into tables of {repetitions * buckets:,} counters, one table for every value of an "
                f"attribute, or for what tells its two values apart; {record}. Which counters a record "
                "moves, and whether up or down, is decided by a secret that the server does not have. A record moves a counter "
                f"by {step}; random noise of typically {noise} was added, "
                "and the sum rounded. Only all counters together tell how many records two values of different parties have in "
                "common."
            )
        case SketchEvent(attributes_per_key=attributes, keys=keys) if "all under the same" in released:
            return (
                f"{who} published sketches of all {attributes} attributes under the same {keys:,} secret keys, as the original "
                "paper does. This is not private: complete records can be read off."
            )
        case SketchEvent(keys=keys, phantoms=phantoms):
            return (
                f"{who} published sketches under {keys:,} secret keys, each for attributes of two parties: of random numbers "
                f"drawn for every record only the largest, with {phantoms:,} invented records mixed in. They tell about how many "
                "records two values have in common."
            )
        case GRREvent():
            return (
                f"{who} published every record, with each value replaced by a random one so often that no published value can "
                "be held against anybody. The number of records is exact."
            )
        case GeometricEvent(scale=scale) if released.startswith("record count"):
            typical = math.sqrt(2) * scale
            return f"{who} counted the records, to plan with, with random noise: typically {typical:,.0f} too many or too few."
        case GeometricEvent(scale=scale):
            typical = math.sqrt(2) * scale
            return f"{who} found the {released} from counts with random noise of typically {typical:,.0f} records in each."
        case ThresholdEvent(threshold=threshold):
            return f"{who} found the {released}: those that, counted with random noise, {threshold:,} records or more have."
    return f"{who} released {released}; protected by {entry.noise}."


def odds(epsilon: float, delta: float) -> float:
    """How often at most an observer is right who guesses which of two neighbouring tables was used, both equally likely before.

    Of two laws that are (epsilon, delta)-close in both directions the total variation is at most
    (e^epsilon - 1 + 2 delta) / (e^epsilon + 1) (Kairouz, Oh and Viswanath, 2015).
    """
    return min(1.0, (1.0 + delta * math.exp(-epsilon)) / (1.0 + math.exp(-epsilon)))


def one_in(probability: float) -> str:
    """A small probability as people say it."""
    if probability <= 0:
        return "never"
    times = 1 / probability
    # Two digits of it.
    scale = 10.0 ** max(math.floor(math.log10(times)) - 1, 0)
    return f"1 in {round(times / scale) * scale:,.0f}"


def guarantee(standing: Standing, several: bool) -> tuple[str, ...]:
    """What a standing means.

    Args:
        standing: the claim.
        several: whether several parties took part, who have a secret.
    """
    if not standing.private:
        return (
            "No privacy guarantee covers this run.",
            f"Why: {'; '.join(standing.reasons)}. What it made is to be kept as the tables that it was made of are.",
        )
    epsilon, delta = float(standing.epsilon or 0.0), float(standing.delta or 0.0)
    if standing.neighbours == REPLACE:
        what = "which of two possible records somebody has in the tables"
        whom = "one record."
    elif (found := re.search(r"up to (\d+) records", standing.neighbours)) is not None:
        what = "whether somebody, with all of up to " + found[1] + " records, is in the tables"
        whom = f"a person, with up to {found[1]} records; who had more was left out with the rest of them."
    else:
        what = "whether somebody's record is in the tables"
        whom = "one record, at every party. Who has several, under several ids, is protected less."
    right = odds(epsilon, delta)
    secret = ", but for the parties' secret" if several else ""
    judged = next(said for most, said in JUDGED if epsilon <= most)
    return (
        f"Somebody sees all that was released, and anything made of it, and has to guess {what}; beforehand both seemed equally "
        f"likely. The guess will be right at most {100 * right:.3g} times out of 100; without having seen anything it would be "
        f"right 50 times. This holds for every person, and whatever else is known to whoever guesses{secret}; it is proved, not "
        f"measured. {judged}",
        f"In the terms of the field: (ε, δ)-differential privacy with ε = {epsilon:.4g} and δ = {delta:.3g} ({one_in(delta)}), "
        f"neighbours: {standing.neighbours}.",
        f"What is protected: {whom}",
    )


def rests_on(several: bool, private: bool, colluding: float | None = None) -> tuple[str, ...]:
    """Conditions of a guarantee, and what it does not say.

    Args:
        several: whether several parties took part.
        private: whether there is one.
        colluding: epsilon if a party colludes with the server; infinite where none holds, None where none is known.
    """
    if not private:
        return ()
    kept = "The parties keep their common secret from the server and from everybody else."
    if colluding is None or math.isinf(colluding):
        together = (
            f"{kept} A party that hands it to the server discloses what the others' sketches hold.",
            "What a party, which knows the secret, can learn of the others' people from the result is not covered by the proof.",
        )
    else:
        right = 100 * odds(colluding, 0.0)
        times = "nearly always" if right > 99 else f"up to {right:.3g} times out of 100"
        together = (
            f"{kept} If a party hands it to the server, what the other parties hold is protected with ε = {colluding:.4g} at the "
            f"same δ, and no better: the guess described above may be right {times}.",
            "The same ε holds for what a party, which knows the secret, can learn of the others' people from the result.",
        )
    return (
        *(together if several else ()),
        "Every further release about the same people adds to what is spent; the command “vertimrf plan PLAN PLAN” adds plans up.",
        "It says nothing of what is true of people in general: that smokers fall ill more often can be learned from the result, "
        "and may concern people whether or not they took part.",
    )

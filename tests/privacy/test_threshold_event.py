"""The price of a stability histogram against OpenDP's, and against every way in which a person's records may fall."""

import itertools
import math

import numpy as np
import pytest
from builders import event_from_json

from vertimrf.errors import PrivacyError
from vertimrf.files.convert import to_json
from vertimrf.privacy.accountant import delta as composed_delta
from vertimrf.privacy.accountant import epsilon as composed_epsilon
from vertimrf.privacy.events import (
    GeometricEvent,
    ThresholdEvent,
    under_replacement,
)
from vertimrf.privacy.ledger import LedgerEntry, spent_beforehand


@pytest.mark.parametrize("scale, threshold", [(10.0, 200), (80.0, 1900), (2.5, 40)])
def test_the_price_is_opendps(scale, threshold):
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = (
        dp.map_domain(dp.atom_domain(T=str), dp.atom_domain(T="i64")),
        dp.l01inf_distance(dp.absolute_distance(T="i64")),
    )
    measure = space >> dp.m.then_laplace_threshold(scale=scale, threshold=threshold)
    epsilon, exposed = measure.map((1, 1, 1))
    event = ThresholdEvent(scale, threshold)
    assert event.pure_epsilon == pytest.approx(epsilon, rel=1e-9)
    # Theirs is the chance to exceed what is missing to the threshold; a count that meets the threshold is released too, so that
    # ours is dearer by one step of the noise.
    assert ThresholdEvent(scale, threshold + 1).exposed == pytest.approx(exposed, rel=1e-6)
    assert event.exposed == pytest.approx(exposed * math.exp(1 / scale), rel=1e-6)


def parts(total):
    """Every way to deal records to values."""
    for size in range(1, total + 1):
        yield from (
            split
            for split in itertools.combinations_with_replacement(range(1, total + 1), size)
            if sum(split) == total
        )


@pytest.mark.parametrize("sensitivity", [1, 2, 4])
@pytest.mark.parametrize("scale", [0.7, 3.0, 12.0])
def test_no_way_of_dealing_records_exposes_more_and_one_as_much(sensitivity, scale):
    event = ThresholdEvent(scale, sensitivity + 9, sensitivity)

    def reaches(count):
        # P(noise >= threshold - count), summed term by term.
        noise = np.arange(event.threshold - count, event.threshold + int(60 * scale) + 60)
        return float((np.exp(-noise / scale) * math.tanh(0.5 / scale)).sum())

    sums = [sum(map(reaches, split)) for split in parts(sensitivity)]
    assert max(sums) == pytest.approx(event.exposed, rel=1e-9)
    least = ThresholdEvent.least_threshold(scale, event.exposed * (1 + 1e-9), sensitivity)
    assert least == event.threshold
    assert (
        ThresholdEvent(
            scale, ThresholdEvent.least_threshold(scale, 1e-9, sensitivity), sensitivity
        ).exposed
        <= 1e-9
    )


@pytest.mark.parametrize("sensitivity", [1, 3])
def test_no_neighbours_are_told_apart_better_than_the_price_says(sensitivity):
    """The hockey-stick divergence of the mechanism itself, over counts that others have and that nobody else has."""
    event = ThresholdEvent(4.0, sensitivity + 12, sensitivity)
    reach = event.threshold + 200
    noise = np.arange(-reach, reach + 1)
    pmf = np.exp(-np.abs(noise) / event.scale)
    pmf /= pmf.sum()

    def released(count):
        """Law of a count that is released, or of nothing in the first place; a value that nobody has is never there."""
        values = noise + count
        shown = np.where(values >= event.threshold, pmf, 0.0)
        law = np.zeros(2 * reach + 2 + reach)
        law[1 + values[shown > 0] - event.threshold] = shown[shown > 0]
        law[0] = 1 - shown.sum() if count else 1.0
        return law

    for others in (0, 5, event.threshold):
        with_it, without = released(others + sensitivity), released(others)
        for one, two in ((with_it, without), (without, with_it)):
            for epsilon in (0.0, 0.3 * event.pure_epsilon, event.pure_epsilon):
                gap = float(np.maximum(one - math.exp(epsilon) * two, 0.0).sum())
                assert gap <= composed_delta([event], epsilon) + 1e-12
                if epsilon == event.pure_epsilon:
                    assert gap <= event.exposed * (1 + 1e-9)


def test_it_composes_where_it_is_not_beforehand():
    event = ThresholdEvent(20.0, 900)
    spent = composed_epsilon([event, GeometricEvent(20.0)], 1e-6)
    assert spent.method == "pld"
    # Rounded up to a grid.
    assert 0.09 < spent.epsilon <= 0.1 * 1.01
    # Below what it exposes there is no epsilon.
    assert composed_epsilon([event], event.exposed / 2).epsilon == math.inf


def test_beforehand_epsilons_and_deltas_add():
    events = [GeometricEvent(10.0), ThresholdEvent(20.0, 700), ThresholdEvent(20.0, 700, 2)]
    entries = [LedgerEntry(event, "a", "domain", "noise") for event in events]
    epsilon, exposed = spent_beforehand(entries)
    assert epsilon == pytest.approx(0.1 + 0.05 + 0.1)
    assert exposed == pytest.approx(events[1].exposed + events[2].exposed)


def test_replacement_and_bad_parameters():
    event = ThresholdEvent(20.0, 700, 3)
    assert under_replacement(event) == ThresholdEvent(20.0, 700, 6)
    for wrong in ({"scale": 0.0}, {"threshold": 3}, {"sensitivity": 0}, {"threshold": 7.5}):
        with pytest.raises(PrivacyError):
            event_from_json(to_json(event) | wrong)

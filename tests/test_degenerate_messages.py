"""Messages that are well-formed and extreme: a result, or a typed error that names the party."""

from dataclasses import replace

import numpy as np
import pytest

from tests import degenerate
from tests.degenerate import Draw, outcome
from vertimrf.errors import MessageError
from vertimrf.message import Message
from vertimrf.model import off_tree
from vertimrf.model.evidence import stand_out
from vertimrf.model.local_marginal import LocalMarginal
from vertimrf.model.measurement import Measurement
from vertimrf.releases.count_sketches import estimation
from vertimrf.releases.count_sketches.intersections import Cells


@pytest.fixture(autouse=True)
def few_rows(monkeypatch):
    """Rows of off-tree fits take most of the time, and these fits need not be close."""
    monkeypatch.setattr(off_tree, "MIN_ROWS", 1 << 11)


def drawn(name, seed, folder):
    """The outcome of one draw."""
    plan = degenerate.plan_of(name)
    return outcome(plan, Draw(np.random.default_rng(seed)).messages(plan), folder)[0]


@pytest.mark.parametrize("name", degenerate.NAMES)
def test_extreme_messages_give_a_result_or_an_error_that_names_the_party(name, tmp_path):
    assert "result" in [drawn(name, seed, tmp_path) for seed in range(14)]


@pytest.mark.slow
@pytest.mark.parametrize("name", degenerate.NAMES)
def test_many_extreme_messages(name, tmp_path):
    for seed in range(100_000, 100_200):
        drawn(name, seed, tmp_path)


def read(message, plan):
    """A message as the server reads it."""
    return Message.from_bytes(message.to_bytes(plan), plan, "The message of 'hospital'")


@pytest.fixture
def sound():
    """A plan, and the hospital's message of 100 records of few values each."""
    plan = degenerate.plan_of("count sketches")
    draw = Draw(np.random.default_rng(0))
    draw.levels_kind = "low"
    message = draw.message(plan, 0, 100, 0)
    sigma, unit = plan.local[0].one_way_sigma, plan.local[0].unit_sigma
    marginals = (
        LocalMarginal((0,), np.array([0, 100, 0]), sigma),
        LocalMarginal((1,), np.array([100, 0]), sigma),
        LocalMarginal((0, 1), np.array([[0, 0], [100, 0], [0, 0]]), unit),
    )
    bins = degenerate.bins_of(plan, 0, degenerate.one_way_counts(marginals))
    return plan, replace(message, marginals=marginals, bins=bins, count=100)


def with_counts(message, place, counts):
    """A message with other counts of one marginal."""
    marginals = list(message.marginals)
    marginals[place] = replace(marginals[place], counts=np.array(counts))
    return replace(message, marginals=tuple(marginals))


def test_a_table_of_one_value_is_a_table(sound):
    plan, message = sound
    assert read(message, plan).count == 100


@pytest.mark.parametrize("bins", [[0, 0], [1, 0], [1, 1], [0, 65535]])
def test_bins_are_those_that_follow(sound, bins):
    plan, message = sound
    wrong = replace(message, bins=(message.bins[0], (np.array(bins),)))
    with pytest.raises(
        MessageError,
        match=r"^The message of 'hospital': its bins of 'b' are not those that follow from its one-way marginal: have it made again\.$",
    ):
        read(wrong, plan)


def test_contrasts_of_one_bin_are_no_measurement():
    plan = degenerate.plan_of("contrasts")
    ones = np.ones((sum(plan.sketch.sizes), sum(plan.sketch.sizes)))
    bins = [(np.arange(size),) for size in plan.sketch.sizes]
    bins[1] = (np.zeros(2, np.int64),)
    cells = Cells(ones, ones, ones, ones[0])
    found = estimation._between_groups(plan, plan.sketch, bins, cells)
    assert len(found) == 6
    assert not any(1 in m.attributes for m in found)


def test_sums_that_contradict_each_other_are_refused(sound):
    """Noise explains 20 of its standard deviations, and no more: the sum of three counts has sqrt(3) of one."""
    plan, message = sound
    off = 21 * 3**0.5 * plan.local[0].one_way_sigma
    # The average of all moves too: by a precision of 1 / 3 in 1 / 3 + 1 / 2 and that of the count.
    for far, refused in ((2 * off, True), (0.5 * off, False)):
        wrong = with_counts(message, 0, [0, 100 + round(far), 0])
        wrong = with_counts(wrong, 2, [[0, 0], [100 + round(far), 0], [0, 0]])
        wrong = replace(
            wrong, bins=degenerate.bins_of(plan, 0, degenerate.one_way_counts(wrong.marginals))
        )
        if refused:
            with pytest.raises(MessageError, match="hospital': its counts contradict each other"):
                read(wrong, plan)
        else:
            read(wrong, plan)


def test_a_pair_that_contradicts_single_attributes_is_refused(sound):
    plan, message = sound
    far = round(32 * plan.local[0].unit_sigma)
    moved = with_counts(message, 2, [[far, 0], [100 - far, 0], [0, 0]])
    with pytest.raises(MessageError, match="its marginal of a × b contradicts those of single"):
        read(moved, plan)


def test_contrasts_of_more_records_than_there_are_are_refused():
    plan = degenerate.plan_of("local contrasts")
    sigma, unit = plan.local[1].one_way_sigma, plan.local[1].unit_sigma
    counts = np.array([50, 50])
    for most, refused in ((round(15 * unit), False), (round(25 * unit) + 100, True)):
        marginals = (
            LocalMarginal((3,), counts, sigma),
            LocalMarginal((4,), counts, sigma),
            LocalMarginal((3, 4), np.array([[most]]), unit, 1, (), (0, 1)),
        )
        draw = Draw(np.random.default_rng(0), "low")
        bins = degenerate.bins_of(plan, 1, degenerate.one_way_counts(marginals))
        message = replace(draw.message(plan, 1, 100, 0), marginals=marginals, bins=bins)
        if refused:
            with pytest.raises(MessageError, match="its marginal of x × y contradicts"):
                read(message, plan)
        else:
            read(message, plan)


def test_a_marginal_comes_once_and_fits_the_cliques(sound):
    plan, message = sound
    again = replace(message, marginals=(*message.marginals, message.marginals[2]))
    with pytest.raises(MessageError, match="marginal 3 repeats another"):
        read(again, plan)
    limits = degenerate.structs.replace(plan.local[0], largest_clique=5)
    small = replace(plan, local=(limits, plan.local[1]))
    with pytest.raises(MessageError, match=r"marginal 2 .* has more cells than the plan allows"):
        read(replace(message, plan_digest=small.digest()), small)


def test_a_contrast_of_one_value_is_no_evidence():
    nothing = Measurement((0, 1), (None, None), np.array([[5.0, 5.0]]), 1.0, "", (0,))
    assert nothing.dimensions == 0
    assert not stand_out([nothing], [np.zeros((1, 2))]).any()


@pytest.mark.parametrize(
    "name", ["long domains in two bins", "encrypted counts of long domains in two bins"]
)
def test_a_long_domain_of_rare_values_has_halves_of_its_values(name, tmp_path, monkeypatch):
    """Merged they are one value, of which a contrast would say nothing."""
    monkeypatch.setattr(degenerate, "COUNTS", ("even",))
    plan, draw = degenerate.plan_of(name), Draw(np.random.default_rng(0), "near")
    messages = [draw.message(plan, party, 40, 0) for party in (0, 1)]
    assert [sorted(set(maps[0].tolist())) for m in messages for maps in m.bins][::2] == [
        [0, 1],
        [0, 1],
    ]
    assert outcome(plan, messages, tmp_path) == ("result", "")


def test_randomised_responses_of_different_numbers_of_rows_name_the_parties(tmp_path, monkeypatch):
    monkeypatch.setattr(degenerate, "COUNTS", ("even",))
    plan, draw = degenerate.plan_of("randomised responses"), Draw(np.random.default_rng(0), "near")
    messages = [draw.message(plan, party, 40, rows) for party, rows in ((0, 30), (1, 7))]
    (told, sentence) = outcome(plan, messages, tmp_path)
    assert told == "told", sentence
    assert "different numbers of rows (hospital 30, insurer 7)" in sentence

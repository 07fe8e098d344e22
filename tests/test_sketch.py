"""``Sketch``, the public face of the geometric kernels, as somebody who embeds it meets it."""

import re

import numpy as np
import pytest

import vertimrf
from vertimrf import Sketch

KEY = bytes(range(32))
# Independent keys, for statistics.
KEYS = [bytes([number]) * 32 for number in range(60)]


@pytest.mark.parametrize(
    "left, right, least",
    [
        (range(30_000), range(20_000, 60_000), 0.08),
        # A set within the other, and two disjoint ones, where the bounds hold estimates back.
        (range(1_000), range(30_000), 0.0),
        (range(5_000), range(5_000, 9_000), 0.0),
    ],
)
def test_two_holders_learn_how_many_records_they_share_with_an_error(left, right, least):
    true = len({*left} & {*right})
    pairs = [(Sketch.encode(left, key), Sketch.encode(right, key)) for key in KEYS]
    estimates, errors = np.transpose([a.intersection(b) for a, b in pairs])
    # A mean of 60 is off by five of its standard errors with a probability below 1e-6. What lies
    # below 0 counts as 0, which moves the mean of disjoint sets by half an error.
    slack = 0.0 if true else 0.5 * errors.mean()
    assert abs(estimates.mean() - true) < 5 * errors.mean() / np.sqrt(60) + slack
    # The ratio of variances is 1 +- 5 sqrt(2 / 59).
    assert least <= np.var(estimates) / np.mean(errors**2) < 1.92


def test_pieces_in_any_order_give_the_sketch_of_the_whole():
    ids = np.random.default_rng(0).permutation(20_000)
    whole = Sketch.encode(ids, KEY, keys=70_000)
    first, *others = [Sketch.encode(piece, KEY, keys=70_000) for piece in np.array_split(ids, 5)]
    for piece in reversed(others):
        first = first.merge(piece)
    assert np.array_equal(first.levels, whole.levels)
    assert first.records == whole.records == 20_000
    assert repr(whole) == "Sketch(records=20000)"


def test_a_number_and_its_text_are_one_id():
    texts, numbers = Sketch.encode(["7", "8"], KEY), Sketch.encode([7, 8], KEY)
    assert np.array_equal(texts.levels, numbers.levels)
    # Equal sets share all records, and an empty one shares none.
    assert numbers.intersection(texts)[0] == pytest.approx(2, abs=0.1)
    assert Sketch.encode(np.empty(0, int), KEY).intersection(texts)[0] == 0


def test_an_array_that_somebody_sent_is_checked():
    sketch = Sketch.encode(range(100), KEY)
    assert not sketch.levels.flags.writeable
    again = Sketch(np.frombuffer(sketch.levels.tobytes(), np.uint8), 100, sketch.mark)
    assert again.intersection(sketch)[0] == pytest.approx(100, rel=0.1)
    levels = sketch.levels
    for mistake, words in (
        (lambda: Sketch(levels.astype(int), 100, sketch.mark), "one row of uint8"),
        (lambda: Sketch(levels[None], 100, sketch.mark), "one row of uint8"),
        (lambda: Sketch(levels * 0, 100, sketch.mark), "level outside 1 .. 30"),
        (lambda: Sketch(levels, -1, sketch.mark), "0 records or more, not -1"),
        (lambda: Sketch(levels, 100, b""), "8 bytes"),
        (lambda: Sketch.encode([0.5], KEY), "must be integers or strings, not float64"),
        (lambda: Sketch.encode([[1]], KEY), "must be one row"),
        (lambda: Sketch.encode([1], b"short"), "is 32 bytes"),
        (lambda: Sketch.encode([1], KEY, keys=0), "keys, not 0"),
        (lambda: sketch.merge(Sketch.encode([1], bytes(32))), "with the same key"),
        (lambda: sketch.intersection(levels), "with the same key"),
        (lambda: sketch.merge(Sketch.encode([1], KEY, keys=5)), "have 4,096 and 5 keys"),
    ):
        with pytest.raises(vertimrf.VertiMRFError, match=re.escape(words)):
            mistake()

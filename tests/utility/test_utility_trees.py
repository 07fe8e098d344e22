"""Trees: what they take for categories, and the areas that they are judged by."""

import numpy as np
import pytest

from vertimrf.columns.column import Attribute
from vertimrf.utility.trees import area, categories, learner, predict


def test_the_area_is_that_of_pairs_in_the_right_order():
    rng = np.random.default_rng(3)
    truth, scores = rng.integers(0, 3, 60).astype(np.uint16), rng.random((60, 3))
    expected = 0.0
    for value in range(3):
        pairs = np.sign(scores[truth == value, value][:, None] - scores[truth != value, value])
        expected += (0.5 + pairs.mean() / 2) * (truth == value).mean()
    assert area(scores, truth) == pytest.approx(expected)


def test_what_has_an_order_is_no_category():
    listed = [
        Attribute.integer("age", 8),
        Attribute.categorical("job", ["a", "b", "c"]),
        Attribute.categorical("grade", ["low", "high"], ordered=True),
        Attribute.categorical("town", list(map(str, range(256)))),
        Attribute.categorical("ill", ["no", "yes"]),
    ]
    assert categories(listed) == [1, 4]


def test_trees_learn_categories_and_several_values():
    rng = np.random.default_rng(4)
    # A label that follows a category and an order, of which codes 1 and 3 never occur in training.
    job, age = rng.integers(0, 6, 4000), rng.integers(0, 10, 4000)
    grade = np.where(np.isin(job, (0, 2, 5)), 0, np.where(age < 5, 2, 4))
    records = np.array([job, grade, age]).astype(np.uint16)
    attributes = [
        Attribute.categorical("job", list("abcdef")),
        Attribute.integer("grade", 5),
        Attribute.integer("age", 10),
    ]
    predicted = predict(learner(), records[:, :2000], records[:, 2000:], attributes, 1, 0)
    assert predicted["auc"] > 0.99
    assert predicted["accuracy"] > 0.98

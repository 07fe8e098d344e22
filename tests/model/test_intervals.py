"""Combining estimates from draws: the rule by hand, and what it refuses."""

import numpy as np
import pytest

from vertimrf import combine
from vertimrf.errors import ModelError


def test_the_rule_by_hand():
    """Between the draws the variance is 1, so T = 4/3; t of 2 degrees of freedom is 4.3027 at 95 % and 2.9200 at 90 %."""
    combined = combine([1.0, 2.0, 3.0], [0.5, 0.1, 0.3])
    assert (combined.estimate, combined.degrees_of_freedom) == (2.0, 2)
    assert combined.standard_error == pytest.approx((4 / 3) ** 0.5)
    low, high = combined.interval()
    assert (low, high) == pytest.approx((2 - 4.3027 * 1.1547, 2 + 4.3027 * 1.1547), abs=1e-3)
    assert combined.interval(0.9)[1] == pytest.approx(2 + 2.92 * 1.1547, abs=1e-3)


def test_the_variance_is_at_least_that_of_sampling():
    assert combine([1.0, 2.0, 3.0], [4.0, 4.0, 1.0]).standard_error == pytest.approx(3**0.5)


def test_an_estimate_of_the_model_corrects_the_bias_that_draws_have_twice():
    combined = combine([[1.0], [2.0], [3.0]], [[0.0]] * 3, released=[2.5])
    assert combined.estimate == [3.0]
    assert combined.standard_error**2 == pytest.approx(4 / 3 + 1 / 12)
    with pytest.raises(ModelError, match="other coefficients"):
        combine([[1.0], [2.0]], [[0.0]] * 2, released=[2.5, 1.0])


def test_coefficients_are_combined_one_by_one():
    estimates = np.array([[1.0, 10], [2, 10], [3, 10]])
    combined = combine(estimates, np.full((3, 2), 0.25))
    np.testing.assert_allclose(combined.estimate, [2, 10])
    np.testing.assert_allclose(combined.standard_error, [(4 / 3) ** 0.5, 0.5])
    assert [limit.shape for limit in combined.interval()] == [(2,), (2,)]


@pytest.mark.parametrize(
    "estimates, variances",
    [
        ([1.0], [1.0]),
        ([1.0, 2.0], [1.0]),
        ([1.0, np.nan], [1.0, 1.0]),
        ([1.0, 2.0], [1.0, -1.0]),
        (np.zeros((2, 2, 2)), np.zeros((2, 2, 2))),
        ([[1.0, 2.0], [3.0]], [[1.0, 2.0], [3.0]]),
        (["a", "b"], [1.0, 1.0]),
    ],
)
def test_what_cannot_be_combined_is_refused(estimates, variances):
    with pytest.raises(ModelError):
        combine(estimates, variances)


def test_a_level_is_a_probability():
    with pytest.raises(ModelError, match="between 0 and 1"):
        combine([1.0, 2.0], [1.0, 1.0]).interval(95)

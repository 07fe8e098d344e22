"""Contrasts under encryption: one counter that two values raise and lower, at either side."""

import numpy as np
import pytest

from vertimrf.encrypted.counts import encrypt_rows, open_sums, sum_rows
from vertimrf.encrypted.packing import Layout, counters_of
from vertimrf.encrypted.paillier import PrivateKey

KEY = PrivateKey._of_bits(256)


def one_hot(codes, sizes, contrasts):
    """What each row adds to each counter [shape=(rows, counters)]."""
    out = []
    for group, (row, size) in enumerate(zip(codes, sizes, strict=True)):
        each = (row[:, None] == np.arange(size)).astype(int)
        out.append(each[:, :1] - each[:, 1:] if group in contrasts else each)
    return np.concatenate(out, axis=1)


@pytest.mark.parametrize("mine", [(), (0,), (0, 2)])
@pytest.mark.parametrize("theirs", [(), (1,), (0, 1)])
def test_contrasts_are_signed_sums(mine, theirs):
    rng = np.random.default_rng(5)
    sizes, others, rows = (2, 5, 2), (2, 2), 60
    layout = Layout(sizes, rows, 3.0, 256, mine, signed=True)
    packer = np.array([rng.integers(-1, size, rows) for size in sizes], np.int32)
    selector = np.array([rng.integers(-1, size, rows) for size in others], np.int32)
    sums = counters_of(others, theirs)
    noise = rng.integers(-layout.reach, layout.reach + 1, (sum(sums), layout.counters))
    answers = sum_rows(
        KEY.public,
        encrypt_rows(KEY, packer, layout),
        selector,
        others,
        noise,
        layout,
        contrasts=theirs,
    )
    opened = open_sums(KEY, answers, sums, layout)
    exact = one_hot(selector, others, theirs).T @ one_hot(packer, sizes, mine)
    for table, wanted in zip(opened, layout.tables(exact + noise, sums), strict=True):
        assert (table == wanted).all()


@pytest.mark.parametrize("sign", [0, 1])
def test_every_row_on_one_side_fits(sign):
    layout = Layout((2,), 40, 2.0, 256, (0,), signed=True)
    codes = np.full((1, 40), sign, np.int32)
    noise = np.full((1, 1), (1 - 2 * sign) * layout.reach)
    answers = sum_rows(
        KEY.public, encrypt_rows(KEY, codes, layout), codes, (2,), -noise, layout, contrasts=(0,)
    )
    assert open_sums(KEY, answers, (1,), layout)[0].item() == 40 - noise.item()


def test_contrasts_of_more_values_are_refused():
    with pytest.raises(ValueError, match="two values"):
        Layout((3,), 10, 1.0, contrasts=(0,), signed=True)

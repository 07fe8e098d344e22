"""What other tools wrote is read right, or a sentence says what is not: `pytest -m elsewhere`, half an hour with all tools."""

import functools

import pytest

from .judge import WRONG
from .page import PAGE, part, readings
from .register import TOOLS

pytestmark = [pytest.mark.elsewhere, pytest.mark.timeout(3600)]


@functools.cache
def found(name):
    if TOOLS[name].version() is None:
        pytest.skip(f"{name} is not installed.")
    return readings(TOOLS[name])


@pytest.mark.parametrize("name", TOOLS)
def test_each_column_is_right_or_named(name):
    wrong = {
        (format.name, column): cell.read
        for format, reading in found(name).items()
        for column, cell in reading.cells.items()
        if cell.verdict == WRONG
    }
    assert not wrong
    faults = [reading.fault for reading in found(name).values() if reading.fault]
    assert not faults


@pytest.mark.parametrize("name", TOOLS)
def test_the_page_says_what_is_read(name):
    assert part(TOOLS[name], found(name)) in PAGE.read_text()

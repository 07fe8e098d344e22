"""Names of columns in text that people write: plain, or between backticks."""

from __future__ import annotations

import re

QUOTED = r"`(?:[^`]|``)+`"
# A number in a rule.
NUMBER = r"\d+(?:\.\d+)?"


def written(name: str) -> str:
    """The text of a column's name, between backticks where it needs them."""
    plain = re.fullmatch(r"[\w.]+", name) and not re.fullmatch(NUMBER, name)
    return name if plain else f"`{name.replace('`', '``')}`"


def unquoted(text: str) -> str:
    """The name that a text means."""
    name = text.strip()
    return name[1:-1].replace("``", "`") if re.fullmatch(QUOTED, name) else name

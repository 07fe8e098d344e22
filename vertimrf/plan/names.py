"""Names of columns in text that people write: plain, or between backticks."""

from __future__ import annotations

import re

QUOTED = r"`(?:[^`]|``)+`"


def written(name: str) -> str:
    """The text of a column's name, between backticks where it needs them."""
    return name if re.fullmatch(r"[\w.]+", name) else f"`{name.replace('`', '``')}`"


def unquoted(text: str) -> str:
    """The name that a text means."""
    name = text.strip()
    return name[1:-1].replace("``", "`") if re.fullmatch(QUOTED, name) else name

"""Typed errors: each message is one sentence that says what is wrong, where, and the remedy."""

from __future__ import annotations

__all__ = [
    "ExchangeError",
    "MessageError",
    "ModelError",
    "NoMassError",
    "ObstacleError",
    "PlanError",
    "PrivacyError",
    "RunError",
    "SchemaError",
    "TableError",
    "VertiMRFError",
]

# Of a longer sentence the middle is left out: it quotes what somebody else wrote.
LONGEST, ENDING = 1000, 300


class VertiMRFError(ValueError):
    """Base of every error that bad input can cause; the command line turns it into one line and exit code 2.

    What a sentence quotes may come from anybody: it stays one line, of characters that a terminal shows.
    """

    def __init__(self, sentence: object = "") -> None:
        super().__init__(_plain(str(sentence)))


def _plain(text: str) -> str:
    if len(text) > LONGEST:
        text = f"{text[: LONGEST - ENDING]} … {text[-ENDING:]}"
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


class SchemaError(VertiMRFError):
    """A schema that is malformed, or that a table does not fit."""


class TableError(VertiMRFError):
    """A table that cannot be read, or whose ids or values are not usable."""


class PlanError(VertiMRFError):
    """Parameters that no run can be planned from."""


class PrivacyError(VertiMRFError):
    """A privacy target, event or ledger that cannot be met or does not add up."""


class MessageError(VertiMRFError):
    """A party's message that is truncated, altered, or belongs to another plan."""


class RunError(VertiMRFError):
    """A run folder that is not one, is of another role or in use, or has nothing to do what was asked with."""


class ExchangeError(VertiMRFError):
    """A place for files between roles that cannot be reached, or holds somebody else's file."""


class ObstacleError(ExchangeError):
    """Something in such a place that has the name of a run's file and cannot be one: a link, a pipe, a folder."""


class ModelError(VertiMRFError):
    """Measurements or cliques that no model can be fitted to within its limits."""


class NoMassError(ModelError):
    """A condition that no record of a model fulfils."""

"""Typed errors: each message is one sentence that says what is wrong, where, and the remedy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

# What reading a malformed JSON value raises.
MALFORMED = (LookupError, TypeError, ValueError, AttributeError, OverflowError)
# Longer messages lose their middle, because they may quote text of any length.
LONGEST, ENDING = 1000, 300
# Names that a message lists at most, and their longest.
MAX_NAMES, LONGEST_NAME = 5, 200


def some(names: Sequence[object]) -> str:
    """Names for messages, at most five of up to 200 characters."""
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return ", ".join(repr(name)[:LONGEST_NAME] for name in names[:MAX_NAMES]) + more


def first(items: Sequence[object], most: int) -> list[str]:
    """Texts of the first items of a list for people and, if there are more, of their number."""
    more = [f"and {len(items) - most:,} more"] * (len(items) > most)
    return [*map(str, items[:most]), *more]


def several(number: int, what: str) -> str:
    """A number of things of a name, as "1 table" and "2 tables"."""
    return f"{number:,} {what}" + "s" * (number != 1)


class VertiMRFError(ValueError):
    """Base class of all errors that bad input can cause. The command line prints one line and exits
    with code 2.

    A message may quote text from anyone. It is kept to one line of printable characters.

    Attributes:
        spent: ledger entries of noisy figures that were drawn before the error and count; usually
            none.
    """

    spent: tuple[Any, ...] = ()

    def __init__(self, sentence: object = "") -> None:
        super().__init__(_plain(str(sentence)))


def _plain(text: str) -> str:
    if len(text) > LONGEST:
        text = f"{text[: LONGEST - ENDING]} … {text[-ENDING:]}"
    return (
        text
        if text.isprintable()
        else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
    )


class SchemaError(VertiMRFError):
    """The schema is malformed, or a table does not fit it."""


class TableError(VertiMRFError):
    """A table cannot be read, or its ids or values are not usable."""


class PlanError(VertiMRFError):
    """No run can be planned from these parameters."""


class PrivacyError(VertiMRFError):
    """A privacy target, event or ledger cannot be met or is inconsistent."""


class MessageError(VertiMRFError):
    """A party's message is truncated, altered, or belongs to another plan."""


class UnmatchedError(MessageError):
    """Two parties have no significant number of records in common."""


class OutputError(VertiMRFError):
    """What is named for a result is no file, pipe or device, or may not be written to."""


class RunError(VertiMRFError):
    """A run folder is missing, in use or of another role, or lacks what was asked for."""


class ExchangeError(VertiMRFError):
    """The exchange folder cannot be reached, or holds another person's file."""


class PlaceError(ExchangeError):
    """No exchange can be at this address, or it refuses this account: to try again does not help."""


class CutError(ExchangeError):
    """A file in the exchange is not whole. Its sender may still be writing it."""


class ObstacleError(ExchangeError):
    """A link, pipe or folder in the exchange has the name of a run's file."""


class KernelError(VertiMRFError):
    """Compiled kernels cannot be kept."""


class ModelError(VertiMRFError):
    """No model within the limits fits the measurements or cliques."""


class NoMassError(ModelError):
    """No record of the model satisfies the condition."""

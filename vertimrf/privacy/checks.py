"""Checks of the parameters of privacy events."""

from __future__ import annotations

from ..errors import PrivacyError

# Bounds within which every formula of an event keeps its digits; all are far beyond any use.
MAX_REPETITIONS = 10**9
MAX_SENSITIVITY = 10**9


def check_whole(what: str, value: int, most: int, least: int = 1) -> None:
    """Check that a parameter is a whole number within bounds.

    Raises:
        PrivacyError: it is not.
    """
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        bound = (
            f"at most {most:,}" if isinstance(value, int) and value > most else f"at least {least}"
        )
        raise PrivacyError(
            f"{what[0].upper()}{what[1:]} must be a whole number of {bound}, not {value}."
        )


def check_number(what: str, value: float, least: float, most: float) -> None:
    """Check that a parameter is a number within bounds.

    Raises:
        PrivacyError: it is not.
    """
    if not isinstance(value, int | float) or isinstance(value, bool) or not least <= value <= most:
        raise PrivacyError(
            f"{what[0].upper()}{what[1:]} must be a number from {least:g} to {most:g}, not {value}."
        )

"""The form of record ids, a public fact: which kinds of characters they have, in which order.

A form copies punctuation. Letters and digits are written as classes:

==========  ====================================
``9``       a number without leading zeros
``0``       digits
``a, A``    small letters, capital letters
``x, X``    small or capital letters, or digits
``w``       letters of any kind, or digits
``*``       anything
==========  ====================================

A class written once stands for one or more characters, and written n times for exactly n:
``A000000`` is the form of B000123, and ``9.9`` that of 123.0.
"""

from __future__ import annotations

import re

from ..errors import SchemaError

LONGEST_FORM = 100
CLASSES = {
    "0": r"\p{N}",
    "a": r"\p{Ll}",
    "A": r"\p{Lu}",
    "x": r"[\p{Ll}\p{N}]",
    "X": r"[\p{Lu}\p{N}]",
    # Everything but ASCII punctuation.
    "w": r"[^ -/:-@\[-`{-~]",
}
PARTS = re.compile(r"([0aAxXw])\1*|[9*]|[^A-Za-z0-9]")


def check_form(form: object) -> None:
    """Refuse a form that is none, or that has characters of an id.

    Raises:
        SchemaError: it does.
    """
    valid = (
        isinstance(form, str)
        and 0 < len(form) <= LONGEST_FORM
        and all(" " <= character <= "~" for character in form)
        and "99" not in form
        and not PARTS.sub("", form)
    )
    if not valid:
        raise SchemaError(
            f"The form of ids is {form!r}: write 9 for a number without leading zeros, 0 for digits, a or A for letters, x or X for "
            "letters or digits, w for any of these, * for anything, and punctuation as it is."
        )


def form_pattern(form: str) -> str:
    """The regular expression (RE2) of the ids that have a form."""
    out = ""
    for part in PARTS.finditer(form):
        text, kind = part[0], part[1]
        if kind is not None:
            out += CLASSES[kind] + (f"{{{len(text)}}}" if len(text) > 1 else "+")
        else:
            out += {"9": r"(?:0|[1-9]\p{N}*)", "*": ".*"}.get(text, re.escape(text))
    return f"(?s)^{out}$"

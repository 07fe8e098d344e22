"""What a notebook shows of an object: its line and its text for people, as HTML."""

from __future__ import annotations

from html import escape


def as_html(shown: object, text: str = "") -> str:
    """An object for a notebook.

    Args:
        shown: the object; its ``repr`` is the heading.
        text: what more there is to say of it, as for a terminal.

    Returns:
        HTML without markup from ``text`` or from names of columns.
    """
    heading = f"<p><b>{escape(repr(shown).strip('<>'))}</b></p>"
    more = escape(text)
    return heading + (f"<pre>{more}</pre>" if more else "")

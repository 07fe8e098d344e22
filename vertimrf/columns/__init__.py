"""Kinds of columns: each knows its domain, its texts, its codes and its values."""

# A kind registers with :class:`.column.Attribute` when it is loaded.
from . import coded, dates, large, listed, numbers  # noqa: F401

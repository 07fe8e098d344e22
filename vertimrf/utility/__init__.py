"""Utility of a synthetic table by common measures.

The figures are exact statistics of the real table: not private.
"""

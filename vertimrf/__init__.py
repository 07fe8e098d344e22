"""Differentially private synthesis of tables whose columns are held by organisations that may not pool them."""

from __future__ import annotations

__version__ = "0.1.0"

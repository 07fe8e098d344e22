"""Kinds of columns: each knows its domain, its texts, its codes and its values."""

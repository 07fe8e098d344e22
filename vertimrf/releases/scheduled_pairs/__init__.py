"""Scheduled pairs: geometric sketches under keys of their own for every pair of attributes."""

"""The engine under other front ends, one module each (docs/adapters.md).

Nothing is imported here.
"""

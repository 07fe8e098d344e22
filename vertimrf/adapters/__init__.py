"""The engine under other front ends, one module each, imported only when asked for (docs/adapters.md)."""

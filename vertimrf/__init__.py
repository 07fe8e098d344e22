"""Differentially private synthesis of tables whose columns are held by organisations that may not pool them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .errors import VertiMRFError
    from .message import Message
    from .party import Party
    from .plan import Plan, make_plan
    from .protocol import Trial, synthesize
    from .schema import Attribute, Schema
    from .secret import Secret
    from .server import Result, Server

__version__ = "0.1.0"

__all__ = [
    "Attribute",
    "Message",
    "Party",
    "Plan",
    "Result",
    "Schema",
    "Secret",
    "Server",
    "Trial",
    "VertiMRFError",
    "make_plan",
    "synthesize",
]

# Loaded on first use, so that `import vertimrf` costs next to nothing and compiles nothing.
_ROOMS = {
    "Attribute": "schema",
    "Message": "message",
    "Party": "party",
    "Plan": "plan",
    "Result": "server",
    "Schema": "schema",
    "Secret": "secret",
    "Server": "server",
    "Trial": "protocol",
    "VertiMRFError": "errors",
    "make_plan": "plan",
    "synthesize": "protocol",
}


def __getattr__(name: str) -> Any:
    if name not in _ROOMS:
        raise AttributeError(f"module 'vertimrf' has no attribute {name!r}")
    value = getattr(import_module(f".{_ROOMS[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

"""Differentially private synthesis of tables whose columns are held by organisations that may not
pool them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .columns.column import Attribute
    from .errors import VertiMRFError
    from .evaluation import evaluate
    from .keys import Offer, PrivateKey, PublicKeys
    from .message import Message
    from .model.intervals import Combined, combine
    from .named_model import Model
    from .options import EvaluationOptions, RunOptions
    from .party.party import Party
    from .party.secret import Secret, open_envelope, seal_secret
    from .plan.impossible import Impossible
    from .plan.open_schema import OpenSchema
    from .plan.options import PlanOptions
    from .plan.plan import Plan
    from .plan.planner import make_plan
    from .plan.schema import Schema
    from .plan.summary import summary
    from .privacy.ledger import Ledger
    from .report.page import write_report
    from .server.result import Result
    from .server.server import Server
    from .sketch import Sketch
    from .synthesizer import Synthesizer
    from .tables.infer import draft_schema
    from .tables.read_options import ReadOptions
    from .tables.write import write_table
    from .trial import Trial, synthesize

__version__ = "0.1.0"

__all__ = [
    "Attribute",
    "Combined",
    "EvaluationOptions",
    "Impossible",
    "Ledger",
    "Message",
    "Model",
    "Offer",
    "OpenSchema",
    "Party",
    "Plan",
    "PlanOptions",
    "PrivateKey",
    "PublicKeys",
    "ReadOptions",
    "Result",
    "RunOptions",
    "Schema",
    "Secret",
    "Server",
    "Sketch",
    "Synthesizer",
    "Trial",
    "VertiMRFError",
    "combine",
    "draft_schema",
    "evaluate",
    "make_plan",
    "open_envelope",
    "seal_secret",
    "summary",
    "synthesize",
    "write_report",
    "write_table",
]

# By public name, its module. Names are loaded on first use, so that importing the package compiles
# nothing.
_MODULES = {
    "Attribute": "columns.column",
    "Combined": "model.intervals",
    "EvaluationOptions": "options",
    "Impossible": "plan.impossible",
    "Ledger": "privacy.ledger",
    "Message": "message",
    "Model": "named_model",
    "Offer": "keys",
    "OpenSchema": "plan.open_schema",
    "Party": "party.party",
    "Plan": "plan.plan",
    "PlanOptions": "plan.options",
    "PrivateKey": "keys",
    "PublicKeys": "keys",
    "ReadOptions": "tables.read_options",
    "Result": "server.result",
    "RunOptions": "options",
    "Schema": "plan.schema",
    "Secret": "party.secret",
    "Server": "server.server",
    "Sketch": "sketch",
    "Synthesizer": "synthesizer",
    "Trial": "trial",
    "VertiMRFError": "errors",
    "combine": "model.intervals",
    "draft_schema": "tables.infer",
    "evaluate": "evaluation",
    "make_plan": "plan.planner",
    "open_envelope": "party.secret",
    "seal_secret": "party.secret",
    "summary": "plan.summary",
    "synthesize": "trial",
    "write_report": "report.page",
    "write_table": "tables.write",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f".{_MODULES[name]}", __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})

"""The server's walk from messages to a result, as several test files take it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vertimrf.message import Message
from vertimrf.options import RunOptions
from vertimrf.plan.plan import Plan
from vertimrf.server.server import Result, Server


def run_server(plan: Plan, messages: Sequence[Message], **options: Any) -> Result:
    """Read the messages and run, with :class:`RunOptions` by name."""
    server = Server(plan, RunOptions(**options))
    return server.run(server.read(messages))

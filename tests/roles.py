"""The server's walk from messages to a result, as several test files take it."""

from vertimrf.options import RunOptions
from vertimrf.server.server import Server


def run_server(plan, messages, **options):
    """Read the messages and run, with :class:`RunOptions` by name."""
    server = Server(plan, RunOptions(**options))
    return server.run(server.read(messages))

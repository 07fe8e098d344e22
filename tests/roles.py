"""The roles' walk from tables to messages, and from messages to a result, as several test files take it."""

from vertimrf.options import RunOptions
from vertimrf.party.party import Party
from vertimrf.party.secret import Secret
from vertimrf.privacy.noise import FixedNoise
from vertimrf.server.server import Server


def messages_of(plan, tables, secret=None, fixed=False):
    """Every party's message about its table, under one secret; with ``fixed``, of noise that is the same every time."""
    secret = secret or Secret.new()
    return [
        Party(plan, name, secret, FixedNoise(i) if fixed else None).run(table)
        for i, (name, table) in enumerate(zip(plan.party_names, tables, strict=True))
    ]


def run_server(plan, messages, **options):
    """Read the messages and run, with :class:`RunOptions` by name."""
    server = Server(plan, RunOptions(**options))
    return server.run(server.read(messages))

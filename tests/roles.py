"""The roles' walk from tables to messages, and from messages to a result, as several test files take it."""

import numpy as np

from vertimrf import Message, Party, RunOptions, Secret, Server
from vertimrf.party.comparison import compare_all
from vertimrf.privacy.noise import FixedNoise


def messages_of(plan, tables, secret=None, fixed=False):
    """Every party's message about its table, under one secret; with ``fixed``, of noise that is the same every time.

    Every message is read back from its file as it was.
    """
    secret, out = secret or Secret.new(), []
    for i, (name, table) in enumerate(zip(plan.party_names, tables, strict=True)):
        message = Party(plan, name, secret, FixedNoise(i) if fixed else None).run(table)
        assert_same(Message.from_bytes(message.to_bytes(plan), plan), message)
        out.append(message)
    return out


def compare_ids(parties, tables):
    """Let the parties of encrypted counts compare the ids of their tables."""
    pairs = zip(parties, tables, strict=True)
    compare_all({party._name: party.comparison(table) for party, table in pairs})


def assert_same(message, other):
    """Two messages have the same contents."""
    assert message.count == other.count
    numbers = [
        [*one.sketches, *one.agreement, *one.tables, *one.fine, *(m.counts for m in one.marginals)]
        for one in (message, other)
    ]
    for one, another in zip(*numbers, strict=True):
        np.testing.assert_array_equal(one, another)


def run_server(plan, messages, **options):
    """Read the messages and run, with :class:`RunOptions` by name."""
    server = Server(plan, RunOptions(**options))
    return server.run(server.read(messages))

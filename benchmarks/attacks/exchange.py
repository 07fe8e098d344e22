"""Who writes into the exchange folder: links, pipes, folders and forged files where a run's files belong.

It can write anywhere in the folder, before everybody and in the middle of everything, and has nobody's key. Each position is
played twice: against the store that runs use, and against one that opens and writes names as they come, where it must succeed.
A position succeeds if something outside the exchange is written, deleted or read, or if a role is kept waiting.
"""

import os
import secrets
import tempfile
import threading
from contextlib import contextmanager, suppress
from pathlib import Path

from vertimrf.errors import VertiMRFError
from vertimrf.runs.exchange import Exchange

from ..verdict import at_least, at_most

# Seconds after which a role that has not come back counts as kept waiting; what is played takes milliseconds.
PATIENCE = 5.0
OURS, THEIRS = b"what the run puts there", b"what lay there before"


class PlainStore:
    """Opens and writes names as they come: what every exchange does that nobody has thought about."""

    def __init__(self, root):
        self._root = root

    def read(self, name, most):
        """See :class:`vertimrf.runs.exchange.Store`."""
        try:
            return (self._root / name).read_bytes()
        except FileNotFoundError:
            return None

    def write(self, name, data):
        """See :class:`vertimrf.runs.exchange.Store`."""
        path = self._root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        for left in path.parent.glob(f".*.{path.name}"):
            left.unlink()
        draft = path.with_name(f".{secrets.token_hex(4)}.{path.name}")
        draft.write_bytes(data)
        draft.rename(path)

    def stamp(self, name):
        """See :class:`vertimrf.runs.exchange.Store`."""
        return None


def rows():
    """How many positions succeed against either store."""
    plain, real = ([name for name, won in play(store) if won] for store in (PlainStore, None))
    yield at_least(
        "exchange: positions that succeed where names are opened as they come",
        len(plain),
        len(POSITIONS),
    )
    yield at_most(
        f"exchange: positions that succeed, of {len(POSITIONS)}: {'; '.join(real) or 'none'}",
        len(real),
        0,
    )


def play(store):
    """Every position's name, and whether it succeeded against a store; None for the one that runs use."""

    def opened(place):
        exchange = Exchange(place)
        if store is not None:
            exchange._store = store(place)
        return exchange

    for name, position in POSITIONS.items():
        with tempfile.TemporaryDirectory(prefix="vertimrf-exchange-") as folder:
            place, others = Path(folder) / "exchange", Path(folder) / "others"
            place.mkdir()
            others.mkdir()
            yield name, position(place, others, opened)


def put(exchange, party="hospital", sender=None, name="plan"):
    """What a role puts; refusals are what it is after."""
    with suppress(VertiMRFError, OSError):
        exchange.put(sender, party, name, OURS)


def got(exchange, party="hospital", sender=None, name="plan"):
    """What a role gets."""
    with suppress(VertiMRFError, OSError):
        return exchange.get(sender, party, name, 1000)
    return None


def hangs(work, pipe):
    """Whether work has not come back in time; then the pipe that it waits for is opened."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    waited = thread.is_alive()
    while thread.is_alive():
        with suppress(OSError):
            os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
        thread.join(0.01)
    return waited


def server_plan(place, others, opened):
    """The server's own folder, whose plan it then writes over."""
    (others / "plan").write_bytes(THEIRS)
    (place / "server").mkdir()
    (place / "server" / "hospital").symlink_to(others)
    put(opened(place))
    return (others / "plan").read_bytes() != THEIRS


def drafts(place, others, opened):
    """Somebody's folder, with a draft that looks like one of the run's."""
    (others / ".0123abcd.plan").write_bytes(THEIRS)
    (place / "server").mkdir()
    (place / "server" / "hospital").symlink_to(others)
    put(opened(place))
    return not (others / ".0123abcd.plan").exists()


def dropped(place, others, opened):
    """A party's run folder, which its own offer then appears in."""
    (place / "parties").mkdir()
    (place / "parties" / "hospital").symlink_to(others)
    put(opened(place), sender="hospital", name="offer")
    return bool(os.listdir(others))


def above(place, others, opened):
    """The same, one folder up."""
    (place / "parties").symlink_to(others)
    put(opened(place), sender="hospital", name="offer")
    return bool(os.listdir(others))


def read_through(place, others, opened):
    """A file that the reader can read and the writer cannot."""
    put(opened(others))
    (place / "server" / "hospital").mkdir(parents=True)
    (place / "server" / "hospital" / "plan").symlink_to(others / "server" / "hospital" / "plan")
    return got(opened(place)) == OURS


def read_beneath(place, others, opened):
    """A folder of such files."""
    put(opened(others))
    (place / "server").symlink_to(others / "server")
    return got(opened(place)) == OURS


def read_pipe(place, others, opened):
    """A pipe that nobody writes to, where a role reads."""
    pipe = place / "server" / "hospital" / "plan"
    pipe.parent.mkdir(parents=True)
    os.mkfifo(pipe)
    return hangs(lambda: got(opened(place)), pipe)


def server_pipe(place, others, opened):
    """The same where a role looks at what it has put."""
    pipe = place / "parties" / "hospital" / "offer"
    pipe.parent.mkdir(parents=True)
    os.mkfifo(pipe)
    return hangs(lambda: put(opened(place), sender="hospital", name="offer"), pipe)


def swapped(place, others, opened):
    """A folder that becomes a link between the last check and the draft."""
    exchange = opened(place)
    put(exchange, name="envelopes")
    folder = place / "server" / "hospital"
    with _at_the_draft(lambda: (folder.rename(place / "moved"), folder.symlink_to(others))):
        put(exchange)
    return bool(os.listdir(others))


POSITIONS = {
    "link to the server's own plan": server_plan,
    "link to somebody's drafts": drafts,
    "link to a party's run folder": dropped,
    "link above": above,
    "link to a file that is read": read_through,
    "link to a folder that is read": read_beneath,
    "pipe where a role reads": read_pipe,
    "pipe where a role writes": server_pipe,
    "folder swapped for a link": swapped,
}


@contextmanager
def _at_the_draft(strike):
    """Do something once, at the moment when a draft is given its name."""
    draw, left = secrets.token_hex, [strike]

    def drawn(count=None):
        while left:
            left.pop()()
        return draw(count)

    secrets.token_hex = drawn
    try:
        yield
    finally:
        secrets.token_hex = draw

"""The party's app: answers the server's questions with the files that the party has for it.

Settings, by the SuperNode's ``--node-config``, which stays on the party's machine: ``party``, its name in the plan, and one of

- ``exchange``, a folder that ``vertimrf run party`` exchanges files by, in a process of its own. This app then carries files
  between that folder and the network, and its account needs to read nothing else. That is how it ought to be: at a SuperNode,
  whoever may start a run at the SuperLink runs code of his own choice.
- ``run-folder``, the party's run folder, with its key and the way to its table: all is done in this process. For simulations,
  which take it from the run's own settings, and for where the SuperLink's operator is trusted with the table.

Nothing of the party's own words goes to the server. Flower would send the text of an exception there, and a table's error
names values; so every failure is logged on this machine alone, and the server is told one word: "failed".
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from ..errors import ObstacleError, RunError, VertiMRFError
from ..runs.exchange import Exchange
from ..runs.state import DONE
from .parcel import Parcel

__all__ = ["app"]

FAILED, CARRIED = "failed", "carried"
# Seconds that an answer waits for the party's own process, and between two looks: the next question comes seconds later.
LINGER, LOOK = 10.0, 0.5
log = logging.getLogger("flwr")
app = ClientApp()


@app.query("exchange")
def exchange(message: Message, context: Context) -> Message:
    """Take what the server sent, and answer with what it lacks."""
    node = context.node_config
    name = str(node.get("party", ""))
    try:
        asked = Parcel.from_records(message.content)
        if "exchange" in node:
            answer = carried(asked, name, Exchange(str(node["exchange"])))
        elif "run-folder" in node:
            answer = advanced(asked, name, Path(str(node["run-folder"])))
        else:
            folder = simulated(context)
            name = folder.name
            answer = advanced(asked, name, folder)
    except Exception:
        log.exception("The party's side of the run failed; the server is told no more than that.")
        answer = Parcel(name, FAILED)
    return Message(answer.to_records(), reply_to=message)


def carried(asked: Parcel, name: str, place: Exchange, linger: float = LINGER) -> Parcel:
    """Put the server's files where the party finds them, and take what it puts there, for which there is a little time.

    Args:
        asked: the question; files in it that are for another party are left alone.
        name: this party's name.
        place: what the party's own process exchanges files by.
        linger: seconds to wait for anything that the server lacks.

    What is in the way of one file is logged, and holds up no other.

    Raises:
        ExchangeError: the place cannot be used.
    """
    if asked.party == name:
        for file, data in asked.files.items():
            with passing_over():
                if other := place.put(None, name, file, data):
                    log.warning("%s", other)
    end = time.monotonic() + linger
    while True:
        files: dict[str, bytes] = {}
        for file, most in asked.wants.items():
            with passing_over():
                found = place.get(name, name, file, most)
                files |= {} if found is None or len(found) > most else {file: found}
        if files or not asked.wants or time.monotonic() > end:
            return Parcel(name, CARRIED, files=files)
        time.sleep(LOOK)


@contextmanager
def passing_over() -> Iterator[None]:
    """Log what is in the way of a file, on this machine."""
    try:
        yield
    except ObstacleError as error:
        log.error("%s", error)


def advanced(asked: Parcel, name: str, folder: Path) -> Parcel:
    """Take the party's run as far as it goes.

    Args:
        asked: the question; files in it that are for another party are left alone.
        name: this party's name.
        folder: its run folder.

    Raises:
        RunError: no run folder of this party's, or another process is at work in it.
    """
    # What only carries files loads nothing that computes.
    from ..runs.party_run import PartyRun

    run = PartyRun(folder)
    if run.name != name:
        raise RunError(f"{folder} is the run of {run.name!r}, and the node's settings say {name!r}; mend one of them.")
    try:
        files = run.advance(asked.files if asked.party == name else {})
        word = next((step.name for step in run.state().steps if step.status != DONE), DONE)
    except VertiMRFError as error:
        log.error("%s", error)
        files, word = run.outgoing(), FAILED
    return Parcel(name, word, files={file: data for file, data in files.items() if file in asked.wants})


def simulated(context: Context) -> Path:
    """The run folder of a simulated node: the n-th of the folder that the run's settings name, in the order of names.

    Raises:
        RunError: it is no simulated node.
    """
    parties = str(context.run_config.get("simulated-parties", ""))
    if "partition-id" not in context.node_config or not parties:
        raise RunError("""The node's settings lack exchange or run-folder: --node-config 'party="NAME" exchange="FOLDER"'.""")
    return sorted(path for path in Path(parties).iterdir() if path.is_dir())[int(context.node_config["partition-id"])]

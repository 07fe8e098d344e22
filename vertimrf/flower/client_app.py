"""The party's app.

It answers the server's questions with the files that the party has for the server.

The settings come from the SuperNode's ``--node-config``, which stays on the party's machine:
``party``, the party's name in the plan, and one of

- ``exchange``: a folder through which ``vertimrf run party``, a separate process, exchanges files.
  This app carries files between that folder and the network. Its account needs no other rights.
  This is the recommended setting, because anybody who may start a run at the SuperLink can run any
  code at a SuperNode.
- ``run-folder``: the party's run folder, with its key and the path of its table. This process does
  all the work. It is meant for simulations, which take it from the run's settings, and for cases
  where the SuperLink's operator may see the table.

Error messages of the party never go to the server. Flower would send the text of an exception, and
errors of tables name values. So failures are only logged on this machine, and the server receives
the word "failed".
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from ..errors import CutError, ObstacleError, PlaceError, RunError, VertiMRFError
from ..runs.exchange import Exchange
from ..runs.state import DONE
from .parcel import CARRIED, FAILED, Parcel

# Seconds that an answer waits for files of the party's process, and between two checks. The next
# question comes seconds later.
LINGER, LOOK = 10.0, 0.5
log = logging.getLogger("flwr")
app = ClientApp()


@app.query("exchange")
def exchange(message: Message, context: Context) -> Message:
    """Take the files that the server sent, and answer with the files that it lacks."""
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
        log.exception("The party's side of the run failed. The server only learns that it failed.")
        answer = Parcel(name, FAILED)
    return Message(answer.to_records(), reply_to=message)


def carried(asked: Parcel, name: str, place: Exchange, linger: float = LINGER) -> Parcel:
    """Put the server's files into the exchange, and take the files of the party's process.

    What is in the way of one file is logged. It does not stop other files, but a file of the server
    that could not be put makes the answer "failed", so that it comes again.

    Args:
        asked: the question. Files in it for another party are ignored.
        name: this party's name.
        place: the exchange with the party's process.
        linger: seconds to wait for files that the server lacks.

    Returns:
        The answer.

    Raises:
        ExchangeError: the exchange cannot be used.
    """
    place.reach()
    said, word = set[str](), CARRIED
    for file, data in asked.files.items() if asked.party == name else ():
        put = False
        with passing_over(said):
            if other := place.put(None, name, file, data):
                log.warning("%s", other)
            put = True
        word = word if put else FAILED
    end = time.monotonic() + linger
    while True:
        files: dict[str, bytes] = {}
        for file, most in asked.wants.items():
            with passing_over(said):
                content = place.get(name, name, file, most)
                files |= {} if content is None or len(content) > most else {file: content}
        if files or not asked.wants or time.monotonic() > end:
            return Parcel(name, word, files=files)
        time.sleep(LOOK)


@contextmanager
def passing_over(said: set[str]) -> Iterator[None]:
    """Log on this machine what is in the way of a file, if it was not said, and go on."""
    try:
        yield
    except (CutError, ObstacleError, PlaceError) as error:
        if str(error) not in said:
            log.error("%s", error)
        said.add(str(error))


def advanced(asked: Parcel, name: str, folder: Path) -> Parcel:
    """Advance the party's run as far as possible.

    Args:
        asked: the question. Files in it for another party are ignored.
        name: this party's name.
        folder: the party's run folder.

    Returns:
        The answer.

    Raises:
        RunError: the folder is not a run folder of this party, or another process works in it.
    """
    # Imported here, so that an app that only carries files does not load the engine.
    from ..runs.party_run import PartyRun

    run = PartyRun(folder)
    if run.name != name:
        raise RunError(
            f"{folder} is the run of {run.name!r}, but the node's settings say {name!r}; correct one of them."
        )
    try:
        files = run.advance(asked.files if asked.party == name else {})
        word = next((step.name for step in run.state().steps if step.status != DONE), DONE)
    except VertiMRFError as error:
        log.error("%s", error)
        files, word = run.outgoing(), FAILED
    return Parcel(
        name, word, files={file: data for file, data in files.items() if file in asked.wants}
    )


def simulated(context: Context) -> Path:
    """The run folder of a simulated node: the n-th by name in the folder of the run's settings.

    Raises:
        RunError: the node is not simulated.
    """
    parties = str(context.run_config.get("simulated-parties", ""))
    if "partition-id" not in context.node_config or not parties:
        raise RunError(
            """The node's settings lack exchange or run-folder: --node-config 'party="NAME" exchange="FOLDER"'."""
        )
    return sorted(path for path in Path(parties).iterdir() if path.is_dir())[
        int(context.node_config["partition-id"])
    ]

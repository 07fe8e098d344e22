"""The server's app.

``flwr run`` starts it at the SuperLink, and it asks the nodes until its run folder has a result.

The settings come from ``--run-config``: ``run-folder``, the server's run folder on the SuperLink's
machine; ``pause``, ``longest-pause``, ``reply-within`` and ``patience``, seconds as in
:class:`vertimrf.flower.conversation.Pace`. Every node receives them too, so they must not be
secret. The app may be stopped at any time and run again. It continues from the run folder.
"""

from __future__ import annotations

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from ..errors import RunError
from ..runs.server_run import ServerRun
from .conversation import Conversation, Pace

PACE = {
    "pause": "pause",
    "longest-pause": "longest",
    "reply-within": "reply",
    "patience": "patience",
}
app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Hold the conversation of one run.

    Raises:
        VertiMRFError: no run folder is named, the run cannot go on, or there was no progress for as
            long as the patience.
    """
    settings = context.run_config
    folder = str(settings.get("run-folder", ""))
    if not folder:
        raise RunError(
            """No run folder is named: flwr run … --run-config 'run-folder="FOLDER"', the server's."""
        )
    pace = Pace(**{name: float(settings[key]) for key, name in PACE.items() if key in settings})
    run = ServerRun(folder)
    with run.hold():
        Conversation(grid, run, pace).hold()

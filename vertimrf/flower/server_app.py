"""The server's app: ``flwr run`` starts it at the SuperLink, and it goes on asking until its run folder has a result.

Settings, by ``--run-config``: ``run-folder``, the server's run folder on the SuperLink's machine; ``pause``, ``longest-pause``,
``reply-within`` and ``patience``, seconds as in :class:`vertimrf.flower.conversation.Pace`. They go to every node as well, so
nothing secret belongs there. Stopped at any moment it may be run again, and goes on where the folder stands.
"""

from __future__ import annotations

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from ..errors import RunError
from ..runs.server_run import ServerRun
from .conversation import Conversation, Pace

__all__ = ["app"]

PACE = {"pause": "pause", "longest-pause": "longest", "reply-within": "reply", "patience": "patience"}
app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Hold the conversation of one run.

    Raises:
        VertiMRFError: no run folder is named, the run cannot go on, or nothing came for as long as its patience lasts.
    """
    settings = context.run_config
    folder = str(settings.get("run-folder", ""))
    if not folder:
        raise RunError("""No run folder is named: flwr run … --run-config 'run-folder="FOLDER"', the server's.""")
    pace = Pace(**{name: float(settings[key]) for key, name in PACE.items() if key in settings})
    run = ServerRun(folder)
    with run.hold():
        Conversation(grid, run, pace).hold()

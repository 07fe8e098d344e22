"""The server's side of a run over Flower: asks every party's node until the run is over, and hands over what comes.

Parties answer in their own time: a person there compares the plan's fingerprint, a message takes a minute to compute, a machine
is started again. So no round waits for all: every node is asked on its own, what it sends is taken, and what there is for it
goes along with every question. All of it may be repeated at will, for the runs on either side give the same files again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from flwr.app import Message
from flwr.serverapp import Grid

from ..errors import MessageError, RunError
from ..runs.state import RunState
from .parcel import Parcel

__all__ = ["EXCHANGE", "Conversation", "Pace"]

EXCHANGE = "query.exchange"
log = logging.getLogger("flwr")


class Run(Protocol):
    """A server's run, as :class:`vertimrf.runs.server_run.ServerRun` is one."""

    @property
    def parties(self) -> tuple[str, ...]:
        """Who takes part."""

    def advance(self, received: Mapping[str, Mapping[str, bytes]]) -> Mapping[str, Mapping[str, bytes]]:
        """Take what parties sent; everything that there is for each party, the same bytes always."""

    def wants(self) -> Mapping[str, Mapping[str, int]]:
        """By party the names of the files that would be taken now."""

    def state(self) -> RunState:
        """How far it has come."""


@dataclass(frozen=True)
class Pace:
    """How patient the server is, all in seconds.

    Attributes:
        pause: between two questions to a node where nothing moves; doubled each time, up to ``longest``.
        longest: see ``pause``.
        reply: after which a question is given up and asked again.
        patience: after which, with nothing new, the server ends and says what it waits for; it may be run again.
        look: how often the SuperLink is looked at for answers.
    """

    pause: float = 5.0
    longest: float = 60.0
    reply: float = 3600.0
    patience: float = 86400.0
    look: float = 1.0


@dataclass(frozen=True)
class _Question:
    """One that is under way: which message, since when its node has been online, and what went along."""

    message: str
    online: str
    carried: frozenset[str]


class Conversation:
    """One invocation of the server.

    Args:
        grid: Flower's way to the nodes.
        run: the server's run.
        pace: how patient it is.
        clock, sleep: the time, for tests.
    """

    def __init__(
        self,
        grid: Grid,
        run: Run,
        pace: Pace | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._grid, self._run, self._pace = grid, run, pace or Pace()
        self._clock, self._sleep = clock, sleep
        # Who speaks for whom: nodes by party. One of each may: two would answer for each other's questions.
        self._seats: dict[str, int] = {}
        # Since when refused nodes have been online: one that starts anew may try again.
        self._refused: dict[int, str] = {}
        self._questions: dict[int, _Question] = {}
        # By node, when it is asked next, and how long it was left in peace last.
        self._due: dict[int, float] = {}
        self._pauses: dict[int, float] = {}
        self._words: dict[str, str] = {}
        self._outgoing: Mapping[str, Mapping[str, bytes]] = {}

    def hold(self) -> None:
        """Ask and listen until the run is over.

        Raises:
            RunError: nothing came for as long as the pace allows.
            VertiMRFError: the run itself cannot go on.
        """
        self._outgoing = self._run.advance({})
        news = self._clock()
        while not (state := self._run.state()).done:
            nodes = {node.node_id: node for node in self._grid.get_nodes()}
            self._greet(nodes)
            self._ask(nodes)
            if self._listen(nodes):
                news = self._clock()
            elif self._clock() - news > self._pace.patience:
                raise RunError(f"{self._missing(state)} Nothing is lost: see to it, and run the app again.")
            else:
                self._sleep(self._pace.look)

    def _party_of(self, node: Any) -> str:
        """The party that a node speaks for; empty where that is not known, or none."""
        return next((party for party, seated in self._seats.items() if seated == node.node_id), "")

    def _greet(self, nodes: Mapping[int, Any]) -> None:
        """Forget nodes that left, ask those again that started anew, and seat those that the SuperLink knows by name."""
        self._seats = {party: seated for party, seated in self._seats.items() if seated in nodes}
        started = {node_id: node.last_activated_at for node_id, node in nodes.items()}
        self._refused = {node_id: online for node_id, online in self._refused.items() if started.get(node_id) == online}
        for node_id, question in list(self._questions.items()):
            if started.get(node_id) != question.online:
                del self._questions[node_id]
                self._due[node_id] = self._clock()
        for node_id, node in nodes.items():
            if node.name and node_id not in self._refused and not self._party_of(node):
                self._seat(node, node.name)

    def _seat(self, node: Any, party: str) -> bool:
        """Whether a node may speak for a party; where it may not, it is refused until it starts anew."""
        if node.name and node.name != party:
            why = f"it is registered as {node.name!r} and says that it is {party!r}."
        elif party not in self._run.parties:
            why = f"{party[:200]!r} is no party of this run, whose parties are {', '.join(self._run.parties)}."
        elif self._party_of(node) not in ("", party):
            why = f"it spoke for {self._party_of(node)!r} and says now that it is {party!r}."
        elif self._seats.setdefault(party, node.node_id) != node.node_id:
            why = f"another node that is online speaks for {party!r}."
        else:
            return True
        self._refuse(node, why)
        return False

    def _refuse(self, node: Any, why: str) -> None:
        log.warning("Node %d is refused: %s", node.node_id, why)
        self._refused[node.node_id] = node.last_activated_at
        self._seats = {party: seated for party, seated in self._seats.items() if seated != node.node_id}

    def _ask(self, nodes: Mapping[int, Any]) -> None:
        """Put a question to every node that is due for one."""
        idle = [node for node_id, node in nodes.items() if node_id not in self._refused and node_id not in self._questions]
        due = [node for node in idle if self._due.get(node.node_id, 0.0) <= self._clock()]
        wants = self._run.wants() if due else {}
        for node in due:
            party = self._party_of(node)
            # A node that nobody knows is asked who it is, and given nothing.
            files = self._outgoing.get(party, {})
            parcel = Parcel(party, wants=wants.get(party, {}), files=files)
            message = Message(parcel.to_records(), node.node_id, EXCHANGE, ttl=self._pace.reply)
            for sent in self._grid.push_messages([message]):
                self._questions[node.node_id] = _Question(sent, node.last_activated_at, frozenset(files))

    def _listen(self, nodes: Mapping[int, Any]) -> bool:
        """Take the answers that are there; whether any brought something new."""
        asked = {question.message: node_id for node_id, question in self._questions.items()}
        news = False
        for reply in self._grid.pull_messages(list(asked)) if asked else ():
            node_id = asked[reply.metadata.reply_to_message_id]
            question, node = self._questions.pop(node_id), nodes[node_id]
            fresh = False
            if reply.has_error():
                # Its text may come from anywhere, a party's exception included, and is not repeated.
                log.warning("Node %d did not answer (Flower's code %d); it is asked again.", node_id, reply.error.code)
            else:
                fresh = self._take(node, reply.content)
            # Who brought something may have more, and who lacks something has something to do.
            moves = fresh or set(self._outgoing.get(self._party_of(node), {})) > question.carried
            pause = 0.0 if moves else max(2 * self._pauses.get(node_id, 0.0), self._pace.pause)
            self._pauses[node_id] = min(pause, self._pace.longest)
            self._due[node_id] = self._clock() + self._pauses[node_id]
            news |= fresh
        if news:
            # What one sent may be what others wait for.
            for node_id in self._due:
                self._due[node_id] = self._clock()
        return news

    def _take(self, node: Any, content: Any) -> bool:
        """Take an answer; whether it brought a file that was lacking, or told who is at the node."""
        known = self._party_of(node)
        try:
            parcel = Parcel.from_records(content)
        except MessageError as error:
            self._refuse(node, str(error))
            return False
        if not self._seat(node, party := parcel.party):
            return False
        if parcel.word != self._words.get(party):
            log.info("%r is at its step %r.", party, parcel.word)
        self._words[party] = parcel.word
        if not parcel.files:
            return not known
        lacking = set(self._run.wants()[party])
        self._outgoing = self._run.advance({party: parcel.files})
        left = lacking & set(self._run.wants()[party]) & set(parcel.files)
        for name in sorted(lacking & set(parcel.files) - left):
            log.info("The %s of %r came: %s bytes.", name, party, f"{len(parcel.files[name]):,}")
        if left:
            why = " ".join(self._run.state().refused)
            self._refuse(node, f"its {', '.join(sorted(left))} cannot be that of {party!r}: {why}")
        return not left and (bool(lacking & set(parcel.files)) or not known)

    def _missing(self, state: RunState) -> str:
        """What the run waits for."""
        absent = [party for party in self._run.parties if party not in self._seats]
        parts = ["the run waits for " + ", ".join(f"the {step.name} of {step.on}" for step in state.waits_for)]
        parts += [f"no node of {' or '.join(map(repr, absent))} is online"] if absent else []
        parts += [f"{party!r} is at its step {word!r}" for party, word in self._words.items() if party not in absent]
        return f"Nothing has come for {self._pace.patience:,.0f} seconds: {'; '.join(parts)}."

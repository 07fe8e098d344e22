"""The server's side of a run over Flower.

It asks every party's node until the run is done, and carries the files. Then it asks until every
node has taken what the server says of the ids, which is the last file.

Parties answer at different times: a person compares the plan's fingerprint, a message takes a
minute to compute, a machine restarts. So there are no rounds that wait for all parties. Every node
is asked by itself, and every question carries the files for that node. Questions and answers may be
repeated, because the runs on both sides give the same files again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from flwr.app import Message
from flwr.serverapp import Grid

from ..errors import MessageError, RunError, VertiMRFError, some
from ..runs.files import MATCH
from ..runs.server_run import ServerRun
from ..runs.state import DONE, RunState
from ..runs.waiting import Reminder
from .parcel import CARRIED, FAILED, Parcel

EXCHANGE = "query.exchange"
# Seconds after which something that is in the way is reported, and between two records of it.
LATE, RECORD = 30.0, 60.0
log = logging.getLogger("flwr")


@dataclass(frozen=True)
class Pace:
    """Times of the server, all in seconds.

    Attributes:
        pause: pause between two questions to a node without progress. It doubles each time, up to
            ``longest``.
        longest: longest pause.
        reply: time after which a question without answer is asked again.
        patience: time without progress after which the server ends and says what it waits for. It
            may be run again.
        last: time that nodes have, after the end of the run, to take the last file. A SuperNode that
            was killed is back after a minute.
        look: time between two checks for answers at the SuperLink.
    """

    pause: float = 5.0
    longest: float = 60.0
    reply: float = 3600.0
    patience: float = 86400.0
    last: float = 300.0
    look: float = 1.0


@dataclass(frozen=True)
class _Question:
    """An open question: its message, when its node came online, and the names of its files."""

    message: str
    online: str
    carried: frozenset[str]


class Conversation:
    """The conversation of the server with all nodes, from one start of the app to its end.

    Args:
        grid: Flower's connection to the nodes.
        run: the server's run.
        pace: times of the server.
        clock, sleep: replace the time in tests.
    """

    def __init__(
        self,
        grid: Grid,
        run: ServerRun,
        pace: Pace | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._grid, self._run, self._pace = grid, run, pace or Pace()
        self._clock, self._sleep = clock, sleep
        # The node of each party. Only one node may speak for a party: two would answer each other's
        # questions.
        self._seats: dict[str, int] = {}
        # Refused nodes, with the time when they came online and why. A node that restarts may try
        # again.
        self._refused: dict[int, tuple[str, str]] = {}
        self._questions: dict[int, _Question] = {}
        # By node, the time of the next question and the last pause.
        self._due: dict[int, float] = {}
        self._pauses: dict[int, float] = {}
        self._words: dict[str, str] = {}
        # Parties whose node has taken the last file.
        self._told: set[str] = set()
        # By party, what its node answered in the place of files, if that was an error.
        self._errors: dict[str, str] = {}
        # By party or node, since when something is in the way; what is on record, and since when.
        self._since: dict[str, float] = {}
        self._recorded: tuple[dict[str, str], float] = {}, 0.0
        self._text = ""
        self._remind = Reminder(lambda text: log.warning("%s", text), clock)
        self._outgoing: Mapping[str, Mapping[str, bytes]] = {}

    def hold(self) -> None:
        """Ask and listen until the run is done, and every node has taken the last file.

        Raises:
            RunError: there was no progress for as long as the patience.
            VertiMRFError: the run cannot go on. If that is because ids do not match, nodes were told.
        """
        self._run.note({})
        try:
            self._until_done()
        except VertiMRFError:
            self._tell()
            raise
        self._tell()
        self._run.note({})

    def _until_done(self) -> None:
        self._outgoing = self._run.advance({})
        news = self._clock()
        while not (state := self._run.state()).done:
            if self._turn():
                news = self._clock()
            elif self._clock() - news > self._pace.patience:
                raise RunError(
                    f"{self._missing(state)} Nothing is lost: see to it, and run the app again."
                )

    def _tell(self) -> None:
        """Ask until every node has taken the last file, if there is one, for a limited time."""
        self._outgoing = self._run.outgoing()
        # If the run failed while answers were read, some were lost.
        self._questions.clear()
        self._due.clear()
        end = self._clock() + self._pace.last
        while left := self._untold():
            if self._clock() > end:
                log.warning(
                    "Within %.0f seconds no node of %s took what the server says of the ids: run the app again once it is there.",
                    self._pace.last,
                    " or ".join(map(repr, left)),
                )
                return
            self._turn()

    def _untold(self) -> list[str]:
        """Parties for which there is the last file, and whose node has not taken it."""
        return [
            party
            for party in self._run.parties
            if MATCH in self._outgoing.get(party, {}) and party not in self._told
        ]

    def _turn(self) -> bool:
        """Ask, and listen. Returns whether there was news. If not, some time has passed."""
        nodes = {node.node_id: node for node in self._grid.get_nodes()}
        self._greet(nodes)
        self._ask(nodes)
        news = self._listen(nodes)
        if not news:
            # While the server was at work, answers may have come. They are read first.
            self._report()
            self._sleep(self._pace.look)
        return news

    def _report(self) -> None:
        """Log and record what has been in the way for a while, by party or refused node."""
        now, troubles = self._clock(), self._troubles()
        self._since = {of: self._since.get(of, now) for of in troubles}
        late = {of: what for of, what in troubles.items() if now - self._since[of] >= LATE}
        before, at = self._recorded
        if late != before or (late and now - at >= RECORD):
            lasted = {of: now - self._since[of] for of in late}
            self._text = " ".join(one.text() for one in self._run.note(late, lasted))
            self._recorded = late, now
        self._remind(self._text)

    def _troubles(self) -> dict[str, str]:
        """What is in the way now. A node that is still at work is among it, and none that was told."""
        asked = {self._party_of(node_id) for node_id in self._questions}
        parties = [party for party in self._run.parties if party not in self._told]
        out = {}
        for party in parties:
            if party not in self._seats:
                out[party] = f"no node of {party!r} is online."
            elif party in self._errors:
                out[party] = f"the node of {party!r} {self._errors[party]}; its own log says why."
            elif party in asked:
                out[party] = f"the node of {party!r} was asked and has not answered."
        if any(party not in self._seats for party in parties):
            for node_id, (_, why) in self._refused.items():
                out[f"node {node_id}"] = f"node {node_id} is refused: {why}"
        return out

    def _party_of(self, node_id: int) -> str:
        """The party that a node speaks for. Empty if it is unknown, or if there is none."""
        return next((party for party, seated in self._seats.items() if seated == node_id), "")

    def _greet(self, nodes: Mapping[int, Any]) -> None:
        """Forget nodes that left, ask restarted nodes again, and assign nodes with a known name."""
        self._seats = {party: seated for party, seated in self._seats.items() if seated in nodes}
        started = {node_id: node.last_activated_at for node_id, node in nodes.items()}
        self._refused = {
            node_id: refusal
            for node_id, refusal in self._refused.items()
            if started.get(node_id) == refusal[0]
        }
        for node_id, question in list(self._questions.items()):
            if started.get(node_id) != question.online:
                del self._questions[node_id]
                self._due[node_id] = self._clock()
        for node_id, node in nodes.items():
            if node.name and node_id not in self._refused and not self._party_of(node_id):
                self._seat(node, node.name)

    def _seat(self, node: Any, party: str) -> bool:
        """Assign a node to a party.

        Returns whether it may speak for the party; if not, it is refused until it restarts.
        """
        before = self._party_of(node.node_id)
        if node.name and node.name != party:
            why = f"it is registered as {node.name!r} and says that it is {party!r}."
        elif party not in self._run.parties:
            why = f"{party[:200]!r} is no party of this run, whose parties are {some(self._run.parties)}."
        elif before not in ("", party):
            why = f"it spoke for {before!r} and says now that it is {party!r}."
        elif self._seats.get(party, node.node_id) != node.node_id:
            why = f"another node that is online speaks for {party!r}."
        else:
            if party not in self._seats:
                self._since.pop(party, None)
            self._seats[party] = node.node_id
            return True
        self._refuse(node, why)
        return False

    def _refuse(self, node: Any, why: str) -> None:
        log.warning("Node %d is refused: %s", node.node_id, why)
        self._refused[node.node_id] = node.last_activated_at, why
        self._seats = {
            party: seated for party, seated in self._seats.items() if seated != node.node_id
        }

    def _ask(self, nodes: Mapping[int, Any]) -> None:
        """Send a question to every node whose pause is over."""
        idle = [
            node
            for node_id, node in nodes.items()
            if node_id not in self._refused and node_id not in self._questions
        ]
        due = [node for node in idle if self._due.get(node.node_id, 0.0) <= self._clock()]
        wants = self._run.wants() if due else {}
        for node in due:
            party = self._party_of(node.node_id)
            # An unknown node is asked for its name, and receives no files.
            files = self._outgoing.get(party, {})
            parcel = Parcel(party, wants=wants.get(party, {}), files=files)
            message = Message(parcel.to_records(), node.node_id, EXCHANGE, ttl=self._pace.reply)
            for sent in self._grid.push_messages([message]):
                self._questions[node.node_id] = _Question(
                    sent, node.last_activated_at, frozenset(files)
                )

    def _listen(self, nodes: Mapping[int, Any]) -> bool:
        """Take the answers that have come. Returns whether any of them had something new."""
        asked = {question.message: node_id for node_id, question in self._questions.items()}
        news = False
        for reply in self._grid.pull_messages(list(asked)) if asked else ():
            node_id = asked[reply.metadata.reply_to_message_id]
            question, node = self._questions.pop(node_id), nodes[node_id]
            fresh = False
            if reply.has_error():
                # The text of the error may come from a party's exception. It is not repeated.
                log.warning(
                    "Node %d did not answer (Flower's code %d); it is asked again.",
                    node_id,
                    reply.error.code,
                )
                self._errors[self._party_of(node_id)] = f"gives errors (code {reply.error.code})"
            else:
                fresh = self._take(node, reply.content, question.carried)
            # A node that sent something may have more. A node that lacks files has work to do.
            moves = fresh or set(self._outgoing.get(self._party_of(node_id), {})) > question.carried
            pause = 0.0 if moves else max(2 * self._pauses.get(node_id, 0.0), self._pace.pause)
            self._pauses[node_id] = min(pause, self._pace.longest)
            self._due[node_id] = self._clock() + self._pauses[node_id]
            news |= fresh
        if news:
            # Other nodes may wait for what one node sent.
            for node_id in self._due:
                self._due[node_id] = self._clock()
        return news

    def _take(self, node: Any, content: Any, carried: frozenset[str]) -> bool:
        """Take an answer to a question that carried files.

        Returns whether it had a file that was lacking, or identified the node.
        """
        known = self._party_of(node.node_id)
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
        self._errors.pop(party, None)
        if parcel.word == FAILED:
            self._errors[party] = "fails"
        else:
            self._since.pop(party, None)
        if MATCH in carried and parcel.word in (DONE, CARRIED):
            self._told.add(party)
        lacking = set(self._run.wants()[party])
        if not lacking & set(parcel.files):
            return not known
        self._outgoing = self._run.advance({party: parcel.files})
        left = lacking & set(self._run.wants()[party]) & set(parcel.files)
        for name in sorted(lacking & set(parcel.files) - left):
            log.info("The %s of %r came: %s bytes.", name, party, f"{len(parcel.files[name]):,}")
        if left:
            why = " ".join(self._run.state().refused)
            self._refuse(node, f"its {', '.join(sorted(left))} cannot be that of {party!r}: {why}")
        return not left

    def _missing(self, state: RunState) -> str:
        """A sentence on what the run waits for."""
        absent = [party for party in self._run.parties if party not in self._seats]
        parts = [
            "the run waits for "
            + ", ".join(f"the {step.name} of {step.on}" for step in state.waits_for)
        ]
        parts += [f"no node of {' or '.join(map(repr, absent))} is online"] if absent else []
        parts += [
            f"{party!r} is at its step {word!r}"
            for party, word in self._words.items()
            if party not in absent
        ]
        return f"Nothing has come for {self._pace.patience:,.0f} seconds: {'; '.join(parts)}."

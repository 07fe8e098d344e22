"""How far a role's run has come, for people and programs.

Everything is read from the run folder.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..arrays import Fields, Texts
from ..files.convert import to_json

# A step is done, can be done by this role now, waits for somebody else, or needs other steps first.
DONE, READY, WAITS, LATER = "done", "ready", "waits", "later"


@dataclass(frozen=True)
class StepState:
    """How far one step of a run has come.

    Attributes:
        name: subject of the step, such as "message".
        status: "done", "ready", "waits" or "later".
        what: a sentence on what was done, or has to be done.
        on: whom the step waits for: "you", "the server" or a party's name in quotes. None: nobody.
        since: since when it waits, in UTC, such as 2026-05-01T08:30:00Z, by this machine's clock.
            None: it does not wait, or no command has looked yet.
    """

    name: str
    status: str
    what: str
    on: str | None = None
    since: str | None = None


@dataclass(frozen=True)
class Trouble:
    """Something that is in the way of what a role waits for.

    Attributes:
        of: what or whom it concerns: the exchange, a file in it, a party or a node.
        what: a sentence.
        since, last: when it was noticed first and last, in UTC by this machine's clock.
    """

    of: str
    what: str
    since: str
    last: str

    def text(self) -> str:
        """The trouble in a line, without the last time."""
        return f"In the way since {_spoken(self.since)}: {self.what}"


@dataclass(frozen=True)
class RunState:
    """How far a run has come.

    Attributes:
        role: the party's name, or "the server".
        folder: path of the run folder.
        steps: the steps in order.
        refused: sentences about files that came and were refused.
        troubles: what is in the way, at the last look.
        stopped: why this role's last work failed. None if it did not.
        plan: fingerprint of the plan. None before there is one.
        left_out: sentences about a party's records that its release does not contain. They are
            exact, so they are for the party's operator only.
        edited: sentences about settings that were edited. What is done stays as it is.
    """

    role: str
    folder: str
    steps: tuple[StepState, ...]
    refused: Texts = ()
    troubles: tuple[Trouble, ...] = ()
    stopped: str | None = None
    plan: str | None = None
    left_out: Texts = ()
    edited: Texts = ()

    @property
    def done(self) -> bool:
        """Whether all steps are done. The role then only gives its files again."""
        return all(step.status == DONE for step in self.steps)

    @property
    def waits_for(self) -> tuple[StepState, ...]:
        """The steps that wait for somebody else, or for the operator."""
        return tuple(step for step in self.steps if step.status == WAITS)

    @property
    def undated(self) -> RunState:
        """The state without times, for comparison."""
        return replace(
            self,
            steps=tuple(replace(step, since=None) for step in self.steps),
            troubles=tuple(replace(one, since="", last="") for one in self.troubles),
        )

    def to_json(self) -> Fields:
        """The state, JSON-able."""
        return {
            "kind": "state",
            "role": self.role,
            "folder": self.folder,
            "done": self.done,
        } | to_json(self)

    def text(self) -> str:
        """The state in a few lines."""
        lines = [f"{self.role}, in {self.folder}:"]
        for step in self.steps:
            since = "" if step.since is None else f" (since {_spoken(step.since)})"
            lines.append(f"  {step.status:6} {step.name}: {step.what}{since}")
        for trouble in self.troubles:
            lines.append(f"  {trouble.text()} (last seen {_spoken(trouble.last)})")
        lines += [f"  Refused: {sentence}" for sentence in self.refused]
        lines += [f"  Edited: {sentence}" for sentence in self.edited]
        lines += [f"  Left out: {sentence}" for sentence in self.left_out]
        if self.stopped is not None:
            lines.append(f"  Stopped: {self.stopped}")
        return "\n".join(lines)


def _spoken(time: str) -> str:
    """A time as people read it."""
    return time.replace("T", " ").replace("Z", " UTC")

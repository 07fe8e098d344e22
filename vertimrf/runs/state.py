"""How far a role's run has come, for people and programs: read off its folder, and off nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["DONE", "LATER", "READY", "WAITS", "RunState", "StepState"]

# A step is done; can be taken by this role as things stand; waits for somebody else; or for the steps before it.
DONE, READY, WAITS, LATER = "done", "ready", "waits", "later"


@dataclass(frozen=True)
class StepState:
    """How far one step of a run has come.

    Attributes:
        name: what it is about, such as "message".
        status: "done", "ready", "waits" or "later".
        what: what was done, or has to be, in words.
        on: whom a step waits for: "you", "the server" or a party's name in quotes; None if for nobody.
    """

    name: str
    status: str
    what: str
    on: str | None = None


@dataclass(frozen=True)
class RunState:
    """How far a run has come.

    Attributes:
        role: whose folder it is: a party's name, or "the server".
        folder: where it is.
        steps: in the order in which they are taken.
        refused: sentences about files that came and were not taken.
        stopped: why this role's own last attempt failed; None if it did not.
        left_out: a party's records that no release of its has, in sentences: exact, so for its operator alone.
        plan: the plan's fingerprint, once there is one.
    """

    role: str
    folder: str
    steps: tuple[StepState, ...]
    refused: tuple[str, ...] = ()
    stopped: str | None = None
    plan: str | None = None
    left_out: tuple[str, ...] = ()

    @property
    def done(self) -> bool:
        """Whether this role has nothing left to do but to hand out what it has."""
        return all(step.status == DONE for step in self.steps)

    @property
    def waits_for(self) -> tuple[StepState, ...]:
        """The steps that wait for somebody."""
        return tuple(step for step in self.steps if step.status == WAITS)

    def to_json(self) -> dict[str, Any]:
        """JSON-able form."""
        return {
            "role": self.role,
            "folder": self.folder,
            "done": self.done,
            "plan": self.plan,
            "steps": [
                {"name": s.name, "status": s.status, "on": s.on, "what": s.what} for s in self.steps
            ],
            "refused": list(self.refused),
            "stopped": self.stopped,
            "left_out": list(self.left_out),
        }

    def text(self) -> str:
        """A few lines for people."""
        lines = [f"{self.role}, in {self.folder}:"]
        lines += [f"  {step.status:6} {step.name}: {step.what}" for step in self.steps]
        lines += [f"  Refused: {sentence}" for sentence in self.refused]
        lines += [f"  Left out: {sentence}" for sentence in self.left_out]
        if self.stopped is not None:
            lines.append(f"  Stopped: {self.stopped}")
        return "\n".join(lines)

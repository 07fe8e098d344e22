"""The steps of a run, and what follows from them for both roles.

Each role lists its steps as values of :class:`Step`: the file that a step takes, its work, and the
file that it gives. :class:`Run` derives everything else from that list: which files are wanted,
which are taken or refused, which work is done next, which files go to whom, and the state for
people. An encoder with more messages needs more steps, and nothing else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..arrays import Texts
from ..errors import MessageError
from ..plan.plan import Plan
from .files import SERVER
from .folder import OTHERS, RECEIVED, RunFolder
from .state import DONE, LATER, READY, WAITS, RunState, StepState, Trouble

# Records that no release of a party contains. The file is for the party's operator only.
LEFT_OUT = "left-out"


@dataclass(frozen=True)
class FileIn:
    """A file that a step takes.

    Attributes:
        party: the party that sends it; in a party's own run, the name of that party.
        name: name of the file.
        max_bytes: largest size, bytes.
        check: raises a typed error if the content is wrong.
        again: whether to read it again although one came, because somebody else may have sent the
            first one.
    """

    party: str
    name: str
    max_bytes: int
    check: Callable[[bytes], object]
    again: bool = False


@dataclass(frozen=True)
class FileOut:
    """A file that a step gives once it is done: the same bytes every time.

    Attributes:
        name: name of the file.
        read: returns the content; None if there is none.
        parties: the parties that receive it. None: all.
    """

    name: str
    read: Callable[[], bytes | None]
    parties: Iterable[str] | None = None


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step of a role.

    Attributes:
        name: subject of the step. Steps of several parties may share a name.
        done: whether the step is done.
        did: sentence for a step that is done.
        todo: sentence for a step that can be done now, or that waits for somebody.
        later: sentence for a step that needs other steps first. Empty: ``todo``.
        needs: names of the steps that must be done first.
        on: whom the step waits for: "you", "the server" or a party's name in quotes. None: the role
            works by itself.
        takes: the file that makes the step done.
        work: makes the step done.
        releases: whether the work makes a release from the party's table.
        gives: the file that others receive once the step is done.
    """

    name: str
    done: bool
    did: str
    todo: str = ""
    later: str = ""
    needs: Texts = ()
    on: str | None = None
    takes: FileIn | None = None
    work: Callable[[], None] | None = None
    releases: bool = False
    gives: FileOut | None = None

    @property
    def key(self) -> str:
        """A name that no other step of the role has."""
        return self.name if self.takes is None else f"{self.takes.party}/{self.takes.name}"

    def state(self, undone: Iterable[str]) -> StepState:
        """The step as people see it, given the names of the steps that are not done."""
        if self.done:
            return StepState(self.name, DONE, self.did)
        if set(undone).intersection(self.needs):
            return StepState(self.name, LATER, self.later or self.todo)
        return StepState(self.name, READY if self.on is None else WAITS, self.todo, self.on)


class Run(ABC):
    """A role's run in its folder. A subclass lists the steps.

    Args:
        folder: the run folder.
        role: the party's name, or "the server".
        plan: place of the plan's file in the folder.
        inboxes: by party, the place of its files within ``received``. A party's own run has one
            inbox, in its name.
    """

    def __init__(
        self,
        folder: RunFolder,
        role: str,
        plan: Texts,
        inboxes: Mapping[str, Texts],
    ) -> None:
        self.role, self._folder, self._plan_place, self._inboxes = role, folder, plan, inboxes
        self._plan: tuple[bytes, Plan] | None = None

    @abstractmethod
    def _steps(self) -> Iterable[Step]:
        """The steps in order, as things stand."""

    @abstractmethod
    def _read_plan(self, data: bytes) -> Plan:
        """Read and check the content of the plan's file."""

    @property
    def folder(self) -> Path:
        """The run folder."""
        return self._folder.path

    @property
    def plan(self) -> Plan | None:
        """The plan, once there is one. At a party it may not be accepted yet."""
        data = self._folder.read(*self._plan_place)
        if data is None:
            return None
        if self._plan is None or self._plan[0] != data:
            self._plan = data, self._read_plan(data)
        return self._plan[1]

    @property
    def accepted_plan(self) -> Plan | None:
        """The plan, once this role works by it."""
        return self.plan

    @property
    def _agreed(self) -> Plan:
        """The accepted plan, for steps that need it."""
        plan = self.accepted_plan
        assert plan is not None
        return plan

    @property
    def encoder(self) -> str | None:
        """The plan's encoder while there is work left, which may need compiled kernels.

        None before and after that. To wait for a file is no work.
        """
        plan = self.accepted_plan
        if plan is None or not any(step.work and not step.done for step in self._steps()):
            return None
        return plan.encoder

    def hold(self) -> Any:
        """A context in which no other process can work on the folder.

        Without it, each call locks the folder by itself.
        """
        return self._folder.alone()

    def note(
        self, troubles: Mapping[str, str], lasted: Mapping[str, float] | None = None
    ) -> tuple[Trouble, ...]:
        """Record for :meth:`state` what is in the way, until this is called without it.

        Args:
            troubles: by whom or what is concerned, a sentence.
            lasted: for how many seconds, where it is not new.

        Returns:
            What is in the way, with its times.
        """
        with self._folder.alone():
            before = self._folder.waiting()
            now = before.waits(self._waiting()).troubled(troubles, lasted or {})
            self._folder.note_waiting(before, now)
        return now.troubles

    def _waiting(self) -> list[str]:
        """Keys of the steps that wait for somebody."""
        return [step.key for step, state in self._states() if state.status == WAITS]

    def state(self) -> RunState:
        """How far the run has come.

        It can be asked at any time, also while another process works.
        """
        plan, waiting = self.plan, self._folder.waiting()
        return RunState(
            role=self.role,
            folder=str(self.folder),
            steps=tuple(
                replace(state, since=waiting.since.get(step.key))
                if state.status == WAITS
                else state
                for step, state in self._states()
            ),
            refused=self._folder.refusals(),
            troubles=waiting.troubles,
            stopped=self._folder.stopped(),
            plan=None if plan is None else plan.fingerprint,
            edited=self._folder.edits(),
            left_out=tuple((self._folder.read(LEFT_OUT) or b"").decode().splitlines()),
        )

    def _states(self) -> list[tuple[Step, StepState]]:
        steps = list(self._steps())
        undone = {step.name for step in steps if not step.done}
        return [(step, step.state(undone)) for step in steps]

    def wants(self, again: bool = False) -> dict[str, dict[str, int]]:
        """By party, the files that steps wait for, with their largest sizes in bytes.

        Args:
            again: also files to read again, because somebody else may have sent the first ones.
        """
        out: dict[str, dict[str, int]] = {party: {} for party in self._inboxes}
        for step, state in self._states():
            file = step.takes
            if file is not None and (state.status == WAITS or (again and file.again)):
                out[file.party][file.name] = file.max_bytes
        return out

    def given(self) -> dict[str, dict[str, bytes]]:
        """By party, the files of all steps that are done. Their bytes never change."""
        out: dict[str, dict[str, bytes]] = {party: {} for party in self._inboxes}
        for file in [step.gives for step in self._steps() if step.done and step.gives is not None]:
            data = file.read()
            for party in out if file.parties is None else file.parties:
                out[party] |= {} if data is None else {file.name: data}
        return out

    def take(
        self, received: Mapping[str, Mapping[str, bytes]], release: bool = True
    ) -> dict[str, dict[str, bytes]]:
        """Take files, do all work that can be done now, and return all files for others.

        A file that is refused does not stop the run. It is logged, and :meth:`state` says why.

        Args:
            received: by party, files by name. Any of them, any number of times.
            release: False leaves out work that releases something.

        Returns:
            By party, files by name. Their bytes never change.

        Raises:
            RunError: another process works in the folder.
            VertiMRFError: this role's work failed, for example because a table does not fit the
                plan. :meth:`state` has the sentence, and :meth:`given` the files that exist.
            OSError: the disk is full or not writable. Nothing is lost.
        """
        with self._folder.alone():
            for party, files in received.items():
                for name, data in files.items():
                    self._take(party, name, data)
            with self._folder.working():
                # Work changes the steps behind it, so they are listed again for each with work.
                for i in [i for i, step in enumerate(self._steps()) if step.work]:
                    step, state = self._states()[i]
                    if state.status == READY and step.work and (release or not step.releases):
                        step.work()
            before = self._folder.waiting()
            self._folder.note_waiting(before, before.waits(self._waiting()))
            return self.given()

    def _take(self, party: str, name: str, data: bytes) -> None:
        """Take a file, refuse it, or ignore it if its step needs other steps first."""
        files = {
            step.takes.name: (step.takes, state.status)
            for step, state in self._states()
            if step.takes is not None and step.takes.party == party
        }
        inbox = self._inboxes.get(party, ())
        with self._folder.refusing(*inbox, name if name in files else OTHERS):
            if party not in self._inboxes:
                parties = ", ".join(self._inboxes)
                raise MessageError(
                    f"{party[:200]!r} is no party of this run; its parties are {parties}."
                )
            if name not in files:
                sender = repr(party) if self.role == SERVER else SERVER
                raise MessageError(
                    f"A file {name[:50]!r} came, and in this run {sender} sends only {', '.join(files)}."
                )
            file, status = files[name]
            if status != LATER:
                self._folder.take(data, file.max_bytes, file.check, *inbox, name)

    def _has(self, party: str, name: str) -> bool:
        return self._folder.has(RECEIVED, *self._inboxes[party], name)

    def _received(self, party: str, name: str) -> bytes | None:
        return self._folder.read(RECEIVED, *self._inboxes[party], name)

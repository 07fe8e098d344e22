"""A party's run: everything that it does from its key pair to its message, from a folder, at whatever pace files come.

The folder's files are the state. A party releases nothing before its operator has accepted the plan's fingerprint, which
everybody compares by a way that the server does not control. What it releases is on record on this machine before it is given to
anybody (:mod:`vertimrf.party.releases`), and is given again as it is. On another machine, or where the record is lost, the
folder's key and the same table give the same bytes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import MessageError, PlanError, RunError, TableError
from ..files.atomic import check_space, parse_json
from ..files.canonical import same_fingerprint
from ..keys import PrivateKey, called, check_name
from ..options import RunOptions
from ..party.secret import Secret, open_envelope, seal_secret
from ..plan.plan import Plan, target_in_words
from ..tables.read_options import DEFAULT, ReadOptions
from .exchange import check_apart
from .files import ENVELOPES, FROM_SERVER, MESSAGE, OFFER, PLAN, most_bytes, read_plan
from .folder import OTHERS, SETTINGS, RunFolder, create, settings_as
from .state import DONE, LATER, READY, WAITS, RunState, Step

if TYPE_CHECKING:
    from ..party.party import Party
    from ..party.releases import Releases
    from ..tables.table import Table

__all__ = ["PartyRun", "PartySettings"]

SECRET, ACCEPTED = "secret", "accepted"
# What the table has and no release; for this party's operator alone.
LEFT_OUT = "left-out"
SERVER = "the server"


@dataclass(frozen=True, kw_only=True)
class PartySettings(ReadOptions):
    """What a party's run needs to know that no plan says: how its table is read, and what follows.

    Attributes:
        name: the party's name in the schema.
        table: its records: a file, or a folder of them.
        id: the column of record ids.
        exchange: where files are exchanged (:mod:`vertimrf.runs.exchange`), if by a place that all can reach.
    """

    name: str
    table: str
    id: str
    exchange: str | None = None


class PartyRun:
    """A party's run in its folder.

    Args:
        folder: what :meth:`create` made.
        options: threads and progress.

    Raises:
        RunError: no such folder, or its settings cannot be read.
    """

    def __init__(self, folder: str | os.PathLike[str], options: RunOptions | None = None) -> None:
        self._folder = RunFolder(folder, "party")
        self.settings = settings_as(PartySettings, self._folder.settings, self._folder.path)
        if self._folder.key.party != self.settings.name:
            raise RunError(
                f"{self.folder / SETTINGS} has the name {self.settings.name!r}, and the key beside it is that of "
                f"{called(self._folder.key.party)}: mend the name."
            )
        self._options = options if options is not None else RunOptions()
        self._plan: tuple[bytes, Plan] | None = None

    @classmethod
    def create(
        cls,
        folder: str | os.PathLike[str],
        *,
        name: str,
        table: str | os.PathLike[str],
        id: str,
        read: ReadOptions = DEFAULT,
        exchange: str | None = None,
        options: RunOptions | None = None,
    ) -> PartyRun:
        """Make a run folder with a key pair, or go on with the one that has these settings.

        Args:
            folder: where to; for its owner alone.
            options: threads and progress of this process; no part of the folder.
            name, table, id, exchange: as in :class:`PartySettings`.
            read: how the table is read.

        Raises:
            RunError: the folder is of another run, or has other files.
            TableError: there is no such table, or no such format of ids.
            MessageError: no party can have that name.
        """
        check_name(name)
        where = Path(table).absolute()
        if not where.exists():
            raise TableError(f"There is no table {where}; name the party's file.")
        if exchange is not None and "://" not in exchange:
            check_apart(Path(folder), Path(exchange))
        settings = PartySettings(
            name=name, table=str(where), id=id, exchange=exchange, **asdict(read)
        )
        create(folder, {"role": "party"} | asdict(settings), name, {})
        return cls(folder, options)

    @property
    def name(self) -> str:
        """The party's name."""
        return self.settings.name

    @property
    def folder(self) -> Path:
        """Where the run lives."""
        return self._folder.path

    @property
    def plan(self) -> Plan | None:
        """The plan that came, accepted or not."""
        data = self._folder.received(PLAN)
        if data is None:
            return None
        if self._plan is None or self._plan[0] != data:
            self._plan = data, read_plan(self._folder.key, data)
        return self._plan[1]

    @property
    def encoder(self) -> str | None:
        """The encoder that will run as soon as :meth:`advance` is called; None while nothing will be released."""
        plan = self._accepted_plan()
        if plan is None or self._secret(plan) is None or self._made(plan):
            return None
        return plan.encoder

    def hold(self) -> Any:
        """A context in which no other process can work on the folder; without it, every :meth:`advance` makes its own."""
        return self._folder.alone()

    def wants(self) -> dict[str, int]:
        """Names of files that would be looked at now, each with the most bytes that it may have.

        What is offered before is left aside, and has to be offered again.
        """
        plan = self._accepted_plan()
        if plan is None:
            # Also one that came: somebody else's may have been there first.
            return {PLAN: most_bytes(PLAN)}
        if plan.party_names[0] != self.name and not self._folder.has("received", ENVELOPES):
            return {ENVELOPES: most_bytes(ENVELOPES)}
        return {}

    def advance(self, received: Mapping[str, bytes], release: bool = True) -> dict[str, bytes]:
        """Take what came, do all that can be done now, and give all that there is for the server: always the same bytes.

        Files that cannot be taken do not stop the run: they are refused, logged, and named by :meth:`state`.

        Args:
            received: files from the server, by name: "plan", "envelopes"; any of them, any number of times.
            release: False goes no further than the parties' secret, which comparing ids takes; no message is made.

        Returns:
            Files for the server, by name: "offer", and once there are, "envelopes", "message".

        Raises:
            RunError: another process is at work in the folder.
            VertiMRFError: this party's own work failed, its table does not fit the plan, say; :meth:`state` has the sentence,
                and :meth:`outgoing` what there is all the same.
            OSError: the disk is full, or not writable; nothing is lost.
        """
        with self._folder.alone():
            for name in [*FROM_SERVER, *(name for name in received if name not in FROM_SERVER)]:
                if name in received:
                    self._offered(name, received[name])
            with self._folder.working():
                self._work(release)
            return self.outgoing()

    def outgoing(self) -> dict[str, bytes]:
        """What there is for the server, by name: the same bytes whenever it is asked for.

        Raises:
            PrivacyError: the record of a release is damaged.
        """
        out = {OFFER: self._folder.key.offer.to_text().encode()}
        plan = self._accepted_plan()
        if plan is not None:
            envelopes = self._folder.read(ENVELOPES)
            if envelopes is not None:
                out[ENVELOPES] = envelopes
            if self._made(plan):
                out[MESSAGE] = self._releases.given(
                    plan.digest(), self._index(plan), partial(self._price, plan)
                )
        return out

    def accept(self, given: str) -> str:
        """Accept the plan that has a fingerprint: the one that all others read out, by phone, say.

        It can be done while another process is at work in the folder.

        Args:
            given: the whole fingerprint, in any case, with or without dashes and spaces.

        Returns:
            A sentence that says what was accepted.

        Raises:
            RunError: no plan has come, or another one was accepted before.
            MessageError: it has another fingerprint, or this is not a whole one.
            PlanError: the plan does not hold this party's own key.
        """
        plan = self.plan
        if plan is None:
            raise RunError(
                f"No plan has come to {self.folder} yet; accept it when it has, and everybody has the same."
            )
        if not same_fingerprint(given, plan.fingerprint):
            raise MessageError(
                f"{self.folder} has nothing of this fingerprint: the plan's is {plan.fingerprint}. One was changed on its way, "
                f"or is of another run: it is not accepted. To have it sent again, delete {self.folder / 'received' / PLAN}."
            )
        plan.sealing_keys().check(self._folder.key)
        if self._folder.has(ACCEPTED, PLAN) and not self._is_accepted(plan):
            raise RunError(
                f"Another plan was accepted in {self.folder} before: make a new folder for another run."
            )
        self._folder.drop_drafts(ACCEPTED)
        self._folder.write(plan.digest().hex().encode(), ACCEPTED, PLAN)
        weak = target_in_words(plan.epsilon, plan.delta, plan.expected_records)
        told = " ".join([str(plan.standing), *weak])
        return f"Accepted: the plan {plan.fingerprint}, with this party's own key in it. {told}"

    @property
    def released(self) -> bool:
        """Whether the message is made and on record."""
        plan = self._accepted_plan()
        return plan is not None and self._made(plan)

    def agreed(self) -> tuple[Plan, PrivateKey, Secret]:
        """The accepted plan, this party's private key and the parties' secret, which comparing ids takes.

        Raises:
            RunError: the plan is not accepted yet, or the secret has not come.
        """
        plan = self._accepted_plan()
        secret = None if plan is None else self._secret(plan)
        if plan is None or secret is None:
            waiting = " ".join(f"It {step.what}." for step in self.state().waits_for)
            raise RunError(
                f"{self.folder} has not got the parties' secret yet, which this takes. {waiting}"
            )
        return plan, self._folder.key, secret

    def note_exchange(self, sentences: Sequence[str]) -> None:
        """Put down what is in the way where files are exchanged; :meth:`state` tells it, until this is called with nothing."""
        with self._folder.alone():
            self._folder.note_exchange(sentences)

    def state(self) -> RunState:
        """How far the run has come; can be asked at any time, also while another process is at work."""
        plan = self.plan
        out = self._folder.state(self.name, tuple(self._steps(plan)), plan)
        return replace(
            out, left_out=tuple((self._folder.read(LEFT_OUT) or b"").decode().splitlines())
        )

    def _steps(self, plan: Plan | None) -> Iterator[Step]:
        yield Step(OFFER, DONE, "a key pair was made; its public half is for the server")
        if plan is None:
            yield Step(
                PLAN,
                WAITS,
                "waits for the plan, which the server makes of everybody's offers",
                SERVER,
            )
            for name, what in (
                ("acceptance", "accept the plan"),
                (SECRET, "the parties' secret"),
                (MESSAGE, "the message"),
            ):
                yield Step(name, LATER, what)
            return
        yield Step(PLAN, DONE, f"the plan {plan.fingerprint} came")
        if not self._is_accepted(plan):
            yield Step(
                "acceptance",
                WAITS,
                f"waits for you: see with `vertimrf check {self.folder}` which records would be left out, for nothing stops for "
                "them later; compare the plan's fingerprint, "
                f"{plan.fingerprint}, with the server and all other parties, by phone and in full, then "
                f"`vertimrf accept {self.folder} FINGERPRINT` with the one that they read out",
                "you",
            )
            for name, what in ((SECRET, "the parties' secret"), (MESSAGE, "the message")):
                yield Step(name, LATER, what)
            return
        yield Step("acceptance", DONE, "the plan's fingerprint was compared and accepted")
        first = plan.party_names[0]
        if self._secret(plan) is not None and (first != self.name or self._folder.has(ENVELOPES)):
            yield Step(
                SECRET,
                DONE,
                "sealed for all other parties"
                if first == self.name
                else f"{first!r} drew the secret",
            )
        elif first == self.name:
            yield Step(SECRET, READY, "to be drawn, and sealed for all other parties")
        else:
            yield Step(SECRET, WAITS, f"waits for the envelope of {first!r}", repr(first))
        if self._made(plan):
            yield Step(MESSAGE, DONE, "made, on record, and given to the server whenever it asks")
        else:
            ready = self._secret(plan) is not None
            yield Step(MESSAGE, READY if ready else LATER, f"to be made from {self.settings.table}")

    def _offered(self, name: str, data: bytes) -> None:
        """Take a file, refuse it, or leave it aside until it can be judged."""
        plan = self._accepted_plan()
        if name == ENVELOPES and plan is None:
            return
        self._folder.attempt(
            lambda: self._take(name, data, plan), name if name in FROM_SERVER else OTHERS
        )

    def _take(self, name: str, data: bytes, plan: Plan | None) -> None:
        check: Callable[[bytes], object]
        if name == PLAN:
            check = partial(read_plan, self._folder.key)
        elif name == ENVELOPES and plan is not None:
            if plan.party_names[0] == self.name:
                raise MessageError(
                    f"Envelopes came, and {self.name!r} itself seals them in this run."
                )
            check = partial(self._open, plan)
        else:
            raise MessageError(
                f"A file {name[:50]!r} came, which no run has; a party takes {', '.join(FROM_SERVER)}."
            )
        self._folder.take(data, most_bytes(name), check, name)

    def _open(self, plan: Plan, envelopes: bytes) -> Secret:
        """The secret out of this party's envelope, from the party that draws it in this run."""
        content = parse_json(envelopes, "The file of envelopes", "file of envelopes", MessageError)
        sender, secret = open_envelope(
            content, plan.digest(), plan.sealing_keys(), self._folder.key
        )
        if sender != plan.party_names[0]:
            raise MessageError(
                f"{sender!r} sealed these envelopes; in this run {plan.party_names[0]!r} draws the secret."
            )
        return secret

    def _work(self, release: bool) -> None:
        """All that can be done as things stand."""
        plan = self._accepted_plan()
        if plan is None:
            return
        if plan.party_names[0] == self.name:
            self._draw(plan)
        secret = self._secret(plan)
        if secret is None or not release or self._made(plan):
            return
        from ..party.party import Party

        who = Party(plan, self.name, secret, options=self._options, key=self._folder.key)
        records = self._records(who, plan.records_per_person)
        self._check_space(plan.message_size(self._index(plan)))
        who.release(records)

    def _draw(self, plan: Plan) -> None:
        """The secret, then its envelopes, each once: others may have them."""
        if not self._folder.has(SECRET):
            Secret.new().save(self.folder / SECRET)
        if not self._folder.has(ENVELOPES):
            secret = Secret.load(self.folder / SECRET)
            envelopes = seal_secret(secret, plan.digest(), plan.sealing_keys(), self._folder.key)
            self._folder.write((json.dumps(envelopes) + "\n").encode(), ENVELOPES)

    def _secret(self, plan: Plan) -> Secret | None:
        """The parties' secret, once this one has it: its own, or out of the envelope."""
        if plan.party_names[0] == self.name:
            return Secret.load(self.folder / SECRET) if self._folder.has(SECRET) else None
        envelopes = self._folder.received(ENVELOPES)
        return None if envelopes is None else self._open(plan, envelopes)

    def _records(self, who: Party, most: int) -> Table:
        """This party's records, encoded; what they leave out of the table is put down for :meth:`state`."""
        own = self.settings
        self._options.progress.step(f"reading {own.table}")
        records = who.encode(own.table, own.id, own)
        told = [*records.dropped.lines()]
        if records.persons is not None:
            from ..party.persons import beyond

            dropped, persons = beyond(records.persons, most)
            if dropped:
                told.append(
                    f"{dropped:,} records of {persons:,} persons with more than {most} are left out, the same at every party; "
                    "this stays here."
                )
        # Also where it is nothing: what is done depends on no record.
        self._folder.write("\n".join(told).encode(), LEFT_OUT, private=True)
        return records

    def _check_space(self, size: float) -> None:
        self._releases.prepare()
        if short := check_space(self._releases.folder, size):
            raise PlanError(short)

    @property
    def _releases(self) -> Releases:
        from ..party.releases import Releases

        return Releases.of(self._folder.key)

    def _made(self, plan: Plan) -> bool:
        """Whether the message is on record."""
        return self._releases.made(plan.digest(), self._index(plan))

    def _price(self, plan: Plan) -> str:
        from ..plan.price import price_in_words

        return price_in_words(plan, self._index(plan))

    def _index(self, plan: Plan) -> int:
        return plan.party_names.index(self.name)

    def _accepted_plan(self) -> Plan | None:
        plan = self.plan
        return plan if plan is not None and self._is_accepted(plan) else None

    def _is_accepted(self, plan: Plan) -> bool:
        return self._folder.read(ACCEPTED, PLAN) == plan.digest().hex().encode()

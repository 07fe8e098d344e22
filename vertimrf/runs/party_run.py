"""A party's run: everything that it does from its key pair to its message, from a folder, at whatever pace files come.

The folder's files are the state. A party releases nothing before its operator has accepted the plan's fingerprint, which
everybody compares by a way that the server does not control. What it releases is on record on this machine before it is given to
anybody (:mod:`vertimrf.party.releases`), and is given again as it is. On another machine, or where the record is lost, the
folder's key and the same table give the same bytes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import MessageError, PlanError, RunError, TableError
from ..files.atomic import MAX_JSON, MAX_KEY, check_space, parse_json
from ..files.canonical import same_fingerprint
from ..keys import PrivateKey, called, check_name
from ..options import RunOptions
from ..party.secret import Secret, open_envelope, seal_secret
from ..plan.plan import Plan, target_in_words
from ..tables.read_options import DEFAULT, ReadOptions
from .exchange import check_apart
from .files import ENVELOPES, MESSAGE, OFFER, PLAN, read_plan
from .folder import RECEIVED, SETTINGS, RunFolder, create, settings_as
from .steps import LEFT_OUT, SERVER, FileIn, FileOut, Run, Step

if TYPE_CHECKING:
    from ..party.party import Party
    from ..party.releases import Releases
    from ..tables.table import Table

__all__ = ["PartyRun", "PartySettings"]

SECRET, ACCEPTANCE, ACCEPTED = "secret", "acceptance", "accepted"


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


class PartyRun(Run):
    """A party's run in its folder.

    Args:
        folder: what :meth:`create` made.
        options: threads and progress.

    Raises:
        RunError: no such folder, or its settings cannot be read.
    """

    def __init__(self, folder: str | os.PathLike[str], options: RunOptions | None = None) -> None:
        files = RunFolder(folder, "party")
        self.settings = settings_as(PartySettings, files.settings, files.path)
        super().__init__(files, self.name, (RECEIVED, PLAN), {self.name: ()})
        if self._folder.key.party != self.name:
            raise RunError(
                f"{self.folder / SETTINGS} has the name {self.name!r}, and the key beside it is that of "
                f"{called(self._folder.key.party)}: mend the name."
            )
        self._options = options if options is not None else RunOptions()

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
    def accepted_plan(self) -> Plan | None:
        """The plan, if this party accepted it."""
        plan = self.plan
        return plan if plan is not None and self._is_accepted(plan) else None

    def wants(self, again: bool = False) -> dict[str, int]:
        """Names of the files that the run waits for, each with its largest size in bytes.

        Args:
            again: also the plan that came, until it is accepted: it may not be the server's.
        """
        return self._wants(again)[self.name]

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
        return self._advance({self.name: received}, release)[self.name]

    def outgoing(self) -> dict[str, bytes]:
        """What there is for the server, by name: the same bytes whenever it is asked for.

        Raises:
            PrivacyError: the record of a release is damaged.
        """
        return self._outgoing()[self.name]

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
                f"or is of another run: it is not accepted. To have it sent again, delete {self.folder / RECEIVED / PLAN}."
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
        plan = self.accepted_plan
        return plan is not None and self._releases.made(plan.digest(), self._index)

    def agreed(self) -> tuple[Plan, PrivateKey, Secret]:
        """The accepted plan, this party's private key and the parties' secret, which comparing ids takes.

        Raises:
            RunError: the plan is not accepted yet, or the secret has not come.
        """
        plan = self.accepted_plan
        secret = None if plan is None else self._secret()
        if plan is None or secret is None:
            waiting = " ".join(f"It {step.what}." for step in self.state().waits_for)
            raise RunError(
                f"{self.folder} has not got the parties' secret yet, which this takes. {waiting}"
            )
        return plan, self._folder.key, secret

    def _steps(self) -> Iterator[Step]:
        plan, accepted = self.plan, self.accepted_plan
        fingerprint = "" if plan is None else plan.fingerprint
        first = None if plan is None else plan.party_names[0]
        yield Step(
            name=OFFER,
            done=True,
            did="a key pair was made; its public half is for the server",
            gives=FileOut(OFFER, lambda: self._folder.key.offer.to_text().encode()),
        )
        yield Step(
            name=PLAN,
            done=plan is not None,
            did=f"the plan {fingerprint} came",
            todo="waits for the plan, which the server makes of everybody's offers",
            on=SERVER,
            takes=FileIn(self.name, PLAN, MAX_JSON, self._read_plan, again=accepted is None),
        )
        yield Step(
            name=ACCEPTANCE,
            needs=(PLAN,),
            done=accepted is not None,
            did="the plan's fingerprint was compared and accepted",
            todo=f"waits for you: see with `vertimrf check {self.folder}` which records would be left out, for nothing stops for "
            f"them later; compare the plan's fingerprint, {fingerprint}, with the server and all other parties, by phone and in "
            f"full, then `vertimrf accept {self.folder} FINGERPRINT` with the one that they read out",
            later="accept the plan",
            on="you",
        )
        if first == self.name:
            yield Step(
                name=SECRET,
                needs=(ACCEPTANCE,),
                done=accepted is not None and self._folder.has(ENVELOPES),
                did="sealed for all other parties",
                todo="to be drawn, and sealed for all other parties",
                later="the parties' secret",
                work=self._draw,
                gives=FileOut(ENVELOPES, partial(self._folder.read, ENVELOPES)),
            )
        else:
            yield Step(
                name=SECRET,
                needs=(ACCEPTANCE,),
                done=accepted is not None and self._has(self.name, ENVELOPES),
                did=f"{first!r} drew the secret",
                todo=f"waits for the envelope of {first!r}",
                later="the parties' secret",
                on=repr(first),
                takes=FileIn(self.name, ENVELOPES, MAX_KEY, self._open),
            )
        yield Step(
            name=MESSAGE,
            needs=(SECRET,),
            done=self.released,
            did="made, on record, and given to the server whenever it asks",
            todo=f"to be made from {self.settings.table}",
            work=self._release,
            releases=True,
            gives=FileOut(MESSAGE, self._message),
        )

    def _read_plan(self, data: bytes) -> Plan:
        return read_plan(self._folder.key, data)

    def _open(self, envelopes: bytes) -> Secret:
        """The secret out of this party's envelope, from the party that draws it in this run."""
        plan = self._agreed
        content = parse_json(envelopes, "The file of envelopes", "file of envelopes", MessageError)
        sender, secret = open_envelope(
            content, plan.digest(), plan.sealing_keys(), self._folder.key
        )
        if sender != plan.party_names[0]:
            raise MessageError(
                f"{sender!r} sealed these envelopes; in this run {plan.party_names[0]!r} draws the secret."
            )
        return secret

    def _draw(self) -> None:
        """The secret, then its envelopes, each once: others may have them."""
        if not self._folder.has(SECRET):
            Secret.new().save(self.folder / SECRET)
        plan, secret = self._agreed, Secret.load(self.folder / SECRET)
        envelopes = seal_secret(secret, plan.digest(), plan.sealing_keys(), self._folder.key)
        self._folder.write((json.dumps(envelopes) + "\n").encode(), ENVELOPES)

    def _secret(self) -> Secret | None:
        """The parties' secret, once this party has it: its own, or out of the envelope."""
        if self._agreed.party_names[0] == self.name:
            return Secret.load(self.folder / SECRET) if self._folder.has(SECRET) else None
        envelopes = self._received(self.name, ENVELOPES)
        return None if envelopes is None else self._open(envelopes)

    def _release(self) -> None:
        """The message, which is on record before this returns."""
        from ..party.party import Party

        plan, key, secret = self.agreed()
        who = Party(plan, self.name, secret, options=self._options, key=key)
        records = self._records(who, plan.records_per_person)
        self._releases.prepare()
        if short := check_space(self._releases.folder, plan.message_size(self._index)):
            raise PlanError(short)
        who.release(records)

    def _message(self) -> bytes:
        """The message on record."""
        from ..plan.price import price_in_words

        plan, index = self._agreed, self._index
        return self._releases.given(plan.digest(), index, lambda: price_in_words(plan, index))

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

    @property
    def _releases(self) -> Releases:
        from ..party.releases import Releases

        return Releases.of(self._folder.key)

    @property
    def _index(self) -> int:
        """Index of this party in the accepted plan."""
        return self._agreed.party_names.index(self.name)

    def _is_accepted(self, plan: Plan) -> bool:
        return self._folder.read(ACCEPTED, PLAN) == plan.digest().hex().encode()

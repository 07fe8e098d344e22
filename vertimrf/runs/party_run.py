"""A party's run, from its key pair to its message, in a folder.

The files in the folder are the state of the run. A party releases nothing before its operator
accepts the plan's fingerprint, which all roles compare over a channel that the server does not
control, for the table as it is then. `vertimrf accept` shows what a check finds in the table, and
asks whatever that is: if findings decided, one record could decide whether a message comes. A table
that was written later waits for another acceptance, by the time of writing alone.

A release is recorded on this machine before anybody receives it (:mod:`vertimrf.party.releases`),
and the recorded bytes are given again. If the record is lost, or on another machine, the folder's
key and the same table give the same bytes.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from functools import cache, partial
from typing import TYPE_CHECKING

from ..errors import MessageError, PlanError, RunError
from ..files.atomic import MAX_JSON, MAX_KEY, check_space, parse_json
from ..files.canonical import canonical, same_fingerprint
from ..keys import PrivateKey, called, check_name
from ..options import RunOptions
from ..party.secret import Secret, open_envelope, seal_secret
from ..plan.plan import Plan
from ..plan.target import target_in_words
from ..releases.release import AGAIN, ANSWERS, IDS, ROWS, ExchangeKey
from ..tables.read_options import DEFAULT, ReadOptions
from .exchange import begin
from .files import (
    ENVELOPES,
    MATCH,
    MESSAGE,
    NEEDS,
    OFFER,
    PLAN,
    SAME_IDS,
    SERVER,
    Between,
    between,
    ids_in_words,
    match_in_words,
    read_match,
    read_plan,
    tells_match,
)
from .folder import RECEIVED, SETTINGS, RunFolder, read_settings, settings_as
from .party_table import PartySettings, encoded
from .steps import LEFT_OUT, FileIn, FileOut, Run, Step

if TYPE_CHECKING:
    from ..cluster import ClusterRecords
    from ..party.party import Party
    from ..party.releases import Releases
    from ..tables.table import Table

LOG = logging.getLogger("vertimrf")

SECRET, ACCEPTANCE, ACCEPTED = "secret", "acceptance", "accepted"
# What tells the table that the operator looked at from one that was written later.
TABLE = "table"
COUNTING_KEY = "counting-key"


class PartyRun(Run):
    """A party's run in its folder.

    Args:
        folder: the run folder, which :meth:`create` makes.
        options: threads and progress.

    Raises:
        RunError: there is no run folder, or its settings cannot be read.
    """

    def __init__(self, folder: str | os.PathLike[str], options: RunOptions | None = None) -> None:
        files = RunFolder(folder, "party")
        name = settings_as(PartySettings, files.settings, files.path).name
        super().__init__(files, name, (RECEIVED, PLAN), {name: ()})
        if self._folder.key.party != self.name:
            raise RunError(
                f"{self.folder / SETTINGS} has the name {self.name!r}, but the key in the folder is that of "
                f"{called(self._folder.key.party)}: correct the name."
            )
        self._options = options or RunOptions()
        self._role: tuple[Party, Table | ClusterRecords] | None = None
        self._given: dict[object, bytes] = {}

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
        dask: str | None = None,
        options: RunOptions | None = None,
    ) -> PartyRun:
        """Make a run folder with a new key pair, or continue a run with the same settings.

        Args:
            folder: the run folder. Only its owner may read it.
            name, table, id, exchange, dask: as in :class:`PartySettings`.
            read: how the table is read.
            options: threads and progress of this process. They are not kept in the folder.

        Returns:
            The run.

        Raises:
            RunError: the folder belongs to another run, or has other files.
            TableError: there is no such table, or it lacks the columns of ids.
            MessageError: the name is not usable.
        """
        from ..party.check import check_ids
        from ..tables.sources import located

        check_name(name)
        where = located(table)
        if doubt := check_ids(where, id, read):
            LOG.warning("%s", doubt)
        if dask is not None:
            from ..cluster.records import partitions

            partitions(where)
        settings = PartySettings(
            name=name, table=where, id=id, exchange=exchange, dask=dask, **asdict(read)
        )
        begin(folder, settings, name, {})
        return cls(folder, options)

    @property
    def settings(self) -> PartySettings:
        """The settings as they stand in the folder, also if they were edited since."""
        return settings_as(PartySettings, read_settings(self.folder), self.folder)

    @property
    def name(self) -> str:
        """The party's name."""
        return self.role

    @property
    def accepted_plan(self) -> Plan | None:
        """The plan, if this party accepted it."""
        plan = self.plan
        return plan if plan is not None and self._is_accepted(plan) else None

    def advance(self, received: Mapping[str, bytes], release: bool = True) -> dict[str, bytes]:
        """Take files from the server and return all files for it, by name, as :meth:`take` does.

        The server sends "plan", "envelopes" and "match". A party sends "offer" and, once they exist,
        "envelopes" and "message". With encrypted counts, both also send rows and answers. Without
        ``release`` none of these and no message is made.
        """
        return self.take({self.name: received}, release)[self.name]

    def outgoing(self) -> dict[str, bytes]:
        """All files for the server, by name. Their bytes never change.

        Raises:
            PrivacyError: the record of a release is damaged.
        """
        return self.given()[self.name]

    @property
    def table_as_it_is(self) -> str:
        """When the table was written, and how it is read; empty if there is no table.

        No cell decides it.
        """
        from ..tables.sources import written

        if not (at := written(self.settings.table)):
            return ""
        read = {**asdict(self.settings), "exchange": None, "dask": None}
        return canonical({"read": read, "written": at}).decode()

    def plan_of(self, fingerprint: str) -> Plan:
        """The plan that came, if it has the fingerprint that the other roles read out.

        Args:
            fingerprint: the whole fingerprint, in any case, with or without dashes and spaces.

        Raises:
            RunError: no plan has come, or another one was accepted before.
            MessageError: the plan has another fingerprint, or the fingerprint is incomplete.
            PlanError: the plan does not have this party's key, or no cluster can follow it.
        """
        plan = self.plan
        if plan is None:
            raise RunError(
                f"No plan has come to {self.folder} yet. Accept it once all roles have the same one."
            )
        if not same_fingerprint(fingerprint, plan.fingerprint):
            raise MessageError(
                f"{self.folder} has no plan with this fingerprint: its plan has {plan.fingerprint}. Read and type it once more. If the "
                f"others still read out another one, this plan was changed on its way, or belongs to another run: do not accept "
                f"it, and to receive it again, delete {self.folder / RECEIVED / PLAN}."
            )
        plan.sealing_keys().check(self._folder.key)
        if self.settings.dask is not None:
            from ..cluster import check_plan

            check_plan(plan)
        if self._folder.has(ACCEPTED, PLAN) and not self._is_accepted(plan):
            raise RunError(
                f"Another plan was accepted in {self.folder} before. Make a new folder for another run."
            )
        return plan

    def accept(self, fingerprint: str, table: str | None = None) -> str:
        """Accept the plan for a table that the operator has looked at.

        Whatever is in the table, nothing is released before that, and none that was written later.
        Another process may work in the folder at the same time.

        Args:
            fingerprint: as for :meth:`plan_of`.
            table: :attr:`table_as_it_is` before the operator looked; default now.

        Returns:
            A sentence that says what was accepted.

        Raises:
            As :meth:`plan_of`.
        """
        plan = self.plan_of(fingerprint)
        self._folder.drop_drafts(ACCEPTED)
        seen = self.table_as_it_is if table is None else table
        self._folder.write(seen.encode(), ACCEPTED, TABLE)
        self._folder.write(plan.digest().hex().encode(), ACCEPTED, PLAN)
        warnings = target_in_words(plan.epsilon, plan.delta, plan.expected_records)
        label = " ".join([str(plan.label), *warnings])
        return f"Accepted: the plan {plan.fingerprint}, which has this party's key{ids_in_words(plan)}. {label}"

    @property
    def released(self) -> bool:
        """Whether the message is on record."""
        plan = self.accepted_plan
        return plan is not None and self._is_made(plan, MESSAGE)

    def agreed(self) -> tuple[Plan, PrivateKey, Secret]:
        """The accepted plan, this party's private key, and the parties' secret.

        Raises:
            RunError: the plan is not accepted, or the secret has not come.
        """
        plan = self.accepted_plan
        secret = None if plan is None else self._secret()
        if plan is None or secret is None:
            waiting = " ".join(f"It {step.what}." for step in self.state().waits_for)
            raise RunError(
                f"{self.folder} does not have the parties' secret yet, which is needed. {waiting}"
            )
        return plan, self._folder.key, secret

    def _steps(self) -> Iterator[Step]:
        plan, accepted = self.plan, self.accepted_plan
        fingerprint, first = ("", None) if plan is None else (plan.fingerprint, plan.party_names[0])
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
            done=accepted is not None and self._is_looked_at(accepted),
            did="the plan's fingerprint was compared and accepted",
            todo=f"waits for you: see with `vertimrf check {self.folder}` which records would be left out, because the run will not "
            f"stop for them; compare the plan's whole fingerprint, {fingerprint}{ids_in_words(plan)}, with the server and all other parties by "
            f"phone; then `vertimrf accept {self.folder} FINGERPRINT` with the one that they read out"
            if accepted is None
            else f"waits for you: {self.settings.table} was written, or {self.folder / SETTINGS} edited, after you accepted the plan; "
            f"`vertimrf accept {self.folder} {fingerprint}` checks the table as it is now, and asks",
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
        mine = [file for file in between(plan) if self.name in (file.sender, file.receiver)]
        before = [file for file in mine if file.kind in (IDS, AGAIN)]
        yield from (self._between(file, accepted) for file in before)
        if mine:
            yield self._same_ids(accepted)
        yield from (self._between(file, accepted) for file in mine if file not in before)
        yield Step(
            name=MESSAGE,
            needs=(ACCEPTANCE, SECRET, SAME_IDS, ANSWERS, f"{ANSWERS} of others"),
            done=self.released,
            did="made, on record, and given to the server whenever it asks",
            todo=f"to be made from {self.settings.table}",
            work=self._release,
            releases=True,
            gives=FileOut(MESSAGE, partial(self._recorded, MESSAGE)),
        )
        if plan is not None and tells_match(plan):
            yield self._match(plan)

    def _match(self, plan: Plan) -> Step:
        """The step for what the server says of the ids, which is the last that it sends.

        It shows that the server has everybody's message. Until then this party's files are given
        again wherever they are lost.
        """
        data = self._received(self.name, MATCH)
        return Step(
            name=MATCH,
            needs=(MESSAGE,),
            done=data is not None,
            did="" if data is None else match_in_words(read_match(plan, data)),
            todo="waits for the server to say whether ids match, once it has all messages",
            later="whether the ids of the parties match",
            on=SERVER,
            takes=FileIn(self.name, MATCH, MAX_KEY, partial(read_match, plan)),
        )

    def _between(self, file: Between, accepted: Plan | None) -> Step:
        """A step for a file between parties that this one sends or receives."""
        if file.receiver == self.name:
            return Step(
                name=f"{file.kind} of others",
                needs=(SECRET,),
                done=accepted is not None and self._has(self.name, file.name),
                did=f"of {file.sender!r} came",
                todo=f"waits for those of {file.sender!r}",
                later=f"of {file.sender!r}",
                on=repr(file.sender),
                takes=FileIn(self.name, file.name, file.max_bytes, partial(self._check, file)),
            )
        return Step(
            name=file.kind,
            needs=(ACCEPTANCE, SECRET, *NEEDS[file.kind]),
            done=accepted is not None and self._is_made(accepted, file.name),
            did=f"for {file.receiver!r} made, on record, and given to the server whenever it asks",
            todo=f"for {file.receiver!r}, to be made from {self.settings.table}",
            work=partial(self._exchange, file),
            releases=True,
            gives=FileOut(file.name, partial(self._recorded, file.name)),
        )

    def _same_ids(self, accepted: Plan | None) -> Step:
        """The step that compares this party's ids with the others', before anything is counted."""
        return Step(
            name=SAME_IDS,
            needs=(ACCEPTANCE, SECRET, IDS, AGAIN, f"{IDS} of others", f"{AGAIN} of others"),
            done=accepted is not None and self._folder.has(SAME_IDS),
            did="this party and all others hold the same ids",
            todo="whether this party and all others hold the same ids, by what they sent",
            work=self._compare,
        )

    def _compare(self) -> None:
        """Compare this party's ids with the others', and note that they are the same."""
        with self._reading():
            self._folder.write(b"", SAME_IDS)

    def _check(self, file: Between, data: bytes) -> None:
        """Check a file of another party with its ciphertexts."""
        plan = self._agreed
        contents = file.open(plan, self._folder.key, data)
        sender = plan.party_names.index(file.sender)
        plan.sketch.check_file(plan, file.kind, sender, self._index, contents, file.piece)

    def _contents(self, kind: str, sender: str) -> Iterator[bytes]:
        """What a party sent to this one, file by file."""
        plan, key = self._agreed, self._folder.key
        for file in between(plan):
            mine = (file.kind, file.sender, file.receiver) == (kind, sender, self.name)
            if mine and (data := self._received(self.name, file.name)) is not None:
                yield file.open(plan, key, data)

    def _sent(self, kind: str) -> dict[str, bytes]:
        """By party, the one file of a kind that it sent to this one, if it has come."""
        return {n: data for n in self._agreed.party_names for data in self._contents(kind, n)}

    def _counting_key(self) -> ExchangeKey | None:
        """The key under which this party's rows are encrypted, made once. None without such rows."""
        plan = self._agreed
        sends = any((file.kind, file.sender) == (ROWS, self.name) for file in between(plan))
        if not sends:
            return None
        data = self._folder.read(COUNTING_KEY)
        key = plan.sketch.private_key(data, str(self.folder / COUNTING_KEY))
        if data is None:
            self._folder.write(key.to_bytes(), COUNTING_KEY, private=True)
        return key

    def _exchange(self, file: Between) -> None:
        """Make a file for another party, and put it on record.

        Rows are encrypted once, and sealed for every receiver.
        """
        plan, key, to = self._agreed, self._folder.key, file.receiver
        with self._reading() as (role, records):

            @cache
            def contents() -> bytes:
                self._options.progress.step(f"{file.kind} for {to}")
                if file.kind == ROWS:
                    return role.rows(records, file.piece)
                if file.kind == IDS:
                    return role.comparison(records).ids()[to]
                if file.kind == AGAIN:
                    return role.comparison(records).ids_again(self._sent(IDS))[to]
                with self._using(ROWS):
                    return role.answers(records, {to: self._contents(ROWS, to)})[to]

            def sealed(one: Between) -> bytes:
                return one.seal(plan, key, contents())

            same = (ROWS, self.name, file.piece)
            rows = [one for one in between(plan) if (one.kind, one.sender, one.piece) == same]
            for one in rows if file.kind == ROWS else [file]:
                if short := check_space(self._releases.folder, one.max_bytes):
                    raise PlanError(short)
                role.exchanged(records, one.name, partial(sealed, one))

    @contextmanager
    def _reading(self) -> Iterator[tuple[Party, Table | ClusterRecords]]:
        """This party, and its records. They are read again after a failure, which a new table may
        repair.
        """
        from ..party.comparison import partners
        from ..party.party import Party

        plan, key, secret = self.agreed()
        made, self._role = self._role, None
        with ExitStack() as connections:
            if made is None:
                role = Party(
                    plan,
                    self.name,
                    secret,
                    options=self._options,
                    key=key,
                    counting_key=self._counting_key(),
                )
                made = role, self._records(role, connections)
            role, records = made
            self._releases.prepare()
            for file in reversed(between(plan)):
                # All that this party gives under a plan is of one table. What was given last is named.
                if file.sender == self.name and self._is_made(plan, file.name):
                    role.exchanged(records, file.name, partial(self._recorded, file.name))
            ids, again = self._sent(IDS), self._sent(AGAIN)
            if ids and len(ids) == len(again) == len(partners(plan, self._index)):
                role.comparison(records).compare(ids, again)
            yield made
        self._role = made

    def _read_plan(self, data: bytes) -> Plan:
        return read_plan(self._folder.key, data)

    def _open(self, envelopes: bytes) -> Secret:
        """Open this party's envelope.

        The party that draws the secret in this run must have sealed it.
        """
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
        """Draw the secret, and seal it for the other parties.

        Each is done once, because others may have the result.
        """
        if not self._folder.has(SECRET):
            Secret.new().save(self.folder / SECRET)
        plan, secret = self._agreed, Secret.load(self.folder / SECRET)
        envelopes = seal_secret(secret, plan.digest(), plan.sealing_keys(), self._folder.key)
        self._folder.write((json.dumps(envelopes) + "\n").encode(), ENVELOPES)

    def _secret(self) -> Secret | None:
        """The parties' secret, drawn here or from the envelope. None before that."""
        if self._agreed.party_names[0] == self.name:
            return Secret.load(self.folder / SECRET) if self._folder.has(SECRET) else None
        envelopes = self._received(self.name, ENVELOPES)
        return None if envelopes is None else self._open(envelopes)

    def _release(self) -> None:
        """Make the message, and put it on record."""
        with self._reading() as (role, records):
            if short := check_space(self._releases.folder, self._agreed.message_size(self._index)):
                raise PlanError(short)
            with self._using(ANSWERS):
                role.release(records, self._sent(ANSWERS))

    @contextmanager
    def _using(self, kind: str) -> Iterator[None]:
        """Say how to go on if another party's file cannot be used. The first one stays."""
        try:
            yield
        except MessageError as error:
            place = self.folder / RECEIVED / f"{kind}-*"
            raise MessageError(
                f"{error} If that party sends another file, delete its first one, {place}."
            ) from error

    def _recorded(self, file: str) -> bytes:
        """A file on record. It is read once, unless somebody changes the record."""
        from ..party.releases import record_name

        plan, index, releases = self._agreed, self._index, self._releases
        path = releases.folder / record_name(plan.digest(), index, file)
        stamp = path, path.exists() and path.stat().st_mtime_ns
        if stamp not in self._given:
            self._given[stamp] = releases.given(plan.digest(), index, file)
        return self._given[stamp]

    def _records(self, role: Party, connections: ExitStack) -> Table | ClusterRecords:
        """Encode this party's records, and write down for :meth:`state` which ones are left out.

        The connection to a cluster lasts as long as ``connections``.
        """
        settings, plan = self.settings, self._agreed
        self._options.progress.step(f"reading {settings.table}")
        most = plan.records_per_person
        records, above = encoded(settings, plan, role, connections)
        left_out = [*records.dropped.lines()]
        if above[0]:
            left_out.append(
                f"{above[0]:,} records of {above[1]:,} persons with more than {most} are left out, the same at every party; "
                "this stays here."
            )
        # The file is written even if it is empty, so that no record decides whether it exists.
        self._folder.write("\n".join(left_out).encode(), LEFT_OUT, private=True)
        return records

    @property
    def _releases(self) -> Releases:
        from ..party.releases import Releases

        return Releases.of(self._folder.key)

    @property
    def _index(self) -> int:
        """Index of this party in the accepted plan."""
        return self._agreed.party_names.index(self.name)

    def _is_made(self, plan: Plan, file: str) -> bool:
        """Whether a file of an accepted plan is on record."""
        return self._releases.made(plan.digest(), self._index, file)

    def _is_looked_at(self, plan: Plan) -> bool:
        """Whether a plan was accepted for the table as it is. A message on record needs no table,
        and where there is none, making the message says so.
        """
        now = self.table_as_it_is
        looked_at = not now or self._folder.read(ACCEPTED, TABLE) == now.encode()
        return looked_at or self._is_made(plan, MESSAGE)

    def _is_accepted(self, plan: Plan) -> bool:
        return self._folder.read(ACCEPTED, PLAN) == plan.digest().hex().encode()

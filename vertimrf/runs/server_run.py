"""The server's run: from everybody's offers to the synthetic table, from a folder, at whatever pace files come.

The server makes the plan once all offers are there, passes plan and envelopes on, and writes the table once all messages are
there. Nobody trusts it with data, and nothing here reads any.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import MessageError, PlanError, RunError
from ..files import sealed
from ..files.atomic import MAX_KEY, check_space, draft_of, parse_json, sync, write_text
from ..keys import PublicKeys
from ..message import Message, largest_message
from ..options import RunOptions
from ..plan.options import PlanOptions
from ..plan.plan import Plan, target_in_words
from ..plan.schema import Schema
from .exchange import check_apart
from .files import (
    ENVELOPES,
    MESSAGE,
    OFFER,
    PLAN,
    check_envelopes,
    file_name,
    read_offer,
)
from .folder import RunFolder, create, settings_as
from .steps import SERVER, FileIn, FileOut, Run, Step

if TYPE_CHECKING:
    from ..server.server import Result

__all__ = ["ServerRun", "ServerSettings"]

LOG = logging.getLogger("vertimrf")

# Of a value in a table of text; more than most take.
BYTES_A_VALUE = 12
SCHEMA, RESULT, MODEL, REPORT = "schema.toml", "result", "model", "report.json"


@dataclass(frozen=True, kw_only=True)
class ServerSettings(PlanOptions):
    """What a run needs to know beside the schema and everybody's keys: how it is planned, and what follows.

    Attributes:
        epsilon: privacy target of the run.
        workload: as in :class:`~vertimrf.plan.options.PlanOptions`, without weights.
        rows: synthetic rows; default the noisy record count.
        seed: of the sampling of synthetic rows only.
        out: the synthetic table's file name, whose suffix says how it is written.
        exchange: where files are exchanged (:mod:`vertimrf.runs.exchange`), if by a place that all can reach.
    """

    epsilon: float
    workload: tuple[tuple[str, ...], ...] = ()
    rows: int | None = None
    seed: int | None = None
    out: str = "synthetic.parquet"
    exchange: str | None = None


class ServerRun(Run):
    """The server's run in its folder.

    Args:
        folder: what :meth:`create` made.
        options: threads and progress.

    Raises:
        RunError: no such folder, or its settings cannot be read.
        SchemaError: its schema cannot be read.
    """

    def __init__(self, folder: str | os.PathLike[str], options: RunOptions | None = None) -> None:
        files = RunFolder(folder, "server")
        self.settings = settings_as(ServerSettings, files.settings, files.path)
        self.schema = Schema.load(files.path / SCHEMA)
        super().__init__(
            files, SERVER, (PLAN,), {name: (file_name(name),) for name in self.parties}
        )
        options = options if options is not None else RunOptions()
        self._options = replace(options, rows=self.settings.rows, seed=self.settings.seed)

    @classmethod
    def create(
        cls,
        folder: str | os.PathLike[str],
        *,
        schema: Schema | str | os.PathLike[str],
        epsilon: float,
        planning: PlanOptions,
        out: str = "synthetic.parquet",
        exchange: str | None = None,
        options: RunOptions | None = None,
    ) -> ServerRun:
        """Make a run folder with a key pair, or go on with the one that has these settings.

        Args:
            folder: where to; for its owner alone.
            schema: public domains and who holds them, or the file; a copy goes into the folder.
            epsilon, out, exchange: as in :class:`ServerSettings`.
            planning: how the run is planned; its workload has no weights.
            options: rows and seed, which the folder keeps; threads and progress, which are this process's.

        Raises:
            RunError: the folder is of another run, or has other files.
            SchemaError: no schema.
            PlanError: no run can be planned with this.
            PrivacyError: no noise meets the target.
            TableError: no table can be written under such a name.
        """
        # Of the tables' folder, what names and writes results alone; nothing there is read by a server.
        from ..tables.arrow import check_output

        if isinstance(planning.workload, Mapping):
            raise PlanError("A run folder's workload has no weights: name its marginals alone.")
        loaded = schema if isinstance(schema, Schema) else Schema.load(schema)
        options = options if options is not None else RunOptions()
        known = {own.name: getattr(planning, own.name) for own in fields(PlanOptions)}
        known["workload"] = tuple(tuple(marginal) for marginal in planning.workload or ())
        known["delta"] = None if planning.delta is None else float(planning.delta)
        cap = planning.collusion_epsilon
        known["collusion_epsilon"] = None if cap is None else float(cap)
        settings = ServerSettings(
            **known,
            epsilon=float(epsilon),
            rows=options.rows,
            seed=options.seed,
            out=out,
            exchange=exchange,
        )
        if exchange is not None and "://" not in exchange:
            check_apart(Path(folder), Path(exchange))
        if Path(out).name != out:
            raise PlanError(
                f"The synthetic table is written into the run's folder: give {Path(out).name!r}, not {out!r}."
            )
        check_output(out)
        # What cannot be planned is said now, not when all offers have come.
        planned = make(loaded, settings, None)
        for remark in (
            *target_in_words(planned.epsilon, planned.delta, planned.expected_records),
            *loaded.remarks(),
        ):
            LOG.warning("%s", remark)
        create(
            folder, {"role": "server"} | asdict(settings), None, {SCHEMA: loaded.to_toml().encode()}
        )
        return cls(folder, options)

    @property
    def parties(self) -> tuple[str, ...]:
        """The parties' names."""
        return tuple(name for name, _ in self.schema.parties)

    @property
    def result(self) -> Path | None:
        """The folder of the synthetic table, the model and the report, once they are there."""
        return self.folder / RESULT if self._folder.has(RESULT) else None

    def wants(self, again: bool = False) -> dict[str, dict[str, int]]:
        """By party, names of the files that the run waits for, each with its largest size in bytes.

        Args:
            again: also offers that came, until the party's message proves whose they are.
        """
        return self._wants(again)

    def advance(self, received: Mapping[str, Mapping[str, bytes]]) -> dict[str, dict[str, bytes]]:
        """Take what came, do all that can be done now, and give all that there is for every party: always the same bytes.

        Files that cannot be taken do not stop the run: they are refused, logged, and named by :meth:`state`.

        Args:
            received: by party, files by name: "offer", "envelopes", "message"; any of them, any number of times.

        Returns:
            For every party, files by name: once there are, "plan", "envelopes".

        Raises:
            RunError: another process is at work in the folder.
            VertiMRFError: the server's own work failed, since no model fits what came, say; :meth:`state` has the sentence, and
                :meth:`outgoing` what there is all the same.
            OSError: the disk is full, or not writable; nothing is lost.
        """
        return self._advance(received)

    def outgoing(self) -> dict[str, dict[str, bytes]]:
        """What there is for every party, by name: the same bytes whenever it is asked for."""
        return self._outgoing()

    def _steps(self) -> Iterator[Step]:
        plan, parties = self.plan, self.parties
        fingerprint = "" if plan is None else plan.fingerprint
        first, *others = parties
        for party in parties:
            check, unproved = partial(self._check_offer, party), not self._has(party, MESSAGE)
            yield self._from(FileIn(party, OFFER, MAX_KEY, check, again=unproved), ())
        yield Step(
            name=PLAN,
            needs=(OFFER,),
            done=plan is not None,
            did=f"{fingerprint}; all parties and you compare it by phone, in full",
            todo="to be made of everybody's offers",
            work=self._make_plan,
            gives=FileOut(PLAN, partial(self._folder.read, PLAN)),
        )
        yield Step(
            name=ENVELOPES,
            needs=(PLAN,),
            done=self._has(first, ENVELOPES),
            did=f"of the secret that {first!r} draws",
            todo=f"waits for those of {first!r}",
            later=f"of the secret that {first!r} draws",
            on=repr(first),
            takes=FileIn(first, ENVELOPES, MAX_KEY, self._check_envelopes),
            gives=FileOut(ENVELOPES, partial(self._received, first, ENVELOPES), others),
        )
        largest = 0 if plan is None else sealed.most_bytes(largest_message(plan))
        for party in parties:
            check = partial(self._check_message, party)
            yield self._from(FileIn(party, MESSAGE, largest, check), (PLAN,))
        yield Step(
            name=RESULT,
            needs=(MESSAGE,),
            done=self.result is not None,
            did=f"{self.folder / RESULT / self.settings.out}, with its model and report",
            todo="the synthetic table, its model and report",
            work=self._make_result,
        )

    def _from(self, file: FileIn, needs: tuple[str, ...]) -> Step:
        """A step for a file that every party sends."""
        return Step(
            name=file.name,
            needs=needs,
            done=self._has(file.party, file.name),
            did=f"of {file.party!r} came",
            todo=f"waits for that of {file.party!r}",
            later=f"of {file.party!r}",
            on=repr(file.party),
            takes=file,
        )

    def _read_plan(self, data: bytes) -> Plan:
        where = str(self.folder / PLAN)
        plan = Plan.from_json(parse_json(data, where, "plan", PlanError))
        if plan.party_names != self.parties:
            raise RunError(
                f"{where} has other parties than {self.folder / SCHEMA}: mend the schema."
            )
        return plan

    def _check_envelopes(self, data: bytes) -> None:
        check_envelopes(self._agreed, data)

    def _check_message(self, party: str, data: bytes) -> None:
        """What another party sealed is not this one's, whoever delivered it."""
        plan = self._agreed
        message = Message.unseal(data, plan, self._folder.key, f"The message of {party!r}")
        if (sender := plan.party_names[message.party]) != party:
            raise MessageError(
                f"What came as of {party!r} is that of {sender!r}; each gives its own."
            )

    def _check_offer(self, party: str, data: bytes) -> None:
        offer = read_offer(party, data)
        for other in self.parties:
            theirs = self._received(other, OFFER)
            if (
                other != party
                and theirs is not None
                and read_offer(other, theirs).public == offer.public
            ):
                raise MessageError(
                    f"The offer of {party!r} holds the key of {other!r}; everyone makes a key pair of its own."
                )
        if offer.public == self._folder.key.offer.public:
            raise MessageError(
                f"The offer of {party!r} holds the server's key; everyone makes a key pair of its own."
            )

    def _make_plan(self) -> None:
        """The plan, of everybody's offers and the settings."""
        offers = [read_offer(party, self._received(party, OFFER) or b"") for party in self.parties]
        keys = PublicKeys.of([*offers, self._folder.key.offer], self.parties)
        make(self.schema, self.settings, keys).save(self.folder / PLAN)

    def _make_result(self) -> None:
        """Table, model and report, of everybody's messages."""
        from ..server.server import Server

        plan, key = self._agreed, self._folder.key
        if short := check_space(self.folder, result_bytes(plan, self.settings.rows)):
            raise PlanError(short)
        role = Server(plan, self._options)
        messages = [
            Message.unseal(
                self._received(party, MESSAGE) or b"", plan, key, f"The message of {party!r}"
            )
            for party in self.parties
        ]
        self._write(role.run(role.read(messages)))

    def _write(self, result: Result) -> None:
        """Table, model and report, all of them or none."""
        from ..named_model import Model
        from ..tables.arrow import write_table

        for warning in result.warnings:
            LOG.warning("%s", warning)
        draft = draft_of(self.folder / RESULT)
        draft.mkdir()
        try:
            write_table(result.pieces(), draft / self.settings.out, result.ledger.standing)
            Model(result.plan.schema, result.model, result.ledger, result.others).save(
                draft / MODEL
            )
            write_text(draft / REPORT, json.dumps(result.to_json(), indent=1) + "\n")
            for path in (*draft.iterdir(), draft):
                sync(path)
            draft.rename(self.folder / RESULT)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        sync(self.folder)


def result_bytes(plan: Plan, rows: int | None) -> float:
    """About what a synthetic table and its model take on disk, at most."""
    from ..plan.forecast import model_cells

    sizes = plan.schema.sizes
    return BYTES_A_VALUE * (rows or plan.expected_records) * len(sizes) + 8 * model_cells(
        sizes, plan.tau
    )


def make(schema: Schema, settings: ServerSettings, keys: PublicKeys | None) -> Plan:
    """The plan of a run's settings, with a nonce of its own every time."""
    from ..plan.planner import make_plan

    return make_plan(schema, settings.epsilon, settings, public_keys=keys)

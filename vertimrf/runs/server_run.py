"""The server's run: from everybody's offers to the synthetic table, from a folder, at whatever pace files come.

The server makes the plan once all offers are there, passes plan and envelopes on, and writes the table once all messages are
there. Nobody trusts it with data, and nothing here reads any.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import MessageError, PlanError, RunError
from ..files.atomic import check_space, draft_of, sync, write_text
from ..keys import Offer, PublicKeys
from ..message import Message
from ..options import RunOptions
from ..plan.options import PlanOptions
from ..plan.plan import Plan, target_in_words
from ..plan.schema import Schema
from .exchange import check_apart
from .files import (
    ENVELOPES,
    FROM_PARTY,
    MESSAGE,
    OFFER,
    PLAN,
    check_envelopes,
    file_name,
    most_bytes,
    read_offer,
)
from .folder import OTHERS, RunFolder, create, settings_as
from .state import DONE, LATER, READY, WAITS, RunState, Step

if TYPE_CHECKING:
    from ..server.server import Result

__all__ = ["ServerRun", "ServerSettings"]

LOG = logging.getLogger("vertimrf")

SERVER = "the server"
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


class ServerRun:
    """The server's run in its folder.

    Args:
        folder: what :meth:`create` made.
        options: threads and progress.

    Raises:
        RunError: no such folder, or its settings cannot be read.
        SchemaError: its schema cannot be read.
    """

    def __init__(self, folder: str | os.PathLike[str], options: RunOptions | None = None) -> None:
        self._folder = RunFolder(folder, "server")
        self.settings = settings_as(ServerSettings, self._folder.settings, self._folder.path)
        self.schema = Schema.load(self._folder.path / SCHEMA)
        options = options if options is not None else RunOptions()
        self._options = replace(options, rows=self.settings.rows, seed=self.settings.seed)
        self._plan: tuple[bytes, Plan] | None = None

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
    def folder(self) -> Path:
        """Where the run lives."""
        return self._folder.path

    @property
    def result(self) -> Path | None:
        """The folder of the synthetic table, the model and the report, once they are there."""
        return self.folder / RESULT if self._folder.has(RESULT) else None

    @property
    def plan(self) -> Plan | None:
        """The plan, once it is made."""
        data = self._folder.read(PLAN)
        if data is None:
            return None
        if self._plan is None or self._plan[0] != data:
            self._plan = data, Plan.load(self.folder / PLAN)
            if self._plan[1].party_names != self.parties:
                raise RunError(
                    f"{self.folder / PLAN} has other parties than {self.folder / SCHEMA}: mend the schema."
                )
        return self._plan[1]

    @property
    def encoder(self) -> str | None:
        """The plan's encoder while messages are still to be read; what needs kernels may come with the next :meth:`advance`."""
        plan = self.plan
        return plan.encoder if plan is not None and self.result is None else None

    def hold(self) -> Any:
        """A context in which no other process can work on the folder; without it, every :meth:`advance` makes its own."""
        return self._folder.alone()

    def wants(self) -> dict[str, dict[str, int]]:
        """By party, names of files that would be taken now, each with the most bytes that it may have."""
        plan = self.plan
        out: dict[str, dict[str, int]] = {}
        for party in self.parties:
            wanted = [OFFER]
            if plan is not None:
                wanted = [MESSAGE] if party != plan.party_names[0] else [ENVELOPES, MESSAGE]
            missing = [name for name in wanted if not self._has(party, name)]
            out[party] = {name: most_bytes(name, plan) for name in missing}
        return out

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
        with self._folder.alone():
            for party, files in received.items():
                if party not in self.parties:
                    self._folder.attempt(partial(self._unknown, party), OTHERS)
                    continue
                for name in [*FROM_PARTY, *(name for name in files if name not in FROM_PARTY)]:
                    if name in files:
                        self._offered(party, name, files[name])
            with self._folder.working():
                self._work()
            return self.outgoing()

    def outgoing(self) -> dict[str, dict[str, bytes]]:
        """What there is for every party, by name: the same bytes whenever it is asked for."""
        plan = self._folder.read(PLAN)
        if plan is None:
            return {party: {} for party in self.parties}
        envelopes = self._received(self.parties[0], ENVELOPES)
        out = {}
        for party in self.parties:
            files = {PLAN: plan, ENVELOPES: envelopes if party != self.parties[0] else None}
            out[party] = {name: data for name, data in files.items() if data is not None}
        return out

    def note_exchange(self, sentences: Sequence[str]) -> None:
        """Put down what is in the way where files are exchanged; :meth:`state` tells it, until this is called with nothing."""
        with self._folder.alone():
            self._folder.note_exchange(sentences)

    def state(self) -> RunState:
        """How far the run has come; can be asked at any time, also while another process is at work."""
        plan = self.plan
        return self._folder.state(SERVER, tuple(self._steps(plan)), plan)

    def _steps(self, plan: Plan | None) -> Iterator[Step]:
        yield from self._of_all(OFFER, plan is not None)
        offers = all(self._has(party, OFFER) for party in self.parties)
        if plan is None:
            yield Step(PLAN, READY if offers else LATER, "to be made of everybody's offers")
        else:
            yield Step(
                PLAN, DONE, f"{plan.fingerprint}; all parties and you compare it by phone, in full"
            )
        if len(self.parties) > 1:
            if plan is not None and not self._has(self.parties[0], ENVELOPES):
                yield Step(
                    ENVELOPES,
                    WAITS,
                    f"waits for those of {self.parties[0]!r}",
                    repr(self.parties[0]),
                )
            else:
                yield Step(
                    ENVELOPES,
                    DONE if plan is not None else LATER,
                    f"of the secret that {self.parties[0]!r} draws",
                )
        yield from self._of_all(MESSAGE, plan is not None)
        if self.result is not None:
            yield Step(
                RESULT, DONE, f"{self.result / self.settings.out}, with its model and report"
            )
        else:
            ready = all(self._has(party, MESSAGE) for party in self.parties)
            yield Step(
                RESULT, READY if ready else LATER, "the synthetic table, its model and report"
            )

    def _of_all(self, name: str, asked: bool) -> Iterator[Step]:
        """A step for what every party sends."""
        for party in self.parties:
            if self._has(party, name):
                yield Step(name, DONE, f"of {party!r} came")
            elif asked or name == OFFER:
                yield Step(name, WAITS, f"waits for that of {party!r}", repr(party))
            else:
                yield Step(name, LATER, f"of {party!r}")

    def _unknown(self, party: str) -> None:
        raise MessageError(
            f"{party[:200]!r} is no party of this run; its parties are {', '.join(self.parties)}."
        )

    def _offered(self, party: str, name: str, data: bytes) -> None:
        place = file_name(party), name if name in FROM_PARTY else "other"
        self._folder.attempt(lambda: self._take(party, name, data), *place)

    def _take(self, party: str, name: str, data: bytes) -> None:
        plan = self.plan
        check: Callable[[bytes], object]
        if name == OFFER:
            check = partial(self._check_offer, party)
        elif name not in FROM_PARTY:
            known = ", ".join(FROM_PARTY)
            raise MessageError(
                f"A file {name[:50]!r} came from {party!r}, which no run has; parties send {known}."
            )
        elif plan is None:
            raise MessageError(
                f"The {name} of {party!r} came before there was a plan: it is of another run."
            )
        elif name == ENVELOPES:
            check = partial(check_envelopes, plan, party)
        else:
            check = partial(self._check_message, plan, party)
        self._folder.take(data, most_bytes(name, plan), check, file_name(party), name)

    def _check_message(self, plan: Plan, party: str, data: bytes) -> None:
        """What another party sealed is not this one's, whoever delivered it."""
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

    def _work(self) -> None:
        """All that can be done as things stand."""
        plan = self.plan
        if plan is None:
            offers = [self._received(party, OFFER) for party in self.parties]
            if None in offers:
                return
            own: list[Offer] = [
                read_offer(p, data)
                for p, data in zip(self.parties, offers, strict=True)
                if data is not None
            ]
            keys = PublicKeys.of([*own, self._folder.key.offer], self.parties)
            make(self.schema, self.settings, keys).save(self.folder / PLAN)
            return
        if self.result is not None or not all(self._has(party, MESSAGE) for party in self.parties):
            return
        from ..server.server import Server

        if short := check_space(self.folder, result_bytes(plan, self.settings.rows)):
            raise PlanError(short)
        key, role = self._folder.key, Server(plan, self._options)
        messages = [Message.unseal(data, plan, key, name) for name, data in self._all(MESSAGE)]
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

    def _has(self, party: str, name: str) -> bool:
        return self._folder.has("received", file_name(party), name)

    def _received(self, party: str, name: str) -> bytes | None:
        return self._folder.received(file_name(party), name)

    def _all(self, name: str) -> list[tuple[str, bytes]]:
        """What every party sent under a name, each with words for errors."""
        return [
            (f"The {name} of {party!r}", self._received(party, name) or b"")
            for party in self.parties
        ]


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

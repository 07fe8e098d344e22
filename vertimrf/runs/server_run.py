"""The server's run, from the parties' offers to the synthetic table, in a folder.

The server makes the plan once all offers have come. It forwards the plan, the envelopes and what
parties send each other. It writes the synthetic table once all messages have come. The server is
not trusted with data, and this module reads none.
"""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from ..arrays import Texts
from ..errors import MessageError, PlanError, RunError, UnmatchedError, VertiMRFError
from ..files import sealed
from ..files.atomic import MAX_KEY, AnyPath, check_space, draft_of, parse_json, sync, write_text
from ..keys import PublicKeys
from ..message import Message, largest_message
from ..options import RunOptions
from ..plan.defaults import BYTES_PER_VALUE, DOMAIN_SHARE
from ..plan.options import PlanOptions
from ..plan.plan import Plan
from ..plan.schema import Schema
from ..plan.target import target_in_words
from ..plan.workload import Workload
from .exchange import begin
from .files import (
    ENVELOPES,
    MATCH,
    MESSAGE,
    OFFER,
    PLAN,
    RESULT,
    SERVER,
    between,
    check_envelopes,
    file_name,
    match_in_words,
    match_of,
    read_match,
    read_offer,
    tells_match,
)
from .folder import RECEIVED, RunFolder, settings_as
from .steps import FileIn, FileOut, Run, Step

if TYPE_CHECKING:
    from ..server.result import Result

LOG = logging.getLogger("vertimrf")

SCHEMA, MODEL, REPORT = "schema.toml", "model", "report.json"


@dataclass(frozen=True, kw_only=True)
class ServerSettings(PlanOptions):
    """Settings of the server's run: how the plan is made, and the following.

    Attributes:
        epsilon: privacy target of the run.
        workload: analyses as text (:mod:`~vertimrf.plan.analyses`).
        rows: number of synthetic rows. Default: the noisy record count.
        seed: seed for the sampling of synthetic rows.
        csv_safe: as for :func:`~vertimrf.write_table`.
        plain: as in :class:`~vertimrf.RunOptions`.
        out: file name of the synthetic table. Its suffix is the format.
        exchange: folder or URI through which files are exchanged (:mod:`vertimrf.runs.exchange`).
            None: no exchange.
    """

    # The schema's domains are found before the run.
    domain_share: ClassVar[float] = DOMAIN_SHARE  # type: ignore[misc]
    epsilon: float
    workload: Texts = ()
    rows: int | None = None
    seed: int | None = None
    csv_safe: bool = False
    plain: bool = False
    out: str = "synthetic.parquet"
    exchange: str | None = None


class ServerRun(Run):
    """The server's run in its folder.

    Args:
        folder: the run folder, which :meth:`create` makes.
        options: threads and progress.

    Raises:
        RunError: there is no run folder, or its settings cannot be read.
        SchemaError: its schema cannot be read.
    """

    def __init__(self, folder: AnyPath, options: RunOptions | None = None) -> None:
        files = RunFolder(folder, "server")
        self.settings = settings_as(ServerSettings, files.settings, files.path)
        self.schema = Schema.load(files.path / SCHEMA)
        super().__init__(
            files, SERVER, (PLAN,), {name: (file_name(name),) for name in self.parties}
        )
        options = options or RunOptions()
        kept = {name: getattr(self.settings, name) for name in ("rows", "seed", "plain")}
        self._options = replace(options, **kept)

    @classmethod
    def create(
        cls,
        folder: AnyPath,
        *,
        schema: Schema | AnyPath,
        epsilon: float,
        planning: PlanOptions,
        out: str = "synthetic.parquet",
        exchange: str | None = None,
        options: RunOptions | None = None,
    ) -> ServerRun:
        """Make a run folder with a new key pair, or continue a run with the same settings.

        Args:
            folder: the run folder. Only its owner may read it.
            schema: public domains and parties, or a schema file. The folder keeps a copy.
            epsilon, out, exchange: as in :class:`ServerSettings`.
            planning: options of the plan. Its workload has no weights.
            options: rows, seed, csv_safe and plain, which the folder keeps; threads and progress of this process.

        Returns:
            The run.

        Raises:
            RunError: the folder belongs to another run, or has other files.
            SchemaError: the schema cannot be read.
            PlanError: no plan can be made with these options.
            PrivacyError: no noise meets the target.
            TableError: the file name of the table is not usable.
        """
        # The server only uses the part of ``tables`` that names and writes results.
        from ..tables.write import check_output, check_size

        if isinstance(planning.workload, Mapping):
            raise PlanError("The workload of a run has no weights: give a list of marginals.")
        loaded = schema if isinstance(schema, Schema) else Schema.load(schema)
        options = options or RunOptions()
        names = {field.name for field in fields(ServerSettings)}
        given = {name: value for name, value in vars(planning).items() if name in names}
        asked = Workload.of(loaded, planning.workload, planning.tau).asked
        given["workload"] = tuple(text for text, _ in asked)
        given["delta"] = None if planning.delta is None else float(planning.delta)
        cap = planning.collusion_epsilon
        given["collusion_epsilon"] = None if cap is None else float(cap)
        settings = ServerSettings(
            **given,
            epsilon=float(epsilon),
            rows=options.rows,
            seed=options.seed,
            csv_safe=options.csv_safe,
            plain=options.plain,
            out=out,
            exchange=exchange,
        )
        if Path(out).name != out:
            raise PlanError(
                f"The synthetic table is written into the run's folder: give a file name such as {Path(out).name!r}, not {out!r}."
            )
        check_output(out, csv_safe=options.csv_safe)
        check_size(out, options.rows or planning.expected_records or 0, len(loaded.names))
        # Errors of the plan are raised now, not when all offers have come.
        planned = make(loaded, settings, None)
        for remark in (
            *target_in_words(planned.epsilon, planned.delta, planned.expected_records),
            *loaded.remarks(),
        ):
            LOG.warning("%s", remark)
        begin(folder, settings, None, {SCHEMA: loaded.to_toml().encode()})
        return cls(folder, options)

    @property
    def parties(self) -> Texts:
        """Names of the parties."""
        return self.schema.party_names

    @property
    def result(self) -> Path | None:
        """The folder with the synthetic table, the model and the report. None before they exist."""
        return self.folder / RESULT if self._folder.has(RESULT) else None

    def advance(self, received: Mapping[str, Mapping[str, bytes]]) -> dict[str, dict[str, bytes]]:
        """Take files from parties and return all files for them, as :meth:`take` does.

        A party sends "offer", "envelopes" and "message". The server sends "plan", "envelopes" and
        "match".
        With encrypted counts, it also forwards rows and answers (:func:`.files.between`).
        """
        return self.take(received)

    def outgoing(self) -> dict[str, dict[str, bytes]]:
        """All files for the parties, by party and name. Their bytes never change."""
        return self.given()

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
            takes=FileIn(
                first, ENVELOPES, MAX_KEY, lambda data: check_envelopes(self._agreed, data)
            ),
            gives=FileOut(ENVELOPES, partial(self._received, first, ENVELOPES), others),
        )
        for file in between(plan):
            step = self._from(
                FileIn(file.sender, file.name, file.max_bytes, partial(file.check, self._agreed)),
                (ENVELOPES,),
            )
            passed = FileOut(
                file.name, partial(self._received, file.sender, file.name), [file.receiver]
            )
            yield replace(step, name=file.kind, gives=passed)
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
        if plan is not None and tells_match(plan):
            match = self._folder.read(MATCH)
            yield Step(
                name=MATCH,
                needs=(MESSAGE,),
                done=match is not None,
                did="" if match is None else match_in_words(read_match(plan, match)),
                todo="whether the ids of the parties match",
                gives=FileOut(MATCH, partial(self._folder.read, MATCH)),
            )

    def _from(self, file: FileIn, needs: Texts) -> Step:
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
                f"{where} has other parties than {self.folder / SCHEMA}: correct the schema."
            )
        return plan

    def _check_message(self, party: str, data: bytes) -> None:
        """Open a message. The party itself must have sealed it."""
        plan = self._agreed
        message = Message.unseal(data, plan, self._folder.key, f"The message of {party!r}")
        if (sender := plan.party_names[message.party]) != party:
            raise MessageError(
                f"The message that came from {party!r} is that of {sender!r}; each party must send its own."
            )

    def _check_offer(self, party: str, data: bytes) -> None:
        """Read an offer. Its key must be no other role's."""
        offer = read_offer(party, data)
        others = {
            repr(other): read_offer(other, theirs)
            for other in self.parties
            if other != party and (theirs := self._received(other, OFFER)) is not None
        }
        for name, other_offer in (others | {SERVER: self._folder.key.offer}).items():
            if other_offer.public == offer.public:
                raise MessageError(
                    f"The offer of {party!r} holds the key of {name}; each role must make its own key pair."
                )

    def _make_plan(self) -> None:
        """Make the plan from the settings and all offers."""
        offers = [read_offer(party, self._received(party, OFFER) or b"") for party in self.parties]
        keys = PublicKeys.of([*offers, self._folder.key.offer], self.parties)
        make(self.schema, self.settings, keys).save(self.folder / PLAN)

    def _make_result(self) -> None:
        """Make the synthetic table, its model and report from all messages."""
        from ..server.server import Server

        plan, key = self._agreed, self._folder.key
        if short := check_space(self.folder, result_bytes(plan, self.settings.rows)):
            raise PlanError(short)
        role = Server(plan, self._options)
        try:
            messages = [
                Message.unseal(
                    self._received(party, MESSAGE) or b"", plan, key, f"The message of {party!r}"
                )
                for party in self.parties
            ]
            estimates = role.read(messages)
            self._folder.write(match_of(plan, estimates.few_in_common), MATCH)
            result = role.run(estimates)
        except VertiMRFError as error:
            if isinstance(error, UnmatchedError):
                self._folder.write(match_of(plan, few=True), MATCH)
            # The first message of a party stays, so that the same would happen again.
            place = self.folder / RECEIVED / "PARTY" / MESSAGE
            raise type(error)(
                f"{error} To go on, have a party that is at fault send another message and delete its first one, {place}; "
                "or make a new plan."
            ) from error
        self._write(result)

    def _write(self, result: Result) -> None:
        """Write the table, the model and the report: all of them or none."""
        from ..named_model import Model
        from ..tables.write import as_many_as_fit, write_table

        for warning in result.warnings:
            LOG.warning("%s", warning)
        draft = draft_of(self.folder / RESULT)
        draft.mkdir()
        try:
            table, safe = draft / self.settings.out, self.settings.csv_safe
            pieces = as_many_as_fit(result.pieces(), table, self.settings.rows)
            write_table(pieces, table, result.ledger.label, csv_safe=safe)
            Model.of(result).save(draft / MODEL)
            write_text(draft / REPORT, json.dumps(result.to_json(), indent=1) + "\n")
            for path in (*draft.iterdir(), draft):
                sync(path)
            draft.rename(self.folder / RESULT)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        sync(self.folder)


def result_bytes(plan: Plan, rows: int | None) -> float:
    """Approximate upper limit of the size of a synthetic table and its model on disk, bytes."""
    from ..plan.forecast import model_cells

    sizes = plan.schema.sizes
    return BYTES_PER_VALUE * (rows or plan.expected_records) * len(sizes) + 8 * model_cells(
        sizes, plan.tau
    )


def make(schema: Schema, settings: ServerSettings, keys: PublicKeys | None) -> Plan:
    """Make a plan from the settings of a run. Its nonce is new every time."""
    from ..plan.planner import make_plan

    return make_plan(schema, settings.epsilon, settings, public_keys=keys)

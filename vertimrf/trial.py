"""The whole protocol in one process, for trials and tests, through the same messages as a deployment."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .clock import Clock
from .errors import PlanError, SchemaError
from .message import Answer, Message
from .party.party import Party
from .party.secret import Secret
from .plan.follow_up import FollowUp
from .plan.plan import Plan, check_target
from .plan.planner import make_plan, split_parties
from .plan.schema import Schema
from .privacy.events import GaussianEvent
from .privacy.ledger import LedgerEntry
from .privacy.noise import SystemNoise
from .server.server import Result, Server
from .tables.arrow import read_arrow
from .tables.infer import infer_schema
from .tables.table import Table, check_same_records, encode_table

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Trial", "open_tables", "run_protocol", "synthesize"]

Progress = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Trial:
    """A run of the whole protocol on one machine.

    Attributes:
        result: what the server made.
        message_bytes: bytes of each party's message, by party name.
        seconds: wall time per phase, parties' phases included.
    """

    result: Result
    message_bytes: dict[str, int]
    seconds: dict[str, float]

    @property
    def table(self) -> pa.Table:
        """The synthetic rows in the schema's original values."""
        return self.result.table

    @property
    def ledger(self) -> Any:
        """Every event and the composed (epsilon, delta)."""
        return self.result.ledger

    @property
    def model(self) -> Any:
        """The global Markov random field."""
        return self.result.model

    def to_json(self) -> dict[str, Any]:
        """Privacy spent, timings, message sizes and model size, JSON-able."""
        out = self.result.to_json()
        out["seconds"] = {phase: round(seconds, 4) for phase, seconds in self.seconds.items()}
        out["message_bytes"] = self.message_bytes
        return out


def open_tables(
    sources: Sequence[Any], id: str, schema: Schema | None = None, split: Sequence[int] | None = None
) -> tuple[Schema, list[Table]]:
    """Read the parties' tables and fit them to a schema.

    Args:
        sources: files, or objects pyarrow can read; one per party, or a single one whose columns ``split`` deals to parties.
        id: the record id column.
        schema: domains and parties; inferred from the data (for trials, not private) when None.
        split: with one source, how many columns each party gets, in order.

    Returns:
        The schema with its parties, and one encoded table per party, all with the same record ids.

    Raises:
        TableError: a source that cannot be read, or ids that do not fit.
        SchemaError: values or columns outside the schema.
    """
    if not sources:
        raise PlanError("Give at least one table.")
    if split is not None and len(sources) != 1:
        raise PlanError(f"--split deals one table's columns to parties, but there are {len(sources)} tables.")
    names = [_name(source, i) for i, source in enumerate(sources)]
    tables = [read_arrow(source) for source in sources]
    if schema is None:
        schema = infer_schema(tables, id)
    if split is not None:
        schema = split_parties(schema, split)
    if len(sources) == 1:
        whole = encode_table(tables[0], id, schema.attributes, names[0])
        held = [list(schema.party_attributes(name)) for name, _ in schema.parties]
        return schema, [
            Table(schema.part(name), whole.digests, np.ascontiguousarray(whole.codes[rows]))
            for (name, _), rows in zip(schema.parties, held, strict=True)
        ]
    if len(schema.parties) == 1:
        schema = _deal_by_columns(schema, tables, id)
    if len(sources) != len(schema.parties):
        raise SchemaError(
            f"The schema names {len(schema.parties)} parties but there are {len(sources)} tables; give one per party."
        )
    parts = [
        encode_table(table, id, schema.part(party), name)
        for table, name, (party, _) in zip(tables, names, schema.parties, strict=True)
    ]
    check_same_records(parts, names)
    return schema, parts


def synthesize(
    tables: Sequence[Any],
    id: str,
    epsilon: float,
    *,
    schema: Schema | None = None,
    split: Sequence[int] | None = None,
    delta: float | None = None,
    expected_records: int | None = None,
    encoder: str = "paired",
    claim_as_published: bool = False,
    rows: int | None = None,
    seed: int | None = None,
    tau: int = 500_000,
    folder: str | Path | None = None,
    progress: Progress | None = None,
    rounds: int = 1,
    reduction: str = "fit",
    consistency: bool = False,
    num_threads: int | None = None,
) -> Trial:
    """Synthesise one table of all parties' attributes with (epsilon, delta) differential privacy, in one process.

    Args:
        tables: one per party: files (CSV, Parquet, Arrow) or data frames; or a single one, with ``split``.
        id: the record id column, in every table.
        epsilon: privacy target of the whole run, add/remove one record.
        schema: public domains; inferred from the data when None, and the run is then marked as not private.
        split: with one table, how many columns each party gets.
        delta: default 1 / expected_records, at most 0.001.
        expected_records: public order of magnitude; when None a noisy count, itself an event of the ledger, takes its place.
        encoder: "paired"; "grr", or "published", whose claim of privacy does not hold, to compare: see
            :func:`vertimrf.make_plan`.
        claim_as_published: says that you know; without it the published encoder is refused.
        rows: synthetic rows; default the noisy record count.
        seed: of the sampling of synthetic rows only; privacy noise always comes from the operating system.
        tau: limit on the cells of a clique of the global model.
        folder: where message files go; a temporary folder when None.
        progress: told the name of each step as it starts.
        rounds: 1, or 2: see :func:`vertimrf.make_plan`.
        reduction, consistency: see :meth:`vertimrf.Server.run`.
        num_threads: threads for the kernels; None leaves the setting as it is.

    Raises:
        VertiMRFError: one sentence on what is wrong with the input and how to mend it.
    """
    check_target(epsilon, delta)
    say = progress or (lambda _: None)
    say("reading tables")
    start = time.perf_counter()
    schema, parts = open_tables(tables, id, schema, split)
    reading = time.perf_counter() - start
    start = time.perf_counter()
    say("planning")
    prior: tuple[LedgerEntry, ...] = ()
    if expected_records is None:
        expected_records, entry = _count_for_planning(parts[0], epsilon)
        prior = (entry,)
    plan = make_plan(
        schema,
        epsilon=epsilon,
        delta=delta,
        expected_records=expected_records,
        tau=tau,
        encoder=encoder,
        claim_as_published=claim_as_published,
        nonce=os.urandom(16).hex(),
        rounds=rounds,
        prior=prior,
    )
    planning = time.perf_counter() - start
    trial = run_protocol(
        plan, parts, rows=rows, seed=seed, folder=folder, reduction=reduction, consistency=consistency, progress=progress,
        num_threads=num_threads,
    )  # fmt: skip
    return replace(trial, seconds={"reading": reading, "planning": planning, **trial.seconds})


def run_protocol(
    plan: Plan,
    tables: Sequence[Table],
    *,
    rows: int | None = None,
    seed: int | None = None,
    folder: str | Path | None = None,
    reduction: str = "fit",
    consistency: bool = False,
    progress: Progress | None = None,
    num_threads: int | None = None,
) -> Trial:
    """Run every party and the server of a plan, the parties' messages going through files.

    Args:
        plan: the agreed plan.
        tables: one encoded table per party, in plan order.
        rows, seed, folder, reduction, consistency, progress, num_threads: as for :func:`synthesize`.
    """
    if folder is None:
        with tempfile.TemporaryDirectory() as temporary:
            return run_protocol(
                plan, tables, rows=rows, seed=seed, folder=temporary, reduction=reduction, consistency=consistency,
                progress=progress, num_threads=num_threads,
            )  # fmt: skip
    say = progress or (lambda _: None)
    secret = Secret.new()
    clock = Clock()
    sizes: dict[str, int] = {}
    paths = []
    for name, table in zip(plan.party_names, tables, strict=True):
        say(f"party {name}")
        party = Party(plan, name, secret, clock=clock)
        message = party.run(table, num_threads)
        paths.append(Path(folder) / f"{name}.message")
        with clock("sending"):
            sizes[name] = message.save(paths[-1], plan)
    with clock("receiving"):
        messages = [Message.load(path, plan) for path in paths]
    server = Server(plan)
    follow_up = None
    answers: list[Answer] = []
    if plan.second_keys:
        say("follow-up")
        with clock("follow-up"):
            server.follow_up(messages, num_threads=num_threads).save(Path(folder) / "follow-up.json")
        follow_up = FollowUp.load(Path(folder) / "follow-up.json", plan)
        for name, table in zip(plan.party_names, tables, strict=True):
            say(f"party {name}, second round")
            path = Path(folder) / f"{name}.answer"
            answer = Party(plan, name, secret, clock=clock).answer(table, follow_up, num_threads)
            with clock("sending"):
                sizes[name] += answer.save(path, follow_up)
            with clock("receiving"):
                answers.append(Answer.load(path, follow_up))
    result = server.run(
        messages, follow_up, answers, rows=rows, seed=seed, reduction=reduction, consistency=consistency, progress=progress,
        num_threads=num_threads,
    )  # fmt: skip
    return Trial(result, sizes, {**clock.seconds, **result.seconds})


def _count_for_planning(table: Table, epsilon: float) -> tuple[int, LedgerEntry]:
    """A noisy record count to plan with, for about a hundredth of the budget."""
    sigma = max(50.0 / epsilon, 1.0)
    exact = np.array([table.codes.shape[1]], np.int64)
    released = int(SystemNoise().gaussian(exact, sigma)[0])
    entry = LedgerEntry(
        GaussianEvent(sigma), "coordinator", "record count, to plan with", f"discrete Gaussian, sigma {sigma:.1f}"
    )
    # A count within its noise of none is as good as the noise.
    return max(released, round(sigma)), entry


def _name(source: Any, index: int) -> str:
    return str(source) if isinstance(source, str | Path) else f"table {index + 1}"


def _deal_by_columns(schema: Schema, tables: Sequence[pa.Table], id: str) -> Schema:
    """Parties of a schema that names none: each table holds the attributes it has columns for."""
    held = [tuple(c for c in table.column_names if c != id) for table in tables]
    seen: dict[str, int] = {}
    for i, columns in enumerate(held):
        for column in columns:
            if column in seen:
                raise SchemaError(f"Attribute {column!r} is at two parties (tables {seen[column] + 1} and {i + 1}); drop one.")
            seen[column] = i
    by_name = dict(zip(schema.names, schema.attributes, strict=True))
    for column, i in seen.items():
        if column not in by_name:
            raise SchemaError(f"Table {i + 1} has column {column!r}, which the schema lacks; add it there or drop the column.")
    missing = [name for name in schema.names if name not in seen]
    if missing:
        raise SchemaError(f"No table has a column for attribute {missing[0]!r} of the schema; add it or drop the attribute.")
    return replace(
        schema,
        attributes=tuple(by_name[column] for columns in held for column in columns),
        parties=tuple((f"party{i + 1}", columns) for i, columns in enumerate(held)),
    )

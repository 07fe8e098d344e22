"""The methods that the experiments compare.

Each has a ``name``, the key in results, and a ``title`` in tables and plots. ``synthesize`` makes a synthetic table of as many rows
as the real one, and takes

- codes: the joined table [shape=(d, n), uint16]; no role of a vertical method sees all of it.
- sizes: codes per attribute.
- split: attributes of each party.
- epsilon, delta: privacy target.
- seed: of whatever is not privacy noise.
- options: variants that an experiment asks for; an unknown one is a TypeError.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from vertimrf import Attribute, Message, PlanOptions, RunOptions, Schema, Synthesizer, make_plan
from vertimrf.keys import KeyRing
from vertimrf.tables.table import Table
from vertimrf.trial import run_protocol

from ..datasets import Dataset, write
from ..peers.peer import PEERS, default_folder, read_rows, surroundings
from .ablations import Treatment, treated

Codes = npt.NDArray[np.uint16]
PARTY_PHASES = ("LocMRF", "LocEnc", "sending")
COUNT_SHARE = 0.01
# Seconds after which a mechanism of others is ended.
LIMIT = 900


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a method makes, and what it costs.

    Attributes:
        codes: synthetic rows [shape=(d, rows), uint16], attributes in the order of the input.
        message_bytes: all that each party sends, in split order; empty where nobody sends anything.
        party_seconds: computation at all parties together, writing messages included.
        server_seconds: computation at the server, planning included.
        spent: composed epsilon by the ledger, at the run's delta; more than asked for where a claim does not hold.
        private: whether the method keeps what it claims.
        detail: further figures, JSON-able.
    """

    codes: Codes
    message_bytes: tuple[int, ...] = ()
    party_seconds: float = 0.0
    server_seconds: float = 0.0
    spent: float = 0.0
    private: bool = True
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class VertiMRF:
    """This library, as planned by default or with some part replaced.

    Attributes:
        name: key in the results.
        title: what tables and plots call it.
        plan: arguments of ``make_plan``.
    """

    name: str
    title: str
    plan: Mapping[str, Any] = field(default_factory=dict)

    def synthesize(self, codes, sizes, split, epsilon, delta, seed, **options):
        """Options are ``local_share``, the fields of ``Treatment`` and those of ``make_plan``."""
        n = codes.shape[1]
        party_columns = [tuple(columns) for columns in split]
        order = [attribute for columns in party_columns for attribute in columns]
        schema = Schema.of(
            {
                f"party{i + 1}": [Attribute.integer(f"x{a}", sizes[a]) for a in columns]
                for i, columns in enumerate(party_columns)
            }
        )
        planned = dict(self.plan)
        if "local_share" in options:
            local = float(options.pop("local_share")) * (1 - COUNT_SHARE)
            planned["shares"] = (COUNT_SHARE, local, 1 - COUNT_SHARE - local)
        treatment = Treatment(options.pop("reduction", "fit"), options.pop("consistency", False))
        start = time.perf_counter()
        plan = make_plan(
            schema,
            epsilon,
            PlanOptions(
                delta=delta, expected_records=n, even_if_useless=True, **planned, **options
            ),
        )
        planning = time.perf_counter() - start
        digests = np.random.default_rng(0).integers(0, 1 << 64, n, np.uint64)
        tables = [
            Table(schema.part(f"party{i + 1}"), digests, np.ascontiguousarray(codes[list(columns)]))
            for i, columns in enumerate(party_columns)
        ]
        ring = KeyRing.new(plan.party_names)
        plan = replace(plan, public_keys=ring.public)
        with tempfile.TemporaryDirectory() as folder:
            trial = run_protocol(plan, tables, RunOptions(rows=n, seed=seed), folder, ring)
            model, rows = trial.result.model, trial.result.codes
            if treatment != Treatment():
                messages = [
                    Message.load(Path(folder, f"{name}.message"), plan, ring.server)
                    for name in plan.party_names
                ]
                model, rows = treated(plan, messages, treatment, n, seed)
        made = np.empty_like(codes)
        made[order] = rows
        parties = sum(trial.seconds.get(phase, 0.0) for phase in PARTY_PHASES)
        return Outcome(
            codes=made,
            message_bytes=tuple(trial.message_bytes.values()),
            party_seconds=parties,
            server_seconds=planning + sum(trial.seconds.values()) - parties,
            spent=trial.ledger.epsilon,
            private=not trial.ledger.reasons,
            detail={"cells": int(model.tree.cells)},
        )


@dataclass(frozen=True)
class Centralized:
    """The library's central synthesizer: one holder has everything, and the split is of no account."""

    name: str = "centralized"
    title: str = "Centralized (LocMRF on the joined table)"

    def synthesize(self, codes, sizes, split, epsilon, delta, seed, **options):
        """Options are the parameters of ``Synthesizer``."""
        names = [f"x{a}" for a in range(len(sizes))]
        schema = Schema.of(
            {
                "holder": [
                    Attribute.integer(name, size) for name, size in zip(names, sizes, strict=True)
                ]
            }
        )
        start = time.perf_counter()
        planning = PlanOptions(expected_records=codes.shape[1], delta=delta, **options)
        table = pa.table(dict(zip(names, codes, strict=True)))
        made = Synthesizer(schema, planning=planning).fit(table, epsilon=epsilon)
        rows = made.sample(codes.shape[1], seed=seed)
        return Outcome(
            codes=np.stack([rows[name].to_numpy().astype(np.uint16) for name in names]),
            server_seconds=time.perf_counter() - start,
            spent=made.ledger.epsilon,
            private=not made.ledger.reasons,
            detail={"cells": int(made.model.field.tree.cells)},
        )


@dataclass(frozen=True)
class VertiGAN:
    """The distributed GAN of Jiang et al. (2023); its module, and torch, are imported only when it runs."""

    name: str = "vertigan"
    title: str = "VertiGAN"

    def synthesize(self, codes, sizes, split, epsilon, delta, seed, **options):
        """Options are the fields of ``vertigan.Training``."""
        from .vertigan import Training, train

        made = train(codes, sizes, split, epsilon, delta, seed, Training(**options))
        return Outcome(
            codes=made.codes,
            message_bytes=made.message_bytes,
            party_seconds=made.party_seconds,
            server_seconds=made.server_seconds,
            spent=made.epsilon,
            detail={"sigma": made.sigma},
        )


@dataclass(frozen=True)
class Central:
    """A mechanism of others, in an environment of its own."""

    name: str
    title: str

    def synthesize(self, codes, sizes, split, epsilon, delta, seed, **options):
        """There are no options."""
        if options:
            raise TypeError(f"{self.title} has no option {next(iter(options))!r}.")
        # It is made at the first run, which takes longer than the limit.
        PEERS[self.name].environment.python(default_folder())
        names = [f"x{a}" for a in range(len(sizes))]
        with tempfile.TemporaryDirectory() as folder:
            write(Dataset("table", tuple(names), tuple(sizes), codes), Path(folder))
            out, errors = Path(folder, "rows.csv.gz"), Path(folder, "errors")
            words = [
                self.name,
                "table",
                "--data",
                folder,
                "--epsilon",
                epsilon,
                "--delta",
                delta,
                "--seed",
                seed,
                "--out",
                out,
            ]
            start = time.perf_counter()
            with errors.open("w") as file:
                command = [sys.executable, "-m", "benchmarks.peers", *map(str, words)]
                process = subprocess.Popen(
                    command, stdout=file, stderr=file, env=surroundings(), start_new_session=True
                )
                try:
                    code = process.wait(LIMIT)
                except subprocess.TimeoutExpired:
                    raise RuntimeError(f"{self.title} did not end within {LIMIT} s") from None
                finally:
                    if process.poll() is None:
                        os.killpg(process.pid, signal.SIGKILL)
                        process.wait()
            if code:
                said = [
                    line for line in errors.read_text().splitlines() if any(map(str.isalnum, line))
                ]
                raise RuntimeError(
                    f"{self.title} failed: {said[-1].strip() if said else f'exit code {code}'}"
                )
            return Outcome(
                codes=read_rows(out, names, sizes),
                server_seconds=time.perf_counter() - start,
                spent=epsilon,
            )


@dataclass(frozen=True)
class RealRows:
    """What a classifier learns from the real rows themselves."""

    name: str = "real"
    title: str = "the real rows (not private)"

    def synthesize(self, codes, sizes, split, epsilon, delta, seed, **options):
        """The rows given; everything else is of no account."""
        return Outcome(codes=codes, spent=float("inf"), private=False)


NO_SKETCHES = (COUNT_SHARE, 1 - COUNT_SHARE, 0.0)

METHODS = {
    method.name: method
    for method in (
        VertiMRF("count-sketches", "count sketches (the default)"),
        VertiMRF("one-round", "scheduled pairs", {"encoder": "scheduled-pairs"}),
        VertiMRF(
            "published",
            "published sketches (claim only)",
            {"encoder": "published", "claim_as_published": True},
        ),
        VertiMRF("fo", "FO (randomised response)", {"encoder": "grr"}),
        Centralized(),
        *(Central(peer.name, f"central {peer.title}") for peer in PEERS.values()),
        VertiGAN(),
        VertiMRF("independent-parties", "independent parties, pasted", {"shares": NO_SKETCHES}),
        VertiMRF(
            "independent-attributes",
            "independent attributes",
            {"shares": NO_SKETCHES, "local_models": False},
        ),
        RealRows(),
    )
}

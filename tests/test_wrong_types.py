"""Arguments of wrong types, of everything public: an error of ``vertimrf.errors`` or a result, and nothing else."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import vertimrf
from vertimrf import (
    Attribute,
    EvaluationOptions,
    Impossible,
    Ledger,
    Message,
    Model,
    Offer,
    OpenSchema,
    Party,
    Plan,
    PlanOptions,
    PrivateKey,
    PublicKeys,
    ReadOptions,
    RunOptions,
    Schema,
    Secret,
    Server,
    Sketch,
    Synthesizer,
    VertiMRFError,
)


class Silent:
    """An object that has nothing of what any argument should have."""

    __slots__ = ()


# Text of a cell, which no error may show.
CELL = "hush-hush"
# Values of many types. No path among them exists but the folder "there".
WRONG: list[Any] = [
    *(None, True, 3, -1, 0, 2.5, float("nan"), float("inf"), -0.0, 2**70, 10**400, 1j),
    *("", "x", "\0", "é" * 300, b"", b"x" * 32, bytearray(3), "there", "nowhere/x"),
    *([], [3], (3,), (), {}, {"a": 3}, {3: "a"}, {"a": None}, [None], [[1]], ["a", 3], {3}),
    *(("a", ("a",)), {"a": [3]}, {"one": None}, (("one", None),), range(3), [b"a"], ["a"]),
    *(Silent(), Silent, len, lambda: 3, Decimal("2.5"), date(2020, 3, 4), Path("nowhere/y")),
    *(np.array([1.0]), np.array([[1, 2]]), np.array([["a", CELL]]), np.float32(2.5), np.int64(3)),
    *(
        np.array(None),
        pa.array([1]),
        pd.DataFrame({"a": [CELL]}),
        pa.table({"a": [CELL]}),
        pd.Series([1]),
        pd.NA,
        pd.NaT,
    ),
    *(Attribute.integer("x", 2), Secret(b"s" * 32), PrivateKey("one", b"k" * 32), PlanOptions()),
]


# Calls that take longer than a millisecond, of which a few wrong ones are drawn.
SLOW = ("synthesize", "write_report", "Model.draws", "Synthesizer.fit", "Synthesizer.save")


@dataclass(frozen=True)
class Call:
    """A call that works.

    Attributes:
        name: what is called.
        function: the same.
        given: the arguments by name.
    """

    name: str
    function: Callable[..., Any]
    given: dict[str, Any]

    def wrong(self, seed: int) -> list[dict[str, Any]]:
        """Arguments of which one or two are wrong."""
        rng = random.Random(f"{seed} {self.name}")
        every = [(name, at) for name in self.given for at in range(len(WRONG))]
        chosen = rng.sample(every, 25) if self.name in SLOW else every
        out = [self.given | {name: WRONG[at]} for name, at in chosen]
        if len(self.given) > 1:
            for _ in range(5 if self.name in SLOW else 30):
                out.append(
                    self.given | {n: rng.choice(WRONG) for n in rng.sample([*self.given], 2)}
                )
        return out


SCHEMA = Schema.of(
    {
        "one": [Attribute.integer("x", 3), Attribute.numeric("n", [0, 1, 5])],
        "two": [Attribute.categorical("y", ["a", "b"])],
    }
)
TABLES = [
    pd.DataFrame({"id": range(400), "x": [0, 1, 1, 2] * 100, "n": [0.5, 2.0] * 200}),
    pd.DataFrame({"id": range(400), "y": ["a", "b", "b", "b"] * 100}),
]
PLANNING = PlanOptions(
    expected_records=400, message_bytes=20_000, encoder="count-sketch", even_if_useless=True
)
KEY = b"k" * 32


@functools.cache
def made() -> tuple[Any, Synthesizer]:
    """A trial and a fitted synthesizer."""
    trial = vertimrf.synthesize(TABLES, "id", 5.0, schema=SCHEMA, planning=PLANNING)
    one = Schema.of({"one": SCHEMA.part("one")})
    planning = PlanOptions(even_if_useless=True)
    return trial, Synthesizer(one, id="id", planning=planning).fit(TABLES[0], epsilon=5.0)


def given_by_default(function: Callable[..., Any], **others: Any) -> dict[str, Any]:
    """A function's arguments: those that have defaults, and others."""
    every = inspect.signature(function).parameters.values()
    return {p.name: p.default for p in every if p.default is not p.empty} | others


def fields_of(thing: Any) -> dict[str, Any]:
    """What a dataclass is made of."""
    return {f.name: getattr(thing, f.name) for f in dataclasses.fields(thing) if f.init}


@functools.cache
def calls() -> dict[str, Call]:
    """Calls by name."""
    trial, fitted = made()
    result, plan = trial.result, trial.result.plan
    model = Model.of(result)
    keys = {name: PrivateKey.new(name) for name in ("one", "two", None)}
    offers = [keys[name].offer for name in keys]
    party = Party(plan, "one", Secret(KEY))
    table = party.encode(TABLES[0], "id")
    message = party.run(table)
    sketch = Sketch.encode(range(9), KEY, 64)
    entry = plan.entries()[0]
    every: list[tuple[str, Callable[..., Any], dict[str, Any]]] = [
        (
            "Attribute.categorical",
            Attribute.categorical,
            {"name": "a", "values": ["a"], "missing": True, "other": "o", "ordered": True},
        ),
        ("Attribute.integer", Attribute.integer, {"name": "a", "codes": 3, "missing": True}),
        (
            "Attribute.numeric",
            Attribute.numeric,
            {
                "name": "a",
                "edges": [0, 1, 2],
                "integral": True,
                "resolution": None,
                "clamp": True,
                "missing": True,
                "format": None,
            },
        ),
        (
            "Combined",
            vertimrf.Combined,
            fields_of(vertimrf.combine([[1.0], [2.0], [3.0]], [[1.0], [1.0], [1.0]])),
        ),
        (
            "Combined.interval",
            vertimrf.combine([[1.0], [2.0]], [[1.0], [1.0]]).interval,
            {"level": 0.9},
        ),
        (
            "combine",
            vertimrf.combine,
            {"estimates": [[1.0], [2.0]], "variances": [[1.0], [1.0]], "released": None},
        ),
        ("EvaluationOptions", EvaluationOptions, fields_of(EvaluationOptions())),
        ("Result", vertimrf.Result, fields_of(result)),
        ("RunOptions", RunOptions, {"rows": 3, "seed": 1, "csv_safe": True, "num_threads": 1}),
        ("PlanOptions", PlanOptions, fields_of(PlanOptions())),
        ("ReadOptions", ReadOptions, fields_of(ReadOptions())),
        ("Impossible", Impossible, fields_of(Impossible.of(x=1, y="a"))),
        ("Impossible.of", Impossible.of, {"x": 1, "y": "a"}),
        (
            "Impossible.from_json",
            Impossible.from_json,
            {"data": Impossible.of(x=1, y="a").to_json()},
        ),
        ("Ledger", Ledger, fields_of(plan.ledger())),
        ("Ledger.together", Ledger.together, {"ledgers": [plan.ledger()], "delta": 1e-5}),
        ("Ledger.group_epsilon", plan.ledger().group_epsilon, {"records": 2}),
        ("Ledger.not_private", plan.ledger().not_private, {"reason": "why"}),
        ("Ledger.from_json", Ledger.from_json, {"data": plan.ledger().to_json()}),
        ("Message", Message, fields_of(message)),
        (
            "Message.unseal",
            Message.unseal,
            {"data": b"", "plan": plan, "key": keys["one"], "where": "it"},
        ),
        (
            "Message.from_bytes",
            Message.from_bytes,
            {"data": message.to_bytes(plan), "plan": plan, "where": "it"},
        ),
        ("Message.to_bytes", message.to_bytes, {"plan": plan}),
        ("Message.load", Message.load, {"path": "nowhere", "plan": plan, "key": keys["one"]}),
        ("Model.of", Model.of, {"result": result}),
        ("Model.sample", model.sample, {"num_rows": 3, "given": {"y": "a"}, "seed": 1}),
        (
            "Model.pieces",
            lambda **kwargs: [*model.pieces(**kwargs)],
            {"num_rows": 3, "given": {"y": "a"}, "seed": 1},
        ),
        ("Model.draws", lambda **kwargs: [*model.draws(**kwargs)], {"m": 2, "rows": 3, "seed": 1}),
        ("Model.marginal", model.marginal, {"columns": ["x", "y"], "errors": True}),
        ("Model.labels", model.labels, {"columns": ["x", "y"]}),
        ("Model.plot", model.plot, {"columns": ["x", "y"], "real": None}),
        ("Model.trust", model.trust, {"columns": ["x", "y"]}),
        ("Model.trusts", model.trusts, {"wanted": [("x", "y")], "by_rows": False}),
        ("Model.save", model.save, {"path": "model"}),
        ("Model.load", Model.load, {"path": "model"}),
        ("Offer", Offer, fields_of(offers[0])),
        ("Offer.save", offers[0].save, {"path": "offer"}),
        ("Offer.load", Offer.load, {"path": "offer"}),
        ("Offer.from_json", Offer.from_json, {"data": {}, "where": "it"}),
        ("OpenSchema", OpenSchema, {"schema": SCHEMA, "wanted": {}, "impossible": (), "rules": ()}),
        ("OpenSchema.from_json", OpenSchema.from_json, {"data": SCHEMA.to_json()}),
        ("OpenSchema.load", OpenSchema.load, {"path": "nowhere"}),
        (
            "Party",
            Party,
            {"plan": plan, "name": "one", "secret": Secret(KEY), "options": None, "key": None},
        ),
        ("Party.encode", party.encode, {"source": TABLES[0], "id": "id", "read": ReadOptions()}),
        ("Party.run", party.run, {"table": table, "answers": None}),
        ("Party.release", party.release, {"table": table, "answers": None}),
        ("Plan", Plan, fields_of(plan)),
        ("Plan.from_json", Plan.from_json, {"data": plan.to_json()}),
        ("Plan.save", plan.save, {"path": "plan"}),
        ("Plan.load", Plan.load, {"path": "plan"}),
        ("Plan.message_size", plan.message_size, {"party": 0, "records": 3}),
        ("PrivateKey", PrivateKey, {"party": "one", "value": KEY}),
        ("PrivateKey.new", PrivateKey.new, {"party": "one"}),
        ("PrivateKey.save", keys["one"].save, {"path": "key"}),
        ("PrivateKey.load", PrivateKey.load, {"path": "key"}),
        ("PrivateKey.agree", keys["one"].agree, {"public": offers[1].public}),
        ("PrivateKey.derive", keys["one"].derive, {"plan": KEY, "purpose": "it"}),
        ("PublicKeys", PublicKeys, {"parties": tuple(offers[:2]), "server": offers[2]}),
        ("PublicKeys.of", PublicKeys.of, {"offers": offers, "names": ["one", "two"]}),
        ("PublicKeys.key_of", PublicKeys.of(offers, ["one", "two"]).key_of, {"party": "one"}),
        ("PublicKeys.check", PublicKeys.of(offers, ["one", "two"]).check, {"key": keys["one"]}),
        (
            "PublicKeys.from_json",
            PublicKeys.from_json,
            {"data": PublicKeys.of(offers, ["one", "two"]).to_json()},
        ),
        ("Schema", Schema, fields_of(SCHEMA)),
        (
            "Schema.of",
            Schema.of,
            {
                "parties": {"one": [Attribute.integer("x", 3)]},
                "public": True,
                "impossible": [],
                "rules": ["x <= z"],
            },
        ),
        (
            "Schema.of, rules",
            Schema.of,
            {
                "parties": {"one": [Attribute.integer("x", 3)]},
                "impossible": [Impossible.of(x=1)],
                "rules": [],
            },
        ),
        ("Schema.index", SCHEMA.index, {"name": "x"}),
        ("Schema.party_attributes", SCHEMA.party_attributes, {"party": "one"}),
        ("Schema.part", SCHEMA.part, {"party": "one"}),
        ("Schema.encoding", SCHEMA.encoding, {"party": "one"}),
        ("Schema.reading", SCHEMA.reading, {"party": "one"}),
        ("Schema.split", SCHEMA.split, {"counts": [1, 2]}),
        ("Schema.from_json", Schema.from_json, {"data": SCHEMA.to_json()}),
        ("Schema.load", Schema.load, {"path": "schema.toml"}),
        ("Schema.save", SCHEMA.save, {"path": "schema.toml", "lists_apart": False}),
        ("summary", vertimrf.summary, {"plan": plan}),
        (
            "seal_secret",
            vertimrf.seal_secret,
            {
                "secret": Secret(KEY),
                "plan": KEY,
                "keys": PublicKeys.of(offers, ["one", "two"]),
                "key": keys["one"],
            },
        ),
        (
            "open_envelope",
            vertimrf.open_envelope,
            {
                "data": {},
                "plan": KEY,
                "keys": PublicKeys.of(offers, ["one", "two"]),
                "key": keys["one"],
            },
        ),
        ("Secret", Secret, {"value": KEY}),
        ("Secret.save", Secret(KEY).save, {"path": "secret"}),
        ("Secret.load", Secret.load, {"path": "secret"}),
        ("Server", Server, {"plan": plan, "options": None}),
        ("Server.read", Server(plan).read, {"messages": [message, message]}),
        ("Server.run", Server(plan).run, {"estimates": None}),
        ("Sketch", Sketch, {"levels": sketch.levels, "mark": sketch.mark}),
        ("Sketch.encode", Sketch.encode, {"ids": [1, 2], "key": KEY, "keys": 64}),
        ("Sketch.update", sketch.update, {"ids": [1, 2], "key": KEY}),
        *(
            (f"Sketch.{n}", getattr(sketch, n), {"other": sketch})
            for n in ("merge", "union", "intersection", "jaccard")
        ),
        ("Sketch.keys_for", Sketch.keys_for, {"error": 0.1, "jaccard": 0.5}),
        ("Sketch.from_bytes", Sketch.from_bytes, {"data": sketch.to_bytes(), "where": "it"}),
        ("Synthesizer", Synthesizer, given_by_default(Synthesizer)),
        (
            "Synthesizer.fit",
            Synthesizer(
                Schema.of({"one": SCHEMA.part("one")}), planning=PlanOptions(even_if_useless=True)
            ).fit,
            {"table": TABLES[0], "epsilon": 5.0},
        ),
        ("Synthesizer.sample", fitted.sample, {"num_rows": 3, "given": {"x": 1}, "seed": 1}),
        ("Synthesizer.marginal", fitted.marginal, {"columns": ["x", "n"]}),
        ("Synthesizer.save", fitted.save, {"path": "synthesizer"}),
        ("Synthesizer.load", Synthesizer.load, {"path": "synthesizer"}),
        ("Trial", vertimrf.Trial, fields_of(trial)),
        ("VertiMRFError", vertimrf.VertiMRFError, {"sentence": "it"}),
        (
            "draft_schema",
            vertimrf.draft_schema,
            given_by_default(vertimrf.draft_schema, sources=TABLES, id="id", names=["one", "two"]),
        ),
        (
            "evaluate",
            vertimrf.evaluate,
            given_by_default(
                vertimrf.evaluate,
                real=TABLES,
                synthetic=TABLES[0].assign(y="a"),
                id="id",
                schema=SCHEMA,
            ),
        ),
        (
            "make_plan",
            vertimrf.make_plan,
            given_by_default(
                vertimrf.make_plan, schema=SCHEMA, epsilon=1.0, planning=PLANNING, prior=[entry]
            ),
        ),
        (
            "synthesize",
            vertimrf.synthesize,
            given_by_default(
                vertimrf.synthesize,
                tables=TABLES,
                id="id",
                epsilon=5.0,
                schema=SCHEMA,
                planning=PLANNING,
            ),
        ),
        (
            "write_table",
            vertimrf.write_table,
            {"table": pa.table({"a": [CELL]}), "path": "rows.csv", "label": None, "csv_safe": True},
        ),
        (
            "write_report",
            vertimrf.write_report,
            given_by_default(vertimrf.write_report, run=trial, out="report.html", id="id"),
        ),
    ]
    return {name: Call(name, call, given) for name, call, given in every}


@pytest.mark.parametrize("name", vertimrf.__all__)
def test_arguments_of_wrong_types_are_refused_in_a_sentence(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").mkdir()
    mine = [call for call in calls().values() if re.split(r"[.,]", call.name)[0] == name]
    assert mine
    told = []
    for call, given in [(each, given) for each in mine for given in each.wrong(1)]:
        try:
            call.function(**given)
        except VertiMRFError as error:
            told.append((call.name, str(error)))
        except Exception as error:
            wrong = {n: type(g).__name__ for n, g in given.items() if g is not call.given[n]}
            raise AssertionError(f"{call.name}: {wrong}") from error
    assert [(name, said) for name, said in told if CELL in said] == []

"""Messages that keep to the form and say something extreme, and what the server makes of them."""

import functools
import itertools
import json
import math
import warnings
from dataclasses import dataclass, replace

import numpy as np
from msgspec import structs

from tests.planning import plan_with
from vertimrf import (
    Attribute,
    Impossible,
    Message,
    Model,
    RunOptions,
    Schema,
    Server,
    VertiMRFError,
)
from vertimrf.message import NOISE_REACHES, RECORDS_OVER_EXPECTED, bins_of
from vertimrf.model.local_marginal import LocalMarginal, one_way_counts
from vertimrf.model.measurement import binned_sizes
from vertimrf.plan.groups import crossing_pairs
from vertimrf.plan.merging import merged_values, merging

EXPECTED = 40
# How counts and levels are drawn.
COUNTS = ("even", "one", "law", "law", "noise", "signs", "below", "least", "most", "ends")
LEVELS = ("low", "high", "wild", "halves", "opposite", "one", "known", *["near"] * 6)
# Of the record count, the local models and the sketches: a forecast would leave sketches out.
SHARES = (0.1, 0.4, 0.5)


def schema(columns, **stated):
    """A schema of columns by party: a size, a negative size for an attribute with an order, or an attribute."""
    return Schema.of(
        {
            party: [
                size
                if isinstance(size, Attribute)
                else Attribute.integer(name, size)
                if size > 0
                else Attribute.numeric(name, list(range(1 - size)), integral=True)
                for name, size in of_party.items()
            ]
            for party, of_party in columns.items()
        },
        **stated,
    )


@functools.cache
def planned():
    """A schema and options for a small plan of every encoder and of every kind of schema, by name."""
    mixed = {"hospital": {"a": 3, "b": 2, "one": 1}, "insurer": {"x": 2, "y": -4}}
    three = mixed | {"registry": {"p": 2, "q": 2}}
    long = {"hospital": {"a": 70, "b": 2}, "insurer": {"x": -70, "y": 2}}
    binary = {"hospital": {"a": 2, "b": 2, "c": 2}, "insurer": {"x": 2, "y": 2}}
    shared = {
        "hospital": {"a": 3, "s": 3},
        "insurer": {"x": 2, "s": 3},
        "registry": {"s": 3, "p": 2},
    }
    alone = {"hospital": {"a": 3, "b": 2, "c": -4, "one": 1}}
    ruled = schema(
        {"hospital": {"a": -4, "b": -4}, "insurer": {"x": -4, "y": 2}},
        impossible=[Impossible.of(a={"below": 2}, y=1), Impossible.of(y=0, x={"below": 2})],
        rules=["a <= b", "b <= x", "sum = a + x"],
    )
    lone_ruled = schema(
        {"hospital": {"a": -4, "b": -4, "y": 2}},
        impossible=[Impossible.of(a={"below": 2}, y=1)],
        rules=["a < b"],
    )
    return {
        "count sketches": (schema(mixed), {"keys": 64}),
        "count sketches of three": (schema(three), {"keys": 64}),
        "count sketches of all people": (schema(three), {"keys": 64, "population": "outer"}),
        "count sketches of many": (schema(mixed), {"keys": 64, "expected_records": 100_000}),
        "long domains": (schema(long), {"keys": 64}),
        "contrasts": (schema(binary), {"keys": 64, "tau": 20}),
        "limited cliques": (schema(three), {"keys": 64, "tau": 12}),
        "shared columns": (schema(shared), {"keys": 64}),
        "rules": (ruled, {"keys": 64}),
        "scheduled pairs": (schema(three), {"encoder": "scheduled-pairs", "keys": 80}),
        "scheduled pairs of all people": (
            schema(three),
            {"encoder": "scheduled-pairs", "keys": 80, "population": "outer"},
        ),
        "encrypted counts": (schema(three), {"encoder": "encrypted"}),
        "encrypted counts of long domains": (schema(long), {"encoder": "encrypted"}),
        "shared keys": (
            schema(mixed),
            {"encoder": "published", "claim_as_published": True, "keys": 40},
        ),
        "randomised responses": (schema(mixed), {"encoder": "grr"}),
        "a lone holder": (schema(alone), {}),
        "a lone holder's rules": (lone_ruled, {}),
        "nothing varies": (schema({"hospital": {"a": 1}, "insurer": {"x": 1}}), {}),
        "one party varies": (schema({"hospital": {"a": 1}, "insurer": {"x": 3, "y": 2}}), {}),
    }


TWO_BINS = " in two bins"
NAMES = (
    *planned(),
    *(f"{name}{TWO_BINS}" for name in ("long domains", "encrypted counts of long domains")),
    "local contrasts",
)


@functools.cache
def plan_of(name):
    """The plan of one of :data:`NAMES`, made when it is first asked for."""
    if name.endswith(TWO_BINS):
        return in_two_bins(plan_of(name.removesuffix(TWO_BINS)))
    if name == "local contrasts":
        plan = plan_of("contrasts")
        return replace(
            plan, local=tuple(structs.replace(one, contrasts=True) for one in plan.local)
        )
    of, options = planned()[name]
    usual = {"epsilon": 2.0, "expected_records": EXPECTED, "nonce": name, "tau": 1000}
    return plan_with(of, **usual | ({"shares": SHARES} if crossing_pairs(of) else {}) | options)


def in_two_bins(plan):
    """A plan whose groups have two bins each, and are contrasts."""
    two = (2,) * len(plan.groups)
    sketch = replace(plan.sketch, sizes=two, contrasts=tuple(range(len(two))))
    return replace(plan, groups=tuple(replace(g, bins=(2,)) for g in plan.groups), sketch=sketch)


@dataclass
class Draw:
    """Draws the messages of a run.

    Attributes:
        rng: draws everything.
        levels_kind: how the levels of a table are drawn.
        alike: share of the levels that the tables of all parties have in common.
    """

    rng: np.random.Generator
    levels_kind: str = ""
    alike: float = 0.3

    def pick(self, *choices):
        """One of some choices."""
        return choices[int(self.rng.integers(len(choices)))]

    def messages(self, plan):
        """A message of each party, mostly of the same records."""
        usual = plan.expected_records
        records = self.pick(0, 1, usual, usual, usual, usual, 2 * usual, 40 * usual)
        rows = self.pick(0, 1, 2, 30, 200)
        self.levels_kind = self.pick(*LEVELS)
        self.alike = float(self.pick(0.05, 0.2, 0.5))
        return [
            self.message(
                plan,
                party,
                self.pick(*[records] * 20, 0, usual, 10 * usual),
                self.pick(*[rows] * 30, 7),
            )
            for party in range(len(plan.party_names))
        ]

    def message(self, plan, party, records, rows):
        """A party's message of about so many records, with so many randomised responses."""
        marginals = self.marginals(plan, party, records)
        bins = bins_of(plan, party, one_way_counts(marginals))
        groups, sketch, sketches = plan.groups_of(party), plan.sketch, []
        for shape, most in zip(sketch.shapes(groups, rows), sketch.highest(groups), strict=True):
            sketches.append(self.levels(shape, sketch.floor, most))
        tables = [
            self.counts(
                (sketch.rows(other), sketch.rows(mine)),
                records,
                math.sqrt(2) * sketch.noise(other, mine),
                plan.expected_records,
                signed=bool(sketch.contrasts),
            )
            for other, mine in plan.counted_pairs(party)
        ]
        agreement = [
            self.levels(of.shapes((0,))[0], of.floor, of.highest((0,))[0])
            for of in plan.agreement_of(party).values()
        ]
        sizes = [plan.schema.fine[a].size for a in plan.fine_of(party)]
        sigma = plan.local[party].fine_sigma
        fine = tuple(self.counts((n,), records, sigma, plan.expected_records) for n in sizes)
        off = self.pick(*[0] * 10, -4, 4, 15, -15) * plan.count_sigma
        return Message(
            plan.digest(),
            party,
            True,
            None if party else records + int(off),
            marginals,
            bins,
            tuple(sketches),
            tuple(agreement),
            tuple(tables),
            fine,
        )

    def marginals(self, plan, party, records):
        """A party's marginals: all of one attribute, and some others, with some units."""
        local, sizes, name = plan.local[party], plan.schema.sizes, plan.party_names[party]
        varying = plan.schema.varying(name)
        sigma, limit = local.one_way_sigma, plan.expected_records
        out = [
            LocalMarginal((a,), self.counts((sizes[a],), records, sigma, limit), sigma)
            for a in varying
        ]
        merged = merged_values(one_way_counts(out), sigma, merging(plan.schema, name))
        every = [
            attributes
            for k in (1, 2, 3)
            for attributes in itertools.combinations(varying, k)
            if k == 1
            or math.prod(binned_sizes([sizes[a] for a in attributes], map(merged.get, attributes)))
            <= local.largest_clique
        ]
        share = self.pick(0.0, 0.3, 0.6, 1.0)
        most = local.units
        if local.choices and self.rng.random() < 0.97:
            # Where pairs are chosen one by one, the server counts them.
            every, most = (
                [attributes for attributes in every if len(attributes) == 2],
                local.choices,
            )
        chosen = [attributes for attributes in every if self.rng.random() < share][:most]
        left = local.units - len(chosen)
        for attributes in chosen:
            units = 1 + int(left * self.pick(0, 0.01, 0.5, 1)) if left > 0 else 1
            left -= units - 1
            shape = binned_sizes([sizes[a] for a in attributes], map(merged.get, attributes))
            axes = local.contrasted(shape)
            kept = tuple(1 if axis in axes else n for axis, n in enumerate(shape))
            sigma = math.sqrt(units) * local.unit_sigma
            counts = self.counts(kept, units * records, sigma, units * limit, signed=bool(axes))
            if self.rng.random() < 0.97:
                counts = self.joint(out, attributes, merged, kept, axes, units, sigma)
            out.append(LocalMarginal(attributes, counts, sigma, units, (), axes))
        return tuple(out)

    def joint(self, out, attributes, merged, shape, axes, units, sigma):
        """Counts of a marginal that keeps to those of single attributes, which are the first."""
        alone = one_way_counts(out)
        table = np.ones(())
        for a in attributes:
            counts = np.bincount(merged[a], weights=alone[a]) if a in merged else alone[a]
            counts = np.maximum(counts, 0.0)
            table = np.multiply.outer(table, counts / max(counts.sum(), 1.0))
        table *= max(alone[attributes[0]].sum(), 0.0)
        for axis in axes:
            table = table.take([0], axis) - table.take([1], axis)
        far = self.pick(0.0, 1.0, 1.0, 3.0) * sigma
        return np.rint(units * table + far * self.rng.normal(size=shape)).astype(np.int64)

    def counts(self, shape, records, sigma, limit, signed=False):
        """Counts that mostly sum to so many records, each as far out as a message may have it.

        Args:
            shape: of the counts.
            records: their sum.
            sigma: of their noise.
            limit: expected records of a count.
            signed: whether they are contrasts.
        """
        most = RECORDS_OVER_EXPECTED * limit + NOISE_REACHES * sigma
        least = -most if signed else -NOISE_REACHES * sigma
        some = self.rng.random(shape)
        one = np.zeros(shape)
        one.ravel()[self.rng.integers(one.size)] = 1
        far = float(self.pick(0.1, 1, 5, 39)) * sigma
        out = {
            "even": np.full(shape, records / some.size),
            "one": records * one,
            "law": records * some / some.sum(),
            "noise": self.rng.normal(size=shape) * far,
            "signs": np.where(some < 0.5, -far, far),
            "below": np.where(one > 0, records, -far),
            "least": np.full(shape, least),
            "most": np.full(shape, most),
            "ends": np.where(some < 0.5, least, most),
        }[self.pick(*COUNTS)]
        if not signed and self.rng.random() < 0.98:
            # Sums of marginals contradict each other otherwise.
            wanted = records + self.pick(0, 0, -4, 4) * sigma
            for _ in range(3):
                gap = wanted - out.sum()
                room = (most - out if gap > 0 else out - least) * self.pick(some, some > 0.5, 1.0)
                out = out + np.sign(gap) * room * min(1.0, abs(gap) / max(room.sum(), 1e-9))
        return np.clip(np.rint(out), math.ceil(least), math.floor(most)).astype(np.int64)

    def levels(self, shape, floor, most):
        """Levels of a sketch, codes of counters, or randomised responses."""
        if self.rng.random() < 0.15:
            self.levels_kind = self.pick(*LEVELS)
        # Tables of all parties have this in common.
        known = np.broadcast_to(np.random.default_rng(0).random(shape[1]), shape)
        some, rows = self.rng.random(shape), np.arange(shape[0])[:, None]
        part = {
            "low": np.zeros(shape),
            "high": np.ones(shape),
            "wild": some,
            "halves": np.round(some),
            "opposite": np.where(rows % 2, 1 - known, known),
            "one": np.where(rows == 0, 1.0, 0.0) + np.zeros(shape),
            "known": known,
            "near": np.where(some < self.alike, known, self.rng.random(shape)),
        }[self.levels_kind]
        return (floor + np.rint((most - floor) * part)).astype(np.uint8)


class Untold(AssertionError):
    """An outcome that must not be."""


def outcome(plan, messages, folder):
    """What the server makes of messages: "result", "refused" by a message's check, or "told" by a typed error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        read = []
        for name, message in zip(plan.party_names, messages, strict=True):
            where = f"The message of {name!r}"
            try:
                read.append(Message.from_bytes(message.to_bytes(plan), plan, where))
            except VertiMRFError as error:
                return "refused", str(error)
        try:
            server = Server(plan, RunOptions(rows=30, seed=0))
            result = server.run(server.read(read))
            table = result.table
        except VertiMRFError as error:
            if not any(name in str(error) for name in plan.party_names):
                raise Untold(f"names no party: {type(error).__name__}: {error}") from error
            return "told", str(error)
        schema = plan.schema
        assert result.codes.shape == (len(schema.sizes), 30)
        assert (result.codes < np.array(schema.sizes)[:, None]).all()
        for combination in schema.combinations:
            held = np.all([np.isin(result.codes[a], values) for a, values in combination], axis=0)
            assert not held.any() or result.holders is not None
        assert set(schema.names) <= set(table.column_names)
        json.dumps(result.to_json(), allow_nan=False)
        for name in schema.names:
            column = result.model.marginal((schema.names.index(name),))
            assert (column >= 0).all(), column
        Model.of(result).save(folder / "model")
        Model.load(folder / "model")
        return "result", ""

"""Schemas and parties' tables of integer codes, as many test files make them."""

import base64
from collections.abc import Mapping

import numpy as np
import pandas as pd
import pyarrow as pa

from vertimrf import Attribute, Ledger, Model, ReadOptions, Schema
from vertimrf.columns.read import read_attribute
from vertimrf.errors import PrivacyError
from vertimrf.files.convert import from_json
from vertimrf.privacy.events import Event, GaussianEvent
from vertimrf.privacy.ledger import LedgerEntry
from vertimrf.privacy.noise import FixedNoise
from vertimrf.releases.count_sketches.codes import CountedGroup
from vertimrf.releases.count_sketches.encoding import CountSketchEncoder
from vertimrf.server.rows import decode_pieces
from vertimrf.tables.ids import IdKeys
from vertimrf.tables.sources import open_pieces
from vertimrf.tables.table import Table

# Of the digests of ids, where a test needs some keys.
KEYS = IdKeys(bytes(range(16)), bytes(range(16, 32)), bytes(range(32, 48)))
# Values of Adult's attributes.
ADULT = (16, 7, 16, 16, 16, 7, 14, 6, 5, 2, 8, 15, 16, 41, 2)


def schema_of(**parties):
    """Integer attributes by party: sizes by name, or sizes alone, which are then numbered behind the party's name.

    Example:
        >>> schema_of(one={"a": 4, "b": 3}, x=(2, 2)).names
        ('a', 'b', 'x0', 'x1')
    """
    columns_of = {
        name: sizes
        if isinstance(sizes, Mapping)
        else {f"{name}{i}": size for i, size in enumerate(sizes)}
        for name, sizes in parties.items()
    }
    return Schema.of(
        {
            name: [Attribute.integer(a, size) for a, size in columns.items()]
            for name, columns in columns_of.items()
        }
    )


def temporal(name, calendar, edges, **parts):
    """Dates, times of day or timestamps, with edges as a schema file has them."""
    return read_attribute({"name": name, "calendar": calendar, "edges": [*edges]} | parts)


def equal_width(size, bins):
    """The map value -> bin of bins of equal width."""
    return np.arange(size) * bins // size


def dealt(schema, codes, seed=9, people=None):
    """The parties' tables of joined codes [shape=(attributes of all parties, records)], under random ids that they share.

    Numbers are in the first finer cell of their bin. ``people`` are the records that each party holds; by default all.
    """
    digests = np.random.default_rng(seed).integers(0, 1 << 63, codes.shape[1]).astype(np.uint64)
    rows_of = {
        name: [codes[a] for a in schema.party_attributes(name)]
        + [first_cells(schema.attributes[a])[codes[a]] for a in schema.fine_of(name)]
        for name in schema.party_names
    }
    whole = [
        Table(schema.encoding(name), digests, np.array(rows).astype(np.uint16, order="C"))
        for name, rows in rows_of.items()
    ]
    return whole if people is None else list(map(records_of, whole, people))


def first_cells(attribute):
    """The first finer cell of each code."""
    (low, _), cells = attribute.ends(), attribute.fine
    return np.append(np.searchsorted(cells.ends()[0], low), cells.present)


def records_of(table, chosen):
    """Some records of a table, or all in another order."""
    return Table(
        table.attributes, table.digests[chosen], np.ascontiguousarray(table.codes[:, chosen])
    )


def colliding_rows(rng, names):
    """A party's rows by column, as text: ids that collide within and across persons, cells of integer attributes of which some
    are missing and some outside, and repeated rows. In half of the tables a person has all ids, with the smallest codes."""
    ids, count = [*(f"v{i}" for i in range(12)), None, ""], int(rng.integers(10, 60))
    persons = [*(f"p{i}" for i in range(int(rng.integers(2, 10)))), None]
    frame = pd.DataFrame({"id": rng.choice(ids, count), "who": rng.choice(persons, count)})
    for name in names:
        frame[name] = rng.choice([*"012391", ""], count, p=[0.4, 0.3, 0.2, 0.03, 0.01, 0.03, 0.03])
    if rng.random() < 0.5:
        shadow = pd.DataFrame({"id": ids, "who": "shadow"} | dict.fromkeys(names, "0"))
        frame = pd.concat([shadow, frame])
    return pd.concat([frame, frame.sample(frac=0.2, random_state=int(rng.integers(1000)))])


def counted_groups(plan, codes, digests, secret, rng, groups=None):
    """Count sketches of groups, as the server has them: their sizes are known exactly."""
    groups = range(len(plan.sizes)) if groups is None else groups
    encoder = CountSketchEncoder(plan, groups, secret)
    encoder.update(digests, codes)
    sizes = [
        np.bincount(values, minlength=plan.sizes[g]).astype(float)
        for g, values in zip(groups, codes, strict=True)
    ]
    tables = encoder.result(sizes, rng.bytes)
    return [
        CountedGroup(
            t, s, s, np.zeros(len(s)), g in plan.contrasts, plan.weight(g), plan.alternation(g)
        )
        for g, t, s in zip(groups, tables, sizes, strict=True)
    ]


def decode(codes, attributes, rng):
    """Decoded rows in one table."""
    return pa.concat_tables(decode_pieces(codes, attributes, rng))


def rows_of(source, read=None, columns=None):
    """The rows of a table, and what is said of those that cannot be read: reason, first row, number."""
    said = []
    pieces = open_pieces(source, read or ReadOptions()).read(columns, lambda *w: said.append(w[:3]))
    return [row for piece in pieces for row in piece.to_pylist()], said


class Tape(FixedNoise):
    """Noise that records what it is added to, with its scale, and gives another tape's answers if it has one."""

    def __init__(self, played=None):
        super().__init__(3)
        self.played, self.queries, self.answers = played, [], []

    def gaussian(self, values, sigma):
        return self._answer(super().gaussian, values, sigma)

    def geometrics(self, values, scale):
        return self._answer(super().geometrics, values, scale)

    def _answer(self, draw, values, scale):
        self.queries.append((scale, np.array(values)))
        known = None if self.played is None else self.played.answers[len(self.answers)]
        if known is not None and known.shape != np.shape(values):
            # Counts of values that occur, of which the tables have different ones: a new one is nothing.
            known = np.pad(known, (0, max(len(values) - len(known), 0)))[: len(values)]
        self.answers.append(draw(values, scale) if known is None else known)
        return self.answers[-1]


def moved(exact, its):
    """How far two tables' exact answers to a query are apart; of values that occur, by how many records."""
    if exact.shape == its.shape:
        return int(np.abs(exact - its).sum())
    return abs(int(exact.sum() - its.sum()))


def named_model(schema, field, sigma=10.0, delta=1e-6, **more):
    """A model of a schema, whose ledger has one release."""
    ledger = Ledger((LedgerEntry(GaussianEvent(sigma), "one", "x", "y"),), delta)
    return Model(schema, field, ledger, **more)


def written(secret):
    """Ways in which a log or a traceback may have secret bytes."""
    numbers = int.from_bytes(secret, "little"), int.from_bytes(secret, "big"), list(secret)
    return (
        secret.hex(),
        base64.b64encode(secret).decode(),
        repr(secret)[2:-1],
        *(str(number).strip("[]") for number in numbers),
    )


def event_from_json(data):
    """An event as the entries of a ledger read it."""
    return from_json(data, Event, "The event", "have it made again", PrivacyError)

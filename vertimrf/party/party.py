"""A party: make one message from a table and the plan (VertiMRF, phases 1 and 2).

1. LocMRF measures noisy local marginals.
2. LocEnc encodes sketches of groups of attributes, in bins that follow from the local marginals.
   With encrypted counts, parties exchange encrypted rows and answers instead.
3. The message is sealed for the server and recorded as released.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from ..arguments import MAPPING, TEXT, Kind, instance, maybe, takes
from ..arrays import Bytes, Floats, Integers, Ints
from ..errors import PlanError, TableError
from ..kernels.jit import threads
from ..keys import PrivateKey, called
from ..message import Message, bins_of
from ..model.local_marginal import LocalMarginal, one_way_counts
from ..model.measurement import BinMap
from ..options import RunOptions
from ..plan.groups import BinMaps, released_sizes
from ..plan.local_bins import cuttings
from ..plan.merging import merging
from ..plan.plan import Plan
from ..privacy.noise import KeyedNoise, SystemNoise
from ..progress import Clock
from ..releases.count_sketches.agreement import value_words
from ..releases.count_sketches.encoding import CountSketchEncoder
from ..releases.release import ExchangeKey, Side, Steps
from ..tables.columns import encode_table
from ..tables.derived import party_table, with_derived
from ..tables.ids import IdKeys
from ..tables.impossible import ruled_out
from ..tables.read_options import DEFAULT, ReadOptions
from ..tables.sources import Source
from ..tables.table import Table
from .check import check_memory
from .comparison import Comparison
from .local_model import release_local_model
from .persons import check_named
from .records import Composite, InMemory, Records
from .releases import MESSAGE, Release, Releases, table_digest
from .secret import Secret, derive, id_keys

A = TypeVar("A")
R = TypeVar("R")


def remembered(method: Callable[[Party, A], R]) -> Callable[[Party, A], R]:
    """A method that remembers its result for the argument that came last.

    So the steps of encrypted counts, which are given one table, check and measure it once.
    """
    name = f"_last{method.__name__}"

    @functools.wraps(method)
    def once(self: Party, of: A) -> R:
        if name not in vars(self) or vars(self)[name][0] is not of:
            vars(self)[name] = of, method(self, of)
        result: R = vars(self)[name][1]
        return result

    return once


# A party's table, as Party.encode gives it.
TABLE = Kind("what Party.encode gives", lambda given: hasattr(given, "dropped"))


@dataclass(frozen=True, eq=False)
class LocalRelease:
    """A party's released local model.

    Attributes:
        marginals: noisy marginals, attributes by their position in the schema.
        one_way: by attribute, its released counts [shape=(size,), float64].
        bins: per group and attribute, the map code -> bin.
        fine: fine marginals, as in a message.
    """

    marginals: tuple[LocalMarginal, ...]
    one_way: Mapping[int, Floats]
    bins: tuple[BinMaps, ...]
    fine: tuple[Integers, ...]


class Party:
    """A data holder. It sees its table and the plan, and releases one message per plan.

    Args:
        plan: the agreed plan.
        name: name of the party in the plan.
        secret: the parties' shared secret, unknown to the server.
        noise: fixed noise, for tests; messages with it are marked as not private.
        clock: records the wall time of LocMRF and LocEnc.
        options: threads and progress.
        key: the party's private key, which :meth:`release` needs. Noise is then a function of the
            key, the plan and the table; without a key, noise comes from the operating system.
        counting_key: its private key of encrypted counts, which only these need.

    Raises:
        PlanError: the plan has no party of that name or has another key for it, or its tables
            exceed this machine's memory.
    """

    @takes(
        PlanError,
        plan=instance("Plan"),
        name=TEXT,
        secret=instance("Secret"),
        options=maybe(instance("RunOptions")),
        key=maybe(instance("PrivateKey")),
    )
    def __init__(
        self,
        plan: Plan,
        name: str,
        secret: Secret,
        noise: KeyedNoise | None = None,
        clock: Clock | None = None,
        options: RunOptions | None = None,
        *,
        key: PrivateKey | None = None,
        counting_key: ExchangeKey | None = None,
    ) -> None:
        if name not in plan.party_names:
            raise PlanError(
                f"The plan has no party {name!r}; it names {', '.join(plan.party_names)}."
            )
        if key is not None:
            plan.sealing_keys().check(key)
            if key.party != name:
                raise PlanError(f"The key is that of {called(key.party)}, not of {name!r}.")
        self._plan = plan
        self._index = plan.party_names.index(name)
        check_memory(plan, self._index)
        self._name = name
        self._attributes = plan.schema.party_attributes(name)
        self._varying = plan.schema.varying(name)
        self._secret = secret
        self._clock = clock if clock is not None else Clock()
        self._options = options or RunOptions()
        self._fixed = noise
        self._key = key
        self._counting_key = counting_key

    def __repr__(self) -> str:
        return f"<Party {self._name!r} of {self._plan}>"

    @property
    def id_keys(self) -> IdKeys:
        """Keys of the digests of ids, the same at all parties of the plan."""
        return id_keys(self._secret, self._plan.digest())

    @takes(TableError, id=maybe(TEXT), read=instance("ReadOptions"))
    def encode(self, source: Source, id: str | None, read: ReadOptions = DEFAULT) -> Table:
        """Encode this party's records from a file or data frame, for :meth:`release`.

        Records that do not fit the plan are left out one by one, so that whether a message is sent
        depends on no single record (:func:`vertimrf.tables.columns.encode_table` has the rule and a
        proof). The table's ``dropped`` has their number and the reasons; only this party may see
        it.

        Args:
            source: a CSV, Parquet or Arrow file, a pandas or polars frame, an Arrow table, a DuckDB
                relation, or another object with ``__arrow_c_stream__``.
            id: the column of record ids; None if the plan's only table has none.
            read: how the table is read.

        Returns:
            The encoded records.

        Raises:
            TableError: the table cannot be read, has no column of ids, or names persons otherwise
                than the plan (:func:`vertimrf.party.persons.check_named`).
            SchemaError: the table lacks a column of the plan.
        """
        check_named(read.person is not None, self._plan.records_per_person)
        schema = self._plan.schema
        ruled = ruled_out(schema, self._name)
        names = [attribute.name for attribute in schema.part(self._name)]
        table = party_table(source, read, id, names)
        (pieces,) = with_derived([table], schema, names, read)
        return encode_table(
            pieces, id, schema.encoding(self._name), read, keys=self.id_keys, impossible=ruled
        )

    def comparison(self, table: Table | Records) -> Comparison:
        """Step 0 of encrypted counts: the comparison of this table's ids with the others'.

        The other steps are for a table that was compared.

        Args:
            table: the party's records, as for :meth:`release`.

        Raises:
            TableError: the table's attributes are not those of this party.
        """
        return self._comparison(self._checked(table))

    def rows(self, table: Table | Records, piece: int = 0) -> bytes:
        """Step 1 of encrypted counts: a piece of this party's rows, encrypted, for all later parties.

        Args:
            table: the party's records, as for :meth:`release`.
            piece: number of the piece, from 0 on (:meth:`.CrossPartyRelease.files`).

        Raises:
            TableError: the table's attributes are not those of this party.
            PlanError: its ids were not compared with the others' (:meth:`comparison`).
        """
        steps = self._counting(self._checked(table))
        with self._clock("LocEnc"), threads(self._options.num_threads):
            return steps.rows(piece)

    def answers(
        self, table: Table | Records, rows: Mapping[str, Iterable[bytes]]
    ) -> dict[str, bytes]:
        """Step 2 of encrypted counts: sums of the rows of earlier parties, with noise.

        Two answers to one party's rows would let it average the noise away. Send only one.

        Args:
            table: the party's records, as for :meth:`release`.
            rows: by name, the results of :meth:`rows` of earlier parties, piece by piece.

        Returns:
            By name, the answer for that party alone.

        Raises:
            TableError: the table's attributes are not those of this party.
            PlanError: its ids were not compared with the others' (:meth:`comparison`).
            MessageError: rows are not of this plan, or damaged.
        """
        records = self._checked(table)
        steps = self._counting(records)
        with self._clock("LocEnc"), threads(self._options.num_threads):
            return {
                name: steps.answer(
                    self._plan.party_names.index(name),
                    data,
                    functools.partial(self._noise, records, f"answer to {name}"),
                )
                for name, data in rows.items()
            }

    @takes(TableError, table=TABLE, answers=maybe(MAPPING))
    def run(self, table: Table | Records, answers: Mapping[str, bytes] | None = None) -> Message:
        """Measure the local marginals and encode the sketches (LocMRF and LocEnc).

        Everything read from the table is an event of the plan's ledger. Two different messages for
        one plan would let a reader separate records from noise, because they have the same hashes.
        So send only what :meth:`release` returns.

        Args:
            table: the party's records, encoded by its part of the schema; on one machine, or as
                :class:`Records`.
            answers: for encrypted counts, by name the results of :meth:`answers` of all later
                parties.

        Returns:
            The message.

        Raises:
            TableError: the table's attributes are not those of this party.
        """
        records = self._checked(table)
        with threads(self._options.num_threads):
            return self._message(records, answers or {})

    @remembered
    def _digest(self, records: Records) -> bytes:
        """Keyed digest of the table; empty without a private key."""
        if self._key is None:
            return b""
        with threads(self._options.num_threads):
            return table_digest(records, self._key, self._plan.digest())

    def _noise(self, records: Records, of: str = "message", exact: bytes = b"") -> KeyedNoise:
        """Noise of a release. Different tables have independent noise, also for equal counts.

        Args:
            records: the party's records.
            of: what is released.
            exact: digest of what else the release depends on.
        """
        if self._fixed is not None:
            return self._fixed
        if self._key is None:
            return SystemNoise()
        known = ", ".join([self._digest(records).hex(), *([exact.hex()] if exact else [])])
        return KeyedNoise(self._key.derive(self._plan.digest(), f"noise of the {of}, {known}"))

    @remembered
    def _steps(self, records: Records) -> Steps:
        """The steps of encrypted counts. They need the bins, and so the local model."""
        plan, sketch = self._plan, self._plan.sketch
        if not sketch.exchanges:
            raise PlanError(
                f"The plan's encoder is {plan.encoder}: only encrypted counts are exchanged between parties."
            )
        with threads(self._options.num_threads):
            local = self._local_once(records)
        return sketch.steps(self._side(records, local, self._noise(records)))

    def _counting(self, records: Records) -> Steps:
        """The steps for records whose ids were compared with the others'."""
        if not self._comparison(records).done:
            raise PlanError(
                f"Encrypted counts need the same ids at all parties: compare those of {self._name!r} with the others' first "
                "(Party.comparison)."
            )
        return self._steps(records)

    @remembered
    def _comparison(self, records: Records) -> Comparison:
        return Comparison(self._plan, self._index, self._steps(records), self._key)

    @remembered
    def _local_once(self, records: Records) -> LocalRelease:
        """The local model, released once for one table: all steps have the same bins."""
        return self._local(records, self._noise(records))

    def _local(self, records: Records, noise: KeyedNoise) -> LocalRelease:
        """LocMRF: the noisy local marginals, and the bins that follow from them."""
        plan = self._plan
        with self._clock("LocMRF"):
            rows = [self._attributes.index(a) for a in self._varying]
            sizes = [plan.schema.sizes[a] for a in self._varying]

            def counted(wanted: Sequence[Ints], merged: Mapping[int, BinMap]) -> Iterator[Integers]:
                marginals = [tuple(rows[a] for a in attributes) for attributes in wanted]
                return records.marginals(marginals, {rows[a]: bins for a, bins in merged.items()})

            long = {
                self._varying.index(a): how for a, how in merging(plan.schema, self._name).items()
            }
            released = release_local_model(
                counted,
                sizes,
                plan.local[self._index],
                noise,
                self._options.progress,
                plan.workload.part(self._varying),
                [[self._varying.index(a) for a in attributes] for attributes in self._linked()],
                long,
                cuttings(plan.schema, self._varying),
            )
            marginals = tuple(
                replace(m, attributes=tuple(self._varying[a] for a in m.attributes))
                for m in released
            )
            one_way = one_way_counts(marginals)
            bins = bins_of(plan, self._index, one_way)
            return LocalRelease(marginals, one_way, bins, self._fine(records, noise))

    def _fine(self, records: Records, noise: KeyedNoise) -> tuple[Integers, ...]:
        """Noisy fine marginals. Their codes are the records' last rows (:meth:`.Schema.encoding`)."""
        sigma = self._plan.local[self._index].fine_sigma
        rows = range(len(self._attributes), len(records.attributes)) if sigma else ()
        return tuple(
            noise.gaussian(counts, sigma)
            for counts in records.marginals([(row,) for row in rows], {})
        )

    def _message(self, records: Records, answers: Mapping[str, bytes]) -> Message:
        """The phases at a party: the record count, LocMRF and LocEnc."""
        plan, noise = self._plan, self._noise(records)
        steps = self._counting(records) if plan.sketch.exchanges else None
        count = self._count(records, steps, noise)
        local = self._local(records, noise) if steps is None else self._local_once(records)
        with self._clock("LocEnc"):
            tables = () if steps is None else self._tables(records, steps, answers)
            sketches = self._sketches(records, local, noise)
            agreement = self._agreement(records, local.one_way, noise)
        return Message(
            plan_digest=plan.digest(),
            party=self._index,
            private=noise.private,
            count=count,
            marginals=local.marginals,
            bins=local.bins,
            sketches=sketches,
            tables=tables,
            agreement=agreement,
            fine=local.fine,
        )

    def _count(self, records: Records, steps: Steps | None, noise: KeyedNoise) -> int | None:
        """The noisy record count, which the first party releases."""
        if self._index:
            return None
        if steps is not None:
            return steps.count
        return int(noise.gaussian(np.array([records.count], np.int64), self._plan.count_sigma)[0])

    def _tables(
        self, records: Records, steps: Steps, answers: Mapping[str, bytes]
    ) -> tuple[Integers, ...]:
        """The tables of encrypted counts (step 3)."""
        named = {self._plan.party_names.index(name): data for name, data in answers.items()}
        return steps.tables(named, functools.partial(self._noise, records, "counts"))

    def _agreement(
        self, records: Records, one_way: Mapping[int, Floats], noise: KeyedNoise
    ) -> tuple[Bytes, ...]:
        """Agreement sketches of the columns that this party shares with others."""
        plan, out = self._plan, []
        for attribute, sketch in plan.agreement_of(self._index).items():
            holder = plan.schema.holders[attribute].index(self._index)
            key = self._derived(f"agreement on {plan.schema.names[attribute]}")
            size, place = plan.schema.sizes[attribute], self._attributes.index(attribute)
            counter = records.encoded(
                functools.partial(CountSketchEncoder, sketch, (holder,), key),
                [Composite((place,), (np.arange(size),))],
                words=value_words(key, size),
            )
            (sums,) = counter.result(
                [np.array([one_way[attribute].sum()])], noise.stream(counter.digest)
            )
            out.append(sums)
        return tuple(out)

    @takes(TableError, table=TABLE, answers=maybe(MAPPING))
    def release(self, table: Table | Records, answers: Mapping[str, bytes] | None = None) -> bytes:
        """Make the sealed message and record the release on this machine.

        The same table and plan give the same bytes.

        Args:
            table: the party's records, encoded by its part of the schema; on one machine, or as
                :class:`Records`.
            answers: as for :meth:`run`.

        Returns:
            The sealed message.

        Raises:
            TableError: the table's attributes are not those of this party.
            PlanError: this party was made without its private key.
            PrivacyError: another table was released for this plan, or the record cannot be written.
        """
        key = self._private_key()
        return self.exchanged(
            table, MESSAGE, lambda: self.run(table, answers).seal(self._plan, key)
        )

    def exchanged(self, table: Table | Records, file: str, make: Callable[[], bytes]) -> bytes:
        """Record a file of encrypted counts for another party on this machine.

        Args:
            table: the party's records, as for :meth:`release`.
            file: name of the file.
            make: gives the sealed file; called only if it is not on record.

        Returns:
            The sealed file.

        Raises:
            TableError: the table's attributes are not those of this party.
            PlanError: this party was made without its private key.
            PrivacyError: the file was made from another table, or the record cannot be written.
        """
        releases, records = Releases.of(self._private_key()), self._checked(table)
        # Records that do not fit have a row under encryption, so that their ids count, too.
        people = self._steps(records).people if self._plan.sketch.exchanges else b""
        digest = hashlib.blake2b(
            self._digest(records) + people, key=self._derived("release record"), digest_size=32
        ).digest()
        return releases.once(Release(self._plan.digest(), self._index, digest, file), make)

    def _private_key(self) -> PrivateKey:
        if self._key is None:
            raise PlanError(
                f"A release needs the private key of {self._name!r}: pass it to Party as key."
            )
        return self._key

    @remembered
    def _checked(self, table: Table | Records) -> Records:
        """Records that do not contradict the schema, and of these at most the plan's number of each
        person.
        """
        records = InMemory(table) if isinstance(table, Table) else table
        schema, name = self._plan.schema, self._name
        mine, measured = schema.part(name), bool(self._plan.fine_of(self._index))
        # Without fine marginals, records need no finer cells.
        if records.attributes != schema.encoding(name) and (measured or records.attributes != mine):
            raise TableError(
                f"The table's columns do not match what the plan asks of {name}: {', '.join(a.name for a in mine)}"
                + (", with their finer cells." if measured else ".")
            )
        key = self._derived("records of a person")
        return records.possible(list(schema.combinations_at(name).values())).limited(
            self._plan.records_per_person, key
        )

    def _linked(self) -> list[Ints]:
        """Sets of this party's attributes that structural zeros name."""
        attributes = self._attributes
        combinations = self._plan.schema.combinations_at(self._name).values()
        sets = (
            tuple(attributes[place] for place, _ in combination) for combination in combinations
        )
        return list(dict.fromkeys(sets))

    def _sketches(
        self, records: Records, local: LocalRelease, noise: KeyedNoise
    ) -> tuple[Bytes, ...]:
        """LocEnc: the tables of this party's groups."""
        plan, groups = self._plan, self._plan.groups_of(self._index)
        if plan.sketch.exchanges or not groups:
            return ()
        return plan.sketch.encode(self._side(records, local, noise))

    def _side(self, records: Records, local: LocalRelease, noise: KeyedNoise) -> Side:
        """What the encoder of this party's groups is given."""
        plan, progress = self._plan, self._options.progress
        published = [plan.groups[g] for g in plan.groups_of(self._index)]
        composites = [
            Composite(tuple(self._attributes.index(a) for a in group.attributes), maps)
            for group, maps in zip(published, local.bins, strict=True)
        ]
        return Side(
            plan,
            self._index,
            self._derived("sketches"),
            self._derived,
            lambda make: records.encoded(make, composites, progress),
            functools.partial(records.with_blanks, composites),
            lambda: released_sizes(published, local.bins, local.one_way),
            noise,
            progress,
            self._counting_key,
        )

    def _derived(self, purpose: str) -> bytes:
        """Key material of the parties' secret, for one purpose under this plan."""
        return derive(self._secret, self._plan.digest(), purpose=purpose)

"""A party: one table and the plan in, one message out (VertiMRF, phases 1 and 2)."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ..clock import Clock
from ..errors import PlanError, TableError
from ..kernels.jit import threads
from ..keys import PrivateKey, called
from ..message import LocalMarginal, Message
from ..model.measurement import BinMap
from ..options import RunOptions
from ..plan.groups import Group, cut_groups, released_sizes
from ..plan.merging import merged_values, merging
from ..plan.plan import Plan
from ..plan.price import price_in_words
from ..privacy.noise import KeyedNoise, Noise, SystemNoise
from ..published.randomised_response import respond
from ..published.shared_keys import SharedKeyEncoder
from ..sketches.agreement import value_words
from ..sketches.count_sketch import CountSketchEncoder
from ..sketches.encoder import SketchEncoder
from ..sketches.parameters import (
    CountSketchPlan,
    CrossPartyRelease,
    ResponsePlan,
    SharedKeyPlan,
    SketchPlan,
)
from ..tables.arrow import Source
from ..tables.impossible import ruled_out
from ..tables.read_options import DEFAULT, ReadOptions
from ..tables.table import Table, encode_table
from .check import check_memory
from .local_model import release_local_model
from .records import Composite, InMemory, Records
from .releases import Release, Releases, table_digest
from .secret import Secret, derive, id_keys

__all__ = ["Party"]

BinMaps = tuple[npt.NDArray[np.int64], ...]


class Party:
    """One data holder. It sees its own table and the plan, and publishes one message per plan.

    Args:
        plan: the agreed plan.
        name: which party of the plan this is.
        secret: the parties' shared secret, unknown to the server.
        noise: fixed noise, for tests; what is made with it is marked not private.
        clock: told the wall time of LocMRF and LocEnc.
        options: threads and progress.
        key: this party's private key, which :meth:`release` needs. Noise is then a function of it, of the plan and of the table;
            without it, noise comes from the operating system.

    Raises:
        PlanError: the plan has no party of that name, or another key for it, or asks for tables that this machine's memory does
            not hold.
    """

    def __init__(
        self,
        plan: Plan,
        name: str,
        secret: Secret,
        noise: Noise | None = None,
        clock: Clock | None = None,
        options: RunOptions | None = None,
        *,
        key: PrivateKey | None = None,
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
        self._options = options if options is not None else RunOptions()
        self._fixed = noise
        self._key = key

    def encode(self, source: Source, id: str, read: ReadOptions = DEFAULT) -> Table:
        """This party's records out of a file or data frame, for :meth:`release`.

        Records that do not fit the plan are left out one by one (:func:`vertimrf.tables.table.encode_table` has the rule and a
        proof), so that whether a message goes out tells nothing of any of them. The table's ``dropped`` says how many they are,
        and why: for this party's eyes, and for nobody else's.

        Args:
            source: a CSV, Parquet or Arrow file, a pandas or polars frame, an Arrow table, a DuckDB relation, or another object
                with ``__arrow_c_stream__``.
            id: the column of record ids.
            read: how the table is read.

        Raises:
            TableError: no table, no id column, ids of a type that cannot be any.
            SchemaError: columns that the plan does not describe, or of a type that its values cannot have.
        """
        mine, ruled = self._plan.schema.part(self._name), ruled_out(self._plan.schema, self._name)
        keys = id_keys(self._secret, self._plan.digest())
        return encode_table(source, id, mine, read, keys=keys, impossible=ruled)

    def run(self, table: Table | Records) -> Message:
        """LocMRF and LocEnc: measure the local marginals, encode the sketches.

        Everything read from the table is an event of the plan's ledger. No two messages for one plan may leave: with the same
        hashes and other phantoms they would show which levels come from records, those that both share. So what leaves goes
        through :meth:`release`.

        Args:
            table: the party's records, encoded against its part of the schema; on one machine, or as :class:`Records`.

        Raises:
            TableError: the table's attributes are not those of this party.
        """
        records = self._checked(table)
        return self._run(records, self._noise(self._digest(records)))

    def _digest(self, records: Records) -> bytes:
        """Of the whole table that takes part, under the private key; empty where there is none."""
        if self._key is None:
            return b""
        with threads(self._options.num_threads):
            return table_digest(records, self._key, self._plan.digest())

    def _noise(self, table: bytes) -> Noise:
        """The noise of the message. Another table gives independent noise everywhere, also where it has the same counts."""
        if self._fixed is not None:
            return self._fixed
        if self._key is None:
            return SystemNoise()
        return KeyedNoise(
            self._key.derive(self._plan.digest(), f"noise of the message, {table.hex()}")
        )

    def _run(self, records: Records, noise: Noise) -> Message:
        with threads(self._options.num_threads):
            return self._message(records, noise)

    def _message(self, records: Records, noise: Noise) -> Message:
        plan = self._plan
        count = None
        if self._index == 0:
            exact = np.array([records.count], np.int64)
            count = int(noise.gaussian(exact, plan.count_sigma)[0])
        with self._clock("LocMRF"):
            held = [self._attributes.index(a) for a in self._varying]
            sizes = [plan.schema.sizes[a] for a in self._varying]

            def counted(
                wanted: Sequence[tuple[int, ...]], merged: Mapping[int, BinMap]
            ) -> Iterator[npt.NDArray[np.int64]]:
                own = [tuple(held[place] for place in own) for own in wanted]
                return records.marginals(own, {held[place]: bins for place, bins in merged.items()})

            long = {
                self._varying.index(a): ordered
                for a, ordered in merging(plan.schema, self._name).items()
            }
            released = release_local_model(
                counted,
                sizes,
                plan.local[self._index],
                noise,
                self._options.progress,
                plan.workload.part(self._varying),
                [[self._varying.index(a) for a in own] for own in self._linked()],
                long,
            )
            one_way = self._one_way(released)
            bins = self._bins(one_way)
        sketches: tuple[npt.NDArray[np.uint8], ...] = ()
        groups = plan.groups_of(self._index)
        if plan.sketch is not None and groups:
            with self._clock("LocEnc"):
                key = derive(self._secret, plan.digest(), purpose="sketches")
                published = [plan.groups[g] for g in groups]
                composites = self._composites(published, bins)
                if isinstance(plan.sketch, CountSketchPlan):
                    counter = records.encoded(
                        functools.partial(CountSketchEncoder, plan.sketch, groups, key),
                        composites,
                        self._options.progress,
                    )
                    sketches = counter.result(
                        released_sizes(published, bins, one_way), noise.stream(counter.digest())
                    )
                else:
                    sketches = self._encode(records, groups, composites, plan.sketch, key, noise)
        return Message(
            plan_digest=plan.digest(),
            party=self._index,
            private=noise.private,
            count=count,
            marginals=tuple(
                replace(m, attributes=tuple(self._varying[a] for a in m.attributes))
                for m in released
            ),
            bins=bins,
            sketches=sketches,
            agreement=self._agreement(records, one_way, noise),
        )

    def _agreement(
        self, records: Records, one_way: Mapping[int, npt.NDArray[np.float64]], noise: Noise
    ) -> tuple[npt.NDArray[np.uint8], ...]:
        """Sketches of whether this party agrees with others on what they hold too."""
        plan, out = self._plan, []
        with self._clock("LocEnc"):
            for attribute, sketch in plan.agreement_of(self._index).items():
                holder = plan.schema.holders[attribute].index(self._index)
                key = derive(
                    self._secret,
                    plan.digest(),
                    purpose=f"agreement on {plan.schema.names[attribute]}",
                )
                size, place = plan.schema.sizes[attribute], self._attributes.index(attribute)
                counter = records.encoded(
                    functools.partial(CountSketchEncoder, sketch, (holder,), key),
                    [Composite((place,), (np.arange(size),))],
                    words=value_words(key, size),
                )
                (sums,) = counter.result(
                    [np.array([one_way[attribute].sum()])], noise.stream(counter.digest())
                )
                out.append(sums)
        return tuple(out)

    def release(self, table: Table | Records) -> bytes:
        """The sealed message: the same bytes whenever the same table is released for the same plan, on record on this machine.

        Args:
            table: the party's records, encoded against its part of the schema; on one machine, or as :class:`Records`.

        Raises:
            TableError: the table's attributes are not those of this party.
            PlanError: this party was made without its private key.
            PrivacyError: the plan was released for from another table, or no record can be kept of it.
        """
        key, records = self._own_key(), self._checked(table)
        digest = self._digest(records)
        return Releases.of(key).once(
            self._release(digest),
            lambda: self._run(records, self._noise(digest)).seal(self._plan, key),
            lambda: price_in_words(self._plan, self._index),
        )

    def _own_key(self) -> PrivateKey:
        if self._key is None:
            raise PlanError(
                f"A release needs the private key of {self._name!r}: pass it to Party as key."
            )
        return self._key

    def _release(self, table: bytes) -> Release:
        plan = self._plan.digest()
        under = hashlib.blake2b(
            table, key=derive(self._secret, plan, purpose="release record"), digest_size=32
        ).digest()
        return Release(plan, self._index, under)

    def _checked(self, table: Table | Records) -> Records:
        """The records that take part: those that are possible, and of them at most as many of a person as the plan has."""
        records = InMemory(table) if isinstance(table, Table) else table
        schema, name = self._plan.schema, self._plan.party_names[self._index]
        mine = schema.part(name)
        if records.attributes != mine:
            raise TableError(
                f"The table's columns do not match what the plan asks of {name}: {', '.join(a.name for a in mine)}."
            )
        key = derive(self._secret, self._plan.digest(), purpose="records of a person")
        return records.possible(list(ruled_out(schema, name).values())).limited(
            self._plan.records_per_person, key
        )

    def _linked(self) -> list[tuple[int, ...]]:
        """Attributes of this party that the schema's impossible combinations link."""
        held = self._attributes
        combinations = self._plan.schema.combinations_at(
            self._plan.party_names[self._index]
        ).values()
        return [tuple(held[place] for place, _ in combination) for combination in combinations]

    def _one_way(self, released: Sequence[LocalMarginal]) -> dict[int, npt.NDArray[np.float64]]:
        """Released counts of each attribute's values."""
        return {
            self._varying[m.attributes[0]]: m.counts.astype(np.float64)
            for m in released
            if len(m.attributes) == 1
        }

    def _bins(self, one_way: Mapping[int, npt.NDArray[np.float64]]) -> tuple[BinMaps, ...]:
        """Bin maps of this party's groups, from what LocMRF has already released."""
        plan = self._plan
        long = merging(plan.schema, self._name)
        merged = merged_values(one_way, plan.local[self._index].one_way_sigma, long)
        return cut_groups(
            plan.schema,
            [plan.groups[g] for g in plan.groups_of(self._index)],
            one_way,
            merged,
        )

    def _composites(self, groups: Sequence[Group], bins: Sequence[BinMaps]) -> list[Composite]:
        """The values of groups, by places of this party's attributes."""
        return [
            Composite(tuple(self._attributes.index(a) for a in group.attributes), maps)
            for group, maps in zip(groups, bins, strict=True)
        ]

    def _encode(
        self,
        records: Records,
        groups: tuple[int, ...],
        composites: Sequence[Composite],
        sketch: CrossPartyRelease,
        key: bytes,
        noise: Noise,
    ) -> tuple[npt.NDArray[np.uint8], ...]:
        make: Callable[[], SketchEncoder | SharedKeyEncoder]
        match sketch:
            case ResponsePlan():
                digests, codes = records.gathered(composites)
                # In the order of digests: the same responses, whatever the order of the rows.
                order = np.argsort(digests, kind="stable")
                digests, codes = digests[order], np.ascontiguousarray(codes[:, order])
                exact = hashlib.blake2b(
                    digests.tobytes() + codes.tobytes(), digest_size=32
                ).digest()
                return respond(sketch, groups, digests, codes, key, noise.stream(exact))
            case SharedKeyPlan():
                make = functools.partial(SharedKeyEncoder, sketch, groups, key)
            case SketchPlan():
                if not sketch.shapes(groups):
                    return ()
                make = functools.partial(SketchEncoder, sketch, groups, key)
            case _:
                raise PlanError(
                    f"This version cannot encode {sketch.encoder!r}; use the one that made the plan."
                )
        encoder = records.encoded(make, composites, self._options.progress)
        return encoder.result(noise.stream(encoder.digest()))

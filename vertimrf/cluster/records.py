"""Records in the memory of Dask's workers, partition by partition.

The workers merge exact answers of partitions. The party's process receives the merged answer, and
it alone draws noise. For a given noise the message is byte for byte the message of one machine,
whatever the partitions are and whichever workers are lost.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import logging
import math
import operator
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ..arrays import Int32s, Integers, Ints, Pair, Words
from ..columns.column import Attribute
from ..errors import PlanError, TableError
from ..kernels.multiset import MODULUS
from ..model.domain_compression import compressed_sizes
from ..party.persons import check_named
from ..party.records import Composite
from ..plan.impossible import Combination
from ..plan.plan import Plan
from ..plan.schema import Schema
from ..progress import SILENT, Progress
from ..releases.encoder import Encoder
from ..tables.arrow import one_line
from ..tables.columns import Columns, Encoded
from ..tables.dropped import EXAMPLES, NONE, Dropped, Tally
from ..tables.ids import IdKeys
from ..tables.impossible import ruled_out
from ..tables.parts import parts_of
from ..tables.read_options import DEFAULT, ReadOptions
from ..tables.sources import name_of
from . import work
from .work import Quiet

E = TypeVar("E", bound=Encoder)
Client = Any  # distributed.Client
Future = Any  # distributed.Future: a result in a worker's memory
# Largest number of ids that a worker sorts at a time to find repeated ones: 64 MB.
RANGE_RECORDS = 1 << 23
# Largest number of cells of marginals that one pass over the partitions counts: 32 MB for each task
# that is running.
PASS_CELLS = 1 << 22
# Largest number of results that are merged at a time.
ARITY = 8
# Longest wait for a scheduler, and for its first worker, seconds.
PATIENCE = 30


@dataclass(frozen=True, eq=False)
class ClusterRecords:
    """A party's records on a cluster; a :class:`vertimrf.party.records.Records`.

    Attributes:
        client: client of the cluster.
        parts: the encoded partitions, on the workers.
        attributes: domains of the records' codes.
        counts: number of records of each partition.
        owned: whether the records name their persons.
        limit: the limit and key by which records of persons were left out already. None if none
            were.
        dropped: records of the table that do not fit. Exact, so only its holder may see them.
    """

    client: Client
    parts: tuple[Future, ...]
    attributes: tuple[Attribute, ...]
    counts: Ints
    owned: bool = False
    limit: tuple[int, bytes] | None = None
    dropped: Dropped = NONE

    @property
    def count(self) -> int:
        """See :class:`vertimrf.party.records.Records`."""
        return sum(self.counts)

    def limited(self, most: int, key: bytes) -> ClusterRecords:
        """See :class:`vertimrf.party.records.Records`.

        Workers share persons by ranges of their digests.
        """
        check_named(self.owned, most)
        if not self.owned or self.limit == (most, key):
            return self
        task = functools.partial(work.left_out, most, key)
        pieces = self._by_range(persons=True)
        kept = self._without([self._submit("persons", task, piece) for piece in pieces])
        return replace(kept, limit=(most, key))

    def beyond(self, most: int) -> Pair:
        """See :func:`vertimrf.party.persons.beyond`."""
        task = functools.partial(work.above, most)
        ranges = [self._submit("beyond", task, piece) for piece in self._by_range(persons=True)]
        records, persons = zip(*self._gather(ranges), strict=True)
        return sum(records), sum(persons)

    def possible(self, combinations: Sequence[Combination]) -> ClusterRecords:
        """See :class:`vertimrf.party.records.Records`."""
        if not combinations:
            return self
        return self._with(self._each("possible", work.possible, combinations))

    def one_per_id(
        self,
        columns: Columns,
        before: Sequence[Tally],
        examples: Callable[[int, Integers, Sequence[int]], list[str]],
    ) -> ClusterRecords:
        """Keep every record once in all partitions (:func:`vertimrf.tables.table.one_per_id`).

        Args:
            columns: the columns that were read.
            before: by partition, the records that were left out because they repeat an id of their
                piece.
            examples: gives ids of a partition by its number, positions of records that fit, and
                rows of the partition.

        Returns:
            The remaining records.
        """
        repeats = self._gather(
            [self._submit("repeats", work.twice, piece) for piece in self._by_range(persons=False)]
        )
        twice = np.concatenate(repeats)
        earlier = sum(tally.count for tally in before)
        if not len(twice) and not earlier:
            return self
        left = self._submit("further", work.further, self._each("repeated", work.those_of, twice))
        by_part = self._answer(left)
        kept = self._without([left])
        shown: list[str] = []
        for number, (rows, tally) in enumerate(zip(by_part, before, strict=True)):
            if len(shown) < EXAMPLES and (len(rows) or tally.count):
                shown += examples(number, rows[:EXAMPLES], tally.rows)
        count = sum(map(len, by_part))
        reason = columns.repeated(count + earlier, self.count + earlier, shown[:EXAMPLES])
        return replace(kept, dropped=self.dropped.also(count, reason))

    def _with(self, parts: Sequence[Future]) -> ClusterRecords:
        """The same records with other partitions; they are counted again."""
        changed = replace(self, parts=tuple(parts))
        accounts = changed._gather(changed._each("count", work.account))
        return replace(changed, counts=tuple(count for count, _ in accounts))

    def _without(self, dropped: Sequence[Future]) -> ClusterRecords:
        """The records without some rows; each of ``dropped`` has rows of every partition."""
        return self._with(
            [
                self._submit("kept", functools.partial(work.keep, number), part, dropped)
                for number, part in enumerate(self.parts)
            ]
        )

    def marginals(
        self, wanted: Sequence[Ints], merged: Mapping[int, Integers]
    ) -> Iterator[Integers]:
        """See :class:`vertimrf.party.records.Records`.

        Each pass counts as many as keeps the tables small.
        """
        sizes = [attribute.size for attribute in self.attributes]
        counted_sizes = compressed_sizes(sizes, merged)
        ends = itertools.accumulate(
            math.prod(counted_sizes[place] for place in places) for places in wanted
        )
        for _, some in itertools.groupby(
            zip(wanted, ends, strict=True), lambda entry: entry[1] // PASS_CELLS
        ):
            asked = [places for places, _ in some]
            counted = self._each("marginals", work.count, sizes, asked, merged)
            yield from self._answer(self._tree("marginals", counted, _added))

    def encoded(
        self,
        make: Callable[[], E],
        composites: Sequence[Composite],
        progress: Progress = SILENT,
        words: Words | None = None,
    ) -> E:
        """See :class:`vertimrf.party.records.Records`.

        Each worker goes through its partitions in turn.
        """
        taking = functools.partial(work.fold, make, composites, words)
        encoders = []
        for chain in self._chains():
            encoder = None
            for part in chain:
                encoder = self._submit("sketches", taking, encoder, part)
            encoders.append(encoder)
        merged = self._tree("sketches", encoders, functools.partial(work.merge, make))
        out = make()
        out.merge_state(
            self._answer(self._submit("sketches", operator.methodcaller("state"), merged))
        )
        progress.advance(1, 1)
        return out

    def with_blanks(self, composites: Sequence[Composite]) -> tuple[Words, Int32s]:
        """See :class:`vertimrf.party.records.Records`."""
        raise PlanError(
            "Encrypted counts and randomised responses (grr) need all records in one place: plan with another encoder for a cluster."
        )

    def keyed_sum(self, key: bytes) -> int:
        """See :class:`vertimrf.party.records.Records`."""
        return int(sum(self._gather(self._each("digest", work.hashed, key))) % MODULUS)

    def _by_range(self, persons: bool) -> list[list[Future]]:
        """For each range of digests, the records of every partition in that range."""
        bits = max(-(-self.count // RANGE_RECORDS) - 1, 0).bit_length()
        return [
            self._each("range", work.in_range, bits, number, persons) for number in range(1 << bits)
        ]

    def _chains(self) -> list[list[Future]]:
        """Lists of partitions of one worker each. Every worker has as many lists as threads."""
        by_worker: dict[str, list[Future]] = {}
        with answering():
            workers = self.client.who_has(list(self.parts))
            threads = self.client.nthreads()
        for part in self.parts:
            by_worker.setdefault(next(iter(workers.get(part.key, ())), ""), []).append(part)
        lots = {
            worker: min(threads.get(worker, 1), len(parts)) for worker, parts in by_worker.items()
        }
        return [
            parts[i :: lots[worker]]
            for worker, parts in by_worker.items()
            for i in range(lots[worker])
        ]

    def _submit(self, what: str, task: Callable[..., Any], *given: Any) -> Future:
        return submit(self.client, what, task, *given)

    def _each(self, what: str, task: Callable[..., Any], *given: Any) -> list[Future]:
        """Run a task on every partition, after the given arguments."""
        return [self._submit(what, functools.partial(task, *given), part) for part in self.parts]

    def _gather(self, futures: Sequence[Future]) -> list[Any]:
        return gathered(self.client, futures)

    def _answer(self, future: Future) -> Any:
        return gathered(self.client, [future])[0]

    def _tree(
        self, what: str, futures: Sequence[Future], merge: Callable[[Sequence[Any]], Any]
    ) -> Future:
        """Merge many results into one, a few at a time."""
        futures = list(futures)
        while len(futures) > 1:
            futures = [
                self._submit(what, merge, futures[i : i + ARITY])
                for i in range(0, len(futures), ARITY)
            ]
        return futures[0]


def encode_partitions(
    source: Any,
    client: Client,
    id: str,
    schema: Schema,
    party: str,
    read: ReadOptions = DEFAULT,
    *,
    keys: IdKeys,
) -> ClusterRecords:
    """Encode a party's table on the workers. Codes and digests stay in the workers' memory.

    Records that do not fit are left out, as by :func:`vertimrf.tables.columns.encode_table`.

    Args:
        source: a folder of files that all workers can read, each of them a partition; a Dask data
            frame; or delayed objects, each of which gives a partition in a form that
            :func:`vertimrf.tables.sources.read_arrow` reads. A partition and its codes must fit into
            a worker's memory several times. A million records are a good size.
        client: client of the party's cluster.
        id: the column of record ids.
        schema: the plan's.
        party: the party's name. Its columns that equations give may be absent.
        read, keys: as for :func:`vertimrf.tables.columns.encode_table`.

    Raises:
        TableError: there is no table, no id column or no such format; or the cluster failed. Later
            questions to the records raise this too if the cluster fails.
        SchemaError: the table lacks a column of the schema.
    """
    sources = partitions(source)
    where = name_of(source)
    columns = Columns(id, schema.encoding(party), where, keys, read, ruled_out(schema, party))
    encode = functools.partial(work.encode, columns, schema)
    parts = tuple(submit(client, "encode", encode, partition) for partition in sources)
    accounts = gathered(client, [submit(client, "account", work.account, part) for part in parts])
    encoded = functools.reduce(Encoded.then, (account for _, account in accounts))
    encoded.name_extra(where)
    out = ClusterRecords(
        client,
        parts,
        columns.attributes,
        tuple(count for count, _ in accounts),
        read.person is not None,
        dropped=Dropped(encoded.dropped, encoded.reasons(columns)),
    )

    def examples(number: int, fitting: Integers, others: Sequence[int]) -> list[str]:
        place = functools.partial(work.original, fitting)
        rows = [*others, *out._answer(out._submit("row", place, parts[number])).tolist()]
        cells = functools.partial(work.cells, id, sorted(rows)[:EXAMPLES], read)
        texts: list[str] = out._answer(out._submit("example", cells, sources[number]))
        return texts

    return out.one_per_id(columns, [account.repeats for _, account in accounts], examples)


def partitions(source: Any) -> list[Any]:
    """The sources of the partitions: paths of files, or delayed objects.

    Raises:
        TableError: the source has no partitions, or cannot have any.
    """
    if isinstance(source, str | os.PathLike):
        parts = parts_of(Path(source))
        if parts is None:
            raise TableError(
                f"There is no folder {source}; name a folder of files, each of them a partition of the table."
            )
        return [*parts]
    delayed = source.to_delayed() if hasattr(source, "to_delayed") else source
    if not isinstance(delayed, list | tuple | np.ndarray) or not all(
        hasattr(one, "__dask_graph__") for one in delayed
    ):
        raise TableError(
            f"A {type(source).__name__} is no table of partitions; pass a folder, a Dask data frame or delayed objects."
        )
    if not len(delayed):
        raise TableError("The table has no partitions.")
    return list(delayed)


def submit(client: Client, what: str, task: Callable[..., Any], *given: Any) -> Future:
    """Run a task on a worker. Its arguments may be results on workers.

    The task's name is random. Dask would otherwise derive it from all arguments, which include
    keys.
    """
    name = f"vertimrf-{what}-{secrets.token_hex(8)}"
    if any(hasattr(argument, "__dask_graph__") for argument in given):
        from dask.delayed import delayed

        return client.compute(
            delayed(work.run, pure=False)(Quiet(task), *given, dask_key_name=name)
        )
    return client.submit(work.run, Quiet(task), *given, key=name, pure=False)


def gathered(client: Client, futures: Sequence[Future]) -> list[Any]:
    """Wait for results of workers, and return them.

    Errors of the tasks themselves are raised unchanged.

    Raises:
        TableError: the cluster failed.
    """
    with answering():
        return list(client.gather(list(futures)))


@contextlib.contextmanager
def answering() -> Iterator[None]:
    """Turn the errors of a cluster that fails into a TableError."""
    from distributed import CancelledError, KilledWorker
    from distributed.client import ClosedClientError
    from distributed.comm import CommClosedError

    try:
        yield
    except (CancelledError, KilledWorker, CommClosedError, ClosedClientError) as error:
        why, remedy = "the connection was lost", "see its logs, and try again"
        if isinstance(error, KilledWorker):
            why = "workers died of one task"
            remedy = "give workers more memory, or cut the table into smaller partitions"
        raise TableError(
            f"The cluster has no answer ({why}), so nothing is released: {remedy}."
        ) from error


@contextlib.contextmanager
def connected(address: str) -> Iterator[Client]:
    """A client of a party's cluster, all of whose workers run this version.

    Args:
        address: address of the scheduler. Dask's own configuration has the certificates of `tls://`.

    Raises:
        TableError: Dask is not installed, no scheduler or worker answers, or workers run something
            else.
    """
    try:
        from distributed import Client
    except ImportError:
        raise TableError(
            f"To use the cluster {address}, pip install 'vertimrf[dask]', or leave the cluster (--dask) out."
        ) from None
    # It would print a cluster's failure besides the error that is raised.
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
    with contextlib.ExitStack() as stack:
        try:
            client = stack.enter_context(Client(address, timeout=PATIENCE, set_as_default=False))
            client.wait_for_workers(1, timeout=PATIENCE)
            found = {*client.run(work.version).values()}
        except Exception as error:  # of the network, of TLS, or of another Python on the workers
            raise TableError(
                f"The cluster {address} cannot be used ({one_line(error)}), so nothing is released: start its scheduler and workers, "
                "with this version of vertimrf on each, or correct its address (dask in run.toml)."
            ) from None
        if other := found - {work.version()}:
            raise TableError(
                f"Workers of {address} have vertimrf {min(other)} and this machine {work.version()}: install one version everywhere."
            )
        yield client


def check_plan(plan: Plan) -> None:
    """Check that a party can make the message of a plan on a cluster.

    Raises:
        PlanError: the encoder needs all records in one place.
    """
    if plan.sketch.exchanges or plan.sketch.publishes_rows:
        raise PlanError(
            f"The plan's encoder, {plan.encoder}, needs all records in one place, and so no cluster: leave out dask in run.toml, or "
            "have it planned with another encoder."
        )


def _added(tables: Sequence[Sequence[Integers]]) -> list[Integers]:
    """Sums of counts, table by table."""
    return [functools.reduce(np.add, counts) for counts in zip(*tables, strict=True)]

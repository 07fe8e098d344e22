"""A party's table in its run: how it is read, by this process or by the party's own cluster."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..arrays import Pair
from ..plan.plan import Plan
from ..tables.read_options import ReadOptions

if TYPE_CHECKING:
    from ..cluster import ClusterRecords
    from ..party.party import Party
    from ..tables.table import Table


@dataclass(frozen=True, kw_only=True)
class PartySettings(ReadOptions):
    """Settings of a party's run: how its table is read, and the following.

    Attributes:
        name: the party's name in the schema.
        table: path of its table: a file, or a folder of files.
        id: column of record ids.
        exchange: folder or URI through which files are exchanged (:mod:`vertimrf.runs.exchange`).
            None: no exchange.
        dask: address of the scheduler of the party's own Dask cluster, which reads the table
            (:mod:`vertimrf.cluster`). None: this process reads it.
    """

    name: str
    table: str
    id: str
    exchange: str | None = None
    dask: str | None = None


def encoded(
    settings: PartySettings, plan: Plan, role: Party, connections: ExitStack
) -> tuple[Table | ClusterRecords, Pair]:
    """Encode a party's records.

    Args:
        settings: settings of the party's run.
        plan: the accepted plan.
        role: the party.
        connections: receives the connection to a cluster, which lasts as long.

    Returns:
        The records, and how many of them, of how many persons, are above the plan's records of a
        person.
    """
    from ..party.persons import beyond, check_named

    most = plan.records_per_person
    if settings.dask is not None:
        from ..cluster import check_plan, connected, encode_partitions

        check_plan(plan)
        check_named(settings.person is not None, most)
        client = connections.enter_context(connected(settings.dask))
        given = (settings.table, client, settings.id, plan.schema, settings.name, settings)
        spread = encode_partitions(*given, keys=role.id_keys)
        return spread, spread.beyond(most) if spread.owned else (0, 0)
    records = role.encode(settings.table, settings.id, settings)
    return records, (0, 0) if records.persons is None else beyond(records.persons, most)

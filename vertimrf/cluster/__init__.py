"""A party whose records are on its own cluster.

Dask workers hold and count the records. One process makes the message.
"""

from .records import ClusterRecords, check_plan, connected, encode_partitions

__all__ = ["ClusterRecords", "check_plan", "connected", "encode_partitions"]

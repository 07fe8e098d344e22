"""A party whose records lie on a cluster of its own: Dask's workers hold and count them, one process makes what leaves."""

from .records import ClusterRecords, encode_partitions

__all__ = ["ClusterRecords", "encode_partitions"]

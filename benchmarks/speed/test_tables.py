"""A table of many files beside the same rows in one, and beside one file of a tenth of them."""

import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vertimrf.tables.sources import open_pieces


@pytest.mark.bars
def test_a_table_of_many_files(speed, hold, million, tmp_path):
    """By processor time; memory is what Arrow had at most."""
    rng, records, parts = np.random.default_rng(0), 10 * million, tmp_path / "parts"
    columns = {f"c{i}": rng.integers(0, size, records) for i, size in enumerate((2, 5, 20, 90) * 2)}
    table = pa.table({"id": rng.permutation(records), **columns})
    tenth, one = tmp_path / "tenth.parquet", tmp_path / "one.parquet"
    pq.write_table(table[:million], tenth)
    pq.write_table(table, one, row_group_size=records // 100)
    parts.mkdir()
    for i in range(100):
        pq.write_table(table[i * records // 100 : (i + 1) * records // 100], parts / f"{i}.parquet")

    def read(path):
        begin = time.process_time()
        assert sum(piece.num_rows for piece in open_pieces(path).read()) in (records, million)
        return time.process_time() - begin

    def peak(path):
        pool = pa.system_memory_pool()
        before = pa.default_memory_pool()
        counted = pa.proxy_memory_pool(pool)
        pa.set_memory_pool(counted)
        read(path)
        pa.set_memory_pool(before)
        return counted.max_memory()

    least = peak(tenth)
    hold("ten times the rows in 100 files, times the memory", peak(parts) / least)
    speed(lambda: read(parts), rounds=1, rows=records)
    turns = [(read(parts), read(one)) for _ in range(5)]
    many, single = (sorted(each)[2] for each in zip(*turns, strict=True))
    hold("100 files, times one of the same rows, by processor time", many / single)

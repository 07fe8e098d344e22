"""SDV's metadata: what those of SDV 2 say of a column is its domain, and a schema is written so."""

import pytest

from vertimrf import Attribute, OpenSchema, Schema
from vertimrf.columns.read import read_attribute
from vertimrf.errors import SchemaError
from vertimrf.plan.sdv import metadata_of, sections_of


def metadata(**columns):
    return {
        "METADATA_SPEC_VERSION": "V2",
        "tables": {"guests": {"columns": columns}},
        "relationships": [],
    }


def read(**said):
    """The section that the metadata of one column stands for."""
    ((section,),) = (party["attribute"] for party in sections_of(metadata(x=said))["party"])
    assert section.pop("name") == "x"
    return section


@pytest.mark.parametrize(
    "said, section",
    [
        ({"sdtype": "ordinal"}, {"bins": "private", "integral": True}),
        ({"sdtype": "ordinal", "range_values": ["s", "m", "l"]}, {"values": ["s", "m", "l"], "ordered": True}),
        ({"sdtype": "categorical", "range_values": ["b", "a"]}, {"values": ["b", "a"]}),
        ({"sdtype": "numerical"}, {"bins": "private", "integral": False}),
        ({"sdtype": "numerical", "decimal_places": 0}, {"bins": "private", "integral": True}),
        ({"sdtype": "numerical", "decimal_places": 2}, {"bins": "private", "resolution": 0.01}),
        (
            {"sdtype": "numerical", "range_min": 0, "range_max": 9.5},
            {"bins": "private", "integral": False, "bounds": [0, 9.5]},
        ),
        # One bound is no range.
        ({"sdtype": "numerical", "range_min": 0}, {"bins": "private", "integral": False}),
        (
            {
                "sdtype": "datetime",
                "datetime_format": "%d/%m/%Y %H:%M",
                "range_min": "01/02/2019 00:00",
                "range_max": "24/12/2020 07:30",
            },
            {
                "bins": "private",
                "calendar": "timestamp",
                "format": "%d/%m/%Y %H:%M",
                "bounds": ["2019-02-01 00:00:00", "2020-12-24 07:30:00"],
            },
        ),
    ],
)  # fmt: skip
def test_metadata_of_sdv_2_say_what_is_known_of_a_column(said, section):
    assert read(**said) == {"missing": True, **section}
    assert read(**said, range_is_nullable=False) == {"missing": False, **section}
    # A schema has such a column.
    OpenSchema.from_json(metadata(x=said))


def test_a_range_in_another_format_is_named():
    said = {"sdtype": "datetime", "datetime_format": "%d/%m/%Y"}
    with pytest.raises(SchemaError, match="'x' that is not in its format '%d/%m/%Y'"):
        read(**said, range_min="1 Jan 2019", range_max="31/12/2020")


def test_a_schema_is_written_for_sdv_2_and_read_back():
    sizes = Attribute.categorical("size", ["s", "m", "l"], ordered=True)
    columns = [
        sizes,
        Attribute.categorical("stars", [1, 2, 3], ordered=True),
        Attribute.categorical("room", ["a", "b"]),
        Attribute.categorical("smoker", [False, True]),
        read_attribute({"name": "price", "edges": [0, 5, 9], "resolution": 0.01}),
        read_attribute({"name": "nights", "edges": [0, 5, 9], "integral": True, "type": "uint8"}),
        read_attribute({"name": "weight", "edges": [0, 5, 9]}),
    ]
    written = metadata_of(columns)
    assert written == {
        "METADATA_SPEC_VERSION": "V2",
        "tables": {
            "table": {
                "columns": {
                    "size": {"sdtype": "ordinal", "range_values": ["s", "m", "l"]},
                    "stars": {"sdtype": "ordinal"},
                    "room": {"sdtype": "categorical"},
                    "smoker": {"sdtype": "boolean"},
                    "price": {"sdtype": "numerical", "decimal_places": 2},
                    "nights": {"sdtype": "numerical", "decimal_places": 0},
                    "weight": {"sdtype": "numerical"},
                }
            }
        },
        "relationships": [],
    }
    again = OpenSchema.from_json(written)
    assert again.schema.attributes[0].values == sizes.values
    assert again.schema.attributes[0].ordered
    assert list(again.wanted) == ["stars", "room", "price", "nights", "weight"]


def test_the_order_of_texts_in_a_draft_is_not_written_as_public():
    drafted = read_attribute({"name": "x", "values": ["s", "m"], "ordered": True, "source": "data"})
    assert not Schema.of({"a": [drafted]}, public=False).public
    assert metadata_of([drafted])["tables"]["table"]["columns"]["x"] == {"sdtype": "categorical"}

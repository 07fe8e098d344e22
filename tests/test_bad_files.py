"""What damaged and hostile files once did to whoever read them; each found by `tests/tools/fuzz.py`."""

import copy
import functools
import json
import os
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from builders import dealt, named_model, schema_of
from planning import edited, plan_with
from roles import messages_of

from vertimrf import (
    Attribute,
    Message,
    Model,
    OpenSchema,
    Party,
    Plan,
    Schema,
    Secret,
    VertiMRFError,
)
from vertimrf.errors import (
    MessageError,
    ModelError,
    PlanError,
    PrivacyError,
    SchemaError,
    TableError,
)
from vertimrf.files import container
from vertimrf.files.atomic import read_json
from vertimrf.files.canonical import MAX_DEPTH, json_of
from vertimrf.message import bins_of
from vertimrf.model.junction_tree import checked_tree, junction_tree
from vertimrf.model.local_marginal import one_way_counts
from vertimrf.model.markov_random_field import Factor, MarkovRandomField
from vertimrf.party.check import check_memory
from vertimrf.party.releases import Release, Releases
from vertimrf.plan.impossible import contradiction, never
from vertimrf.plan.schema import MAX_ATTRIBUTES
from vertimrf.privacy import accountant
from vertimrf.privacy.accountant import cumulative, epsilon
from vertimrf.privacy.events import CountSketchEvent, GaussianEvent, GRREvent, SketchEvent
from vertimrf.privacy.label import PrivacyLabel
from vertimrf.tables.ids import shown
from vertimrf.tables.sources import read_arrow


@pytest.fixture(scope="module")
def plan():
    return plan_with(schema_of(a=(3, 2), b=(4,)), expected_records=200, nonce="bad", keys=64)


@pytest.fixture(scope="module")
def messages(plan):
    rng = np.random.default_rng(0)
    tables = dealt(
        plan.schema, np.array([rng.integers(0, size, 200) for size in plan.schema.sizes])
    )
    return messages_of(plan, tables, fixed=True)


def attribute(**parts):
    """A schema's content with one attribute."""
    return {"party": [{"name": "a", "attribute": [{"name": "x", **parts}]}]}


# Sentences and JSON.


def test_a_sentence_is_one_line_that_a_terminal_shows_however_long_what_it_quotes():
    for quoted in ("x" * 10**6, "two\nlines", "\x1b[31mred", "\ud800", "a\0b"):
        text = str(SchemaError(f"Attribute {quoted} is wrong; mend it."))
        assert text.isprintable()
        assert len(text) < 1100
        assert text.startswith("Attribute ")
        assert text.endswith("mend it.")
    assert str(VertiMRFError("Plain: é, – and 名.")) == "Plain: é, – and 名."


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000 + "]" * 100_000,
        '{"a":' * 500 + "1" + "}" * 500,
        '"\\ud800"',
        '{"\\uDFFF": 1}',
        "9" * 5000,
    ],
)
def test_json_that_nests_without_end_or_holds_half_a_character_is_none(tmp_path, text):
    with pytest.raises(ValueError):
        json_of(text)
    (tmp_path / "plan.json").write_text(text)
    with pytest.raises(PlanError, match="not valid JSON"):
        read_json(tmp_path / "plan.json", "plan", PlanError)


def test_json_that_is_sound_is_read():
    text = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert json.dumps(json_of(text)) == text
    assert json_of('{"\\ud83d\\ude00": "\\u00e9"}') == {"😀": "é"}


def test_a_label_of_endless_epsilon_is_none():
    content = PrivacyLabel(1.0, 1e-6).to_json() | {"epsilon": 10**400}
    assert not PrivacyLabel.from_json(content).private
    assert "NOT PRIVATE" in str(PrivacyLabel.from_json(content))


# Schemas.


@pytest.mark.parametrize(
    "name, text",
    [
        ("deep.toml", "x = " + "[" * 3000 + "]" * 3000),
        ("deep.json", '{"party": ' + "[" * 3000 + "]" * 3000 + "}"),
        ("half.json", '{"party": [{"name": "\\ud800", "attribute": [{"name": "x", "codes": 2}]}]}'),
    ],
)
def test_a_schema_file_that_nests_without_end_is_refused(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    for kind in (Schema, OpenSchema):
        with pytest.raises(SchemaError, match="not valid"):
            kind.load(tmp_path / name)


@pytest.mark.parametrize(
    "parts",
    [
        {"edges": [0, 10**400]},
        {"bounds": [0, 10**400], "bins": 3},
        {"values": [1, 10**400]},
        {"values": [1.5, 10**400]},
        {"values": [1, 2**63]},
        {"values": [1], "other": 2**70},
        {"values": ["a", "\ud800"]},
        {"values": list(range(70_000))},
        {"values": [*range(70_000), 0]},
        {"edges": [0, 1e300], "resolution": 1e-300},
        {"edges": [0, 1e30], "integral": True},
        {"edges": [0, 1e300], "calendar": "date"},
        {"edges": [0, 3e11], "calendar": "timestamp"},
        {"edges": [-1e9, 0], "calendar": "date"},
        {"edges": [0, 1e10, 5], "calendar": "date"},
        {"bounds": [float("nan"), 5], "bins": 3, "calendar": "date"},
        {"bounds": [0, float("inf")], "bins": "day", "calendar": "date"},
        {"bounds": ["0001-01-01", "0001-03-01"], "bins": "week", "calendar": "date"},
        {"bounds": ["9999-10-01", "9999-12-31"], "bins": "month", "calendar": "date"},
        {"codes": 10**400},
    ],
)
def test_numbers_that_nobody_can_compute_with_make_no_domain(parts):
    with pytest.raises(SchemaError):
        Schema.from_json(attribute(**parts))


def test_a_party_whose_name_is_no_number_even_is_refused():
    """NaN is not itself, and so an attribute was at two parties that were one."""
    content = attribute(codes=2)
    content["party"][0]["name"] = float("nan")
    with pytest.raises(SchemaError, match="expected `str`, got `float` at `party"):
        Schema.from_json(content)


def test_names_that_no_file_can_hold_are_refused():
    for party, name in (("a\ud800", "x"), ("a\0", "x"), ("a", "x\ud800")):
        with pytest.raises(SchemaError, match="no text"):
            Schema.from_json(
                {"party": [{"name": party, "attribute": [{"name": name, "codes": 2}]}]}
            )


def test_a_schema_has_so_many_attributes_and_no_more():
    every = [{"name": f"x{i}", "codes": 1} for i in range(MAX_ATTRIBUTES + 1)]
    with pytest.raises(SchemaError, match="10,001 attributes"):
        Schema.from_json({"party": [{"name": "a", "attribute": every}]})
    Schema.from_json({"party": [{"name": "a", "attribute": every[1:]}]})


def test_combinations_that_nobody_can_untangle_are_refused_soon():
    """Eleven birds in ten holes: every combination is plain, and no search finds out quickly that they leave nothing."""
    birds, holes = 11, 10
    tangled = [
        ((one, (hole,)), (other, (hole,)))
        for hole in range(holes)
        for one in range(birds)
        for other in range(one)
    ]
    with pytest.raises(SchemaError, match="too entangled"):
        contradiction(tangled, [holes] * birds)
    assert never(tangled, [holes] * birds) == []
    # Five birds in four holes can be told.
    assert (
        contradiction([c for c in tangled if all(p < 5 and h[0] < 4 for p, h in c)], [4] * 5) != ()
    )


def test_an_open_schema_may_say_impossible_things_of_private_domains_alone(tmp_path):
    part = {
        "name": "a",
        "attribute": [{"name": "x", "values": "private"}, {"name": "y", "codes": 2}],
    }
    opened = OpenSchema.from_json({"party": [part], "impossible": [{"x": "rare", "y": 1}]})
    assert [str(combination) for combination in opened.impossible] == ["x = 'rare' and y = 1"]
    inside = OpenSchema.from_json({"party": [{**part, "impossible": [{"x": "rare", "y": 1}]}]})
    assert inside.impossible == opened.impossible


# Plans.


@pytest.mark.parametrize(
    "path, value",
    [
        (("tau",), 10**9),
        (("tau",), 10**400),
        (("expected_records",), 10**13),
        (("message_bytes",), 0),
        (("local", 0, "largest_clique"), 500_001),
        (("local", 0, "largest_clique"), 2.0),
        (("local", 0, "units"), True),
        (("local", 0, "free"), "yes"),
        (("sketch", "sizes", 0), 3.0),
        (("sketch", "sizes", 0), 60_000),
        (("sketch", "repetitions"), 1e9),
        (("sketch", "buckets"), "many"),
        (("sketch", "variance"), float("nan")),
        (("nonce",), "\ud800"),
    ],
)
def test_a_plan_beyond_all_bounds_is_refused(plan, path, value):
    content = edited(plan.to_json(), *path, value=value)
    if path == ("nonce",):
        with pytest.raises(ValueError):
            json_of(json.dumps(content))
        return
    with pytest.raises(VertiMRFError):
        Plan.from_json(content)


def test_a_plan_that_asks_for_more_than_any_message_has_is_refused(plan):
    sketch = plan.sketch
    huge = replace(sketch, repetitions=1 << 24, buckets=1 << 15, variance=1e6, weights=())
    with pytest.raises(PlanError, match="bytes of sketches, more than any message"):
        replace(plan, sketch=huge)


def test_a_plan_that_this_machine_cannot_hold_is_refused_by_the_party(plan, monkeypatch):
    monkeypatch.setattr(os, "sysconf", lambda name: 1)
    with pytest.raises(PlanError, match="of memory: have it planned with fewer keys"):
        check_memory(plan, 0)
    with pytest.raises(PlanError, match="of memory"):
        Party(plan, "a", Secret.new())


# Messages.


def test_counts_that_no_table_has_are_refused(plan, messages):
    for value in (np.iinfo(np.int64).max, np.iinfo(np.int64).min, -(10**6), 10**9):
        first = messages[0].marginals[0]
        counts = first.counts.copy()
        counts[0] = value
        bad = replace(
            messages[0], marginals=(replace(first, counts=counts), *messages[0].marginals[1:])
        )
        with pytest.raises(MessageError, match="which no table that fits the plan has"):
            Message.from_bytes(bad.to_bytes(plan), plan)
    with pytest.raises(MessageError, match="the record count has counts"):
        Message.from_bytes(replace(messages[0], count=1 << 61).to_bytes(plan), plan)


def test_far_more_records_than_expected_are_not_sampled(plan, messages):
    """Every cell is below its bound, and all together are not."""
    bad = replace(
        messages[1],
        marginals=tuple(
            replace(m, counts=np.full_like(m.counts, 30_000 * m.units // m.counts.size))
            for m in messages[1].marginals
        ),
    )
    bad = replace(bad, bins=bins_of(plan, 1, one_way_counts(bad.marginals)))
    with pytest.raises(MessageError, match="it has about 30,000 records, but the plan expects 200"):
        Message.from_bytes(bad.to_bytes(plan), plan)


# Models.


@pytest.mark.parametrize(
    "sizes, cliques, parents",
    [
        ([2, 2], [[0, 1]], [0]),
        ([2, 2], [[0, 1]], [-1, 0]),
        ([2, 2], [[1, 0]], [-1]),
        ([2, 2], [[0]], [-1]),
        ([2, 2], [[0, 1, 2]], [-1]),
        ([2, 2], [[-1, 0, 1]], [-1]),
        ([2, 2, 2], [[0, 1], [1, 2]], [-1, -1]),
        ([2.0, 2], [[0, 1]], [-1]),
        ([2, 2], [[0, 1.0]], [-1]),
        ([0, 2], [[0, 1]], [-1]),
        ([2, 2], [[0], []], [-1, 0]),
        ([], [], []),
        ([2, 2, 2, 2], [[0, 1], [1, 2], [0, 3]], [-1, 0, 1]),
        ([2, 2], [[0, 1]], [True]),
    ],
)
def test_a_tree_that_is_none_is_refused(sizes, cliques, parents):
    with pytest.raises(ModelError):
        checked_tree(sizes, cliques, parents)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    schema = schema_of(a=(2, 3, 2))
    factors = [Factor((0, 1), np.zeros((2, 3))), Factor((1, 2), np.zeros((3, 2)))]
    field = MarkovRandomField(junction_tree(schema.sizes, [(0, 1), (1, 2)]), 100.0, factors)
    path = tmp_path_factory.mktemp("model") / "sound.model"
    named_model(schema, field).save(path)
    return path


def changed_model(path, out, change):
    """A model file whose header and arrays were changed, its checksum in order."""
    header, arrays = container.unpack(path.read_bytes(), "model", "sound")
    header = copy.deepcopy(header)
    change(header, arrays)
    out.write_bytes(container.pack("model", header, arrays))
    return out


@pytest.mark.parametrize(
    "field",
    [
        {"total": float("nan")},
        {"total": -1},
        {"total": 1e300},
        {"parents": [-1, 5]},
        {"loss": None},
        {"cliques": [[0, 1], [7, 8]]},
        {"factors": [[0, 1], [2, 1]]},
        {"factors": [[0, 2], [1, 2]]},
        {"factors": [[], []]},
        {"sizes": [2, 3, 10**9]},
        {"sizes": [2.0, 3, 2]},
    ],
)
def test_a_model_whose_header_does_not_fit_is_refused_when_it_is_read(model, tmp_path, field):
    with pytest.raises(MessageError, match="is malformed"):
        Model.load(
            changed_model(
                model, tmp_path / "bad.model", lambda header, arrays: header["field"].update(field)
            )
        )


@pytest.mark.parametrize(
    "logs",
    [
        np.zeros((3, 2)),
        np.full((2, 3), np.nan),
        np.full((2, 3), np.inf),
        np.zeros((2, 3), np.int64),
        np.zeros(6),
    ],
)
def test_a_model_whose_factors_do_not_fit_is_refused_when_it_is_read(model, tmp_path, logs):
    with pytest.raises(MessageError, match="is malformed"):
        Model.load(
            changed_model(
                model, tmp_path / "bad.model", lambda header, arrays: arrays.update(logs0=logs)
            )
        )


@pytest.mark.parametrize(
    "attributes, logs",
    [
        ([[0, 2]], np.zeros((2, 3))),
        ([[0, 2]], np.full((2, 2), np.nan)),
        ([[0, 2]], np.full((2, 2), np.inf)),
        ([[0, 2]], np.full((2, 2), -np.inf)),
        ([[0, 2]], np.zeros((2, 2), np.int64)),
        ([[2, 0]], np.zeros((2, 2))),
        ([[0, 0]], np.zeros((2, 2))),
        ([[0, 3]], np.zeros((2, 2))),
        ([[]], np.array(0.0)),
        ([[0, 2], [0, 1]], np.zeros((2, 2))),
        ([[0.0, 2]], np.zeros((2, 2))),
        (7, np.zeros((2, 2))),
    ],
)
def test_a_model_whose_factors_beyond_its_cliques_do_not_fit_is_refused_when_it_is_read(
    model, tmp_path, attributes, logs
):
    def change(header, arrays, attributes=attributes, logs=logs):
        header["field"]["beyond"] = attributes
        arrays["beyond0"] = logs

    with pytest.raises(MessageError, match="is malformed"):
        Model.load(changed_model(model, tmp_path / "bad.model", change))
    sound = functools.partial(change, attributes=[[0, 2]], logs=np.eye(2))
    assert (
        Model.load(changed_model(model, tmp_path / "sound.model", sound)).sample(10).num_rows == 10
    )


@pytest.mark.parametrize("field", ["total", "loss"])
def test_a_model_of_a_number_beyond_all_decimals_is_refused(model, tmp_path, field):
    def change(header, arrays):
        header["field"][field] = 10**400

    with pytest.raises(VertiMRFError, match="exceeds double precision"):
        Model.load(changed_model(model, tmp_path / "bad.model", change))


def test_a_model_without_any_probability_says_so(model, tmp_path):
    nothing = changed_model(
        model,
        tmp_path / "bad.model",
        lambda header, arrays: arrays.update(logs0=np.full((2, 3), -np.inf)),
    )
    with pytest.raises(ModelError, match="give no combination a probability"):
        Model.load(nothing).sample(10)


# Tables.


def test_an_arrow_file_whose_offsets_lead_elsewhere_is_refused(tmp_path):
    ids = pa.array(["aa", "bb", "cc"])
    offsets = np.array([0, 2, 2_000_000, 6], np.int32)
    broken = pa.StringArray.from_buffers(3, pa.py_buffer(offsets), ids.buffers()[2])
    table = pa.table({"id": broken, "x": [0, 1, 0]})
    with pa.ipc.new_file(str(tmp_path / "bad.arrow"), table.schema) as file:
        file.write_table(table)
    with pytest.raises(TableError, match="cannot be read as a table"):
        read_arrow(tmp_path / "bad.arrow")


def test_a_cell_that_python_has_no_form_for_is_shown_all_the_same():
    """A date millions of years from now, in a sentence that says where it stands."""
    assert "1409299459" in shown(pa.array([1_409_299_459], pa.int32()).cast(pa.date32())[0])


def test_a_release_record_with_an_endless_party_is_damaged(tmp_path):
    release = Release(bytes(32), 0, bytes(32))
    releases = Releases(tmp_path)
    assert releases.once(release, lambda: b"sent") == b"sent"
    path = tmp_path / release.name
    header, arrays = container.unpack(path.read_bytes(), "release record", "record")
    path.write_bytes(container.pack("release record", header | {"party": float("inf")}, arrays))
    with pytest.raises(PrivacyError, match="is damaged"):
        releases.once(release, lambda: b"again")


# Prices of hostile events: found in plans and ledgers before anything else is looked at.


@pytest.mark.parametrize(
    "event",
    [
        lambda: CountSketchEvent(10_000, 1e6, 1 << 15, 10**9),
        lambda: CountSketchEvent(100, 1e6, 1 << 15, 1000, 64),
        lambda: SketchEvent(1000, 0, 40, 1000, attributes_per_key=10_000),
        lambda: SketchEvent(1000, 0, 65_536, 1000),
        lambda: GRREvent(1.0, (3,) * 20_000),
        lambda: epsilon([CountSketchEvent(2, 1e3, 1 << 10, 10**6, 64)], 1e-6),
    ],
)
def test_events_that_nobody_can_price_in_reasonable_memory_are_refused(event):
    with pytest.raises(PrivacyError):
        event()


def test_events_far_beyond_any_protection_are_told_by_renyi_divergences():
    """Once minutes, gigabytes or an overflow."""
    for events in (
        [CountSketchEvent(1, 4.0, 2, 10**9)],
        [GaussianEvent(1e-6)],
        [GaussianEvent(3.0), GaussianEvent(1e-6)],
    ):
        assert epsilon(events, 1e-6).method == "renyi"
        assert epsilon(events, 1e-6).epsilon > 1e6
        assert cumulative(events, 1e-6)[-1] == epsilon(events, 1e-6)


def test_an_event_that_adds_nothing_does_not_set_the_grid():
    """A noise of 1e18 beside one of 3 once asked for the finest grid there is."""
    alone, both = (
        epsilon([GaussianEvent(3.0), *more], 1e-6).epsilon for more in ([], [GaussianEvent(1e18)])
    )
    assert alone <= both * (1 + 1e-9)
    assert both <= alone * (1 + 1e-4)
    for losses in accountant._losses([GaussianEvent(3.0), GaussianEvent(1e18)], 1e-6):
        assert sum(loss.mass.size for loss in losses) < 100_000


@pytest.mark.parametrize("sigma", [3e4, 1e6, 3e7])
def test_a_plan_of_much_noise_is_priced_on_a_short_grid(plan, sigma, monkeypatch):
    """Thousands of units of next to no loss once took seconds: every one of them asked for a finer grid."""
    loaded = Plan.from_json(edited(plan.to_json(), "local", 0, "unit_sigma", value=sigma))
    for losses in accountant._losses(loaded.accounted()[0], loaded.delta):
        assert sum(loss.mass.size for loss in losses) < 200_000


@pytest.mark.parametrize(
    "path", [("count_sigma",), ("local", 0, "unit_sigma"), ("local", 0, "score_sigma")]
)
def test_noise_that_the_sampler_takes_for_ever_to_draw_is_refused(plan, path):
    for value in (1e30, 1e300):
        with pytest.raises(PlanError, match="noise"):
            Plan.from_json(edited(plan.to_json(), *path, value=value))
    with pytest.raises(PlanError, match="noise above 0"):
        Plan.from_json(edited(plan.to_json(), "count_sigma", value=float("nan")))


@pytest.mark.parametrize(
    "text, why",
    [
        ("a.b.c.d.e.f.g.h.i = 1", "a key has more than 8 parts"),
        ("[a . b.c .d.e.f.g.h.i]", "a key has more than 8 parts"),
        ('"a"."b.c".c.d.e.f.g.h.i = 1', "a key has more than 8 parts"),
        ("x = 0x" + "f" * 65, "a whole number has more than 64 bits"),
        ("x = 0b1" + "_1" * 65, "a whole number has more than 64 bits"),
    ],
)
def test_toml_that_costs_more_than_its_size_is_refused_before_it_is_parsed(
    tmp_path, monkeypatch, text, why
):
    def parsed(_):
        pytest.fail("It was parsed.")

    monkeypatch.setattr("vertimrf.plan.sections.tomllib.loads", parsed)
    (tmp_path / "s.toml").write_text(text)
    with pytest.raises(SchemaError, match=f"is not valid TOML .{why}"):
        Schema.load(tmp_path / "s.toml")


def test_dots_in_strings_and_comments_of_toml_are_no_parts_of_a_key(tmp_path):
    dots = "a.b.c.d.e.f.g.h.i.j"
    values = [dots, f"# {dots}", f"'{dots}'", "0x" + "f" * 70, f"x\\ {dots}"]
    attribute = Attribute.categorical("name.of.two", values)
    schema = Schema.of({"one": [attribute]})
    schema.save(tmp_path / "s.toml")
    text = (tmp_path / "s.toml").read_text()
    (tmp_path / "s.toml").write_text(f'# {dots} = 1\n{text}# """ {dots}\n')
    assert Schema.load(tmp_path / "s.toml") == schema


def test_the_second_of_many_equal_keys_is_named(tmp_path):
    keys = ", ".join(f'"k{i}": 2' for i in range(30_000))
    (tmp_path / "s.json").write_text("{" + keys + ', "k29999": 3}')
    with pytest.raises(SchemaError, match="key 'k29999' appears twice"):
        Schema.load(tmp_path / "s.json")

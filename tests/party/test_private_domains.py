"""Domains found with noise: what is asked of the data is what is priced, nothing else steers what comes of it, and it is good."""

import json
import math
import os
import re
import threading

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from builders import Tape, moved

from vertimrf.columns import number_range
from vertimrf.columns.number_range import divide, find_edges, octaves, significant_range
from vertimrf.errors import PrivacyError
from vertimrf.party.domain_record import DomainRecord, Searched, cells_digest
from vertimrf.party.private_domains import close, find_domains, unfit
from vertimrf.plan.open_schema import OpenSchema
from vertimrf.privacy.events import GeometricEvent, ThresholdEvent
from vertimrf.privacy.ledger import spent_beforehand
from vertimrf.privacy.noise import KeyedNoise
from vertimrf.tables.table import encode_columns

ASKED = (
    {"name": "pay", "bins": "private", "integral": True},
    {"name": "rate", "bins": "private", "bounds": [0, 1]},
    {"name": "job", "values": "private", "missing": True},
)


def opened(*attributes):
    return OpenSchema.from_json({"party": [{"name": "a", "attribute": list(attributes)}]})


def people(rows, seed=0):
    rng = np.random.default_rng(seed)
    jobs = np.array([f"j{k}" for k in np.minimum(rng.zipf(1.6, rows), 300)], object)
    jobs[: rows // 50] = None
    pay = np.round(np.exp(rng.normal(10.3, 0.6, rows)))
    return pa.Table.from_pandas(
        pd.DataFrame({"pay": pay, "rate": rng.beta(2, 5, rows), "job": jobs})
    )


def find(table, wanted, noise, epsilon=2.0, delta=1e-6, **more):
    """What is found of domains, or of those that a schema wants."""
    return find_domains(
        list(wanted.wanted.values()) if isinstance(wanted, OpenSchema) else wanted,
        lambda name: table,
        epsilon,
        delta,
        lambda name: "a",
        noise=noise,
        **more,
    )


@pytest.mark.parametrize("sensitivity", [1, 3])
def test_every_query_is_an_event_with_its_noise_and_all_sum_to_what_may_be_spent(sensitivity):
    schema, tape = opened(*ASKED), Tape()
    findings = find(people(4000), schema, tape, records_per_person=sensitivity)
    entries = [entry for finding in findings for entry in finding.entries]
    assert [scale for scale, _ in tape.queries] == [entry.event.scale for entry in entries]
    assert {entry.event.sensitivity for entry in entries} == {sensitivity}
    kinds = [ThresholdEvent] + [GeometricEvent] * 3
    assert [type(entry.event) for entry in entries] == [*kinds, *kinds[:3], ThresholdEvent]
    spent, exposed = spent_beforehand(entries)
    assert spent == pytest.approx(2.0)
    assert 0.5e-6 < exposed <= 1e-6
    assert len(releases(findings)) == len(entries)
    for finding in findings:
        assert spent_beforehand(finding.entries)[0] == pytest.approx(2.0 / 3)


@pytest.mark.parametrize("row", [0, 80, 1999, 3999])
def test_one_record_moves_one_count_of_every_query(row):
    """The same noisy answers to both tables, so that both are asked the same."""
    schema, table = opened(*ASKED), people(4000)
    first = Tape()
    find(table, schema, first)
    rows = np.arange(4000) != row
    tapes = [Tape(first), Tape()]
    find(table, schema, tapes[0])
    tapes[1].played = first
    fewer = table.filter(pa.array(rows))
    if len(set(fewer["job"].to_pylist())) < len(set(table["job"].to_pylist())):
        pytest.skip("the only record of a value: the threshold's case")
    find(fewer, schema, tapes[1])
    changes = [moved(a[1], b[1]) for a, b in zip(tapes[0].queries, tapes[1].queries, strict=True)]
    missing = table["job"][row].as_py() is None
    assert changes == [1] * 7 + [0 if missing else 1]


def test_with_all_noisy_answers_fixed_every_table_gives_the_same_bins():
    numeric = opened(*ASKED[:2])
    first = Tape()
    find(people(4000), numeric, first)
    # No value of them is shown, and bins follow from noisy counts alone.
    domains = find(people(4001, 7), numeric, Tape(first))
    for other in (people(3999, 1), people(10, 2), people(4000, 5).slice(0, 0)):
        again = find(other, numeric, Tape(first))
        assert [f.attribute for f in again] == [f.attribute for f in domains]


def test_nothing_of_values_shows_but_those_whose_noisy_counts_reach_the_threshold():
    schema, tape = opened(ASKED[2]), Tape()
    table = people(4000)
    (finding,) = find(table, schema, tape)
    counts = table["job"].drop_null().value_counts().to_pylist()
    names = sorted(pair["values"] for pair in counts)
    ((_, asked),) = tape.queries
    assert asked.sum() == 4000 - 80
    threshold = finding.entries[0].event.threshold
    reached = {
        name for name, noisy in zip(names, tape.answers[0], strict=True) if noisy >= threshold
    }
    assert set(finding.attribute.values) == reached | {"other"}
    assert 2 < len(reached) < len(names)
    few = opened(ASKED[2] | {"most": 2})
    (listed,) = find(table, few, Tape(tape))
    top = sorted(names, key=lambda name: -tape.answers[0][names.index(name)])[:2]
    assert set(listed.attribute.values) == {*top, "other"}


def test_with_all_noisy_counts_fixed_every_table_of_the_same_values_gives_the_same_ones():
    """Of more values than are listed, noisy counts choose: the adversary reverses all exact ones."""
    schema, tape = opened(ASKED[2] | {"most": 3}), Tape()
    counts = {f"j{i}": 100 + i for i in range(20)}
    up = pa.table({"job": [name for name, count in counts.items() for _ in range(count)]})
    down = pa.table({"job": [name for name, count in counts.items() for _ in range(219 - count)]})
    (listed,) = find(up, schema, tape)
    assert len(listed.attribute.values) == 4
    (again,) = find(down, schema, Tape(tape))
    assert again.attribute == listed.attribute


def test_a_value_of_one_person_shows_as_seldom_as_is_priced():
    """Real noise; delta large enough to be seen: 400 finds of a value of one record, five standard deviations allowed."""
    schema = opened({"name": "job", "values": "private"})
    table = pa.table({"job": ["rare", *["common"] * 400]})
    delta, runs = 0.08, 400
    event = ThresholdEvent(1.0, ThresholdEvent.least_threshold(1.0, delta))
    shown = sum(
        "rare" in (find(table, schema, None, 1.0, delta)[0].attribute.values) for _ in range(runs)
    )
    assert abs(shown / runs - event.exposed) < 5 * math.sqrt(event.exposed / runs)
    assert 0.03 < event.exposed <= delta


def test_someone_who_is_alone_in_every_column_shows_in_any_as_seldom_as_is_priced_for_all():
    """Delta is for all domains together: of eight columns, each may list a value of one person with an eighth of it.

    The adversary knows all other values, and looks whether any other one is listed. 300 finds, delta 0.1: five standard errors
    above it are 0.19. Were delta spent in every column, 0.5 would show.
    """
    names, delta, runs = [f"c{i}" for i in range(8)], 0.1, 300
    schema = opened(*({"name": name, "values": "private"} for name in names))
    table = pa.table({name: ["only here", *["common"] * 300] for name in names})
    shown = 0
    for _ in range(runs):
        findings = find(table, schema, None, 8.0, delta)
        shown += any(f.attribute and "only here" in f.attribute.values for f in findings)
        assert spent_beforehand([e for f in findings for e in f.entries])[1] <= delta
    assert shown / runs < delta + 5 * math.sqrt(delta * (1 - delta) / runs)
    assert shown


def test_found_bins_hold_nearly_all_records_and_tell_them_apart():
    """Six kinds of columns, 50,000 records, epsilon 0.1 each, real noise. In 100 runs at most 4.1 % of a column were clipped, and
    no bin had more than 29 % of the records."""
    rng = np.random.default_rng(1)
    rows = 50_000
    pay = np.round(np.exp(rng.normal(10.3, 0.6, rows)))
    columns = {
        "pay": (pay, {"integral": True}),
        "age": (rng.integers(16, 75, rows), {"integral": True}),
        "fever": (np.round(rng.normal(36.8, 0.5, rows), 1), {"resolution": 0.1}),
        "height": (rng.normal(1.7, 0.1, rows), {}),
        "balance": (rng.normal(-500, 300, rows), {}),
        "bonus": (np.where(rng.random(rows) < 0.3, 0, pay), {"integral": True}),
    }
    schema = opened(
        *({"name": name, "bins": "private", **more} for name, (_, more) in columns.items())
    )
    table = pa.table({name: pa.array(values) for name, (values, _) in columns.items()})
    closed = close(schema, find(table, schema, None, epsilon=0.6, delta=1e-9))
    assert closed.public
    for attribute in closed.attributes:
        values = columns[attribute.name][0]
        assert attribute.points == ((0.0,) if attribute.name == "bonus" else ())
        values = values[~np.isin(values, attribute.points)]
        assert attribute.clamp
        clipped = ((values < attribute.edges[0]) | (values > attribute.edges[-1])).mean()
        assert clipped < 0.06, attribute
        inside = np.clip(values, attribute.edges[0], attribute.edges[-1])
        counts, _ = np.histogram(inside, attribute.edges)
        assert counts.max() < 0.8 * rows, attribute
        assert 3 <= attribute.size <= 16 + len(attribute.points)


def test_dates_and_public_bounds():
    rng = np.random.default_rng(2)
    days = pd.to_datetime("2019-01-01") + pd.to_timedelta(rng.integers(0, 730, 20_000), unit="D")
    at = pd.to_datetime("2020-01-01") + pd.to_timedelta(
        rng.integers(7 * 3600, 19 * 3600, 20_000), unit="s"
    )
    table = pa.table(
        {
            "day": pa.array(days.date),
            "at": pa.array(at.time),
            "score": pa.array(rng.integers(0, 101, 20_000)),
        }
    )
    schema = opened(
        {"name": "day", "bins": "private", "calendar": "date"},
        {"name": "at", "bins": "private", "calendar": "time"},
        {"name": "score", "bins": "private", "bounds": [0, 100], "integral": True},
    )
    near = 0
    for _ in range(25):
        day, clock, score = close(schema, find(table, schema, None, epsilon=1.0)).attributes
        near += (
            day.value_text(day.edges[0]) > "2018-01-01"
            and day.value_text(day.edges[-1]) < "2022-01-01"
        )
    # Noise makes the range of two years wider than four in 13 % of the draws; half of 25 have odds of about 1e-6.
    assert near > 12
    assert day.calendar == "date"
    assert (clock.edges[0], clock.edges[-1], clock.clamp) == (0, 86_400, False)
    inside = [edge for edge in clock.edges if 7 * 3600 <= edge <= 19 * 3600]
    assert len(inside) >= 8
    assert (score.edges[0], score.edges[-1], score.clamp) == (0, 100, False)


def test_where_nothing_is_found_all_values_are_other_and_a_sentence_names_the_columns(caplog):
    schema = opened({"name": "pay", "bins": "private"}, {"name": "job", "values": "private"})
    table = pa.table({"pay": [1.0, 2.0], "job": ["a", "b"]})
    findings = find(table, schema, None, epsilon=0.02)
    assert [f.attribute for f in findings] == [None, None]
    closed = close(schema, findings)
    (said,) = caplog.messages
    assert re.search(r"domains of 'pay', 'job' found nothing: at epsilon .* each .*bounds", said)
    assert "\n" not in said
    assert [a.values for a in closed.attributes] == [("other",), ("other",)]
    np.testing.assert_array_equal(encode_columns(table, closed.attributes, "it"), np.zeros((2, 2)))
    # Beside points, the first histogram alone was asked.
    assert [len(f.entries) for f in findings] == [2, 1]


@pytest.mark.parametrize(
    "attribute, cells, sentence",
    [
        ({"bins": "private"}, ["1", "many"], "holds 'many', which is not a number, in 1 record"),
        (
            {"bins": "private"},
            ["1", ""],
            "1 record .row 2. without a value, left out here; set missing",
        ),
        ({"values": "private"}, ["a", None], "1 record .row 2. without a value"),
        (
            {"bins": "private", "bounds": [0, 10]},
            [3, 12],
            "holds 12, which is not within the public bounds",
        ),
        ({"bins": "private", "calendar": "date"}, ["2020-01-01", "soon"], "which is not date"),
    ],
)
def test_cells_that_do_not_fit_are_left_out_and_named(attribute, cells, sentence):
    """No error: whether a domain is found would tell of one record. Every query is that of the table without it."""
    schema, tapes = opened({"name": "x", **attribute}), [Tape(), Tape()]
    whole = pa.table({"x": [cells[0]] * 20 + cells[1:]})
    find(whole, schema, tapes[0])
    find(whole.slice(0, 20), schema, tapes[1])
    for with_it, without in zip(tapes[0].queries, tapes[1].queries, strict=True):
        assert with_it[0] == without[0]
        assert with_it[1].tolist() == without[1].tolist()
    (said,) = unfit(list(schema.wanted.values()), lambda name: whole)
    assert re.search(sentence, said.replace("row 21", "row 2"))
    assert unfit(list(schema.wanted.values()), lambda name: whole.slice(0, 20)) == ()


@pytest.mark.parametrize("asked", [{"bins": "private"}, {"values": "private"}])
def test_a_column_without_cells_that_fit_is_asked_all_the_same(asked):
    schema, tape = opened({"name": "x", **asked}), Tape()
    find(pa.table({"x": pa.array([None] * 3, pa.string())}), schema, tape)
    assert tape.queries


def test_infinite_numbers_count_as_the_farthest():
    schema = opened({"name": "x", "bins": "private"})
    table = pa.table(
        {"x": np.append(np.random.default_rng(0).normal(50, 5, 20_000), [np.inf, -np.inf])}
    )
    (attribute,) = close(schema, find(table, schema, None)).attributes
    assert 0 <= attribute.edges[0] < attribute.edges[-1] < 200


def test_no_budget_is_refused():
    schema, table = opened(ASKED[0]), people(100)
    for epsilon, delta in ((0.0, 1e-6), (-1.0, 1e-6), (math.nan, 1e-6), (1.0, 0.0), (1.0, 1.0)):
        with pytest.raises(PrivacyError, match=r"epsilon between 1e-09|delta must be at least"):
            find(table, schema, None, epsilon, delta)


def test_cells_and_runs():
    edges = octaves(1.0)
    assert (edges == -edges[::-1]).all()
    assert {-4.0, -1.0, 0.0, 1.0, 2.0, 2.0**62} <= set(edges)
    for low, high, step in (
        (0, 128, 1.0),
        (-64, 32, 0.0),
        (1024, 2048, 1.0),
        (2.0**30, 2.0**31, 1.0),
        (0.5, 0.75, 0.05),
        (3, 4, 1.0),
    ):
        cells = divide(low, high, step)
        assert cells[0] == low
        assert cells[-1] >= high
        assert (np.diff(cells) > 0).all()
        assert len(cells) < 120
        if step:
            assert np.allclose(cells / step, np.round(cells / step))
    counts = np.zeros(60, np.int64)
    counts[20:30], counts[45] = 500, 3000
    assert significant_range(counts, 50.0, 1.0) == (20, 46)
    assert significant_range(np.zeros(60, np.int64), 50.0, 1.0) is None


def test_noise_alone_seldom_stands_out():
    """2000 histograms of nothing, at a chance of 1e-3 each at the most: 2 are expected, more than 12 come once in 10^6."""
    rng = np.random.default_rng(0)
    alone = 0
    for _ in range(2000):
        noise = np.rint(rng.laplace(0, 40.0, 189)).astype(np.int64)
        alone += significant_range(noise, 40.0, number_range.CLEAR) is not None
    assert alone <= 12


def test_the_parts_of_the_budget_sum_to_all_of_it():
    for bounds in (None, (0.0, 1000.0)):
        asked = []

        def histogram(edges, part, asked=asked):
            asked.append(part)
            return np.full(len(edges) - 1, 1000, np.int64), 1.0

        assert find_edges(histogram, 8, 1.0, bounds) is not None
        assert sum(asked) == pytest.approx(1.0)


def once(folder, schema, table, part="part.toml", path="table.csv", epsilon=2.0):
    """What a search gives, with which names were on record."""
    return DomainRecord(folder).once(
        Searched(schema, part, path, table),
        lambda wanted, secret: find(table, wanted, KeyedNoise(secret("noise")), epsilon),
    )


def releases(findings):
    return {entry.release for finding in findings for entry in finding.entries}


def test_a_domain_is_found_once(tmp_path):
    schema, table = opened(*ASKED[:2]), people(4000)
    findings, known = once(tmp_path, schema, table)
    assert len(findings) == 2
    assert not known
    for name in ("found.json", "key", "lock"):
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o600
    assert once(tmp_path, schema, table) == (findings, {"pay", "rate"})
    # Asked for in another way it is refused; no longer asked for, it is spent all the same.
    with pytest.raises(
        PrivacyError,
        match=r"'pay' was looked for before, in another way \(bins = private, integral = True\)",
    ):
        once(tmp_path, opened({"name": "pay", "bins": "private", "most": 8}), table)
    public = opened({"name": "pay", "bounds": [0, 10], "bins": 2}, ASKED[1])
    assert len(close(public, once(tmp_path, public, table)[0]).spent) == 7
    # Nor is it unspent where the attribute has another name by now, or is left out.
    left = opened(ASKED[1])
    again, _ = once(tmp_path, left, people(4000, seed=4), path="mended.csv")
    assert len(close(left, again).spent) == 7


def test_a_domain_is_known_again_by_its_part_its_table_or_its_cells(tmp_path):
    schema, table, mended = opened(*ASKED), people(4000), people(4000, seed=1)
    findings, _ = once(tmp_path, schema, table)
    shuffled = table.take(pa.array(np.random.default_rng(0).permutation(4000)))
    names = {"pay", "rate", "job"}
    for again, part, path in (
        (shuffled, "copy.toml", "copy.csv"),
        (mended, "other.toml", "table.csv"),
        (mended, "part.toml", "other.csv"),
        # A copy of a copy is known as well.
        (people(10, seed=2), "copy.toml", "new.csv"),
    ):
        assert once(tmp_path, schema, again, part, path, epsilon=0.3) == (findings, names)
    # Other people, elsewhere, are others.
    domains, known = once(tmp_path, schema, people(4000, seed=3), "else.toml", "else.csv")
    assert not known
    assert releases(domains).isdisjoint(releases(findings))
    # An attribute of another name was not looked for.
    more = opened({"name": "wage", "bins": "private", "integral": True})
    _, known = once(tmp_path, more, table.append_column("wage", table["pay"]), "more.toml")
    assert not known


def test_the_same_search_has_the_same_noise_where_the_record_is_lost_and_another_one_has_not(
    tmp_path,
):
    schema, table = opened(*ASKED), people(4000)
    first, _ = once(tmp_path, schema, table)
    assert len(releases(first)) == 8
    (tmp_path / "found.json").unlink()
    assert once(tmp_path, schema, table)[0] == first
    for other in (table.slice(1), people(4000, seed=1)):
        (tmp_path / "found.json").unlink()
        domains, _ = once(tmp_path, schema, other)
        assert releases(domains).isdisjoint(releases(first))
    # One cell of one column: the noise of every column is another.
    (tmp_path / "found.json").unlink()
    jobs = table["job"].to_pylist()
    jobs[5] = "j1" if jobs[5] != "j1" else "j2"
    domains, _ = once(tmp_path, schema, table.set_column(2, "job", pa.array(jobs)))
    assert releases(domains).isdisjoint(releases(first))
    # Under another key, too.
    for name in ("found.json", "key"):
        (tmp_path / name).unlink()
    assert once(tmp_path, schema, table)[0] != first


def test_cells_are_the_same_in_any_order_chunks_and_encoding():
    cells = pa.array(["b", "a", None, "a"])
    same = [[cells], [cells[2:], cells[:2]], [cells.dictionary_encode()]]
    assert len({cells_digest(pa.chunked_array(chunks)) for chunks in same}) == 1
    others = [
        ["b", "a", "b", None],
        ["b", "a", "a"],
        ["b", "a", "", "a"],
        ["ba", "a", None, "a"],
        [["a"], ["b"], None, ["a"]],
    ]
    empty = pa.chunked_array([], pa.string())
    digests = {
        cells_digest(empty),
        *(
            cells_digest(pa.chunked_array([pa.array(order)]))
            for order in [cells.to_pylist(), *others]
        ),
    }
    assert len(digests) == 7


def test_a_record_that_cannot_be_read_or_written_stops_everything(tmp_path):
    schema, table = opened(ASKED[0]), people(100)
    place = {"asked": ASKED[0], "attribute": None, "entries": [], "places": [5]}
    for content in (
        "{",
        "[]",
        "{}",
        json.dumps({"kind": "domains", "found": [{"asked": {}}]}),
        json.dumps({"kind": "domains", "found": [place]}),
    ):
        (tmp_path / "found.json").write_text(content)
        with pytest.raises(PrivacyError, match="restore it from a backup"):
            once(tmp_path, schema, table)
    (tmp_path / "found.json").unlink()
    (tmp_path / "key").write_bytes(b"short")
    (tmp_path / "key").chmod(0o600)
    with pytest.raises(PrivacyError, match=r"key is damaged: it has not 32 bytes"):
        once(tmp_path, schema, table)
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(PrivacyError, match="No record of the domains can be kept"):
        once(tmp_path / "file" / "x", schema, table)


def test_no_domain_is_shown_before_it_is_on_the_disk(tmp_path, monkeypatch):
    """A machine that loses its power right after a result was seen would search, and spend, a second time."""
    schema, table = opened(ASKED[0]), people(100)
    once(tmp_path, opened(ASKED[2]), table, part="other.toml")
    before = (tmp_path / "found.json").read_text()

    def fail(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fail)
        with pytest.raises(PrivacyError, match=r"No space left on device.*so none are found"):
            once(tmp_path, schema, table)
    assert (tmp_path / "found.json").read_text() == before


def test_a_record_that_leads_nowhere_is_no_reason_to_search_again(tmp_path):
    """The folder is on a disk that is not there, and the record is a link to it."""
    schema, table = opened(ASKED[0]), people(100)
    findings, _ = once(tmp_path, schema, table)
    (tmp_path / "found.json").rename(tmp_path / "elsewhere")
    (tmp_path / "found.json").symlink_to(tmp_path / "unmounted" / "found.json")
    with pytest.raises(PrivacyError, match="restore it from a backup"):
        once(tmp_path, schema, table)
    (tmp_path / "found.json").unlink()
    (tmp_path / "elsewhere").rename(tmp_path / "found.json")
    assert once(tmp_path, schema, table) == (findings, {"pay"})


@pytest.mark.parametrize("name", ["found.json", "key", "."])
@pytest.mark.parametrize("how", ["written by others", "another user's"])
def test_a_record_that_others_may_have_put_there_is_refused(tmp_path, name, how, somebody_else):
    """With a key of his in place, somebody would know the noise; with a record of his, the schema is what he likes."""
    schema, table = opened(ASKED[0]), people(100)
    found = once(tmp_path, schema, table)[0]
    path, mode = tmp_path / name, (tmp_path / name).stat().st_mode
    if how == "written by others":
        path.chmod(mode | 0o020)
    else:
        somebody_else(path)
    with pytest.raises(PrivacyError, match="not yours alone"):
        once(tmp_path, schema, table)
    if how == "written by others":
        path.chmod(mode)
        assert once(tmp_path, schema, table) == (found, {"pay"})


def test_who_reads_the_record_finds_no_key_in_it(tmp_path):
    """Every purpose has a key of its own, and none is among the digests that the record is full of."""
    schema, table, keys = opened(*ASKED), people(100), []

    def watched(wanted, secret):
        keys.extend(secret(purpose).hex() for purpose in ("noise", "persons", "cells", "table"))
        return find(table, wanted, KeyedNoise(secret("noise")))

    DomainRecord(tmp_path).once(Searched(schema, "part.toml", "table.csv", table), watched)
    assert len(set(keys)) == len(keys)
    record = (tmp_path / "found.json").read_text()
    assert not any(key in record for key in (*keys, (tmp_path / "key").read_bytes().hex()))


def test_a_second_search_waits_for_the_first_and_finds_its_result(tmp_path):
    """While the first one is at its noise, for a second at most or until the other one searches as well."""
    schema, table, searches, given = opened(ASKED[0]), people(100), [], []
    begun, again = threading.Event(), threading.Event()

    def search():
        def watched(wanted, secret):
            searches.append(wanted)
            begun.set() if len(searches) == 1 else again.set()
            again.wait(1.0)
            return find(table, wanted, KeyedNoise(secret(f"noise {len(searches)}")))

        once = DomainRecord(tmp_path).once(
            Searched(schema, "part.toml", "table.csv", table), watched
        )
        given.append(once[0])

    first, second = (threading.Thread(target=search) for _ in range(2))
    first.start()
    assert begun.wait(60.0)
    second.start()
    first.join()
    second.join()
    assert len(searches) == 1
    assert given[0] == given[1]

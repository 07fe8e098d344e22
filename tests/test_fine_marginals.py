"""Values inside bins: parties release fine marginals of their columns of numbers, and values follow them."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from builders import KEYS, Tape, named_model, schema_of, temporal
from msgspec import structs
from planning import edited, plan_with
from roles import messages_of, run_server
from scipy import stats

from vertimrf import (
    Attribute,
    Message,
    Model,
    Party,
    Plan,
    PlanOptions,
    ReadOptions,
    RunOptions,
    Schema,
    Secret,
    Synthesizer,
    synthesize,
)
from vertimrf.errors import MessageError, PlanError, SchemaError, TableError
from vertimrf.files import container
from vertimrf.message import KIND, largest_message
from vertimrf.model.fit import fit
from vertimrf.party import party as party_module
from vertimrf.party.persons import limited
from vertimrf.plan.shares import FINE_SHARE
from vertimrf.plan.summary import summary
from vertimrf.privacy.events import GaussianEvent
from vertimrf.privacy.ledger import Kind
from vertimrf.privacy.noise import FixedNoise
from vertimrf.report.words import in_words
from vertimrf.tables.columns import encode_table

ROWS = 4000
SECRET = Secret(bytes(range(32)))
PAID = Attribute.numeric("paid", [0, 50, 200, 1000, 5000], integral=True, missing=True)
RATE = Attribute.numeric("rate", [-10, 0, 5, 30], clamp=True)
DAY = temporal("day", "date", ["2020-01-01", "2020-01-08", "2020-03-01"])
CODE = Attribute.integer("code", 3)
SCHEMA = Schema.of({"one": [PAID, CODE], "two": [RATE, DAY]})
ALONE = Schema.of({"one": [PAID, CODE]})


def table_of(rows=ROWS, seed=0):
    """A third of ``paid`` is 0, a tenth 4,999 and some missing; half of ``rate`` is 2.5; days are Mondays."""
    rng = np.random.default_rng(seed)
    paid = np.exp(rng.normal(4, 1, rows)).round().clip(1, 4990)
    kind = rng.random(rows)
    paid = np.where(kind < 1 / 3, 0.0, np.where(kind > 0.9, 4999.0, paid))
    paid[kind > 0.97] = np.nan
    return pd.DataFrame(
        {
            "id": [f"P{i:06d}" for i in rng.permutation(rows)],
            "paid": paid,
            "code": rng.integers(0, 3, rows),
            "rate": np.where(rng.random(rows) < 0.5, 2.5, rng.normal(5, 8, rows)),
            "day": pd.Timestamp("2020-01-06") + pd.to_timedelta(7 * rng.integers(0, 8, rows), "D"),
        }
    )


def planned(schema=SCHEMA, **options):
    options = {"expected_records": ROWS, "nonce": "fine", "message_bytes": 50_000} | options
    return plan_with(schema, **options)


def encoded(plan, name, table, **read):
    return encode_table(table, "id", plan.schema.encoding(name), ReadOptions(**read), keys=KEYS)


def tables_of(plan, table):
    return [encoded(plan, name, table) for name in plan.party_names]


class NoNoise(FixedNoise):
    """Gaussian noise of 0."""

    def __init__(self):
        super().__init__(0)

    def gaussian(self, values, sigma):
        return np.array(values)


def without_noise(plan, table):
    """The server's result for messages without Gaussian noise."""
    messages = [
        Party(plan, name, SECRET, NoNoise()).run(part)
        for name, part in zip(plan.party_names, tables_of(plan, table), strict=True)
    ]
    return run_server(plan, messages, seed=4, rows=20_000)


PLAN = planned()


# The largest distance of 20,000 rows from their law with a chance of 1e-5 (Massart), and what smoothing below this plan's noise
# of 2 records adds.
KS = math.sqrt(math.log(2e5) / 2 / 20_000) + 0.002


@pytest.fixture(scope="module")
def result():
    """Of a plan whose stated noise, below which counts are smoothed, is small as well."""
    return without_noise(planned(epsilon=50.0), table_of())


def chance(share, rows):
    """4.5 standard errors of a share of rows, whose chance is below 1e-5."""
    return 4.5 * math.sqrt(share * (1 - share) / rows)


def test_the_ledger_has_what_fine_marginals_cost():
    """One Gaussian event a party, of its share of the party's budget; the price of persons is that of their records."""
    for plan, person in ((PLAN, 1), (planned(records_per_person=3), 3)):
        for name, local, count in zip(("one", "two"), plan.local, (1, 2), strict=True):
            events = {e.kind: e.event for e in plan.entries() if e.party == name}
            fine = events.pop(Kind.FINE_MARGINALS)
            assert fine == GaussianEvent(local.fine_sigma, person, count)
            mine = [events.get(k) for k in (Kind.ONE_WAY_MARGINALS, Kind.LARGER_MARGINALS)]
            rest = sum(event.rho for event in mine if event)
            assert fine.rho == pytest.approx(FINE_SHARE * (fine.rho + rest), rel=1e-6)
        assert plan.ledger().epsilon <= 1.0
        sentences = [in_words(e) for e in plan.entries() if e.kind is Kind.FINE_MARGINALS]
        for sentence, each in zip(sentences, ("its column", "each of 2 columns"), strict=True):
            assert (
                f"for {each} of numbers, the records in many narrow ranges, and added" in sentence
            )
        assert "; 1 fine marginal, sigma" in summary(plan)


def test_without_finer_cells_plans_and_messages_are_what_they_were():
    plan = planned(schema_of(one={"a": 4}, two={"b": 3}))
    assert not plan.schema.fine
    assert not any("fine_sigma" in local for local in plan.to_json()["local"])
    one_bin = Attribute.numeric("all", [0, 100])
    assert not planned(Schema.of({"one": [one_bin, CODE]})).local[0].fine_sigma


@pytest.mark.parametrize("sigma", [-1.0, math.nan, math.inf])
def test_a_plan_states_a_noise_of_fine_marginals_if_there_are_some(sigma):
    with pytest.raises(PlanError, match="noise"):
        Plan.from_json(edited(PLAN.to_json(), "local", 0, "fine_sigma", value=sigma))
    bare = planned(schema_of(one={"a": 4}, two={"b": 3})).to_json()
    with pytest.raises(
        PlanError, match=r"'two' fine marginals .* none of its attributes has finer"
    ):
        Plan.from_json(edited(bare, "local", 1, "fine_sigma", value=1e9))
    with pytest.raises(PlanError, match="more than its target"):
        Plan.from_json(edited(PLAN.to_json(), "local", 0, "fine_sigma", value=1.0))


def test_without_them_a_plan_needs_no_finer_cells():
    local = [structs.replace(one, fine_sigma=0.0) for one in PLAN.local]
    plan = replace(PLAN, local=tuple(local))
    assert plan.schema.fine
    assert "fine marginals" not in summary(plan)
    assert not any(entry.kind is Kind.FINE_MARGINALS for entry in plan.entries())
    table = table_of()
    part = encode_table(table, "id", SCHEMA.part("one"), keys=KEYS)
    message = Party(plan, "one", SECRET, FixedNoise(1)).run(part)
    assert message.fine == ()
    assert Message.from_bytes(message.to_bytes(plan), plan).fine == ()
    with pytest.raises(TableError, match="paid, code, with their finer cells"):
        Party(PLAN, "one", SECRET).run(part)


@pytest.mark.parametrize("attribute", [PAID, RATE, DAY], ids=lambda a: a.name)
def test_finer_cells_are_encoded_as_they_are_by_themselves(attribute):
    """A cell that fits one fits the other, is in one of its code's cells, and is counted once if it fits neither."""
    table = table_of()[["id", attribute.name]]
    bad = {"paid": [-3.0, 1e9], "day": [pd.Timestamp("2020-03-02"), pd.NaT]}.get(attribute.name)
    if bad:
        table.loc[[3, 8], attribute.name] = bad
    both = encode_table(table, "id", [attribute, attribute.fine], keys=KEYS)
    alone = encode_table(table, "id", [attribute], keys=KEYS)
    fine = encode_table(table, "id", [attribute.fine], keys=KEYS)
    assert (both.digests == alone.digests).all()
    assert (both.codes == [alone.codes[0], fine.codes[0]]).all()
    assert both.dropped == alone.dropped
    assert both.dropped.records == (2 if bad else 0)
    whole = fine.codes[0].max() - (
        attribute.missing and fine.codes[0].max() == attribute.fine.present
    )
    assert len(np.unique(fine.codes[0])) > attribute.size
    assert whole < attribute.fine.present <= 1024


def test_of_repeated_ids_the_same_record_is_kept_whatever_the_order():
    table = table_of(600)
    table["id"] = np.repeat(table["id"][:300].to_numpy(), 2)
    plan = planned()
    kept = encoded(plan, "two", table)
    assert kept.records == 300
    for order in (table[::-1], table.sample(frac=1, random_state=3)):
        again = encoded(plan, "two", order)
        at = np.argsort(again.digests)
        assert (again.codes[:, at] == kept.codes[:, np.argsort(kept.digests)]).all()


def test_a_person_moves_fine_marginals_by_no_more_than_its_records():
    """What noise is added to, with and without a person of many rows, at sensitivity 3."""
    table = table_of()
    table["who"] = np.arange(ROWS) // 2
    table.loc[:9, "who"] = -1
    plan = planned(records_per_person=3)

    def exact(rows):
        tape = Tape()
        Party(plan, "two", SECRET, tape).run(encoded(plan, "two", rows, person="who"))
        sigma = plan.local[1].fine_sigma
        return [counts for scale, counts in tape.queries if scale == sigma]

    with_it, without = exact(table), exact(table[table["who"] >= 0])
    assert [len(counts) for counts in with_it] == [RATE.fine.size, DAY.fine.size]
    for more, fewer in zip(with_it, without, strict=True):
        assert (more - fewer).sum() == 3
        assert np.linalg.norm(more - fewer) <= 3


def test_fine_counts_have_the_noise_of_the_ledger():
    """The spread of the noise in a thousand cells is the plan's, to four standard errors of a standard deviation."""
    message = Party(PLAN, "one", SECRET, FixedNoise(5)).run(encoded(PLAN, "one", table_of()))
    exact = np.bincount(encoded(PLAN, "one", table_of()).codes[2], minlength=PAID.fine.size)
    noise = message.fine[0] - exact
    sigma = PLAN.local[0].fine_sigma
    assert noise.std() == pytest.approx(sigma, rel=4 / math.sqrt(2 * noise.size))


@pytest.fixture(scope="module")
def arrived():
    """The second party's message, as the server has it."""
    (_, message) = messages_of(PLAN, tables_of(PLAN, table_of()), SECRET, fixed=True)
    data = message.to_bytes(PLAN)
    assert len(data) <= largest_message(PLAN)
    return container.unpack(data, KIND, "it")


@pytest.mark.parametrize(
    "change, sentence",
    {
        "too short": (lambda counts: counts[:-1], "fine0 has shape"),
        "of another type": (lambda counts: counts.astype(np.float64), "fine0 has shape"),
        "far below 0": (lambda counts: counts - 10**6, "fine marginal 0 has counts from"),
        "far too many": (lambda counts: counts + 10**9, "fine marginal 0 has counts from"),
        "of other people": (lambda counts: counts + 400, "its counts contradict each other"),
        "missing": (lambda counts: None, "it lacks fine0"),
    }.values(),
)
def test_fine_marginals_that_no_table_has_are_refused(arrived, change, sentence):
    header, arrays = arrived
    changed = change(arrays["fine0"])
    others = {name: array for name, array in arrays.items() if name != "fine0"}
    if changed is not None:
        others["fine0"] = changed
    with pytest.raises(MessageError, match=sentence):
        Message.from_bytes(container.pack(KIND, header, others), PLAN)
    more = container.pack(KIND, header, arrays | {"fine2": arrays["fine0"]})
    with pytest.raises(MessageError, match="arrays where the plan asks for"):
        Message.from_bytes(more, PLAN)


def distances(table, made):
    """Kolmogorov-Smirnov distance of each column of numbers, at the resolution of its finer cells."""
    out = []
    for attribute in (PAID, RATE, DAY):
        one, other = (
            encode_table(frame.assign(id=range(len(frame))), "id", [attribute.fine], keys=KEYS)
            for frame in (table, made)
        )
        out.append(stats.ks_2samp(one.codes[0], other.codes[0]).statistic)
    return out


def zeros(paid):
    """The share of 0 in a column."""
    return (paid == 0).sum() / paid.count()


def test_values_follow_them(result):
    """Along straight lines all are far off."""
    table, made = table_of(), result.table.to_pandas()
    assert max(distances(table, made)) < KS
    straight = replace(result, shapes={}).table.to_pandas()
    assert min(distances(table, straight)) > 0.06
    true = zeros(table["paid"])
    assert zeros(made["paid"]) == pytest.approx(true, abs=chance(true, 19_000))
    # Codes are what they were; only values inside bins change.
    for one in (made, straight):
        codes = encode_table(one.assign(id=range(len(one))), "id", SCHEMA.part("one"), keys=KEYS)
        assert (np.sort(codes.codes, axis=1) == np.sort(result.codes[:2], axis=1)).all()


def test_a_saved_model_draws_the_same_values(result, tmp_path):
    model = Model.of(result)
    model.save(tmp_path / "a.model")
    loaded = Model.load(tmp_path / "a.model")
    assert loaded.shapes.keys() == model.shapes.keys() == {0, 2, 3}
    rows = loaded.sample(20_000, seed=2)
    assert rows.equals(model.sample(20_000, seed=2))
    assert max(distances(table_of(), rows.to_pandas())) < KS
    (draw, _) = loaded.draws(2, 20_000, seed=1)
    # A draw has the noise of a fit as well: its one-way counts are off by some 20 of 4,000 records.
    assert max(distances(table_of(), draw.to_pandas())) < KS + 0.02


def test_a_limit_cuts_bins_by_what_is_inside_them(result):
    """Of the records below 50, those at 0 are as many as in the table, also below 10."""
    table, model = table_of()["paid"], Model.of(result)
    for high in (30, 10):
        rows = model.sample(5000, given={"paid": {"from": 0, "below": high}}, seed=1).to_pandas()
        assert rows["paid"].max() < high
        true = (table == 0).sum() / (table < high).sum()
        assert (rows["paid"] == 0).mean() == pytest.approx(true, abs=chance(true, 5000))
    expected = (table <= 0).sum()
    rows = model.sample(given={"paid": {"to": 0}}, seed=1)
    # Nothing is drawn: smoothing moves a few records.
    assert rows.num_rows == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize(
    "shape", [np.ones(3), np.full(PAID.fine.present, -1.0), np.full(PAID.fine.present, np.nan)]
)
def test_shapes_of_a_model_file_are_checked(shape, tmp_path):
    field = fit((5, 3), [], 100.0)
    named_model(ALONE, field).save(tmp_path / "a.model")
    header, arrays = container.unpack(container.read(tmp_path / "a.model"), "model", "it")
    (tmp_path / "a.model").write_bytes(container.pack("model", header, arrays | {"shape0": shape}))
    with pytest.raises(MessageError, match="records inside bins of 'paid' are no counts"):
        Model.load(tmp_path / "a.model")
    with pytest.raises(SchemaError, match="no counts"):
        named_model(ALONE, field, shapes={0: shape})


def test_of_a_shared_column_the_first_party_counts():
    schema = Schema.of({"one": [PAID, CODE], "two": [PAID, RATE]})
    plan, table = planned(schema, message_bytes=200_000), table_of()
    assert [plan.fine_of(0), plan.fine_of(1)] == [(0,), (0, 2)]
    result = without_noise(plan, table)
    cells = np.bincount(encoded(plan, "one", table).codes[2], minlength=PAID.fine.size)[:-1]
    known = cells > 50
    np.testing.assert_allclose(result.shapes[0][known], cells[known], rtol=0.1)


def test_people_that_only_some_parties_hold_have_them_too():
    plan = planned(population="outer", epsilon=8.0, message_bytes=400_000)
    table = table_of()
    parts = [encoded(plan, "one", table[:3000]), encoded(plan, "two", table[1000:])]
    result = run_server(plan, messages_of(plan, parts, SECRET, fixed=True), seed=2)
    assert result.others
    made = result.table.to_pandas()
    held = made[made["held_by"].str.contains("one")]["paid"]
    assert zeros(held) == pytest.approx(1 / 0.97 / 3, abs=0.05)
    # Along a straight line it would be 0.02.
    assert (made["rate"].dropna().round(1) == 2.5).mean() > 0.25


def test_one_holder_and_one_table_of_two_parties():
    table = table_of()
    planning = PlanOptions(expected_records=ROWS)
    alone = Synthesizer(SCHEMA, id="id", planning=planning).fit(table, epsilon=4.0)
    rows = [alone.sample(seed=1).to_pandas()]
    options = RunOptions(seed=1)
    trial = synthesize(table, "id", 4.0, schema=SCHEMA, planning=planning, options=options)
    for made in (*rows, trial.table.to_pandas()):
        assert zeros(made["paid"]) == pytest.approx(0.344, abs=0.06)
        assert (made["day"].astype("datetime64[ns]").dt.day_of_week == 0).mean() > 0.8


def test_a_release_depends_on_finer_cells(tmp_path):
    """Tables of the same codes and other values inside bins are other tables."""
    table = table_of()
    moved = table.assign(paid=table["paid"].replace(0.0, 1.0))
    one, other = (encoded(PLAN, "one", t) for t in (table, moved))
    assert (one.codes[:2] == other.codes[:2]).all()
    sums = [party_module.InMemory(t).keyed_sum(bytes(16)) for t in (one, other)]
    assert sums[0] != sums[1]
    assert limited(one, 1, bytes(16)) is one


def test_derived_and_read_tables_have_them():
    table = pa.Table.from_pandas(table_of()[["id", "paid", "code"]], preserve_index=False)
    read = Party(PLAN, "one", SECRET).encode(table, "id")
    assert read.attributes == (PAID, CODE, PAID.fine)

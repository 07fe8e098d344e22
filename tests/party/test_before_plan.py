"""What is drawn before a plan: once for a table, named in the refusal, and with the noise that it is priced for."""

import os
import stat

import numpy as np
import pyarrow as pa
import pytest
from builders import schema_of
from commands import good, refused, run_python

from vertimrf import Ledger, OpenSchema, PlanOptions, Synthesizer, VertiMRFError, synthesize
from vertimrf.errors import ModelError, PlanError, PrivacyError, TableError
from vertimrf.files.state import STATE, state_folder
from vertimrf.party.before_plan import count_noise, own_key, saying_run_spent
from vertimrf.party.party import Party
from vertimrf.privacy.ledger import Kind
from vertimrf.server.server import Server
from vertimrf.tables.table import Table
from vertimrf.trial import plan_for

ROWS, COLUMNS = 686, 10
WIDE = schema_of(all={f"c{i}": 20 for i in range(COLUMNS)})
SMALL = schema_of(all={"a": 3, "b": 2})


def useless(rows=ROWS, seed=0):
    rng = np.random.default_rng(seed)
    return pa.table({f"c{i}": rng.integers(0, 20, rows) for i in range(COLUMNS)})


def encoded(rows, seed=0):
    codes = np.random.default_rng(seed).integers(0, 2, (2, rows)).astype(np.uint16)
    return Table(SMALL.attributes, np.arange(rows, dtype=np.uint64), codes)


def counted(table, epsilon=1.0, **options):
    plan = plan_for(SMALL, table, epsilon, PlanOptions(even_if_useless=True, **options))
    return plan.expected_records


def refusal(table, **options):
    with pytest.raises(PlanError) as error:
        Synthesizer(WIDE, planning=PlanOptions(**options)).fit(table, epsilon=1.0)
    return error.value


def test_a_table_that_is_refused_again_has_the_same_noisy_count_and_the_refusal_names_its_cost():
    table = useless()
    first = refusal(table)
    assert str(first).startswith("Useless: ")
    assert "count: epsilon 0.02 (record count, to plan with)." in str(first)
    (entry,) = first.spent
    # Two noisy counts are equal with a probability of 1/200, three names of fresh noise never.
    shuffled = table.take(np.random.default_rng(1).permutation(ROWS))
    for again in (refusal(table), refusal(shuffled), refusal(table, tau=50_000)):
        assert again.spent == (entry,)
    assert str(refusal(table)) == str(refusal(shuffled)) == str(first)
    assert refusal(table, expected_records=ROWS).spent == ()
    assert "Noisy figures" not in str(refusal(table, expected_records=ROWS))


@pytest.mark.slow
def test_another_process_has_the_same_count(tmp_path):
    folder = tmp_path / "state"
    code = (
        "import numpy as np, sys\n"
        "from party.test_before_plan import counted, encoded\n"
        "print(counted(encoded(5000)))"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(STATE, str(folder))
        printed = [run_python(code).stdout for _ in range(2)]
        assert printed[0].strip() == str(counted(encoded(5000)))
    assert printed[0] == printed[1]
    (key,) = folder.rglob("key")
    assert stat.S_IMODE(key.stat().st_mode) == 0o600


def test_counts_of_other_records_have_other_noise_of_the_law_that_is_priced():
    """Noise of scale 50 has a standard deviation of 70.7; that of 400 draws is within 6 % / 4.6 of it at one standard error."""
    noise = np.array([counted(encoded(2000, seed)) for seed in range(400)]) - 2000
    assert abs(noise.mean()) < 4.5 * 70.7 / 20
    # The law's kurtosis is 6: the standard error of its deviation is 5.6 %.
    assert noise.std() == pytest.approx(70.7, rel=4.5 * 0.056)
    # One record more, or another epsilon, is no reason for the same noise.
    base = encoded(2000)
    one_less = base.only(np.arange(2000) > 0)
    draws = [count_noise(t).geometrics(np.zeros(32, np.int64), 50.0) for t in (base, one_less)]
    assert (draws[0] != draws[1]).sum() > 20


def test_plans_with_the_same_count_pay_for_it_once():
    table = encoded(3000)
    plans = [
        plan_for(SMALL, table, 1.0, PlanOptions(even_if_useless=True, tau=tau))
        for tau in (1000, 2000)
    ]
    assert plans[0].prior == plans[1].prior
    both = Ledger.together([plan.ledger() for plan in plans])
    assert [e.released for e in both.entries].count("record count, to plan with") == 1


def test_domains_of_a_run_that_is_refused_are_the_same_again_and_named(tmp_path):
    listed = [{"name": f"c{i}", "codes": 20} for i in range(COLUMNS)]
    asked = {"name": "pay", "bins": "private", "integral": True}
    schema = OpenSchema.from_json({"party": [{"name": "all", "attribute": [*listed, asked]}]})
    pay = np.random.default_rng(2).integers(0, 5000, ROWS)
    table = useless().append_column("pay", pa.array(pay))
    errors = []
    for _ in range(2):
        with pytest.raises(PlanError) as error:
            Synthesizer(schema).fit(table, epsilon=1.0)
        errors.append(error.value)
    assert errors[0].spent == errors[1].spent
    assert str(errors[0]) == str(errors[1])
    assert {entry.released for entry in errors[0].spent} == {
        "bounds and bins of 'pay'",
        "record count, to plan with",
    }
    # Also what comes between the search and the plan says so.
    with pytest.raises(VertiMRFError, match=r"Noisy figures .*bins of 'pay'") as error:
        synthesize(table.drop_columns(["c3"]), epsilon=1.0, schema=schema)
    assert "record count" not in str(error.value)


def test_parties_of_other_ids_in_a_trial_are_told_what_the_planning_count_spent():
    schema = schema_of(one=(4, 4), two=(4, 4))
    rng = np.random.default_rng(1)

    def table(names, first):
        columns = {name: rng.integers(0, 4, 3000) for name in names}
        return pa.table({"id": np.arange(first, first + 3000), **columns})

    def refused(first, **options):
        tables = [table(schema.names[:2], 0), table(schema.names[2:], first)]
        planning = PlanOptions(encoder="encrypted", even_if_useless=True, **options)
        with pytest.raises(VertiMRFError, match="ids") as error:
            synthesize(tables, "id", 1.0, schema=schema, planning=planning)
        return error.value

    told = refused(1)
    assert [entry.kind for entry in told.spent] == [Kind.PLANNING_COUNT]
    assert "count: epsilon 0.02 (record count, to plan with)." in str(told)
    assert refused(1, expected_records=3000).spent == ()


def test_what_stops_a_fit_before_its_release_says_what_planning_spent(monkeypatch):
    def fails(*_):
        raise TableError("No.")

    monkeypatch.setattr(Party, "run", fails)
    with pytest.raises(TableError, match="Noisy figures were drawn") as error:
        Synthesizer(SMALL, planning=PlanOptions(even_if_useless=True)).fit(
            pa.table({name: np.arange(500) % 2 for name in SMALL.names}), epsilon=1.0
        )
    assert [entry.kind for entry in error.value.spent] == [Kind.PLANNING_COUNT]


def test_a_run_that_fails_after_its_release_says_what_it_has_spent(monkeypatch):
    def fails(*_):
        raise ModelError("No model fits.")

    monkeypatch.setattr(Server, "fit", fails)
    planning = PlanOptions(expected_records=2000, even_if_useless=True)
    table = pa.table({"a": [0, 1, 2, 1] * 500, "b": [0, 1, 1, 0] * 500})
    with pytest.raises(ModelError, match=r"No model fits.*count, epsilon 1: another run") as error:
        Synthesizer(SMALL, planning=planning).fit(table, epsilon=1.0)
    assert error.value.spent
    # The inner sentence is enough.
    with pytest.raises(ModelError) as again, saying_run_spent(Ledger((), 1e-9)):
        raise error.value
    assert str(again.value).count("spends again") == 1


def test_a_key_that_cannot_be_kept_is_named_before_a_figure_is_drawn(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(STATE, str(tmp_path / "file"))
    with pytest.raises(PrivacyError, match="or give public domains and expected_records"):
        own_key("count")
    monkeypatch.setenv(STATE, str(tmp_path / "state"))
    own_key("count")
    key = state_folder() / "before" / "key"
    os.truncate(key, 5)
    with pytest.raises(PrivacyError, match=r"key is damaged.*restore it from a backup"):
        own_key("count")


def test_a_table_of_which_all_records_are_left_out_is_refused(tmp_path):
    SMALL.save(tmp_path / "s.toml")
    (tmp_path / "t.csv").write_text("a,b\n" + "7,secret\n" * 300)
    made = ["--schema", str(tmp_path / "s.toml"), "--out", str(tmp_path / "o.csv")]
    start = ["synthesize", str(tmp_path / "t.csv"), "--epsilon", "1", "--even-if-useless"]
    said = refused(start, made)
    assert "fits the schema, so nothing is made of it: a (outside, 300)" in said
    # It names no value of the table.
    assert "secret" not in said
    assert not (tmp_path / "o.csv").exists()
    with pytest.raises(TableError, match=r"No record of .* fits the schema"):
        Synthesizer(SMALL).fit(tmp_path / "t.csv", epsilon=1.0)
    (tmp_path / "t.csv").write_text("a,b\n" + "7,1\n" * 300 + "1,1\n")
    good(start, made)

"""Analyses: which marginals they need, what is refused, and that no text is evaluated."""

import itertools

import pytest
from builders import schema_of
from hypothesis import given
from hypothesis import strategies as st
from planning import plan_with

from vertimrf.errors import PlanError
from vertimrf.plan.analyses import MAX_LENGTH, MAX_TERMS, listed, needed

SCHEMA = schema_of(
    desk={"pay": 8, "year": 3, "sex": 2}, sales={"meal area": 4, "lead.time": 5, "1": 2}
)
PAY, YEAR, SEX, MEAL, LEAD, ONE = range(6)
ODD = [f"x{i}" for i in range(MAX_TERMS + 1)]


@pytest.mark.parametrize(
    "text, marginals",
    [
        ("pay ~ year", [(PAY, YEAR)]),
        ("mean( pay ) by year", [(PAY, YEAR)]),
        ("mean( `meal area` )", [(MEAL,)]),
        ("pay ~ year + C(sex)", [(PAY, YEAR), (PAY, SEX), (YEAR, SEX)]),
        (" pay~C( year )+`meal area`-1", [(PAY, YEAR), (PAY, MEAL), (YEAR, MEAL)]),
        ("pay ~ 0 + lead.time", [(PAY, LEAD)]),
        ("pay ~ -1 + year", [(PAY, YEAR)]),
        ("pay ~ 1", [(PAY,)]),
        ("pay ~ `1`", [(PAY, ONE)]),
        # The product with every other term: a marginal of three, and with two products one of four.
        ("pay ~ year:sex", [(PAY, YEAR, SEX)]),
        ("pay ~ year*sex", [(PAY, YEAR, SEX)]),
        ("pay ~ year*sex + lead.time", [(PAY, YEAR, SEX), (PAY, LEAD), (YEAR, SEX, LEAD)]),
        ("pay ~ year:sex*lead.time", [(PAY, YEAR, SEX, LEAD)]),
        (
            "pay ~ year:sex + lead.time:`1`",
            [(PAY, YEAR, SEX), (PAY, LEAD, ONE), (YEAR, SEX, LEAD, ONE)],
        ),
        ("pay ~ year + year", [(PAY, YEAR)]),
        ("mean(pay) by sex, year", [(PAY, YEAR, SEX)]),
        ("mean(`meal area`) by year", [(YEAR, MEAL)]),
        ("mean(pay)", [(PAY,)]),
        ("pay vs sex, meal area", [(PAY, SEX), (PAY, MEAL)]),
        ("pay,sex,year", [(PAY, YEAR, SEX)]),
        ("meal area, 1", [(MEAL, ONE)]),
        ("year", [(YEAR,)]),
    ],
)
def test_what_analyses_need(text, marginals):
    assert list(needed(text, SCHEMA)) == marginals


@pytest.mark.parametrize(
    "text, sentence",
    [
        ("pay ~ yearr", "there is no column 'yearr'; near it: year"),
        ("mean(Pay) by sex", "there is no column 'Pay'; near it: pay"),
        (
            "pay vs zzz",
            "there is no column 'zzz'; there are pay, year, sex, meal area, lead.time, 1",
        ),
        ("pay ~ log(year)", r"'log\(year\)' is no column; write y ~ a \+ b"),
        ("pay ~ year**2", r"a column is missing; write y ~ a \+ b"),
        ("pay ~ __import__('os').system('x')", "is no column; write"),
        ("pay ~ (year + sex)", r"'\(year' is no column; write"),
        ("pay ~ year - sex", "only the intercept can be removed, as - 1"),
        ("pay ~ year ~ sex", "it has more than one ~"),
        ("pay vs year vs sex", "it has more than one vs"),
        ("~ year", "a column is missing"),
        ("pay ~ year +", "a column is missing"),
        ("", "a column is missing"),
        ("pay, ", "a column is missing"),
        ("median(pay) by sex", r"'median\(pay\) by sex' is no column; write"),
        ("pay by sex", "'pay by sex' is no column; write"),
        ("pay, pay", "it repeats a column: name each once"),
        ("pay ~ pay*year*sex*lead.time*`1`", "joins more than 4 columns: leave columns out"),
        ("pay ~ " + "*".join(["year"] * 40), "joins more than 4 columns"),
        ("x" * (MAX_LENGTH + 1), "it has more than 4,000 characters: leave columns out"),
    ],
)
def test_what_is_not_clear_is_refused_in_one_sentence(text, sentence):
    with pytest.raises(PlanError, match=sentence) as refused:
        needed(text, SCHEMA)
    assert str(refused.value).startswith("The workload's ")
    assert str(refused.value).endswith(".")


def test_a_regression_has_a_limit():
    schema = schema_of(all={"y": 2, **dict.fromkeys(ODD, 2)})
    with pytest.raises(
        PlanError, match=f"it has {MAX_TERMS + 2} terms, and {MAX_TERMS} are the most"
    ):
        needed("y ~ " + " + ".join(ODD), schema)


def test_a_marginal_that_no_clique_can_hold_is_refused():
    sentence = (
        r"The workload's 'mean\(pay\) by year, meal area' needs the marginal pay × year × meal area of 96 cells, more than tau = 95: "
        "leave a column out, cut bins, or raise tau \\(--tau\\)."
    )
    asked = ["mean(pay) by year, meal area"]
    with pytest.raises(PlanError, match=sentence):
        plan_with(SCHEMA, expected_records=1000, tau=95, workload=asked)
    plan_with(SCHEMA, expected_records=1000, tau=96, workload=asked)


NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip)


@given(st.lists(NAMES, min_size=2, max_size=5, unique=True))
def test_any_names_can_be_written(names):
    """Also names of backticks, tildes and commas, in all forms."""
    schema = schema_of(all=dict.fromkeys(names, 2))
    assert needed(listed(names), schema) == (tuple(range(len(names))),)
    quoted = [f"`{name.replace('`', '``')}`" for name in names]
    pairs = set(itertools.combinations(range(len(names)), 2))
    assert set(needed(f"{quoted[0]} ~ {'+'.join(quoted[1:])}", schema)) == pairs
    with_first = {pair for pair in pairs if 0 in pair}
    assert set(needed(f"{quoted[0]} vs {','.join(quoted[1:])}", schema)) == with_first
    every = (tuple(range(len(names))),)
    assert needed(f"mean({quoted[0]}) by {','.join(quoted[1:])}", schema) == every


@given(st.text("pay yearsex~+-*:()`,10vsmeanbyC", max_size=40) | st.text(max_size=40))
def test_any_text_is_read_or_refused(text):
    try:
        marginals = needed(text, SCHEMA)
    except PlanError:
        return
    assert marginals
    assert not any(set(a) < set(b) for a, b in itertools.permutations(marginals, 2))
    for one in marginals:
        assert list(one) == sorted(set(one).intersection(range(6)))


@pytest.mark.timeout(60)
@pytest.mark.parametrize("text", ["mean({}(", "pay ~ C({}x"])
def test_an_unclear_text_takes_no_longer_than_its_length_asks_for(text):
    """In cubic time it took two minutes; now it is a matter of milliseconds."""
    with pytest.raises(PlanError, match="not clear"):
        needed(text.format(" " * (MAX_LENGTH - 20)), SCHEMA)

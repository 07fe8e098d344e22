"""A notebook shows an object's line and its text, and no markup of anybody else."""

import numpy as np
import pandas as pd
import pytest

import vertimrf
from vertimrf import Attribute, PlanOptions, Schema
from vertimrf.files.notebook import as_html
from vertimrf.plan.verdict import verdict

NAME = "<img src=x>"


@pytest.fixture(scope="module")
def trial():
    """A small trial of a column whose name is markup."""
    person, codes = np.arange(500), np.arange(500) % 2
    one = pd.DataFrame({"id": person, NAME: codes})
    other = pd.DataFrame({"id": person, "b": codes})
    schema = Schema.of({"h": [Attribute.integer(NAME, 2)], "i": [Attribute.integer("b", 2)]})
    planning = PlanOptions(expected_records=500, keys=64)
    return vertimrf.synthesize([one, other], "id", 4.0, schema=schema, planning=planning)


def test_objects_are_their_line_and_their_text(trial):
    plan, model, ledger = trial.result.plan, trial.model, trial.ledger
    for shown, said in (
        (trial, "A model of 2 columns"),
        (trial.result, str(ledger.label)),
        (model, "A model of 2 columns"),
        (ledger, "epsilon so far"),
        (plan, "epsilon so far"),
        (verdict(plan), "Predicted error"),
        (vertimrf.Synthesizer(plan.schema), "call fit"),
    ):
        html = shown._repr_html_()
        assert html.startswith(f"<p><b>{type(shown).__name__}"), html
        assert said in html
        assert NAME not in html
    assert "&lt;img src=x&gt;" in trial._repr_html_()


def test_a_heading_is_escaped():
    class Odd:
        def __repr__(self):
            return f"<Odd {NAME}>"

    assert NAME not in as_html(Odd())

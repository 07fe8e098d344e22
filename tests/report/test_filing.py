"""The entry for the registry of deployments: fields from plan and ledger, blanks for what only people know."""

import pytest
from builders import schema_of
from commands import good, refused
from planning import plan_with

from vertimrf.keys import KeyRing
from vertimrf.report.filing import BLANK, entry, filing

yaml = pytest.importorskip("yaml")


@pytest.fixture(scope="module")
def schema():
    return schema_of(one={"a": 3, "c": 4}, two={"b": 2})


@pytest.fixture(scope="module")
def plan(schema):
    keys = KeyRing.new(schema.party_names).public
    return plan_with(schema, expected_records=1000, nonce="n", public_keys=keys)


def leaves(content, place=()):
    if isinstance(content, dict):
        for key, value in content.items():
            yield from leaves(value, (*place, key))
    else:
        yield place, content


def test_the_text_has_every_section_and_says_what_the_ledger_says(plan, tmp_path):
    plan.save(tmp_path / "plan.json")
    read = yaml.safe_load(filing(tmp_path))
    assert read == yaml.safe_load(filing(tmp_path / "plan.json"))
    assert [*read["deployment"]] == [
        "basic",
        "dp_variant",
        "privacy_loss",
        "deployment_model",
        "accounting",
        "implementation",
        "administrative",
    ]
    label = plan.ledger().label
    spent = read["deployment"]["privacy_loss"]["privacy_parameters"]
    assert spent == {"epsilon": label.epsilon, "delta": label.delta}
    assert read["deployment"]["deployment_model"]["model_name"] == "Federated"
    assert read["deployment"]["dp_variant"]["variant_name"] == "Approximate DP"
    mechanisms = read["deployment"]["implementation"]["mechanisms"]
    assert all(each.released in mechanisms for each in plan.ledger().entries)
    assert plan.fingerprint in mechanisms


def test_what_only_a_person_can_know_is_a_marked_blank(plan):
    blanks = {
        place[-1]
        for place, value in leaves(entry(plan.schema, plan.ledger(), plan))
        if BLANK in str(value)
    }
    assert blanks >= {
        "name",
        "data_curators",
        "intended_use",
        "data_product_region",
        "justification",
        "registry_authors",
        "sources",
    }


def test_no_text_is_read_as_another_type(plan):
    read = dict(leaves(yaml.safe_load(filing_of(plan))))
    written = dict(leaves(entry(plan.schema, plan.ledger(), plan)))
    block = ("deployment", "implementation", "mechanisms")
    assert read.pop(block) == written.pop(block) + "\n"
    assert read == written
    assert isinstance(read["deployment", "privacy_loss", "privacy_parameters", "delta"], float)


def filing_of(plan):
    from vertimrf.report.filing import _yaml

    return "\n".join(_yaml(entry(plan.schema, plan.ledger(), plan)))


def test_a_plan_without_keys_may_have_run_in_one_process(schema):
    plan = plan_with(schema, expected_records=1000, nonce="n")
    details = entry(plan.schema, plan.ledger(), plan)["deployment"]["deployment_model"]
    assert "Central" in details["model_name_details"]


def test_one_table_is_central():
    plan = plan_with(schema_of(one={"a": 3, "c": 4}), expected_records=1000, nonce="n")
    content = entry(plan.schema, plan.ledger(), plan)["deployment"]["deployment_model"]
    assert content["model_name"] == "Central"


def test_the_command_prints_it_and_refuses_what_is_no_run(plan, schema, tmp_path):
    plan.save(tmp_path / "plan.json")
    assert good("inspect", tmp_path, "--filing") == filing(tmp_path)
    (tmp_path / "empty").mkdir()
    refused("has no plan", "inspect", tmp_path / "empty", "--filing")
    published = plan_with(
        schema, expected_records=1000, nonce="n", encoder="published", claim_as_published=True
    )
    published.save(tmp_path / "published.json")
    refused("nothing to file", "inspect", tmp_path / "published.json", "--filing")

"""`vertimrf inspect`: what a file is, in words."""

import json

import numpy as np
import pyarrow as pa
import pytest
from builders import schema_of
from commands import refused
from planning import plan_with

from vertimrf import Plan, write_table
from vertimrf.cli.inspect import describe
from vertimrf.errors import MessageError, PlanError
from vertimrf.files import container
from vertimrf.files.atomic import write_bytes
from vertimrf.privacy.label import REPLACE, PrivacyLabel


@pytest.fixture(scope="module")
def schema():
    return schema_of(one={"a": 3}, two={"b": 2})


def test_an_attribute_may_have_the_name_of_the_field_that_says_what_a_file_is(tmp_path):
    (tmp_path / "domain.json").write_text('{"a": 3, "kind": 2, "entries": 4}')
    assert "3 attributes" in describe(tmp_path / "domain.json")


def test_the_kind_decides_and_no_other_key(schema, tmp_path):
    plan = plan_with(schema, expected_records=1000, nonce="n", keys=1 << 14)
    content = plan.to_json() | {
        "entries": [1],
        "ledger": [],
        "kind": "evaluation",
        "label": plan.label.to_json(),
    }
    (tmp_path / "file.json").write_text(json.dumps(content))
    assert describe(tmp_path / "file.json").startswith(
        "An evaluation against the real tables.\nPrivate ("
    )
    for kind in ("message", "", "model"):
        (tmp_path / "file.json").write_text(json.dumps(plan.to_json() | {"kind": kind}))
        with pytest.raises(MessageError, match=f"its kind is {kind!r}"):
            describe(tmp_path / "file.json")
    with pytest.raises(PlanError, match="no plan: its kind is 'ledger'"):
        Plan.from_json(plan.to_json() | {"kind": "ledger"})


def test_binary_files_and_others(tmp_path):
    write_bytes(tmp_path / "m", container.pack("thing", {"x": 1}, {"a": np.zeros((2, 3))}))
    assert "A thing" in describe(tmp_path / "m")
    assert "2×3" in describe(tmp_path / "m")
    (tmp_path / "noise").write_bytes(b"\x00\x01")
    assert "no file of this library" in refused("inspect", tmp_path / "noise")


@pytest.mark.parametrize(
    "label",
    [None, {}, {"private": True}, "private", PrivacyLabel(1.0, 1e-6).to_json() | {"delta": None}],
)
def test_what_does_not_state_its_label_is_not_private(tmp_path, label):
    report = {
        "kind": "report",
        "epsilon": 1.0,
        "delta": 1e-6,
        "private": True,
        "ledger": [],
        "label": label,
    }
    (tmp_path / "report.json").write_text(json.dumps(report))
    assert "NOT PRIVATE: it has no valid privacy label." in describe(tmp_path / "report.json")
    write_bytes(
        tmp_path / "m", container.pack("party message", {"private": True, "label": label}, {})
    )
    assert "NOT PRIVATE: it has no valid privacy label." in describe(tmp_path / "m")


def test_tables_reports_and_binary_files_say_what_they_claim(tmp_path):
    good = PrivacyLabel(0.55, 1e-6, REPLACE, notes=("the exact number of ids is published",))
    for suffix in ("csv", "parquet", "arrow"):
        write_table(pa.table({"a": [1]}), tmp_path / f"t.{suffix}", good)
        assert str(good) in describe(tmp_path / f"t.{suffix}")
        write_table(pa.table({"a": [1]}), tmp_path / f"u.{suffix}")
        assert "NOT PRIVATE" in describe(tmp_path / f"u.{suffix}")
    (tmp_path / "report.json").write_text(
        json.dumps({"kind": "report", "ledger": [], "label": good.to_json()})
    )
    write_bytes(tmp_path / "m", container.pack("model", {"label": good.to_json()}, {}))
    for name in ("report.json", "m"):
        assert str(good) in describe(tmp_path / name)

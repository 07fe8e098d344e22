"""What a run left, read back: nothing in it is trusted."""

import contextlib
import functools
import json
import operator
import shutil
from dataclasses import replace

import numpy as np
import pytest
from runs.conversation import SCHEMA, Conversation

from vertimrf.cli.inspect import describe
from vertimrf.errors import MessageError
from vertimrf.report.run import Run


def test_a_folder_and_the_files_themselves_are_the_same_run(made):
    by_name = Run.open(made.folder / "report.json", made.folder / "run.model")
    at_hand = Run.of(made.trial)
    schema, report = made.run.model.schema, made.run.report
    for run in (by_name, at_hand):
        assert run.model.schema == schema
        assert run.report.label == report.label
        assert [(r.attribute, r.party, r.error) for r in run.report.released] == [
            (r.attribute, r.party, r.error) for r in report.released
        ]
    # Every attribute that varies, as its party released it.
    assert [(column.attribute, len(column.counts)) for column in report.released] == [
        (name, size) for name, size in zip(schema.names, schema.sizes, strict=True) if size > 1
    ]
    assert report.encoder == "count-sketch"
    assert report.plan == made.trial.result.plan.fingerprint


def test_numbers_of_numpy_in_a_run_at_hand_are_numbers(made):
    timed = replace(made.trial, seconds={"InitMRF": np.float64(1.5)})
    assert Run.of(timed).report.seconds == {"InitMRF": 1.5}


def test_a_model_alone_is_enough(made):
    report = Run.open(made.folder / "run.model").report
    assert report.released == ()
    assert report.label.private


def test_there_must_be_one_run(made, tmp_path):
    with pytest.raises(MessageError, match="has 0 and 0"):
        Run.open(tmp_path)
    with pytest.raises(MessageError, match="no such file"):
        Run.open(tmp_path / "nowhere")
    shutil.copytree(made.folder, tmp_path / "two")
    shutil.copy(made.folder / "run.model", tmp_path / "two" / "other.model")
    with pytest.raises(MessageError, match="has 2 and 1"):
        Run.open(tmp_path / "two")
    # Other files of a folder are nobody's concern.
    shutil.copytree(made.folder, tmp_path / "more")
    (tmp_path / "more" / "plan.json").write_text(json.dumps({"format": 5}))
    (tmp_path / "more" / "rows.csv").write_text("a,b\n1,2\n")
    assert Run.open(tmp_path / "more").report.released
    (tmp_path / "damaged.model").write_bytes((made.folder / "run.model").read_bytes()[:-5])
    with pytest.raises(MessageError, match="truncated or altered"):
        Run.open(tmp_path / "damaged.model")


def test_a_servers_run_folder_is_a_run_once_it_is_over(tmp_path):
    played = Conversation.make(tmp_path)
    folder = played.server.folder
    with pytest.raises(MessageError, match=f"not over.*`vertimrf status {folder}`"):
        Run.open(folder)
    with pytest.raises(MessageError, match=f"is a folder.*`vertimrf status {folder}`"):
        describe(folder)
    played.play()
    run = Run.open(folder)
    assert run.model.schema.parties == SCHEMA.parties
    assert run.report.label.private
    assert len(run.report.released) == len(SCHEMA.names)


def test_figures_of_another_run_are_refused(made, tmp_path):
    (tmp_path / "report.json").write_text(json.dumps(swapped(made, ["cliques"], [])))
    with pytest.raises(MessageError, match="to another run than the model"):
        Run.open(made.folder / "run.model", tmp_path / "report.json")


def swapped(made, path, value):
    """The run's figures with one of them replaced."""
    figures = json.loads((made.folder / "report.json").read_text())
    *way, last = path
    functools.reduce(operator.getitem, way, figures)[last] = value
    return figures


@pytest.mark.parametrize(
    "path",
    [
        ("rows",),
        ("seconds",),
        ("seconds", "InitMRF"),
        ("message_bytes",),
        ("warnings",),
        ("encoder",),
        ("found",),
        ("found", "one_way"),
        ("found", "one_way", 0),
        ("found", "one_way", 0, "counts"),
        ("found", "one_way", 0, "error"),
        ("found", "one_way", 0, "attribute"),
        ("cross_party_marginals",),
        ("shared_columns",),
        ("ledger",),
    ],
    ids=lambda path: ".".join(map(str, path)),
)
def test_malformed_figures_are_one_sentence_or_harmless(made, path):
    for value in (-1, 10**400, float("nan"), "<b>", [], {"a": 1}, True, None):
        figures = swapped(made, path, value)
        # No other error gets out, and what is taken is what it ought to be.
        with contextlib.suppress(MessageError):
            report = Run.matched(made.run.model, figures, "report.json").report
            assert all(
                np.isfinite(column.counts).all() and column.error > 0 for column in report.released
            )
            assert all(np.isfinite(spent) for spent in report.seconds.values())


@pytest.mark.parametrize(
    "path, value",
    [
        (("rows",), -1),
        (("found", "one_way", 0, "error"), 0.0),
        (("found", "one_way", 0, "attribute"), "none"),
        (("found", "one_way", 0, "counts"), [1.0]),
        (("seconds", "InitMRF"), float("nan")),
        (("encoder",), 3),
    ],
)
def test_malformed_figures_are_told(made, path, value):
    with pytest.raises(
        MessageError, match=r"report.json is malformed .*; give the JSON file that the run wrote\."
    ):
        Run.matched(made.run.model, swapped(made, path, value), "report.json")


def test_what_was_not_stated_is_not_private(made):
    figures = swapped(made, ["label"], None)
    assert not Run.matched(made.run.model, figures, "report.json").report.label.private

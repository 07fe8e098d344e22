"""One small run, whose names are somebody's who wishes the reader ill."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from builders import dealt
from planning import plan_with

from vertimrf import Attribute, RunOptions, Schema, Trial
from vertimrf.report.run import Run
from vertimrf.trial import run_protocol

SCRIPT = "<script>document.title='owned'</script>"
IMAGE = "<img src=x onerror=document.title='owned'>"
RECORDS = 3000


@dataclass(frozen=True, eq=False)
class Made:
    """A run, its files, and the truth."""

    trial: Trial
    run: Run
    codes: np.ndarray
    folder: Path


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    schema = Schema.of(
        {
            IMAGE: [
                Attribute.categorical(SCRIPT, [f"{SCRIPT}{i}" for i in range(30)]),
                Attribute.numeric("$x_{", range(0, 101, 2), integral=True, missing=True),
                Attribute.integer("turned \u202e round\x07", 3),
            ],
            'it\'s "quoted" & co': [
                Attribute.categorical("]]></svg>" + SCRIPT, ["yes", "no"], missing=True),
                Attribute.integer("y" * 90, 4),
            ],
            "third": [
                Attribute.categorical("数", ["一", "二", "三"], ordered=True),
                Attribute.integer("constant", 1),
            ],
        }
    )
    rng = np.random.default_rng(5)
    codes = np.array([rng.integers(0, size, RECORDS) for size in schema.sizes], np.uint16)
    # Two pairs across parties, and one within, that depend on each other.
    codes[4] = np.where(rng.random(RECORDS) < 0.8, codes[2] + 1, codes[4])
    codes[5] = np.where(rng.random(RECORDS) < 0.7, codes[2], codes[5])
    codes[1] = np.where(rng.random(RECORDS) < 0.5, 10 * codes[2], codes[1])
    plan = plan_with(schema, epsilon=8.0, expected_records=RECORDS, message_bytes=200_000, tau=5000)
    trial = run_protocol(plan, dealt(schema, codes), RunOptions(seed=0))
    folder = tmp_path_factory.mktemp("run")
    trial.model.save(folder / "run.model")
    (folder / "report.json").write_text(json.dumps(trial.to_json()))
    return Made(trial, Run.open(folder), codes, folder)

"""Numbers at their limits: every numeric option of every command, and the same through Python."""

import os
import re
import resource
import shutil
import signal
import sys
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace

import click
import numpy as np
import pyarrow as pa
import pytest
from builders import schema_of
from click.testing import CliRunner
from commands import ROLES, good, refused, workspace

from vertimrf import (
    EvaluationOptions,
    Ledger,
    Model,
    PlanOptions,
    ReadOptions,
    RunOptions,
    Synthesizer,
    VertiMRFError,
    make_plan,
    synthesize,
)
from vertimrf.cli import main
from vertimrf.cli.options import SETTINGS
from vertimrf.files.state import STATE
from vertimrf.model.fit import FitOptions

NUMBERS = [0, 5e-324, 1e-320, 1e-301, -1, -0.0, float("inf"), -float("inf"), float("nan"), 1e300]
NUMBERS += [2**31, 2**63, 10**30]
VALUES = [*map(str, NUMBERS), "text", ""]
# Options for numbers in a text, and which commands read a folder and so no numbers.
TEXTS = {"--ways"}
# What a sentence may call an option, besides its name.
CALLED = {
    "--collusion-epsilon": "if a party colludes",
    "--delta": "delta",
    "--domain-share": "share of epsilon|epsilon",
    "--draws": "number of draws",
    "--epsilon": "epsilon",
    "--expected-records": "expected.records|MB are needed",
    "--marginals": "number of marginals",
    "--records-per-person": "A person has|records of one person|records-per-person",
    "--rows": "rows|Rows|MB are needed",
    "--seed": "seed",
    "--tau": "tau",
    "--ways": "-way marginals",
}
# Commands whose work has to be left out: what checks their numbers is not.
SECONDS, GIGABYTES = 120, 6


def numeric_options(command=main, path=()):
    """All options of all commands that take numbers: (command, option)."""
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield from numeric_options(inner, (*path, name))
        return
    kinds = (click.types.IntParamType, click.types.FloatParamType)
    for option in command.params:
        if isinstance(option.type, kinds) or TEXTS & set(option.opts):
            yield " ".join(path), option.opts[0]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return workspace(tmp_path_factory.mktemp("limits"))


@pytest.fixture
def bounded(monkeypatch, tmp_path):
    """Neither hours nor all memory, if a number is taken at its word; disk and memory of some gigabytes."""
    monkeypatch.setenv(STATE, str(tmp_path / "state"))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=10**9))
    monkeypatch.setattr(os, "sysconf", lambda name: GIGABYTES << 15 if "SIZE" in name else 1 << 15)

    def late(*_):
        pytest.fail(f"it took more than {SECONDS} seconds")

    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    handler = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    resource.setrlimit(resource.RLIMIT_AS, (used + (GIGABYTES << 30), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)
    signal.alarm(0)
    signal.signal(signal.SIGALRM, handler)


@pytest.fixture
def light(monkeypatch):
    """The demo as far as its plan; kernels are compiled as they are called."""

    def planned(folder, epsilon, **_):
        make_plan(schema_of(a=(2,), b=(2,)), epsilon, PlanOptions(expected_records=1000))
        return {}

    monkeypatch.setattr("vertimrf.demo.run.check_installed", lambda: None)
    monkeypatch.setattr("vertimrf.demo.run.run_demo", planned)
    for module in ("machine", "trial", "run"):
        monkeypatch.setattr(f"vertimrf.cli.{module}.compile_kernels", lambda *_: None)


def test_options_that_take_numbers_are_found_by_their_types():
    found = set(numeric_options())
    assert len(found) > 40
    for command in ("plan", "synthesize", "run server"):
        assert {(command, "--delta"), (command, "--message-mb"), (command, "--tau")} <= found
    named = {option for _, option in found}
    assert set(CALLED) <= named
    # An option whose default hides its type has it stated.
    assert {name for name in SETTINGS if "type" in SETTINGS[name]} >= {"delta", "rows", "seed"}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of Linux")
@pytest.mark.parametrize("command, option", sorted(numeric_options()))
def test_every_number_ends_well_or_in_one_sentence(
    place, tmp_path, bounded, light, command, option
):
    given = ROLES[command]
    for number, value in enumerate(VALUES):
        words = given.format(place, tmp_path / str(number), "")
        words = re.sub(rf"{option} \S+", "", words).split()
        done = CliRunner().invoke(main, [*command.split(), *words, f"{option}={value}"])
        assert done.exit_code in (0, 2), (value, done.output, done.exception)
        if done.exit_code == 0:
            continue
        errors = [line for line in done.output.splitlines() if line.startswith("Error: ")]
        assert len(errors) == 1, (value, done.output)
        assert re.search(rf"{option}|{CALLED.get(option, option)}", errors[0]), errors[0]
        assert errors[0].endswith("."), errors[0]
        assert "Traceback" not in done.output
        # Nothing of it stays, but a folder that says why.
        assert not [p for p in tmp_path.glob(f"{number}*") if p.is_file()], (value, option)


@pytest.mark.parametrize(
    "option, said",
    [
        ("--delta=1e-320", "delta must be at least 1e-300 and below 1, not 1e-320."),
        (
            "--message-mb=1e300",
            "--message-mb must lie between 0.001 and 4,295 megabytes, not 1e+300.",
        ),
        (
            "--message-mb=5e-324",
            "--message-mb must lie between 0.001 and 4,295 megabytes, not 5e-324.",
        ),
    ],
)
def test_the_right_reason_is_given(place, tmp_path, option, said):
    words = ROLES["plan"].format(place, tmp_path)
    done = CliRunner().invoke(main, ["plan", *words.split(), option])
    assert done.output.splitlines()[-1] == f"Error: {said}"


def test_a_search_on_record_looks_at_its_budget_all_the_same(place, tmp_path, monkeypatch):
    monkeypatch.setenv(STATE, str(tmp_path / "state"))
    words = ROLES["schema domains"]
    good("schema domains", words.format(place, tmp_path / "one"))
    again = ["schema", "domains", *words.format(place, tmp_path / "two").split()]
    for option, said in {
        "--delta=nan": "delta must be at least 1e-300 and below 1, not nan.",
        "--epsilon=1e-10": "at an epsilon between 1e-09 and 1000, not 1e-10.",
        "--records-per-person=65": "A person has 1 to 64 records in a plan, not 65.",
    }.items():
        assert said in refused(again, [option])


def test_the_smallest_delta_is_still_composed(place, tmp_path):
    """By Rényi divergences where distributions of losses do not reach so far."""
    words = ROLES["plan"].format(place, tmp_path)
    done = CliRunner().invoke(main, ["plan", *words.split(), "--delta=1e-300"])
    assert done.exit_code == 0, done.output
    assert "at delta 1e-300" in done.output


# What Python gives beside texts of the command line.
OBJECTS = [*NUMBERS, "text", "", None, True, np.float64("nan"), np.int64(-1), 10**400, [1], b"1"]
SCHEMA = schema_of(one={"a": 2, "b": 3})
ROWS = pa.table({"a": [0, 1] * 50, "b": [0, 2] * 50})


def plan_options(**given):
    return make_plan(
        schema_of(one=(2,), two=(3,)),
        given.pop("epsilon", 1.0),
        PlanOptions(**({"expected_records": 300, "even_if_useless": True} | given)),
    )


OF_PLAN = ("epsilon", "expected_records", "delta", "tau", "keys", "message_bytes", "shares")
OF_PLAN += ("collusion_epsilon", "records_per_person", "domain_share", "encoder", "workload")
CALLS = {
    **{f"plan {name}": lambda _, v, n=name: plan_options(**{n: v}) for name in OF_PLAN},
    **{
        f"run {name}": lambda _, v, n=name: RunOptions(**{n: v})
        for name in ("rows", "seed", "num_threads")
    },
    **{
        f"evaluation {name}": lambda _, v, n=name: EvaluationOptions(**{n: v})
        for name in ("ways", "marginals", "seed")
    },
    **{
        f"fitting {name}": lambda _, v, n=name: FitOptions(**{n: v})
        for name in (field.name for field in fields(FitOptions))
    },
    **{
        f"read {name}": lambda _, v, n=name: ReadOptions(**{n: v})
        for name in ("delimiter", "encoding", "id_format", "person")
    },
    "fit epsilon": lambda _, v: Synthesizer(SCHEMA).fit(ROWS, epsilon=v),
    "fit planning": lambda _, v: Synthesizer(SCHEMA, planning=v).fit(ROWS, epsilon=1),
    "trial epsilon": lambda _, v: synthesize(ROWS, None, v, schema=SCHEMA),
    "sample rows": lambda model, v: next(iter(model.pieces(v)), None),
    "sample seed": lambda model, v: model.sample(5, seed=v),
    "sample given": lambda model, v: model.sample(5, given={"smoker": v}),
    "draws m": lambda model, v: next(model.draws(v, 5)),
    "draws seed": lambda model, v: next(model.draws(2, 5, seed=v)),
    "together delta": lambda model, v: Ledger.together([model.ledger], v).epsilon,
    "group epsilon": lambda model, v: model.ledger.group_epsilon(v),
}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of Linux")
@pytest.mark.parametrize("name", CALLS)
def test_every_number_through_python_ends_well_or_in_a_typed_error(place, bounded, name):
    model = Model.load(place / "made.model")
    for value in OBJECTS:
        try:
            CALLS[name](model, value)
        except VertiMRFError as error:
            said = str(error)
        except Exception as error:
            raise AssertionError(f"{name} of {value!r}: {error!r}") from error
        else:
            continue
        assert said.endswith("."), (value, said)

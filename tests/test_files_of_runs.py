"""Every file that the product writes: `inspect` names it, and nothing in it that is odd ends a command without a sentence."""

import copy
import json
import re
import shutil
import tomllib

import pytest
import tomli_w
from commands import ROLES, good, refused, run, workspace

from vertimrf import Ledger, OpenSchema, Plan, Schema, VertiMRFError
from vertimrf.cli.inspect import describe
from vertimrf.files.state import STATE
from vertimrf.plan.summary import summary
from vertimrf.report.run import Run
from vertimrf.runs.exchange import Exchange, take_turn
from vertimrf.runs.party_run import PartyRun
from vertimrf.runs.server_run import ServerRun

# What `inspect` begins with, by the end of a file's path.
FILES = {
    r"\.lock|domains/lock": "The lock of a folder",
    r"accepted/plan": "The acceptance of the plan ",
    r"accepted/table": "The settings, and the time, of the table that a plan was accepted for",
    r"align\.ids": "An id sample, sealed for insurer",
    r"bench\.json": "Figures of `vertimrf bench`",
    r"domains/found\.json": "The record of the domains found on this machine: private",
    r"before/key": "The key of this machine's record of domains: private",
    r"domains/key": "The key of this machine's record of domains: private",
    r"evaluate\.json": "An evaluation against the real tables",
    r"in\.exchange": "Why a run refused a file:\n  It is",
    r"left-out": "What a party left out, 0 lines: private",
    r"ledger\.json": "party ",
    r"long\.csv|hospital\.csv|insurer\.csv|made\.csv|synthetic\.parquet": "A table of ",
    r"long\.v\.txt": "A list of 256 values",
    r"made\.csv\.label\.json": "The privacy label of a table.\nPrivate ",
    r"made\.json|report\.json": "A report: ",
    r"made\.model|result/model": "A model of ",
    r"private\.toml": "A schema of 1 attributes.\n  hospital: ward .1.\n  to be found with noise: ward",
    r"of\.parties": "The parties of an exchange, public: hospital, insurer",
    r"price\.json": "What plans spend on a person",
    r"received/plan|server/(hospital/|insurer/)?plan": "A plan, fingerprint ",
    r"report\.html": "A page about a run",
    r"secret": "A secret, fingerprint ",
    r"server/run\.toml": "The settings of the run of a server: epsilon 1, 300 expected",
    r"server/run\.toml\.first": "The settings of the run of a server with which it began: eps",
    r"\w+\.run/run\.toml": "The settings of the run of a party: '(hospital|insurer)', table /",
    r"\w+\.run/run\.toml\.first": "The settings of the run of a party with which it began",
    r"state\.json": "The state of a run",
    r"stopped": "Why a run stopped:\n  The disk is full",
    r"waiting": "What a run waits for, and what is in the way",
    r".*/envelopes": "Envelopes, public, for insurer",
    r".*/key": "The private key of ",
    r".*/match": "A match, public, under the plan .*: by the messages",
    r".*/message": "A sealed party message, ",
    r".*/offer": "The offer of ",
    r".*\.release": "A release record, ",
    r".*\.toml": "A schema of ",
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """All files that commands write, beside a finished run and its exchange."""
    folder = tmp_path_factory.mktemp("files") / "all"
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(STATE, str(folder / "state"))
        workspace(folder)
        for command in ("align", "report", "schema domains", "schema draft", "schema merge"):
            good(command, ROLES[command].format(folder, folder / command.replace(" ", "-"), ""))
        for command, name in {"bench": "bench", "plan": "ledger", "status": "state"}.items():
            good(command, ROLES[command].format(folder, ""), "--json", folder / f"{name}.json")
        good("evaluate", ROLES["evaluate"].format(folder), "--json", folder / "evaluate.json")
        price = f"--records-per-person 2 --json {folder}/price.json"
        good("plan", folder / "server" / "plan", price)
        values = "\n".join(f"{i},v{i % 256:03}" for i in range(2560))
        (folder / "long.csv").write_text(f"id,v\n{values}\n")
        good(f"schema draft {folder}/long.csv --id id --out {folder}/long.toml")
        (folder / "exchange").mkdir()
        roles = [PartyRun(folder / f"{name}.run") for name in ("hospital", "insurer")]
        for role in (*roles, ServerRun(folder / "server"), *roles):
            take_turn(role, Exchange(folder / "exchange"))
    (folder / "server" / "refused").mkdir()
    (folder / "server" / "refused" / "in.exchange").write_text("It is a link.")
    (folder / "server" / "stopped").write_text("The disk is full.")
    return folder


def test_inspect_names_every_file(place):
    met = set()
    for path in sorted(path for path in place.rglob("*") if path.is_file()):
        wanted = next(
            (ending for ending in FILES if re.search(rf"(^|/)({ending})$", str(path))), None
        )
        assert wanted is not None, f"{path} is of no kind that is listed here"
        met.add(wanted)
        said = describe(path)
        assert re.match(FILES[wanted], said), (str(path), said[:200])
        assert len(said.splitlines()[0]) < 300
    assert met == set(FILES)
    shown = good("inspect", place / "server" / "match")
    assert "schema" not in shown


def test_what_is_none_of_them_is_said_to_be_none(place, tmp_path):
    for name, content in {
        "list.txt": "a\nb",
        "key": "x" * 31,
        "lock": "x",
        "page.html": "<!doctype html><p>of others",
        "match": '{"plan": "ab", "few": "yes"}',
    }.items():
        (tmp_path / name).write_text(content)
        assert (
            "is no file of this library" in refused("inspect", tmp_path / name) or name == "match"
        )
    # A domain of two columns that are called so.
    (tmp_path / "domain.json").write_text('{"plan": 2, "few": 3}')
    assert "A schema of 2 attributes" in good("inspect", tmp_path / "domain.json")


ODD = ["", "text", "a\0b", -1, 0, 5e-324, 1e300, float("inf"), float("nan"), 2**63, 10**30, True]
ODD += [[], ["x"], {}, {"a": 1}, [10**30], tomllib.loads("at = 2020-01-01")["at"]]


def settings_edits(content):
    """Settings with one that is missing or odd, and none at all."""
    yield "empty", {}
    yield "unknown", content | {"colour": 1}
    for name in content:
        yield f"without {name}", {key: value for key, value in content.items() if key != name}
        for value in ODD:
            yield f"{name} = {value!r}", content | {name: value}


@pytest.mark.parametrize("name", ["hospital.run", "server"])
def test_settings_that_are_odd_are_refused_in_a_sentence(place, tmp_path, name, monkeypatch):
    monkeypatch.setenv(STATE, str(tmp_path / "state"))
    folder = tmp_path / name
    shutil.copytree(place / name, folder)
    shutil.rmtree(folder / "refused", ignore_errors=True)
    sound = tomllib.loads((folder / "run.toml").read_text())
    for what, content in settings_edits(sound):
        (folder / "run.toml").write_text(tomli_w.dumps(content))
        for command in (f"status {folder}", f"inspect {folder}/run.toml"):
            done = run(command)
            assert done.exit_code in (0, 2), (what, done.output, done.exception)
            assert done.exit_code == 0 or done.output.count("Error: ") == 1, (what, done.output)
            assert "None" not in done.output or done.exit_code == 0, (what, done.output)
    for content in ("", "epsilon = 1", 'role = "referee"', "role = 1"):
        (folder / "run.toml").write_text(content)
        said = refused(f"status {folder}")
        assert f'{folder}/run.toml does not say role = "party" or role = "server"' in said
        assert "copy run.toml.first over it" in said
        assert "does not say role" in refused(f"inspect {folder}/run.toml")


def leaves(content, path=()):
    """Paths to numbers in a JSON value, of lists the first entries alone."""
    if isinstance(content, dict):
        for key, value in content.items():
            yield from leaves(value, (*path, key))
    elif isinstance(content, list):
        for i, value in enumerate(content[:6]):
            yield from leaves(value, (*path, i))
    elif isinstance(content, int | float):
        yield path


def put(content, path, value):
    content = copy.deepcopy(content)
    inner = content
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    return content


SCHEMA = """
ids = "999"
ids_source = "codebook"
rules = ["low <= high"]
[[party]]
name = "a"
[[party.attribute]]
name = "low"
bounds = [0, 10]
bins = 5
missing = true
[[party.attribute]]
name = "high"
edges = [0, 2.5, 5, 7.5, 10]
[[party.attribute]]
name = "codes"
codes = 3
[[party.attribute]]
name = "day"
calendar = "date"
bounds = ["2020-01-01", "2020-12-31"]
bins = 12
[[party.attribute]]
name = "values"
values = [1, 2, 3]
[[impossible]]
codes = 1
values = 2
"""
EXTREME = [0, -1, -0.0, 5e-324, 1e-320, float("inf"), -float("inf"), float("nan"), 1e300]
EXTREME += [2**31, 2**63, 10**30, 10**400, "text", "", None, True]


def readers(place):
    """By kind of file, its content and what reads it."""
    closed = Schema.load(place / "schema-domains.toml")
    plan = Plan.load(place / "server" / "plan")
    report = json.loads((place / "made.json").read_text())
    return {
        "schema": (tomllib.loads(SCHEMA), lambda c: Schema.from_json(c).remarks()),
        "open schema": (tomllib.loads(SCHEMA), OpenSchema.from_json),
        "schema with what it spent": (closed.to_json(), Schema.from_json),
        "plan": (plan.to_json(), lambda c: summary(Plan.from_json(c))),
        "ledger": (plan.ledger().to_json(), lambda c: Ledger.from_json(c).table()),
        "report": (report, lambda c: matched(place, c)),
    }


def matched(place, content):
    from vertimrf.named_model import Model

    return Run.matched(Model.load(place / "made.model"), content, "The report")


@pytest.mark.parametrize(
    "kind", ["schema", "open schema", "schema with what it spent", "plan", "ledger", "report"]
)
def test_every_number_in_a_file_may_be_odd(place, kind):
    content, read = readers(place)[kind]
    paths = list(leaves(content))
    assert len(paths) > 3
    for path in paths:
        for value in EXTREME:
            try:
                read(put(content, path, value))
            except VertiMRFError as error:
                assert str(error).endswith((".", "…")) or "…" in str(error), (path, value, error)  # noqa: PT017
            except Exception as error:
                raise AssertionError(f"{path} = {value!r}: {error!r}") from error


def test_inspect_of_odd_numbers_is_one_sentence(place, tmp_path):
    """The same from a file, of the numbers that JSON and TOML can hold."""
    sections = tomllib.loads(SCHEMA)
    for number, path in enumerate(leaves(sections)):
        for value in (float("nan"), float("inf"), 10**30, -1, 5e-324):
            file = tmp_path / f"{number}.toml"
            file.write_text(tomli_w.dumps(put(sections, path, value)))
            done = run("inspect", file)
            assert done.exit_code in (0, 2), (path, value, done.exception)
            assert done.exit_code == 0 or done.output.startswith("Error: "), done.output

"""Encrypted counts of several parties in run folders: what is done once, and a server at a party."""

import itertools
from collections import Counter
from pathlib import Path

import pytest
from builders import schema_of
from conversation import Conversation, files_of

from vertimrf.files.state import STATE
from vertimrf.party import encrypted_counts
from vertimrf.party.party import Party
from vertimrf.plan.options import PlanOptions
from vertimrf.runs.exchange import Exchange, take_turn
from vertimrf.runs.files import between

THREE = schema_of(hospital={"smoker": 2, "ward": 3}, insurer={"tariff": 3}, registry={"region": 4})
PLANNING = PlanOptions(expected_records=300, encoder="encrypted")


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "start"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(STATE, str(folder / "state"))
        Conversation.begun(folder, PLANNING, THREE)
    return folder


@pytest.fixture
def run(start, tmp_path, monkeypatch):
    """A copy of it; the parties' tables stay where they were."""
    monkeypatch.setenv(STATE, str(tmp_path / "run" / "state"))
    return Conversation.copied(start, tmp_path / "run")


@pytest.fixture
def calls(monkeypatch):
    """How often each party read its table, measured it, digested it and encrypted it."""
    seen = Counter()
    for name in ("encode", "_local"):
        method = getattr(Party, name)

        def watched(self, *given, name=name, method=method):
            seen[self._name, name] += 1
            return method(self, *given)

        monkeypatch.setattr(Party, name, watched)
    encrypt = encrypted_counts.encrypt_rows

    def encrypted(*given):
        seen["all", "encrypt_rows"] += 1
        return encrypt(*given)

    monkeypatch.setattr(encrypted_counts, "encrypt_rows", encrypted)
    return seen


def test_three_parties_read_measure_and_encrypt_once(run, calls):
    run.play()
    names = THREE.party_names
    once = {(name, what): 1 for name, what in itertools.product(names, ("encode", "_local"))}
    # The last party encrypts nothing.
    assert calls == once | {("all", "encrypt_rows"): 2}
    plan = run.server.plan
    files = {file.name: file for file in between(plan)}
    assert sorted(files) == [
        *("answers-2-1", "answers-3-1", "answers-3-2"),
        *("rows-1-2", "rows-1-3", "rows-2-3"),
    ]
    opened = [
        files[name].open(
            plan,
            run.parties[reader]._folder.key,
            run.parties[reader].folder.joinpath("received", name).read_bytes(),
        )
        for name, reader in (("rows-1-2", "insurer"), ("rows-1-3", "registry"))
    ]
    assert opened[0] == opened[1]


def test_a_party_without_varying_columns_exchanges_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv(STATE, str(tmp_path / "state"))
    schema = schema_of(
        hospital={"smoker": 2, "ward": 3}, insurer={"all": 1}, registry={"region": 4}
    )
    run = Conversation.begun(tmp_path / "run", PLANNING, schema).play()
    plan = run.server.plan
    assert [file.name for file in between(plan)] == ["rows-1-3", "answers-3-1"]


def test_after_a_failure_a_party_reads_its_table_again(run):
    """The operator corrects it while the process waits."""
    _, insurer, _ = run.parties.values()
    table = Path(insurer.settings.table)
    whole = table.read_text()
    rows = run.parties["hospital"].advance({})
    try:
        table.write_text("\n".join(whole.splitlines()[:-1]) + "\n")
        with pytest.raises(Exception, match="do not hold the same ids"):
            insurer.advance({"rows-1-2": rows["rows-1-2"]})
    finally:
        table.write_text(whole)
    assert not insurer._releases.made(insurer._agreed.digest(), 1, "answers-2-1")
    assert "answers-2-1" in insurer.advance({})


def test_a_server_at_a_party_needs_no_third_machine(tmp_path, monkeypatch):
    """Two machines with state folders of their own. One of them has the server, and sees no more of the other's files."""
    two = schema_of(hospital={"smoker": 2, "ward": 3}, insurer={"tariff": 3})
    run = Conversation.make(tmp_path / "run", planning=PLANNING, schema=two)
    hospital, insurer = run.parties.values()
    place = tmp_path / "exchange"
    place.mkdir()
    for _ in range(12):
        for machine, roles in (("one", [run.server, hospital]), ("two", [insurer])):
            monkeypatch.setenv(STATE, str(tmp_path / machine))
            for role in roles:
                take_turn(role, Exchange(place))
        for name in run.parties:
            run.accept(name)
        if run.done:
            break
    assert len(list((tmp_path / "one").rglob("*.release"))) == 2
    assert len(list((tmp_path / "two").rglob("*.release"))) == 2
    seen = b"".join([*files_of(run.server.folder).values(), *files_of(hospital.folder).values()])
    secret = (insurer.folder / "key").read_bytes()
    assert secret not in seen

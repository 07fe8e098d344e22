"""Encrypted counts in run folders: the order of files, what the relay sees, and what is refused."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from commands import refused
from conversation import Conversation, files_of

from vertimrf.errors import MessageError, PrivacyError
from vertimrf.files import container
from vertimrf.files.state import STATE
from vertimrf.keys import seal
from vertimrf.plan.options import PlanOptions
from vertimrf.runs.files import between
from vertimrf.runs.party_run import PartyRun

ROWS, ANSWERS = "rows-1-2", "answers-2-1"
# Room for headers and tags beside the ciphertexts, bytes.
SLACK = 1 << 17


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    """Folders of a run whose secret has come to everybody. Nothing was released."""
    folder = tmp_path_factory.mktemp("runs") / "start"
    planning = PlanOptions(expected_records=300, encoder="encrypted")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(STATE, str(folder / "state"))
        Conversation.begun(folder, planning)
    return folder


@pytest.fixture
def run(start, tmp_path, monkeypatch):
    return copied(start, tmp_path / "run", monkeypatch)


def copied(start, folder, patch):
    patch.setenv(STATE, str(folder / "state"))
    return Conversation.copied(start, folder)


def test_a_whole_run_of_encrypted_counts(run):
    """Each role's view: lengths follow from the plan, and the relay can open nothing between parties."""
    plan = run.server.plan
    hospital, insurer = run.parties.values()
    rows, answers = between(plan)
    assert (rows.name, answers.name) == (ROWS, ANSWERS)
    first = hospital.advance({})
    assert "message" not in first
    least = plan.sketch.layout(plan.groups_of(0)).row_bytes
    assert least < len(first[ROWS]) <= rows.max_bytes < least + SLACK
    assert [step.name for step in hospital.state().waits_for] == ["answers of others"]
    # Without rows, the other party has no answer. It could not give the message either.
    assert ANSWERS not in insurer.advance({})
    relayed = run.server.advance({"hospital": first})["insurer"]
    assert relayed[ROWS] == first[ROWS]
    second = insurer.advance(relayed)
    assert len(second[ANSWERS]) <= answers.max_bytes
    with pytest.raises(MessageError, match=r"is for 'hospital'|is of another plan or party"):
        answers.open(plan, insurer._folder.key, first[ROWS])
    again = run.again().play()
    # The same bytes again, at any time.
    given = again.parties["hospital"].outgoing()
    assert given[ROWS] == first[ROWS]
    assert again.parties["insurer"].outgoing()[ANSWERS] == second[ANSWERS]
    key = (hospital.folder / "counting-key").read_bytes()
    assert (hospital.folder / "counting-key").stat().st_mode & 0o077 == 0
    assert not (insurer.folder / "counting-key").exists()
    seen = b"".join(files_of(run.server.folder).values())
    public = int.from_bytes(hospital._counting_key().public.to_bytes(), "little")
    for number in (key[-300:-40], public.to_bytes(384, "little")):
        assert number not in seen


def received(run):
    """The length of everything that each role receives, by role and name."""
    hospital, insurer = run.parties.values()
    rows = hospital.advance({})
    for_insurer = run.server.advance({"hospital": rows})["insurer"]
    answers = insurer.advance(for_insurer)
    for_hospital = run.server.advance({"insurer": answers})["hospital"]
    message = hospital.advance(for_hospital)
    views = {"server": message | answers, "hospital": for_hospital, "insurer": for_insurer}
    # How long a message is follows from noisy figures: test_lengths.py.
    return {
        role: {name: len(data) * (name != "message") for name, data in files.items()}
        for role, files in views.items()
    }


def test_every_role_receives_as_much_whatever_is_in_the_tables(start, tmp_path, monkeypatch):
    """One plan; tables that differ in one person, and altogether."""
    seen = []
    for number, changed in enumerate((0, 1, 300)):
        run = copied(start, tmp_path / str(number), monkeypatch)
        for party in run.parties.values():
            head, *lines = Path(party.settings.table).read_text().splitlines()
            others = [line.split(",")[0] + ",0" * line.count(",") for line in lines[:changed]]
            table = tmp_path / f"{number}-{party.name}.csv"
            table.write_text("\n".join([head, *others, *lines[changed:]]))
            replace_table(party, table)
        seen.append(received(run.again()))
    assert seen[0] == seen[1] == seen[2]
    assert {ROWS, ANSWERS} < set(seen[0]["server"])


def replace_table(party, table):
    settings = (party.folder / "run.toml").read_text()
    (party.folder / "run.toml").write_text(settings.replace(party.settings.table, str(table)))


def test_rows_of_another_run_or_altered_ones_are_refused(run):
    hospital, insurer = run.parties.values()
    first = hospital.advance({})[ROWS]
    altered = first[:-1] + bytes([first[-1] ^ 1])
    for wrong, sentence in (
        (altered, "cannot be opened"),
        (first + bytes(SLACK), "at most"),
        (b"rows", "is not a sealed"),
    ):
        insurer.advance({ROWS: wrong})
        assert sentence in " ".join(insurer.state().refused)
        assert not insurer._has("insurer", ROWS)
    other = replace(hospital._agreed, nonce="other")
    with pytest.raises(MessageError, match="is of another plan or party"):
        between(other)[0].check(other, first)
    # The relay looks at the head alone.
    run.server.advance({"insurer": {ANSWERS: first[:60_000]}})
    assert "of another plan or party" in " ".join(run.server.state().refused)


# What else is wrong with ciphertexts is refused alike: tests/party/test_encrypted_counts.py.
WRONG = [
    ("ciphertexts, and this plan has", lambda array: array[1:]),
    ("lacks its", lambda array: array.view(np.uint16)),
]


@pytest.mark.parametrize(
    "name, sentence, change",
    [
        *((name, *wrong) for name in ("rows", "answers") for wrong in WRONG),
        (
            "key",
            "is no Paillier key of this version (its modulus has a small factor)",
            lambda a: a & 254,
        ),
        ("answers", "was made under another key", lambda a: a & 0 | 7),
    ],
)
def test_nonsense_that_a_party_seals_is_one_sentence_to_the_other(
    run,
    name,
    sentence,
    change,
):
    """It is refused when it comes, and with the right file the run goes on. Another key is seen when answers are opened: exit code 2."""
    plan, (hospital, insurer) = run.server.plan, run.parties.values()
    data = hospital.advance({})[ROWS]
    sent, sender, receiver, gives = between(plan)[0], hospital, insurer, ANSWERS
    if name == "answers":
        data = insurer.advance({ROWS: data})[ANSWERS]
        sent, sender, receiver, gives = between(plan)[1], insurer, hospital, "message"
    content = sent.open(plan, receiver._folder.key, data)
    kind, header, arrays = container.peek(content, "it")
    wrong = container.pack(kind, header, arrays | {name: change(arrays[name])})
    keys = plan.sealing_keys(), sender._folder.key
    sealed = seal(wrong, sent.kind, plan.digest(), *keys, receiver.name)
    if "another key" in sentence:
        with pytest.raises(MessageError):
            receiver.advance({sent.name: sealed})
        assert sentence in refused("run party", receiver.folder)
        (receiver.folder / "received" / sent.name).unlink()
    else:
        receiver.advance({sent.name: sealed})
        assert sentence in " ".join(receiver.state().refused)
        assert not receiver._has(receiver.name, sent.name)
    assert gives not in receiver.outgoing()
    given = receiver.advance({sent.name: data})[gives]
    assert not receiver.state().refused
    # Another file under the same plan gets no second release.
    (receiver.folder / "received" / sent.name).unlink()
    again = seal(content + wrong, sent.kind, plan.digest(), *keys, receiver.name)
    assert receiver.advance({sent.name: again})[gives] == given


def test_different_people_are_one_sentence(run, tmp_path):
    hospital, insurer = run.parties.values()
    table = tmp_path / "fewer.csv"
    lines = Path(insurer.settings.table).read_text().splitlines()
    table.write_text("\n".join(lines[:-1]) + "\n")
    replace_table(insurer, table)
    insurer = PartyRun(insurer.folder)
    with pytest.raises(MessageError, match=r"do not hold the same ids.*plan with count sketches"):
        insurer.advance({ROWS: hospital.advance({})[ROWS]})
    assert ANSWERS not in insurer.outgoing()
    assert "do not hold the same ids" in str(insurer.state().stopped)


def test_rows_and_message_are_of_one_table(run, tmp_path):
    """A table that changed after its rows were given is refused."""
    hospital, insurer = run.parties.values()
    rows = hospital.advance({})[ROWS]
    answers = insurer.advance({ROWS: rows})[ANSWERS]
    table = tmp_path / "changed.csv"
    lines = Path(hospital.settings.table).read_text().splitlines()
    ids, smoker, ward = lines[1].split(",")
    table.write_text("\n".join([lines[0], f"{ids},{1 - int(smoker)},{ward}", *lines[2:]]) + "\n")
    replace_table(hospital, table)
    changed = PartyRun(hospital.folder)
    with pytest.raises(PrivacyError, match="rows-1-2 was released already"):
        changed.advance({ANSWERS: answers})
    assert "message" not in changed.outgoing()

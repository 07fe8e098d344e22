"""Encrypted counts in run folders: the order of files, what the relay sees, what is done once, and what is refused."""

import itertools
import os
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from builders import schema_of
from commands import refused
from conversation import SCHEMA, Conversation, files_of, said

from vertimrf.errors import MessageError, PrivacyError
from vertimrf.files import container
from vertimrf.files.state import STATE
from vertimrf.keys import seal
from vertimrf.party.party import Party
from vertimrf.plan.options import PlanOptions
from vertimrf.releases.encrypted_counts import encoding as encrypted_counts
from vertimrf.releases.encrypted_counts import packing
from vertimrf.runs.exchange import Exchange, take_turn
from vertimrf.runs.files import between
from vertimrf.runs.party_run import PartyRun

THREE = schema_of(hospital={"smoker": 2, "ward": 3}, insurer={"tariff": 3}, registry={"region": 4})
PLANNING = PlanOptions(expected_records=300, encoder="encrypted")
IDS, AGAIN = "ids", "ids-again"
ROWS, ANSWERS = "rows-1-2", "answers-2-1"
# Room for headers and tags beside the ciphertexts, bytes.
SLACK = 1 << 17


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    """Makes folders of a run once for each schema: the secret has come to everybody, and unless it is early, ids were compared.
    Nothing was released."""

    @cache
    def make(schema=SCHEMA, early=True):
        folder = tmp_path_factory.mktemp("runs") / "start"
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(STATE, str(folder / "state"))
            if early:
                Conversation.begun(folder, PLANNING, schema)
            else:
                compared(Conversation.copied(make(schema), folder))
        return folder

    return make


@pytest.fixture
def copied(start, tmp_path, monkeypatch):
    """Gives a copy of such a run, on a machine of its own; its parties have compared their ids unless they are ``early``."""

    def copy(schema=SCHEMA, name="run", early=False):
        monkeypatch.setenv(STATE, str(tmp_path / name / "state"))
        return Conversation.copied(start(schema, early), tmp_path / name)

    return copy


def compared(run):
    """Ids in both directions, and back; nothing else."""
    for kind in (IDS, AGAIN):
        sent = {
            name: files_with(party.advance({}), kind + "-") for name, party in run.parties.items()
        }
        back = run.server.advance(sent)
        for name, party in run.parties.items():
            for file, data in files_with(back[name], kind + "-").items():
                party._take(name, file, data)
    return run


@pytest.fixture
def run(copied):
    return copied()


@pytest.fixture
def three(copied):
    return copied(THREE)


def test_a_whole_run_of_encrypted_counts(run):
    """Each role's view: lengths follow from the plan, and the relay can open nothing between parties."""
    plan = run.server.plan
    hospital, insurer = run.parties.values()
    *ids, rows, answers = between(plan)
    assert [file.name for file in ids] == ["ids-1-2", "ids-2-1", "ids-again-1-2", "ids-again-2-1"]
    assert (rows.name, answers.name) == (ROWS, ANSWERS)
    first = hospital.advance({})
    assert "message" not in first
    least = plan.sketch.layout(plan.groups_of(0)).piece_bytes(0)
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
    # The private key's seed, before the checksum of its file.
    assert key[-64:-32] == hospital._counting_key().seed
    assert key[-64:-32] not in seen


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


def test_every_role_receives_as_much_whatever_is_in_the_tables(copied, tmp_path):
    """One plan; tables that differ in one person, and altogether."""
    seen = []
    for number, changed in enumerate((0, 1, 300)):
        run = copied(name=str(number), early=True)
        for party in run.parties.values():
            head, *lines = Path(party.settings.table).read_text().splitlines()
            others = [line.split(",")[0] + ",0" * line.count(",") for line in lines[:changed]]
            table = tmp_path / f"{number}-{party.name}.csv"
            table.write_text("\n".join([head, *others, *lines[changed:]]))
            replace_table(party, table)
        seen.append(received(compared(run.again())))
    assert seen[0] == seen[1] == seen[2]
    assert {ROWS, ANSWERS, "ids-2-1", "ids-again-2-1"} < set(seen[0]["server"])


def replace_table(party, table):
    settings = (party.folder / "run.toml").read_text()
    (party.folder / "run.toml").write_text(settings.replace(party.settings.table, str(table)))
    party.accept(party.plan.fingerprint)


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
        assert sentence in said(insurer)
        assert not insurer._has("insurer", ROWS)
    other = replace(hospital._agreed, nonce="other")
    with pytest.raises(MessageError, match="is of another plan or party"):
        between(other)[0].check(other, first)
    # The relay looks at the head alone.
    run.server.advance({"insurer": {ANSWERS: first[:60_000]}})
    assert "of another plan or party" in said(run.server)


# What else is wrong with ciphertexts is refused alike: tests/releases/encrypted_counts/test_encrypted_counts.py.
WRONG = [
    ("numbers, and this plan has", lambda array: array[1:]),
    ("lacks its", lambda array: array.view(np.uint16)),
]


@pytest.mark.parametrize(
    "name, sentence, change",
    [
        *((name, *wrong) for name in ("rows", "vectors") for wrong in WRONG),
        ("seed", "has no seed of 32 bytes", lambda array: array[4:]),
        ("sums", "was made under another key", lambda array: array & 127),
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
    sent, sender, receiver, gives = between(plan)[-2], hospital, insurer, ANSWERS
    if name in ("vectors", "sums"):
        data = insurer.advance({ROWS: data})[ANSWERS]
        sent, sender, receiver, gives = between(plan)[-1], insurer, hospital, "message"
    content = sent.open(plan, receiver._folder.key, data)
    kind, header, arrays = container.peek(content, "it")
    wrong = container.pack(kind, header, arrays | {name: change(arrays[name])})
    keys = plan.sealing_keys(), sender._folder.key
    sealed = seal(wrong, sent.kind, plan.digest(), *keys, receiver.name)
    if "another key" in sentence:
        with pytest.raises(
            MessageError,
            match=rf"'{sender.name}' sent what cannot be opened.*received/answers-\*",
        ):
            receiver.advance({sent.name: sealed})
        assert sentence in refused("run party", receiver.folder)
        (receiver.folder / "received" / sent.name).unlink()
    else:
        receiver.advance({sent.name: sealed})
        assert sentence in said(receiver)
        assert not receiver._has(receiver.name, sent.name)
    assert gives not in receiver.outgoing()
    given = receiver.advance({sent.name: data})[gives]
    assert not said(receiver)
    # Another file under the same plan gets no second release.
    (receiver.folder / "received" / sent.name).unlink()
    again = seal(content + wrong, sent.kind, plan.digest(), *keys, receiver.name)
    assert receiver.advance({sent.name: again})[gives] == given


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


def test_rows_and_answers_wait_for_the_word_on_a_table_written_since(run, tmp_path):
    hospital, insurer = run.parties.values()
    first = {}
    for party, name, came in ((hospital, ROWS, {}), (insurer, ANSWERS, first)):
        table = tmp_path / f"{party.name}.csv"
        table.write_bytes(Path(party.settings.table).read_bytes())
        replace_table(party, table)
        os.utime(table, (1, 1))
        assert name not in party.advance(came)
        assert "you" in [step.on for step in party.state().waits_for]
        party.accept(run.server.plan.fingerprint)
        given = party.advance(came)
        assert name in given
        first |= {ROWS: given.get(ROWS)}


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


def test_three_parties_read_measure_and_encrypt_once(copied, calls):
    run = copied(THREE, early=True).play()
    names = THREE.party_names
    once = {(name, what): 1 for name, what in itertools.product(names, ("encode", "_local"))}
    # The last party encrypts nothing.
    assert calls == once | {("all", "encrypt_rows"): 2}
    plan = run.server.plan
    files = {file.name: file for file in between(plan)}
    assert sorted(files) == [
        *("answers-2-1", "answers-3-1", "answers-3-2"),
        *(
            f"{kind}-{one}-{two}"
            for kind in (IDS, AGAIN)
            for one, two in itertools.permutations((1, 2, 3), 2)
        ),
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


def test_rows_in_pieces_go_on_after_a_process_was_killed(run, calls, monkeypatch):
    """Each piece is a file on record: those that are there are given again, and are not made again."""
    monkeypatch.setattr(packing, "PIECE_BYTES", 1)
    hospital, insurer = run.parties.values()
    encrypted = encrypted_counts.encrypt_rows

    def killed(*given):
        if given[-1]:
            raise KeyboardInterrupt
        return encrypted(*given)

    with monkeypatch.context() as patch:
        patch.setattr(encrypted_counts, "encrypt_rows", killed)
        with pytest.raises(KeyboardInterrupt):
            hospital.advance({})
    assert [file.name for file in between(run.server.plan)][4:] == [ROWS, f"{ROWS}-2", ANSWERS]
    assert list(files_with(PartyRun(hospital.folder).outgoing(), "rows")) == [ROWS]
    first = PartyRun(hospital.folder).outgoing()[ROWS]
    rows = PartyRun(hospital.folder).advance({})
    assert calls["all", "encrypt_rows"] == 2
    assert rows[ROWS] == first
    # The answer waits for all pieces, which may come one by one.
    assert ANSWERS not in insurer.advance({f"{ROWS}-2": rows[f"{ROWS}-2"]})
    assert ANSWERS in insurer.advance({ROWS: rows[ROWS]})
    again = run.again().play()
    assert (again.server.folder / "result").is_dir()


def files_with(files, word):
    return {name: data for name, data in files.items() if name.startswith(word)}


def test_a_party_without_varying_columns_exchanges_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv(STATE, str(tmp_path / "state"))
    schema = schema_of(
        hospital={"smoker": 2, "ward": 3}, insurer={"all": 1}, registry={"region": 4}
    )
    run = Conversation.begun(tmp_path / "run", PLANNING, schema).play()
    plan = run.server.plan
    assert [file.name for file in between(plan)][4:] == ["rows-1-3", "answers-3-1"]
    assert not files_with(run.parties["insurer"].outgoing(), IDS)


@pytest.fixture
def without_one(tmp_path):
    """Lets a party hold one person less."""

    def let(run, name):
        party = run.parties[name]
        table = tmp_path / f"{name}-without.csv"
        table.write_text("\n".join(Path(party.settings.table).read_text().splitlines()[:-1]) + "\n")
        replace_table(party, table)
        return run.again()

    return let


@pytest.mark.parametrize(
    "other",
    ["hospital", *(pytest.param(name, marks=pytest.mark.slow) for name in ("insurer", "registry"))],
)
def test_with_different_people_all_stop_before_anything_is_counted(copied, without_one, other):
    """The one with other people, and all who compare with it, with one sentence. None has sent rows, answers or a message."""
    run = without_one(copied(THREE, early=True), other)
    stopped = {}
    for _ in range(4):
        sent = {}
        for name, party in run.parties.items():
            try:
                sent[name] = party.advance({})
            except MessageError as error:
                stopped[name] = str(error)
                sent[name] = party.outgoing()
        back = run.server.advance(sent)
        for name, party in run.parties.items():
            try:
                party.advance(back[name])
            except MessageError as error:
                stopped[name] = str(error)
    assert set(stopped) == set(run.parties)
    for name, party in run.parties.items():
        assert "do not hold the same ids" in stopped[name]
        assert repr(other) in stopped[name]
        assert "nothing of this plan is spent" in stopped[name]
        assert "make a new plan" in party.state().stopped
        assert {file.rpartition("-")[0][:3] for file in party.outgoing()} <= {"", "ids"}
    assert not [
        f
        for f in files_of(run.server.folder)
        if Path(f).name.startswith(("rows", "answers", "mes"))
    ]


def test_a_table_of_other_people_is_compared_under_a_new_plan_alone(copied, tmp_path):
    """Else a party could try one set of ids after another. A record that does not fit counts, too."""
    run = copied(early=True)
    hospital, insurer = run.parties.values()
    hospital.advance({})
    came = files_with(insurer.advance({}), IDS)
    whole, changed = Path(hospital.settings.table), tmp_path / "changed.csv"
    rows = whole.read_text().splitlines()
    for lines in ([*rows, "900,9,9"], rows[:-1]):
        changed.write_text("\n".join(lines) + "\n")
        replace_table(hospital, changed)
        with pytest.raises(
            PrivacyError, match=r"ids-1-2 was released already, from another.*try out who is in"
        ):
            run.again().parties["hospital"].advance({"ids-2-1": came["ids-2-1"]})
    replace_table(hospital, whole)
    assert compared(run.again()).play().done


def test_a_server_at_a_party_needs_no_third_machine(tmp_path, monkeypatch):
    """Two machines with state folders of their own. One of them has the server, and sees no more of the other's files."""
    run = Conversation.make(tmp_path / "run", planning=PLANNING)
    hospital, insurer = run.parties.values()
    place = tmp_path / "exchange"
    place.mkdir()
    for _ in range(12):
        for machine, roles in (("one", [run.server, hospital]), ("two", [insurer])):
            monkeypatch.setenv(STATE, str(tmp_path / machine))
            for role in roles:
                take_turn(role, Exchange(place))
        run.accept()
        if run.done:
            break
    assert len(list((tmp_path / "one").rglob("*.release"))) == 4
    assert len(list((tmp_path / "two").rglob("*.release"))) == 4
    seen = b"".join([*files_of(run.server.folder).values(), *files_of(hospital.folder).values()])
    secret = (insurer.folder / "key").read_bytes()
    assert secret not in seen

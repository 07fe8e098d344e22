"""The server's side of a run over Flower, against nodes that are played here and a clock that jumps."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import pytest

pytest.importorskip("flwr")

from flwr.app import Error, RecordDict
from folders import PARTIES as THREE
from folders import make_folders

from vertimrf.errors import RunError, UnmatchedError
from vertimrf.flower.client_app import advanced
from vertimrf.flower.conversation import Conversation, Pace
from vertimrf.flower.parcel import Parcel
from vertimrf.runs import waiting
from vertimrf.runs.files import MATCH
from vertimrf.runs.server_run import ServerRun
from vertimrf.runs.state import DONE, WAITS, RunState, StepState
from vertimrf.runs.waiting import Waiting

pytestmark = pytest.mark.usefixtures("within_a_run")

PARTIES = ("hospital", "insurer")


@dataclass(frozen=True)
class Node:
    """What Flower tells of one."""

    node_id: int
    name: str = ""
    last_activated_at: str = "monday"


class PlayedRun:
    """A server's run that has what it wants once every party sent its message; a message of zeros is refused.

    With the last message it says whether ids match, and then fails if it is to.
    """

    parties = PARTIES

    def __init__(self, failure=None):
        self.failure = failure
        self.came = {party: {} for party in PARTIES}
        self.refused = ()
        self.calls = []
        self.waiting = Waiting()

    def advance(self, received):
        for party, files in received.items():
            for name, data in files.items():
                self.calls.append((party, name, data))
                if not any(data):
                    self.refused += (f"The {name} of {party!r} does not open.",)
                else:
                    self.came[party][name] = data
        given = self.outgoing()
        if self.failure and MATCH in given[PARTIES[0]]:
            raise self.failure
        return given

    def outgoing(self):
        given = {
            back: b"the " + back.encode()
            for name, back in (("offer", "plan"), ("message", MATCH))
            if all(name in files for files in self.came.values())
        }
        return dict.fromkeys(PARTIES, given)

    def note(self, troubles, lasted=None):
        self.waiting = self.waiting.troubled(troubles, lasted or {})
        return self.waiting.troubles

    def wants(self):
        return {
            party: {name: 99 for name in ("offer", "message") if name not in files}
            for party, files in self.came.items()
        }

    def state(self):
        steps = [
            StepState(
                "message",
                DONE if "message" in files else WAITS,
                f"the message of {party!r}",
                repr(party),
            )
            for party, files in self.came.items()
        ]
        return RunState("the server", "/run", tuple(steps), self.refused, self.waiting.troubles)


@dataclass
class Played:
    """A party's side: offers at once, and sends its message once it has the plan."""

    name: str
    message: bytes = b"message"
    had: dict[str, bytes] = field(default_factory=dict)
    asked: list[Parcel] = field(default_factory=list)

    def __call__(self, content):
        parcel = Parcel.from_records(content)
        self.asked.append(parcel)
        self.had |= parcel.files
        files = {"offer": b"offer of " + self.name.encode()} | (
            {"message": self.message} if "plan" in self.had else {}
        )
        return Parcel(
            self.name,
            DONE if MATCH in self.had else "message",
            files={name: data for name, data in files.items() if name in parcel.wants},
        )


class PlayedGrid:
    """Flower's way to nodes that answer at the next look. An answer is handed out once."""

    def __init__(self, nodes):
        self.nodes = dict(nodes)
        self.sent = {}
        self.count = 0

    def get_nodes(self):
        return list(self.nodes)

    def push_messages(self, messages):
        out = []
        for message in messages:
            self.count += 1
            self.sent[str(self.count)] = (message.metadata.dst_node_id, message.content)
            out.append(str(self.count))
        return out

    def pull_messages(self, ids):
        out = []
        for sent in ids:
            node_id, content = self.sent[sent]
            node = next((node for node in self.nodes if node.node_id == node_id), None)
            answer = self.nodes[node](content) if node else None
            if answer is None:
                continue
            del self.sent[sent]
            failed = isinstance(answer, Error)
            out.append(
                SimpleNamespace(
                    metadata=SimpleNamespace(reply_to_message_id=sent),
                    has_error=lambda failed=failed: failed,
                    error=answer,
                    content=None if failed else answer.to_records(),
                )
            )
        return out


class Clock:
    """Time passes where somebody sleeps; what is due happens then."""

    def __init__(self):
        self.now = 0.0
        self.due = []

    def sleep(self, seconds):
        self.now += seconds
        for event in [event for event in self.due if event[0] <= self.now]:
            self.due.remove(event)
            event[1]()


def converse(grid, run, clock=None, patience=300.0):
    clock = clock or Clock()
    talk = Conversation(grid, run, Pace(patience=patience), lambda: clock.now, clock.sleep)
    talk.hold()
    return talk


def test_registered_nodes_bring_a_run_to_its_end():
    hospital, insurer, run = Played("hospital"), Played("insurer"), PlayedRun()
    converse(PlayedGrid({Node(7, "hospital"): hospital, Node(9, "insurer"): insurer}), run)
    assert run.state().done
    assert run.came["insurer"] == {"offer": b"offer of insurer", "message": b"message"}
    # What the server has is not sent again.
    assert [name for party, name, _ in run.calls if party == "hospital"] == ["offer", "message"]


def test_nodes_without_a_registered_name_are_asked_who_they_are_and_given_nothing_before():
    parties = {Node(7): Played("hospital"), Node(9): Played("insurer")}
    run = PlayedRun()
    run.came = {name: {"offer": b"offer"} for name in PARTIES}
    converse(PlayedGrid(parties), run)
    assert run.state().done
    for party in parties.values():
        first, second = party.asked[:2]
        assert (first.party, first.files) == ("", {})
        assert (second.party, second.files) == (party.name, {"plan": b"the plan"})


def test_a_node_that_is_not_in_the_plan_is_refused_and_given_nothing(caplog):
    registered, claims = Played("bank"), Played("bank")
    nodes = {
        Node(1, "bank"): registered,
        Node(2): claims,
        Node(7, "hospital"): Played("hospital"),
        Node(9): Played("insurer"),
    }
    converse(PlayedGrid(nodes), PlayedRun())
    assert not registered.asked
    assert [parcel.files for parcel in claims.asked] == [{}]
    assert (
        "Node 2 is refused: 'bank' is no party of this run, whose parties are 'hospital', 'insurer'."
        in caplog.text
    )


def test_a_node_registered_as_one_party_cannot_speak_for_another(caplog):
    run = PlayedRun()
    nodes = {
        Node(7, "hospital"): Played("insurer", b"forged"),
        Node(9, "insurer"): Played("insurer"),
    }
    with pytest.raises(RunError, match="no node of 'hospital' is online"):
        converse(PlayedGrid(nodes), run)
    assert (
        "Node 7 is refused: it is registered as 'hospital' and says that it is 'insurer'."
        in caplog.text
    )
    assert run.came == {"hospital": {}, "insurer": {"offer": b"offer of insurer"}}


def test_of_two_nodes_that_speak_for_a_party_the_second_is_refused(caplog):
    run = PlayedRun()
    second = Played("hospital", b"forged")
    nodes = {Node(7): Played("hospital"), Node(8): second, Node(9): Played("insurer")}
    converse(PlayedGrid(nodes), run)
    assert run.came["hospital"]["message"] == b"message"
    assert "Node 8 is refused: another node that is online speaks for 'hospital'." in caplog.text
    assert [parcel.files for parcel in second.asked] == [{}]


def test_a_file_that_the_run_refuses_costs_its_node_the_seat_and_the_right_one_takes_it():
    clock, run = Clock(), PlayedRun()
    grid = PlayedGrid({Node(7): Played("hospital", bytes(8)), Node(9): Played("insurer")})
    clock.due.append((60.0, lambda: grid.nodes.__setitem__(Node(8), Played("hospital"))))
    converse(grid, run, clock)
    assert run.state().done
    assert run.came["hospital"]["message"] == b"message"


def test_a_node_that_starts_anew_is_asked_again_at_once():
    clock, run = Clock(), PlayedRun()
    dead, alive = Node(7, "hospital"), Node(7, "hospital", "tuesday")
    grid = PlayedGrid({dead: lambda content: None, Node(9, "insurer"): Played("insurer")})

    def restart():
        del grid.nodes[dead]
        grid.nodes[alive] = Played("hospital")

    clock.due.append((30.0, restart))
    converse(grid, run, clock)
    assert clock.now < 60


def test_what_goes_wrong_at_a_node_is_not_repeated_and_it_is_asked_again(caplog):
    caplog.set_level("INFO", "flwr")
    errors = iter([Error(2, "ValueError: 'HIV positive' in row 12"), Error(5)])
    good = Played("hospital")
    run = PlayedRun()
    nodes = {
        Node(7, "hospital"): lambda content: next(errors, None) or good(content),
        Node(9): Played("insurer"),
    }
    converse(PlayedGrid(nodes), run)
    assert run.state().done
    assert "HIV" not in caplog.text
    assert "Node 7 did not answer (Flower's code 2); it is asked again." in caplog.text


def test_that_ids_do_not_match_comes_to_every_node_before_the_run_fails():
    """Also to one whose answer was lost with the error: it came in the same look, behind the last message."""
    hospital, insurer, tries = Played("hospital"), Played("insurer"), []

    def slow(content):
        """Sends its message when the other node is asked once more."""
        answer = insurer(content)
        tries.append(answer)
        return answer if len(tries) != 2 else replace(answer, files={})

    run = PlayedRun(UnmatchedError("Sketches match 0 records."))
    clock = Clock()
    with pytest.raises(UnmatchedError, match="match 0 records"):
        converse(PlayedGrid({Node(9, "insurer"): slow, Node(7, "hospital"): hospital}), run, clock)
    assert len(tries) > 2
    assert hospital.had[MATCH] == insurer.had[MATCH] == b"the match"
    assert clock.now < 60


@pytest.mark.parametrize("back", [60.0, 900.0])
def test_a_node_that_is_away_at_the_end_has_some_minutes_to_take_the_last_file(back, caplog):
    """And after that the app ends and says so. When it is run again, the node is told."""
    clock, run, away = Clock(), PlayedRun(), Node(9, "insurer")
    insurer = Played("insurer")

    def leaves(content):
        answer = insurer(content)
        if "message" in answer.files:
            del grid.nodes[away]
            clock.due.append(
                (clock.now + back, lambda: grid.nodes.update({replace(away): insurer}))
            )
        return answer

    hospital = Played("hospital")
    grid = PlayedGrid({away: leaves, Node(7, "hospital"): hospital})
    converse(grid, run, clock)
    assert MATCH in hospital.had
    in_time = back < 300
    assert (MATCH in insurer.had) == in_time
    sentence = "Within 300 seconds no node of 'insurer' took what the server says of the ids: run the app again"
    assert (sentence in caplog.text) != in_time
    # The node that is there was not asked without a pause.
    assert len(hospital.asked) < 15
    assert clock.now < 400
    clock.sleep(back)
    converse(grid, run, clock)
    assert MATCH in insurer.had


def test_a_node_that_could_not_take_the_last_file_is_asked_again():
    run, hospital, tries = PlayedRun(), Played("hospital"), []

    def fails(content):
        if MATCH in Parcel.from_records(content).files and len(tries) < 3:
            tries.append(content)
            return Parcel("hospital", "failed")
        return hospital(content)

    converse(PlayedGrid({Node(7, "hospital"): fails, Node(9): Played("insurer")}), run)
    assert len(tries) == 3
    assert MATCH in hospital.had


def test_it_ends_and_says_what_it_waits_for():
    grid = PlayedGrid(
        {
            Node(7, "hospital"): lambda content: Parcel(
                "hospital", "acceptance", files={"offer": b"offer"}
            )
        }
    )
    clock = Clock()
    with pytest.raises(RunError) as caught:
        converse(grid, PlayedRun(), clock, patience=500.0)
    assert str(caught.value) == (
        "Nothing has come for 500 seconds: the run waits for the message of 'hospital', the message of 'insurer'; no node of "
        "'insurer' is online; 'hospital' is at its step 'acceptance'. Nothing is lost: see to it, and run the app again."
    )
    # Asked less and less often, but once a minute.
    assert 8 < grid.count < 25


def troubles(run):
    return {trouble.of: trouble.what for trouble in run.state().troubles}


def warned(caplog):
    """What the server said to be in the way."""
    return [record.message for record in caplog.records if "In the way since" in record.message]


def test_a_node_that_goes_away_is_named_in_the_log_and_in_status_until_it_is_back(caplog):
    """First the question is open, and then Flower finds the node gone."""
    clock, run, seen = Clock(), PlayedRun(), []
    node, silent = Node(7, "hospital"), lambda content: None
    grid = PlayedGrid({node: silent, Node(9, "insurer"): Played("insurer")})
    back = Node(7, "hospital", "tuesday")
    clock.due += [
        (20.0, lambda: seen.append(troubles(run))),
        (40.0, lambda: seen.append(troubles(run))),
        (90.0, lambda: grid.nodes.pop(node)),
        (100.0, lambda: seen.append(troubles(run))),
        (200.0, lambda: grid.nodes.__setitem__(back, Played("hospital"))),
    ]
    converse(grid, run, clock)
    asked = "the node of 'hospital' was asked and has not answered."
    assert seen == [{}, {"hospital": asked}, {"hospital": "no node of 'hospital' is online."}]
    said = [line.split(" UTC: ")[1] for line in warned(caplog)]
    assert said == [asked, "no node of 'hospital' is online."]
    assert run.state().done
    assert not troubles(run)


def test_silence_is_said_again_after_minutes_and_since_when_it_lasts(caplog, monkeypatch):
    monkeypatch.setattr(waiting, "utc", lambda ago=0.0: f"{ago:.0f} seconds ago")
    grid, run = PlayedGrid({Node(9, "insurer"): Played("insurer")}), PlayedRun()
    with pytest.raises(RunError):
        converse(grid, run, patience=1000.0)
    assert len(warned(caplog)) == 4
    # It began when the app did.
    assert warned(caplog)[0] == "In the way since 30 seconds ago: no node of 'hospital' is online."
    assert [trouble.since for trouble in run.state().troubles] == ["30 seconds ago"]


def test_nodes_that_answer_in_time_are_in_nobodys_way(caplog):
    run, noted = PlayedRun(), []
    run.note = lambda late, lasted=None: noted.append(late) or ()
    clock = Clock()
    # People take five minutes to accept, and nodes are asked all the while.
    accepted = []
    clock.due.append((300.0, lambda: accepted.append(True)))

    def waits(node):
        return lambda content: node(content) if accepted else Parcel(node.name, "acceptance")

    nodes = {Node(i, name): waits(Played(name)) for i, name in enumerate(PARTIES)}
    converse(PlayedGrid(nodes), run, clock, patience=1000.0)
    assert not any(noted)
    assert "In the way" not in caplog.text


def test_a_node_that_takes_its_time_twice_is_in_nobodys_way(caplog):
    """Two questions in turn, each answered after 20 seconds with what the server lacks."""
    clock, asked, party = Clock(), {}, Played("hospital")

    def slow(content):
        # A question that is kept shares its number with no other one.
        _, since = asked.setdefault(id(content), (content, clock.now))
        return party(content) if clock.now - since >= 20 else None

    nodes = {Node(7, "hospital"): slow, Node(9, "insurer"): Played("insurer")}
    converse(PlayedGrid(nodes), PlayedRun(), clock)
    assert clock.now >= 40
    assert "In the way" not in caplog.text


def test_a_node_that_answers_while_the_server_is_at_work_is_in_nobodys_way(caplog):
    clock, run, asked, insurer = Clock(), PlayedRun(), {}, Played("insurer")
    advance = run.advance

    def works(received):
        clock.now += 120 * ("hospital" in received)
        return advance(received)

    def later(content):
        _, since = asked.setdefault(id(content), (content, clock.now))
        return insurer(content) if clock.now - since >= 3 else None

    run.advance = works
    nodes = {Node(7, "hospital"): Played("hospital"), Node(9, "insurer"): later}
    converse(PlayedGrid(nodes), run, clock)
    assert clock.now > 240
    assert "In the way" not in caplog.text


def test_a_run_that_failed_has_no_node_in_its_way_that_took_the_last_file(caplog):
    """Though the node took a minute to answer."""
    clock, run = Clock(), PlayedRun(UnmatchedError("Sketches match 0 records."))
    asked, insurer = [], Played("insurer")

    def slow(content):
        if MATCH in Parcel.from_records(content).files:
            asked.append(clock.now)
            if clock.now - asked[0] < 60:
                return None
        return insurer(content)

    nodes = {Node(9, "insurer"): slow, Node(7, "hospital"): Played("hospital")}
    with pytest.raises(UnmatchedError):
        converse(PlayedGrid(nodes), run, clock)
    assert MATCH in insurer.had
    assert len(warned(caplog)) == 1
    assert not troubles(run)
    # Nor has the next app what an earlier one left on record.
    run.note({"insurer": "no node of 'insurer' is online."})
    with pytest.raises(UnmatchedError):
        converse(PlayedGrid(nodes), run, clock)
    assert not troubles(run)


def test_a_run_that_is_over_has_nothing_in_its_way():
    """Though a party's node is gone that has sent all it had."""
    clock, run, seen = Clock(), PlayedRun(), []
    run.came["insurer"] = {"offer": b"offer", "message": b"message"}
    party = Played("hospital")
    waits = Parcel("hospital", "acceptance")
    grid = PlayedGrid(
        {Node(7, "hospital"): lambda content: party(content) if clock.now > 60 else waits}
    )
    clock.due.append((50.0, lambda: seen.append(troubles(run))))
    converse(grid, run, clock)
    assert seen == [{"insurer": "no node of 'insurer' is online."}]
    assert not troubles(run)


def test_a_node_that_took_the_last_file_may_go(caplog):
    """The other one is away then, and named."""
    run, node, party = PlayedRun(), Node(7, "hospital"), Played("hospital")
    run.came["insurer"] = {"offer": b"offer", "message": b"message"}

    def leaves(content):
        answer = party(content)
        if MATCH in party.had:
            del grid.nodes[node]
        return answer

    grid = PlayedGrid({node: leaves})
    converse(grid, run)
    assert MATCH in party.had
    assert {line.split(" UTC: ")[1] for line in warned(caplog)} == {
        "no node of 'insurer' is online."
    }


def test_a_side_that_fails_and_a_node_that_is_refused_are_named(caplog):
    grid = PlayedGrid(
        {
            Node(7, "hospital"): lambda content: Parcel("hospital", "failed"),
            Node(8): Played("bank"),
        }
    )
    run = PlayedRun()
    with pytest.raises(RunError):
        converse(grid, run)
    assert troubles(run) == {
        "hospital": "the node of 'hospital' fails; its own log says why.",
        "insurer": "no node of 'insurer' is online.",
        "node 8": "node 8 is refused: 'bank' is no party of this run, whose parties are 'hospital', 'insurer'.",
    }


def test_a_server_that_waits_for_a_node_has_it_in_its_run_folder(folders):
    """A real run; while it is at work, and after it gave up."""
    clock, server = Clock(), ServerRun(folders.server)
    seen = []
    clock.due.append((60.0, lambda: seen.append(ServerRun(folders.server).state().to_json())))
    with server.hold(), pytest.raises(RunError):
        converse(PlayedGrid({}), server, clock, patience=120.0)
    for state in (*seen, ServerRun(folders.server).state().to_json()):
        assert [trouble["what"] for trouble in state["troubles"]] == [
            f"no node of {name!r} is online." for name in THREE
        ]
        assert all(step["since"] for step in state["steps"] if step["status"] == WAITS)


def test_messages_of_other_apps_are_refused(caplog):
    grid = PlayedGrid({Node(7, "hospital"): lambda content: SimpleNamespace(to_records=RecordDict)})
    with pytest.raises(RunError):
        converse(grid, PlayedRun())
    assert (
        "is refused: A Flower message is no parcel of a run; is another app at work there?"
        in caplog.text
    )


def really(folders, node):
    """A real run behind nodes that are made by name. People accept the plan after a minute; nothing is refused."""
    clock = Clock()
    clock.due.append((60.0, lambda: folders.accept(*THREE)))
    grid = PlayedGrid({Node(i, name): node(name) for i, name in enumerate(THREE)})
    converse(grid, ServerRun(folders.server), clock)
    server = ServerRun(folders.server)
    assert not server.state().refused
    for name in THREE:
        assert folders.party(name).state().done
        said = folders.party(name).folder / "received" / MATCH
        assert (said.read_bytes() if said.exists() else None) == server.outgoing()[name].get(MATCH)
    assert (folders.server / "result" / "synthetic.parquet").exists()
    return grid


def test_answers_that_come_late_again_and_unasked_make_one_run(folders):
    """Real runs behind nodes that give all they have, whatever is asked, and every other time an old answer."""

    def node(name):
        said = []

        def answer(content):
            asked = replace(
                Parcel.from_records(content),
                wants=dict.fromkeys(("offer", "envelopes", "message"), 1 << 24),
            )
            said.append(advanced(asked, name, folders.parties / name))
            return said[-1] if len(said) % 2 else said[len(said) // 2 - 1]

        return answer

    grid = really(folders, node)
    assert MATCH in ServerRun(folders.server).outgoing()["hospital"]
    converse(grid, ServerRun(folders.server))
    for name in THREE:
        assert (folders.server / "received" / name / "message").read_bytes() == folders.party(
            name
        ).outgoing()["message"]


def test_three_messages_of_encrypted_counts_go_through_the_same_questions(tmp_path):
    """Real runs: rows, answers, messages, and no file is refused or forwarded to another party."""
    folders = make_folders(tmp_path, encoder="encrypted")
    words = {name: [] for name in THREE}

    def node(name):
        def answer(content):
            given = advanced(Parcel.from_records(content), name, folders.parties / name)
            words[name].append(given.word)
            return given

        return answer

    really(folders, node)
    assert "answers of others" in words["hospital"]
    assert "failed" not in itertools.chain.from_iterable(words.values())
    received = {
        path.relative_to(folders.parties).as_posix()
        for path in folders.parties.rglob("received/*-*")
    }
    compared = {file for file in received if "/ids-" in file}
    assert len(compared) == 2 * 6
    assert received - compared == {
        "hospital/received/answers-2-1",
        "hospital/received/answers-3-1",
        "insurer/received/answers-3-2",
        "insurer/received/rows-1-2",
        "registry/received/rows-1-3",
        "registry/received/rows-2-3",
    }

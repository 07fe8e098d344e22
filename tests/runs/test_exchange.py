"""The place between roles: whole files or none, put once, and nothing believed."""

from __future__ import annotations

from contextlib import suppress

import pytest
from runs.conversation import Conversation

from vertimrf.errors import ExchangeError
from vertimrf.runs import exchange as exchanges
from vertimrf.runs.exchange import Exchange, party_turn, server_turn


@pytest.fixture(params=["folder", "uri"])
def place(request, tmp_path):
    folder = tmp_path / "x"
    folder.mkdir()
    return Exchange(folder if request.param == "folder" else folder.as_uri())


def test_what_is_put_is_got_by_whom_it_is_for(place):
    assert place.get("hospital", "hospital", "offer", 100) is None
    place.put("hospital", "hospital", "offer", b"one")
    place.put(None, "hospital", "plan", b"")
    assert place.get("hospital", "hospital", "offer", 100) == b"one"
    assert place.get(None, "hospital", "plan", 100) == b""
    assert place.get(None, "insurer", "plan", 100) is None


def test_a_file_is_put_once(place):
    place.put("a", "a", "message", b"first")
    again = Exchange(place.place)
    again.put("a", "a", "message", b"first")
    for other in (b"other", b"other and longer", b"o", b""):
        with pytest.raises(ExchangeError, match="another message"):
            Exchange(place.place).put("a", "a", "message", other)
    assert place.get("a", "a", "message", 100) == b"first"


@pytest.mark.parametrize("cut", [0, 1, 20, 35, 40])
def test_an_upload_that_was_cut_is_not_there_and_is_put_again(place, tmp_path, cut):
    place.put("a", "a", "message", b"all of it")
    path = tmp_path / "x" / "parties" / "a" / "message"
    path.write_bytes(path.read_bytes()[:cut])
    later = Exchange(place.place)
    assert later.get("a", "a", "message", 100) is None
    later.put("a", "a", "message", b"all of it")
    assert later.get("a", "a", "message", 100) == b"all of it"


def test_no_more_is_read_than_a_file_may_have(place, monkeypatch):
    place.put("a", "a", "message", bytes(10_000))
    got = place.get("a", "a", "message", 100)
    assert len(got) == 101
    assert len(place.get("a", "a", "message", 10_000)) == 10_000


def test_a_place_that_is_not_there_is_said(tmp_path):
    with pytest.raises(ExchangeError, match="no folder"):
        Exchange(tmp_path / "none")
    with pytest.raises(ExchangeError, match="cannot be used"):
        Exchange("nonsense://bucket/run")


def test_a_share_that_goes_away_is_said_and_not_made_anew(tmp_path):
    (tmp_path / "x").mkdir()
    place = Exchange(tmp_path / "x")
    (tmp_path / "x").rmdir()
    with pytest.raises(ExchangeError, match="cannot be used"):
        place.get("a", "a", "message", 100)
    with pytest.raises(ExchangeError, match="cannot be used"):
        place.put("a", "a", "message", b"one")
    assert not (tmp_path / "x").exists()


def test_drafts_of_killed_uploads_go(tmp_path):
    place = Exchange(tmp_path)
    (tmp_path / "parties" / "a").mkdir(parents=True)
    (tmp_path / "parties" / "a" / ".0123abcd.message").write_text("half")
    place.put("a", "a", "message", b"whole")
    assert [path.name for path in (tmp_path / "parties" / "a").iterdir()] == ["message"]


def test_a_run_goes_over_a_place_and_over_lines_that_are_cut(place, tmp_path, monkeypatch):
    run = Conversation.make(tmp_path / "run")
    lost = {"left": 3}
    write = type(place._store).write

    def cut(store, name, data):
        if lost["left"] and name.endswith("message"):
            lost["left"] -= 1
            write(store, name, data[: len(data) // 2])
            raise OSError("connection reset by peer")
        write(store, name, data)

    monkeypatch.setattr(type(place._store), "write", cut)
    cuts = []
    for _ in range(10):
        for name, party in run.parties.items():
            # As the waiting command does: what is unreachable now is tried again.
            with suppress(ExchangeError):
                cuts.append(name)
                party_turn(party, place)
                cuts.pop()
            run.accept(name)
        server_turn(run.server, place)
        if run.done:
            break
    assert run.done
    assert len(cuts) == 3
    assert not run.server.state().refused


def test_what_somebody_else_puts_there_is_refused_and_holds_up_no_others(tmp_path):
    (tmp_path / "x").mkdir()
    place = Exchange(tmp_path / "x")
    run = Conversation.make(tmp_path / "run")
    place.put("hospital", "hospital", "message", b"made up")
    place.put("nobody", "nobody", "message", b"made up")
    for name, party in run.parties.items():
        party_turn(party, place)
        server_turn(run.server, place)
        run.accept(name)
    server_turn(run.server, place)
    party_turn(run.parties["insurer"], place)
    run.accept("insurer")
    party_turn(run.parties["hospital"], place)
    run.accept("hospital")
    with pytest.raises(ExchangeError, match="somebody put it there"):
        party_turn(run.parties["hospital"], place)
    server_turn(run.server, place)
    assert any("no sealed file" in sentence for sentence in run.server.state().refused)
    party_turn(run.parties["insurer"], place)
    server_turn(run.server, place)
    assert [step.status for step in run.server.state().steps if step.name == "message"] == ["waits", "done"]


def test_turns_get_what_is_wanted_alone(tmp_path, monkeypatch):
    (tmp_path / "x").mkdir()
    place = Exchange(tmp_path / "x")
    run = Conversation.make(tmp_path / "run").play()
    monkeypatch.setattr(exchanges.Exchange, "get", lambda *_: pytest.fail("read again"))
    for party in run.parties.values():
        party_turn(party, place)
    server_turn(run.server, place)

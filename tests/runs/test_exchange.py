"""The place between roles: whole files or none, each of one role, nothing believed, and no way out of it."""

import json
import os
import secrets
import socket
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from commands import refused, run_python
from pyarrow.fs import LocalFileSystem
from runs.conversation import Conversation, files_of, said, serve

from vertimrf import PrivateKey
from vertimrf.errors import (
    CutError,
    ExchangeError,
    MessageError,
    ObstacleError,
    RunError,
)
from vertimrf.runs import exchange as exchanges
from vertimrf.runs.exchange import (
    DIGEST,
    Exchange,
    RemoteStore,
    check_apart,
    take_turn,
)
from vertimrf.runs.files import file_name
from vertimrf.runs.party_run import PartyRun
from vertimrf.runs.server_run import ServerRun


def opened(kind, folder):
    """A place of a kind in a folder, as a process that starts finds it."""
    place = Exchange(folder.as_uri() if kind == "uri" else folder)
    place.reach()
    if kind == "remote":
        place._store = RemoteStore(LocalFileSystem(), str(folder))
    return place


@pytest.fixture(params=["folder", "uri", "remote"])
def again(request, tmp_path):
    """Opens the place, as often as asked."""
    (tmp_path / "x").mkdir()
    return partial(opened, request.param, tmp_path / "x")


@pytest.fixture
def place(again):
    return again()


@pytest.fixture
def run(tmp_path):
    """A run that has not begun, and beside it a place."""
    (tmp_path / "x").mkdir()
    return Conversation.make(tmp_path / "run")


@pytest.fixture
def x(tmp_path):
    return tmp_path / "x"


def put(place, data):
    return place.put("a", "a", "message", data)


def got(place):
    return place.get("a", "a", "message", 100)


def play(run, x):
    """Turns as operators take them, each told of what is in its way; up to where the server has everybody's messages."""
    lines = []
    for _ in range(4):
        for name, party in run.parties.items():
            lines += turn(party, x)
            run.accept(name)
        lines += turn(run.server, x)
    return lines


def turn(role, x):
    """A role's turn, and what is in its way."""
    try:
        take_turn(role, Exchange(x))
    except ObstacleError as error:
        return [str(error)]
    return []


def goes_on(run, x):
    """Nothing is in anybody's way any more."""
    assert not play(run, x)
    assert statuses(run) == {"hospital": "done", "insurer": "done"}


def statuses(run, name="message"):
    return {
        step.what.split("'")[1]: step.status
        for step in run.server.state().steps
        if step.name == name
    }


def test_what_is_put_is_got_by_whom_it_is_for(place):
    assert place.get("hospital", "hospital", "offer", 100) is None
    place.put("hospital", "hospital", "offer", b"one")
    place.put(None, "hospital", "plan", b"")
    assert place.get("hospital", "hospital", "offer", 100) == b"one"
    assert place.get(None, "hospital", "plan", 100) == b""
    assert place.get(None, "insurer", "plan", 100) is None


def test_a_file_that_is_there_stays_and_another_one_is_replaced_and_named(place, again, tmp_path):
    path = tmp_path / "x" / "parties" / "a" / "message"
    assert put(place, b"first") is None
    inode = path.stat().st_ino
    for _ in range(2):
        assert put(again(), b"first") is None
    assert path.stat().st_ino == inode
    for other in (b"other", b"other and longer", b"o", b""):
        put(again(), other)
        assert "had something else at parties/a/message" in put(again(), b"first")
        assert got(place) == b"first"


def test_a_file_that_is_replaced_or_removed_later_is_put_again_by_the_same_process(place, tmp_path):
    """A command that waits looks at what it has put."""
    path = tmp_path / "x" / "parties" / "a" / "message"
    for _ in range(3):
        put(place, b"first")
    path.unlink()
    assert put(place, b"first") is None
    put(place, b"first")
    path.with_name("forged").write_bytes(b"forged" * 10)
    path.with_name("forged").rename(path)
    with pytest.raises(CutError):
        got(place)
    put(place, b"first")
    assert got(place) == b"first"


def test_what_was_put_is_read_again_only_once(place, monkeypatch):
    for _ in range(2):
        put(place, b"first")
    monkeypatch.setattr(type(place._store), "read", lambda *_: pytest.fail("read again"))
    put(place, b"first")


@pytest.mark.parametrize("cut", [0, 1, 20, 35, 40])
def test_an_upload_that_was_cut_is_not_there_and_is_put_again(place, again, tmp_path, cut):
    put(place, b"all of it")
    path = tmp_path / "x" / "parties" / "a" / "message"
    path.write_bytes(path.read_bytes()[:cut])
    later = again()
    with pytest.raises(CutError) as caught:
        got(later)
    assert str(caught.value).startswith(
        f"{later.place}/parties/a/message, the message of 'a', is not whole ({cut} bytes came): it is still being written, or "
        "was cut on its way. `vertimrf run` of 'a' writes it again"
    )
    assert put(later, b"all of it") is None
    assert got(later) == b"all of it"


def test_no_more_is_read_than_a_file_may_have(place):
    place.put("a", "a", "message", bytes(10_000))
    assert len(got(place)) == 101
    assert len(place.get("a", "a", "message", 10_000)) == 10_000
    # Nor into memory: of what somebody puts there, a disk's worth, one byte more than a file may have tells enough.
    assert len(place._store.read("parties/a/message", 100)) == 101
    assert len(place._store.read("parties/a/message", 1 << 40)) == 10_000 + DIGEST


@pytest.mark.parametrize("name", ["x", "file x", "100%"])
def test_the_folder_of_an_exchange_is_made_by_its_path_and_by_its_uri(tmp_path, name):
    for number, text in enumerate((str, Path.as_uri)):
        place = tmp_path / f"{name} {number}"
        serve(tmp_path / f"server {number}", exchange=text(place))
        assert place.is_dir()
        Exchange(text(place)).put("a", "a", "offer", b"one")
        assert (place / "parties" / "a" / "offer").is_file()
        # Nor may it lie within a run folder, however it is named.
        inside = tmp_path / f"run {number}"
        with pytest.raises(RunError, match="lies within"):
            serve(inside, exchange=text(inside / "x"))
        assert not inside.exists()
    # What is elsewhere is not made here.
    serve(tmp_path / "server s3", exchange="s3://bucket/run")
    assert not Path("bucket").exists()


def test_a_share_that_goes_away_is_said_and_not_made_anew(tmp_path):
    (tmp_path / "x").mkdir()
    place = Exchange(tmp_path / "x")
    place.reach()
    (tmp_path / "x").rmdir()
    with pytest.raises(ExchangeError, match="cannot be used"):
        got(place)
    with pytest.raises(ExchangeError, match="cannot be used"):
        put(place, b"one")
    assert not (tmp_path / "x").exists()


def test_drafts_of_killed_uploads_go(tmp_path):
    place = Exchange(tmp_path)
    (tmp_path / "parties" / "a").mkdir(parents=True)
    (tmp_path / "parties" / "a" / ".0123abcd.message").write_text("half")
    put(place, b"whole")
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
                take_turn(party, place)
                cuts.pop()
            run.accept(name)
        take_turn(run.server, place)
        if run.done:
            break
    assert run.done
    assert len(cuts) == 3
    assert not said(run.server)


@pytest.mark.parametrize("name", ["", ".", "..", "../key", "a/b", "/etc/passwd", ".0123abcd.plan"])
def test_no_name_leads_elsewhere(place, tmp_path, name):
    before = files_of(tmp_path)
    with pytest.raises(ExchangeError, match="No run has a file"):
        place.put("a", "a", name, b"one")
    with pytest.raises(ExchangeError, match="No run has a file"):
        place.get("a", "a", name, 100)
    place.put("..", "..", "offer", b"one")
    assert set(files_of(tmp_path)) - set(before) == {"x/parties/%2E%2E/offer"}


def test_twins_of_a_name_are_other_files():
    """On file systems that do not tell case, that cut blanks off, or that write a letter in another way."""
    long = "h" * 150
    twins = [
        "hospital",
        "Hospital",
        "HOSPITAL",
        " hospital",
        "hospital ",
        "hospital.",
        "ä",
        "a\u0308",
        "%c3%a4",
        "%C3%A4",
    ]
    twins += [long, long + "h", long.upper(), "\u202ehospital", "\u00c4" * 50, "\u00c4" * 51]
    twins += ["..", "a/b", "CON: <x>|?*"]
    names = [file_name(name) for name in twins]
    assert len({name.lower() for name in names}) == len(twins)
    assert all(
        len(name) < 200 and name.isascii() and set(name) <= set(file_name("").join(names))
        for name in names
    )
    assert not set("/.\\ ") & set("".join(names))


def test_a_name_that_is_no_text_is_refused(tmp_path):
    with pytest.raises(MessageError, match="needs a name"):
        PartyRun.create(tmp_path / "run", name="\udcff", table=__file__, id="id")
    assert not (tmp_path / "run").exists()


# Who writes into the exchange: links.


def test_a_link_to_the_servers_own_folder_does_not_make_it_write_over_its_plan(run, x):
    (x / "server").mkdir()
    (x / "server" / "hospital").symlink_to(run.server.folder)
    lines = play(run, x)
    plan = run.server.folder / "plan"
    assert ServerRun(run.server.folder).plan.fingerprint == run.server.plan.fingerprint
    assert json.loads(plan.read_text())["schema"]
    assert sorted(os.listdir(run.server.folder)) == [
        ".lock",
        "key",
        "plan",
        "received",
        "run.toml",
        "run.toml.first",
        "schema.toml",
        "waiting",
    ]
    assert "x/server/hospital is a link, not a folder" in lines[-1]
    assert "is a link, not a folder" in said(run.server)
    # Everybody else goes on.
    assert run.parties["insurer"].plan is not None
    (x / "server" / "hospital").unlink()
    assert not play(run, x)[4:]
    assert statuses(run) == {"hospital": "done", "insurer": "done"}
    assert not said(run.server)


@pytest.mark.parametrize("depth", ["the file", "its folder", "the folder above"])
def test_no_link_is_read_through(run, x, tmp_path, depth):
    """Not even to what would be taken: whoever put the link there chooses what it leads to, and when."""
    away = tmp_path / "away"
    take_turn(run.parties["hospital"], Exchange(x))
    names = {
        "the file": "parties/hospital/offer",
        "its folder": "parties/hospital",
        "the folder above": "parties",
    }
    at = x / names[depth]
    at.rename(away)
    at.symlink_to(away)
    with pytest.raises(ObstacleError, match="is a link"):
        Exchange(x).get("hospital", "hospital", "offer", 1000)


def test_a_link_in_the_place_of_a_file_is_replaced_and_what_it_leads_to_stays(x, tmp_path):
    x.mkdir()
    (tmp_path / "secret").write_text("important")
    (x / "parties" / "a").mkdir(parents=True)
    (x / "parties" / "a" / "message").symlink_to(tmp_path / "secret")
    assert "had something else" in put(Exchange(x), b"one")
    assert (tmp_path / "secret").read_text() == "important"
    assert got(Exchange(x)) == b"one"


def test_the_place_itself_may_be_a_link_that_its_user_named(x, tmp_path):
    x.mkdir()
    (tmp_path / "link").symlink_to(x)
    put(Exchange(tmp_path / "link"), b"one")
    assert got(Exchange(x)) == b"one"


def test_a_folder_that_is_swapped_for_a_link_in_the_middle_of_a_write_leads_nowhere(
    x, tmp_path, monkeypatch
):
    """The moment between all checks and the draft: what was opened stays what it was."""
    x.mkdir()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    folder = x / "parties" / "a"
    swapped = []
    draw = secrets.token_hex

    def swap(count):
        if not swapped:
            swapped.append(folder.rename(x / "moved"))
            folder.symlink_to(elsewhere)
        return draw(count)

    put(Exchange(x), b"one")
    monkeypatch.setattr(secrets, "token_hex", swap)
    with suppress(ExchangeError):
        put(Exchange(x), b"two")
    assert swapped
    assert os.listdir(elsewhere) == []


def test_a_folder_that_is_removed_as_soon_as_it_is_made_is_named(x, monkeypatch):
    x.mkdir()
    monkeypatch.setattr(os, "mkdir", lambda *_, **__: None)
    with pytest.raises(
        ObstacleError, match=r"parties cannot be used \(No such file or directory\)"
    ):
        put(Exchange(x), b"one")


# Pipes, sockets, folders, and what hangs.

FIFO = """
import sys
from pathlib import Path
from vertimrf.errors import VertiMRFError
from vertimrf.runs.exchange import Exchange, take_turn
from vertimrf.runs.party_run import PartyRun
from vertimrf.runs.server_run import ServerRun

kind, folder, x = sys.argv[1:]
try:
    take_turn((PartyRun if kind == "party" else ServerRun)(folder), Exchange(x))
except VertiMRFError as error:
    print(error)
"""


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of POSIX")
def test_a_pipe_makes_nobody_wait(run, x):
    for name in ("parties/hospital/offer", "parties/insurer/offer", "server/hospital/plan"):
        (x / name).parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(x / name)
    lines = run_python(FIFO, "server", run.server.folder, x).stdout
    assert lines.count("is a named pipe, not a file; it is ignored until you remove it.") == 2
    lines = run_python(FIFO, "party", run.parties["hospital"].folder, x).stdout
    assert "server/hospital/plan is a named pipe, not a file" in lines
    # Its own file takes the pipe's place.
    assert (x / "parties/hospital/offer").is_file()
    assert "server/hospital/plan is a named pipe" in said(run.parties["hospital"])
    assert len(run.server.state().troubles) == 2


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of POSIX")
def test_a_pipe_makes_no_command_wait(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("plan.json", "table.csv", "model", "schema.toml", "table.parquet"):
        os.mkfifo(name)
    for command in (
        *(f"inspect {name}" for name in os.listdir()),
        "plan plan.json",
        "sample model --out o.csv",
        "check table.csv --plan plan.json --name a --id id",
    ):
        said = refused(command)
        assert "pipe, not a file" in said, command
        assert said.count("\n") == 1


@pytest.mark.parametrize("what", ["folder", "full folder", "socket"])
def test_what_is_no_file_is_named_and_others_go_on(run, x, what, monkeypatch):
    at = x / "parties" / "hospital" / "offer"
    at.parent.mkdir(parents=True)
    if what == "socket":
        monkeypatch.chdir(at.parent)
        socket.socket(socket.AF_UNIX).bind("offer")
    else:
        at.mkdir()
    if what == "full folder":
        (at / "more").write_text("")
    assert f"{at} is a {what.split()[-1]}, not a file" in turn(run.server, x)[0]
    assert f"{at} is a" in said(run.server)
    take_turn(run.parties["insurer"], Exchange(x))
    turn(run.server, x)
    assert statuses(run, "offer") == {"hospital": "waits", "insurer": "done"}
    lines = turn(run.parties["hospital"], x)
    if what == "socket":
        assert not lines
    else:
        assert f"{at} is a folder" in lines[0]
        assert f"{at} is a folder" in said(run.parties["hospital"])
        (at / "more").unlink(missing_ok=True)
        at.rmdir()
    goes_on(run, x)
    assert not said(run.parties["hospital"])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may do everything")
def test_a_folder_that_somebody_else_made_unwritable_is_named(x):
    (x / "parties" / "a").mkdir(parents=True, mode=0o555)
    with pytest.raises(
        ObstacleError, match=r"parties/a/message cannot be used \(Permission denied\)"
    ):
        put(Exchange(x), b"one")


def test_in_an_object_store_a_folder_in_the_place_of_a_file_is_named(again, place, x):
    (x / "parties" / "a" / "message").mkdir(parents=True)
    with pytest.raises(ObstacleError, match="ignored until you remove it"):
        got(place)
    with pytest.raises(ExchangeError):
        put(place, b"one")


def test_drafts_that_are_no_files_are_left(x):
    (x / "parties" / "a" / ".0123abcd.message").mkdir(parents=True)
    put(Exchange(x), b"whole")
    assert got(Exchange(x)) == b"whole"


# Who writes first under a name.


def test_who_writes_first_under_a_name_does_not_block_it(run, x):
    """The party's own write replaces what is not its own; until then the run waits, and says what came instead."""
    forger = Exchange(x)
    forged = PrivateKey.new("insurer").offer.to_text().encode()
    forger.put("hospital", "hospital", "offer", forged)
    forger.put("hospital", "hospital", "message", b"made up")
    forger.put("hospital", "hospital", "envelopes", b"made up")
    forger.put(None, "hospital", "plan", b"made up")
    forger.put("nobody", "nobody", "message", b"made up")
    assert not turn(run.server, x)
    assert "is that of 'insurer', not of 'hospital'" in said(run.server)
    goes_on(run, x)
    assert not said(run.server)
    assert not said(run.parties["hospital"])


def test_a_forged_offer_that_was_taken_is_named_and_no_plan_with_it_is_accepted(run, x):
    Exchange(x).put(
        "hospital", "hospital", "offer", PrivateKey.new("hospital").offer.to_text().encode()
    )
    take_turn(run.server, Exchange(x))
    take_turn(run.server, Exchange(x))
    # The genuine one comes.
    hospital, insurer = run.parties["hospital"], run.parties["insurer"]
    take_turn(hospital, Exchange(x))
    take_turn(run.server, Exchange(x))
    (refused,) = run.server.state().refused
    assert "The offer of 'hospital' came again and is another one" in refused.replace(
        "'offer'", "offer"
    )
    assert f"delete {run.server.folder / 'received/hospital/offer'}" in refused
    # And it says so still once there is a plan; whose offer was swapped does not even get to see that plan.
    take_turn(insurer, Exchange(x))
    take_turn(run.server, Exchange(x))
    assert run.server.plan is not None
    assert "came again" in run.server.state().refused[0]
    take_turn(hospital, Exchange(x))
    take_turn(insurer, Exchange(x))
    assert hospital.plan is None
    assert "another key for 'hospital'" in hospital.state().refused[0]
    # The operators remove what came of it.
    (run.server.folder / "received/hospital/offer").unlink()
    (run.server.folder / "plan").unlink()
    take_turn(run.server, Exchange(x))
    take_turn(insurer, Exchange(x))
    assert f"delete {insurer.folder / 'received/plan'}" in insurer.state().refused[0]
    (insurer.folder / "received/plan").unlink()
    goes_on(run, x)


def test_a_forged_plan_that_came_first_has_another_fingerprint_and_is_named(run, x, tmp_path):
    """The forger knows all offers, and is the server in its own plan; what people read out is the right one's fingerprint."""
    for name in run.parties:
        take_turn(run.parties[name], Exchange(x))
    (tmp_path / "forger").mkdir()
    forger = Conversation.make(tmp_path / "forger").server
    take_turn(forger, Exchange(x))
    party = run.parties["hospital"]
    take_turn(party, Exchange(x))
    assert party.plan.fingerprint == forger.plan.fingerprint
    take_turn(run.server, Exchange(x))
    take_turn(party, Exchange(x))
    assert "The plan came again and is another one" in party.state().refused[0]
    with pytest.raises(MessageError, match="no plan with this fingerprint"):
        party.accept(run.server.plan.fingerprint)
    assert list(party.outgoing()) == ["offer"]
    (party.folder / "received" / "plan").unlink()
    goes_on(run, x)


# Where places may lie.


def test_a_place_within_a_run_folder_and_a_run_folder_within_a_place_are_refused(run, x, tmp_path):
    party = run.parties["hospital"]
    inside = party.folder / "x"
    inside.mkdir()
    (tmp_path / "link").symlink_to(party.folder)
    for place in (inside, party.folder, run.folder, tmp_path / "link" / "x", tmp_path):
        with pytest.raises(RunError, match="lies within"):
            take_turn(party, Exchange(place))
        with pytest.raises(RunError, match="lies within"):
            take_turn(party, Exchange(place.as_uri()))
    with pytest.raises(RunError, match="lies within"):
        take_turn(run.server, Exchange(run.server.folder))
    assert not (inside / "parties").exists()
    check_apart(party.folder, x)
    for folder, place in ((x / "new", x), (tmp_path / "new", tmp_path / "new" / "x")):
        with pytest.raises(RunError, match="lies within"):
            PartyRun.create(
                folder,
                name="hospital",
                table=run.folder / "hospital.csv",
                id="id",
                exchange=str(place),
            )
        assert not folder.exists()


def test_turns_get_what_is_wanted_alone(tmp_path, monkeypatch):
    (tmp_path / "x").mkdir()
    place = Exchange(tmp_path / "x")
    run = Conversation.make(tmp_path / "run").play()
    monkeypatch.setattr(exchanges.Exchange, "get", lambda *_: pytest.fail("read again"))
    for party in run.parties.values():
        take_turn(party, place)
    take_turn(run.server, place)

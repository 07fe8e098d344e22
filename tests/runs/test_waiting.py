"""What is waited for and what is in the way: since when, said how often, and in every role's `status`."""

import json
import os
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import cycle
from pathlib import Path

import pyarrow.fs
import pytest
from commands import good, refused, run, run_python
from runs.conversation import RECORDS, Conversation

from vertimrf.cli import run as commands
from vertimrf.errors import ExchangeError, PlaceError
from vertimrf.runs import exchange as exchanges
from vertimrf.runs import waiting
from vertimrf.runs.exchange import Exchange, take_turn
from vertimrf.runs.waiting import AGAIN, Reminder, Waiting

PLANNING = f"--schema schema.toml --epsilon 1 --expected-records {RECORDS} --message-mb 0.05"


@pytest.fixture
def day(monkeypatch):
    """The time of day, which tests set."""
    day = {"now": "2026-05-01T08:00:00Z"}
    monkeypatch.setattr(waiting, "utc", lambda ago=0.0: day["now"])
    return day


@pytest.fixture
def store(place, monkeypatch):
    """An object store at gs://bucket/run, kept in a folder. Its list of errors says what goes wrong instead."""
    errors = []
    whole = pyarrow.fs.SubTreeFileSystem(str(place), pyarrow.fs.LocalFileSystem())
    real = Exchange._open

    def opened(exchange):
        if exchange.place != "gs://bucket/run":
            return real(exchange)
        if errors:
            raise errors[0]
        return Failing(whole, "x", errors)

    monkeypatch.setattr(Exchange, "_open", opened)
    return errors


class Failing(exchanges.RemoteStore):
    """A store that answers nothing as long as there are errors."""

    def __init__(self, system, root, errors):
        super().__init__(system, root)
        self.errors = errors

    def stamp(self, name):
        if self.errors:
            raise self.errors[0]
        return super().stamp(name)


def party(name, exchange="x", rest=""):
    return f"run party {name} --name {name} --table {name}.csv --id id --exchange {exchange} {rest}"


def status(folder):
    return json.loads(good(f"status {folder} --json -"))


def since(state):
    """By step and by whom it waits for, since when."""
    return {
        (step["name"], step["on"]): step["since"]
        for step in state["steps"]
        if step["status"] == "waits"
    }


def test_each_step_that_waits_says_since_when_and_no_other_one(tmp_path, day):
    run = Conversation.make(tmp_path / "run")
    run.server.advance({})
    day["now"] = "2026-05-01T09:00:00Z"
    offers = {name: party.advance({}) for name, party in run.parties.items()}
    run.server.advance({"hospital": offers["hospital"]})
    state = run.server.state()
    assert since(state.to_json()) == {("offer", "'insurer'"): "2026-05-01T08:00:00Z"}
    assert "waits for that of 'insurer' (since 2026-05-01 08:00:00 UTC)\n" in state.text()
    assert state.text().count("since") == 1
    # By hand or over any transport: what came is waited for no longer, and what comes next from now on.
    run.server.advance(offers)
    assert set(since(run.server.state().to_json()).values()) == {"2026-05-01T09:00:00Z"}
    assert run.again().server.state() == run.server.state()


def test_a_step_that_waits_again_waits_from_then_on(tmp_path, day):
    run = Conversation.make(tmp_path / "run")
    run.round(accepting=False)
    party = run.parties["hospital"]
    assert since(party.state().to_json()) == {("acceptance", "you"): day["now"]}
    day["now"] = "2025-01-01T00:00:00Z"
    (party.folder / "received" / "plan").unlink()
    # A clock that was set back by a year says what it says.
    party.advance({})
    assert since(party.state().to_json()) == {("plan", "the server"): "2025-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b'{"since": 3}', b'{"troubles": [{}]}', b"\xff"]
)
def test_a_damaged_record_is_begun_anew(tmp_path, data):
    run = Conversation.make(tmp_path / "run")
    (run.server.folder / "waiting").write_bytes(data)
    assert set(since(run.server.state().to_json()).values()) == {None}
    assert not run.server.note({})
    assert None not in since(run.server.state().to_json()).values()


def test_trouble_keeps_its_first_time_by_whom_it_concerns(day):
    record = Waiting().troubled({"a": "one.", "b": "two."}, {})
    day["now"] = "2026-05-01T09:00:00Z"
    record = record.troubled({"a": "another."}, {})
    (trouble,) = record.troubles
    assert (trouble.what, trouble.since, trouble.last) == (
        "another.",
        "2026-05-01T08:00:00Z",
        "2026-05-01T09:00:00Z",
    )
    assert trouble.text() == "In the way since 2026-05-01 08:00:00 UTC: another."


def test_a_sentence_is_said_when_it_is_new_and_again_after_minutes():
    said, now = [], {"s": 0.0}
    remind = Reminder(said.append, lambda: now["s"])
    for seconds, sentence in [
        (0, "a"),
        (1, "a"),
        (AGAIN - 1, "a"),
        (AGAIN, "a"),
        (AGAIN + 1, "a"),
        (AGAIN + 2, "b"),
        (AGAIN + 3, ""),
        (AGAIN + 4, "b"),
    ]:
        now["s"] = seconds
        remind(sentence)
    assert said == ["a", "a", "b", "b"]


def test_a_place_that_cannot_be_reached_is_in_status_since_when_until_it_can(store, day):
    store.append(OSError("no route"))
    output = refused(party("hospital", "gs://bucket/run"))
    assert "gs://bucket/run, where files are exchanged, cannot be used: no route." in output
    day["now"] = "2026-05-01T09:00:00Z"
    store[0] = OSError("no name")
    refused("run party hospital")
    sentence = "gs://bucket/run, where files are exchanged, cannot be used: no name."
    assert status("hospital")["troubles"] == [
        {
            "of": "gs://bucket/run",
            "what": sentence,
            "since": "2026-05-01T08:00:00Z",
            "last": "2026-05-01T09:00:00Z",
        }
    ]
    assert (
        f"  In the way since 2026-05-01 08:00:00 UTC: {sentence} (last seen 2026-05-01 09:00:00 UTC)\n"
        in good("status hospital")
    )
    # What is waited for is said all the same.
    assert since(status("hospital")) == {("plan", "the server"): "2026-05-01T08:00:00Z"}
    store.clear()
    assert "In the way" not in good("run party hospital")
    assert not status("hospital")["troubles"]


def test_a_command_that_waits_says_an_outage_once_and_status_shows_it_meanwhile(
    store, day, monkeypatch
):
    """`status` is asked where the command sleeps, which holds the folder."""
    seen = []
    outage = cycle([[OSError("down")], [OSError("down")], [OSError("down")], [OSError("up soon")]])

    def sleep(seconds):
        seen.append([trouble["what"] for trouble in status("hospital")["troubles"]])
        store[:] = [] if len(seen) == 6 else next(outage)
        if len(seen) == 8:
            raise KeyboardInterrupt

    monkeypatch.setattr(commands.time, "sleep", sleep)
    done = run(party("hospital", "gs://bucket/run", "--wait"))
    lines = [line for line in done.output.splitlines() if line.startswith("Warning")]
    assert [line.split("cannot be used: ")[1] for line in lines] == [
        "down. It is tried again.",
        "up soon. It is tried again.",
        "down. It is tried again.",
        "down. It is tried again.",
    ]
    assert [len(what) for what in seen] == [0, 1, 1, 1, 1, 1, 0, 1]


@pytest.mark.parametrize("kind", ["folder", "store"])
def test_a_file_that_lies_there_cut_is_named_with_its_sender_until_it_is_whole(
    place, store, day, kind
):
    exchange = {"folder": "x", "store": "gs://bucket/run"}[kind]
    good("run server server", PLANNING, "--exchange", exchange)
    for name in ("hospital", "insurer"):
        good(party(name, exchange))
    offer = place / "x" / "parties" / "insurer" / "offer"
    whole = offer.read_bytes()
    offer.write_bytes(whole[:40])
    output = good("run server server")
    assert "waits  offer: waits for that of 'insurer' (since 2026-05-01 08:00:00 UTC)" in output
    (trouble,) = status("server")["troubles"]
    assert trouble["of"] == "parties/insurer/offer"
    assert (
        "/parties/insurer/offer, the offer of 'insurer', is not whole (40 bytes came)"
        in (trouble["what"])
    )
    assert "`vertimrf run` of 'insurer' writes it again" in trouble["what"]
    assert trouble["what"] in output
    offer.write_bytes(whole)
    assert "done   plan" in good("run server server")
    assert not status("server")["troubles"]
    plan = place / "x" / "server" / "insurer" / "plan"
    plan.write_bytes(plan.read_bytes()[:-1])
    assert "the plan of the server, is not whole" in good("run party insurer")


ADDRESSES = {
    "s3://": "bucket",
    "gs://": "names no bucket",
    "ftp://host/run": "Unrecognized filesystem type",
    "s4://bucket/run": "Unrecognized filesystem type",
    "file://": "cannot be used",
    "file://host/run": "cannot be used",
    "s3://[bucket/run": "Cannot parse",
    "file:///no/such/%00": "NUL",
    "file:///no/such/%FF": "There is no folder file:///no/such/%FF",
    "file:///no/such/folder": "There is no folder file:///no/such/folder",
    "://": "Cannot parse",
    "s3://a b": "Cannot parse",
    "no/such/folder": "There is no folder",
}


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("wait", ["", "--wait"])
def test_an_address_that_cannot_be_one_ends_a_command_and_is_in_status(
    place, monkeypatch, address, wait
):
    monkeypatch.setattr(commands.time, "sleep", lambda _: pytest.fail("it waits"))
    output = refused(
        "run party hospital --name hospital --table hospital.csv --id id",
        wait,
        ["--exchange", address],
    )
    assert ADDRESSES[address] in output
    assert output.count("\n") == 1
    (trouble,) = status("hospital")["troubles"]
    assert f"Error: {trouble['what']}\n" == output


@pytest.mark.parametrize(
    "address",
    [
        "s3://KEY:SECRET@bucket/run",
        "s3://KEY:SEC/SECRET@bucket/run",
        "s3://KEY%3ASECRET@bucket/run",
        "s3://bucket/run?nonsense=SECRET",
        "s3://bucket/run?secret%5Fkey=SECRET",
        "s3://bucket/run? secret_key = SECRET",
        "s3://bucket/run?region=eu&SECRET",
        "s3://bucket/run?endpoint_override=me:SECRET@host:9000",
        "s3://bucket/run?endpoint_override=me:SECRET%40host:9000",
        "s3://bucket/run#SECRET",
        "abfs://account.dfs.core.windows.net/run?account_key=SECRET",
        "abfs://:SECRET@account.dfs.core.windows.net/run",
    ],
)
def test_a_secret_in_an_address_is_refused_and_in_no_sentence_or_file(place, address):
    """Whatever its name: only what is known to be no secret is kept with a run."""
    output = refused(
        "run party hospital --name hospital --table hospital.csv --id id", ["--exchange", address]
    )
    assert "has no key or password, which would be kept with the run" in output
    assert "SECRET" not in output.replace("AWS_SECRET_ACCESS_KEY", "")
    assert not Path("hospital").exists()
    with pytest.raises(PlaceError):
        Exchange(address)


def with_keys(monkeypatch):
    """Give S3's keys as its programs take them."""
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "DEFAULT_REGION"):
        monkeypatch.setenv(f"AWS_{name}", "us-east-1")


class Refuses(BaseHTTPRequestHandler):
    """A storage that answers every question with an error."""

    status, code = 403, "AccessDenied"

    def answer(self):
        self.rfile.read(int(self.headers.get("content-length") or 0))
        body = f"<Error><Code>{self.code}</Code><Message>no</Message></Error>".encode()
        self.send_response(self.status)
        self.send_header("content-length", str(len(body)))
        self.send_header("content-type", "application/xml")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_HEAD = do_POST = do_PUT = answer  # noqa: N815 (names of the library)

    def log_message(self, *_):
        pass


@pytest.fixture
def storage():
    """Starts a storage on this machine that refuses everything; gives the end of its address."""
    servers = []

    def start(status, code):
        handler = type("Handler", (Refuses,), {"status": status, "code": code})
        servers.append(ThreadingHTTPServer(("127.0.0.1", 0), handler))
        threading.Thread(target=servers[-1].serve_forever, args=(0.02,), daemon=True).start()
        return f"endpoint_override=127.0.0.1:{servers[-1].server_port}&scheme=http"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    "status_code, code, why",
    [
        (403, "AccessDenied", "ACCESS_DENIED"),
        (403, "InvalidAccessKeyId", "ACCESS_DENIED"),
        (400, "ExpiredToken", "HTTP status 400"),
        (404, "NoSuchBucket", "Bucket 'bucket' not found"),
    ],
)
def test_a_storage_that_refuses_this_account_ends_a_command_that_waits(
    place, monkeypatch, storage, status_code, code, why
):
    monkeypatch.setattr(commands.time, "sleep", lambda _: pytest.fail("it waits"))
    with_keys(monkeypatch)
    address = f"s3://bucket/run?{storage(status_code, code)}"
    output = refused(party("hospital", address, "--wait"))
    assert why in output
    assert "Correct the address or this account's rights there, and call again." in output
    assert why in status("hospital")["troubles"][0]["what"]


def test_another_storage_that_refuses_this_account_ends_a_command_that_waits(
    place, monkeypatch, storage
):
    monkeypatch.setattr(commands.time, "sleep", lambda _: pytest.fail("it waits"))
    output = refused(party("hospital", f"gs://anonymous@bucket/run?{storage(401, '')}", "--wait"))
    assert "UNAUTHENTICATED" in output


@pytest.mark.parametrize(
    "text, lasting",
    [
        ("AWS Error SIGNATURE_DOES_NOT_MATCH during PutObject operation: no", True),
        ("AWS Error INVALID_ACCESS_KEY_ID during ListObjectsV2 operation: no", True),
        ("AWS Error UNRECOGNIZED_CLIENT during PutObject operation: no", True),
        ("AWS Error NO_SUCH_BUCKET during CreateMultipartUpload operation: no", True),
        ("AWS Error UNKNOWN (HTTP status 301) during HeadBucket operation: No body.", True),
        ("AWS Error UNKNOWN (HTTP status 503) during HeadObject operation: No body.", False),
        ("AWS Error UNKNOWN (HTTP status 429) during HeadObject operation: No body.", False),
        ("AWS Error SLOW_DOWN during PutObject operation: no", False),
        ("AWS Error NETWORK_CONNECTION during HeadObject operation: curlCode: 7", False),
        ("google::cloud::Status(UNAVAILABLE: Could not create a OAuth2 access token)", False),
    ],
)
def test_which_errors_of_a_storage_last(text, lasting):
    error = Exchange("x")._unusable(OSError(text))
    assert isinstance(error, PlaceError) == lasting


@pytest.mark.parametrize("call", ["open", "mkdir"])
def test_a_folder_without_rights_ends_a_command_that_waits(place, monkeypatch, call):
    """Not as root, who may do all: the call of the system fails as it does for others."""
    real = getattr(os, call)

    def denied(path, *rest, **more):
        if path in ("parties", "server") or str(path).endswith("/x"):
            raise PermissionError(13, "Permission denied", path)
        return real(path, *rest, **more)

    monkeypatch.setattr(os, call, denied)
    monkeypatch.setattr(commands.time, "sleep", lambda _: pytest.fail("it waits"))
    output = refused(party("hospital", "x", "--wait"))
    assert "x, where files are exchanged, cannot be used: Permission denied" in output
    assert output.count("\n") == 1
    assert status("hospital")["troubles"]


def test_a_file_that_this_account_may_not_read_holds_up_no_other_one(tmp_path, monkeypatch):
    conversation = Conversation.make(tmp_path / "run")
    (tmp_path / "x").mkdir()
    for name in ("hospital", "insurer"):
        take_turn(conversation.parties[name], Exchange(tmp_path / "x"))
    real, count = os.open, []

    def denied(path, *rest, **more):
        if path == "offer" and not count:
            count.append(1)
            raise PermissionError(13, "Permission denied", path)
        return real(path, *rest, **more)

    monkeypatch.setattr(os, "open", denied)
    with pytest.raises(PlaceError, match=r"Permission denied of .*/x/parties/hospital/offer"):
        take_turn(conversation.server, Exchange(tmp_path / "x"))
    state = conversation.server.state()
    assert since(state.to_json()).keys() == {("offer", "'hospital'")}
    assert [trouble.of for trouble in state.troubles] == ["parties/hospital/offer"]


def test_a_storage_that_does_not_answer_is_said_and_waited_for_before_the_next_question(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(exchanges, "ANSWER", 0.1)
    place, go = Exchange(tmp_path), threading.Event()
    place.reach()
    calls = []

    def hangs(name):
        calls.append(name)
        go.wait()

    monkeypatch.setattr(place._store, "stamp", hangs)
    try:
        for _ in range(3):
            with pytest.raises(ExchangeError, match="does not answer within 0 seconds") as caught:
                place.reach()
            assert not isinstance(caught.value, PlaceError)
        assert len(calls) == 1
    finally:
        go.set()
    monkeypatch.setattr(exchanges, "ANSWER", 60.0)
    place.reach()
    assert len(calls) == 2


SOON = """
import sys
from vertimrf.runs import exchange
exchange.ANSWER = 0.5
from vertimrf.__main__ import run
run()
"""


@pytest.mark.parametrize("address", ["s3://bucket/run", "gs://anonymous@bucket/run"])
def test_a_command_ends_though_a_storage_takes_the_question_and_never_answers(
    place, monkeypatch, address
):
    """Arrow would wait for its answer for a hundred seconds, also when the process ends."""
    with_keys(monkeypatch)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        end = f"endpoint_override=127.0.0.1:{silent.getsockname()[1]}&scheme=http"
        done = run_python(SOON, *party("hospital", f"{address}?{end}").split())
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"Error: {address}")
    assert "does not answer within 0 seconds. See to the address, the network" in line
    assert "does not answer" in status("hospital")["troubles"][0]["what"]

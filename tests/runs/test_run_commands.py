"""`vertimrf run`, `accept` and `status`, as operators type them."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace

import commands
import pytest
from commands import good, run
from runs.conversation import RECORDS, SCHEMA

from vertimrf.runs.party_run import PartyRun

PLANNING = f"--schema schema.toml --epsilon 1 --expected-records {RECORDS} --message-mb 0.05"


def refused(*words):
    output = commands.refused(*words)
    assert output.count("\n") == 1
    return output


def party(name, rest="--exchange x"):
    """The first command of a party."""
    return f"run party {name} --name {name} --table {name}.csv --id id {rest}"


def start():
    good("run server server", PLANNING, "--exchange x")
    good(party("hospital"))
    good(party("insurer"))
    good("run server server")


def accept(name):
    """A party takes the plan, and accepts what the server read out."""
    good(f"run party {name}")
    good(f"accept --anyway {name}", status("server")["plan"])


def status(folder):
    return json.loads(good(f"status {folder} --json -"))


def test_a_run_by_one_command_a_role_and_one_acceptance(place, monkeypatch):
    start()
    for name in ("hospital", "insurer"):
        output = good(f"run party {name}")
        assert "waits for you" in output
        assert f"vertimrf accept {place / name} FINGERPRINT" in output
        assert "Accepted: the plan" in good(
            f"accept --anyway {name}", *status("server")["plan"].split("-")
        )
        assert status(name)["steps"][2]["status"] == "done"
        good(f"run party {name}")
    # The server passes the envelope of the first party on.
    assert "waits for the envelope of 'hospital'" in good("status insurer")
    assert "waits  message" in good("run server server")
    # From anywhere, by the folder alone.
    os.mkdir("elsewhere")
    monkeypatch.chdir("elsewhere")
    for name in ("../hospital", "../insurer"):
        assert "waits  match: waits for the server to say" in good(f"run party {name}")
    assert "done   result" in good("run server ../server --wait")
    for name in ("../hospital", "../insurer"):
        assert "done   match: by the messages" in good(f"run party {name} --wait")
        assert status(name)["done"]
    assert (place / "server" / "result" / "synthetic.parquet").exists()
    assert good("status ../server") == good("run server ../server")


def test_the_sentence_says_what_is_wrong(place):
    start()
    assert "needs --name, --id" in refused("run party new --table hospital.csv")
    assert "needs --epsilon" in refused(
        f"run server new --schema schema.toml --expected-records {RECORDS}"
    )
    assert "no run folder" in refused("run party new")
    assert "no run folder" in refused("status x")
    assert "not of a party" in refused("run party server")
    assert "not of a party" in refused("accept server 1234")
    good("run party hospital")
    assert "not a whole fingerprint" in refused("accept hospital 1234")
    assert "No plan has come" in refused("accept insurer 1234")
    shutil.rmtree("x")
    assert "no folder" in refused("run party hospital")
    assert "there is no table" in refused("run party n --name n --table n.csv --id id").lower()


def test_without_an_exchange_it_says_which_files_to_carry_and_works_on(place):
    output = good(party("hospital", ""))
    assert "nothing carries this run's files" in output
    assert "Files for others: parties/hospital/offer\n" in output
    assert "Files from others: server/hospital/plan\n" in output
    assert "waits  plan" in output
    output = good("run server server", PLANNING)
    assert "Files for others: none\n" in output
    assert "Files from others: parties/hospital/offer, parties/insurer/offer\n" in output
    # With a place it goes on, and then without one again.
    good(party("insurer"))
    good("run party hospital --exchange x")
    good("run server server --exchange x")
    output = good("run server server")
    assert "Files for others: server/hospital/plan, server/insurer/plan\n" in output
    assert (
        "Files from others: parties/hospital/envelopes, parties/hospital/message, parties/insurer/message\n"
        in output
    )


def carry(sender, receiver):
    """What a stick does: everything of a folder laid over another's."""
    shutil.copytree(sender, receiver, dirs_exist_ok=True)


def test_parties_and_server_that_share_no_folder_by_files_carried_by_hand(place):
    """Each has a folder of its own for files; what goes where is what docs/runs.md says."""
    for role in ("hospital", "insurer", "server"):
        os.makedirs(f"at-{role}/files")

    def to_server():
        for name in ("hospital", "insurer"):
            carry(f"at-{name}/files/parties/{name}", f"at-server/files/parties/{name}")
        good("run server at-server/run")

    def to_parties():
        for name in ("hospital", "insurer"):
            carry(f"at-server/files/server/{name}", f"at-{name}/files/server/{name}")

    good("run server at-server/run", PLANNING, "--exchange at-server/files")
    for name in ("hospital", "insurer"):
        options = f"--name {name} --table {name}.csv --id id --exchange at-{name}/files"
        good(f"run party at-{name}/run", options)
    to_server()
    to_parties()
    for name in ("hospital", "insurer"):
        good(f"run party at-{name}/run")
        assert (
            "Nobody said yes"
            in run(f"accept at-{name}/run", status("at-server/run")["plan"]).output
        )
        good(f"run party at-{name}/run")
        assert os.listdir(f"at-{name}/files/parties/{name}") == ["offer"]
        good(f"accept --anyway at-{name}/run", status("at-server/run")["plan"])
        good(f"run party at-{name}/run")
    # A file that was cut off on its way counts as not come yet; carried again, it is taken.
    to_server()
    cut = place / "at-server/files/server/insurer/envelopes"
    whole = cut.read_bytes()
    cut.write_bytes(whole[:-1])
    to_parties()
    assert "waits for the envelope of 'hospital'" in good("run party at-insurer/run")
    cut.write_bytes(whole)
    to_parties()
    good("run party at-insurer/run")
    to_server()
    # The last file back says whether ids match.
    for name in ("hospital", "insurer"):
        assert "waits  match: waits for the server to say" in good(f"run party at-{name}/run")
    to_parties()
    for name in ("hospital", "insurer"):
        assert "done   match: by the messages" in good(f"run party at-{name}/run")
    assert all(status(f"at-{role}/run")["done"] for role in ("hospital", "insurer", "server"))
    assert (place / "at-server/run/result/synthetic.parquet").exists()
    # Nobody saw another's run folder or files for another.
    assert not (place / "at-hospital/files/parties/insurer").exists()


def test_ids_that_no_other_party_has_are_not_released_without_the_operators_word(place):
    """The schema says that ids have no leading zeros, and the hospital's table has ids of six digits."""
    replace(SCHEMA, ids="9").save("schema.toml")
    lines = (place / "hospital.csv").read_text().splitlines()
    padded = [
        lines[0],
        *(f'"{i:06d}"{line[line.index(",") :]}' for i, line in enumerate(lines[1:])),
    ]
    (place / "hospital.csv").write_text("\n".join(padded) + "\n")
    start()
    good("run party hospital")
    fingerprint = status("server")["plan"]
    for answer, asked in ((None, ""), ("n\n", "n")):
        done = run("accept hospital", fingerprint, answer=answer)
        assert done.exit_code == 2
        assert f"Problem: {place}/hospital.csv" not in done.output
        assert "Problem: 300 of 300 ids do not have the form '9', so no other party" in done.output
        assert (
            f"1 problem, see above. Make and give the message of it? [y/N]: {asked}\n"
            in done.output
        )
        assert done.output.splitlines()[-1].startswith("Error: Nobody said yes")
        assert "waits for you" in good("run party hospital")
        assert os.listdir("x/parties/hospital") == ["offer"]
        assert [s["on"] for s in status("hospital")["steps"] if s["status"] == "waits"] == ["you"]
    # A killed process has written down the table and not the plan, or a draft.
    (place / "hospital" / "accepted").mkdir()
    table = PartyRun("hospital").table_as_it_is
    (place / "hospital" / "accepted" / "table").write_text(table)
    (place / "hospital" / "accepted" / ".0123abcd.plan").write_text("half")
    good("run party hospital")
    assert os.listdir("x/parties/hospital") == ["offer"]
    said = good("accept --anyway hospital", fingerprint)
    assert "Problem: 300 of 300 ids" in said
    assert "[y/N]" not in said
    good("run party hospital")
    assert sorted(os.listdir("x/parties/hospital")) == ["envelopes", "message", "offer"]
    # The other party's ids are in order, and its operator is asked all the same.
    good("run party insurer")
    question = "the check found no problem. Make and give the message of it?"
    assert question in run("accept insurer", fingerprint).output
    assert "Accepted" in run("accept insurer", fingerprint, answer="y\n").output


def test_a_table_written_after_the_acceptance_waits_for_another(place):
    start()
    accept("hospital")
    # A command that goes on meanwhile takes the settings that were accepted.
    goes_on = PartyRun("hospital")
    table, settings = place / "hospital.csv", place / "hospital" / "run.toml"
    fingerprint = status("server")["plan"]

    def waits():
        said = good("run party hospital")
        assert f"{table} was written, or {settings} edited, after you accepted the plan" in said
        assert f"`vertimrf accept {place}/hospital {fingerprint}` checks the table as it is" in said
        return set(os.listdir("x/parties/hospital"))

    def open_steps():
        return [one["name"] for one in status("hospital")["steps"] if one["status"] != "done"]

    os.utime(table, (1, 1))
    assert waits() == {"offer"}
    accept("hospital")
    # After the secret was drawn, and before anything is made of the table.
    goes_on.advance({}, release=False)
    settings.write_text(settings.read_text().replace('id = "id"', 'id = "smoker"'))
    assert waits() == {"offer", "envelopes"}
    assert "message" not in goes_on.advance({})
    assert "have only 2 ids" in good("accept --anyway hospital", fingerprint)
    settings.write_text(settings.read_text().replace('id = "smoker"', 'id = "id"'))
    assert waits() == {"offer", "envelopes"}
    accept("hospital")
    assert "message" in goes_on.advance({})
    assert not goes_on.state().left_out
    # What is on record needs no table.
    table.unlink()
    assert open_steps() == ["match"]
    table.write_text("id\n")
    assert open_steps() == ["match"]


def test_a_table_changed_between_the_check_and_the_answer_is_not_accepted(place, monkeypatch):
    start()
    good("run party hospital")

    def changed(question):
        os.utime("hospital.csv", (1, 1))
        return True

    monkeypatch.setattr("click.confirm", changed)
    good("accept hospital", status("server")["plan"])
    assert "after you accepted the plan" in good("run party hospital")


def test_a_wrong_column_of_ids_is_noticed_before_the_offer(place):
    start = "run party hospital --name hospital --table hospital.csv --exchange x --id"
    assert "has no id column 'key'; its columns are 'id', 'smoker'" in refused(f"{start} key")
    assert "has no person column 'who'" in refused(f"{start} id --person who")
    assert not (place / "hospital").exists()
    assert not (place / "x" / "parties").exists()
    # One record can decide how many ids are few: so this is said, and holds nothing back.
    said = good(f"{start} smoker").splitlines()
    assert said[0].startswith("Warning: ")
    assert "300 records have only 2 ids, and a record needs an id of its own" in said[0]
    assert os.listdir("x/parties/hospital") == ["offer"]


def test_what_is_in_the_way_is_one_sentence_and_status_has_it_until_it_is_gone(place):
    (place / "x" / "parties").mkdir()
    (place / "x" / "parties" / "insurer").symlink_to(place)
    assert "is a link, not a folder" in refused("run server server", PLANNING, "--exchange x")
    good(party("hospital"))
    assert "is a link, not a folder" in refused("run server server")
    state = status("server")
    offers = [step["status"] for step in state["steps"] if step["name"] == "offer"]
    assert offers == ["done", "waits"]
    assert (
        "x/parties/insurer is a link, not a folder; it is ignored" in state["troubles"][0]["what"]
    )
    assert "is a link" in good("status server")
    assert "is a link, not a folder" in refused(party("insurer"))
    assert not (place / "offer").exists()
    (place / "x" / "parties" / "insurer").unlink()
    good("run party insurer")
    assert "done   plan" in good("run server server")
    assert not status("server")["troubles"]


def test_a_command_that_waits_goes_on_once_the_way_is_free(place):
    """And does not end before: what it has is not where others find it."""
    start()
    accept("hospital")
    accept("insurer")
    message = place / "x" / "parties" / "hospital" / "message"
    message.mkdir()
    command = f"{sys.executable} -m vertimrf run party hospital --wait"
    with subprocess.Popen(
        command.split(), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as waiting:
        try:
            while "is a folder, not a file" not in (line := waiting.stderr.readline()):
                assert line, "it ended"
            message.rmdir()
            while not message.is_file():
                assert waiting.poll() is None
            # It ends with the run.
            good("run server server")
            good("run party insurer")
            good("run server server")
            assert waiting.wait(300) == 0
        finally:
            waiting.kill()
    assert message.is_file()


def obstruct(at):
    """A file in the place of a folder, or a folder in that of a file."""
    if at.is_dir():
        shutil.rmtree(at)
        at.write_text("x")
    else:
        at.unlink(missing_ok=True)
        at.mkdir(parents=True)


FILES = [".lock", "key", "run.toml", "stopped", "received/plan", "accepted/plan"]


@pytest.mark.parametrize("name", [*FILES, "received", "accepted"])
def test_folders_in_the_place_of_files_and_files_in_that_of_folders_are_one_sentence(place, name):
    start()
    good("run party hospital")
    table = (place / "hospital.csv").read_text()
    # A table without a column stops the run.
    (place / "hospital.csv").write_text("id,smoker\n1,0\n")
    good("accept --anyway hospital", status("server")["plan"])
    assert run("run party hospital").exit_code == 2
    at = place / "hospital" / name
    obstruct(at)
    (place / "hospital.csv").write_text(table)
    # What it takes to be told differs; that it is told does not.
    (place / "x" / "server" / "hospital" / "plan").write_bytes(b"")
    assert run("status hospital").exit_code in (0, 2)
    done = run("run party hospital")
    assert done.exit_code == 2, done.output
    assert (name if name == "run.toml" else str(at)) in done.output
    assert done.output.replace("Warning:", "Error:").count("Error:") == done.output.count("\n")


@pytest.mark.parametrize(
    "name",
    [
        "received/hospital/envelopes",
        "received/hospital",
        "received/insurer/message",
        "received",
        "plan",
        ".lock",
    ],
)
def test_what_is_in_the_way_in_the_servers_folder_is_named(place, name):
    start()
    for party in ("hospital", "insurer"):
        accept(party)
        good(f"run party {party}")
    at = place / "server" / name
    obstruct(at)
    done = run("run server server")
    assert done.exit_code == 2, done.output
    assert str(at) in done.output.splitlines()[-1]
    assert done.output.splitlines()[-1].startswith("Error: ")
    assert run("status server").exit_code in (0, 2)


def test_a_name_that_was_changed_in_the_settings_is_one_sentence(place):
    start()
    good("run party hospital")
    path = place / "hospital" / "run.toml"
    path.write_text(path.read_text().replace('name = "hospital"', 'name = "insurer"'))
    for command in ("run party hospital", "status hospital", "accept hospital 1234"):
        assert (
            "has the name 'insurer', but the key in the folder is that of 'hospital': correct the name"
            in refused(command)
        )
    schema = place / "server" / "schema.toml"
    schema.write_text(schema.read_text().replace('"insurer"', '"assurer"'))
    for command in ("run server server", "status server"):
        assert "has other parties than" in refused(command)

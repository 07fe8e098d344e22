"""Where results go: every option that names an output, at whatever the name may be of."""

import contextlib
import json
import os
import re
import socket
import stat
import threading
from pathlib import Path

import click
import pytest
from commands import ROLES, good, refused, run, workspace

from vertimrf import (
    Message,
    Model,
    Plan,
    PrivateKey,
    Schema,
    Secret,
    Synthesizer,
    VertiMRFError,
    write_report,
    write_table,
)
from vertimrf.cli import main
from vertimrf.errors import OutputError
from vertimrf.files.results import check_result, is_stream, save
from vertimrf.tables.sources import read_arrow

# By command and option: what the name ends in, and whether an existing file is kept.
OUTPUTS = {
    "align --out": (".ids", False),
    "bench --json": (".json", False),
    "demo --json": (".json", False),
    "evaluate --json": (".json", False),
    "plan --json": (".json", False),
    "plan --out": (".json", True),
    "report --out": (".html", False),
    "sample --out": (".csv", False),
    "sample --trust": (".parquet", False),
    "schema domains --out": (".toml", True),
    "schema draft --out": (".toml", True),
    "schema merge --out": (".json", True),
    "status --json": (".json", False),
    "synthesize --json": (".json", False),
    "synthesize --model": (".model", False),
    "synthesize --out": (".csv.gz", False),
}
# What names a file inside a run's folder, or a folder, and overwrites nothing (tests/demo/test_people.py).
INSIDE = {"run server --out", "demo --tables"}
# Formats that are known by their names alone.
BY_NAME = (".html", ".csv", ".parquet", ".toml", ".csv.gz")
posix = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of POSIX")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return workspace(tmp_path_factory.mktemp("outputs"))


def words_of(place, option, out):
    """A whole command with this output."""
    command, _, name = option.rpartition(" ")
    known = ROLES[command].format(place, f"{out}-other", "")
    # The command's own required output is the one in question, or goes elsewhere.
    known = re.sub(rf"{name} \S+", "", known)
    return [*command.split(), *known.split(), name, str(out)]


def all_outputs(command=main, path=()):
    """Options of all commands that name a file to write, as help texts say."""
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield from all_outputs(inner, (*path, name))
        return
    for option in command.params:
        if {"--out", "--json", "--model", "--trust"} & set(option.opts) or (
            isinstance(option, click.Option)
            and not option.is_flag
            and re.search("(?i)write|save", option.help or "")
        ):
            yield f"{' '.join(path)} {option.opts[0]}"


def test_every_option_that_names_an_output_is_tried():
    assert set(all_outputs()) == set(OUTPUTS) | INSIDE


@contextlib.contextmanager
def reader_of(path):
    """Whoever reads a pipe; the list holds what came."""
    came = []
    # Opened for both, no end waits for the other.
    handle = os.open(path, os.O_RDWR)

    def read():
        while chunk := os.read(handle, 1 << 20):
            came.append(chunk)
            if b"".join(came).endswith(b"the end"):
                return

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    yield came
    os.write(handle, b"the end")
    thread.join(60)
    os.close(handle)


def files_in(folder):
    return {
        path: (path.lstat().st_mode, path.read_bytes() if path.is_file() else b"")
        for path in sorted(folder.rglob("*"))
    }


@pytest.fixture
def light(monkeypatch):
    """The demo without its work, and no compiling."""
    monkeypatch.setattr("vertimrf.demo.run.check_installed", lambda: None)
    monkeypatch.setattr("vertimrf.demo.run.run_demo", lambda *_, **__: {"figure": 1})
    for module in ("machine", "trial", "run"):
        monkeypatch.setattr(f"vertimrf.cli.{module}.compile_kernels", lambda *_: None)


@posix
@pytest.mark.parametrize("option", OUTPUTS)
@pytest.mark.parametrize(
    "kind, sentence",
    [
        ("missing folder", "its folder does not exist"),
        ("link to a file", "it is a link"),
        ("dangling link", "it is a link"),
        ("link to a folder", "it is a link"),
        ("socket", "it is a socket"),
        ("folder", "it is a folder"),
        ("read-only folder", "its folder is read-only"),
        ("pipe that is not ours", "you may not write to it"),
    ],
)
def test_what_is_no_file_is_refused_before_the_work(
    place, tmp_path, monkeypatch, light, option, kind, sentence
):
    out = tmp_path / f"result{OUTPUTS[option][0]}"
    open_ends = contextlib.ExitStack()
    if kind == "missing folder":
        out = tmp_path / "nowhere" / out.name
    elif kind == "link to a file":
        (tmp_path / "file").write_text("kept")
        out.symlink_to("file")
    elif kind == "dangling link":
        out.symlink_to("file")
    elif kind == "link to a folder":
        (tmp_path / "inner").mkdir()
        out.symlink_to("inner")
    elif kind == "socket":
        server = open_ends.enter_context(socket.socket(socket.AF_UNIX))
        monkeypatch.chdir(tmp_path)
        server.bind(out.name)
    elif kind == "folder":
        out.mkdir()
    else:
        # The superuser may write anywhere: say what everybody else would hear.
        closed = tmp_path if kind == "read-only folder" else out
        if closed == out:
            os.mkfifo(out)
        may = os.access
        monkeypatch.setattr(
            os, "access", lambda path, mode: Path(path) != closed and may(path, mode)
        )
    before = files_in(tmp_path)
    # Whatever does the work is not reached. The benchmark imports what follows it, before that is replaced.
    for work in ("cli.bench.run_bench", "trial.synthesize", "plan.planner.make_plan"):
        monkeypatch.setattr(f"vertimrf.{work}", lambda *_, **__: pytest.fail("it went to work"))
    with open_ends:
        said = refused(words_of(place, option, out))
    assert sentence in said
    assert out.name in said
    assert files_in(tmp_path) == before


@posix
@pytest.mark.parametrize("option", OUTPUTS)
def test_pipes_and_devices_are_written_to_and_files_replaced(place, tmp_path, light, option):
    """A pipe gets what a file gets; a full device says so; nothing of them is another thing afterwards."""
    ending, kept = OUTPUTS[option]
    out = tmp_path / f"result{ending}"
    out.write_text("before")
    if kept:
        assert "exists" in refused(words_of(place, option, out))
        assert out.read_text() == "before"
        out.unlink()
    good(words_of(place, option, out))
    written = out.read_bytes()
    assert len(written) > 10
    out.unlink()

    os.mkfifo(out)
    with reader_of(out) as came:
        good(words_of(place, option, out))
    assert stat.S_ISFIFO(out.lstat().st_mode)
    piped = b"".join(came).removesuffix(b"the end")
    # The format is the same; some contents are drawn, and have timings.
    assert piped[:4] == written[:4]
    assert len(piped) > len(written) / 2
    out.unlink()

    for device, number in (("/dev/full", 7), ("/dev/null", 3)):
        for made in (Path.symlink_to, make_node):
            if made is make_node and not may_make_nodes(tmp_path):
                continue
            made(out, device if made is Path.symlink_to else number)
            mode = out.lstat().st_mode
            words = words_of(place, option, out)
            if number == 7:
                said = refused(words)
                assert "No space left on device" in said
                assert out.name in said
            else:
                good(words)
            assert out.lstat().st_mode == mode
            out.unlink()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def make_node(path, number):
    """A device of this kind in a folder of the test's own."""
    os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, number))


def may_make_nodes(folder):
    try:
        make_node(folder / "node", 3)
        (folder / "node").write_bytes(b"")
    except OSError:
        return False
    finally:
        (folder / "node").unlink(missing_ok=True)
    return True


@pytest.mark.parametrize("option", OUTPUTS)
def test_standard_output_has_the_result_alone(place, tmp_path, monkeypatch, light, option):
    monkeypatch.chdir(tmp_path)
    words = words_of(place, option, "-")
    if OUTPUTS[option][0] in BY_NAME or option == "schema merge --out":
        assert re.search("suffix|ends in", refused(words))
    else:
        done = run(words)
        assert done.exit_code == 0, done.output
        if OUTPUTS[option][0] != ".model":
            json.loads(done.stdout)
        else:
            (tmp_path / "model").write_bytes(done.stdout_bytes)
            assert Model.load(tmp_path / "model").sample(3).num_rows == 3
    assert not (tmp_path / "-").exists()


def test_two_results_share_a_device_and_no_file(place, tmp_path):
    plan = words_of(place, "plan --json", "-")[:-2]
    for two in ("--json - --out -", f"--json {tmp_path}/x --out {tmp_path}/../{tmp_path.name}/x"):
        assert "Two results would be written to" in refused(plan, two)
    (tmp_path / "null").symlink_to("/dev/null")
    good(plan, f"--json {tmp_path}/null --out {tmp_path}/null")
    # An input is found by whatever name.
    (tmp_path / "link").symlink_to(place, target_is_directory=True)
    before = (place / "hospital.csv").read_bytes()
    made = f"synthesize {place}/hospital.csv --id id --epsilon 1 --out"
    assert "is read and would be overwritten" in refused(made, tmp_path / "link" / "hospital.csv")
    made = made.replace(str(place), f"{tmp_path}/link")
    assert "is read and would be overwritten" in refused(made, place / "hospital.csv")
    assert (place / "hospital.csv").read_bytes() == before


def savers(place):
    """Everything of the Python interface that writes a file that a user names, by the file's name."""
    plan = Plan.load(place / "server" / "plan")
    key = PrivateKey.load(place / "hospital.run" / "key")
    model = Model.load(place / "made.model")
    table = read_arrow(place / "made.csv")
    message = Message.load(
        place / "server" / "received" / "hospital" / "message",
        plan,
        PrivateKey.load(place / "server" / "key"),
    )
    return {
        "Plan.json": plan.save,
        "Schema.toml": Schema.load(place / "schema.toml").save,
        "Model.model": model.save,
        "Synthesizer.model": Synthesizer.load(place / "made.model").save,
        "PrivateKey.key": key.save,
        "Offer.offer": key.offer.save,
        "Secret.secret": Secret.new().save,
        "Message.message": lambda path: message.save(path, plan, key),
        "Table.csv": lambda path: write_table(table, path, model.ledger.label),
        "Table.parquet": lambda path: write_table(table, path, model.ledger.label),
        "Table.arrow": lambda path: write_table(table, path, model.ledger.label),
        "Report.html": lambda path: write_report([place / "made.model", place / "made.json"], path),
    }


@posix
def test_every_save_of_python_is_the_same_one(place, tmp_path):
    for name, saved in savers(place).items():
        out = tmp_path / name
        (tmp_path / "file").write_text("kept")
        out.symlink_to("file")
        with pytest.raises(
            OutputError, match=r"it is a link, and no link is replaced; name a file\.$"
        ):
            saved(out)
        assert out.is_symlink()
        assert (tmp_path / "file").read_text() == "kept"
        out.unlink()
        saved(out)
        written = out.read_bytes()
        out.unlink()
        os.mkfifo(out)
        with reader_of(out) as came:
            saved(out)
        piped = b"".join(came).removesuffix(b"the end")
        assert piped == written or name in ("Message.message", "Report.html"), name
        out.unlink()
        out.symlink_to("/dev/full")
        with pytest.raises((OSError, VertiMRFError), match=f"No space left on device.*|{name}"):
            saved(out)


@posix
def test_a_disk_is_not_written_to(tmp_path, monkeypatch):
    """A disk would be destroyed. Here a file says that it is one."""
    (tmp_path / "disk").write_text("kept")
    said = os.stat_result((stat.S_IFBLK | 0o666, *(0,) * 9))
    monkeypatch.setattr(os, "stat", lambda *_, **__: said)
    monkeypatch.setattr(Path, "lstat", lambda _: said)
    with pytest.raises(OutputError, match="it is a disk; name a file"):
        save(tmp_path / "disk", "x")
    monkeypatch.undo()
    assert (tmp_path / "disk").read_text() == "kept"


def test_names_that_no_file_has_are_refused(tmp_path):
    for name, why in (("a\0b", "null"), ("x" * 300, "too long")):
        with pytest.raises(OutputError, match=why):
            check_result(tmp_path / name)
        assert not is_stream(tmp_path / name)

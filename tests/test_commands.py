"""What pages tell people to type exists: programs, scripts, subcommands, options, extras and files.

The tutorials' commands are typed (tests/test_tutorials.py) and the README's marked ones run in CI. All others, in blocks and in
inline code, are held here against click's commands and the scripts' own parsers.
"""

import ast
import re
import runpy
import shlex
import tomllib
from pathlib import Path

import click
import pytest

import vertimrf
from vertimrf.cli import main

ROOT = Path(vertimrf.__file__).parents[1]
FOLDERS = ("docs", "benchmarks/results")
PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    *sorted(f"{folder}/{path.name}" for folder in FOLDERS for path in (ROOT / folder).glob("*.md")),
]
# Programs of others that pages call; only the names of ours can be looked up.
PROGRAMS = {
    "docker",
    "export",
    "find",
    "flower-superlink",
    "flower-supernode",
    "flwr",
    "install",
    "mkdocs",
    "mypy",
    "openssl",
    "ruff",
    "source",
    "ssh-keygen",
    "useradd",
}
OURS = r"(?:\.ci|benchmarks|docs|examples|tests|vertimrf)"
pytestmark = pytest.mark.skipif(not (ROOT / "docs").is_dir(), reason="installed without its pages")


def blocks(text):
    """Command lines of bash blocks, continued ones joined."""
    for block in re.findall(r"(?ms)^```bash\n(.*?)^```", text):
        yield from block.replace("\\\n", " ").splitlines()


def spans(text):
    """Inline code, outside of blocks."""
    outside = re.sub(r"(?ms)^```.*?^```", "", text)
    yield from re.findall(r"`([^`\n]+)`", outside)


def commands(line):
    """The words of each command of a line."""
    words = shlex.split(line, comments=True)
    while words:
        ends = [i for i, word in enumerate(words) if word in ("&&", "|", ";")]
        end = ends[0] if ends else len(words)
        command = words[:end]
        while command and re.fullmatch(r"\w+=.*", command[0]):
            command = command[1:]
        if command:
            yield command
        words = words[end + 1 :]


def options_of(script):
    """Options that a script's parser takes, read off its source."""
    options = {"--help"}
    for node in ast.walk(ast.parse(script.read_text())):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if name == "add_argument":
            options |= {
                a.value
                for a in node.args
                if isinstance(a, ast.Constant) and str(a.value).startswith("-")
            }
        if name in ("arguments", "sized") and node.args:
            options |= {"--smoke", "--json", *(f"--{keyword.arg}" for keyword in node.keywords)}
    return options


def script_of(words):
    """The file that `python …` runs, and what it is given; None for modules of others."""
    if words[0] != "-m":
        return ROOT / words[0], words[1:]
    if not words[1].startswith("benchmarks"):
        return None, words
    path = ROOT / words[1].replace(".", "/")
    return (path / "__main__.py" if path.is_dir() else path.with_suffix(".py")), words[2:]


def wrong(words):
    """What does not exist in a command; None if all does."""
    program, *rest = words
    given = [
        word.strip("[]").partition("=")[0] for word in rest if word.strip("[]").startswith("--")
    ]
    if program == "vertimrf":
        return wrong_options(rest, given)
    if program.startswith("python") or program.endswith("/python"):
        script, _ = script_of(rest)
        if script is None:
            return wrong_markers(rest) if rest[1] == "pytest" else None
        if not script.is_file():
            return f"there is no {script.relative_to(ROOT)}"
        missing = [option for option in given if option not in options_of(script)]
        return f"{script.relative_to(ROOT)} has no {missing[0]}" if missing else None
    if program == "pip" or program.endswith("/pip"):
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
            "optional-dependencies"
        ]
        for asked in re.findall(r"(?:^|\s)(?:\.|vertimrf)\[([\w,]+)\]", " ".join(rest)):
            if unknown := set(asked.split(",")) - set(extras):
                return f"there is no extra {sorted(unknown)[0]}"
        return None
    if program.startswith(".ci/") or program == "pytest":
        path = program if program != "pytest" else next((word for word in rest if "/" in word), ".")
        return None if (ROOT / path).exists() else f"there is no {path}"
    return None if program in PROGRAMS else f"nobody knows the program {program}"


def wrong_options(words, given):
    """What vertimrf does not know among these words."""
    command = main
    known = {"--help"} | {name for p in main.params for name in (*p.opts, *p.secondary_opts)}
    left = list(words)
    while isinstance(command, click.Group) and left and not left[0].startswith("-"):
        name = left[0]
        if name not in command.commands:
            return f"there is no command vertimrf {' '.join(words[:2] if command is not main else words[:1])}"
        command, left = command.commands[name], left[1:]
    known |= {name for p in command.params for name in (*p.opts, *p.secondary_opts)}
    missing = [option for option in given if option not in known]
    return f"vertimrf {command.name} has no {missing[0]}" if missing else None


def wrong_markers(words):
    markers = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"][
        "markers"
    ]
    asked = words[words.index("-m", 1) + 1] if "-m" in words[1:] else ""
    return (
        f"there is no marker {asked}"
        if asked and not any(marker.startswith(f"{asked}:") for marker in markers)
        else None
    )


@pytest.mark.parametrize("page", PAGES)
def test_commands_exist(page):
    text = (ROOT / page).read_text()
    # "vertimrf sealed 1" is how a file begins.
    ours = re.compile(r"(?:vertimrf|python|pytest|pip install) (?!sealed)[\w'.-]|\.ci/")
    for line in (*blocks(text), *filter(ours.match, spans(text))):
        for words in commands(line):
            assert (why := wrong(words)) is None, f"{page}: {line.strip()}: {why}"


@pytest.mark.parametrize("page", PAGES)
def test_paths_in_code_exist(page):
    """Of the tree: `benchmarks/x.py`, `tests/y/`, `benchmarks.z`, in inline code and in blocks."""
    text = (ROOT / page).read_text()
    for piece in (*spans(text), *blocks(text)):
        for path in re.findall(rf"(?<![\w/.~-]){OURS}/[\w./*-]*\w/?", piece):
            assert list(ROOT.glob(path.rstrip("/"))), f"{page}: {piece}: there is no {path}"
        for module in re.findall(r"(?<![\w/.])benchmarks\.(\w+)", piece):
            missing = [
                ROOT / "benchmarks" / name for name in (f"{module}.py", module, f"{module}.toml")
            ]
            assert any(path.exists() for path in missing), (
                f"{page}: {piece}: there is no benchmarks.{module}"
            )


def test_every_extra_has_an_example_in_a_fresh_environment():
    """`.ci/install-lines` finds what pages install, and knows what to run for each extra."""
    path = ROOT / ".ci" / "install-lines"
    if not path.is_file():
        pytest.skip("installed without CI")
    script = runpy.run_path(str(path))
    names = [path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/*.md")]
    lines = script["wanted"](lambda name: (ROOT / name).read_text(), ["README.md", *names])
    assert {(".[demo]",), (".[demo,test]",), ("flwr[simulation]",)} <= set(lines)
    extras = {extra for line in lines for extra in script["extras_of"](line)}
    assert extras == set(script["EXAMPLES"])


@pytest.mark.parametrize(
    "line, why",
    [
        ("vertimrf nothing", "no command vertimrf nothing"),
        ("vertimrf plan --nothing", "plan has no --nothing"),
        ("vertimrf run nothing", "no command vertimrf run nothing"),
        ("vertimrf run party x --nothing", "party has no --nothing"),
        ("python benchmarks/nothing.py", "there is no benchmarks/nothing.py"),
        ("python -m benchmarks.nothing", "there is no benchmarks/nothing.py"),
        ("python benchmarks/attacks/audit.py --nothing", "audit.py has no --nothing"),
        ("python -m benchmarks.reproduce --nothing", "__main__.py has no --nothing"),
        ("python -m pytest -m nothing", "no marker nothing"),
        ("pip install '.[nothing]'", "no extra nothing"),
        ("pytest tests/nothing.py", "there is no tests/nothing.py"),
        ("nothing --here", "the program nothing"),
    ],
)
def test_what_does_not_exist_is_found(line, why):
    (words,) = commands(line)
    assert why in (wrong(words) or "")


def test_what_exists_is_not():
    for line in (
        "vertimrf run party x --name hospital",
        "VAR=1 python -m benchmarks.reproduce --quick --json x",
        "pip install -e '.[test]'",
        "python benchmarks/attacks/audit.py --smoke  # so",
        "python -m pytest -q -m slow",
        "vertimrf schema merge a b --out c",
    ):
        (words,) = commands(line)
        assert wrong(words) is None

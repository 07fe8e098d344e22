"""The command line as tests type it, in this process."""

import itertools
import os
import subprocess
import sys

from click.testing import CliRunner

from vertimrf.cli import main
from vertimrf.plan.schema import Schema


def run(*words, answer=None):
    """Run ``vertimrf`` with these words: texts are split at blanks, lists and all else are words as they stand.

    A question gets ``answer``; without one, nobody is there.
    """
    split = (
        word.split() if isinstance(word, str) else word if isinstance(word, list) else [str(word)]
        for word in words
    )
    return CliRunner().invoke(main, [*itertools.chain(*split)], input=answer)


def run_python(code, *arguments):
    """A process of its own that runs code, which must end."""
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=60,
    )


def good(*words):
    """What a command prints that ends well."""
    done = run(*words)
    assert done.exit_code == 0, done.output
    return done.output


def refused(*words):
    """What a command prints that ends with exit code 2 and one sentence on why."""
    done = run(*words)
    assert done.exit_code == 2, done.output
    assert "Traceback" not in done.output
    assert [line[:7] for line in done.output.splitlines()].count("Error: ") == 1, done.output
    return done.output


# The least of words that every command needs, in a workspace {0}, with what it writes at {1}.
ROLES = {
    "accept": "{0}/hospital.run {2}",
    "align": "{0}/hospital.run --out {1}.ids",
    "bench": "--rows 1000 --encoder published --threads 1",
    "check": "{0}/hospital.csv --schema {0}/schema.toml --name hospital --id id",
    "demo": "--folder {1}.demo",
    "evaluate": "--real {0}/hospital.csv --synthetic {0}/made.csv --id id --schema {0}/one.toml --marginals 2",
    "inspect": "{0}/schema.toml",
    "plan": "--schema {0}/schema.toml --epsilon 1 --expected-records 300 --even-if-useless",
    "report": "{0}/made.model {0}/made.json --out {1}.html",
    "run party": "{1}.party --name hospital --table {0}/hospital.csv --id id",
    "run server": "{1}.server --schema {0}/schema.toml --epsilon 1 --expected-records 300 --even-if-useless",
    "sample": "{0}/made.model --rows 50 --out {1}.csv",
    "schema domains": "{0}/hospital.csv --schema {0}/private.toml --epsilon 1 --id id --out {1}.toml",
    "schema draft": "{0}/hospital.csv --id id --out {1}.toml",
    "schema merge": "{0}/one.toml --out {1}.toml",
    "status": "{0}/hospital.run",
    "synthesize": "{0}/hospital.csv --id id --schema {0}/one.toml --epsilon 1 --out {1}.csv",
    "warmup": "",
}


def workspace(folder):
    """A folder with all that commands read: tables, schemas, a model with its table and figures, and a finished run."""
    from runs.conversation import SCHEMA, Conversation

    Conversation.make(folder).play()
    SCHEMA.save(folder / "schema.toml")
    Schema.of({"hospital": SCHEMA.part("hospital")}).save(folder / "one.toml")
    (folder / "private.toml").write_text(
        '[[party]]\nname = "hospital"\n[[party.attribute]]\nname = "ward"\nvalues = "private"\n'
    )
    made = f"--out {folder}/made.csv --model {folder}/made.model --json {folder}/made.json"
    known = f"--id id --schema {folder}/one.toml --epsilon 1"
    good(f"synthesize {folder}/hospital.csv {known} {made}")
    return folder

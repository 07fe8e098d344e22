"""The command line as tests type it, in this process."""

import itertools

from click.testing import CliRunner

from vertimrf.cli import main


def run(*words):
    """Run ``vertimrf`` with these words: texts are split at blanks, lists and all else are words as they stand."""
    split = (
        word.split() if isinstance(word, str) else word if isinstance(word, list) else [str(word)]
        for word in words
    )
    return CliRunner().invoke(main, [*itertools.chain(*split)])


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

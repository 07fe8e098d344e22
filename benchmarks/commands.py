"""How long the help of every command takes: CPU seconds of a process of its own, the least of a few.

python benchmarks/commands.py [--smoke] [--json FILE]
"""

import subprocess
import sys
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.measured import processor_seconds
from benchmarks.verdict import SMOKE, Verdict, arguments, finish
from vertimrf.cli import main as vertimrf

TIMES = 5


def commands(command, words=()):
    """The words of a command and of all commands in it."""
    yield words
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield from commands(inner, (*words, name))


def help_seconds(words, times):
    """CPU seconds of the help of one command."""
    spent = []
    for _ in range(times):
        before = processor_seconds()
        subprocess.run(
            [sys.executable, "-m", "vertimrf", *words, "--help"], check=True, capture_output=True
        )
        spent.append(processor_seconds() - before)
    return min(spent)


def main():
    options = arguments(__doc__).parse_args()
    every = list(commands(vertimrf))
    smoke = options.size == SMOKE
    seconds = [
        help_seconds(words, 1 if smoke else TIMES) for words in (every[:1] if smoke else every)
    ]
    rows = [Verdict("the slowest command's --help, CPU s", max(seconds))]
    finish(rows, "commands", options)


if __name__ == "__main__":
    main()

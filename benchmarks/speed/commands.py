"""How long the help of the slowest command takes: CPU seconds of a process of its own, the least of a few.

Every command is asked once; those that took longest are asked again.

python benchmarks/speed/commands.py [--smoke] [--json FILE]
"""

import subprocess
import sys
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.speed.measured import processor_seconds
from benchmarks.verdict import SMOKE, Verdict, arguments, finish
from vertimrf.cli import main as vertimrf

# So many of the slowest are asked so many times.
SLOWEST, TIMES = 4, 5


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
    every = list(commands(vertimrf))[: 1 if options.size == SMOKE else None]
    slowest = sorted(every, key=lambda words: help_seconds(words, 1))[-SLOWEST:]
    seconds = [help_seconds(words, TIMES) for words in slowest]
    rows = [Verdict("the slowest command's --help, CPU s", max(seconds))]
    finish(rows, "commands", options)


if __name__ == "__main__":
    main()
